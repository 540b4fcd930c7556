//! What the node does from one start to the next: it senses, remembers what is worth it, uses what it
//! remembers, and forgets what has faded.

use core::fmt::Write as _;

use embedded_storage::nor_flash::NorFlash;
use omir_core::fixed::ring::{Number, RingError};
use omir_core::fixed::{
    Dating, Decay, Id, JournalError, Moment, NoClock, Pose, Text, Unit, Uptime,
};
use omir_core::forgetting::HalfLife;
use omir_core::vocabulary::ExperienceType;

use crate::sensors::{Reading, Sensors};
use crate::{Memories, Record};

/// Below this a reading is forgotten: what is left of it says no more than the ones around it.
const FADED: f64 = 0.6;
/// What a temperature is worth for: six hours.
const READING_HALF_LIFE: f64 = 6.0;
/// How far the temperature moves before it is remembered again.
const NOTEWORTHY: f64 = 0.75;

/// What the node tells whoever listens. What it tells of is in flash by then.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The node has started; so many times before.
    Started(u32),
    /// A record was there at the start.
    Held(Number, &'a Record),
    /// A record was remembered.
    Remembered(Number, &'a Record),
    /// A record was used.
    Used(Number, Decay),
    /// A record was forgotten.
    Forgot(Number),
}

/// Lives from one start until `readings` readings are taken, or power goes; and says when that was.
///
/// # Errors
/// What the flash says.
pub fn live<F: NorFlash>(
    memories: &mut Memories<F>,
    readings: u32,
    tell: &mut impl FnMut(Event<'_>),
) -> Result<Uptime, JournalError<F::Error>> {
    let boot = memories.next_boot()?;
    tell(Event::Started(boot));
    let mut last = None;
    while let Some(kept) = memories.next(last)? {
        tell(Event::Held(kept.number, &kept.record));
        last = Some(kept.number);
    }

    let mut sensors = Sensors::new(boot + 1);
    let mut degrees = None;
    let mut uptime = Uptime { boot, micros: 0 };
    for _ in 0..readings {
        let reading = sensors.read();
        uptime.micros = reading.micros;
        let now = Moment::SinceBoot(uptime);
        if degrees.is_none_or(|before: f64| (reading.degrees_celsius - before).abs() >= NOTEWORTHY)
        {
            degrees = Some(reading.degrees_celsius);
            remember(memories, temperature(boot, now, &reading), tell)?;
        }
        if reading.bumped {
            remember(memories, bump(boot, now, &reading), tell)?;
        }
        if sensors.random(3) == 0 {
            let skip = sensors.random(4);
            recall(memories, skip, now, tell)?;
        }
        forget(memories, now, tell)?;
    }
    Ok(uptime)
}

fn remember<F: NorFlash>(
    memories: &mut Memories<F>,
    record: Option<Record>,
    tell: &mut impl FnMut(Event<'_>),
) -> Result<(), JournalError<F::Error>> {
    let Some(record) = record else { return Ok(()) };
    loop {
        match memories.remember(&record) {
            Ok(number) => {
                tell(Event::Remembered(number, &record));
                return Ok(());
            }
            // Nothing but bumps is left: those that the daemon has make room.
            Err(JournalError::Ring(RingError::Full)) => {
                let mark = memories.handed_over()?;
                match memories.forget_oldest(&mark)? {
                    Some(oldest) => tell(Event::Forgot(oldest)),
                    // The older ones are as good.
                    None => return Ok(()),
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Uses a memory, as a planner would that asks what it ran into.
fn recall<F: NorFlash>(
    memories: &mut Memories<F>,
    skip: u32,
    now: Moment,
    tell: &mut impl FnMut(Event<'_>),
) -> Result<(), JournalError<F::Error>> {
    let mut last = None;
    for _ in 0..=skip {
        match memories.next(last)? {
            Some(kept) => last = Some(kept.number),
            None => break,
        }
    }
    let Some(number) = last else { return Ok(()) };
    match memories.access(number, now, &NoClock) {
        Ok(decay) => tell(Event::Used(number, decay)),
        // Making room for the access took the record with the oldest page, or there is no room.
        Err(JournalError::Ring(RingError::NotFound | RingError::Full)) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Forgets the first record that has faded. Of an earlier start nobody can tell.
fn forget<F: NorFlash>(
    memories: &mut Memories<F>,
    now: Moment,
    tell: &mut impl FnMut(Event<'_>),
) -> Result<(), JournalError<F::Error>> {
    let mut last = None;
    while let Some(kept) = memories.next(last)? {
        let left = kept.record.retrievability(now, &NoClock);
        if left.is_some_and(|left| left < FADED) && !kept.record.anchored() {
            memories.forget(kept.number)?;
            tell(Event::Forgot(kept.number));
            return Ok(());
        }
        last = Some(kept.number);
    }
    Ok(())
}

/// An id that no other record of this node has; `None` where there is no room for it, for a cut one might be that
/// of another.
fn id(kind: &str, boot: u32, now: Moment) -> Option<Id<24>> {
    let mut text = Text::<24>::new();
    let seconds = match now {
        Moment::SinceBoot(uptime) => uptime.micros / 1_000_000,
        Moment::At(at) => at.secs().unsigned_abs(),
    };
    // At most 4 + 10 + 8 characters: a start of the emulated node does not last for three years.
    write!(text, "{kind}-{boot}-{seconds}").ok()?;
    Id::try_from(text.as_str()).ok()
}

/// What the thermometer says.
fn temperature(boot: u32, now: Moment, reading: &Reading) -> Option<Record> {
    let mut content = Text::new();
    // The room is for any float of two digits; what does not fit is left out.
    let _ = write!(content, "{:.2} degrees", reading.degrees_celsius);
    let mut record = Record::new(id("temp", boot, now)?, content, now);
    record.experience_type = Some(ExperienceType::Observation);
    record.importance = Unit::new(0.25);
    record.decay = Some(Decay { half_life: HalfLife::new(READING_HALF_LIFE), ..Decay::default() });
    record.pose = pose(reading);
    Some(record)
}

/// What the bumper says. A collision is not forgotten.
fn bump(boot: u32, now: Moment, reading: &Reading) -> Option<Record> {
    let content = Text::try_from("ran into something").unwrap_or_default();
    let mut record = Record::new(id("bump", boot, now)?, content, now);
    record.experience_type = Some(ExperienceType::Observation);
    record.importance = Unit::new(0.875);
    record.decay = Some(Decay { anchored: Some(true), ..Decay::default() });
    record.pose = pose(reading);
    Some(record)
}

/// Where the node was.
pub(crate) fn pose(reading: &Reading) -> Option<Pose<24>> {
    let (odom, base) = ("odom".try_into().ok()?, "base_link".try_into().ok()?);
    Some(Pose::of(odom, base, &reading.pose))
}

/// Shows every record as CBOR, as an OMIR document has it, dated by `dating`.
///
/// # Errors
/// What the flash says, and that a record could not be written.
pub fn hand_over<F: NorFlash>(
    memories: &mut Memories<F>,
    dating: &impl Dating,
    show: &mut impl FnMut(Number, &[u8]),
) -> Result<(), JournalError<F::Error>> {
    let mut last = None;
    while let Some(kept) = memories.next(last)? {
        let mut bytes = heapless::Vec::<u8, 512>::new();
        kept.record.write(dating, &mut bytes)?;
        show(kept.number, &bytes);
        last = Some(kept.number);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_whole_or_none() {
        let at = |micros| Moment::SinceBoot(Uptime { boot: u32::MAX, micros });
        let second = 1_000_000;
        let longest = id("temp", u32::MAX, at(99_999_999 * second));
        assert_eq!(longest.as_ref().map(Id::as_str), Some("temp-4294967295-99999999"));
        assert_eq!(id("temp", u32::MAX, at(100_000_000 * second)), None);
    }
}
