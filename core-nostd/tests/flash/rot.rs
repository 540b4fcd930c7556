//! Flash that rots, that cannot be read in places, that fails for a while: nothing false is told, and nothing more is lost.

use embedded_storage::nor_flash::NorFlash;
use omir_core::crc::crc32;
use omir_core::fixed::ring::{Ring, RingError};

use super::model::{Command, View, act, command, look};
use super::nor::{Fault, Nor, Random};

#[test]
fn rot_is_found_and_nothing_false_is_told() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let mut ring = Ring::mount(Nor::<4, 512>::new(4)).unwrap();
        let mut ever = View::new();
        let mut states: Vec<Vec<u8>> = Vec::new();
        for _ in 0..40 {
            let view = look(&mut ring);
            let command = command(&mut random, &view);
            let number = act(&mut ring, &command).unwrap();
            match (&command, number) {
                (Command::Append(bytes, keep), Some(number)) => {
                    ever.insert(number, (bytes.clone(), *keep, None));
                }
                (Command::Touch(_, state, _), _) => states.push(state.clone()),
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
            let command = command(&mut random, &view);
            given.extend(act(&mut ring, &command).unwrap());
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

/// A life in flash that looks at what it reads, and what each of its pages holds at the end.
fn life_of(seed: u64, pages: usize) -> (Nor<8, 512>, View) {
    let mut random = Random::new(seed);
    let mut ring = Ring::mount(Nor::<8, 512>::new(pages)).unwrap();
    for _ in 0..30 + seed % 20 {
        let view = look(&mut ring);
        let command = command(&mut random, &view);
        act(&mut ring, &command).unwrap();
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

/// A word at the edge is not read at first, and then it is: the newest page is none the less the newest.
#[test]
fn a_head_that_is_read_at_last_hides_no_page() {
    for seed in 0..20 {
        let pages = 2 + seed as usize % 3;
        let (whole, truth) = life_of(seed, pages);
        for (place, times) in (0..pages).flat_map(|place| (1..10).map(move |times| (place, times)))
        {
            let why = format!("seed {seed}, place {place} of {pages}, {times} times");
            let mut ring = Ring::mount(whole.clone().hesitating(0, place * 512, times)).unwrap();
            let found = look(&mut ring);
            for (number, memory) in &truth {
                assert_eq!(found.get(number), Some(memory), "{number:?}, {why}");
            }
            let last = truth.keys().last().copied();
            assert!(Some(ring.append(&[1; 60], true).unwrap()) > last, "{why}");
            let mut ring = Ring::mount(ring.release()).unwrap();
            let after = look(&mut ring);
            let kept = truth.iter().filter(|(_, memory)| memory.1);
            kept.for_each(|(number, memory)| assert_eq!(after.get(number), Some(memory), "{why}"));
        }
    }
}

/// Whatever is read differently from one moment to the next: what was answered with `Ok` is there.
#[test]
fn a_word_at_the_edge_takes_nothing_that_was_acknowledged() {
    let mut differed = 0;
    for seed in 0..60 {
        let (whole, _) = life_of(seed, 3);
        let mounted = Ring::mount(whole.clone()).unwrap().release().reads - whole.reads;
        let mut random = Random::new(seed);
        for _ in 0..300 {
            let at = random.below(3 * 512) as usize;
            let reads = mounted + random.below(200);
            let size = 20 + random.below(400) as usize;
            let flash = whole.clone().hesitating(reads, at, 3 + random.below(4));
            let mut ring = Ring::mount(flash).unwrap();
            match ring.append(&vec![5; size], true) {
                Ok(number) => {
                    let mut ring = Ring::mount(ring.release().steady()).unwrap();
                    let found = look(&mut ring);
                    let why = format!("seed {seed}, byte {at}, from read {reads}, {size} bytes");
                    assert_eq!(
                        found.get(&number).map(|memory| memory.0.len()),
                        Some(size),
                        "{why}"
                    );
                }
                Err(_) => differed += 1,
            }
        }
    }
    assert!(differed > 0);
}

/// Unreadable flash costs its frames and those behind it in the page, as rot does; everything else is right.
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
        let command = Command::Append(vec![7; 300], false);
        let after = {
            let mut ring = Ring::mount(whole.clone()).unwrap();
            act(&mut ring, &command).unwrap();
            look(&mut ring)
        };
        let mut whole_reads = Ring::mount(whole.clone()).unwrap();
        act(&mut whole_reads, &command).unwrap();
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
                while let Err(error) = act(&mut ring, &command) {
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
