//! The card itself: a test double that lies would hide every bug it is there to find.

use std::io;

use omird::disk::{Disk, DiskFile, Mode, Space};

use super::*;

fn card_with(path: &str, synced: &[u8]) -> (CutDisk, Arc<dyn DiskFile>) {
    let disk = CutDisk::new();
    disk.create_dir("d").unwrap();
    disk.sync_dir(".").unwrap();
    let file = disk.open(path, Mode::Create).unwrap();
    file.write_at(synced, 0).unwrap();
    file.sync().unwrap();
    disk.sync_dir("d").unwrap();
    (disk, file)
}

#[test]
fn what_was_synced_survives_every_seed() {
    let (disk, file) = card_with("d/a", b"synced");
    file.write_at(b" and more", 6).unwrap();
    for seed in 0..200 {
        let found = disk.survivors(seed).bytes("d/a");
        assert!(found.starts_with(b"synced"), "seed {seed}: {found:?}");
    }
    assert_eq!(disk.survivors(ONLY_SYNCED).bytes("d/a"), b"synced");
    assert_eq!(disk.survivors(EVERYTHING).bytes("d/a"), b"synced and more");
}

#[test]
fn what_was_not_synced_is_lost_kept_torn_and_zeroed() {
    let (disk, file) = card_with("d/a", b"");
    file.write_at(&[7; 2048], 0).unwrap();
    let found: Vec<Vec<u8>> = (2..200).map(|seed| disk.survivors(seed).bytes("d/a")).collect();
    let any = |test: fn(&[u8]) -> bool| found.iter().any(|bytes| test(bytes));
    assert!(any(<[u8]>::is_empty), "lost");
    assert!(any(|b| b == [7; 2048]), "kept");
    assert!(any(|b| b.len() % 512 != 0 && b.iter().all(|&byte| byte == 7)), "cut short");
    assert!(any(|b| b.len() == 2048 && b.iter().all(|&byte| byte == 0)), "only its length");
    assert!(any(|b| b.len() == 2048 && b[..512] == [0; 512] && b[1536..] == [7; 512]), "a gap");
}

#[test]
fn unsynced_writes_may_change_places() {
    let (disk, file) = card_with("d/a", b"..");
    file.write_at(b"1", 0).unwrap();
    file.write_at(b"2", 0).unwrap();
    assert!((2..100).any(|seed| disk.survivors(seed).bytes("d/a") == b"1."));
    file.sync().unwrap();
    assert!((0..100).all(|seed| disk.survivors(seed).bytes("d/a") == b"2."));
}

#[test]
fn a_name_is_there_for_certain_only_after_its_folder_was_synced() {
    let (disk, _) = card_with("d/a", b"a");
    let file = disk.open("d/b", Mode::Create).unwrap();
    file.write_at(b"b", 0).unwrap();
    file.sync().unwrap();
    assert_eq!(disk.survivors(ONLY_SYNCED).paths(), ["d/a"]);
    assert_eq!(disk.survivors(EVERYTHING).paths(), ["d/a", "d/b"]);
    disk.sync_dir("d").unwrap();
    assert_eq!(disk.survivors(ONLY_SYNCED).paths(), ["d/a", "d/b"]);
}

#[test]
fn a_folder_that_was_not_synced_takes_its_files_along() {
    let (disk, _) = card_with("d/a", b"a");
    disk.create_dir("e").unwrap();
    disk.open("e/x", Mode::Create).unwrap();
    disk.sync_dir("e").unwrap();
    assert_eq!(disk.survivors(ONLY_SYNCED).paths(), ["d/a"]);
    disk.sync_dir(".").unwrap();
    assert_eq!(disk.survivors(ONLY_SYNCED).paths(), ["d/a", "e/x"]);
}

#[test]
fn a_rename_is_atomic() {
    let (disk, _) = card_with("d/a", b"old");
    omird::disk::replace(&disk, "d/a", b"new").unwrap();
    let mut found: Vec<Vec<u8>> = (0..100).map(|seed| disk.survivors(seed).bytes("d/a")).collect();
    found.sort();
    found.dedup();
    assert_eq!(found, [b"new".to_vec(), b"old".to_vec()], "one of the two, always whole");
}

#[test]
fn names_may_reach_the_card_in_any_order() {
    let (disk, _) = card_with("d/a", b"a");
    disk.open("d/b", Mode::Create).unwrap();
    disk.remove("d/a").unwrap();
    let mut found: Vec<Vec<String>> = (0..100).map(|seed| disk.survivors(seed).paths()).collect();
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 4, "{found:?}");
}

#[test]
fn after_the_cut_nothing_works_and_the_operation_under_way_is_in_doubt() {
    let (disk, file) = card_with("d/a", b"");
    disk.cut_at(disk.operations() + 1);
    file.write_at(b"1", 0).unwrap();
    assert!(file.write_at(b"2", 1).is_err());
    assert!(disk.is_off());
    assert!(file.sync().is_err() && file.len().is_err() && disk.list("d").is_err());
    assert!(file.write_at(b"3", 2).is_err());
    assert_eq!(disk.survivors(EVERYTHING).bytes("d/a"), b"12");
    assert_eq!(disk.survivors(ONLY_SYNCED).bytes("d/a"), b"");
    let found = disk.survivors(2);
    assert!(!found.is_off());
    found.open("d/a", Mode::Write).unwrap().write_at(b"4", 0).unwrap();
}

#[test]
fn a_failed_sync_takes_the_pages_with_it() {
    let (disk, file) = card_with("d/a", b"1");
    disk.fail(Failing::Syncs, 0, 1);
    file.write_at(b"2", 1).unwrap();
    assert!(file.sync().is_err());
    assert_eq!(disk.bytes("d/a"), b"12", "a reader still sees it");
    file.write_at(b"3", 2).unwrap();
    file.sync().unwrap();
    // The later sync succeeded and says nothing about what the failed one was to write.
    assert_eq!(disk.survivors(ONLY_SYNCED).bytes("d/a"), b"1\x003");
    assert_eq!(disk.survivors(EVERYTHING).bytes("d/a"), b"123");
    file.truncate(1).unwrap();
    file.sync().unwrap();
    assert!((0..50).all(|seed| disk.survivors(seed).bytes("d/a") == b"1"));
}

#[test]
fn a_full_card_takes_what_fits_and_says_so() {
    let (disk, file) = card_with("d/a", b"1234");
    disk.set_capacity(Some(2 * BLOCK));
    let error = file.write_at(&[5; 1024], 4).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(disk.bytes("d/a").len(), 1024, "as much as fits");
    file.write_at(b"4321", 0).unwrap();
    let other = disk.open("d/b", Mode::Create).unwrap();
    assert!(other.write_at(b"1", 0).is_err(), "there is no block left for another file");
    file.truncate(512).unwrap();
    other.write_at(&[1; 512], 0).unwrap();
    assert!(other.write_at(b"2", 512).is_err());
    disk.remove("d/a").unwrap();
    other.write_at(b"2", 512).unwrap();
}

#[test]
fn bytes_rot_and_sectors_die() {
    let (disk, file) = card_with("d/a", b"1234");
    disk.rot("d/a", |bytes| bytes[1] ^= 1);
    assert_eq!(disk.survivors(ONLY_SYNCED).bytes("d/a"), b"1334");
    disk.make_unreadable("d/a");
    assert!(file.read_at(&mut [0], 0).is_err());
}

#[test]
fn a_removed_file_is_still_read_through_an_open_handle() {
    let (disk, file) = card_with("d/a", b"1234");
    disk.remove("d/a").unwrap();
    let mut found = [0; 4];
    file.read_at(&mut found, 0).unwrap();
    assert_eq!(&found, b"1234");
    assert!(disk.open("d/a", Mode::Read).is_err());
}

#[test]
fn a_card_that_is_out_gives_nothing_and_comes_back_without_what_was_not_synced() {
    let (disk, file) = card_with("d/a", b"synced");
    file.write_at(b" and more", 6).unwrap();
    disk.pull_out();
    let mut byte = [0];
    assert!(omird::disk::is_gone(&disk.mount_generation().unwrap_err()));
    assert!(disk.list("d").is_err() && disk.open("d/a", Mode::Read).is_err());
    assert!(disk.open("d/b", Mode::Create).is_err() && file.read_at(&mut byte, 0).is_err());
    disk.put_in(ONLY_SYNCED);
    assert_eq!((disk.mount_generation().unwrap(), disk.bytes("d/a")), (1, b"synced".to_vec()));
    assert!(file.read_at(&mut byte, 0).is_err() && file.write_at(b"x", 0).is_err(), "stale");
    assert!(file.sync().is_err() && file.len().is_err() && file.truncate(0).is_err());
    let reopened = disk.open("d/a", Mode::Write).unwrap();
    reopened.write_at(b"S", 0).unwrap();
    assert_eq!(disk.bytes("d/a"), b"Synced");
}

#[test]
fn a_read_only_card_is_read_and_not_changed() {
    let (disk, file) = card_with("d/a", b"synced");
    disk.set_read_only(true);
    let is_refused = |done: io::Result<()>| omird::disk::is_read_only(&done.unwrap_err());
    assert!(is_refused(file.write_at(b"x", 0)) && is_refused(file.truncate(0)));
    assert!(is_refused(disk.remove("d/a")) && is_refused(disk.rename("d/a", "d/b")));
    assert!(is_refused(disk.open("d/a", Mode::Write).map(drop)));
    assert!(is_refused(disk.open("d/c", Mode::Create).map(drop)));
    disk.create_dir("d").unwrap();
    file.sync().unwrap();
    assert_eq!(omird::disk::read(&disk, "d/a").unwrap(), b"synced");
    disk.set_read_only(false);
    file.write_at(b"S", 0).unwrap();
}

#[test]
fn the_room_that_is_left_is_told() {
    let (disk, _) = card_with("d/a", b"synced");
    disk.set_capacity(Some(3 * BLOCK));
    assert_eq!(disk.space().unwrap(), Space { free: 2 * BLOCK, total: 3 * BLOCK });
}

#[test]
fn a_file_whose_name_was_removed_knows_it_and_can_still_be_read() {
    let (disk, file) = card_with("d/a", b"a");
    assert!(file.has_name().unwrap());
    disk.remove("d/a").unwrap();
    assert!(!file.has_name().unwrap());
    disk.open("d/a", Mode::Create).unwrap();
    assert!(!file.has_name().unwrap(), "that is another");
    assert_eq!(file.len().unwrap(), 1);
}
