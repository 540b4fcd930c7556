//! A data folder as an older release left it: without sidecars of segments, without witnesses of logs, and with seals of
//! the first two formats. It is opened, served and brought up to date, and the power may go anywhere on the way.

use std::time::Duration;

use omird::disk::{self, Disk};
use omird::engine::chore::Chore;
use omird::store::segment;
use omird::store::signature::{Contents, DeviceKey, Seal};
use omird::store::wal;
use omird_tests::check::reopen;
use omird_tests::cut_disk::{CutDisk, EVERYTHING, ONLY_SYNCED};
use omird_tests::journal::Journal;
use omird_tests::life::{self, Step};
use omird_tests::session::{Session, TestClock};

/// Takes from a folder what the older release did not write.
fn make_old(disk: &CutDisk) {
    let key = DeviceKey::from_secret([7; 32]);
    let mut seals = 0;
    for path in disk.paths() {
        if path.ends_with(".par") || path.ends_with(".facts") {
            disk.remove(&path).expect("a good disk");
        } else if path.ends_with(".sig") {
            let seal = Seal::from_json(&disk.bytes(&path)).expect("a seal");
            let contents = Contents { root: None, ..seal.contents };
            let old = key.sign(seal.segment, &contents, seal.previous, seal.last);
            let text = old.to_json();
            assert!(!text.contains("omird-signature-3") && !text.contains("entries"), "{text}");
            disk::replace(disk, &path, text.as_bytes()).expect("a good disk");
            seals += 1;
        }
    }
    assert!(seals > 2, "{:?}", disk.paths());
    for dir in [segment::DIR, wal::DIR] {
        disk.sync_dir(dir).expect("a good disk");
    }
}

fn count(disk: &CutDisk, ending: &str) -> usize {
    disk.paths().iter().filter(|path| path.ends_with(ending)).count()
}

#[test]
fn an_old_folder_is_brought_up_to_date_wherever_the_power_goes() {
    let (disk, clock, mut journal) = (CutDisk::new(), TestClock::new(), Journal::default());
    let mut steps: Vec<Step> = life::scripted();
    steps.push(Step::Compact(omird::engine::compaction::Scope::Forgotten));
    steps.extend(life::scripted().into_iter().take(6));
    journal.live(&disk, &clock, &steps);
    let old = disk.survivors(EVERYTHING);
    make_old(&old);
    let mut cuts = 0;
    for cut in 0.. {
        let card = old.survivors(EVERYTHING);
        card.cut_at(card.operations() + cut);
        if let Ok(session) = Session::open(&card, &clock) {
            for _ in 0..20 {
                clock.advance(Duration::from_millis(1));
                let _ = session.attend(Chore::Seal);
            }
            let is_done = count(&card, ".par") == count(&card, ".omirb");
            if !card.is_off() && is_done {
                break;
            }
        }
        cuts += 1;
        card.cut();
        for seed in [ONLY_SYNCED, EVERYTHING, cut + 2] {
            reopen(&card.survivors(seed), &clock, &journal)
                .unwrap_or_else(|why| panic!("cut at {cut}, survivors {seed}: {why}"));
        }
    }
    assert!(cuts > 20, "the way was cut: {cuts}");
}
