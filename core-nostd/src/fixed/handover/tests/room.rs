//! Rings that are full of what must be kept.

use super::super::*;
use super::memory;
use super::world::World;
use crate::fixed::{Decay, Moment};

/// Nothing can be written where all must be kept, not even the mark; what was handed over makes room then.
#[test]
fn a_full_ring_is_handed_over_and_emptied() {
    let mut world = World::new(4, 2);
    let mut kept = 0;
    loop {
        let mut record = memory(&format!("kept-{kept}"), Moment::SinceBoot(world.node.uptime(0)));
        record.decay = Some(Decay { anchored: Some(true), ..Decay::default() });
        match world.node.journal.remember(&record) {
            Ok(_) => kept += 1,
            Err(error) => break assert_eq!(error, JournalError::Ring(RingError::Full)),
        }
    }
    assert!(kept > 4);
    world.until(Progress::Done);
    assert_eq!(world.daemon.durable.len(), kept);
    let mark = world.node.hand_over.reached().clone();
    assert_eq!(world.held().keys().last().copied(), mark.until());
    let oldest = world.held().into_keys().next();
    assert_eq!(world.node.journal.forget_oldest(&mark), Ok(oldest));
    assert!(world.node.remember(1, world.now).is_ok(), "there is room for one");
    while world.node.journal.forget_oldest(&mark).unwrap().is_some() {}
    let number = world.node.remember(2, world.now).unwrap();
    assert!(Some(number) > mark.until() && world.node.journal.forget_oldest(&mark) == Ok(None));
    assert!(world.held().contains_key(&number), "what is not over there is not forgotten");
}
