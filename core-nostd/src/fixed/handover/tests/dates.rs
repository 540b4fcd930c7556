//! Dates: daemons that do not know the time yet, starts without a date, counters that drift.

use std::vec::Vec;

use super::super::*;
use super::world::World;

#[test]
fn what_happened_before_anybody_knew_the_time_has_the_latest_date_there_can_be() {
    let mut world = World::new(1, 6);
    world.up(false);
    world.remember(1);
    world.pass(60_000);
    world.cut();
    world.remember(1);
    world.pass(60_000);
    world.cut();
    let started = world.now;
    world.pass(10_000);
    world.remember(1);
    let third = world.now;
    world.up(true);
    world.until(Progress::Done);
    for id in ["n-0-1", "n-1-2"] {
        assert!((world.dated(id) - started as i64).abs() < 200_000, "{}", world.dated(id));
    }
    assert!((world.dated("n-2-3") - third as i64).abs() < 200_000);
    // The number of a start that told the time is not given away, also if none of its records is left.
    while let Some(kept) = world.node.journal.next(None).unwrap() {
        world.node.journal.forget(kept.number).unwrap();
    }
    world.cut();
    assert_eq!(world.node.boot, 3);
}

/// Both got power together, and the daemon hears of the time a while later.
#[test]
fn what_a_clock_would_date_that_was_never_set_waits_for_the_time() {
    for clock in [Trust::Unknown, Trust::Coarse] {
        let mut world = World::new(10, 6).with(3);
        world.until(Progress::Done);
        world.cut();
        // Three weeks behind.
        (world.daemon.clock, world.daemon.behind) = (clock, 1_814_400_000_000);
        world.pass(100);
        world.remember(5);
        world.node.hand_over.resume();
        world.node.progress = Progress::Working;
        let remembered = world.now;
        world.pass(40_000);
        assert_eq!((world.daemon.durable.len(), world.node.progress), (3, Progress::Working));
        let start = world.node.journal.starts().unwrap();
        assert_eq!(start.trust(1), Some(clock), "better than nothing, if power goes now");
        (world.daemon.clock, world.daemon.behind) = (Trust::Synchronised, 0);
        world.until(Progress::Done);
        world.check(true);
        let off = world.dated("n-1-4") - remembered as i64;
        assert!(off.abs() < 200_000, "{off}");
        assert_eq!(world.node.journal.starts().unwrap().trust(1), Some(Trust::Synchronised));
        // A worse word later changes nothing.
        (world.daemon.clock, world.daemon.behind) = (clock, 1_814_400_000_000);
        world.daemon.restart();
        world.remember(1);
        let remembered = world.now;
        world.node.progress = Progress::Working;
        world.pass(30_000);
        world.until(Progress::Done);
        assert!((world.dated("n-1-9") - remembered as i64).abs() < 200_000);
    }
}

/// The daemon never has a trusted time: after a minute, or as the firmware says, the one there is does.
#[test]
fn a_time_that_can_be_trusted_is_not_waited_for_forever() {
    let mut world = World::new(11, 6).with(2);
    world.daemon.clock = Trust::Coarse;
    // Another session cannot better the time that dated an earlier start.
    world.pass(5_000);
    world.cut();
    world.remember(2);
    world.daemon.refuses = vec!["n-0-1".to_owned(), "n-1-4".to_owned()];
    let begun = world.now;
    world.pass(20_000);
    assert_eq!(world.daemon.durable.keys().collect::<Vec<_>>(), ["n-0-2"], "the first start went");
    world.until(Progress::Done);
    assert!((60_000_000..64_000_000).contains(&(world.now - begun)), "{}", world.now - begun);
    // With the others, and alone; but not each time that the time is asked for.
    let offered = |id: &str| world.daemon.came.iter().filter(|came| *came == id).count();
    assert_eq!(["n-0-1", "n-0-2", "n-1-3", "n-1-4"].map(offered), [2, 1, 2, 2]);
    world.check(false);
    world.daemon.refuses.clear();
    world.daemon.restart();
    world.node.progress = Progress::Working;
    world.pass(30_000);
    world.until(Progress::Done);
    world.check(true);
    world.remember(1);
    world.node.hand_over.resume();
    world.node.progress = Progress::Working;
    let later = world.now;
    world.until(Progress::Done);
    assert!(world.now - later < 2_000_000, "once is enough");

    let mut world = World::new(12, 6).with(2);
    world.daemon.clock = Trust::Unknown;
    world.node.hand_over = HandOver::new().waiting(0);
    world.until(Progress::Done);
    assert!(world.now < 3_000_000, "{}", world.now);
}

/// A node whose clock runs a hundredth too slow: what it remembered lately is dated by what it heard lately.
#[test]
fn a_clock_that_drifts_is_put_right_by_each_session() {
    let mut world = World::new(13, 6).with(1);
    world.until(Progress::Done);
    // Ten days on, by its own counter a hundredth less.
    let days = 864_000_000_000;
    world.up(false);
    world.pass(20_000);
    world.now += days;
    world.node.started += days / 100;
    world.remember(1);
    let remembered = world.now;
    world.up(true);
    world.node.progress = Progress::Working;
    world.pass(30_000);
    world.until(Progress::Done);
    let off = world.dated("n-0-2") - remembered as i64;
    assert!(off.abs() < 2_000_000, "{off}");
    world.check(true);
}

/// The same in a session that stays open: it asks again before it hands over what came later.
#[test]
fn a_session_that_stays_open_asks_for_the_time_again() {
    let mut world = World::new(16, 6).with(1);
    world.until(Progress::Done);
    let session = world.node.link.session();
    // Twenty minutes, by the node's own counter a hundredth less.
    for _ in 0..1_200 {
        world.pass(1_000);
        world.node.started += 10_000;
    }
    world.remember(1);
    let remembered = world.now;
    world.node.hand_over.resume();
    world.node.progress = Progress::Working;
    world.until(Progress::Done);
    let off = world.dated("n-0-2") - remembered as i64;
    assert!(off.abs() < 200_000, "{off}");
    assert_eq!(world.node.link.session(), session, "it is the same one");
}

/// A session each minute, for a day, and a counter that is a hundredth slow: what it hears in each is not worth a write
/// of flash, as long as nothing is dated by it. A node that is cut then has lost an hour of it at most.
#[test]
fn a_node_that_stays_at_the_cable_does_not_write_each_time_it_hears() {
    let mut world = World::new(17, 6).with(1);
    world.until(Progress::Done);
    let steps = |world: &mut World| world.node.journal.ring().flash_mut(|flash| flash.steps);
    let before = steps(&mut world);
    for _ in 0..24 * 60 {
        later(&mut world, 60, 100);
    }
    // The note of one start has eight words.
    let notes = (steps(&mut world) - before) / 8;
    assert!((20..40).contains(&notes), "{notes} notes in a day");
    // The time that the node hears dates its records all the same.
    world.remember(1);
    let remembered = world.now;
    later(&mut world, 1, 100);
    let off = world.dated("n-0-2") - remembered as i64;
    assert!(off.abs() < 2_000_000, "{off}");

    for _ in 0..50 {
        later(&mut world, 60, 100);
    }
    world.remember(1);
    let remembered = world.now;
    world.cut();
    world.until(Progress::Done);
    let off = world.dated("n-0-3") - remembered as i64;
    assert!(off.abs() < 40_000_000, "{off}");
    world.check(true);
}

/// So many seconds later, of which the node's counter has missed one in `slow`, there is another session.
fn later(world: &mut World, seconds: u64, slow: u64) {
    world.node.link.close(Reason::Done);
    world.now += seconds * 1_000_000;
    world.node.started += seconds * 1_000_000 / slow;
    world.node.progress = Progress::Working;
    world.until(Progress::Done);
}

/// A message arrived, and its answer was lost. Meanwhile the node's clock was put right, or it was without power: a
/// record that goes again has the date that it had. The daemon of the test sees to that.
#[test]
fn what_is_pushed_again_has_the_date_it_had() {
    for is_cut in [false, true] {
        let mut world = World::new(18, 6).with(1);
        world.until(Progress::Done);
        // A time that is heard now is not in flash until it dates a record.
        world.node.link.close(Reason::Done);
        world.now += 600_000_000;
        world.node.started += 3_000_000;
        world.remember(3);
        world.node.progress = Progress::Working;
        while world.daemon.durable.len() == 1 {
            world.step();
        }
        world.up(false);
        world.pass(20_000);
        world.now += 600_000_000;
        if is_cut {
            world.cut();
        } else {
            world.node.started += 3_000_000;
        }
        world.remember(1);
        let remembered = world.now;
        world.up(true);
        world.node.progress = Progress::Working;
        world.until(Progress::Done);
        assert_eq!(world.node.hand_over.handed().unchanged, 3);
        world.check(true);
        // And what is new the right one.
        let new = if is_cut { "n-1-5" } else { "n-0-5" };
        let off = world.dated(new) - remembered as i64;
        assert!(off.abs() < 1_200_000, "{off}");
    }
}
