//! One transaction: what a request changes, all of it or none.
//!
//! As the payload of a log frame it is a CBOR sequence (RFC 8742), so that the bytes of a stored
//! resource lie in the log exactly as they will lie in a segment, and can be read in place:
//!
//! ```text
//! {"seq": u64, "at": microseconds since 1970, "ops": count}
//! {"op": "put", "version": u64}  <resource>
//! {"op": "forget", "ref": "Entity/x", "version": u64}
//! {"op": "touch", "ref": "MemoryRecord/x", "state": [lastAccess µs, accessCount, halfLifeHours]}
//! {"op": "boot", "count": u64}
//! {"op": "mark", "now": µs, "monotonic": µs, "bootId": text, "written": u64, "payload": u64, "swept": µs,
//!  "began": µs, "day": µs, "today": u64, "certain": µs,
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

    /// Reads it from a map; what is missing counts as zero.
    pub fn from_map(map: &Map) -> Self {
        let signed = |name: &str| map.get(name).and_then(Value::as_i64).unwrap_or(0);
        let unsigned = |name: &str| map.get(name).and_then(Value::as_u64).unwrap_or(0);
        Self {
            now: signed("now"),
            monotonic: signed("monotonic"),
            boot_id: map.get("bootId").and_then(Value::as_str).unwrap_or_default().to_owned(),
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
    /// As a short list: there are more of these than of anything else in a log.
    fn state(&self) -> Value {
        let hours = float(self.half_life_hours);
        Value::Array(vec![int(self.last_access), int(self.access_count), hours])
    }

    /// Reads what [`Touch::state`] gives, or the members that stood in its place before.
    fn from_map(target: String, map: &Map) -> Option<Self> {
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
        let head = object(&[
            ("seq", int(self.seq)),
            ("at", int(self.at.as_micros())),
            ("ops", int(self.ops.len() as u64)),
        ]);
        cbor::write(&head, out);
        self.ops
            .iter()
            .map(|op| {
                match op {
                    Op::Put { version, resource } => {
                        let put = object(&[("op", "put".into()), ("version", int(*version))]);
                        cbor::write(&put, out);
                        let at = out.len() - start;
                        out.extend_from_slice(resource);
                        return Some(at);
                    }
                    Op::Forget { target, version } => cbor::write(
                        &object(&[
                            ("op", "forget".into()),
                            ("ref", target.to_string().into()),
                            ("version", int(*version)),
                        ]),
                        out,
                    ),
                    Op::Touch(touch) => cbor::write(
                        &object(&[
                            ("op", "touch".into()),
                            ("ref", touch.target.clone().into()),
                            ("state", touch.state()),
                        ]),
                        out,
                    ),
                    Op::Boot { count } => {
                        cbor::write(&object(&[("op", "boot".into()), ("count", int(*count))]), out)
                    }
                    Op::Mark(mark) => {
                        let mut members = vec![("op", "mark".into())];
                        members.extend(mark.members());
                        cbor::write(&object(&members), out);
                    }
                }
                None
            })
            .collect()
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
            let mut place = None;
            ops.push(match name {
                "put" => {
                    let version = reader.u64(&step, "version")?;
                    place = Some(reader.at);
                    Op::Put { version, resource: reader.raw()?.to_vec() }
                }
                "forget" => Op::Forget {
                    target: reader
                        .text(&step, "ref")?
                        .parse()
                        .map_err(|_| reader.fault("`ref` is no reference"))?,
                    version: reader.u64(&step, "version")?,
                },
                "touch" => {
                    let target = reader.text(&step, "ref")?.to_owned();
                    let touch = Touch::from_map(target, &step);
                    Op::Touch(touch.ok_or_else(|| reader.fault("`state` is no access state"))?)
                }
                "boot" => Op::Boot { count: reader.u64(&step, "count")? },
                "mark" => Op::Mark(Mark::from_map(&step)),
                other => return Err(reader.fault(&format!("unknown step {other:?}"))),
            });
            places.push(place);
        }
        if reader.at != payload.len() {
            return Err(reader.fault("bytes behind the last step"));
        }
        Ok((Self { seq, at, ops }, places))
    }
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
                Op::Forget { target: "Entity/y".parse().unwrap(), version: 4 },
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
        assert_eq!(step(&old).unwrap(), [sample().ops[2].clone()]);
        let short = [("state", Value::Array(vec![int(5), int(3)]))];
        assert!(step(&short).is_err());
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
