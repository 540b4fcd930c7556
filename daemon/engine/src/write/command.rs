//! Changes that the writer makes, with their receipts and events.

use std::borrow::Cow;

use omir_core::cbor;
use omir_core::confidence::{Beta, FeedbackOutcome, Weight};
use omir_core::event::EventKind;
use omir_core::number::Number;
use omir_core::reference::Ref;
use omir_core::tier::Tier;
use omir_core::value::{Map, Value};
use omird_store::{RefKey, UntrustedInterval};

use crate::error::Error;
use crate::ingest::import_rule::{Merged, Precedence};
use crate::ingest::importing::ImportPermit;
use crate::ingest::precondition::Precondition;
use crate::ingest::request::Prepared;
use crate::write::rebase;

/// A change.
#[derive(Debug)]
pub enum Change {
    /// Store these, all or none.
    Remember(Vec<Prepared>),
    /// Merge these into what is stored, all or none; a large one has the permit to.
    Merge(Vec<Prepared>, Precedence, Option<ImportPermit>),
    /// Redate these, by the spans in which the time was unknown.
    Correct(Vec<RefKey>, Vec<UntrustedInterval>),
    /// Forget these, and what cannot exist without them.
    Forget(Vec<Ref>),
    /// The same, but of these only what was stored up to this transaction.
    ForgetUpTo(Vec<Ref>, u64),
    /// Pin a record, or let it go again.
    Anchor(Ref, bool),
    /// Evidence for or against a record.
    Feedback(Ref, FeedbackOutcome, Weight),
    /// Move what is tied to keyframes, or move it back.
    Rebase(rebase::Request),
    /// Acts of a sweep; those whose memory has changed since it looked are passed over.
    Sweep(Vec<Act>),
}

impl Change {
    /// Makes every resource of a [`Change::Remember`] subject to a condition: all of them meet it, or nothing
    /// is written. Other changes have no conditions.
    pub fn only_if(self, precondition: Precondition) -> Self {
        self.only_if_each(|_| precondition)
    }

    /// The same with a condition for each resource, by its name.
    pub fn only_if_each(mut self, condition: impl Fn(&Ref) -> Precondition) -> Self {
        if let Self::Remember(prepared) = &mut self {
            for item in prepared {
                item.precondition = condition(&item.resource.reference());
            }
        }
        self
    }
}

/// One thing a sweep does.
#[derive(Debug)]
pub enum Act {
    /// Announce that time has moved a record. Nothing is written.
    Move(Chosen, Event),
    /// Make one record of observations of the same: the first keeps its name and takes over what the
    /// others know.
    Merge(Chosen, Vec<Chosen>),
    /// Forget what stopped being valid.
    Forget(Chosen, Cause),
    /// Forget what is needed least, for the room it takes.
    Evict(Chosen, Cause),
}

/// A version that a sweep has looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The resource.
    pub target: Ref,
    /// Its version.
    pub version: u64,
}

/// The cause of a change that the daemon made by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The name, by which programs tell causes apart.
    pub name: &'static str,
    /// The explanation, for people.
    pub reason: String,
    /// From which tier to which, where it is a move.
    pub tiers: Option<(Tier, Tier)>,
}

impl Cause {
    /// As it goes with an event, as JSON.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("cause", self.name);
        if let Some((from, to)) = self.tiers {
            map.insert("from", from.as_str());
            map.insert("to", to.as_str());
        }
        map.insert("reason", self.reason.as_str());
        Value::Object(map)
    }
}

/// One resource that was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The resource.
    pub target: Ref,
    /// Its version.
    pub version: u64,
    /// True if it was there already, the same: nothing was written.
    pub unchanged: bool,
    /// The effect of a merge; `None` for any other change.
    pub merged: Option<Merged>,
}

impl Stored {
    /// The result of a change other than a merge.
    pub fn new(target: Ref, version: u64, unchanged: bool) -> Self {
        Self { target, version, unchanged, merged: None }
    }

    /// The result of a merge.
    pub fn merged(target: Ref, version: u64, merged: Merged) -> Self {
        let unchanged = merged == Merged::Unchanged;
        Self { target, version, unchanged, merged: Some(merged) }
    }
}

/// The effect of a change.
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
    /// Moved so many, told of in this record; so many could not be read. Nothing, if it was a dry run.
    Rebased {
        /// The record of the step.
        record: Option<Stored>,
        /// Memories that moved, or would.
        moved: u64,
        /// Memories that are tied to a keyframe and cannot be read.
        unreadable: u64,
        /// Keyframes that no memory is tied to; not counted for a step back.
        untied: u64,
    },
    /// Did so many of the things a sweep found to do.
    Swept(u64),
}

/// The answer to a change, given only after it is as durable as the settings promise.
#[derive(Debug, Clone, PartialEq)]
pub struct Receipt {
    /// The effect.
    pub effect: Effect,
    /// True if it survives a power cut from now on.
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
            Effect::Rebased { record, moved, unreadable, untied } => {
                if let Some(stored) = record {
                    insert_stored(&mut map, stored);
                }
                map.insert("moved", Value::Number(Number::from(*moved)));
                for (name, count) in [("unreadable", *unreadable), ("untied", *untied)] {
                    if count > 0 {
                        map.insert(name, Value::Number(Number::from(count)));
                    }
                }
            }
            Effect::Swept(count) => {
                map.insert("swept", Value::Number(Number::from(*count)));
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

/// Receiver of the answer. Called once: on the engine's publishing thread, or, where the change is not even queued
/// (`UNAUTHORIZED`, `BUSY`, a stop), on the thread that submits it, before that returns. So it takes no lock that
/// the submitter holds. It does not block, for all other answers wait behind it. It is dropped without a call where
/// the engine breaks before it answers: whether the change was made is not known then.
pub(crate) type Reply = Box<dyn FnOnce(Result<Receipt, Error>) + Send>;

/// Something that happened to a resource, announced after it was committed.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The kind of event.
    pub kind: EventKind,
    /// To what.
    pub target: Ref,
    /// The resource as CBOR; nothing for what was forgotten.
    pub resource: Vec<u8>,
    /// The cause, if no caller asked for it.
    pub cause: Option<Cause>,
    /// The transaction; of what wrote nothing, the last one before. 0 until it is committed.
    pub seq: u64,
}

impl Event {
    /// The announced payload as CBOR: the resource, or the `{"ref"}` of a forgotten one.
    pub fn payload(&self) -> Cow<'_, [u8]> {
        match self.kind {
            EventKind::Forgotten => {
                let mut map = Map::new();
                map.insert("ref", self.target.to_string());
                Cow::Owned(cbor::to_vec(&Value::Object(map)))
            }
            _ => Cow::Borrowed(&self.resource),
        }
    }
}
