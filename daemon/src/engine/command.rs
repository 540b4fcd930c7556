//! What the writer is asked to do, what it answers, and what it announces.

use omir_core::confidence::{Beta, Outcome, Weight};
use omir_core::number::Number;
use omir_core::reference::Ref;
use omir_core::value::{Map, Value};

use super::merge::{Merged, Precedence};
use super::request::Prepared;
use crate::error::Error;

/// A change.
#[derive(Debug)]
pub enum Change {
    /// Store these, all or none.
    Remember(Vec<Prepared>),
    /// Merge these into what is stored, all or none.
    Merge(Vec<Prepared>, Precedence),
    /// Forget these, and what cannot exist without them.
    Forget(Vec<Ref>),
    /// Pin a record, or let it go again.
    Anchor(Ref, bool),
    /// Evidence for or against a record.
    Feedback(Ref, Outcome, Weight),
}

/// One resource that was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// What.
    pub target: Ref,
    /// Its version.
    pub version: u64,
    /// Whether it was there already, the same: nothing was written.
    pub unchanged: bool,
    /// What a merge did about it; nothing for any other change.
    pub merged: Option<Merged>,
}

impl Stored {
    /// What a change other than a merge made of a resource.
    pub fn new(target: Ref, version: u64, unchanged: bool) -> Self {
        Self { target, version, unchanged, merged: None }
    }

    /// What a merge made of a resource.
    pub fn merged(target: Ref, version: u64, merged: Merged) -> Self {
        let unchanged = merged == Merged::Unchanged;
        Self { target, version, unchanged, merged: Some(merged) }
    }
}

/// What a change did.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Stored these.
    Remembered(Vec<Stored>),
    /// Forgot so many.
    Forgotten(u64),
    /// Pinned a record or let it go.
    Anchored(Stored, bool),
    /// Revised a belief.
    Believed(Stored, Beta),
}

/// The answer to a change, given only after it is as durable as the settings promise.
#[derive(Debug, Clone, PartialEq)]
pub struct Receipt {
    /// What was done.
    pub effect: Effect,
    /// Whether it survives a power cut from now on.
    pub durable: bool,
    /// The transaction; that of the last one if nothing had to be written.
    pub seq: u64,
}

impl Receipt {
    /// As it goes over the wire.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        match &self.effect {
            Effect::Remembered(stored) => {
                map.insert("stored", Value::Array(stored.iter().map(stored_value).collect()));
            }
            Effect::Forgotten(count) => {
                map.insert("forgotten", Value::Number(Number::from(*count)));
            }
            Effect::Anchored(stored, anchored) => {
                insert_stored(&mut map, stored);
                map.insert("anchored", Value::Bool(*anchored));
            }
            Effect::Believed(stored, belief) => {
                insert_stored(&mut map, stored);
                let float = |n| Number::from_f64(n).map_or(Value::Null, Value::Number);
                let mut confidence = Map::new();
                confidence.insert("alpha", float(belief.alpha()));
                confidence.insert("beta", float(belief.beta()));
                confidence.insert("calibrated", float(belief.damped()));
                map.insert("confidence", Value::Object(confidence));
            }
        }
        map.insert("durable", Value::Bool(self.durable));
        map.insert("seq", Value::Number(Number::from(self.seq)));
        Value::Object(map)
    }
}

fn insert_stored(map: &mut Map, stored: &Stored) {
    map.insert("ref", stored.target.to_string());
    map.insert("version", Value::Number(Number::from(stored.version)));
    if stored.unchanged {
        map.insert("unchanged", Value::Bool(true));
    }
    if let Some(merged) = stored.merged {
        map.insert("merged", merged.as_str());
    }
}

fn stored_value(stored: &Stored) -> Value {
    let mut map = Map::new();
    insert_stored(&mut map, stored);
    Value::Object(map)
}

/// Where the answer goes. Called once, on the engine's publishing thread.
pub type Reply = Box<dyn FnOnce(Result<Receipt, Error>) + Send>;

/// Something that happened to a resource, announced after it was committed.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// To what.
    pub target: Ref,
    /// The resource as CBOR; nothing for what was forgotten.
    pub resource: Vec<u8>,
}

/// What can happen to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// Stored for the first time.
    Recorded,
    /// Stored again, changed.
    Updated,
    /// Forgotten.
    Forgotten,
}

impl EventKind {
    /// The name in the key of the event.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Updated => "updated",
            Self::Forgotten => "forgotten",
        }
    }
}
