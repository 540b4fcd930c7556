//! The part of a rule that makes a memory of a message: which memory, said how, placed and dated by what.

use std::time::Duration;

use omir_core::model::{ExperienceType, Kind, Label};
use omir_core::reference::ResourceType;
use omir_core::value::Value;

use super::YEAR_S;
use super::keeping::{Keep, Merging, merging};
use super::localised::Localised;
use super::words::{BadValue, field, word_of};
use crate::rules::levels::Level;
use crate::rules::template::{FieldRef, Template};
use crate::rules::written::{Table, Unit, one_of};

/// Treatment of a message, as far as it is stated; the type's own defaults say the rest.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spec {
    /// The kind of resource to make.
    pub make: Option<ResourceKind>,
    /// The list each element of which is looked at.
    pub each: Option<FieldRef>,
    /// Name of the thing.
    pub by: Option<Template>,
    /// The content of the memory.
    pub text: Option<Template>,
    /// The entity it is about.
    pub entity: Option<Template>,
    /// The labels of that.
    pub labels: Option<Vec<Label>>,
    /// Lifecycle class.
    pub kind: Option<Kind>,
    /// Nature of the experience.
    pub experience_type: Option<ExperienceType>,
    /// In [0, 1].
    pub importance: Option<Amount>,
    /// In [0, 1].
    pub confidence: Option<Amount>,
    /// Hours.
    pub half_life_h: Option<Amount>,
    /// True if it resists forgetting.
    pub anchored: Option<bool>,
    /// Time after the event for which it is valid.
    pub expires: Option<Duration>,
    /// Its place.
    pub pose: Option<PoseFrom>,
    /// The frame of that pose.
    pub frame: Option<Template>,
    /// A position on the Earth.
    pub geo: Option<ValueSource>,
    /// Time at which it happened.
    pub stamp: Option<StampFrom>,
    /// Treatment when its place in the fixed frame is unknown.
    pub without_transform: Option<WithoutTransform>,
    /// Demands on the robot's knowledge of its position.
    pub localised: Option<Localised>,
    /// Conditions for keeping it.
    pub keep: Option<Keep>,
    /// The rule by which it is the same thing.
    pub merge: Option<Merging>,
}

/// The kind of resource made of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceKind {
    /// A MemoryRecord.
    Record,
    /// An Entity, kept up to date.
    Entity,
}

impl ResourceKind {
    /// The type of the resource.
    pub const fn resource_type(self) -> ResourceType {
        match self {
            Self::Record => ResourceType::MemoryRecord,
            Self::Entity => ResourceType::Entity,
        }
    }
}

/// A number, or where it is found.
#[derive(Debug, Clone, PartialEq)]
pub enum Amount {
    /// This one.
    Always(f64),
    /// The one in a field.
    Field(FieldRef),
    /// By the level of a log or diagnostic message.
    ByLevel(Vec<(Level, f64)>),
}

/// A field, or the message itself.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueSource {
    /// The message, or the element.
    Itself,
    /// A field of it.
    Field(FieldRef),
}

/// Source of a memory's place.
#[derive(Debug, Clone, PartialEq)]
pub enum PoseFrom {
    /// The position of the robot.
    Robot,
    /// It has no place.
    Nowhere,
    /// A pose, a point or a transform in the message.
    Message(ValueSource),
}

/// The time of an event.
#[derive(Debug, Clone, PartialEq)]
pub enum StampFrom {
    /// Time at which the message came.
    Received,
    /// Value of a field.
    Field(FieldRef),
}

/// Treatment of a memory without a place in the fixed frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithoutTransform {
    /// It is kept, and says why it has none.
    Keep,
    /// It is dropped, and counted.
    Drop,
}

impl Spec {
    /// Reads what a table says of it. [`Table::done`] is left to the caller.
    pub fn read(table: &Table<'_>) -> Self {
        Self {
            make: table
                .word("as", &[("record", ResourceKind::Record), ("entity", ResourceKind::Entity)]),
            each: table.parsed("each", list),
            by: table.parsed("by", |text| {
                // A name without braces would be one name for everything, so it is a field.
                if text.contains('{') {
                    text.parse::<Template>().map_err(BadValue::Template)
                } else {
                    field(text).map(Template::of_field)
                }
            }),
            text: table.parsed("text", str::parse),
            entity: table.parsed("entity", str::parse),
            labels: table.all_parsed("label", |word| word_of(word, Label::ALL, Label::as_str)),
            kind: table.parsed("kind", |word| word_of(word, Kind::ALL, Kind::as_str)),
            experience_type: table.parsed("experience_type", |word| {
                word_of(word, ExperienceType::ALL, ExperienceType::as_str)
            }),
            importance: amount(table, "importance", 0.0, 1.0),
            confidence: amount(table, "confidence", 0.0, 1.0),
            half_life_h: amount_in(table, "half_life_h", 0.001, 1_000_000.0, Some(Unit::Hours)),
            anchored: table.flag("anchored"),
            expires: table.seconds("expires_s", 1.0..=100.0 * YEAR_S),
            pose: table.parsed("pose", |text| match text {
                "@robot" => Ok(PoseFrom::Robot),
                "@none" => Ok(PoseFrom::Nowhere),
                _ => whence(text).map(PoseFrom::Message),
            }),
            frame: table.parsed("frame", str::parse),
            geo: table.parsed("geo", whence),
            stamp: table.parsed("stamp", |text| match text {
                "@received" => Ok(StampFrom::Received),
                _ => field(text).map(StampFrom::Field),
            }),
            without_transform: table.word(
                "without_transform",
                &[("keep", WithoutTransform::Keep), ("drop", WithoutTransform::Drop)],
            ),
            localised: table.table("localised").and_then(Localised::read),
            keep: table.table("keep").map(Keep::read),
            merge: match table.value("merge") {
                Some(Value::Bool(false)) => Some(Merging::Never),
                _ => table.table("merge").map(merging),
            },
        }
    }

    /// This, and what it does not say from `default`. `keep` and `merge` are each taken whole.
    pub fn or(self, default: Self) -> Self {
        Self {
            make: self.make.or(default.make),
            each: self.each.or(default.each),
            by: self.by.or(default.by),
            text: self.text.or(default.text),
            entity: self.entity.or(default.entity),
            labels: self.labels.or(default.labels),
            kind: self.kind.or(default.kind),
            experience_type: self.experience_type.or(default.experience_type),
            importance: self.importance.or(default.importance),
            confidence: self.confidence.or(default.confidence),
            half_life_h: self.half_life_h.or(default.half_life_h),
            anchored: self.anchored.or(default.anchored),
            expires: self.expires.or(default.expires),
            pose: self.pose.or(default.pose),
            frame: self.frame.or(default.frame),
            geo: self.geo.or(default.geo),
            stamp: self.stamp.or(default.stamp),
            without_transform: self.without_transform.or(default.without_transform),
            localised: self.localised.or(default.localised),
            keep: self.keep.or(default.keep),
            merge: self.merge.or(default.merge),
        }
    }
}

/// A number, the path of one, or a table by level.
fn amount(table: &Table<'_>, name: &'static str, least: f64, most: f64) -> Option<Amount> {
    amount_in(table, name, least, most, None)
}

/// The same where it may be a time in words, too. No field begins with a digit.
fn amount_in(
    table: &Table<'_>,
    name: &'static str,
    least: f64,
    most: f64,
    unit: Option<Unit>,
) -> Option<Amount> {
    let in_words = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    match (table.value(name)?, unit) {
        (Value::Text(text), Some(unit)) if in_words(text) => {
            return table.time(name, unit, least..=most).map(Amount::Always);
        }
        _ => {}
    }
    match table.value(name)? {
        Value::Text(_) => table.parsed(name, field).map(Amount::Field),
        Value::Object(_) => {
            let levels = table.table(name)?;
            let mut amounts = Vec::new();
            for (word, value) in levels.entries() {
                match (one_of(word, Level::WORDS), value.as_f64()) {
                    (Err(error), _) => levels.complain(word, error),
                    (Ok(level), Some(number)) if (least..=most).contains(&number) => {
                        amounts.push((level, number));
                    }
                    _ => levels.complain(
                        word,
                        format_args!("{value} is no number between {least} and {most}"),
                    ),
                }
            }
            Some(Amount::ByLevel(amounts))
        }
        _ => table.number(name, least..=most).map(Amount::Always),
    }
}

fn list(text: &str) -> Result<FieldRef, BadValue> {
    let field = field(text)?;
    if !text.ends_with("[*]") || text.matches("[*]").count() != 1 || field.is_of_whole() {
        return Err(BadValue::List(text.to_owned()));
    }
    Ok(field)
}

fn whence(text: &str) -> Result<ValueSource, BadValue> {
    if text == "." { Ok(ValueSource::Itself) } else { field(text).map(ValueSource::Field) }
}
