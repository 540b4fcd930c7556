//! The answer to a recall, as a value or as CBOR.

use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::number::Number;
use omir_core::value::{Map, Value};

use super::outgoing::unreadable;
use crate::encoded::float;
use crate::error::Error;
use crate::index::scores::{ScorePart, Scores};
use crate::index::text::Correction;
use crate::recall::score::{Weights, own_weight};

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
    /// The parts of the score, if asked for.
    pub parts: Option<Parts>,
    /// True if it was forgotten.
    pub forgotten: bool,
    /// The entities that it is the newest match of, if those were asked for.
    pub entities: Option<Vec<Value>>,
}

/// The parts of a score.
#[derive(Debug, Clone, Copy)]
pub struct Parts {
    /// Each part, in [0, 1].
    pub scores: Scores,
    /// How much each of them counts.
    pub weights: Weights,
    /// BM25 as it is before it is made a part, if there were words.
    pub bm25: Option<f64>,
}

/// The answer to a recall.
#[derive(Debug, Clone)]
pub struct Recall {
    /// The page, best first.
    pub hits: Vec<Hit>,
    /// Number of matches in all.
    pub total: u64,
    /// Number of matches that are no hits, since they have too little of the words. They are among `total`.
    pub hidden: u64,
    /// Words that no memory has, and what each was taken for.
    pub corrected: Vec<Correction>,
    /// Answers about all matches, as a reply has them.
    pub more: Vec<(&'static str, Value)>,
    /// Number of hits of this page that cannot be read, and of texts that cannot be looked through for a phrase.
    pub unreadable: u64,
    /// Time inside the engine.
    pub took_micros: u64,
}

impl Hit {
    /// One part of the score, if the parts were asked for.
    pub fn part(&self, part: ScorePart) -> Option<f64> {
        self.parts.as_ref().map(|parts| parts.scores[part])
    }

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
        if let Some(entities) = &self.entities {
            members.push(("entities", Value::Array(entities.clone())));
        }
        if let Some(Parts { scores, weights, bm25 }) = &self.parts {
            let mut map = Map::new();
            for (part, score) in scores.iter() {
                // Parts that only a fused ranking has are shown if they count.
                if own_weight(part).is_none() && weights.of_part(part) == 0.0 {
                    continue;
                }
                let mut entry = Map::new();
                entry.insert("value", float(score));
                entry.insert("weight", float(weights.of_part(part)));
                if part == ScorePart::Meaning {
                    entry.insert("cosine", float(score));
                }
                if let Some(bm25) = bm25.filter(|_| part == ScorePart::Text) {
                    entry.insert("bm25", float(bm25));
                }
                map.insert(part.as_str(), Value::Object(entry));
            }
            members.push(("parts", Value::Object(map)));
        }
        members
    }
}

impl Recall {
    /// The members behind the hits, but for the time.
    fn members(&self) -> Vec<(&'static str, Value)> {
        let number = |n: u64| Value::Number(Number::from(n));
        let mut members = vec![("total", number(self.total))];
        if self.hidden > 0 {
            members.push(("hidden", number(self.hidden)));
        }
        if !self.corrected.is_empty() {
            let corrected = self.corrected.iter().map(|one| {
                let mut map = Map::new();
                map.insert("from", one.from.as_str());
                map.insert(
                    "to",
                    one.to.iter().map(|word| Value::from(word.as_str())).collect::<Value>(),
                );
                Value::Object(map)
            });
            members.push(("corrected", corrected.collect()));
        }
        members.extend(self.more.iter().cloned());
        if self.unreadable > 0 {
            members.push(("unreadable", number(self.unreadable)));
        }
        members
    }

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
        for (name, value) in self.members() {
            map.insert(name, value);
        }
        map.insert("tookMicros", Value::Number(Number::from(self.took_micros)));
        Ok(Value::Object(map))
    }

    /// As CBOR. The resources go out as they lie on the disk, without being decoded.
    pub fn to_cbor(&self) -> Vec<u8> {
        let bytes: usize = self.hits.iter().map(|hit| hit.resource.len() + 160).sum();
        let mut out = Vec::with_capacity(bytes + 64);
        let text = |out: &mut Vec<u8>, name: &str| cbor::write(&Value::from(name), out);
        let members = self.members();
        cbor::write_map_header(2 + members.len(), &mut out);
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
        for (name, value) in members {
            text(&mut out, name);
            cbor::write(&value, &mut out);
        }
        text(&mut out, "tookMicros");
        cbor::write(&Value::Number(Number::from(self.took_micros)), &mut out);
        out
    }
}
