//! One rule at work: a message and the transforms in, outcomes out.
//!
//! First each element of a message is drawn out, and placed if it will be stored or its place decides
//! about that; then all are judged. So a message that must wait for a transform has changed nothing.

use std::sync::Arc;

use nalgebra::{Point3, UnitQuaternion};
use omir_core::geo::{EARTH_RADIUS_M, GeoPoint};
use omir_core::instant::Instant;
use omir_core::spatial::SpatialPose;
use omir_core::value::Value as Json;
use sha2::{Digest, Sha256};

use super::Arrival;
use super::bind::{Bound, PlaceFrom, first_half, watched};
use super::config::{Condition, Make, StampFrom, TopicRule, Whence, WithoutTransform};
use super::extract::{StatedPose, child_frame_of, frame_of, geo_of, own_stamp, pose_of};
use super::keep::{Memo, Sight, Spot, Verdict, Watch};
use super::outcome::{Kept, Outcome, Reason, Untold, Wait};
use super::resource::{Making, Placement, entity_id, level_of, origin, record_id};
use super::template::{FieldRef, Scene, stamp_of};
use super::things::Key;
use super::written::ConfigError;
use crate::interface::MessageType;
use crate::message::{Message, Value};
use crate::stamp::Stamp;
use crate::tf::transform::rotate_covariance;
use crate::tf::{Buffer, LookupError};

/// What all rules share.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The frame that poses are stored in.
    pub fixed_frame: String,
    /// The frame of the robot.
    pub robot_frame: String,
    /// Most things a rule knows again.
    pub things: usize,
}

/// A rule, and what it has seen.
#[derive(Debug)]
pub struct Rule {
    /// The rule.
    pub written: TopicRule,
    /// One for each type of that name; a type that changed takes the place of the one before.
    bindings: Vec<Binding>,
}

#[derive(Debug)]
struct Binding {
    ty: Arc<MessageType>,
    state: Result<State, ConfigError>,
}

#[derive(Debug)]
struct State {
    bound: Bound,
    watch: Watch,
}

impl Rule {
    /// A rule that has seen nothing.
    pub fn new(written: TopicRule) -> Self {
        Self { written, bindings: Vec::new() }
    }

    /// Makes it ready for messages of that type, if it is not.
    ///
    /// # Errors
    /// What does not fit.
    pub fn bind(&mut self, ty: &Arc<MessageType>, setup: &Setup) -> Result<(), ConfigError> {
        let state = state_for(&self.written, &mut self.bindings, ty, setup);
        state.map(|_| ()).map_err(ConfigError::clone)
    }

    /// What becomes of a message. If it `may_wait`, either all of it is decided or nothing.
    pub fn observe(
        &mut self,
        arrival: &Arrival<'_>,
        message: &Message,
        tf: &Buffer,
        setup: &Setup,
        may_wait: bool,
    ) -> Vec<Outcome> {
        let state = state_for(&self.written, &mut self.bindings, message.ty(), setup);
        let Ok(State { bound, watch }) = state else {
            return vec![Outcome::Dropped(Reason::WrongType)];
        };
        watch.at(arrival.received);
        let looker = Looker { bound, tf, setup, arrival, message };
        let mut candidates = Vec::new();
        for (index, element) in elements(bound, message).into_iter().enumerate() {
            let mut candidate = looker.candidate(element, index);
            if let Ok(candidate) = &mut candidate
                && looker.is_to_be_placed(watch, &candidate.sight)
            {
                match looker.place(candidate) {
                    Err((expected, reason)) if may_wait => {
                        return vec![Outcome::Wait(Wait { rule: 0, expected, reason })];
                    }
                    Ok(()) | Err(_) => {}
                }
            }
            candidates.push(candidate);
        }
        let mut encoded = None;
        let mut decide = |candidate| {
            let name = &self.written.name;
            looker.decide(candidate, watch, |element, event| {
                let bytes = encoded.get_or_insert_with(|| message.encode());
                record_id(name, arrival.topic, event, element, bytes)
            })
        };
        let outcomes = candidates.into_iter();
        outcomes.map(|candidate| candidate.map_or_else(Outcome::Dropped, &mut decide)).collect()
    }

    /// How often things were seen since their memories were written; see
    /// [`Rules::untold`](super::Rules::untold).
    pub fn untold(&mut self, now: Stamp, all: bool) -> Vec<Untold> {
        let states = self.bindings.iter_mut().filter_map(|binding| binding.state.as_mut().ok());
        let untold = states.flat_map(|State { bound, watch }| {
            let kind = bound.make.resource_type();
            watch.untold(now, all).into_iter().map(move |thing| Untold {
                reference: format!("{kind}/{}", thing.memo.id),
                seen: thing.untold,
                last: thing.last,
            })
        });
        untold.collect()
    }

    /// How many things it knows again.
    pub fn things(&self) -> usize {
        let states = self.bindings.iter().filter_map(|binding| binding.state.as_ref().ok());
        states.map(|state| state.watch.len()).sum()
    }

    /// Why messages are dropped, for each type that does not fit.
    pub fn misfits(&self) -> impl Iterator<Item = &ConfigError> {
        self.bindings.iter().filter_map(|binding| binding.state.as_ref().err())
    }
}

fn state_for<'a>(
    written: &TopicRule,
    bindings: &'a mut Vec<Binding>,
    ty: &Arc<MessageType>,
    setup: &Setup,
) -> Result<&'a mut State, &'a ConfigError> {
    let known = bindings.iter().position(|binding| binding.ty.name == ty.name);
    let at = match known {
        Some(at) if Arc::ptr_eq(&bindings[at].ty, ty) || *bindings[at].ty == **ty => at,
        _ => {
            let state = Bound::new(written, ty).map(|bound| State {
                watch: Watch::new(bound.policy.clone(), setup.things),
                bound,
            });
            let binding = Binding { ty: ty.clone(), state };
            match known {
                Some(at) => {
                    bindings[at] = binding;
                    at
                }
                None => {
                    bindings.push(binding);
                    bindings.len() - 1
                }
            }
        }
    };
    match &mut bindings[at].state {
        Ok(state) => Ok(state),
        Err(error) => Err(error),
    }
}

/// What the rule looks at: the message, or each element of its list.
fn elements<'a>(bound: &Bound, message: &'a Message) -> Vec<&'a Message> {
    let Some(each) = &bound.each else { return vec![message] };
    messages(each, &Scene { whole: message, element: message, topic: "", node: None })
}

/// The messages that a field leads to.
fn messages<'a>(field: &FieldRef, scene: &Scene<'a>) -> Vec<&'a Message> {
    let found = field.select(scene).into_iter();
    found
        .filter_map(|value| match value {
            std::borrow::Cow::Borrowed(Value::Message(message)) => Some(message),
            _ => None,
        })
        .collect()
}

/// One element before the verdict.
struct Candidate<'a> {
    scene: Scene<'a>,
    index: usize,
    sight: Sight,
    stated: Option<StatedPose>,
    geo: Option<GeoPoint>,
    entity: Option<String>,
    placement: Option<Placement>,
}

/// A rule that looks at a message.
struct Looker<'a> {
    bound: &'a Bound,
    tf: &'a Buffer,
    setup: &'a Setup,
    arrival: &'a Arrival<'a>,
    message: &'a Message,
}

impl<'a> Looker<'a> {
    /// Draws out of an element what the verdict goes by, as far as no transform is needed.
    fn candidate(&self, element: &'a Message, index: usize) -> Result<Candidate<'a>, Reason> {
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
        let name = |template: &Option<super::template::Template>| match template {
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
        let own = stated.as_ref().filter(|_| bound.in_own_frame).and_then(StatedPose::spot);
        let sight = Sight {
            key,
            received: arrival.received,
            event: self.event(&scene),
            moved: geo.map(ground_spot).or(own),
            place: None,
            watched: (!bound.on_change.is_empty()).then(|| watched(&bound.on_change, &scene)),
            assumed: bound.assumed,
            readings: bound.readings.iter().map(|field| field.number(&scene)).collect(),
        };
        Ok(Candidate { scene, index, sight, stated, geo, entity, placement: None })
    }

    /// What is merged is the same thing on every topic; what is watched is watched on each.
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

    /// Whether a place is needed: to decide, or because it will be stored.
    fn is_to_be_placed(&self, watch: &Watch, sight: &Sight) -> bool {
        if self.bound.needs_place() {
            return !watch.is_too_soon(sight);
        }
        matches!(watch.look(sight), Verdict::New | Verdict::Again(_))
    }

    /// Puts it where it was at the time of the event. If that is not known but will be, this is done
    /// without, and the error says when it will be and what is missing.
    fn place(&self, candidate: &mut Candidate<'_>) -> Result<(), (Stamp, String)> {
        let (bound, setup) = (self.bound, self.setup);
        let event = candidate.sight.event;
        let at_origin = |frame: &str| SpatialPose {
            orientation: Some(UnitQuaternion::identity()),
            child_frame: Some(frame.to_owned()),
            ..SpatialPose::new(frame, Point3::origin())
        };
        let stated = match (&bound.place, &candidate.stated) {
            (PlaceFrom::Nowhere, _) => None,
            (PlaceFrom::Robot, _) => Some(at_origin(&setup.robot_frame)),
            (PlaceFrom::FrameOfMessage, _) => {
                let frame = frame_of(candidate.scene.element);
                Some(at_origin(frame.as_deref().unwrap_or(&setup.robot_frame)))
            }
            (PlaceFrom::Stated(_), Some(stated)) => stated.to_spatial(),
            (PlaceFrom::Stated(_), None) => None,
        };
        let mut placement = Placement::default();
        let mut wait = Ok(());
        match stated {
            None if matches!(bound.place, PlaceFrom::Stated(_)) => {
                placement.missing = Some("the message names no frame".into());
            }
            None => {}
            Some(mut own) => {
                own.geo = candidate.geo;
                own.stamp = Some(Instant::from(event));
                match in_frame(&setup.fixed_frame, &own, event, self.tf) {
                    Ok(fixed) => placement.fixed = Some(fixed),
                    Err(error) => {
                        wait = error.expected().map_or(Ok(()), |at| Err((at, error.to_string())));
                        // A robot without that frame has no place; no need to say so each time.
                        let is_silent = bound.place == PlaceFrom::Robot
                            && bound.without_transform == WithoutTransform::Keep
                            && matches!(error, LookupError::UnknownFrame { .. });
                        placement.missing = (!is_silent).then(|| error.to_string());
                    }
                }
                // Where the robot is in its own frame says nothing.
                let says_something =
                    matches!(bound.place, PlaceFrom::Stated(_)) || candidate.geo.is_some();
                let is_origin = placement.fixed.is_some() && candidate.stated.is_none();
                if own.frame != setup.fixed_frame && says_something && !is_origin {
                    placement.own = Some(own);
                }
            }
        }
        let spot = placement.fixed.as_ref().or(placement.own.as_ref()).map(spot_of);
        if candidate.geo.is_none() && !bound.in_own_frame {
            candidate.sight.moved.clone_from(&spot);
        }
        candidate.sight.place = spot.or_else(|| candidate.geo.map(ground_spot));
        candidate.placement = Some(placement);
        wait
    }

    /// The verdict, and the resource if there is to be one.
    fn decide(
        &self,
        mut candidate: Candidate<'_>,
        watch: &mut Watch,
        id: impl FnOnce(usize, Stamp) -> String,
    ) -> Outcome {
        let bound = self.bound;
        let mut verdict = watch.look(&candidate.sight);
        if matches!(verdict, Verdict::New | Verdict::Again(_)) && candidate.placement.is_none() {
            // An element before this one changed what it is compared with.
            _ = self.place(&mut candidate);
            verdict = watch.look(&candidate.sight);
        }
        let is_new = match verdict {
            Verdict::New => true,
            Verdict::Again(_) => false,
            Verdict::Counted(_) | Verdict::Unchanged(_) | Verdict::TooSoon(_) => {
                let count = watch
                    .note(candidate.sight, verdict, Memo::default)
                    .map_or(0, |(thing, _)| thing.count);
                return match verdict {
                    Verdict::TooSoon(_) => Outcome::Dropped(Reason::TooSoon),
                    Verdict::Unchanged(_) => Outcome::Dropped(Reason::Unchanged),
                    _ => Outcome::Merged { count },
                };
            }
        };
        let Candidate { scene, index, sight, entity, placement, .. } = candidate;
        let placement = placement.unwrap_or_default();
        if placement.missing.is_some() && bound.without_transform == WithoutTransform::Drop {
            return Outcome::Dropped(Reason::NoTransform);
        }
        let text = bound.text.render(&scene);
        if text.is_empty() {
            return Outcome::Dropped(Reason::NoText);
        }
        let (event, topic) = (sight.event, self.arrival.topic);
        let created = sight.received;
        let element = bound.each.is_some().then_some(index);
        let name = entity.as_deref();
        let noted = watch.note(sight, verdict, || Memo {
            id: match (bound.make, name) {
                (Make::Entity, Some(name)) => entity_id(name),
                _ => id(index, event),
            },
            origin: origin(topic, event, element),
            created,
        });
        let Some((thing, seen)) = noted else { return Outcome::Dropped(Reason::Unchanged) };
        let unplaced = placement.missing.clone();
        let making = Making { bound, scene, thing, event, text, entity, placement };
        let (resource, about) = making.finish();
        if resource == Json::Null {
            return Outcome::Dropped(Reason::NoName);
        }
        Outcome::Keep(Box::new(Kept { resource, about, seen, is_new, unplaced }))
    }
}

impl StatedPose {
    fn spot(&self) -> Option<Spot> {
        Some(Spot {
            frame: self.frame.clone()?,
            position: self.position,
            orientation: self.orientation,
        })
    }

    fn to_spatial(&self) -> Option<SpatialPose> {
        Some(SpatialPose {
            orientation: self.orientation,
            covariance: self.covariance.clone(),
            child_frame: self.child_frame.clone(),
            ..SpatialPose::new(self.frame.clone()?, self.position)
        })
    }
}

fn spot_of(pose: &SpatialPose) -> Spot {
    Spot { frame: pose.frame.clone(), position: pose.position, orientation: pose.orientation }
}

/// A place on the ground as metres from the middle of the Earth, in the frame that REP-105 calls so.
/// Height is left out, in which receivers err most. Between places a metre or a kilometre apart the
/// straight distance is that on the ground.
fn ground_spot(geo: GeoPoint) -> Spot {
    let position = Point3::from(geo.unit_vector()) * EARTH_RADIUS_M;
    Spot { frame: "earth".into(), position, orientation: None }
}

/// The same pose, told in another frame as both were at that moment.
fn in_frame(
    frame: &str,
    pose: &SpatialPose,
    at: Stamp,
    tf: &Buffer,
) -> Result<SpatialPose, LookupError> {
    let transform = tf.lookup(frame, &pose.frame, at)?;
    let covariance = pose.covariance.as_ref();
    Ok(SpatialPose {
        frame: frame.to_owned(),
        position: transform * pose.position,
        orientation: pose.orientation.map(|orientation| transform.rotation * orientation),
        covariance: covariance.map(|known| Box::new(rotate_covariance(known, &transform))),
        ..pose.clone()
    })
}

/// The message that states something: the element itself, or one in it.
fn from<'a>(whence: &Whence, scene: &Scene<'a>) -> Option<&'a Message> {
    match whence {
        Whence::Itself => Some(scene.element),
        Whence::Field(field) => messages(field, scene).into_iter().next(),
    }
}

/// Whether a condition holds. What is not there, or is NaN, is within no bounds.
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
