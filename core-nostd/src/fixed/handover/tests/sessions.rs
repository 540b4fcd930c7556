//! Sessions in which nothing goes wrong, and ports that ask for a token.

use super::super::*;
use super::daemon::Foreign;
use super::world::World;

#[test]
fn everything_is_handed_over_dated_and_marked() {
    let mut world = World::new(1, 6).with(3);
    world.pass(2_000);
    world.cut();
    let second = world.now;
    world.pass(50);
    world.remember(20);
    let remembered = world.now;
    world.until(Progress::Done);
    world.check(true);
    assert_eq!(world.daemon.durable.len(), 23);
    // The first start never learnt the time if its session was cut; this one did.
    assert!((world.dated("n-1-4") - remembered as i64).abs() < 20_000);
    assert!(world.dated("n-0-1") <= second as i64);
    assert_eq!(world.node.hand_over.handed().refused, 0);
    // Records that come later are handed over when `resume` asks for it, and none twice.
    let pushes = world.daemon.pushes;
    world.remember(2);
    world.node.hand_over.resume();
    world.node.progress = Progress::Working;
    world.until(Progress::Done);
    world.check(true);
    assert_eq!((world.daemon.pushes, world.daemon.durable.len()), (pushes + 1, 25));
    assert_eq!(world.node.hand_over.handed().unchanged, 0);
}

#[test]
fn a_port_that_only_reads_is_said_so_and_opened_with_its_token() {
    let mut world = World::new(3, 4).with(5);
    world.daemon.write = false;
    world.until(Progress::Refused);
    assert_eq!(world.node.hand_over.refusal(), "UNAUTHORIZED");
    assert_eq!(world.node.journal.handed_over(), Ok(Mark::new()));
    // Later it may.
    world.daemon.write = true;
    world.node.hand_over.resume();
    world.until(Progress::Done);
    world.check(true);

    for (token, end) in [("wrong", Progress::Refused), ("right", Progress::Done)] {
        let mut world = World::new(3, 4).with(5);
        (world.daemon.write, world.daemon.token) = (false, Some("right".to_owned()));
        world.token = Some(token);
        world.cut();
        world.until(end);
        assert_eq!(world.daemon.durable.len(), if token == "right" { 5 } else { 0 });
    }
}

#[test]
fn a_record_that_is_forgotten_while_it_is_sent_is_not_missed() {
    let mut world = World::new(5, 6).with(30);
    let last = world.held().keys().nth(29).copied().unwrap();
    let sixteenth = world.held().keys().nth(15).copied().unwrap();
    while world.daemon.durable.is_empty() && world.to_daemon.left < 600 {
        world.step();
    }
    world.node.journal.forget(sixteenth).unwrap();
    world.until(Progress::Done);
    assert_eq!(world.node.journal.handed_over().unwrap().until(), Some(last));
    assert!(world.daemon.durable.len() >= 29);
    world.check(true);
}

/// A daemon of another version, one that stops, one that says what is no answer: each is let alone for a minute, and
/// its console is anybody's. When it is another one, all is handed over.
#[test]
fn who_is_sent_away_does_not_call_again_at_once() {
    for foreign in [
        Foreign::Bye(Reason::Version),
        Foreign::Bye(Reason::Protocol),
        Foreign::Bye(Reason::GoingAway),
        Foreign::Nonsense,
    ] {
        let mut world = World::new(6, 4).with(5);
        world.daemon.foreign = Some(foreign);
        world.pass(600_000);
        assert!((9..=11).contains(&world.daemon.calls), "{foreign:?}: {}", world.daemon.calls);
        world.daemon.foreign = None;
        world.until(Progress::Done);
        world.check(true);
    }
    // But one that was restarted is called at once.
    let mut world = World::new(6, 4).with(5);
    world.until(Progress::Done);
    world.daemon.restart();
    world.remember(1);
    world.node.hand_over.resume();
    let before = world.now;
    world.node.progress = Progress::Working;
    world.until(Progress::Done);
    assert!(world.now - before < 5_000_000, "{}", world.now - before);
    world.check(true);
}
