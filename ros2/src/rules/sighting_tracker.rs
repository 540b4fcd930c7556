//! Decides which sightings become memories: on change, beyond a distance, across a threshold, at
//! most so often, and once for the same thing nearby.
//!
//! Plain data in, a verdict out; messages and transforms are not known here. First comes
//! [`SightingTracker::look`], which changes nothing, so that a caller that finds a transform missing may look again
//! later; then [`SightingTracker::note`]. What a trigger compares with is what was *stored* last, not what was seen
//! last: a robot that creeps is noticed, and a change that came too soon is told when it may be.

use std::time::Duration;

use super::decision::KeptResource;
use super::frame_position::FramePosition;
use super::policy::{Policy, Threshold};
use super::sighting::{Memo, NEW_START, Sighting, Verdict, is_a_clock_wrong};
use super::things::{Key, Things, Touch};
use crate::stamp::Stamp;

/// The most by which a message may be early and is not too soon: one that comes each second comes now and then some
/// milliseconds early. Of a short limit a quarter.
const EARLY: Duration = Duration::from_millis(250);

/// One thing, and its memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Thing {
    /// Its memory.
    pub memo: Memo,
    /// Number of its sights.
    pub count: u64,
    /// Of these, how many its memory does not tell of yet.
    pub untold: u64,
    /// Time of the first sight.
    pub first: Stamp,
    /// Time of the last sight.
    pub last: Stamp,
    /// Time at which that came, if it was published just then.
    pub heard: Option<Stamp>,
    /// The last sighting, if its memory does not hold it yet.
    pub late: Option<Box<KeptResource>>,
    seen: Stamp,
    stored: Stamp,
    /// Time at which it was, or should have been, stored last: an early one counts as on time.
    slot: Stamp,
    badness: Option<f64>,
    moved: Option<FramePosition>,
    place: Option<FramePosition>,
    /// Its position in its memory.
    told: Option<FramePosition>,
    watched: Option<Key>,
    /// One bit for each threshold that is crossed, told of, and not back yet.
    crossed: u32,
}

/// Returns true if a sight is worse than what was stored of its thing last. So what flaps goes before a limit as often
/// as there are levels, until something better was stored, which the limit allows when it is time.
fn is_worse(thing: &Thing, sight: &Sighting) -> bool {
    thing.badness.zip(sight.badness).is_some_and(|(was, is)| is > was)
}

/// Nanoseconds.
const HOUR: i64 = 3_600_000_000_000;

/// Sightings and memories of a rule.
#[derive(Debug)]
pub struct SightingTracker {
    policy: Policy,
    /// The hour by the clock that `new_in_hour` is of.
    hour: i64,
    new_in_hour: u64,
    things: Things<Thing>,
    latest: Stamp,
    /// Things that went while their memory did not tell all; no more than there may be things.
    gone: Vec<Thing>,
    most: usize,
}

impl SightingTracker {
    /// A tracker that knows at most `most` things at once.
    pub fn new(policy: Policy, most: usize) -> Self {
        Self {
            policy,
            things: Things::new(most),
            latest: Stamp::MIN,
            hour: 0,
            new_in_hour: 0,
            gone: Vec::new(),
            most,
        }
    }

    /// Number of things it knows.
    pub fn len(&self) -> usize {
        self.things.len()
    }

    /// Notices time that began again. To be called before a message is looked at.
    pub fn at(&mut self, received: Stamp) {
        if received.saturating_add(NEW_START) < self.latest {
            let gone: Vec<Thing> = self.things.drain().collect();
            gone.into_iter().for_each(|thing| self.let_go(thing));
            self.latest = received;
            self.new_in_hour = 0;
        }
        self.latest = self.latest.max(received);
        let hour = self.latest.nanos().div_euclid(HOUR);
        if hour != self.hour {
            (self.hour, self.new_in_hour) = (hour, 0);
        }
    }

    /// Returns true if that name was stored too lately for anything else; no place needed.
    pub fn is_too_soon(&self, sight: &Sighting) -> bool {
        self.policy.merge.is_none() && self.too_soon(sight)
    }

    fn too_soon(&self, sight: &Sighting) -> bool {
        self.due(&sight.key).zip(self.policy.at_most_every).is_some_and(|(due, every)| {
            sight.received < due.saturating_sub(EARLY.min(every / 4))
                && !self.things.of(&sight.key).any(|(_, thing)| is_worse(thing, sight))
        })
    }

    /// Time from which something of that name may be kept again.
    fn due(&self, key: &Key) -> Option<Stamp> {
        let slot = self.things.of(key).map(|(_, thing)| thing.slot).max()?;
        Some(slot.saturating_add(self.policy.at_most_every?))
    }

    /// The verdict on a sight. Changes nothing.
    pub fn look(&self, sight: &Sighting) -> Verdict {
        let known = self.known(sight);
        let touch = known.map(|(touch, _)| touch);
        if !self.fires(known.map(|(_, thing)| thing), sight) {
            return Verdict::Unchanged(touch);
        }
        match (&self.policy.merge, known) {
            (Some(merge), Some((touch, thing))) => {
                if sight.received < thing.stored.saturating_add(merge.update_every)
                    && !is_worse(thing, sight)
                {
                    Verdict::Counted(touch)
                } else {
                    Verdict::Again(touch)
                }
            }
            _ if self.too_soon(sight) => Verdict::TooSoon(touch),
            _ if self.policy.at_most_per_hour.is_some_and(|most| self.new_in_hour >= most)
                && !known.is_some_and(|(_, thing)| is_worse(thing, sight)) =>
            {
                Verdict::TooMany(touch)
            }
            _ => Verdict::New,
        }
    }

    /// The thing that is seen, if it is a known one: the nearest.
    fn known(&self, sight: &Sighting) -> Option<(Touch, &Thing)> {
        let Some(merge) = self.policy.merge else {
            return self.things.of(&sight.key).next();
        };
        let distance = |thing: &Thing| match (merge.within_m, &thing.place, &sight.place) {
            (None, ..) | (Some(_), None, None) => Some(0.0),
            (Some(within), Some(was), Some(is)) => {
                was.distance_m(is).filter(|distance| *distance <= within)
            }
            (Some(_), ..) => None,
        };
        self.things
            .of(&sight.key)
            .filter(|(_, thing)| sight.received <= thing.seen.saturating_add(merge.within))
            .filter_map(|(touch, thing)| Some((distance(thing)?, touch, thing)))
            // Of several at one distance the one seen last.
            .min_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))
            .map(|(_, touch, thing)| (touch, thing))
    }

    /// Returns true if anything asks for it to be kept. Without a trigger everything does.
    fn fires(&self, known: Option<&Thing>, sight: &Sighting) -> bool {
        let policy = &self.policy;
        if !policy.is_triggered() {
            return true;
        }
        let moves = policy.beyond_m.is_some() || policy.beyond_rad.is_some();
        let changed = || match known {
            Some(thing) => thing.watched != sight.watched,
            None => sight.assumed.is_none() || sight.assumed != sight.watched,
        };
        let moved = || {
            let Some(thing) = known else { return true };
            let (Some(was), Some(is)) = (&thing.moved, &sight.moved) else {
                return thing.moved.is_some() != sight.moved.is_some();
            };
            // In another frame it cannot be told, so it is told of.
            let beyond = |limit: Option<f64>, by: Option<f64>| {
                limit.is_some_and(|limit| by.is_none_or(|by| by > limit))
            };
            beyond(policy.beyond_m, was.distance_m(is))
                || beyond(policy.beyond_rad, was.turned_rad(is))
        };
        let crossed = || {
            let held = known.map_or(0, |thing| self.held(thing.crossed, sight));
            self.beyond(sight) & !held != 0
        };
        let worse = || known.is_some_and(|thing| is_worse(thing, sight));
        (policy.on_change && changed()) || (moves && moved()) || crossed() || worse()
    }

    /// The thresholds a sight is beyond of, as bits.
    fn beyond(&self, sight: &Sighting) -> u32 {
        self.bits(sight, Threshold::is_beyond)
    }

    /// Of the crossed ones, those that are not back.
    fn held(&self, crossed: u32, sight: &Sighting) -> u32 {
        crossed & !self.bits(sight, Threshold::is_back)
    }

    fn bits(&self, sight: &Sighting, holds: impl Fn(&Threshold, f64) -> bool) -> u32 {
        let readings = self.policy.thresholds.iter().zip(&sight.readings).zip(0..u32::BITS);
        readings.fold(0, |bits, ((threshold, reading), bit)| {
            let holds = reading.is_some_and(|reading| holds(threshold, reading));
            bits | u32::from(holds) << bit
        })
    }

    /// Takes note of a sight and the verdict [`SightingTracker::look`] just gave on it. `memo` says what a new
    /// memory is called. The thing as it is now, if there is one, and how many sights its memory did
    /// not tell of before, this one included.
    pub fn note(
        &mut self,
        sight: Sighting,
        verdict: Verdict,
        memo: impl FnOnce() -> Memo,
    ) -> Option<(&Thing, u64)> {
        let (touch, stored) = match verdict {
            Verdict::New => (None, true),
            Verdict::Again(touch) => (Some(touch), true),
            Verdict::Counted(touch) => (Some(touch), false),
            Verdict::Unchanged(touch) | Verdict::TooSoon(touch) | Verdict::TooMany(touch) => {
                let touch = touch?;
                let held = self.held(self.things.get(touch)?.crossed, &sight);
                let thing = self.things.touch(touch)?;
                thing.seen = thing.seen.max(sight.received);
                thing.crossed = held;
                return Some((thing, thing.untold));
            }
        };
        // Without merging a name has one thing, which a new memory takes over from.
        let before = touch.or_else(|| {
            let is_only = self.policy.merge.is_none();
            self.things.of(&sight.key).next().filter(|_| is_only).map(|(touch, _)| touch)
        });
        let was = before.and_then(|touch| self.things.get(touch)).map_or(0, |thing| thing.crossed);
        let mut crossed = self.held(was, &sight);
        if stored {
            crossed |= self.beyond(&sight);
        }
        // A source that is a little early each time does not get a faster pace by it.
        let early = self.due(&sight.key).filter(|due| {
            let by = due.nanos_since(sight.received);
            by > 0 && i128::from(by) <= EARLY.as_nanos().cast_signed()
        });
        let slot = early.unwrap_or(sight.received);
        let Some(touch) = touch else {
            self.new_in_hour += 1;
            self.forget_old(&sight);
            let thing = Thing {
                memo: memo(),
                count: 1,
                untold: 0,
                first: sight.event,
                last: sight.event,
                heard: sight.is_live.then_some(sight.received),
                seen: sight.received,
                stored: sight.received,
                slot,
                badness: sight.badness,
                late: None,
                moved: sight.moved,
                told: sight.place.clone(),
                place: sight.place,
                watched: sight.watched,
                crossed,
            };
            if let Some(gone) = self.things.insert(sight.key, thing) {
                self.let_go(gone);
            }
            return self.things.of(&sight.key).last().map(|(_, thing)| (thing, 1));
        };
        let thing = self.things.touch(touch)?;
        let seen = thing.untold + 1;
        thing.count += 1;
        thing.untold = if stored { 0 } else { seen };
        thing.first = thing.first.min(sight.event);
        thing.heard = sight.is_live.then_some(sight.received);
        // Whose clock was ahead when the thing was seen before does not decide when it was seen last.
        let was_ahead = sight.is_live
            && sight.event < thing.last
            && is_a_clock_wrong(sight.event, sight.received, thing.last);
        thing.last = if was_ahead { sight.event } else { thing.last.max(sight.event) };
        thing.seen = thing.seen.max(sight.received);
        thing.place = sight.place;
        thing.crossed = crossed;
        if stored {
            thing.told = thing.place.clone().or(thing.told.take());
            thing.stored = thing.stored.max(sight.received);
            thing.slot = slot;
            thing.badness = sight.badness;
            thing.late = None;
            thing.moved = sight.moved;
            thing.watched = sight.watched;
        }
        Some((thing, seen))
    }

    /// Keeps what the memory of the thing noted last should say of the sight just noted, until it is told.
    pub fn hold(&mut self, late: KeptResource) {
        if let Some(thing) = self.things.last_mut() {
            let before = thing.late.take();
            thing.late = Some(Box::new(match before {
                Some(before) => super::fold::following(*before, late),
                None => late,
            }));
        }
    }

    /// Lets go of the things of that name that a new one stands for: the one there was, or with
    /// merging those not seen for too long.
    fn forget_old(&mut self, sight: &Sighting) {
        let merge = self.policy.merge;
        let is_old = |thing: &Thing| {
            merge.is_none_or(|merge| sight.received > thing.seen.saturating_add(merge.within))
        };
        let old: Vec<Touch> = self
            .things
            .of(&sight.key)
            .filter(|(_, thing)| is_old(thing))
            .map(|(touch, _)| touch)
            .collect();
        for touch in old {
            if let Some((_, gone)) = self.things.remove(touch) {
                self.let_go(gone);
            }
        }
    }

    /// Sights that a memory does not report are reported later, unless no rule asks for it.
    fn let_go(&mut self, thing: Thing) {
        if thing.untold > 0 && self.gone.len() < self.most {
            self.gone.push(thing);
        }
    }

    /// Returns true if any of the things has the memory of that id.
    pub fn has_memory(&self, id: &str) -> bool {
        self.things.iter().chain(&self.gone).any(|thing| thing.memo.id == id)
    }

    /// The memory of that id lies there by now, because the map moved: so does its thing, or it would be
    /// another one when it is seen there.
    pub fn map_moved(&mut self, id: &str, to: &FramePosition) {
        let things = self.things.iter_mut().chain(&mut self.gone);
        for thing in things.filter(|thing| thing.memo.id == id) {
            let told = thing.told.replace(to.clone());
            let from = told.filter(|told| told.frame == to.frame).unwrap_or_else(|| to.clone());
            for spot in thing.place.iter_mut().chain(&mut thing.moved) {
                *spot = spot.carried(&from, to);
            }
            if let Some(late) = &mut thing.late {
                super::fold::carry(late, &to.frame, &from.to(to));
            }
        }
    }

    /// The things whose memories do not tell yet how often they were seen, and may be written again by
    /// now; with `all` also those that were written lately. They count as told from here on.
    pub fn untold(&mut self, now: Stamp, all: bool) -> Vec<Thing> {
        let mut found = std::mem::take(&mut self.gone);
        let Some(merge) = self.policy.merge else { return found };
        for thing in self.things.iter_mut() {
            if thing.untold > 0 && (all || thing.stored.saturating_add(merge.update_every) <= now) {
                let late = thing.late.take();
                found.push(Thing { late, ..thing.clone() });
                thing.untold = 0;
                thing.stored = thing.stored.max(now);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests;
