//! A rule for messages of one type: its own words, those of the type for what it does not say, and
//! every field of them checked.

use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use omir_core::model::{ExperienceType, Kind, Label};
use sha2::{Digest, Sha256};

use super::builtin;
use super::config::{
    Amount, Condition, Keep, Localised, Merging, PoseFrom, ResourceKind, SeverityField,
    SeverityRule, Spec, StampFrom, TopicRule, ValueSource, WithoutTransform,
};
use super::extract::{has_geo, has_pose};
use super::levels::Level;
use super::policy::{Merge, Policy};
use super::template::{FieldRef, Scene, Template, Types};
use super::things::Key;
use super::written::{Complaints, ConfigError};
use crate::interface::{Element, FieldType, MessageType, Shape};
use crate::message::Message;

/// A rule that would keep every message keeps one of a name in this time: a topic may send a thousand a
/// second, and a card wears out. `at_most_every_s = 0` keeps them all.
const UNLIMITED: Duration = Duration::from_secs(1);
/// An entity that nothing is said of is kept up to date this often.
const ENTITY: Merge =
    Merge { within_m: None, within: Duration::from_secs(3600), update_every: UNTOLD };
const UNTOLD: Duration = Duration::from_secs(60);

/// A rule and a type.
#[derive(Debug)]
pub struct Bound {
    pub make: ResourceKind,
    pub each: Option<FieldRef>,
    pub by: Option<Template>,
    pub text: Template,
    pub entity: Option<Template>,
    pub labels: Option<Vec<Label>>,
    pub kind: Option<Kind>,
    pub experience_type: ExperienceType,
    pub importance: Option<Amount>,
    pub confidence: Option<Amount>,
    pub half_life_h: Option<Amount>,
    pub anchored: Option<bool>,
    pub expires: Option<Duration>,
    pub place: PlaceFrom,
    pub frame: Option<Template>,
    pub geo: Option<ValueSource>,
    pub stamp: Option<StampFrom>,
    pub without_transform: WithoutTransform,
    pub localised: Option<Localised>,
    pub levels: Option<Vec<Level>>,
    pub only: Vec<Condition>,
    pub on_change: Vec<FieldRef>,
    pub readings: Vec<FieldRef>,
    /// The field that says how bad it is.
    pub worsens: Option<SeverityField>,
    pub in_own_frame: bool,
    /// Initial values of the watched fields.
    pub assumed: Option<Key>,
    pub policy: Policy,
}

/// Source of a memory's place, with what the type says.
#[derive(Debug, Clone, PartialEq)]
pub enum PlaceFrom {
    /// The position of the robot.
    Robot,
    /// The frame of the message: a receiver says where itself is.
    FrameOfMessage,
    /// It has no place.
    Nowhere,
    /// A value in the message.
    Stated(ValueSource),
}

impl Bound {
    /// The rule for messages of that type.
    ///
    /// # Errors
    /// What does not fit, under the keys of the rule.
    pub fn new(rule: &TopicRule, ty: &Arc<MessageType>) -> Result<Self, ConfigError> {
        let complaints = Complaints::default();
        let mut spec = rule.spec.clone().or(builtin::spec_of(&ty.name));
        let element = element_of(&rule.key, spec.each.as_ref(), ty, &complaints);
        let types = Types { whole: ty, element: &element };
        let check = Check { rule: &rule.key, types, complaints: &complaints };
        let make = spec.make.unwrap_or(ResourceKind::Record);
        let merge = merge_of(&spec, make);
        let keep = spec.keep.take().unwrap_or_default();
        check.texts(&spec);
        check.amounts(&spec);
        check.watched_fields(&keep);
        let worsens = check.worsens_of(&keep);
        check.levels(&keep);
        check.geo_and_stamp(&spec);
        let place = check.place_of(&spec);
        check.required(&spec, make);
        let assumed = keep.assume_zero.then(|| assumed_of(&keep.on_change, types));
        let policy = policy_of(&keep, merge);
        let Spec { text, entity, by, .. } = spec;
        complaints.or(()).map(|()| Self {
            make,
            each: spec.each,
            by: by.or_else(|| entity.clone().filter(|_| make == ResourceKind::Entity)),
            text: text.unwrap_or_default(),
            entity,
            labels: spec.labels,
            kind: spec.kind,
            experience_type: spec.experience_type.unwrap_or(ExperienceType::Observation),
            importance: spec.importance,
            confidence: spec.confidence,
            half_life_h: spec.half_life_h,
            anchored: spec.anchored,
            expires: spec.expires,
            place,
            frame: spec.frame,
            geo: spec.geo,
            stamp: spec.stamp,
            without_transform: spec.without_transform.unwrap_or(WithoutTransform::Keep),
            localised: spec.localised,
            levels: keep.levels,
            only: keep.only,
            on_change: keep.on_change,
            readings: keep.thresholds.into_iter().map(|(field, _)| field).collect(),
            worsens,
            in_own_frame: keep.in_own_frame,
            assumed,
            policy,
        })
    }

    /// Returns true if the place decides what is kept, so that it must be known first.
    pub fn needs_place(&self) -> bool {
        let moves = self.policy.beyond_m.is_some() || self.policy.beyond_rad.is_some();
        let by_transform = !self.in_own_frame && self.geo.is_none();
        (moves && by_transform) || self.policy.merge.is_some_and(|merge| merge.within_m.is_some())
    }
}

/// Checks the words of a rule against the types they are for, and notes what does not fit.
struct Check<'a> {
    /// The key of the rule.
    rule: &'a str,
    types: Types<'a>,
    complaints: &'a Complaints,
}

impl Check<'_> {
    fn complain(&self, name: &str, message: impl fmt::Display) {
        self.complaints.add(format!("{}.{name}", self.rule), message);
    }

    fn field(&self, name: &str, field: &FieldRef) {
        if let Err(error) = field.check(self.types) {
            self.complain(name, error);
        }
    }

    /// Returns true if an element says how bad it is by a level.
    fn has_level(&self) -> bool {
        Level::field_of(&self.types.element.name).is_some()
    }

    fn texts(&self, spec: &Spec) {
        for (name, template) in [
            ("by", &spec.by),
            ("text", &spec.text),
            ("entity", &spec.entity),
            ("frame", &spec.frame),
        ] {
            if let Some(Err(error)) = template.as_ref().map(|template| template.check(self.types)) {
                self.complain(name, error);
            }
        }
    }

    fn amounts(&self, spec: &Spec) {
        for (name, amount) in [
            ("importance", &spec.importance),
            ("confidence", &spec.confidence),
            ("half_life_h", &spec.half_life_h),
        ] {
            match amount {
                Some(Amount::Field(field)) => self.field(name, field),
                Some(Amount::ByLevel(_)) if !self.has_level() => {
                    let element = &self.types.element.name;
                    self.complain(name, format_args!("a {element} has no level"));
                }
                _ => {}
            }
        }
    }

    fn watched_fields(&self, keep: &Keep) {
        for condition in &keep.only {
            self.field("keep.only", &condition.field);
        }
        for field in &keep.on_change {
            self.field("keep.on_change", field);
        }
        for (field, threshold) in &keep.thresholds {
            self.field(if threshold.is_above { "keep.above" } else { "keep.below" }, field);
        }
    }

    /// Returns the field that says how bad something is.
    fn worsens_of(&self, keep: &Keep) -> Option<SeverityField> {
        match &keep.worsens {
            Some(SeverityRule::By(worse)) => {
                self.field("keep.worsens", &worse.field);
                Some(worse.clone())
            }
            Some(SeverityRule::Never) => None,
            // A message that says how bad it is says when it got worse, whatever else the rule keeps.
            None => {
                let field = Level::field_of(&self.types.element.name)?;
                Some(SeverityField { field: field.parse().ok()?, is_lower: false })
            }
        }
    }

    fn levels(&self, keep: &Keep) {
        if keep.levels.is_some() && !self.has_level() {
            let element = &self.types.element.name;
            self.complain("keep.levels", format_args!("a {element} has no level"));
        }
    }

    fn geo_and_stamp(&self, spec: &Spec) {
        check_message(self.types, &spec.geo, has_geo, |error| {
            self.complain("geo", format_args!("{error} with latitude and longitude"));
        });
        if let Some(StampFrom::Field(field)) = &spec.stamp {
            let is_time = |ty: &MessageType| {
                (ty.name.package(), ty.name.name()) == ("builtin_interfaces", "Time")
            };
            let whence = Some(ValueSource::Field(field.clone()));
            check_message(self.types, &whence, is_time, |error| {
                self.complain("stamp", format_args!("{error} of builtin_interfaces/msg/Time"));
            });
        }
    }

    /// Returns where a memory's place comes from.
    fn place_of(&self, spec: &Spec) -> PlaceFrom {
        let whence = match &spec.pose {
            None if spec.geo.is_some() => return PlaceFrom::FrameOfMessage,
            None | Some(PoseFrom::Robot) => return PlaceFrom::Robot,
            Some(PoseFrom::Nowhere) => return PlaceFrom::Nowhere,
            Some(PoseFrom::Message(whence)) => whence,
        };
        let Types { whole, element } = self.types;
        let posed = check_message(self.types, &Some(whence.clone()), has_pose, |error| {
            self.complain("pose", format_args!("{error} with a pose or a point"));
        });
        let has_header = |ty: &MessageType| ty.field("header").is_some();
        let headers = [posed.as_deref(), Some(&**whole), Some(&**element)];
        if posed.is_some() && spec.frame.is_none() && !headers.into_iter().flatten().any(has_header)
        {
            self.complain(
                "frame",
                format_args!("is missing: {} has no header to name the frame", whole.name),
            );
        }
        PlaceFrom::Stated(whence.clone())
    }

    /// Checks that nothing is left out that a memory needs.
    fn required(&self, spec: &Spec, make: ResourceKind) {
        if spec.text.is_none() {
            let element = self.types.element;
            self.complain(
                "text",
                format_args!(
                    "is missing: it says what a {} means, with fields in braces; there are {}",
                    element.name,
                    names(element)
                ),
            );
        }
        if make == ResourceKind::Entity && spec.entity.is_none() {
            self.complain("entity", "is missing: it names the entity that is made");
        }
    }
}

/// The type of the elements that a rule looks at: that of the message, unless the rule names a list.
fn element_of(
    rule: &str,
    each: Option<&FieldRef>,
    ty: &Arc<MessageType>,
    complaints: &Complaints,
) -> Arc<MessageType> {
    let Some(each) = each else { return ty.clone() };
    let key = format!("{rule}.each");
    match each.path().check(ty) {
        Ok(FieldType { element: Element::Message(element), shape: Shape::Single }) => {
            return element;
        }
        Ok(other) => {
            complaints.add(key, format_args!("{} is no message but {other}", each.path()));
        }
        Err(error) => complaints.add(key, error),
    }
    ty.clone()
}

/// The rule by which a sighting is of a known thing.
fn merge_of(spec: &Spec, make: ResourceKind) -> Option<Merge> {
    match &spec.merge {
        Some(Merging::When(merge)) => Some(*merge),
        None if make == ResourceKind::Entity && spec.keep.is_none() => Some(ENTITY),
        None | Some(Merging::Never) => None,
    }
}

fn policy_of(keep: &Keep, merge: Option<Merge>) -> Policy {
    let policy = Policy {
        on_change: !keep.on_change.is_empty(),
        beyond_m: keep.beyond_m,
        beyond_rad: keep.beyond_deg.map(f64::to_radians),
        thresholds: keep.thresholds.iter().map(|(_, threshold)| *threshold).collect(),
        at_most_every: keep.at_most_every,
        at_most_per_hour: keep.at_most_per_hour,
        merge,
    };
    match policy.is_limited() {
        true => policy,
        false => Policy { at_most_every: Some(UNLIMITED), ..policy },
    }
}

/// A digest of what the watched fields of a message hold in which all is zero.
fn assumed_of(watched_fields: &[FieldRef], types: Types<'_>) -> Key {
    let (whole, element) = (Message::new(types.whole), Message::new(types.element));
    let scene = Scene { whole: &whole, element: &element, topic: "", node: None };
    watched(watched_fields, &scene)
}

/// The type of the message that `whence` leads to, if it is one that `fits`.
fn check_message(
    types: Types<'_>,
    whence: &Option<ValueSource>,
    fits: impl Fn(&MessageType) -> bool,
    complain: impl FnOnce(String),
) -> Option<Arc<MessageType>> {
    let found = match whence.as_ref()? {
        ValueSource::Itself => types.element.clone(),
        ValueSource::Field(field) => match field.ty(types) {
            Ok(FieldType { element: Element::Message(ty), shape: Shape::Single }) => ty,
            Ok(other) => {
                complain(format!("{} is a {other}, not a message", field.path()));
                return None;
            }
            Err(error) => {
                complain(format!("{error}; expected a message"));
                return None;
            }
        },
    };
    if fits(&found) {
        return Some(found);
    }
    complain(format!("a {} is no message", found.name));
    None
}

fn names(ty: &MessageType) -> String {
    let names: Vec<&str> = ty.fields.iter().map(|field| field.name.as_str()).collect();
    names.join(", ")
}

/// A digest of what the watched fields hold.
pub fn watched(fields: &[FieldRef], scene: &Scene<'_>) -> Key {
    let mut hasher = Sha256::new();
    for field in fields {
        let mut out = Hashing(&mut hasher);
        for value in field.select(scene) {
            // Hashing cannot fail.
            _ = writeln!(out, "{value:?}");
        }
        out.0.update([0]);
    }
    first_half(hasher)
}

/// The first 128 bits of a digest.
pub fn first_half(hasher: Sha256) -> Key {
    let mut half = Key::default();
    half.copy_from_slice(&hasher.finalize()[..16]);
    half
}

/// Hashes what is written to it.
struct Hashing<'a>(&'a mut Sha256);

impl fmt::Write for Hashing<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text);
        Ok(())
    }
}
