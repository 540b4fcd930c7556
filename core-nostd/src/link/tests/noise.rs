//! Whatever the line and the ends do, all arrives that was sent, once it is quiet.

use proptest::prelude::*;

use super::*;

/// Stated, not timed: the simulated line carries 11520 bytes a second.
fn goodput<const AW: usize, const AP: usize>(noise: Noise) -> f64 {
    let mut world = World::<AW, AP, 32, 256>::new(7, (400, 0));
    world.finish_opening();
    world.noise(noise);
    let (from, heard) = (world.now, world.b.heard_bytes);
    while world.b.heard_bytes < 120_000 {
        world.step();
        assert!(world.now < from + 120_000_000);
    }
    let bytes = (world.b.heard_bytes - heard) as f64;
    bytes / ((world.now - from) as f64 / 1e6) / (1e9 / BYTE_115200 as f64)
}

#[test]
fn most_of_the_line_is_used() {
    let bit_errors = Noise { flip: 1e-4, ..QUIET };
    let clean = goodput::<32, 256>(QUIET);
    let noisy = goodput::<32, 256>(bit_errors);
    let small = goodput::<2, 128>(QUIET);
    let small_noisy = goodput::<2, 128>(bit_errors);
    println!("{clean:.3} {noisy:.3} {small:.3} {small_noisy:.3}");
    assert!(clean >= 0.9, "{clean:.3} of a clean line");
    assert!(noisy >= 0.7, "{noisy:.3} of a line with bit errors of 1e-4");
    assert!(small >= 0.7, "{small:.3} of a clean line, by a small end");
    assert!(small_noisy >= 0.3, "{small_noisy:.3} of a noisy one, by a small end");
}

/// Each byte of an exchange, in either direction, may be the last for three seconds, or one that is lost.
#[test]
fn the_cable_is_pulled_at_every_byte() {
    let mut whole = Small::new(3, (1, 1));
    whole.finish(10);
    let (to_a, to_b) = (whole.to_a.left, whole.to_b.left);
    assert!(to_a > 100 && to_b > 100);
    for down in [0, 3_000] {
        for at in 0..to_a.max(to_b) {
            for first in [true, false] {
                let mut world = Small::new(3, (1, 1));
                while (if first { world.to_a.left } else { world.to_b.left }) < at && !world.done()
                {
                    world.step();
                }
                world.up(false);
                world.pass(down.max(2));
                world.up(true);
                world.finish(20);
                assert_eq!(world.a.sessions, 1, "a short cut ends no session");
            }
        }
    }
}

/// Both ends, or one, are restarted after each byte; what the other one sends is in the line still.
#[test]
fn the_ends_are_restarted_at_every_byte() {
    let mut whole = Small::new(4, (1, 1));
    whole.finish(10);
    for at in 0..whole.to_a.left + whole.to_b.left {
        for which in 1..=3 {
            for same in [false, true] {
                let mut world = Small::new(4, (1, 1));
                while world.to_a.left + world.to_b.left < at && !world.done() {
                    world.step();
                }
                if which & 1 != 0 {
                    // It may draw the number that it had before.
                    let drawn = world.random.next() as u32;
                    let session = if same { world.a.link.session() } else { drawn };
                    world.a.restart(session, world.now);
                }
                if which & 2 != 0 {
                    world.b.restart(0, world.now);
                }
                world.finish(20);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Noise of all kinds, cuts, and restarts of both ends; then a quiet line, on which all arrives.
    #[test]
    fn what_arrives_is_what_was_sent(
        seed: u64,
        flip in prop_oneof![Just(0.0), Just(1e-4), Just(1e-3)],
        lose in prop_oneof![Just(0.0), Just(1e-3), Just(1e-2)],
        repeat in prop_oneof![Just(0.0), Just(1e-3)],
        insert in prop_oneof![Just(0.0), Just(1e-3)],
        messages in (0..12usize, 0..12usize),
        troubles in prop::collection::vec((1..3_000u64, 0..4u8), 0..6),
    ) {
        rough(Usual::new(seed, messages), Noise { flip, lose, repeat, insert }, &troubles);
        rough(Small::new(seed, messages), Noise { flip, lose, repeat, insert }, &troubles);
    }

    /// An end may get any bytes, and frames of any kind and content that no peer would send.
    #[test]
    fn no_bytes_harm(
        seed: u64,
        frames in prop::collection::vec(any_frame(), 0..60),
    ) {
        let mut random = Random(seed);
        let mut responder = Link::<4, 64>::new("r");
        let mut initiator = Link::<4, 64>::new("i");
        initiator.connect(1, 0);
        let mut now = 0;
        for frame in frames {
            for link in [&mut responder, &mut initiator] {
                link.receive(&frame, now);
                link.send(&frame, random.chance(0.5));
                if random.chance(0.5) {
                    while link.poll_event().is_some() {}
                }
                let mut frames = 0;
                while link.poll_transmit(now, &mut |_| {}) {
                    frames += 1;
                    prop_assert!(frames < 20, "it would send for ever");
                }
                prop_assert!(link.next_timeout().is_none_or(|at| at > 0), "it is done, and says it is not");
            }
            now += random.next() % 400_000;
        }
    }
}

fn rough<const AW: usize, const AP: usize, const BW: usize, const BP: usize>(
    mut world: World<AW, AP, BW, BP>,
    noise: Noise,
    troubles: &[(u64, u8)],
) {
    world.noise(noise);
    for &(wait, trouble) in troubles {
        world.pass(wait);
        match trouble {
            0 => world.call(),
            1 => {
                let now = world.now;
                world.b.restart(0, now);
            }
            2 => {
                world.up(false);
                let down = world.random.next() % 20_000;
                world.pass(down);
                world.up(true);
            }
            _ => {}
        }
    }
    world.noise(QUIET);
    world.finish(60);
}

fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let built = (
        prop_oneof![0..8u8, 0x80..0x88u8],
        prop_oneof![Just(1u32), Just(2), any::<u32>()],
        prop_oneof![0..8u16, any::<u16>()],
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..64),
            Just(vec![1, 4, 64, 0]),
            (0..8u8, 0..5u8).prop_map(|(bits, room)| vec![bits, 0, 0, 0, room]),
        ],
    )
        .prop_map(|(kind, session, seq, payload)| {
            let mut head = [kind, 0, 0, 0, 0, 0, 0];
            head[1..5].copy_from_slice(&session.to_le_bytes());
            head[5..].copy_from_slice(&seq.to_le_bytes());
            let mut bytes = Vec::new();
            line::encode(&head, [&payload, &[]], &mut |byte| bytes.push(byte));
            bytes
        });
    prop_oneof![4 => built, 1 => prop::collection::vec(any::<u8>(), 0..100)]
}
