//! Records in flash: what was remembered is there after power cycles, and fades by the same functions.

use super::nor::Nor;
use omir_core::fixed::ring::RingError;
use omir_core::fixed::{
    BootClock, Dating, Decay, Id, Journal, JournalError, Moment, NoClock, ReadErrorKind, Record,
    Text, Uptime, WriteError,
};
use omir_core::forgetting::HalfLife;
use omir_core::instant::Timestamp;

type Memory = Record<16, 48, 1>;
type Flash = Nor<4, 1024>;
type Memories = Journal<Flash, 16, 48, 1, 384>;

fn up(boot: u32, hours: u64) -> Moment {
    Moment::SinceBoot(Uptime { boot, micros: hours * 3_600_000_000 })
}

fn memory(id: &str, at: Moment) -> Memory {
    Record::new(Id::try_from(id).unwrap(), Text::try_from("it bumped").unwrap(), at)
}

/// Power goes and comes back.
fn cycle(journal: Memories) -> Memories {
    Journal::mount(journal.release().power_on()).unwrap()
}

#[test]
fn what_was_remembered_fades_and_is_used_over_power_cycles() {
    let mut journal = Memories::mount(Nor::new(4)).unwrap();
    assert_eq!(journal.next_boot(), Ok(0));
    let first = journal.remember(&memory("a", up(0, 1))).unwrap();
    let second = journal.remember(&memory("b", up(0, 2))).unwrap();
    let decay = journal.access(first, up(0, 169), &NoClock).unwrap();
    assert_eq!(decay.half_life.map(HalfLife::hours), Some(336.0)); // 168 h later, twice as long

    let mut journal = cycle(journal);
    assert_eq!(journal.next_boot(), Ok(1));
    let found = journal.next(None).unwrap().unwrap();
    assert_eq!((found.number, found.record.decay), (first, Some(decay)));
    assert_eq!(found.record.retrievability(up(0, 169 + 336), &NoClock), Some(0.5));
    // Of another start nobody knows how long ago, until somebody knows the time.
    assert_eq!(found.record.retrievability(up(1, 0), &NoClock), None);
    let noon = Timestamp::parse("2026-05-30T12:00:00Z").unwrap();
    let starts = [
        BootClock { boot: 0, started: noon },
        BootClock { boot: 1, started: noon.checked_add_micros(505 * 3_600_000_000).unwrap() },
    ];
    let known: &dyn Dating = &&starts[..];
    assert_eq!(found.record.retrievability(up(1, 0), &known), Some(0.5));

    journal.forget(first).unwrap();
    let mut journal = cycle(journal);
    assert_eq!(journal.get(first), Err(JournalError::Ring(RingError::NotFound)));
    assert_eq!(journal.next(None).unwrap().map(|found| found.number), Some(second));
    assert_eq!(journal.next(Some(second)), Ok(None));
}

#[test]
fn anchored_memories_outlive_the_others() {
    let mut journal = Memories::mount(Nor::new(3)).unwrap();
    let mut anchored = memory("anchored", up(0, 0));
    anchored.decay = Some(Decay { anchored: Some(true), ..Decay::default() });
    let anchored = journal.remember(&anchored).unwrap();
    let plain = journal.remember(&memory("plain", up(0, 0))).unwrap();
    let late = journal.remember(&memory("late", up(0, 0))).unwrap();
    journal.access(late, up(0, 5), &NoClock).unwrap();
    journal.anchor(late, true).unwrap();
    for hour in 0..200 {
        journal.remember(&memory("noise", up(0, hour))).unwrap();
        journal = cycle(journal);
    }
    assert!(journal.get(anchored).unwrap().anchored());
    assert_eq!(journal.get(plain), Err(JournalError::Ring(RingError::NotFound)));
    let found = journal.get(late).unwrap();
    assert_eq!(found.decay.and_then(|decay| decay.access_count), Some(1), "the access is kept too");
    journal.anchor(late, false).unwrap();
    assert!(!journal.get(late).unwrap().anchored());
}

#[test]
fn what_another_program_wrote_is_passed_over() {
    let mut journal = Memories::mount(Nor::new(3)).unwrap();
    let first = journal.remember(&memory("a-long-name", up(0, 0))).unwrap();
    journal.ring().append(b"no record", false).unwrap();
    let last = journal.remember(&memory("z", up(4, 0))).unwrap();
    assert_eq!(journal.next_boot(), Ok(5));
    let Err(JournalError::Read { number, .. }) = journal.next(Some(first)) else { panic!() };
    assert_eq!(journal.next(Some(number)).unwrap().map(|found| found.number), Some(last));

    // A program with less room says so, and still finds what it has room for.
    let mut small = Journal::<Flash, 4, 48, 1, 384>::mount(journal.release()).unwrap();
    let Err(JournalError::Read { error, .. }) = small.get(first) else { panic!() };
    assert_eq!(error.kind, ReadErrorKind::NoRoom);
    assert_eq!(small.get(last).unwrap().id.as_str(), "z");
    let mut tiny = Journal::<Flash, 16, 48, 1, 32>::mount(small.release()).unwrap();
    let Err(JournalError::Write(WriteError::Sink(_))) = tiny.remember(&memory("x", up(0, 0)))
    else {
        panic!()
    };
}

#[test]
fn a_state_that_does_not_fit_beside_its_record_is_refused_before_it_is_written() {
    type Tight = Journal<Flash, 16, 48, 1, 96>;
    let text = "it bumped into something that was not there before ".repeat(2);
    let mut journal = Tight::mount(Nor::new(4)).unwrap();
    let longest = (1..=48).rev().find_map(|length| {
        let content = Text::try_from(&text[..length]).unwrap();
        journal.remember(&Record::new(Id::try_from("a").unwrap(), content, up(3, 1))).ok()
    });
    let number = longest.unwrap();
    let refused = journal.access(number, up(3, 2), &NoClock);
    assert!(matches!(refused, Err(JournalError::Write(WriteError::Sink(_)))), "{refused:?}");
    assert_eq!(journal.next(None).unwrap().map(|kept| kept.number), Some(number));
    assert_eq!(journal.next_boot(), Ok(4));
}

#[test]
fn what_was_written_with_more_room_holds_nothing_up() {
    let mut journal = Memories::mount(Nor::new(4)).unwrap();
    let long = journal.remember(&memory("long", up(0, 1))).unwrap();
    journal.access(long, up(0, 2), &NoClock).unwrap();
    let flash = journal.release().power_on();
    let mut journal = Journal::<Flash, 16, 48, 1, 40>::mount(flash).unwrap();
    match journal.next(None) {
        Err(JournalError::Read { number, error }) => {
            assert_eq!((number, error.kind), (long, ReadErrorKind::NoRoom));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(journal.next(Some(long)), Ok(None));
    assert_eq!(journal.next_boot(), Ok(0));
}
