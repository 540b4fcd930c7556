//! With real trees that were damaged. Each is used on a thread that is given up after a minute.

use std::sync::mpsc;

use super::*;

fn value(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn put(store: &mut SledStore, key: u8, len: usize) -> Result<(), DerivedRefused> {
    store.write(&[(vec![key], Some(value(len, u64::from(key))))])
}

/// A tree of some values, closed.
fn tree(path: &Path, len: usize) {
    states(path, len, &mut |_| ());
}

/// The same; `look` is called with the tree open after each write.
fn states(path: &Path, len: usize, look: &mut dyn FnMut(u8)) {
    let mut store = SledStore::open(path);
    for key in 0..8 {
        put(&mut store, key, len).unwrap();
        look(key);
    }
    store.write(&[(vec![3], None)]).unwrap();
}

/// Copies a tree with its large values, which lie in files of their own; gives the others.
fn copy(from: &Path, to: &Path) -> Vec<PathBuf> {
    fs::create_dir_all(to).unwrap();
    let mut files = Vec::new();
    for path in fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
            files.push(target);
        }
    }
    files
}

/// Damages that a cut can do to a file.
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
    for (key, len) in [(20, 1_500_000), (21, 100_000), (22, 2_000_000), (23, 3000)] {
        if put(&mut store, key, len).is_err() {
            was_refused = true;
            store.clear().unwrap();
            put(&mut store, key, len).unwrap();
        }
    }
    drop(store);
    let store = SledStore::open(path);
    // It may have lost that again.
    let last = store.get(&[23]).unwrap_or_default();
    assert!(last.is_none_or(|last| last == value(3000, 23)));
    was_refused
}

#[test]
fn a_damaged_tree_is_opened_used_and_closed_or_rebuilt_and_never_waits_for_itself() {
    let folder = tempfile::tempdir().unwrap();
    let mut whole: Vec<PathBuf> = Vec::new();
    for len in [500, 400_000] {
        let path = folder.path().join(format!("{len}"));
        states(&path, len, &mut |key| {
            if key == 4 {
                whole.push(folder.path().join(format!("{len}-{key}")));
                copy(&path, &whole[whole.len() - 1]);
            }
        });
        whole.push(path);
    }
    let mut refused = 0;
    for whole in &whole {
        let files = fs::read_dir(whole).unwrap().filter(|e| e.as_ref().unwrap().path().is_file());
        for (file, damage) in
            (0..files.count()).flat_map(|file| DAMAGE.map(|damage| (file, damage)))
        {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("index");
            let mut files = copy(whole, &path);
            files.sort();
            let mut bytes = fs::read(&files[file]).unwrap();
            damage(&mut bytes);
            fs::write(&files[file], bytes).unwrap();
            let (done, waiting) = mpsc::channel();
            let used = path.clone();
            std::thread::spawn(move || done.send(use_up(&used)));
            let what = format!("{} of {}", files[file].display(), whole.display());
            let was_refused = waiting.recv_timeout(Duration::from_secs(60));
            let was_refused = was_refused.unwrap_or_else(|error| panic!("{what}: {error}"));
            refused += u32::from(was_refused);
        }
    }
    // A large value that is left of a log that was lost is in the way of the next one.
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

#[test]
fn a_tree_that_another_thread_still_closes_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    tree(&path, 10);
    let file = fs::File::open(path.join("db")).unwrap();
    file.lock().unwrap();
    let closing = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        drop(file);
    });
    let store = SledStore::open(&path);
    closing.join().unwrap();
    assert_eq!(store.get(&[5]).unwrap(), Some(value(10, 5)), "nothing was thrown away");
}
