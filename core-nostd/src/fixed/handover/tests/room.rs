//! Rings that are full of what must be kept.

use std::vec;

use super::super::*;
use super::memory;
use super::world::World;
use crate::fixed::{Decay, JournalError, Moment};

/// Remembers what must be kept, until there is no room for it; nor for a mark.
fn fill(world: &mut World) -> usize {
    let mut kept = 0;
    while bump(world, kept) {
        kept += 1;
    }
    for len in (0..200).rev() {
        // Each under a name of its own.
        let _ = world.node.journal.ring().set_note(100 + len, &vec![7; len as usize], None, &[]);
    }
    kept
}

/// Remembers one that must be kept; false if there is no room.
fn bump(world: &mut World, number: usize) -> bool {
    let at = Moment::SinceBoot(world.node.uptime(world.now));
    let mut record = memory(&format!("kept-{number}"), at);
    record.decay = Some(Decay { anchored: Some(true), ..Decay::default() });
    match world.node.journal.remember(&record) {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error, JournalError::Ring(RingError::Full));
            false
        }
    }
}

/// Nothing can be written where all must be kept, not even the mark; what was handed over makes room then.
#[test]
fn a_full_ring_is_handed_over_and_emptied() {
    let mut world = World::new(4, 2);
    let kept = fill(&mut world);
    assert!(kept > 4);
    world.until(Progress::Done);
    assert_eq!(world.daemon.durable.len(), kept);
    assert_eq!(world.node.journal.handed_over(), Ok(Mark::new()), "it has no room");
    let (hand_over, journal) = (&mut world.node.hand_over, &mut world.node.journal);
    let mark = hand_over.reached(journal).unwrap();
    let oldest = journal.next(None).unwrap().unwrap().number;
    assert_eq!(hand_over.make_room(journal), Ok(Some(oldest)));
    assert_eq!(hand_over.reached(journal), Ok(mark.clone()));
    while hand_over.make_room(journal).unwrap().is_some() {}
    assert_eq!((journal.handed_over(), journal.next(None)), (Ok(mark.clone()), Ok(None)));
    let number = world.node.remember(2, world.now).unwrap();
    assert!(Some(number) > mark.until());
    let (hand_over, journal) = (&mut world.node.hand_over, &mut world.node.journal);
    assert_eq!(hand_over.make_room(journal), Ok(None));
    assert!(world.held().contains_key(&number), "what is not over there is not forgotten");
}

/// New records take the place of those that the daemon has, and of no others; then the ring is full. Power may
/// go then: what makes room is in flash.
#[test]
fn room_is_made_by_what_is_over_there_and_by_nothing_else() {
    for is_cut in [false, true] {
        let mut world = World::new(14, 9);
        let mut made = fill(&mut world);
        while world.node.hand_over.handed().stored == 0 {
            world.step();
        }
        world.up(false);
        assert_eq!(world.node.journal.handed_over(), Ok(Mark::new()), "it has no room");
        let over = world.daemon.durable.len();
        assert!(over > 10 && made > 2 * over, "{over} of {made}");
        let mut forgotten = 0;
        loop {
            if bump(&mut world, made) {
                made += 1;
                continue;
            }
            let before = world.held();
            let (hand_over, journal) = (&mut world.node.hand_over, &mut world.node.journal);
            let Some(oldest) = hand_over.make_room(journal).unwrap() else { break };
            forgotten += 1;
            assert!(world.daemon.durable.contains_key(&before[&oldest]), "{}", before[&oldest]);
            if is_cut && forgotten == over / 2 {
                world.cut();
            }
        }
        assert_eq!(forgotten, over);
        let held = world.held();
        for number in 0..made {
            let id = format!("kept-{number}");
            let there = world.daemon.durable.contains_key(&id);
            assert!(there || held.values().any(|other| *other == id), "{id} is lost");
        }
        world.up(true);
        world.node.progress = Progress::Working;
        world.until(Progress::Done);
        assert_eq!(world.daemon.durable.len(), made);
        assert!(!bump(&mut world, made));
        let (hand_over, journal) = (&mut world.node.hand_over, &mut world.node.journal);
        assert!(hand_over.make_room(journal).unwrap().is_some(), "there is room again");
    }
}

/// A mark that has no room in flash is known for as long as there is power: nothing goes twice.
#[test]
fn a_mark_that_has_no_room_outlives_its_session() {
    let mut world = World::new(15, 3);
    let kept = fill(&mut world);
    world.daemon.refuses = vec!["kept-1".to_owned()];
    world.until(Progress::Done);
    assert_eq!(world.node.journal.handed_over(), Ok(Mark::new()), "it has no room");
    let handed = world.node.hand_over.handed();
    assert_eq!((handed.stored as usize, handed.refused), (kept - 1, 1));
    world.daemon.came.clear();
    world.daemon.restart();
    world.node.progress = Progress::Working;
    world.pass(30_000);
    world.until(Progress::Done);
    assert_eq!(world.daemon.came, ["kept-1"], "what was refused is offered again");
    assert_eq!(world.node.hand_over.handed(), handed);
}
