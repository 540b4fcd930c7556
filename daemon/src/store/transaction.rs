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
use std::ops::RangeInclusive;

use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::instant::Timestamp;
use omir_core::number::Number;
use omir_core::reference::Ref;
use omir_core::value::{Map, Value};

use crate::index::block::By;
use crate::index::key::RefKey;

/// Position of a transaction in the store's history; the first is 1.
pub type Seq = u64;

/// No store lives to see this many transactions; a file that claims more was not written by omird.
pub const MAX_SEQ: Seq = 1 << 62;

/// What one step of a transaction does.
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
        /// What is forgotten.
        target: Ref,
        /// The version the tombstone takes.
        version: u64,
        /// Who forgets.
        who: Who,
    },
    /// The state of access after one or more recalls; absolute, so repeating it changes nothing.
    Touch(Touch),
    /// The daemon started for the `count`th time on this store.
    Boot {
        /// Starts so far, this one included.
        count: u64,
    },
    /// Where the store itself stands; absolute, the newest counts.
    Mark(Mark),
}

/// Who forgets, as a transaction says it; see [`Transaction::by`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// Someone.
    Someone,
    /// A rule that lets go of it.
    Rule,
    /// A rule that makes it a part of the record that is put at this position of the transaction.
    Merging(usize),
}

/// Small state of the store that must survive a power cut and belongs to no memory. Each is written
/// now and then, never for its own sake alone more often than [`Settings::mark_interval`].
///
/// [`Settings::mark_interval`]: crate::engine::settings::Settings::mark_interval
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Mark {
    /// The best wall clock known at the time of writing; microseconds since 1970.
    pub now: i64,
    /// Time since the machine started, suspend included; microseconds.
    pub monotonic: i64,
    /// Which start of the machine `monotonic` counts from; empty if the system has no name for it.
    pub boot_id: String,
    /// Bytes written to the card over the life of the store.
    pub written: u64,
    /// Bytes of the memories that came in over the life of the store, as stored.
    pub payload: u64,
    /// Until when tiers were moved and the moves announced; microseconds since 1970.
    pub swept: i64,
    /// When `written` began to count; microseconds since 1970, 0 until a clock was right.
    pub began: i64,
    /// The day that `today` counts for; microseconds since 1970.
    pub day: i64,
    /// Bytes that count for that day's budget.
    pub today: u64,
    /// The time that what cannot be undone went by; microseconds since 1970, 0 if none was noted.
    pub certain: i64,
    /// Spans without a clock whose memories are not all dated anew yet.
    pub unsettled: Vec<Unsettled>,
}

/// A span of one boot of the machine in which nobody knew the time, or nothing said that the clock was
/// right. Microseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Unsettled {
    /// Which start of the machine.
    pub boot_id: String,
    /// Nothing in it was recorded with an earlier order stamp; since 1970.
    pub since: i64,
    /// When it began, on the monotonic clock.
    pub from: i64,
    /// When it ended, on the monotonic clock; zero while it lasts.
    pub until: i64,
    /// Dating less the monotonic clock, in this span.
    pub before: i64,
    /// The same once the clock was set, if it was.
    pub after: Option<i64>,
    /// Whether there was a clock that may have been right.
    pub coarse: bool,
}

impl Unsettled {
    /// What dating showed in it; microseconds since 1970.
    pub fn dated(&self) -> RangeInclusive<i64> {
        self.before.saturating_add(self.from)..=self.before.saturating_add(self.until)
    }

    /// How far dating stepped at its end, if the clock was set.
    pub fn step(&self) -> Option<i64> {
        Some(self.after?.saturating_sub(self.before))
    }

    fn to_value(&self) -> Value {
        let mut members = vec![
            ("bootId", self.boot_id.as_str().into()),
            ("since", int(self.since)),
            ("from", int(self.from)),
            ("until", int(self.until)),
            ("before", int(self.before)),
        ];
        members.extend(self.after.map(|after| ("after", int(after))));
        members.extend(self.coarse.then_some(("coarse", Value::Bool(true))));
        object(&members)
    }

    fn from_map(map: &Map) -> Self {
        let micros = |name: &str| map.get(name).and_then(Value::as_i64).unwrap_or(0);
        Self {
            boot_id: map.get("bootId").and_then(Value::as_str).unwrap_or_default().to_owned(),
            since: micros("since"),
            from: micros("from"),
            until: micros("until"),
            before: micros("before"),
            after: map.get("after").and_then(Value::as_i64),
            coarse: map.get("coarse").and_then(Value::as_bool).unwrap_or(false),
        }
    }
}

/// The members of a mark that a log lists by position.
const STATE: [&str; 10] = [
    "now",
    "monotonic",
    "bootId",
    "written",
    "payload",
    "swept",
    "began",
    "day",
    "today",
    "certain",
];

impl Mark {
    /// As members of a map.
    pub fn members(&self) -> [(&'static str, Value); 11] {
        [
            ("now", int(self.now)),
            ("monotonic", int(self.monotonic)),
            ("bootId", self.boot_id.as_str().into()),
            ("written", int(self.written)),
            ("payload", int(self.payload)),
            ("swept", int(self.swept)),
            ("began", int(self.began)),
            ("day", int(self.day)),
            ("today", int(self.today)),
            ("certain", int(self.certain)),
            ("unsettled", Value::Array(self.unsettled.iter().map(Unsettled::to_value).collect())),
        ]
    }

    /// As members of a step of a log: a list in the order of [`STATE`], as there are many of these.
    fn step(&self) -> Vec<(&'static str, Value)> {
        let members = self.members();
        let member = |name: &str| members.iter().find(|(other, _)| *other == name);
        let state = STATE.into_iter().filter_map(member).map(|(_, value)| value.clone());
        let mut step = vec![("state", Value::Array(state.collect()))];
        if !self.unsettled.is_empty() {
            step.extend(members.iter().filter(|(name, _)| *name == "unsettled").cloned());
        }
        step
    }

    /// Reads it from a map with members, or with the list of a step of a log; what is missing counts
    /// as zero.
    pub fn from_map(map: &Map) -> Self {
        let state = map.get("state").and_then(Value::as_array);
        let member = |name: &str| match state {
            Some(state) => state.get(STATE.iter().position(|other| *other == name)?),
            None => map.get(name),
        };
        let signed = |name: &str| member(name).and_then(Value::as_i64).unwrap_or(0);
        let unsigned = |name: &str| member(name).and_then(Value::as_u64).unwrap_or(0);
        Self {
            now: signed("now"),
            monotonic: signed("monotonic"),
            boot_id: member("bootId").and_then(Value::as_str).unwrap_or_default().to_owned(),
            written: unsigned("written"),
            payload: unsigned("payload"),
            swept: signed("swept"),
            began: signed("began"),
            day: signed("day"),
            today: unsigned("today"),
            certain: signed("certain"),
            unsettled: map
                .get("unsettled")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(|span| Some(Unsettled::from_map(span.as_object()?)))
                .collect(),
        }
    }

    /// Takes over a mark that was written later. The odometers only rise.
    pub fn follow(&mut self, later: &Mark) {
        let (written, payload) = (self.written, self.payload);
        self.clone_from(later);
        self.written = self.written.max(written);
        self.payload = self.payload.max(payload);
    }
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
    pub(super) fn from_map(target: String, map: &Map) -> Option<Self> {
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
    pub(super) fn to_item(&self) -> Value {
        Value::Array(vec![
            self.target.as_str().into(),
            int(self.last_access),
            int(self.access_count),
            float(self.half_life_hours),
        ])
    }

    /// Reads an item of a list.
    pub(super) fn from_item(item: &Value) -> Option<Self> {
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

    /// Whether it is written in one step with the one before it.
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
    /// What it does, in order.
    pub ops: Vec<Op>,
}

/// A transaction that passed its CRC and still cannot be understood: written by a newer omird, or
/// damaged before it was framed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Byte of the payload.
    pub offset: usize,
    /// What was expected there.
    pub message: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.offset, self.message)
    }
}

fn object(members: &[(&str, Value)]) -> Value {
    Value::Object(members.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect::<Map>())
}

fn int(n: impl Into<i128>) -> Value {
    Value::Number(Number::from(n.into()))
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
                        Who::Someone => {}
                        Who::Rule => members.push(("rule", Value::Bool(true))),
                        Who::Merging(at) => members.push(("into", int(*at as u64))),
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

    /// Who forgets, by the name of the record that something becomes a part of. Where that cannot be
    /// told it is someone, so that nothing is kept longer for it.
    pub fn by(&self, who: Who) -> By {
        match who {
            Who::Someone => By::Someone,
            Who::Rule => By::Rule,
            Who::Merging(at) => match self.ops.get(at) {
                Some(Op::Put { resource, .. }) => name_of(resource)
                    .map_or(By::Someone, |name| By::Merging(RefKey::of_text(&name))),
                _ => By::Someone,
            },
        }
    }
}

fn who(step: &Map) -> Who {
    match step.get("into").and_then(Value::as_u64).map(usize::try_from) {
        Some(Ok(at)) => Who::Merging(at),
        _ if step.get("rule").and_then(Value::as_bool) == Some(true) => Who::Rule,
        _ => Who::Someone,
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
mod tests {
    use super::*;

    fn sample() -> Transaction {
        Transaction {
            seq: 9,
            at: Timestamp::from_micros(1_780_000_000_000_001),
            ops: vec![
                Op::Put { version: 2, resource: cbor::to_vec(&object(&[("id", "x".into())])) },
                Op::Forget { target: "Entity/y".parse().unwrap(), version: 4, who: Who::Someone },
                Op::Forget { target: "Entity/z".parse().unwrap(), version: 2, who: Who::Rule },
                Op::Forget {
                    target: "Entity/w".parse().unwrap(),
                    version: 2,
                    who: Who::Merging(0),
                },
                Op::Touch(Touch {
                    target: "MemoryRecord/x".into(),
                    last_access: 5,
                    access_count: 3,
                    half_life_hours: 12.5,
                }),
                Op::Boot { count: 8 },
                Op::Mark(Mark {
                    now: 1_780_000_000_000_000,
                    monotonic: 12_000_000,
                    boot_id: "5d1c".into(),
                    written: 400,
                    payload: 150,
                    swept: 1_779_000_000_000_000,
                    began: 1_770_000_000_000_000,
                    day: 1_779_926_400_000_000,
                    today: 70,
                    certain: 1_779_926_400_000_001,
                    unsettled: vec![
                        Unsettled { boot_id: "5d1c".into(), since: 7, ..Unsettled::default() },
                        Unsettled {
                            from: 1,
                            until: 2,
                            before: -3,
                            after: Some(4),
                            coarse: true,
                            ..Unsettled::default()
                        },
                    ],
                }),
            ],
        }
    }

    #[test]
    fn a_transaction_is_read_back_with_its_resources_in_place() {
        let transaction = sample();
        let mut payload = Vec::new();
        let places = transaction.encode(&mut payload);
        let (read, found) = Transaction::decode(&payload).unwrap();
        assert_eq!(read, transaction);
        assert_eq!(found, places);
        let Op::Put { resource, .. } = &transaction.ops[0] else { unreachable!() };
        assert!(payload[places[0].unwrap()..].starts_with(resource));
    }

    #[test]
    fn an_access_state_is_read_as_it_was_written_before() {
        let step = |more: &[(&str, Value)]| {
            let mut members = vec![("op", "touch".into()), ("ref", "MemoryRecord/x".into())];
            members.extend_from_slice(more);
            let head = object(&[("seq", int(1u64)), ("at", int(2)), ("ops", int(1))]);
            let mut payload = cbor::to_vec(&head);
            cbor::write(&object(&members), &mut payload);
            Transaction::decode(&payload).map(|(transaction, _)| transaction.ops)
        };
        let old = [("lastAccess", int(5)), ("accessCount", int(3)), ("halfLifeHours", float(12.5))];
        assert_eq!(step(&old).unwrap(), [sample().ops[4].clone()]);
        let list = [int(5), int(3), float(12.5)];
        let shorter = [("state", Value::Array(list.to_vec()))];
        assert_eq!(step(&shorter).unwrap(), [sample().ops[4].clone()]);
        let short = [("state", Value::Array(list[..2].to_vec()))];
        assert!(step(&short).is_err());
    }

    #[test]
    fn a_tombstone_is_read_as_it_was_written_before() {
        let head = object(&[("seq", int(1u64)), ("at", int(2)), ("ops", int(1))]);
        let mut payload = cbor::to_vec(&head);
        let step = [("op", "forget".into()), ("ref", "Entity/y".into()), ("version", int(4u64))];
        cbor::write(&object(&step), &mut payload);
        let (read, _) = Transaction::decode(&payload).unwrap();
        assert_eq!(read.ops, [sample().ops[1].clone()], "by someone, as far as anybody knows");
    }

    #[test]
    fn what_is_alike_is_written_together_and_stays_apart() {
        let forget = |n: usize, who| Op::Forget {
            target: format!("MemoryRecord/m{n}").parse().unwrap(),
            version: n as u64,
            who,
        };
        let touch = |n: usize| {
            Op::Touch(Touch {
                target: format!("MemoryRecord/m{n}"),
                last_access: 5,
                access_count: 3,
                half_life_hours: 12.5,
            })
        };
        let put = sample().ops[0].clone();
        let mut ops = vec![put.clone()];
        ops.extend((0..3).map(|n| forget(n, Who::Merging(0))));
        ops.push(put);
        ops.extend((3..9).map(|n| forget(n, Who::Merging(4))));
        ops.extend((9..12).map(|n| forget(n, Who::Rule)));
        ops.extend((0..2 * TOGETHER + 1).map(touch));
        let transaction = Transaction { ops, ..sample() };
        let mut payload = Vec::new();
        let places = transaction.encode(&mut payload);
        let (head, _) = cbor::read_item(&payload, &Limits::default()).unwrap();
        assert_eq!(head.get("ops").and_then(Value::as_u64), Some(5 + 3));
        assert_eq!(Transaction::decode(&payload).unwrap(), (transaction, places));
    }

    #[test]
    fn who_forgets_is_told_by_the_name_of_the_record() {
        let name = [("resourceType", "MemoryRecord".into()), ("id", "kept".into())];
        let record = Op::Put { version: 2, resource: cbor::to_vec(&object(&name)) };
        let transaction = Transaction { ops: vec![record, Op::Boot { count: 1 }], ..sample() };
        let kept = By::Merging(RefKey::of_text("MemoryRecord/kept"));
        assert_eq!(transaction.by(Who::Merging(0)), kept);
        assert_eq!(transaction.by(Who::Rule), By::Rule);
        // What cannot be told is not kept for it.
        for who in [Who::Someone, Who::Merging(1), Who::Merging(2)] {
            assert_eq!(transaction.by(who), By::Someone);
        }
        assert_eq!(sample().by(Who::Merging(0)), By::Someone, "it has no type");
    }

    #[test]
    fn a_mark_is_read_as_it_was_written_before() {
        let Op::Mark(mark) = sample().ops.pop().unwrap() else { panic!("the last is a mark") };
        let Value::Object(members) = object(&mark.members()) else { unreachable!() };
        assert_eq!(Mark::from_map(&members), mark);
        let Value::Object(step) = object(&mark.step()) else { unreachable!() };
        assert_eq!(Mark::from_map(&step), mark);
        assert_eq!(STATE.len() + 1, mark.members().len(), "none is left out");
    }

    #[test]
    fn a_number_that_nothing_could_follow_is_refused() {
        let mut payload = Vec::new();
        Transaction { seq: u64::MAX, ..sample() }.encode(&mut payload);
        assert!(Transaction::decode(&payload).is_err());
    }

    #[test]
    fn a_cut_payload_is_refused_at_every_byte() {
        let mut payload = Vec::new();
        sample().encode(&mut payload);
        for cut in 0..payload.len() {
            assert!(Transaction::decode(&payload[..cut]).is_err(), "cut at {cut}");
        }
    }
}
