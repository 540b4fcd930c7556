//! The answer to a recall, as a value or as CBOR.

use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::number::Number;
use omir_core::value::{Map, Value};

use super::encoded::float;
use super::outgoing::unreadable;
use crate::error::Error;
use crate::index::scores::Scores;
use crate::recall::score::Weights;

/// One recalled memory.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The resource as CBOR.
    pub resource: Vec<u8>,
    /// Its score in [0, 1].
    pub score: f64,
    /// Its retrievability now.
    pub retrievability: f64,
    /// Metres from where the recall asked, if it did.
    pub distance: Option<f64>,
    /// The reason for which it is here, for a person.
    pub reason: String,
    /// The parts of the score, if asked for, and their weights.
    pub parts: Option<(Scores, Weights)>,
    /// True if it was forgotten.
    pub forgotten: bool,
}

/// The answer to a recall.
#[derive(Debug, Clone)]
pub struct Recall {
    /// The page, best first.
    pub hits: Vec<Hit>,
    /// Number of matches in all.
    pub total: u64,
    /// Number of hits of this page that cannot be read.
    pub unreadable: u64,
    /// Time inside the engine.
    pub took_micros: u64,
}

impl Hit {
    /// Everything but the resource, in the order of the reply.
    fn members(&self) -> Vec<(&'static str, Value)> {
        let mut members =
            vec![("score", float(self.score)), ("retrievability", float(self.retrievability))];
        if let Some(distance) = self.distance {
            members.push(("distance", float(distance)));
        }
        members.push(("reason", self.reason.as_str().into()));
        if self.forgotten {
            members.push(("forgotten", Value::Bool(true)));
        }
        if let Some((scores, weights)) = &self.parts {
            let mut map = Map::new();
            for (part, score) in scores.iter() {
                let mut entry = Map::new();
                entry.insert("value", float(score));
                entry.insert("weight", float(weights.of_part(part)));
                map.insert(part.as_str(), Value::Object(entry));
            }
            members.push(("parts", Value::Object(map)));
        }
        members
    }
}

impl Recall {
    /// As a value, for JSON.
    ///
    /// # Errors
    /// `INTERNAL` if stored bytes are no CBOR, which their checksum rules out.
    pub fn to_value(&self) -> Result<Value, Error> {
        let limits = Limits::default();
        let hits = self
            .hits
            .iter()
            .map(|hit| {
                let resource = cbor::from_slice(&hit.resource, &limits).map_err(unreadable)?;
                let mut map = Map::new();
                map.insert("resource", resource);
                for (name, value) in hit.members() {
                    map.insert(name, value);
                }
                Ok(Value::Object(map))
            })
            .collect::<Result<Vec<_>, Error>>()?;
        let mut map = Map::new();
        map.insert("hits", Value::Array(hits));
        map.insert("total", Value::Number(Number::from(self.total)));
        if self.unreadable > 0 {
            map.insert("unreadable", Value::Number(Number::from(self.unreadable)));
        }
        map.insert("tookMicros", Value::Number(Number::from(self.took_micros)));
        Ok(Value::Object(map))
    }

    /// As CBOR. The resources go out as they lie on the disk, without being decoded.
    pub fn to_cbor(&self) -> Vec<u8> {
        let bytes: usize = self.hits.iter().map(|hit| hit.resource.len() + 160).sum();
        let mut out = Vec::with_capacity(bytes + 64);
        let text = |out: &mut Vec<u8>, name: &str| cbor::write(&Value::from(name), out);
        cbor::write_map_header(3 + usize::from(self.unreadable > 0), &mut out);
        text(&mut out, "hits");
        cbor::write_array_header(self.hits.len(), &mut out);
        for hit in &self.hits {
            let members = hit.members();
            cbor::write_map_header(members.len() + 1, &mut out);
            text(&mut out, "resource");
            out.extend_from_slice(&hit.resource);
            for (name, value) in members {
                text(&mut out, name);
                cbor::write(&value, &mut out);
            }
        }
        text(&mut out, "total");
        cbor::write(&Value::Number(Number::from(self.total)), &mut out);
        if self.unreadable > 0 {
            text(&mut out, "unreadable");
            cbor::write(&Value::Number(Number::from(self.unreadable)), &mut out);
        }
        text(&mut out, "tookMicros");
        cbor::write(&Value::Number(Number::from(self.took_micros)), &mut out);
        out
    }
}
