//! Changes: `remember`, `forget`, `anchor` and `feedback`.

use omir_core::instant::Instant;
use omir_core::json;
use omir_core::model::Extension;
use omir_core::reference::{Ref, ResourceType};
use omir_core::spatial::SpatialPose;
use omir_core::value::{Map, Value};
use omird_engine::{Change, Code, Encoding, Error, Precondition, Receipt};
use omird_router::Admitted;
use omird_router::field::{ANY_NUMBER, ANY_TEXT};
use omird_router::{Field, Shape};

use super::Call;
use super::look::{in_reference, read_reference};
use crate::params::{self, Parameters};

/// Attempts at a change beside other callers who make or forget the same things.
const ATTEMPTS: usize = 4;

const DURABLE: Field =
    Field::new("durable", Shape::Flag, "True if it survives a power cut from now on.").required();
const VERSION: Field = Field::new("version", ANY_NUMBER, "Its version now.").required();
const REFERENCE: Field = Field::new("reference", ANY_TEXT, "The memory.").required();

/// The result of `remember`.
pub(super) const REMEMBERED: &[Field] = &[
    REFERENCE,
    VERSION,
    DURABLE,
    Field::new(
        "created_entities",
        Shape::List(&ANY_TEXT, 0, usize::MAX),
        "Entities that were not stored before.",
    ),
];
/// The result of `forget`.
pub(super) const FORGOTTEN: &[Field] = &[
    Field::new("forgotten", Shape::Integer(0, i64::MAX), "Number of memories forgotten, with those that went along; what was not stored does not count.").required(),
    DURABLE,
];
/// The result of `anchor`.
pub(super) const ANCHORED: &[Field] = &[
    REFERENCE,
    VERSION,
    Field::new("anchored", Shape::Flag, "True if it resists forgetting now.").required(),
    Field::new("unchanged", Shape::Flag, "True if it was so before."),
    DURABLE,
];
/// The result of `feedback`.
pub(super) const BELIEVED: &[Field] = &[
    REFERENCE,
    VERSION,
    Field::new("confidence", ANY_NUMBER, "0 to 1: (alpha + 1) / (alpha + beta + 2).").required(),
    Field::new("alpha", ANY_NUMBER, "Weight of what confirmed it.").required(),
    Field::new("beta", ANY_NUMBER, "Weight of what contradicted it.").required(),
    DURABLE,
];

impl Call<'_> {
    pub(super) fn remember(&self, admitted: &mut Admitted) -> Result<Map, Error> {
        let entities = self.entities()?;
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let (change, created) = self.memory(&entities)?;
            match self.omir.change_now(admitted, change) {
                Ok(receipt) => return Ok(remembered(&receipt, &created)),
                // Another caller has just made one of the entities, or had one forgotten.
                Err(error) if is_raced(&error, &entities) => last = Some(error),
                Err(error) => return Err(self.told_apart(error)),
            }
        }
        Err(last.unwrap_or_else(|| Error::new(Code::Conflict, "try again")))
    }

    fn entities(&self) -> Result<Vec<Ref>, Error> {
        let mut entities = Vec::new();
        for text in self.list("entities") {
            let entity = read_reference("entities", text)?;
            if entity.kind != ResourceType::Entity {
                let message = format!("{text:?} is no Entity/<id>");
                return Err(Error::query("entities", message));
            }
            if !entities.contains(&entity) {
                entities.push(entity);
            }
        }
        Ok(entities)
    }

    /// The record as one change with those of its entities that are not stored yet.
    fn memory(&self, entities: &[Ref]) -> Result<(Change, Vec<String>), Error> {
        let engine = &self.omir.engine;
        let mut resources = Vec::new();
        for entity in entities {
            // One that is lost is made again; one that is only damaged is mentioned as it is.
            if !engine.may_refer_to(entity) {
                let mut map = Map::new();
                map.insert("resourceType", ResourceType::Entity.as_str());
                map.insert("id", entity.id.as_str());
                map.insert("name", entity.id.as_str().replace(['-', '_'], " ").trim());
                resources.push(Value::Object(map));
            }
        }
        let created: Vec<String> = resources.iter().map(omir_core::words::name).collect();
        let lost = |name: &Ref| engine.live_version(name).map(|(version, _)| version);
        resources.push(self.record(entities)?);
        let bytes = json::to_string(&Value::Array(resources)).into_bytes();
        let change = engine.prepare(&bytes, Encoding::Json, None)?;
        let is_created = |name: &Ref| created.contains(&name.to_string());
        let change = change.only_if_each(|name| match is_created(name) {
            true => lost(name).map_or(Precondition::Absent, Precondition::Version),
            false => Precondition::None,
        });
        Ok((change, created))
    }

    fn record(&self, entities: &[Ref]) -> Result<Value, Error> {
        let mut map = Map::new();
        map.insert("resourceType", ResourceType::MemoryRecord.as_str());
        let text = self.text("text").unwrap_or_default();
        if text.trim().is_empty() {
            return Err(Error::query("text", "is empty: say what is to be remembered"));
        }
        map.insert("content", text);
        for (from, to) in [("event_time", "eventTime"), ("valid_until", "validUntil")] {
            if let Some(text) = self.text(from) {
                let read = text.parse::<Instant>();
                read.map_err(|error| Error::query(from, format!("{text:?} is no time: {error}")))?;
                map.insert(to, text);
            }
        }
        for (from, to) in [("experience_type", "experienceType"), ("importance", "importance")] {
            if let Some(value) = self.value(from) {
                map.insert(to, value.clone());
            }
        }
        if let Some(confidence) = self.value("confidence") {
            let mut stated = Map::new();
            stated.insert("calibrated", confidence.clone());
            map.insert("confidence", stated);
        }
        if !entities.is_empty() {
            let target = |entity: &Ref| {
                let mut target = Map::new();
                target.insert("ref", entity.to_string());
                Value::Object(target)
            };
            map.insert("entityRefs", Value::Array(entities.iter().map(target).collect()));
        }
        if let Some(place) = self.place()? {
            let pose = SpatialPose::new(self.frame(), place.position().into());
            map.insert("extension", Value::Array(vec![extension(&pose.to_extension())]));
        } else if self.text("frame").is_some() {
            return Err(Error::query("frame", "needs x and y to be coordinates in it"));
        }
        Ok(Value::Object(map))
    }

    /// The error of a resource of ours, with the name of the argument that it was made of.
    fn told_apart(&self, error: Error) -> Error {
        let last = error
            .path
            .split('/')
            .find(|part| !part.is_empty() && part.bytes().any(|byte| !byte.is_ascii_digit()));
        let argument = match last {
            Some("content") => "text",
            Some("eventTime") => "event_time",
            Some("validUntil") => "valid_until",
            Some("experienceType") => "experience_type",
            Some("entityRefs") => "entities",
            Some("extension") => "frame",
            Some("importance") => "importance",
            Some("confidence") => "confidence",
            _ => return error,
        };
        Error { path: format!("/{argument}"), ..error }
    }

    pub(super) fn forget(&self, admitted: &mut Admitted) -> Result<Map, Error> {
        let targets = self.list("references").map(|text| read_reference("references", text));
        let change = Change::Forget(targets.collect::<Result<_, _>>()?);
        Ok(renamed(&self.omir.change_now(admitted, change)?, &["forgotten", "durable"]))
    }

    pub(super) fn anchor(&self, admitted: &mut Admitted) -> Result<Map, Error> {
        let change = params::anchor(self.parameters(&["reference", "anchored"]));
        let receipt = self.omir.change_now(admitted, change.map_err(in_reference)?);
        let receipt = receipt.map_err(in_reference)?;
        Ok(renamed(&receipt, &["ref", "version", "anchored", "unchanged", "durable"]))
    }

    pub(super) fn feedback(&self, admitted: &mut Admitted) -> Result<Map, Error> {
        let change = params::feedback(self.parameters(&["reference", "outcome", "weight"]));
        let receipt = self.omir.change_now(admitted, change.map_err(in_reference)?);
        let receipt = receipt.map_err(in_reference)?;
        let mut map = renamed(&receipt, &["ref", "version", "durable"]);
        let confidence = receipt.to_value();
        for (from, to) in [
            ("/confidence/calibrated", "confidence"),
            ("/confidence/alpha", "alpha"),
            ("/confidence/beta", "beta"),
        ] {
            if let Some(number) = confidence.pointer(from) {
                map.insert(to, number.clone());
            }
        }
        Ok(map)
    }

    /// Arguments as the parameters of `docs/keys.md`.
    fn parameters(&self, names: &[&str]) -> Parameters {
        let written = |value: &Value| match value {
            Value::Text(text) => text.clone(),
            other => json::to_string(other),
        };
        let name_of = |name: &str| if name == "reference" { "ref" } else { name }.to_owned();
        let given =
            names.iter().filter_map(|name| Some((name_of(name), written(self.value(name)?))));
        given.collect()
    }
}

/// Returns true if another change of the same entities came between the look at them and the write.
fn is_raced(error: &Error, entities: &[Ref]) -> bool {
    let is_about_them = error.path.contains("entityRefs") || error.code == Code::Conflict;
    !entities.is_empty()
        && is_about_them
        && matches!(error.code, Code::Conflict | Code::InvalidResource)
}

fn remembered(receipt: &Receipt, created: &[String]) -> Map {
    let answer = receipt.to_value();
    let stored = answer.get("stored").and_then(Value::as_array).unwrap_or_default();
    let mut map = Map::new();
    // The record is the last of what was sent.
    if let Some(record) = stored.last() {
        for (from, to) in [("ref", "reference"), ("version", "version")] {
            map.insert(to, record.get(from).cloned().unwrap_or_default());
        }
    }
    map.insert("durable", receipt.durable);
    if !created.is_empty() {
        map.insert("created_entities", created.iter().map(String::as_str).collect::<Value>());
    }
    map
}

/// Members of an answer of `docs/replies.md`, with `ref` under the name that it has in a tool.
fn renamed(receipt: &Receipt, names: &[&str]) -> Map {
    let answer = receipt.to_value();
    let mut map = Map::new();
    for name in names {
        if let Some(value) = answer.get(name) {
            map.insert(if *name == "ref" { "reference" } else { name }, value.clone());
        }
    }
    map
}

fn extension(extension: &Extension) -> Value {
    let mut map = Map::new();
    map.insert("url", extension.url.as_str());
    map.insert("valueJson", extension.value_json.clone().unwrap_or_default());
    Value::Object(map)
}
