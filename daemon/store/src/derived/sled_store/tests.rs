//! With real trees that were damaged. Each is used on a thread that is given up after a minute.

use std::sync::mpsc;
use std::time::Duration;

use super::*;

fn value(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn put(store: &mut SledStore, key: u8, len: usize) -> Result<(), Refused> {
    store.write(&[(vec![key], Some(value(len, u64::from(key))))])
}

/// A tree of some values, closed.
fn tree(path: &Path, len: usize) {
    let mut store = SledStore::open(path);
    for key in 0..8 {
        put(&mut store, key, len).unwrap();
    }
    store.write(&[(vec![3], None)]).unwrap();
}

fn copy(from: &Path, to: &Path) -> Vec<PathBuf> {
    fs::create_dir_all(to).unwrap();
    let files = fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<PathBuf> = files.filter(|path| path.is_file()).collect();
    files
        .iter()
        .map(|file| {
            let target = to.join(file.file_name().unwrap());
            fs::copy(file, &target).unwrap();
            target
        })
        .collect()
}

/// What a cut can do to a file.
const DAMAGE: [fn(&mut Vec<u8>); 5] = [
    |bytes| bytes.clear(),
    |bytes| bytes.truncate(bytes.len() / 2),
    |bytes| bytes.iter_mut().skip(4096).step_by(2).for_each(|byte| *byte = 0),
    |bytes| bytes.chunks_mut(4096).step_by(2).for_each(|page| page.fill(0)),
    |bytes| bytes.chunks_mut(4096).skip(1).step_by(2).for_each(|page| page.fill(0)),
];

/// Opens, reads, writes and closes it; tells whether a write was refused and made good.
fn use_up(path: &Path) -> bool {
    let mut store = SledStore::open(path);
    for key in store.keys().unwrap_or_default() {
        let _ = store.get(&key);
    }
    let mut was_refused = false;
    for (key, len) in [(20, 300), (21, 100_000), (22, 2_000_000), (23, 3000)] {
        if put(&mut store, key, len).is_err() {
            was_refused = true;
            store.clear().unwrap();
            put(&mut store, key, len).unwrap();
        }
    }
    drop(store);
    let store = SledStore::open(path);
    assert_eq!(store.get(&[23]).unwrap(), Some(value(3000, 23)), "what came last is there");
    was_refused
}

#[test]
fn a_damaged_tree_is_opened_used_and_closed_or_begun_anew_and_never_waits_for_itself() {
    let folder = tempfile::tempdir().unwrap();
    let mut refused = 0;
    for len in [500, 30_000, 400_000] {
        let whole = folder.path().join(format!("whole-{len}"));
        tree(&whole, len);
        let files = fs::read_dir(&whole).unwrap().filter(|e| e.as_ref().unwrap().path().is_file());
        for (file, damage) in
            (0..files.count()).flat_map(|file| DAMAGE.map(|damage| (file, damage)))
        {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("index");
            let mut files = copy(&whole, &path);
            files.sort();
            let mut bytes = fs::read(&files[file]).unwrap();
            damage(&mut bytes);
            fs::write(&files[file], bytes).unwrap();
            let (done, waiting) = mpsc::channel();
            let used = path.clone();
            std::thread::spawn(move || done.send(use_up(&used)));
            let what = format!("values of {len}, {}", files[file].display());
            let was_refused = waiting.recv_timeout(Duration::from_secs(60));
            refused += u32::from(was_refused.unwrap_or_else(|error| panic!("{what}: {error}")));
        }
    }
    assert!(refused > 0, "some of them open and refuse to be written");
}

#[test]
fn what_was_cleared_is_gone_and_a_new_tree_takes_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    let mut store = SledStore::open(&path);
    assert!(!path.exists(), "nothing is kept yet");
    put(&mut store, 1, 30_000).unwrap();
    assert!(store.size_on_disk() > 0);
    store.clear().unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    assert_eq!(store.get(&[1]), Ok(None));
    put(&mut store, 2, 30_000).unwrap();
    drop(store);
    assert_eq!(SledStore::open(&path).keys(), Ok(vec![vec![2]]));
}

#[test]
fn leftovers_of_a_removal_and_of_an_older_build_go() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    tree(&path, 300);
    for leftover in ["index.old", "index.fresh"] {
        fs::create_dir(folder.path().join(leftover)).unwrap();
        fs::write(folder.path().join(leftover).join("db"), "what was forgotten").unwrap();
    }
    let store = SledStore::open(&path);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(store.keys().unwrap().len(), 7);
    drop(store);
    fs::write(path.join(UNPURGED), "").unwrap();
    assert_eq!(SledStore::open(&path).keys(), Ok(Vec::new()), "it may hold what was forgotten");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
