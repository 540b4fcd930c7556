//! The work of the node from one start to the next: it senses, remembers what is worth it, uses what it
//! remembers, and forgets what has faded.

#[cfg(test)]
mod tests;

use core::fmt::Write as _;

use embedded_storage::nor_flash::NorFlash;
use omir_core::fixed::ring::{Number, RingError};
use omir_core::fixed::{
    Dating, Decay, Id, JournalError, Moment, NoClock, Pose, Text, Unit, Uptime,
};
use omir_core::forgetting::HalfLife;
use omir_core::vocabulary::ExperienceType;

use crate::sensors::{Reading, Sensors};
use crate::{HandOver, Memories, Record};

/// Below this a reading is forgotten: what is left of it says no more than the ones around it.
const FADED: f64 = 0.6;
/// The validity of a temperature: six hours.
const READING_HALF_LIFE: f64 = 6.0;
/// Change of the temperature from which it is remembered again.
const NOTEWORTHY: f64 = 0.75;

/// Reports of the node to a listener. Their subject is in flash by then.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The node has started; so many times before.
    Started(u32),
    /// A record was there at the start.
    Held(Number, &'a Record),
    /// A record was remembered.
    Remembered(Number, &'a Record),
    /// Something was not: there is no room, and nothing may go for it. A node with a lamp would light it.
    NoRoom,
    /// A record was used.
    Used(Number, Decay),
    /// A record was forgotten.
    Forgot(Number),
}

/// The name of the node, in its ids and on a cable. A real one has its number from its maker or from whoever put it
/// in its place; two nodes of one daemon must not have the same, for of two records with one id the daemon keeps the
/// first.
pub fn name(node: u32) -> Text<11> {
    let mut text = Text::new();
    // There is room for every number.
    let _ = write!(text, "n{node}");
    text
}

/// The node from one start until power goes.
#[derive(Debug)]
pub struct Life {
    node: u32,
    boot: u32,
    sensors: Sensors,
    /// The temperature that was last remembered.
    degrees: Option<f64>,
}

impl Life {
    /// Starts node number `node`.
    ///
    /// # Errors
    /// What the flash says.
    pub fn start<F: NorFlash>(
        node: u32,
        memories: &mut Memories<F>,
        tell: &mut impl FnMut(Event<'_>),
    ) -> Result<Self, JournalError<F::Error>> {
        let boot = memories.next_boot()?;
        tell(Event::Started(boot));
        let mut last = None;
        while let Some(kept) = memories.next(last)? {
            tell(Event::Held(kept.number, &kept.record));
            last = Some(kept.number);
        }
        Ok(Self { node, boot, sensors: Sensors::new(boot + 1), degrees: None })
    }

    /// The number of this start.
    pub fn boot(&self) -> u32 {
        self.boot
    }

    /// Handles the next readings of the sensors.
    pub fn sense(&mut self) -> Reading {
        self.sensors.read()
    }

    /// Does what there is to do about a reading. `hand_over` knows what the daemon has. Readings of one start lie a
    /// second apart at least, for ids tell them by that.
    ///
    /// # Errors
    /// What the flash says.
    pub fn turn<F: NorFlash>(
        &mut self,
        memories: &mut Memories<F>,
        hand_over: &mut HandOver,
        reading: &Reading,
        tell: &mut impl FnMut(Event<'_>),
    ) -> Result<(), JournalError<F::Error>> {
        let uptime = Uptime { boot: self.boot, micros: reading.micros };
        let now = Moment::SinceBoot(uptime);
        let is_noteworthy = |before: f64| (reading.degrees_celsius - before).abs() >= NOTEWORTHY;
        if self.degrees.is_none_or(is_noteworthy) {
            self.degrees = Some(reading.degrees_celsius);
            remember(memories, hand_over, temperature(self.node, uptime, reading), tell)?;
        }
        if reading.bumped {
            remember(memories, hand_over, bump(self.node, uptime, reading), tell)?;
        }
        if self.sensors.random(3) == 0 {
            let skip = self.sensors.random(4);
            recall(memories, skip, now, tell)?;
        }
        forget(memories, now, tell)
    }
}

/// `record` is `None` if there was no room for its id.
fn remember<F: NorFlash>(
    memories: &mut Memories<F>,
    hand_over: &mut HandOver,
    record: Option<Record>,
    tell: &mut impl FnMut(Event<'_>),
) -> Result<(), JournalError<F::Error>> {
    let Some(record) = record else {
        tell(Event::NoRoom);
        return Ok(());
    };
    loop {
        match memories.remember(&record) {
            Ok(number) => {
                tell(Event::Remembered(number, &record));
                return Ok(());
            }
            // Nothing but bumps is left: those that the daemon has make room. Where it has none, the older ones are
            // as good as a new one; but that is said.
            Err(JournalError::Ring(RingError::Full)) => match hand_over.make_room(memories)? {
                Some(oldest) => tell(Event::Forgot(oldest)),
                None => {
                    tell(Event::NoRoom);
                    return Ok(());
                }
            },
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

/// An id that no other record of any node has; `None` where there is no room for it, for a cut one might be that of
/// another.
fn id(node: u32, kind: char, then: Uptime) -> Option<Id<24>> {
    let mut text = Text::<24>::new();
    let (name, Uptime { boot, micros }) = (name(node), then);
    // A node below a thousand has room for ten million starts, and three years of each.
    write!(text, "{name}-{kind}-{boot}-{}", micros / 1_000_000).ok()?;
    Id::try_from(text.as_str()).ok()
}

/// Handles a reading of the thermometer.
fn temperature(node: u32, then: Uptime, reading: &Reading) -> Option<Record> {
    let mut content = Text::new();
    // The room is for any float of two digits; what does not fit is left out.
    let _ = write!(content, "{:.2} degrees", reading.degrees_celsius);
    let mut record = Record::new(id(node, 't', then)?, content, Moment::SinceBoot(then));
    record.experience_type = Some(ExperienceType::Observation);
    record.importance = Unit::new(0.25);
    record.decay = Some(Decay { half_life: HalfLife::new(READING_HALF_LIFE), ..Decay::default() });
    record.pose = pose(reading);
    Some(record)
}

/// Handles a signal of the bumper. A collision is not forgotten.
fn bump(node: u32, then: Uptime, reading: &Reading) -> Option<Record> {
    let content = Text::try_from("ran into something").unwrap_or_default();
    let mut record = Record::new(id(node, 'b', then)?, content, Moment::SinceBoot(then));
    record.experience_type = Some(ExperienceType::Observation);
    record.importance = Unit::new(0.875);
    record.decay = Some(Decay { anchored: Some(true), ..Decay::default() });
    record.pose = pose(reading);
    Some(record)
}

/// Returns the pose of the node.
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
