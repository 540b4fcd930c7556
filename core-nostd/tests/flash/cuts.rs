//! The ring in flash, cut at every word it writes and every page it erases.

use omir_core::fixed::ring::{Number, Ring, RingError};

use super::model::{Command, View, act, apply, command, holds, is_between, look};
use super::nor::{Fault, Nor, Random, Torn};

/// Cuts at every step of every command of a life, in each way a step may be torn.
fn cut_everywhere<const W: usize, const E: usize>(
    pages: usize,
    seed: u64,
    commands: usize,
    torn: &[Torn],
) -> u64 {
    let mut random = Random::new(seed);
    let mut flash = Nor::<W, E>::used(pages, seed);
    let mut truth = View::new();
    let mut cuts = 0;
    for turn in 0..commands {
        let mut ring = Ring::mount(flash.clone()).unwrap();
        let before = look(&mut ring);
        holds(&before, &truth, &format!("seed {seed}, command {turn}"));
        let command = command(&mut random, &before);
        let number = act(&mut ring, &command).unwrap();
        apply(&mut truth, &command, number);
        let after = look(&mut ring);
        let done = ring.release();

        for step in 0..done.steps - flash.steps {
            for torn in torn.iter().copied() {
                let why = format!("seed {seed}, command {turn} {command:?}, step {step}, {torn:?}");
                let mut ring = Ring::mount(flash.clone().cut_after(step, torn)).unwrap();
                assert_eq!(act(&mut ring, &command), Err(RingError::Flash(Fault::Cut)), "{why}");
                let found = Ring::mount(ring.release().power_on()).unwrap();
                let first = after_the_cut(found, &before, &after, &why);
                // Once more, in the first thing that is done after it.
                let again = Ring::mount(first.clone().cut_after(step % 7, torn)).unwrap();
                twice(again, &why);
                cuts += 2;
            }
        }
        flash = done;
    }
    cuts
}

/// Checks what a cut left, and that work goes on.
fn after_the_cut<const W: usize, const E: usize>(
    mut ring: Ring<Nor<W, E>>,
    before: &View,
    after: &View,
    why: &str,
) -> Nor<W, E> {
    let mut view = look(&mut ring);
    is_between(&view, before, after, why);
    let flash = ring.release();
    let mut ring = Ring::mount(flash.clone()).unwrap();
    let command = Command::Append(vec![0x5A; 40], false);
    let number = act(&mut ring, &command).unwrap_or_else(|error| panic!("{error}, {why}"));
    apply(&mut view, &command, number);
    holds(&look(&mut Ring::mount(ring.release()).unwrap()), &view, why);
    flash
}

/// A cut in what is done after a cut.
fn twice<const W: usize, const E: usize>(mut ring: Ring<Nor<W, E>>, why: &str) {
    let before = look(&mut ring);
    let _ = ring.append(&[0xA5; 40], false);
    let found = look(&mut Ring::mount(ring.release().power_on()).unwrap());
    let kept: View =
        before.iter().filter(|(_, memory)| memory.1).map(|(n, m)| (*n, m.clone())).collect();
    assert!(kept.keys().all(|number| found.contains_key(number)), "kept, {why}");
    for (number, memory) in &found {
        let new = memory.0 == [0xA5; 40] && !before.contains_key(number);
        assert!(new || before.get(number) == Some(memory), "{number:?}, {why}");
    }
}

#[test]
fn a_life_cut_at_every_word_bytewise() {
    let cuts = cut_everywhere::<1, 256>(3, 1, 30, &[Torn::Noise, Torn::Unreadable]);
    assert!(cuts > 3_000, "{cuts}");
}

#[test]
fn a_life_cut_at_every_word_of_four() {
    let cuts = cut_everywhere::<4, 512>(3, 2, 40, &Torn::ALL);
    assert!(cuts > 3_000, "{cuts}");
}

#[test]
fn a_life_cut_at_every_word_of_eight() {
    let cuts = cut_everywhere::<8, 512>(4, 3, 60, &Torn::ALL);
    assert!(cuts > 2_000, "{cuts}");
}

#[test]
fn two_pages_are_enough() {
    let cuts = cut_everywhere::<32, 1024>(2, 4, 50, &Torn::ALL);
    assert!(cuts > 500, "{cuts}");
}

/// Cut now and then, or only told that a write failed; and always what was answered is there.
#[test]
fn long_lives_with_cuts_and_failures() {
    for seed in 0..100 {
        let mut random = Random::new(seed);
        let mut ring = Ring::mount(Nor::<4, 512>::used(2 + seed as usize % 6, seed)).unwrap();
        let mut truth = View::new();
        for turn in 0..60 {
            let why = format!("seed {seed}, command {turn}");
            let before = look(&mut ring);
            holds(&before, &truth, &why);
            truth = before.clone();
            let torn = Torn::any(random.next());
            if random.below(3) == 0 {
                let flash = ring.release().cut_after(random.below(60), torn);
                ring = Ring::mount(flash).unwrap();
            }
            let command = command(&mut random, &before);
            let answer = act(&mut ring, &command);
            match answer {
                Ok(number) => apply(&mut truth, &command, number),
                Err(RingError::Flash(Fault::Cut)) => {
                    ring = match random.below(2) {
                        // The power was off.
                        0 => Ring::mount(ring.release().power_on()).unwrap(),
                        // Only the write failed: this ring goes on.
                        _ => recovered(ring),
                    };
                    let mut after = before.clone();
                    match &command {
                        Command::Append(bytes, keep) => {
                            let found = look(&mut ring);
                            if let Some(new) = found.keys().find(|n| !before.contains_key(n)) {
                                after.insert(*new, (bytes.clone(), *keep, None));
                            }
                        }
                        command => apply(&mut after, command, None),
                    }
                    let found = look(&mut ring);
                    let gone = |number: &Number| !found.contains_key(number);
                    let mut left = after.clone();
                    left.retain(|number, memory| memory.1 || !gone(number));
                    is_between(&found, &before, &left, &why);
                    truth = found;
                }
                Err(error) => panic!("{error}, {why}"),
            }
            ring = Ring::mount(ring.release().power_on()).unwrap();
        }
    }
}

/// The flash works again, and the ring does not know.
fn recovered<const W: usize, const E: usize>(ring: Ring<Nor<W, E>>) -> Ring<Nor<W, E>> {
    let mut ring = ring;
    ring.flash_mut(|flash| *flash = flash.clone().power_on());
    ring
}

/// A ring in which everything is kept has room for forgetting only, also if that is cut, and cut again.
#[test]
fn forgetting_in_a_full_ring_cut_twice_at_every_step() {
    let mut ring = Ring::mount(Nor::<4, 512>::new(3)).unwrap();
    ring.set_note(7, &[7; 20], None, &[]).unwrap();
    while ring.append(&[7; 44], true).is_ok() {}
    let all = look(&mut ring);
    let full = ring.release();
    let forget = |flash: Nor<4, 512>, number: Number| {
        let mut ring = Ring::mount(flash).unwrap();
        let answer = ring.forget(number);
        (answer, ring.release())
    };
    for &number in [all.keys().next(), all.keys().last()].into_iter().flatten() {
        // Up to some hundred steps, when a page is opened for it.
        for step in 0.. {
            let torn = Torn::any(step);
            let (answer, once) = forget(full.clone().cut_after(step, torn), number);
            if answer.is_ok() {
                assert!(step >= 4, "{step}");
                break;
            }
            let mut again = 0;
            let mut done = None;
            while done.is_none() {
                let (answer, twice) =
                    forget(once.clone().power_on().cut_after(again, torn), number);
                let mut ring = Ring::mount(twice.power_on()).unwrap();
                if answer == Err(RingError::Flash(Fault::Cut)) {
                    // Forgotten already, or not; then it can be.
                    assert!(matches!(ring.forget(number), Ok(()) | Err(RingError::NotFound)));
                } else {
                    assert!(matches!(answer, Ok(()) | Err(RingError::NotFound)), "{answer:?}");
                    done = Some(());
                }
                let mut left = all.clone();
                left.remove(&number);
                assert_eq!(look(&mut ring), left, "{number:?}, steps {step} and {again}");
                let mut note = [0; 20];
                assert_eq!((ring.note(7, &mut note), note), (Ok(Some(20)), [7; 20]));
                again += 1;
            }
        }
    }
}
