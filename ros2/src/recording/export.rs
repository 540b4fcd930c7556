//! Memories on a timeline: an MCAP file that Foxglove shows, in the order in which things happened.
//!
//! `/omird/memories` has a [`SceneUpdate`](super::scene) for each resource with a place, and
//! `/omird/records` each resource whole, as JSON.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;

use mcap::records::MessageHeader;
use mcap::{Compression, McapError, WriteOptions, write::NoSeek};
use omir_core::json;
use omir_core::model::Resource;
use omir_core::value::Value;

use super::scene::{self, Scenes};
use crate::interface::InterfaceError;
use crate::message::PathError;
use crate::stamp::Stamp;

/// The topic with what is to be seen.
pub const MEMORIES: &str = "/omird/memories";
/// The topic with the resources.
pub const RECORDS: &str = "/omird/records";
/// The schema by which Foxglove offers the fields of a resource.
const RECORD_SCHEMA: &str = r#"{"title":"OMIR R1 resource","type":"object","properties":{
"resourceType":{"type":"string"},"id":{"type":"string"},"content":{"type":"string"},
"name":{"type":"string"},"kind":{"type":"string"},"tier":{"type":"string"},
"importance":{"type":"number"},"createdAt":{"type":"string","format":"date-time"},
"eventTime":{"type":"string","format":"date-time"}}}"#;

/// Counts of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// All of them.
    pub resources: usize,
    /// Those with a place, which are to be seen.
    pub placed: usize,
}

/// A timeline that cannot be written.
#[derive(Debug)]
pub enum ExportError {
    /// A type of the scenes is wrong.
    Type(InterfaceError),
    /// A scene does not fit its type.
    Scene(PathError),
    /// The file cannot be written.
    Mcap(McapError),
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type(why) => why.fmt(f),
            Self::Scene(why) => why.fmt(f),
            Self::Mcap(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for ExportError {}

impl From<McapError> for ExportError {
    fn from(why: McapError) -> Self {
        Self::Mcap(why)
    }
}

/// Writes a timeline. Of one time, resources keep their order.
///
/// # Errors
/// The file cannot be written, or a scene cannot be made.
pub fn write_timeline(
    resources: &[Value],
    compressed: bool,
    out: impl Write,
) -> Result<Exported, ExportError> {
    let scenes = Scenes::new().map_err(ExportError::Type)?;
    let mut dated: Vec<(Option<u64>, &Value)> =
        resources.iter().map(|resource| (time_of(resource), resource)).collect();
    // Resources without a time of their own are there from the beginning.
    let first = dated.iter().filter_map(|(time, _)| *time).min().unwrap_or(0);
    dated.sort_by_key(|(time, _)| time.unwrap_or(first));
    let options = WriteOptions::new()
        .compression(compressed.then_some(Compression::Zstd))
        .compression_threads(0)
        .library(concat!("omird/", env!("CARGO_PKG_VERSION")))
        .disable_seeking(true);
    let mut writer = options.create(NoSeek::new(out))?;
    let none = BTreeMap::new();
    let seen = writer
        .add_schema(scene::TYPE, "ros2msg", scene::DEFINITION.as_bytes())
        .and_then(|schema| writer.add_channel(schema, MEMORIES, "cdr", &none))?;
    let whole = writer
        .add_schema("omir.Resource", "jsonschema", RECORD_SCHEMA.as_bytes())
        .and_then(|schema| writer.add_channel(schema, RECORDS, "json", &none))?;
    let mut exported = Exported::default();
    for (time, resource) in dated {
        let time = time.unwrap_or(first);
        let sequence = u32::try_from(exported.resources).unwrap_or(u32::MAX);
        let header =
            |channel_id| MessageHeader { channel_id, sequence, log_time: time, publish_time: time };
        let text = json::to_string(resource);
        writer.write_to_known_channel(&header(whole), text.as_bytes())?;
        exported.resources += 1;
        let at = Stamp::from_nanos(i64::try_from(time).unwrap_or(i64::MAX));
        let Ok(known) = Resource::from_value(resource.clone()) else { continue };
        if let Some(update) = scenes.of(&known, at) {
            writer.write_to_known_channel(
                &header(seen),
                &update.map_err(ExportError::Scene)?.encode(),
            )?;
            exported.placed += 1;
        }
    }
    writer.finish()?;
    Ok(exported)
}

/// Time at which it happened, as nanoseconds since 1970; before that is 1970.
fn time_of(resource: &Value) -> Option<u64> {
    let time = |name: &str| {
        let instant: omir_core::instant::Instant = resource.get(name)?.as_str()?.parse().ok()?;
        let stamp = Stamp::from_timestamp(instant.at())?;
        Some(u64::try_from(stamp.nanos()).unwrap_or(0))
    };
    ["eventTime", "lastSeenAt", "createdAt"].into_iter().find_map(time)
}
