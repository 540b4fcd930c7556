//! Requests, decoded and checked before the writer sees them.
//!
//! Everything that needs only the request itself happens here, on the caller's thread: decoding,
//! validation, normalising poses, splitting into words. What needs the store (references,
//! versions) is the writer's.

use std::collections::{HashMap, HashSet};

use omir_core::cbor;
use omir_core::decode::{DecodeError, DecodeErrorKind, Limits};
use omir_core::instant::{Instant, Timestamp};
use omir_core::json;
use omir_core::model::Resource;
use omir_core::reference::{Id, Ref};
use omir_core::spatial::{SPATIAL_POSE_URL, SpatialPose};
use omir_core::validate::validate_shape;
use omir_core::value::{Map, Value};
use omird_embedding::{EMBEDDING_URL, Given};
use omird_store::is_manifest;

use crate::PRODUCER;
use crate::error::{Code, Error};
use crate::index::facts::{Facts, terms_of};
use crate::index::text::DocTerms;
use crate::ingest::import_rule::{stated_version, yields_to};
use crate::ingest::precondition::Precondition;
use crate::settings::RequestLimits;
use crate::time::stamp;
use crate::time::uncertainty::ClockUncertainty;

/// The encoding of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// `application/json`.
    Json,
    /// `application/cbor`.
    Cbor,
}

impl Encoding {
    /// Guesses: arrays and maps of CBOR (RFC 8949, section 3.1) begin with a byte that no text in UTF-8 begins with,
    /// and no request is anything else, but for the tag that says "this is CBOR" (section 3.4.6). What is neither is
    /// refused as JSON, which its sender can read.
    pub fn sniff(bytes: &[u8]) -> Self {
        match bytes {
            [0x80..=0xBF, ..] | [0xD9, 0xD9, 0xF7, ..] => Self::Cbor,
            _ => Self::Json,
        }
    }

    /// Writes a value.
    pub fn encode(self, value: &Value) -> Vec<u8> {
        match self {
            Self::Json => json::to_string(value).into_bytes(),
            Self::Cbor => cbor::to_vec(value),
        }
    }
}

/// Decodes a payload within the limits. `code` is what unreadable bytes are answered with.
pub fn decode(
    bytes: &[u8],
    encoding: Encoding,
    limits: &RequestLimits,
    code: Code,
) -> Result<Value, Error> {
    let limits = Limits {
        max_bytes: limits.max_payload_bytes,
        max_depth: limits.max_depth,
        max_items: limits.max_values,
    };
    let decoded = match encoding {
        Encoding::Json => json::from_slice(bytes, &limits),
        Encoding::Cbor => cbor::from_slice(bytes, &limits),
    };
    decoded.map_err(|error| {
        let code = match error.kind {
            DecodeErrorKind::Depth | DecodeErrorKind::TooLarge => Code::TooLarge,
            _ => code,
        };
        Error::at(code, error.pointer.clone(), describe(&error, encoding))
    })
}

fn describe(error: &DecodeError, encoding: Encoding) -> String {
    let name = match encoding {
        Encoding::Json => "JSON",
        Encoding::Cbor => "CBOR",
    };
    format!("unreadable {name}: {error}")
}

/// Returns true if containers are nested more than `most` deep. Bounded itself by what the decoder let in.
fn is_deeper_than(value: &Value, most: usize) -> bool {
    let is_deeper = |value: &Value| is_deeper_than(value, most - 1);
    match value {
        Value::Array(_) | Value::Object(_) if most == 0 => true,
        Value::Array(values) => values.iter().any(is_deeper),
        Value::Object(map) => map.iter().any(|(_, value)| is_deeper(value)),
        _ => false,
    }
}

/// A resource ready for the writer.
#[derive(Debug)]
pub struct Prepared {
    /// The resource, valid, with poses normalised.
    pub resource: Resource,
    /// Its position in the request: a JSON Pointer.
    pub pointer: String,
    /// True if `createdAt` was missing and was stamped with the time of the request.
    pub stamped: bool,
    /// The facts for the index.
    pub facts: Facts,
    /// Its words.
    pub terms: DocTerms,
    /// Condition on what is stored under its name; unmet, the whole request is refused. A merge ignores it.
    pub precondition: Precondition,
}

/// Members that a resource left out and was given.
#[derive(Default)]
struct Filled {
    id: bool,
    created_at: bool,
}

/// Fills in what `remember` may leave out and checks the rest.
pub struct IngestContext<'a> {
    /// Bounds.
    pub limits: &'a RequestLimits,
    /// Time for a missing `createdAt`.
    pub now: Timestamp,
    /// The note on resources that it dates while the time is unknown.
    pub uncertainty: Option<ClockUncertainty>,
    /// Makes an id for a resource that has none.
    pub new_id: &'a dyn Fn() -> String,
    /// The key a resource was put on, if it was: gives a missing type and id, and must agree.
    pub key: Option<&'a Ref>,
    /// True if this is a merge: a name may come twice, of which the newer is taken, and what R1 does
    /// not require is not filled in. It comes from elsewhere, and when it was created there is not
    /// known here.
    pub merging: bool,
}

impl IngestContext<'_> {
    /// Takes a resource, an array of resources, or a Bundle.
    pub fn take(&self, value: Value) -> Result<Vec<Prepared>, Error> {
        let (values, base) = match value {
            Value::Array(values) => (values, ""),
            Value::Object(mut map)
                if map.get("resourceType").and_then(Value::as_str) == Some("Bundle") =>
            {
                let entry = map.remove("entry");
                let Some(Value::Array(values)) = entry else {
                    let message = "expected an array of resources";
                    return Err(Error::at(Code::InvalidResource, "/entry", message));
                };
                // The envelope by the same tables as everywhere; the entries follow one by one.
                map.insert("entry", Value::Array(Vec::new()));
                let faults = validate_shape(&Value::Object(map));
                if !faults.is_empty() {
                    return Err(Error::from_faults(&faults));
                }
                (values, "/entry")
            }
            value => return Ok(vec![self.one(value, String::new())?]),
        };
        if values.len() > self.limits.max_resources {
            return Err(Error::new(
                Code::TooLarge,
                format!(
                    "{} resources are more than the {} allowed in one request; send them in parts",
                    values.len(),
                    self.limits.max_resources
                ),
            ));
        }
        // Positions of each name in the request and in `prepared`. A merge may meet a name twice. Entries that state a
        // version are compared with each other first, so that the outcome does not depend on their order.
        let mut seen: HashMap<(Ref, bool), (usize, usize)> = HashMap::new();
        let mut prepared: Vec<Prepared> = Vec::with_capacity(values.len());
        for (index, value) in values.into_iter().enumerate() {
            // The manifest of a sealed segment is history, no memory.
            if base == "/entry" && is_manifest(&value) {
                continue;
            }
            let pointer = format!("{base}/{index}");
            let resource = self.one(value, pointer.clone())?;
            let reference = resource.resource.reference();
            let is_numbered = self.merging && stated_version(&resource.resource).is_some();
            match seen.get(&(reference.clone(), is_numbered)) {
                None => {
                    seen.insert((reference, is_numbered), (index, prepared.len()));
                    prepared.push(resource);
                }
                Some(&(_, at)) if self.merging => {
                    if let Some(earlier) = prepared.get_mut(at)
                        && yields_to(&earlier.resource, &resource.resource)
                    {
                        *earlier = resource;
                    }
                }
                Some((first, _)) => {
                    return Err(Error::at(
                        Code::InvalidResource,
                        format!("{pointer}/id"),
                        format!(
                            "{reference} is already at {base}/{first}; one request may hold it once"
                        ),
                    ));
                }
            }
        }
        let losers: HashSet<usize> = seen
            .iter()
            .filter(|((_, is_numbered), _)| *is_numbered)
            .filter_map(|((reference, _), &(_, numbered))| {
                let (_, plain) = *seen.get(&(reference.clone(), false))?;
                let loses = yields_to(&prepared[numbered].resource, &prepared[plain].resource);
                Some(if loses { numbered } else { plain })
            })
            .collect();
        if !losers.is_empty() {
            let entries = prepared.into_iter().enumerate();
            let winners = entries.filter(|(at, _)| !losers.contains(at));
            prepared = winners.map(|(_, resource)| resource).collect();
        }
        if prepared.is_empty() {
            return Err(Error::at(Code::InvalidResource, base, "there is nothing to remember"));
        }
        Ok(prepared)
    }

    fn one(&self, mut value: Value, pointer: String) -> Result<Prepared, Error> {
        let most = self.limits.max_depth;
        if is_deeper_than(&value, most) {
            let message =
                format!("nested more than {most} levels deep (limits.max_depth); flatten it");
            return Err(Error::at(Code::TooLarge, pointer, message));
        }
        let mut filled = Filled::default();
        if let Value::Object(map) = &mut value {
            self.complete(map, &pointer, &mut filled)?;
        }
        // The daemon is the producer of a resource that it completed; one that came whole is stored as it came.
        let is_ours = (filled.id || filled.created_at) && value.get("meta").is_none();
        let profiles = if is_ours { stamp::profiles(&value) } else { None };
        let mut resource = Resource::from_value_at(value, &pointer)
            .map_err(|faults| Error::from_faults(&faults))?;
        normalise_poses(&mut resource, &pointer)?;
        check_vectors(&resource, &pointer)?;
        if is_ours {
            let meta = stamp::meta(resource.resource_type(), profiles, PRODUCER);
            *resource.meta_mut() = Some(meta);
        }
        if let Some(uncertainty) = &self.uncertainty {
            uncertainty.clone().note(&mut resource, filled.created_at, !self.merging);
        }
        let facts = Facts::of(&resource);
        let terms = terms_of(&resource);
        let stamped = filled.created_at;
        Ok(Prepared { resource, pointer, stamped, facts, terms, precondition: Precondition::None })
    }

    fn complete(&self, map: &mut Map, pointer: &str, filled: &mut Filled) -> Result<(), Error> {
        if let Some(key) = self.key {
            for (name, expected) in [("resourceType", key.kind.as_str()), ("id", key.id.as_str())] {
                match map.get(name) {
                    None => {
                        map.insert(name, expected);
                    }
                    Some(Value::Text(found)) if found == expected => {}
                    Some(_) => {
                        return Err(Error::at(
                            Code::InvalidResource,
                            format!("{pointer}/{name}"),
                            format!("the key says {expected:?} and the resource something else"),
                        ));
                    }
                }
            }
        }
        if !map.contains_key("id") {
            filled.id = true;
            map.insert("id", (self.new_id)());
        }
        let needs_date = |kind: &str| matches!(kind, "MemoryRecord" | "Episode");
        let is_needed = !self.merging
            || map.get("resourceType").and_then(Value::as_str).is_some_and(needs_date);
        if is_needed && !map.contains_key("createdAt") {
            filled.created_at = true;
            map.insert("createdAt", Instant::from(self.now).as_str());
        }
        Ok(())
    }
}

/// Checks every spatial pose and writes unit quaternions in place of what was sent.
fn normalise_poses(resource: &mut Resource, pointer: &str) -> Result<(), Error> {
    if !resource.extensions().iter().any(|e| e.url == SPATIAL_POSE_URL) {
        return Ok(());
    }
    for (index, extension) in resource.extensions_mut().iter_mut().enumerate() {
        if extension.url != SPATIAL_POSE_URL {
            continue;
        }
        let pose = SpatialPose::from_extension(extension).map_err(|mut faults| {
            for fault in &mut faults {
                // The root of the extension is written `/`.
                let inner = fault.pointer.strip_suffix('/').unwrap_or(&fault.pointer);
                fault.pointer = format!("{pointer}/extension/{index}{inner}");
            }
            Error::from_faults(&faults)
        })?;
        if pose.orientation.is_some() {
            extension.value_json = Some(pose.to_value());
        }
    }
    Ok(())
}

/// Checks every vector that the resource carries: one of each model.
fn check_vectors(resource: &Resource, pointer: &str) -> Result<(), Error> {
    let mut models: Vec<String> = Vec::new();
    for (index, extension) in resource.extensions().iter().enumerate() {
        if extension.url == EMBEDDING_URL {
            let refused = |at: &str, reason: String| {
                let at = format!("{pointer}/extension/{index}{at}");
                Error::at(Code::InvalidResource, at, reason)
            };
            let given = Given::from_extension(extension)
                .map_err(|fault| refused(fault.pointer, fault.reason))?;
            if models.contains(&given.model) {
                let reason =
                    format!("there is a vector of {:?} already; one of each model", given.model);
                return Err(refused("/valueJson/model", reason));
            }
            models.push(given.model);
        }
    }
    Ok(())
}

/// An id that nothing else has: 128 random bits.
pub(crate) fn random_id(random: u128) -> String {
    let id = format!("{random:032x}");
    debug_assert!(Id::new(id.clone()).is_ok());
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_neither_is_refused_in_what_everybody_reads() {
        for (bytes, encoding) in [
            (&b""[..], Encoding::Json),
            (b" {}", Encoding::Json),
            (b"hello", Encoding::Json),
            (b"\xEF\xBB\xBF{}", Encoding::Json),
            (b"\xFF", Encoding::Json),
            ("être".as_bytes(), Encoding::Json),
            ("école".as_bytes(), Encoding::Json),
            (&[0x80], Encoding::Cbor),
            (&[0xA1, 0x61, 0x61, 0x00], Encoding::Cbor),
            (&[0xBF, 0xFF], Encoding::Cbor),
            (&[0xD9, 0xD9, 0xF7, 0xA0], Encoding::Cbor),
        ] {
            assert_eq!(Encoding::sniff(bytes), encoding, "{bytes:02x?}");
        }
    }
}
