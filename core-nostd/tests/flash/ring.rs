//! Room, refusals and wear of the ring.

use omir_core::fixed::ring::{Ring, RingError};

use super::model::{Command, View, act, command, look};
use super::nor::{Nor, Random};

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
        let command = match command(&mut random, &view) {
            Command::Forget(number) => {
                view.remove(&number);
                Command::Forget(number)
            }
            command => command,
        };
        match act(&mut ring, &command) {
            Ok(_) | Err(RingError::NotFound) => {}
            Err(error) => panic!("{error}, command {turn}"),
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
