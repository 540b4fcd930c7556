//! Data folders of the first release, without sidecars and without witnesses, with seals of the first two formats: they
//! are opened, served and brought up to date, and the power may go anywhere on the way.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use omird::disk::{self, Disk};
use omird::engine::Task;
use omird::engine::testing::ByHand;
use omird_tests::check;
use omird_tests::cut_disk::{CutDisk, EVERYTHING, ONLY_SYNCED};
use omird_tests::golden_folder::{
    Golden, asked_at, but_counts, clock_at, compare, files, found, lives,
};
use omird_tests::session::Session;

/// The golden folder as a card.
fn card(golden: &Golden) -> CutDisk {
    let data = tempfile::tempdir().expect("a folder");
    golden.unpack(data.path()).unwrap_or_else(|error| panic!("{}: {error}", golden.name));
    let disk = CutDisk::new();
    for path in files(data.path()).expect("it is listed") {
        let bytes = fs::read(data.path().join(&path)).expect("it is read");
        let path = path.to_str().expect("our own names");
        let (folder, _) = path.split_once('/').expect("everything lies in a folder");
        disk.create_dir(folder).expect("a good disk");
        disk::replace(&disk, path, &bytes).expect("a good disk");
        disk.sync_dir(folder).and_then(|()| disk.sync_dir(".")).expect("a good disk");
    }
    disk.survivors(ONLY_SYNCED)
}

fn count(disk: &CutDisk, ending: &str) -> usize {
    disk.paths().iter().filter(|path| path.ends_with(ending)).count()
}

fn open(card: &CutDisk, micros: i64) -> std::io::Result<Session> {
    Session::open_with(Arc::new(card.clone()), &clock_at(micros), lives::settings(), None)
}

fn is_up_to_date_wherever_the_power_goes(name: &str) {
    let golden = Golden { set: "01-plain".to_owned(), name: name.to_owned() };
    let kept = fs::read_to_string(golden.answers()).expect("its answers");
    let micros = asked_at(&kept);
    let old = card(&golden);
    assert_eq!(count(&old, ".par") + count(&old, ".facts"), 0, "the first release wrote none");
    let mut cuts = 0;
    for cut in 0.. {
        let card = old.survivors(EVERYTHING);
        card.cut_at(card.operations() + cut);
        if let Ok(session) = open(&card, micros) {
            for _ in 0..20 {
                std::thread::sleep(Duration::from_millis(1));
                let _ = session.run_task(Task::Seal);
            }
            let is_done = count(&card, ".par") == count(&card, ".omirb");
            if !card.is_off() && is_done {
                break;
            }
        }
        cuts += 1;
        card.cut();
        for seed in [ONLY_SYNCED, EVERYTHING, cut + 2] {
            let what = format!("{name}, cut at {cut}, survivors {seed}");
            let card = card.survivors(seed);
            let session = open(&card, micros).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(session.damage().is_empty(), "{what}: {:?}", session.damage());
            compare(&what, &but_counts(&kept), &but_counts(&found(&session, micros)));
            drop(session);
            check::segments(&card).unwrap_or_else(|why| panic!("{what}: {why}"));
        }
    }
    assert!(cuts > 10, "the way was cut: {cuts}");
}

#[test]
fn a_folder_of_the_first_release_is_brought_up_to_date_wherever_the_power_goes() {
    ["segments", "compacted", "producers"]
        .into_iter()
        .for_each(is_up_to_date_wherever_the_power_goes);
}
