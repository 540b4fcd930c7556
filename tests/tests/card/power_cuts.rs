//! The power goes at every moment there is, and the card keeps what it likes of what was not
//! synced. Whatever was acknowledged is there afterwards, whole; nothing else is there in part.
//!
//! The card keeps an index, and that is cut as well.
//!
//! Invariants 1 and 4 of ARCHITECTURE.md.

use std::sync::Arc;

use omird::disk::Disk;
use omird::store::Log;
use omird::store::format::wal;
use omird_tests::check::{self, reopen};
use omird_tests::cut_disk::{CutDisk, EVERYTHING, ONLY_SYNCED};
use omird_tests::journal::{Ended, Journal, change};
use omird_tests::life::{self, Step};
use omird_tests::model::Request;
use omird_tests::random::{Random, seeds};
use omird_tests::session::{Session, TestClock};

/// Lives until the power goes at operation `cut`.
fn live(steps: &[Step], cut: u64) -> (CutDisk, Arc<TestClock>, Journal, Ended) {
    let (disk, clock, mut journal) = (CutDisk::new(), TestClock::new(), Journal::default());
    disk.cut_at(cut);
    let ended = journal.live(&disk, &clock, steps);
    (disk, clock, journal, ended)
}

/// Goes on where a store came up after a cut: it must be as good as any other.
fn go_on(disk: &CutDisk, clock: &Arc<TestClock>, mut journal: Journal, steps: &[Step]) {
    assert_eq!(journal.live(disk, clock, steps), Ended::Whole);
    let checked = reopen(disk, clock, &journal).unwrap_or_else(|why| panic!("went on: {why}"));
    assert_eq!(checked, journal.acknowledged);
}

/// Steps of a scripted life after its cut: under names that may be live, forgotten or new, so
/// that every version must be right.
fn afterwards() -> Vec<Step> {
    let one = |resource| Step::Ask(Request::Remember(vec![resource]));
    vec![
        one(life::entity("table", "The table again")),
        one(life::entity("pot", "The pot again")),
        one(life::record("first", "a kettle once more", &["table"], Some([0.0; 3]))),
        one(life::record("second", "a pot once more", &["pot"], None)),
        one(life::edge("on", "pot", "table", None)),
        one(life::episode("morning", "another morning", &["pot"])),
    ]
}

#[test]
fn a_cut_at_any_operation_loses_nothing_acknowledged() {
    let steps = life::scripted();
    for cut in 0.. {
        let (disk, clock, journal, ended) = live(&steps, cut);
        let extreme = if cut % 2 == 0 { ONLY_SYNCED } else { EVERYTHING };
        for seed in [extreme, 2 * cut + 2, 2 * cut + 3] {
            let card = disk.survivors(seed);
            let found = reopen(&card, &clock, &journal)
                .unwrap_or_else(|why| panic!("cut at {cut}, survivors {seed}: {why}"));
            if seed % 4 == 2 {
                let journal = Journal { acknowledged: found, ..Journal::default() };
                go_on(&card, &clock, journal, &afterwards());
            }
        }
        if ended == Ended::Whole {
            let sealed = check::segments(&disk).unwrap_or_else(|why| panic!("{why}"));
            assert!(sealed >= 2, "the life is long enough to seal: {sealed} segments");
            assert!(cut > 120, "every operation was cut: {cut}");
            break;
        }
    }
}

#[test]
fn a_second_cut_at_any_operation_of_the_recovery_loses_nothing_either() {
    let steps = life::scripted();
    let whole = live(&steps, u64::MAX).0.operations();
    // Not every cut, but never the same few: cuts and survivors go through all residues.
    for cut in (3..whole).step_by(13) {
        let (disk, clock, journal, _) = live(&steps, cut);
        for again in 0.. {
            let card = disk.survivors(cut + again);
            card.cut_at(again);
            let opened = Session::open(&card, &clock);
            drop(opened);
            let is_whole = !card.is_off();
            for seed in [(cut + again) % 2, cut * 100 + again + 2] {
                reopen(&card.survivors(seed), &clock, &journal).unwrap_or_else(|why| {
                    panic!("cut at {cut}, again at {again}, survivors {seed}: {why}")
                });
            }
            if is_whole {
                break;
            }
        }
    }
}

#[test]
fn what_a_start_has_shown_stays() {
    let steps = life::scripted();
    let whole = live(&steps, u64::MAX).0.operations();
    for cut in (0..whole).step_by(3) {
        let (disk, clock, journal, _) = live(&steps, cut);
        let card = disk.survivors(1000 + cut);
        let session = Session::open(&card, &clock).expect("it opens");
        // The request in doubt is decided now, one way or the other.
        let shown = check::recognise(&session, &journal).unwrap_or_else(|why| panic!("{why}"));
        card.cut();
        drop(session);
        let journal = Journal { acknowledged: shown, ..Journal::default() };
        for seed in [ONLY_SYNCED, cut + 2] {
            reopen(&card.survivors(seed), &clock, &journal)
                .unwrap_or_else(|why| panic!("cut at {cut}, survivors {seed}: {why}"));
        }
    }
}

#[test]
fn requests_that_share_a_sync_are_kept_in_their_order() {
    const REQUESTS: usize = 24;
    let entity = |n: usize| life::entity(&format!("g{n}"), "Something of some length");
    for cut in 0..40 {
        let (disk, clock) = (CutDisk::new(), TestClock::new());
        disk.cut_at(cut);
        let Ok(session) = Session::open(&disk, &clock) else { continue };
        let (sender, receiver) = std::sync::mpsc::channel();
        for n in 0..REQUESTS {
            let change =
                change(&session, &Request::Remember(vec![entity(n)])).expect("it is valid");
            let sender = sender.clone();
            let reply = Box::new(move |result: Result<_, _>| {
                let _ = sender.send(result.is_ok().then_some(n));
            });
            session.submit(change, 0, reply);
        }
        drop(sender);
        let acknowledged: Vec<usize> = receiver.iter().flatten().collect();
        assert!(acknowledged.is_sorted(), "answers come in order");
        drop(session);
        for survivors in 0..10 {
            let session = Session::open(&disk.survivors(survivors), &clock).expect("it opens");
            let is_there = |n: &usize| {
                let found = session.get(&entity(*n).reference()).expect("it is whole");
                found.is_some_and(|bytes| check::decode(&bytes) == entity(*n))
            };
            let kept = (0..REQUESTS).take_while(is_there).count();
            let context = format!("cut at {cut}, survivors {survivors}");
            assert!(kept >= acknowledged.len(), "{context}: {kept} of {acknowledged:?}");
            let is_gone = !(kept..REQUESTS).any(|n| is_there(&n));
            assert!(is_gone, "{context}: one is missing in between");
        }
    }
}

#[test]
fn what_was_cut_off_a_log_does_not_come_back() {
    let disk = CutDisk::new();
    disk.create_dir(wal::DIR).and_then(|()| disk.sync_dir(".")).expect("a folder");
    let mut log = Log::create(&disk, 1, 1).expect("a log");
    let second = log.stage(b"second");
    log.stage(b"third");
    log.write().expect("it is written");
    // Of one unsynced group the card kept only what came later.
    disk.rot(&wal::path(1), |bytes| bytes[second as usize] ^= 1);
    let bytes = disk.bytes(&wal::path(1));
    let end = wal::read(&bytes, 1).expect("a log").end;
    assert_eq!(end, wal::FILE_HEADER, "the group is torn at its beginning");

    let mut log = Log::resume(&disk, 1, end as u64).expect("it goes on");
    // Exactly as long as what was torn: behind it would lie a whole frame of this very log.
    log.stage(b"SECOND");
    log.write().expect("it is written");
    log.sync().expect("it is synced");
    for seed in [ONLY_SYNCED, EVERYTHING, 2, 3] {
        let bytes = disk.survivors(seed).bytes(&wal::path(1));
        let frames = wal::read(&bytes, 1).expect("a log").frames;
        let found: Vec<&[u8]> = frames.iter().map(|frame| frame.payload).collect();
        assert_eq!(found, [b"SECOND"], "survivors {seed}");
    }
}

/// One random life: cut, recovered and gone on with several times. `OMIRD_SEED` repeats one.
#[test]
fn random_lives_survive_random_cuts() {
    for seed in seeds("OMIRD_SEED", 0..16) {
        let mut random = Random::new(seed);
        let steps = life::random(seed, 120);
        let (mut card, clock, mut journal) = (CutDisk::new(), TestClock::new(), Journal::default());
        let mut at = 0;
        while at < steps.len() {
            card.cut_at(card.operations() + random.below(120) as u64);
            let end = (at + 10 + random.below(40)).min(steps.len());
            journal.live(&card, &clock, &steps[at..end]);
            at = end;
            let survivors = random.bits() % 100;
            card = card.survivors(survivors);
            let found = reopen(&card, &clock, &journal).unwrap_or_else(|why| {
                panic!("OMIRD_SEED={seed}, step {at}, survivors {survivors}: {why}")
            });
            journal = Journal { acknowledged: found, ..Journal::default() };
        }
    }
}
