//! Ids, and what happens where there is no room.

#[path = "../../../tests/flash/nor.rs"]
#[allow(dead_code, reason = "the tests of the ring use the rest")]
mod nor;

use omir_core::fixed::Mark;

use super::*;
use nor::Nor;

#[test]
fn an_id_is_whole_or_none_and_of_one_node() {
    let at = |seconds: u64| Uptime { boot: 9_999_999, micros: seconds * 1_000_000 };
    let longest = id(255, 't', at(99_999_999));
    assert_eq!(longest.as_ref().map(Id::as_str), Some("n255-t-9999999-99999999"));
    assert_eq!(id(255, 't', at(1_000_000_000)), None);
    assert_ne!(id(7, 't', at(1)), id(8, 't', at(1)));
    assert_eq!(name(u32::MAX).as_str(), "n4294967295");
}

/// A flash full of bumps that nobody else has takes no more, and says so. What the daemon has makes room, and
/// nothing else.
#[test]
fn a_flash_full_of_bumps() {
    let mut memories = Memories::mount(Nor::<4, 1024>::new(6)).unwrap();
    let (mut hand_over, mut reading) = (HandOver::new(), Sensors::new(1).read());
    // Until there is no room: what was remembered, what went for it.
    let mut fill = |memories: &mut Memories<Nor<4, 1024>>| {
        let (mut kept, mut gone, mut is_full) = (Vec::new(), Vec::new(), false);
        while !is_full {
            reading.micros += 1_000_000;
            let then = Uptime { boot: 0, micros: reading.micros };
            let bump = bump(7, then, &reading);
            remember(memories, &mut hand_over, bump, &mut |event| match event {
                Event::Remembered(number, _) => kept.push(number),
                Event::Forgot(number) => gone.push(number),
                event => is_full = matches!(event, Event::NoRoom),
            })
            .unwrap();
        }
        (kept, gone)
    };
    let (kept, gone) = fill(&mut memories);
    assert!(kept.len() > 10 && gone.is_empty());
    let mut mark = Mark::new();
    mark.pass(kept[kept.len() / 2]);
    // Ours to give away: so there is room for the mark.
    memories.forget(kept[0]).unwrap();
    memories.set_handed_over(&mark).unwrap();
    let (new, gone) = fill(&mut memories);
    assert_eq!(gone, kept[1..=kept.len() / 2]);
    assert!(!new.is_empty());
    let (mut left, mut last) = (Vec::new(), None);
    while let Some(record) = memories.next(last).unwrap() {
        last = Some(record.number);
        left.push(record.number);
    }
    assert_eq!(left, [&kept[kept.len() / 2 + 1..], &new].concat());
}
