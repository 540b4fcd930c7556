//! One transaction: what a request changes, all of it or none.
//!
//! As the payload of a log frame it is a CBOR sequence (RFC 8742), so that the bytes of a stored
//! resource lie in the log exactly as they will lie in a segment, and can be read in place:
//!
//! ```text
//! {"seq": u64, "at": microseconds since 1970, "ops": count}
//! {"op": "put", "version": u64}  <resource>
//! {"op": "forget", "refs": [["Entity/x", version], ...], "rule": true, "into": position}
//! {"op": "touch", "states": [["MemoryRecord/x", lastAccess µs, accessCount, halfLifeHours], ...]}
//! {"op": "boot", "count": u64}
//! {"op": "mark", "state": [now µs, monotonic µs, bootId, written, payload, swept µs, began µs, day µs,
//!                          today, certain µs],
//!  "unsettled": [{"bootId": text, "since": µs, "from": µs, "until": µs, "before": µs,
//!                 "after": µs, "coarse": bool}, ...]}
//! ```

use std::fmt;

use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::instant::Timestamp;
use omir_core::number::Number;
use omir_core::reference::Ref;
use omir_core::value::{Map, Value};

use super::mark::Mark;
use super::ref_key::RefKey;
use super::tombstone::DeletionOrigin;
use super::values::{int, object};

/// Position of a transaction in the store's history; the first is 1.
pub(crate) type Seq = u64;

/// No store lives to see this many transactions; a file that claims more was not written by omird.
pub(crate) const MAX_SEQ: Seq = 1 << 62;

/// The effect of one step of a transaction.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// A new version of a resource.
    Put {
        /// The version, counted from 1 over the life of this reference.
        version: u64,
        /// The resource as deterministic CBOR.
        resource: Vec<u8>,
    },
    /// A tombstone.
    Forget {
        /// The reference.
        target: Ref,
        /// The version the tombstone takes.
        version: u64,
        /// The origin of the deletion.
        who: RecordedOrigin,
    },
    /// The state of access after one or more recalls; absolute, so repeating it changes nothing.
    Touch(Touch),
    /// The daemon started for the `count`th time on this store.
    Boot {
        /// Starts so far, this one included.
        count: u64,
    },
    /// Small state of the store; absolute, the newest counts.
    Mark(Mark),
}

/// The origin of a deletion, as a transaction says it; see [`Transaction::by`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordedOrigin {
    /// A user.
    User,
    /// A rule that lets go of it.
    Rule,
    /// A rule that makes it a part of the record that is put at this position of the transaction.
    Merging(usize),
}

/// Access state of a record at one moment.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Touch {
    /// The record.
    pub target: String,
    /// Last access, microseconds since 1970.
    pub last_access: i64,
    /// Accesses so far.
    pub access_count: u32,
    /// Half-life after reinforcement, in hours.
    pub half_life_hours: f64,
}

impl Touch {
    /// Reads the members that each had once, or those of a list.
    pub(crate) fn from_map(target: String, map: &Map) -> Option<Self> {
        let state = map.get("state").and_then(Value::as_array);
        let at = |index: usize, name: &str| match state {
            Some(state) => state.get(index),
            None => map.get(name),
        };
        Some(Self {
            target,
            last_access: at(0, "lastAccess")?.as_i64()?,
            access_count: at(1, "accessCount")?.as_u64()?.try_into().ok()?,
            half_life_hours: at(2, "halfLifeHours")?.as_f64()?,
        })
    }

    /// As an item of a list: there are more of these than of anything else in a log.
    pub(crate) fn to_item(&self) -> Value {
        Value::Array(vec![
            self.target.as_str().into(),
            int(self.last_access),
            int(self.access_count),
            float(self.half_life_hours),
        ])
    }

    /// Reads an item of a list.
    pub(crate) fn from_item(item: &Value) -> Option<Self> {
        let [target, last_access, access_count, half_life_hours] = item.as_array()? else {
            return None;
        };
        Some(Self {
            target: target.as_str()?.to_owned(),
            last_access: last_access.as_i64()?,
            access_count: access_count.as_u64()?.try_into().ok()?,
            half_life_hours: half_life_hours.as_f64()?,
        })
    }
}

/// Most ops that one step of a payload holds.
const TOGETHER: usize = 256;

impl Op {
    fn name(&self) -> &'static str {
        match self {
            Self::Put { .. } => "put",
            Self::Forget { .. } => "forget",
            Self::Touch(_) => "touch",
            Self::Boot { .. } => "boot",
            Self::Mark(_) => "mark",
        }
    }

    /// Returns true if it is written in one step with the one before it.
    fn goes_with(&self, next: &Self) -> bool {
        match (self, next) {
            (Self::Forget { who, .. }, Self::Forget { who: next, .. }) => who == next,
            (Self::Touch(_), Self::Touch(_)) => true,
            _ => false,
        }
    }

    /// As an item of a step that forgets.
    fn tombstone(&self) -> Option<Value> {
        let Self::Forget { target, version, .. } = self else { return None };
        Some(Value::Array(vec![target.to_string().into(), int(*version)]))
    }

    /// As an item of a step that tells of accesses.
    fn state(&self) -> Option<Value> {
        let Self::Touch(touch) = self else { return None };
        Some(touch.to_item())
    }
}

/// A transaction with its place in history.
#[derive(Debug, Clone, PartialEq)]
pub struct Transaction {
    /// Its position.
    pub seq: Seq,
    /// When it was recorded, on the store's clock.
    pub at: Timestamp,
    /// Its steps, in order.
    pub ops: Vec<Op>,
}

/// A transaction that passed its CRC and still cannot be understood: written by a newer omird, or
/// damaged before it was framed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Byte of the payload.
    pub offset: usize,
    /// A description of what was expected there.
    pub message: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.offset, self.message)
    }
}

impl Transaction {
    /// Appends the payload to `out`; returns, for each op, where its resource's bytes begin
    /// (relative to the start of the payload), or `None` if the op holds none.
    pub fn encode(&self, out: &mut Vec<u8>) -> Vec<Option<usize>> {
        let start = out.len();
        let steps: Vec<&[Op]> =
            self.ops.chunk_by(Op::goes_with).flat_map(|ops| ops.chunks(TOGETHER)).collect();
        let head = object(&[
            ("seq", int(self.seq)),
            ("at", int(self.at.as_micros())),
            ("ops", int(steps.len() as u64)),
        ]);
        cbor::write(&head, out);
        let mut places = Vec::with_capacity(self.ops.len());
        for ops in steps {
            let list = |item: &dyn Fn(&Op) -> Option<Value>| {
                Value::Array(ops.iter().filter_map(item).collect())
            };
            let step = match ops {
                [Op::Put { version, .. }, ..] => vec![("version", int(*version))],
                [Op::Forget { who, .. }, ..] => {
                    let mut members = vec![("refs", list(&Op::tombstone))];
                    match who {
                        RecordedOrigin::User => {}
                        RecordedOrigin::Rule => members.push(("rule", Value::Bool(true))),
                        RecordedOrigin::Merging(at) => members.push(("into", int(*at as u64))),
                    }
                    members
                }
                [Op::Touch(_), ..] => vec![("states", list(&Op::state))],
                [Op::Boot { count }, ..] => vec![("count", int(*count))],
                [Op::Mark(mark), ..] => mark.step(),
                [] => continue,
            };
            let name = ("op", ops[0].name().into());
            cbor::write(&object(&[&[name], &*step].concat()), out);
            for op in ops {
                let Op::Put { resource, .. } = op else {
                    places.push(None);
                    continue;
                };
                places.push(Some(out.len() - start));
                out.extend_from_slice(resource);
            }
        }
        places
    }

    /// Reads a payload; the second value tells where each put's resource begins in it.
    pub fn decode(payload: &[u8]) -> Result<(Self, Vec<Option<usize>>), Unreadable> {
        let mut reader = Reader { payload, at: 0 };
        let head = reader.object()?;
        let seq = reader.u64(&head, "seq")?;
        if seq > MAX_SEQ {
            return Err(reader.fault("`seq` is beyond what any store reaches"));
        }
        let at = Timestamp::from_micros(reader.i64(&head, "at")?);
        let count = reader.u64(&head, "ops")?;
        let mut ops = Vec::new();
        let mut places = Vec::new();
        for _ in 0..count {
            let step = reader.object()?;
            let name = step.get("op").and_then(Value::as_str).unwrap_or_default();
            match name {
                "put" => {
                    let version = reader.u64(&step, "version")?;
                    places.push(Some(reader.at));
                    ops.push(Op::Put { version, resource: reader.raw()?.to_vec() });
                }
                "forget" => reader.tombstones(&step, &mut ops)?,
                "touch" => reader.touches(&step, &mut ops)?,
                "boot" => ops.push(Op::Boot { count: reader.u64(&step, "count")? }),
                "mark" => ops.push(Op::Mark(Mark::from_map(&step))),
                other => return Err(reader.fault(&format!("unknown step {other:?}"))),
            }
            places.resize(ops.len(), None);
        }
        if reader.at != payload.len() {
            return Err(reader.fault("bytes behind the last step"));
        }
        Ok((Self { seq, at, ops }, places))
    }

    /// The origin of a deletion, by the name of the record that something becomes a part of. If that cannot be
    /// told, it counts as a user's deletion, so that nothing is kept longer for it.
    pub fn by(&self, who: RecordedOrigin) -> DeletionOrigin {
        match who {
            RecordedOrigin::User => DeletionOrigin::User,
            RecordedOrigin::Rule => DeletionOrigin::Rule,
            RecordedOrigin::Merging(at) => match self.ops.get(at) {
                Some(Op::Put { resource, .. }) => name_of(resource)
                    .map_or(DeletionOrigin::User, |name| {
                        DeletionOrigin::Merging(RefKey::of_text(&name))
                    }),
                _ => DeletionOrigin::User,
            },
        }
    }
}

fn who(step: &Map) -> RecordedOrigin {
    match step.get("into").and_then(Value::as_u64).map(usize::try_from) {
        Some(Ok(at)) => RecordedOrigin::Merging(at),
        _ if step.get("rule").and_then(Value::as_bool) == Some(true) => RecordedOrigin::Rule,
        _ => RecordedOrigin::User,
    }
}

/// `Type/id` of a resource, without decoding the rest of it.
fn name_of(resource: &[u8]) -> Option<String> {
    let (mut kind, mut id) = (None, None);
    for entry in cbor::map_entries(resource).ok()? {
        let of = match &*entry.key {
            "resourceType" => &mut kind,
            "id" => &mut id,
            _ => continue,
        };
        let value = cbor::from_slice(&resource[entry.value_range], &Limits::default()).ok()?;
        *of = Some(value.as_str()?.to_owned());
    }
    Some(format!("{}/{}", kind?, id?))
}

/// A float as a value; the half-lives written here were checked to be finite.
fn float(n: f64) -> Value {
    Number::from_f64(n).map_or(Value::Null, Value::Number)
}

struct Reader<'a> {
    payload: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn fault(&self, message: &str) -> Unreadable {
        Unreadable { offset: self.at, message: message.to_owned() }
    }

    fn object(&mut self) -> Result<Map, Unreadable> {
        let (value, used) = cbor::read_item(&self.payload[self.at..], &Limits::default())
            .map_err(|error| self.fault(&error.to_string()))?;
        let Value::Object(map) = value else { return Err(self.fault("expected a map")) };
        self.at += used;
        Ok(map)
    }

    fn raw(&mut self) -> Result<&'a [u8], Unreadable> {
        let rest = &self.payload[self.at..];
        let used = cbor::skip_item(rest, &Limits::default())
            .map_err(|error| self.fault(&error.to_string()))?;
        self.at += used;
        Ok(&rest[..used])
    }

    fn u64(&self, map: &Map, name: &str) -> Result<u64, Unreadable> {
        map.get(name)
            .and_then(Value::as_u64)
            .ok_or_else(|| self.fault(&format!("`{name}` is no unsigned integer")))
    }

    fn i64(&self, map: &Map, name: &str) -> Result<i64, Unreadable> {
        map.get(name)
            .and_then(Value::as_i64)
            .ok_or_else(|| self.fault(&format!("`{name}` is no integer")))
    }

    /// The tombstones of a step: a list of them, or the members of one, as they were written once.
    fn tombstones(&self, step: &Map, ops: &mut Vec<Op>) -> Result<(), Unreadable> {
        let who = who(step);
        let fault = |message: &str| self.fault(message);
        let target = |name: &str| name.parse::<Ref>().map_err(|_| fault("`ref` is no reference"));
        let Some(items) = step.get("refs").and_then(Value::as_array) else {
            let (target, version) = (target(self.text(step, "ref")?)?, self.u64(step, "version")?);
            ops.push(Op::Forget { target, version, who });
            return Ok(());
        };
        for item in items {
            let (name, version) = match item.as_array() {
                Some([name, version]) => (name.as_str(), version.as_u64()),
                _ => (None, None),
            };
            let (Some(name), Some(version)) = (name, version) else {
                return Err(fault("an item of `refs` is no reference with a version"));
            };
            ops.push(Op::Forget { target: target(name)?, version, who });
        }
        Ok(())
    }

    /// The access states of a step: a list of them, or the members of one, as they were written once.
    fn touches(&self, step: &Map, ops: &mut Vec<Op>) -> Result<(), Unreadable> {
        let no_state = || self.fault("`state` is no access state");
        let Some(items) = step.get("states").and_then(Value::as_array) else {
            let target = self.text(step, "ref")?.to_owned();
            ops.push(Op::Touch(Touch::from_map(target, step).ok_or_else(no_state)?));
            return Ok(());
        };
        for item in items {
            ops.push(Op::Touch(Touch::from_item(item).ok_or_else(no_state)?));
        }
        Ok(())
    }

    fn text<'m>(&self, map: &'m Map, name: &str) -> Result<&'m str, Unreadable> {
        map.get(name)
            .and_then(Value::as_str)
            .ok_or_else(|| self.fault(&format!("`{name}` is no text")))
    }
}

#[cfg(test)]
mod tests;
