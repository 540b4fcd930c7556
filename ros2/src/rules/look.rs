//! A rule looks at a message: what its elements are, what the verdict goes by, and what is made of them.

use std::borrow::Cow;

use omir_core::geo::GeoPoint;
use omir_core::value::Value as Json;
use sha2::{Digest, Sha256};

use super::Arrival;
use super::bind::{Bound, PlaceFrom, first_half, watched};
use super::config::{
    Condition, ResourceKind, StampFrom, UnlocalisedPolicy, ValueSource, WithoutTransform,
};
use super::decision::{Decision, KeptResource, Reason};
use super::extract::{StatedPose, child_frame_of, frame_of, geo_of, own_stamp, pose_of};
use super::placing::{Placement, Setup, ground_spot, origin_of};
use super::resource::{ResourceInputs, entity_id, level_of, origin};
use super::sighting::{Memo, Sighting, Verdict};
use super::sighting_tracker::SightingTracker;
use super::template::{FieldRef, Scene, Template, stamp_of};
use super::things::Key;
use crate::message::{Message, Value};
use crate::stamp::Stamp;
use crate::tf::{Buffer, LookupError};

/// The subject of the rule: the message, or each element of its list.
pub fn elements<'a>(bound: &Bound, message: &'a Message) -> Vec<&'a Message> {
    let Some(each) = &bound.each else { return vec![message] };
    messages(each, &Scene { whole: message, element: message, topic: "", node: None })
}

/// The messages that a field leads to.
fn messages<'a>(field: &FieldRef, scene: &Scene<'a>) -> Vec<&'a Message> {
    let found = field.select(scene).into_iter();
    found
        .filter_map(|value| match value {
            Cow::Borrowed(Value::Message(message)) => Some(message),
            _ => None,
        })
        .collect()
}

/// One element before the verdict.
pub struct Candidate<'a> {
    scene: Scene<'a>,
    index: usize,
    /// Facts behind the verdict.
    pub sight: Sighting,
    stated: Option<StatedPose>,
    geo: Option<GeoPoint>,
    entity: Option<String>,
    placement: Option<Placement>,
    /// True if the robot does not know where it is, and the rule drops it for that.
    is_lost: bool,
}

/// A rule that looks at a message.
pub struct RuleEvaluation<'a> {
    /// The rule.
    pub bound: &'a Bound,
    /// The transforms.
    pub tf: &'a Buffer,
    /// The frames that matter.
    pub setup: &'a Setup,
    /// The message's way here.
    pub arrival: &'a Arrival<'a>,
    /// The message.
    pub message: &'a Message,
}

impl<'a> RuleEvaluation<'a> {
    /// Draws out of an element what the verdict goes by, as far as no transform is needed.
    pub fn candidate(&self, element: &'a Message, index: usize) -> Result<Candidate<'a>, Reason> {
        let (bound, arrival) = (self.bound, self.arrival);
        let scene =
            Scene { whole: self.message, element, topic: arrival.topic, node: arrival.node };
        if let Some(levels) = &bound.levels
            && !level_of(&scene).is_some_and(|level| levels.contains(&level))
        {
            return Err(Reason::Level);
        }
        if !bound.only.iter().all(|condition| holds(condition, &scene)) {
            return Err(Reason::Condition);
        }
        let name = |template: &Option<Template>| match template {
            Some(template) => template.render_name(&scene).map(Some).ok_or(Reason::NoName),
            None => Ok(None),
        };
        let key = self.key(name(&bound.by)?.as_deref().unwrap_or_default());
        let entity = name(&bound.entity)?;
        let stated = match &bound.place {
            PlaceFrom::Stated(whence) => {
                let stated = from(whence, &scene).and_then(pose_of).ok_or(Reason::BadPose)?;
                Some(self.with_frames(stated, &scene))
            }
            _ => None,
        };
        let geo = match &bound.geo {
            Some(whence) => Some(from(whence, &scene).and_then(geo_of).ok_or(Reason::BadPose)?),
            None => None,
        };
        let own = stated.as_ref().filter(|_| bound.in_own_frame).map(StatedPose::spot);
        let sight = Sighting {
            key,
            received: arrival.received,
            is_live: arrival.is_live,
            event: self.event(&scene),
            moved: geo.map(ground_spot).or(own),
            place: None,
            watched: (!bound.on_change.is_empty()).then(|| watched(&bound.on_change, &scene)),
            assumed: bound.assumed,
            readings: bound.readings.iter().map(|field| field.number(&scene)).collect(),
            badness: bound.worsens.as_ref().and_then(|worsens| worsens.badness(&scene)),
        };
        Ok(Candidate { scene, index, sight, stated, geo, entity, placement: None, is_lost: false })
    }

    /// Merged things are the same on every topic; watched ones are watched on each.
    fn key(&self, name: &str) -> Key {
        let mut hasher = Sha256::new();
        if self.bound.policy.merge.is_none() {
            hasher.update(self.arrival.topic);
        }
        hasher.update([0]);
        hasher.update(name);
        first_half(hasher)
    }

    fn event(&self, scene: &Scene<'_>) -> Stamp {
        let stamp = match &self.bound.stamp {
            Some(StampFrom::Received) => None,
            Some(StampFrom::Field(field)) => messages(field, scene)
                .first()
                .and_then(|time| stamp_of(time))
                .filter(|stamp| !stamp.is_zero()),
            None => own_stamp(scene.element).or_else(|| own_stamp(scene.whole)),
        };
        stamp.unwrap_or(self.arrival.received)
    }

    /// The rule's word on the frame goes before that of the nearest header.
    fn with_frames(&self, stated: StatedPose, scene: &Scene<'_>) -> StatedPose {
        let by_rule = self.bound.frame.as_ref().and_then(|frame| frame.render_name(scene));
        let frame = by_rule
            .or(stated.frame)
            .or_else(|| frame_of(scene.element))
            .or_else(|| frame_of(scene.whole));
        let child_frame = stated.child_frame.or_else(|| child_frame_of(scene.element));
        StatedPose { frame, child_frame, ..stated }
    }

    /// Returns true if a place is needed: to decide, or because it will be stored.
    pub fn is_to_be_placed(&self, tracker: &SightingTracker, sight: &Sighting) -> bool {
        if self.bound.needs_place() {
            return !tracker.is_too_soon(sight);
        }
        is_told(tracker.look(sight))
    }

    /// Puts it where it was at the time of the event. If that is not known but will be, this is done
    /// without, and the error says when it will be and what is missing.
    pub fn place(&self, candidate: &mut Candidate<'_>) -> Result<(), (Stamp, String)> {
        let (bound, setup) = (self.bound, self.setup);
        let event = candidate.sight.event;
        let origin = |frame: Option<String>| {
            Cow::Owned(origin_of(frame.as_deref().unwrap_or(&setup.robot_frame)))
        };
        let stated = match (&bound.place, &candidate.stated) {
            (PlaceFrom::Nowhere, _) => None,
            (PlaceFrom::Robot, _) => Some(origin(None)),
            (PlaceFrom::FrameOfMessage, _) => Some(origin(frame_of(candidate.scene.element))),
            (PlaceFrom::Stated(_), stated) => stated.as_ref().map(Cow::Borrowed),
        };
        let (mut placement, lacks) = match stated {
            Some(stated) => setup.place(&stated, candidate.geo, event, self.tf),
            None => (Placement::default(), None),
        };
        let asked = bound.localised.as_ref().filter(|_| placement.fixed.is_some());
        let lost = asked.and_then(|asked| {
            let why = setup.localisation.judge(asked, event, self.tf).err()?;
            Some((why, asked.otherwise))
        });
        let is_in_map = lacks.is_none() && lost.is_none();
        match bound.place {
            PlaceFrom::Robot | PlaceFrom::FrameOfMessage => {
                // The pose of a frame within itself says nothing, except its place on the Earth.
                placement.own = placement.own.filter(|own| own.geo.is_some() && !is_in_map);
                // A robot without that frame has no place; no need to say so each time.
                let is_silent = bound.without_transform == WithoutTransform::Keep
                    && matches!(lacks, Some(LookupError::UnknownFrame { .. }));
                placement.missing = placement.missing.filter(|_| !is_silent);
            }
            PlaceFrom::Stated(_) | PlaceFrom::Nowhere => {}
        }
        candidate.is_lost = matches!(lost, Some((_, UnlocalisedPolicy::Drop)));
        if let Some((why, otherwise)) = lost {
            placement.withhold(why.to_string(), otherwise);
        }
        let stated = || candidate.stated.as_ref().map(StatedPose::spot);
        let spot = placement.spot().or_else(stated);
        if candidate.geo.is_none() && !bound.in_own_frame {
            candidate.sight.moved.clone_from(&spot);
        }
        candidate.sight.place = spot.or_else(|| candidate.geo.map(ground_spot));
        candidate.placement = Some(placement);
        match lacks.and_then(|error| Some((error.expected()?, error.to_string()))) {
            Some(wait) => Err(wait),
            None => Ok(()),
        }
    }

    /// The verdict, and the resource if there is to be one.
    pub fn decide(
        &self,
        mut candidate: Candidate<'_>,
        tracker: &mut SightingTracker,
        id: impl FnOnce(usize, Stamp) -> String,
    ) -> Decision {
        let bound = self.bound;
        let mut verdict = tracker.look(&candidate.sight);
        if is_told(verdict) && candidate.placement.is_none() {
            // An element before this one changed what it is compared with.
            _ = self.place(&mut candidate);
            verdict = tracker.look(&candidate.sight);
        }
        if candidate.is_lost {
            // Nothing is compared with it later: its place is unknown.
            return Decision::Dropped(Reason::NotLocalised);
        }
        let is_first = match verdict {
            Verdict::New => true,
            Verdict::Again(_) | Verdict::Counted(_) => false,
            Verdict::Unchanged(_) | Verdict::TooSoon(_) | Verdict::TooMany(_) => {
                tracker.note(candidate.sight, verdict, Memo::default);
                return Decision::Dropped(match verdict {
                    Verdict::TooSoon(_) => Reason::TooSoon,
                    Verdict::TooMany(_) => Reason::TooMany,
                    _ => Reason::Unchanged,
                });
            }
        };
        let Candidate { scene, index, sight, entity, placement, .. } = candidate;
        let placement = placement.unwrap_or_default();
        if placement.missing.is_some() && bound.without_transform == WithoutTransform::Drop {
            return Decision::Dropped(Reason::NoTransform);
        }
        let text = bound.text.render(&scene);
        if text.is_empty() {
            return Decision::Dropped(Reason::NoText);
        }
        let (event, topic) = (sight.event, self.arrival.topic);
        let created = sight.received;
        let heard = sight.is_live.then_some(sight.received);
        let element = bound.each.is_some().then_some(index);
        let name = entity.as_deref();
        let noted = tracker.note(sight, verdict, || Memo {
            id: match (bound.make, name) {
                (ResourceKind::Entity, Some(name)) => entity_id(name),
                _ => id(index, event),
            },
            origin: origin(topic, event, element),
            created,
        });
        let Some((thing, seen)) = noted else { return Decision::Dropped(Reason::Unchanged) };
        let unplaced = placement.missing.clone();
        let (count, is_last) = (thing.count, thing.last == event);
        let making = ResourceInputs { bound, scene, thing, event, text, entity, placement };
        let (resource, about) = making.finish();
        if resource == Json::Null {
            return Decision::Dropped(Reason::NoName);
        }
        let kept = KeptResource { resource, about, seen, is_first, unplaced, heard };
        if matches!(verdict, Verdict::Counted(_)) {
            // Told when it is time, unless something that happened later is by then.
            if is_last {
                tracker.hold(kept);
            }
            return Decision::Merged { count };
        }
        Decision::Keep(Box::new(kept))
    }
}

/// Returns true if its memory will tell of the sight, now or later.
fn is_told(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::New | Verdict::Again(_) | Verdict::Counted(_))
}

/// The message that states something: the element itself, or one in it.
fn from<'a>(whence: &ValueSource, scene: &Scene<'a>) -> Option<&'a Message> {
    match whence {
        ValueSource::Itself => Some(scene.element),
        ValueSource::Field(field) => messages(field, scene).into_iter().next(),
    }
}

/// Returns true if a condition holds. What is not there, or is NaN, is within no bounds.
fn holds(condition: &Condition, scene: &Scene<'_>) -> bool {
    let Condition { field, at_least, at_most, is } = condition;
    let bounds = || {
        let number = field.number(scene);
        at_least.is_none_or(|least| number.is_some_and(|number| number >= least))
            && at_most.is_none_or(|most| number.is_some_and(|number| number <= most))
    };
    let values = || {
        let values = field.select(scene);
        let Some(value) = values.first() else { return false };
        is.iter().any(|wanted| match (&**value, wanted) {
            (Value::Text(text), Json::Text(wanted)) => text == wanted,
            (Value::Bool(truth), Json::Bool(wanted)) => truth == wanted,
            (number, Json::Number(wanted)) => number.as_f64() == Some(wanted.as_f64()),
            _ => false,
        })
    };
    bounds() && (is.is_empty() || values())
}
