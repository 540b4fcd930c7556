//! The ring in flash, cut at every word it writes and every page it erases.

use std::collections::BTreeMap;

use embedded_storage::nor_flash::NorFlash;
use omir_core::crc::crc32;
use omir_core::fixed::ring::{Number, Ring, RingError};

use super::nor::{Fault, Nor, Random, Torn};

/// What one record is: its bytes, whether it is kept, its newest state.
type Memory = (Vec<u8>, bool, Option<Vec<u8>>);
type View = BTreeMap<Number, Memory>;

/// Something a firmware does.
#[derive(Clone, Debug)]
enum Deed {
    Append(Vec<u8>, bool),
    Touch(Number, Vec<u8>, bool),
    Forget(Number),
}

type Answer = Result<Option<Number>, RingError<Fault>>;

fn act<const W: usize, const E: usize>(ring: &mut Ring<Nor<W, E>>, deed: &Deed) -> Answer {
    match deed {
        Deed::Append(bytes, keep) => ring.append(bytes, *keep).map(Some),
        Deed::Touch(number, state, keep) => ring.touch(*number, state, *keep).map(|()| None),
        Deed::Forget(number) => ring.forget(*number).map(|()| None),
    }
}

fn apply(view: &mut View, deed: &Deed, number: Option<Number>) {
    match (deed, number) {
        (Deed::Append(bytes, keep), Some(number)) => {
            assert!(
                view.insert(number, (bytes.clone(), *keep, None)).is_none(),
                "{number:?} again"
            );
        }
        (Deed::Append(..), None) => panic!("appended without a number"),
        (Deed::Touch(number, state, keep), _) => {
            let memory = view.get_mut(number).expect("touched");
            (memory.1, memory.2) = (*keep, Some(state.clone()));
        }
        (Deed::Forget(number), _) => drop(view.remove(number)),
    }
}

/// Everything the ring holds.
fn look<const W: usize, const E: usize>(ring: &mut Ring<Nor<W, E>>) -> View {
    let mut buffer = [0; 1024];
    let mut view = View::new();
    let mut after = None;
    while let Some(entry) = ring.next(after, &mut buffer).unwrap() {
        assert!(after < Some(entry.number), "oldest to newest");
        after = Some(entry.number);
        let state = entry.state.map(|len| buffer[entry.len..entry.len + len].to_vec());
        view.insert(entry.number, (buffer[..entry.len].to_vec(), entry.keep, state));
        assert_eq!(ring.get(entry.number, &mut buffer), Ok(entry));
    }
    view
}

/// The ring may have lost its oldest records, and nothing else.
#[track_caller]
fn holds(view: &View, truth: &View, why: &str) {
    for (number, memory) in view {
        assert_eq!(truth.get(number), Some(memory), "{number:?}, {why}");
    }
    for (number, memory) in truth {
        assert!(!memory.1 || view.contains_key(number), "{number:?} was to be kept, {why}");
    }
}

/// After a cut within a deed: all of it happened, or none; the oldest may be gone either way.
#[track_caller]
fn is_between(view: &View, before: &View, after: &View, why: &str) {
    for (number, memory) in view {
        let known = [before, after].map(|side| side.get(number));
        assert!(known.contains(&Some(memory)), "{number:?} is neither old nor new, {why}");
    }
    for (number, memory) in before {
        if after.contains_key(number) || memory.1 && !forgot(before, after) {
            assert!(view.contains_key(number), "{number:?} is lost, {why}");
        }
    }
}

/// Whether what is missing afterwards was to be kept, and so was forgotten on purpose.
fn forgot(before: &View, after: &View) -> bool {
    before.iter().any(|(number, memory)| memory.1 && !after.contains_key(number))
}

fn bytes(random: &mut Random, len: u64) -> Vec<u8> {
    (0..len).map(|_| random.next() as u8).collect()
}

/// The next thing to do: mostly appending, of all lengths.
fn deed(random: &mut Random, view: &View) -> Deed {
    let kept =
        view.values().filter(|memory| memory.1).map(|memory| memory.0.len() + 32).sum::<usize>();
    let known: Vec<&Number> = view.keys().collect();
    let one = |random: &mut Random| *known[random.below(known.len() as u64) as usize];
    match random.below(10) {
        0 | 1 if !known.is_empty() => {
            let (number, len) = (one(random), random.below(20));
            let keep = view[&number].1 ^ (random.below(4) == 0 && kept < 200);
            Deed::Touch(number, bytes(random, len), keep)
        }
        2 if !known.is_empty() => Deed::Forget(one(random)),
        _ => {
            let keep = random.below(5) == 0 && kept < 200;
            let len = random.below(90);
            Deed::Append(bytes(random, len), keep)
        }
    }
}

/// Cuts at every step of every deed of a life, in each way a step may be torn.
fn cut_everywhere<const W: usize, const E: usize>(
    pages: usize,
    seed: u64,
    deeds: usize,
    torn: &[Torn],
) -> u64 {
    let mut random = Random::new(seed);
    let mut flash = Nor::<W, E>::used(pages, seed);
    let mut truth = View::new();
    let mut cuts = 0;
    for turn in 0..deeds {
        let mut ring = Ring::mount(flash.clone()).unwrap();
        let before = look(&mut ring);
        holds(&before, &truth, &format!("seed {seed}, deed {turn}"));
        let deed = deed(&mut random, &before);
        let number = act(&mut ring, &deed).unwrap();
        apply(&mut truth, &deed, number);
        let after = look(&mut ring);
        let done = ring.release();

        for step in 0..done.steps - flash.steps {
            for torn in torn.iter().copied() {
                let why = format!("seed {seed}, deed {turn} {deed:?}, step {step}, {torn:?}");
                let mut ring = Ring::mount(flash.clone().cut_after(step, torn)).unwrap();
                assert_eq!(act(&mut ring, &deed), Err(RingError::Flash(Fault::Cut)), "{why}");
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
    let deed = Deed::Append(vec![0x5A; 40], false);
    let number = act(&mut ring, &deed).unwrap_or_else(|error| panic!("{error}, {why}"));
    apply(&mut view, &deed, number);
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
            let why = format!("seed {seed}, deed {turn}");
            let before = look(&mut ring);
            holds(&before, &truth, &why);
            truth = before.clone();
            let torn = Torn::any(random.next());
            if random.below(3) == 0 {
                let flash = ring.release().cut_after(random.below(60), torn);
                ring = Ring::mount(flash).unwrap();
            }
            let deed = deed(&mut random, &before);
            let answer = act(&mut ring, &deed);
            match answer {
                Ok(number) => apply(&mut truth, &deed, number),
                Err(RingError::Flash(Fault::Cut)) => {
                    ring = match random.below(2) {
                        // The power was off.
                        0 => Ring::mount(ring.release().power_on()).unwrap(),
                        // Only the write failed: this ring goes on.
                        _ => recovered(ring),
                    };
                    let mut after = before.clone();
                    match &deed {
                        Deed::Append(bytes, keep) => {
                            let found = look(&mut ring);
                            if let Some(new) = found.keys().find(|n| !before.contains_key(n)) {
                                after.insert(*new, (bytes.clone(), *keep, None));
                            }
                        }
                        deed => apply(&mut after, deed, None),
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

#[test]
fn pages_wear_evenly() {
    let mut random = Random::new(5);
    let mut ring = Ring::mount(Nor::<8, 512>::new(5)).unwrap();
    let mut view = View::new();
    for turn in 0..4_000 {
        // Every hundredth start is a new one.
        if turn % 100 == 0 {
            ring = Ring::mount(ring.release()).unwrap();
        }
        if turn % 50 == 0 {
            view = look(&mut ring);
        }
        let deed = match deed(&mut random, &view) {
            Deed::Forget(number) => {
                view.remove(&number);
                Deed::Forget(number)
            }
            deed => deed,
        };
        match act(&mut ring, &deed) {
            Ok(_) | Err(RingError::NotFound) => {}
            Err(error) => panic!("{error}, deed {turn}"),
        }
    }
    let rounds = ring.rounds();
    let erases = ring.release().erases;
    let (least, most) = (erases.iter().min().unwrap(), erases.iter().max().unwrap());
    assert!(*least > 50 && most - least <= 1, "{erases:?}");
    assert!(rounds.abs_diff(*most) <= 1, "{rounds}, {erases:?}");
}

#[test]
fn all_but_one_page_is_used() {
    let mut ring = Ring::mount(Nor::<4, 1024>::new(6)).unwrap();
    for index in 0..1000_u32 {
        ring.append(&index.to_le_bytes(), false).unwrap();
        if index % 40 > 0 {
            continue;
        }
        let held = look(&mut ring).len() as u32;
        // A page has room for 49 frames of 20 bytes beside its head and the reserve.
        assert!(held == index + 1 || held > 4 * 49, "{held} after {index}");
        assert!(held <= 5 * 49);
    }
}

#[test]
fn what_is_kept_is_refused_more_rather_than_lost() {
    let mut ring = Ring::mount(Nor::<4, 512>::new(3)).unwrap();
    let mut kept = Vec::new();
    let full = loop {
        match ring.append(&[7; 100], true) {
            Ok(number) => kept.push(number),
            Err(error) => break error,
        }
    };
    assert_eq!(full, RingError::Full);
    assert_eq!(kept.len(), 8, "four in each of two pages");
    assert_eq!(ring.append(&[8; 100], false), Err(RingError::Full));
    assert_eq!(ring.touch(kept[0], &[1; 200], true), Err(RingError::Full));
    let steps = |ring: Ring<Nor<4, 512>>| ring.release().steps;
    let flash = ring.release();
    let mut ring = Ring::mount(flash.clone()).unwrap();
    assert_eq!(ring.append(&[8; 100], true), Err(RingError::Full));
    assert_eq!(steps(ring), flash.steps, "refusing wears nothing out");

    // Each can be forgotten, and then there is room again.
    let mut ring = Ring::mount(flash).unwrap();
    for number in &kept {
        ring.forget(*number).unwrap();
        assert_eq!(ring.forget(*number), Err(RingError::NotFound));
    }
    assert!(look(&mut ring).is_empty());
    assert!(ring.append(&[9; 100], true).is_ok());
}

/// A record that is to be kept from now on once went with the page that its own mark needed.
#[test]
fn a_mark_to_keep_is_not_too_late() {
    for len in 0..200 {
        let mut ring = Ring::mount(Nor::<4, 512>::new(3)).unwrap();
        let oldest = ring.append(b"to be kept", false).unwrap();
        ring.touch(oldest, b"once", false).unwrap();
        // Up to where the next frame needs a page that this one pays for.
        while ring.rounds() < 2 && ring.get(oldest, &mut [0; 64]).is_ok() {
            let before = ring.release();
            ring = Ring::mount(before.clone()).unwrap();
            ring.append(&[1; 60], false).unwrap();
            let gone = ring.get(oldest, &mut [0; 64]).is_err();
            if gone {
                ring = Ring::mount(before).unwrap();
                break;
            }
        }
        ring.touch(oldest, &vec![2; len], true).unwrap();
        let entry = ring.get(oldest, &mut [0; 512]).unwrap();
        assert_eq!((entry.keep, entry.state), (true, Some(len)));
    }
}

#[test]
fn rot_is_found_and_nothing_false_is_told() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let mut ring = Ring::mount(Nor::<4, 512>::new(4)).unwrap();
        let mut ever = View::new();
        let mut states: Vec<Vec<u8>> = Vec::new();
        for _ in 0..40 {
            let view = look(&mut ring);
            let deed = deed(&mut random, &view);
            let number = act(&mut ring, &deed).unwrap();
            match (&deed, number) {
                (Deed::Append(bytes, keep), Some(number)) => {
                    ever.insert(number, (bytes.clone(), *keep, None));
                }
                (Deed::Touch(_, state, _), _) => states.push(state.clone()),
                _ => {}
            }
        }
        let mut flash = ring.release();
        for _ in 0..=random.below(8) {
            let bit = random.below(flash.bits() as u64) as usize;
            flash.flip(bit);
        }
        let mut ring = Ring::mount(flash).unwrap();
        for (number, (bytes, _, state)) in look(&mut ring) {
            assert_eq!(ever[&number].0, bytes, "seed {seed}");
            assert!(state.is_none_or(|state| states.contains(&state)), "seed {seed}");
        }
        // A word that rotted while it was erased is not written; the page behind it is.
        assert!(ring.append(b"and on", true).is_ok(), "seed {seed}");
        assert!(look(&mut ring).values().any(|memory| memory.0 == b"and on"), "seed {seed}");
    }
}

/// Frames behind one that rotted are hidden to some, and read by others: their numbers are given to nobody else.
#[test]
fn no_number_is_given_again_after_rot() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let mut ring = Ring::mount(Nor::<4, 1024>::new(3)).unwrap();
        let mut given = Vec::new();
        for _ in 0..30 {
            let view = look(&mut ring);
            let deed = deed(&mut random, &view);
            given.extend(act(&mut ring, &deed).unwrap());
        }
        let whole = ring.release();
        for _ in 0..40 {
            let mut flash = whole.clone();
            let (page, bit) = (random.below(3), random.below(8 * 1008));
            // A page whose head rots is none, with all of its frames.
            flash.flip((page as usize * 1024 + 16) * 8 + bit as usize);
            let mut ring = Ring::mount(flash).unwrap();
            for turn in 0..20_u8 {
                let number = ring.append(&[turn; 12], false).unwrap();
                let why = format!("seed {seed}, page {page}, bit {bit}, {number:?}");
                assert!(given.iter().all(|other| *other < number), "{why}");
                let mut buffer = [0; 64];
                let entry = ring.get(number, &mut buffer).expect(&why);
                assert_eq!((entry.state, &buffer[..entry.len]), (None, &[turn; 12][..]), "{why}");
            }
        }
    }
}

/// The head of a page is right, and its number one that no ring ever gave.
#[test]
fn numbers_beyond_all_bounds_are_no_ring() {
    for page in [0, 3, u32::MAX - 3, u32::MAX - 2, u32::MAX - 1, u32::MAX] {
        for next in [0, 1, u32::MAX - 1, u32::MAX] {
            let mut head = *b"OMR1............";
            head[4..8].copy_from_slice(&page.to_le_bytes());
            head[8..12].copy_from_slice(&next.to_le_bytes());
            let crc = crc32(&head[..12]).to_le_bytes();
            head[12..].copy_from_slice(&crc);
            let mut flash = Nor::<4, 512>::new(4);
            flash.write(page % 4 * 512, &head).unwrap();
            let mut ring = Ring::mount(flash).unwrap();
            assert!(look(&mut ring).is_empty());
            for _ in 0..20 {
                match ring.append(&[1; 100], false) {
                    Ok(number) => assert!(look(&mut ring).contains_key(&number)),
                    Err(error) => assert_eq!(error, RingError::WornOut, "{page} {next}"),
                }
            }
        }
    }
}

/// Where everything is kept there is room for forgetting only, also if that is cut, and cut again.
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
            let why = format!("seed {seed}, deed {turn}");
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
            let deed = deed(&mut random, &before);
            let number = act(&mut ring, &deed).unwrap_or_else(|error| panic!("{error}, {why}"));
            apply(&mut truth, &deed, number);
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

/// Such as that of an STM32L0: it would lose a page with every start, and not say so.
#[test]
fn flash_that_erases_to_zeros_is_told_from_the_start() {
    let mut ring = Ring::mount(Nor::<4, 512>::new(3).erasing_to(0)).unwrap();
    let answer = ring.append(b"first", false);
    assert_eq!(answer, Err(RingError::Unerased { address: 0 }));
    // A page that is worn out later costs nothing that is there.
    let mut ring = Ring::mount(Nor::<4, 512>::new(3)).unwrap();
    let number = ring.append(&[1; 200], true).unwrap();
    ring.flash_mut(|flash| *flash = flash.clone().erasing_to(0xFE));
    let answers: Vec<_> = (0..9).filter_map(|_| ring.append(&[2; 200], false).err()).collect();
    assert_eq!(answers[0], RingError::Unerased { address: 512 });
    assert!(look(&mut ring).contains_key(&number));
}

#[test]
fn limits_are_told() {
    assert!(matches!(Ring::mount(Nor::<4, 512>::new(1)), Err(RingError::Geometry)));
    assert!(matches!(Ring::mount(Nor::<4, 64>::new(8)), Err(RingError::Geometry)));
    assert!(matches!(Ring::mount(Nor::<128, 4096>::new(8)), Err(RingError::Geometry)));
    let mut ring = Ring::mount(Nor::<4, 512>::new(3)).unwrap();
    let longest = Ring::<Nor<4, 512>>::longest();
    assert_eq!(ring.append(&vec![1; longest + 1], false), Err(RingError::TooLong));
    let number = ring.append(&vec![1; longest], false).unwrap();
    let mut short = vec![0; longest - 1];
    assert_eq!(ring.get(number, &mut short), Err(RingError::Buffer { needed: longest }));
    assert_eq!(ring.next(Some(number), &mut short), Ok(None));
}

/// A life in flash that looks at what it reads, and what each of its pages holds at the end.
fn life_of(seed: u64, pages: usize) -> (Nor<8, 512>, View) {
    let mut random = Random::new(seed);
    let mut ring = Ring::mount(Nor::<8, 512>::new(pages)).unwrap();
    for _ in 0..30 + seed % 20 {
        let view = look(&mut ring);
        let deed = deed(&mut random, &view);
        act(&mut ring, &deed).unwrap();
    }
    let view = look(&mut ring);
    (ring.release(), view)
}

/// The head of a page that was in use can be read no more: what is in the page can.
#[test]
fn no_record_is_lost_with_the_head_of_its_page() {
    for seed in 0..60 {
        let pages = 2 + seed as usize % 3;
        let (whole, truth) = life_of(seed, pages);
        for place in 0..pages {
            let why = format!("seed {seed}, place {place} of {pages}");
            let mut flash = whole.clone();
            flash.spoil(place * 512 + 8 * (seed as usize % 2));
            let mut ring = Ring::mount(flash).unwrap();
            let found = look(&mut ring);
            for (number, memory) in &truth {
                assert_eq!(found.get(number), Some(memory), "{number:?}, {why}");
            }
            // Of a page that held nothing new the one that it was to replace is there still.
            let last = found.keys().last().copied();
            assert!(last <= truth.keys().last().copied(), "{why}");
            // And on, through all pages: what is kept stays.
            let kept: View = found.into_iter().filter(|(_, memory)| memory.1).collect();
            for turn in 0..40_u8 {
                let number = ring.append(&[turn; 60], false).unwrap();
                assert!(Some(number) > last, "{why}");
                ring = Ring::mount(ring.release()).unwrap();
            }
            let found = look(&mut ring);
            assert!(kept.iter().all(|(number, memory)| found.get(number) == Some(memory)), "{why}");
        }
    }
}

/// What can be read no more costs what stands there and behind it in its page, as rot does; and nothing else is told.
#[test]
fn words_that_cannot_be_read_cost_their_page_at_most() {
    for seed in 0..30 {
        let (whole, truth) = life_of(seed, 4);
        let mut random = Random::new(seed);
        for _ in 0..20 {
            let at = random.below(4 * 512) as usize;
            let why = format!("seed {seed}, byte {at}");
            let mut flash = whole.clone();
            flash.spoil(at);
            let mut ring = Ring::mount(flash).unwrap();
            let found = look(&mut ring);
            let lost = truth.keys().filter(|number| !found.contains_key(number)).count();
            assert!(lost <= 512 / 24, "{lost}, {why}");
            for (number, memory) in found.iter().filter(|(number, _)| truth.contains_key(number)) {
                assert_eq!(memory.0, truth[number].0, "{number:?}, {why}");
            }
            let number = ring.append(&[9; 60], true).unwrap();
            assert!(truth.keys().chain(found.keys()).all(|other| *other < number), "{why}");
        }
    }
}

/// Reads that fail for a while, wherever they do, say nothing of what is in flash: nothing is taken for torn by it, and
/// nothing goes for it.
#[test]
fn a_flash_that_fails_for_a_while_costs_nothing() {
    let mut failed = 0;
    for seed in 0..3 {
        let (whole, _) = life_of(seed, 3);
        // A page has to be opened for it, or two.
        let deed = Deed::Append(vec![7; 300], false);
        let after = {
            let mut ring = Ring::mount(whole.clone()).unwrap();
            act(&mut ring, &deed).unwrap();
            look(&mut ring)
        };
        let mut whole_reads = Ring::mount(whole.clone()).unwrap();
        act(&mut whole_reads, &deed).unwrap();
        let reads = whole_reads.release().reads - whole.reads;
        for many in [1, 2, 3, 4, 5, 9] {
            for at in 0..reads {
                let why = format!("seed {seed}, {many} reads from the {at}th");
                let mut flash = whole.clone().failing(at, many);
                // Until it works again.
                let mut ring = loop {
                    match Ring::mount(flash.clone()) {
                        Ok(ring) => break ring,
                        Err(error) => assert_eq!(error, RingError::Flash(Fault::Bus), "{why}"),
                    }
                    failed += 1;
                    flash = whole.clone();
                };
                while let Err(error) = act(&mut ring, &deed) {
                    let unerased = matches!(error, RingError::Unerased { .. });
                    assert!(unerased || error == RingError::Flash(Fault::Bus), "{error}, {why}");
                    failed += 1;
                }
                let mut flash = ring.release();
                flash = flash.failing(0, 0);
                assert_eq!(look(&mut Ring::mount(flash).unwrap()), after, "{why}");
            }
        }
    }
    assert!(failed > 1_000, "{failed}");
}
