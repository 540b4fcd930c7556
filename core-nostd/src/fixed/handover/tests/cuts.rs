//! Noise, cables that are pulled, and power that goes on either side.

use proptest::prelude::*;

use super::super::*;
use super::nor::{Nor, Torn};
use super::world::{Node, World};
use crate::link::tests::{Noise, QUIET};

/// Power goes at every step of the flash that a hand-over takes, and the cable is pulled for good at every byte.
#[test]
fn cut_at_every_step() {
    let whole = {
        let mut world = World::new(6, 3).with(18);
        world.until(Progress::Done);
        world
    };
    let (steps, bytes) = (whole.node.journal.release().steps, whole.to_daemon.left);
    let before = World::new(6, 3).with(18).node.journal.release().steps;
    assert!(steps > before + 8 && bytes > 1_000);
    for torn in Torn::ALL {
        for step in 0..steps - before {
            let mut world = World::new(6, 3).with(18);
            let flash = std::mem::replace(&mut world.node, Node::start(Nor::new(2), 0, None));
            let flash = flash.journal.release().cut_after(step, torn);
            world.node = Node::start(flash, 0, None);
            world.node.boot = 0;
            world.until(Progress::Done);
            assert_eq!(world.starts.len(), 2, "it was cut in step {step}");
            world.check(true);
            assert_eq!(world.daemon.durable.len(), 18);
        }
    }
    for byte in (0..bytes).step_by(11) {
        for which in 0..3 {
            let mut world = World::new(6, 3).with(18);
            while world.to_daemon.left < byte {
                world.step();
            }
            if which != 0 {
                world.daemon.restart();
            }
            if which != 1 {
                world.cut();
            }
            world.check(false);
            world.until(Progress::Done);
            world.check(true);
            assert_eq!(world.daemon.durable.len(), 18);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Noise, cuts of the cable and of power on both sides, and records that come meanwhile: what is marked is
    /// durable at every moment; and when it is quiet, all is.
    #[test]
    fn nothing_is_lost_and_nothing_comes_twice(
        seed: u64,
        pages in 3..8usize,
        records in 0..25usize,
        flip in prop_oneof![Just(0.0), Just(1e-4), Just(1e-3)],
        lose in prop_oneof![Just(0.0), Just(1e-3)],
        repeat in prop_oneof![Just(0.0), Just(1e-3)],
        insert in prop_oneof![Just(0.0), Just(1e-3)],
        troubles in prop::collection::vec((1..3_000u64, 0..6u8), 0..12),
    ) {
        let mut world = World::new(seed, pages).with(records);
        world.noise(Noise { flip, lose, repeat, insert });
        for (wait, trouble) in troubles {
            world.pass(wait);
            if world.random.chance(0.3) {
                // Up to ten minutes, and the node's counter is a fiftieth slow: the daemon sees what is dated again.
                let gap = world.random.next() % 600_000_000;
                world.now += gap;
                world.node.started += gap / 50;
            }
            match trouble {
                0 => world.cut(),
                1 => world.daemon.restart(),
                2 => {
                    world.up(false);
                    let down = world.random.next() % 20_000;
                    world.pass(down);
                    world.up(true);
                }
                3 => {
                    let torn = Torn::any(world.random.next());
                    let steps = world.random.next() % 60;
                    world.node.journal.ring().flash_mut(|flash| {
                        *flash = flash.clone().cut_after(steps, torn);
                    });
                }
                _ => {
                    let more = world.random.next() as usize % 6;
                    world.remember(more);
                    world.node.hand_over.resume();
                }
            }
            // Not while the flash is without power.
            if world.node.journal.handed_over().is_ok() {
                world.check(false);
            }
        }
        world.noise(QUIET);
        world.cut();
        world.until(Progress::Done);
        world.check(true);
    }
}
