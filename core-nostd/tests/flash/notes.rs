//! Notes among the records, and states of records that were spared for one.

use omir_core::fixed::ring::{Number, Ring, RingError};

use super::model::{View, act, apply, bytes, command, holds, look};
use super::nor::{Fault, Nor, Random, Torn};

/// Notes among the records, cut at every step: a note is the old one or the new one, and no record gives way to
/// it that is newer than it says.
#[test]
fn notes_cut_at_every_step() {
    let mut cuts = 0;
    for seed in 0..4 {
        let mut random = Random::new(seed);
        let mut flash = Nor::<4, 512>::used(3, seed);
        let mut notes: [Option<Vec<u8>>; 2] = [None, None];
        for turn in 0..60 {
            let mut ring = Ring::mount(flash.clone()).unwrap();
            let before = look(&mut ring);
            if random.below(2) == 0 {
                ring.append(&bytes(&mut random, 60), random.below(9) == 0 && before.len() < 4)
                    .unwrap();
                assert_eq!(read_notes(&mut ring), notes, "seed {seed}, turn {turn}");
                flash = ring.release();
                continue;
            }
            let name = random.below(2) as u32;
            let note = bytes(&mut random, 4 + 90 * u64::from(name));
            let until = before.keys().nth(random.below(1 + before.len() as u64) as usize).copied();
            let spared = |found: &View, why: &str| {
                for (number, memory) in before.iter().filter(|(n, _)| Some(**n) > until) {
                    assert_eq!(found.get(number), Some(memory), "{number:?}, {why}");
                }
            };
            let answer = ring.set_note(name, &note, until, &[]);
            spared(&look(&mut ring), "it is newer");
            let done = ring.release();
            if answer == Err(RingError::Full) {
                assert_eq!(done.steps, flash.steps, "refusing wears nothing out");
                // Without records that must stay, there is always room.
                let mut ring = Ring::mount(done).unwrap();
                let last = before.keys().last().copied();
                ring.set_note(name, &note, last, &[]).unwrap();
                flash = ring.release();
            } else {
                assert_eq!(answer, Ok(()));
                for step in 0..done.steps - flash.steps {
                    for torn in Torn::ALL {
                        let why = format!("seed {seed}, turn {turn}, step {step}, {torn:?}");
                        let mut ring = Ring::mount(flash.clone().cut_after(step, torn)).unwrap();
                        let cut = ring.set_note(name, &note, until, &[]);
                        assert_eq!(cut, Err(RingError::Flash(Fault::Cut)), "{why}");
                        let mut ring = Ring::mount(ring.release().power_on()).unwrap();
                        let found = read_notes(&mut ring);
                        let (this, other) = (name as usize, 1 - name as usize);
                        assert_eq!(found[other], notes[other], "{why}");
                        assert!(
                            found[this] == notes[this] || found[this].as_ref() == Some(&note),
                            "{why}"
                        );
                        spared(&look(&mut ring), &why);
                        cuts += 1;
                    }
                }
                flash = done;
            }
            notes[name as usize] = Some(note);
            assert_eq!(read_notes(&mut Ring::mount(flash.clone()).unwrap()), notes);
        }
    }
    assert!(cuts > 2_000, "{cuts}");
}

/// A record that was spared lies in a younger page than the state it was given before: that goes on with it.
#[test]
fn a_spared_record_keeps_its_newest_state() {
    for (mut ring, why) in spared_in_two_ways() {
        let (number, state) = (Number::new(1).unwrap(), b"used".to_vec());
        let mut seen = 0;
        for _ in 0..60 {
            let found = look(&mut ring).remove(&number);
            if let Some(memory) = &found {
                assert_eq!(*memory, (vec![1; 20], false, Some(state.clone())), "{why}");
                seen += 1;
            }
            ring.append(&[2; 40], false).unwrap();
        }
        assert!(seen > 10, "it was spared: {seen}, {why}");
        assert!(!look(&mut ring).contains_key(&number), "it is not kept for good, {why}");
    }
}

/// A ring whose first record was kept and is not any more, and was copied to the newest page all the same: by a
/// note, and by a state that keeps it, of which a cut left nothing.
fn spared_in_two_ways() -> [(Ring<Nor<4, 512>>, &'static str); 2] {
    let prepared = || {
        let mut ring = Ring::mount(Nor::<4, 512>::new(4)).unwrap();
        let first = ring.append(&[1; 20], true).unwrap();
        let other = ring.append(&[2; 200], false).unwrap();
        while ring.append(&[2; 40], false).unwrap().get() < 8 {}
        ring.touch(first, b"used", false).unwrap();
        ring.forget(other).unwrap();
        (ring, first)
    };
    let is_oldest = |ring: &mut Ring<Nor<4, 512>>| {
        // One more record, and the first page goes.
        let mut next = Ring::mount(ring.flash_mut(|flash| flash.clone())).unwrap();
        next.append(&[2; 40], false).unwrap();
        !look(&mut next).contains_key(&Number::new(1).unwrap())
    };
    let [mut by_note, mut by_state] = [prepared().0, prepared().0];
    for ring in [&mut by_note, &mut by_state] {
        while !is_oldest(ring) {
            ring.append(&[2; 40], false).unwrap();
        }
    }
    by_note.set_note(1, &[3; 40], None, &[]).unwrap();
    let first = Number::new(1).unwrap();
    // The last of its words never was written.
    let steps = {
        let mut whole = Ring::mount(by_state.flash_mut(|flash| flash.clone())).unwrap();
        let before = whole.flash_mut(|flash| flash.steps);
        whole.touch(first, &[4; 40], true).unwrap();
        whole.release().steps - before
    };
    let flash = by_state.release().cut_after(steps - 1, Torn::Clean);
    let mut by_state = Ring::mount(flash).unwrap();
    assert_eq!(by_state.touch(first, &[4; 40], true), Err(RingError::Flash(Fault::Cut)));
    let by_state = Ring::mount(by_state.release().power_on()).unwrap();
    [(by_note, "noted"), (by_state, "touched")]
}

/// Whole lives, with notes: whatever is there has the newest state that it was given, and what is kept is there.
#[test]
fn a_state_is_never_an_older_one() {
    let mut spared = 0;
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let mut ring = Ring::mount(Nor::<4, 512>::used(3 + seed as usize % 5, seed)).unwrap();
        let mut truth = View::new();
        for turn in 0..150 {
            let why = format!("seed {seed}, command {turn}");
            let before = look(&mut ring);
            holds(&before, &truth, &why);
            if random.below(6) == 0 {
                let nth = random.below(1 + before.len() as u64) as usize;
                let until = before.keys().nth(nth).copied();
                let note = bytes(&mut random, 40);
                match ring.set_note(1, &note, until, &[]) {
                    Ok(()) | Err(RingError::Full) => spared += 1,
                    Err(error) => panic!("{error}, {why}"),
                }
                continue;
            }
            let command = command(&mut random, &before);
            let number = act(&mut ring, &command).unwrap_or_else(|error| panic!("{error}, {why}"));
            apply(&mut truth, &command, number);
        }
    }
    assert!(spared > 500, "{spared}");
}

fn read_notes<const W: usize, const E: usize>(ring: &mut Ring<Nor<W, E>>) -> [Option<Vec<u8>>; 2] {
    let mut buffer = [0; 128];
    [0, 1].map(|name| {
        let len = ring.note(name, &mut buffer).unwrap();
        len.map(|len| buffer[..len].to_vec())
    })
}
