//! Records that the daemon refuses: named, offered again, and in no other record's way.

use std::vec::Vec;

use super::super::*;
use super::memory;
use super::world::World;
use crate::fixed::{Decay, JournalError, Moment};

#[test]
fn what_is_refused_is_named_and_holds_nothing_else_up() {
    for talkative in [false, true] {
        let mut world = World::new(2, 6).with(20);
        world.daemon.talkative = talkative;
        world.daemon.refuses = vec!["n-0-5".to_owned(), "n-0-11".to_owned()];
        // Too long to be sent, and of another program.
        world.node.journal.ring().append(b"no record", false).unwrap();
        world.remember(4);
        world.until(Progress::Done);
        let handed = world.node.hand_over.handed();
        assert_eq!((handed.stored, handed.refused), (22, 3));
        assert_eq!(world.node.hand_over.refusal(), "INVALID_RESOURCE");
        let mark = world.node.journal.handed_over().unwrap();
        let numbers: Vec<u32> = mark.refused().iter().map(|number| number.get()).collect();
        assert_eq!((numbers, mark.until().map(Number::get)), (vec![5, 11, 21], Some(25)));
        // The daemon has learnt better: now all goes, but what cannot be written, and nothing else again.
        world.daemon.refuses.clear();
        world.daemon.came.clear();
        world.cut();
        world.until(Progress::Done);
        assert_eq!(world.daemon.came, ["n-0-5", "n-0-11"]);
        assert_eq!(world.daemon.durable.len(), 24);
        let mark = world.node.journal.handed_over().unwrap();
        assert_eq!(mark.refused(), &[Number::new(21).unwrap()]);
        assert_eq!(world.node.hand_over.handed().refused, 0, "it was known");
        let steps = world.node.journal.ring().flash_mut(|flash| flash.steps);
        world.cut();
        world.until(Progress::Done);
        let again = world.node.journal.ring().flash_mut(|flash| flash.steps);
        assert!(again - steps < 60, "{} words for another start", again - steps);
    }
}

/// A record is refused in each session, and what was forgotten over there behind it does not go again.
#[test]
fn what_is_refused_brings_nothing_back() {
    let mut world = World::new(7, 6).with(12);
    world.daemon.refuses = vec!["n-0-5".to_owned()];
    world.until(Progress::Done);
    let forgotten = "n-0-9".to_owned();
    assert!(world.daemon.durable.remove(&forgotten).is_some());
    world.daemon.came.clear();
    for turn in 0..3 {
        match turn {
            0 => world.cut(),
            1 => world.daemon.restart(),
            _ => {
                world.up(false);
                world.pass(20_000);
                world.up(true);
            }
        }
        world.node.progress = Progress::Working;
        world.pass(30_000);
        world.until(Progress::Done);
        world.remember(1);
        world.node.hand_over.resume();
        world.node.progress = Progress::Working;
        world.until(Progress::Done);
        assert!(!world.daemon.came.contains(&forgotten), "turn {turn}: {:?}", world.daemon.came);
        assert!(world.daemon.came.iter().filter(|id| **id == "n-0-5").count() > turn);
    }
    assert_eq!(world.daemon.durable.len(), 10 + 3);
}

/// More are refused than are kept in mind, all of them anchored: the oldest are let go, and there is room.
#[test]
fn too_many_that_are_refused_stall_nothing() {
    let mut world = World::new(8, 5);
    let mut kept = 0;
    loop {
        let mut record = memory(&format!("kept-{kept}"), Moment::SinceBoot(world.node.uptime(0)));
        record.decay = Some(Decay { anchored: Some(true), ..Decay::default() });
        match world.node.journal.remember(&record) {
            Ok(_) => kept += 1,
            Err(error) => break assert_eq!(error, JournalError::Ring(RingError::Full)),
        }
    }
    world.daemon.refuses = (0..kept).map(|number| format!("kept-{number}")).collect();
    world.until(Progress::Done);
    let handed = world.node.hand_over.handed();
    assert_eq!((handed.refused, handed.given_up), (kept, kept - 8));
    let mark = world.node.hand_over.reached(&mut world.node.journal).unwrap();
    let newest: Vec<Number> = world.held().into_keys().skip(kept as usize - 8).collect();
    assert_eq!(mark.refused(), newest);
    for left in (0..kept).rev() {
        assert!(world.node.journal.forget_oldest(&mark).unwrap().is_some());
        assert_eq!(world.held().len(), left as usize);
        if left == 8 {
            assert_eq!(world.held().into_keys().collect::<Vec<_>>(), newest, "they go last");
        }
    }
    assert_eq!(world.node.journal.forget_oldest(&mark), Ok(None));
}

/// A refused record gives way to no mark, however full it is.
#[test]
fn what_was_refused_stays_until_it_is_taken() {
    let mut world = World::new(9, 3).with(1);
    world.daemon.refuses = vec!["n-0-1".to_owned()];
    world.until(Progress::Done);
    let first = world.held().into_keys().next().unwrap();
    let mut mark = world.node.journal.handed_over().unwrap();
    assert_eq!(mark.refused(), &[first]);
    for turn in 0..200 {
        mark.pass(Number::new(2 + turn).unwrap());
        world.node.journal.set_handed_over(&mark).unwrap();
    }
    assert!(world.held().contains_key(&first));
    assert_eq!(world.node.journal.handed_over(), Ok(mark));
}
