//! Writes a manifest into its Episode, in the order of the deterministic encoding.

use omir_core::cbor;
use omir_core::instant::Timestamp;
use omir_core::value::{Map, Value};

use super::{FORMAT, Manifest, Older, URL, id};
use crate::PRODUCER;
use crate::recorded::tombstone::{DeletionOrigin, EndCause, Target};
use crate::recorded::transaction::Touch;
use crate::recorded::values::int;
use crate::recorded::version::Stamp;

pub(super) fn object<const N: usize>(members: [(&str, Value); N]) -> Map {
    members.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
}

/// The members of a stamp, in the order of the deterministic encoding.
fn stamp_members(stamp: &Stamp) -> [(&'static str, Value); 4] {
    [
        ("seq", int(stamp.seq)),
        ("ordinal", int(stamp.ordinal)),
        ("version", int(stamp.version)),
        ("recorded", int(stamp.recorded)),
    ]
}

/// A list as it is written, from its items one by one.
fn list(items: impl ExactSizeIterator<Item = Value>) -> Vec<u8> {
    let mut out = Vec::new();
    cbor::write_array_header(items.len(), &mut out);
    items.for_each(|item| cbor::write(&item, &mut out));
    out
}

/// Differences between neighbours, the first to zero: small numbers, few bytes.
fn deltas(values: impl ExactSizeIterator<Item = i64>) -> Vec<u8> {
    let mut before = 0;
    list(values.map(|value| {
        let delta = value.wrapping_sub(before);
        before = value;
        int(delta)
    }))
}

/// The value of a member of the payload, as it is written.
enum Member<'a> {
    Encoded(Vec<u8>),
    /// The older versions, which are most of a payload: never put together but in the segment.
    Older(&'a [Older<'a>]),
}

impl From<Value> for Member<'_> {
    fn from(value: Value) -> Self {
        Self::Encoded(cbor::to_vec(&value))
    }
}

impl From<Vec<u8>> for Member<'_> {
    fn from(encoded: Vec<u8>) -> Self {
        Self::Encoded(encoded)
    }
}

/// Gives the bytes of a payload of these members, piece by piece. They come in the order of the
/// deterministic encoding.
fn write_payload(members: &[(&str, Member<'_>)], write: &mut dyn FnMut(&[u8])) {
    let mut piece = Vec::new();
    cbor::write_map_header(members.len(), &mut piece);
    for (name, member) in members {
        cbor::write(&Value::from(*name), &mut piece);
        match member {
            Member::Encoded(bytes) => piece.extend_from_slice(bytes),
            Member::Older(older) => {
                cbor::write_array_header(older.len(), &mut piece);
                for (stamp, resource) in *older {
                    cbor::write_map_header(5, &mut piece);
                    for (name, value) in stamp_members(stamp) {
                        cbor::write(&Value::from(name), &mut piece);
                        cbor::write(&value, &mut piece);
                    }
                    cbor::write(&Value::from("resource"), &mut piece);
                    write(&piece);
                    write(resource);
                    piece.clear();
                }
            }
        }
        write(&piece);
        piece.clear();
    }
}

/// The order of keys in the deterministic encoding (RFC 8949 §4.2.1).
fn sort(members: &mut [(&str, Member<'_>)]) {
    members.sort_unstable_by_key(|(name, _)| (name.len(), *name));
}

impl Manifest {
    /// The members of the payload, `check` among them.
    fn members<'a>(&self, older: &'a [Older<'a>]) -> Vec<(&'static str, Member<'a>)> {
        let stamps = || self.entries.iter();
        let forgotten = self.forgotten.iter().map(|tombstone| {
            let mut map = object(stamp_members(&tombstone.stamp));
            match &tombstone.target {
                Target::Name(name) => map.insert("ref", name.clone()),
                Target::Key(key) => map.insert("key", key.to_hex()),
            };
            match tombstone.ending {
                EndCause::Dropped => map.insert("dropped", Value::Bool(true)),
                EndCause::Forgotten(DeletionOrigin::Rule) => map.insert("rule", Value::Bool(true)),
                EndCause::Forgotten(DeletionOrigin::Merging(into)) => {
                    map.insert("into", into.to_hex())
                }
                EndCause::Forgotten(DeletionOrigin::User) => None,
            };
            Value::Object(map)
        });
        let mut members = vec![
            ("format", int(FORMAT).into()),
            ("segment", int(self.segment).into()),
            ("log", int(self.log).into()),
            ("firstSeq", int(self.first_seq).into()),
            ("lastSeq", int(self.last_seq).into()),
            ("lastRecorded", int(self.last_recorded).into()),
            ("boots", int(self.boots).into()),
            ("seq", deltas(stamps().map(|s| s.seq as i64)).into()),
            ("ordinal", list(stamps().map(|s| int(s.ordinal))).into()),
            ("version", list(stamps().map(|s| int(s.version))).into()),
            ("recorded", deltas(stamps().map(|s| s.recorded)).into()),
            ("crc", list(self.crcs.iter().map(|&crc| int(crc))).into()),
            ("superseded", Member::Older(older)),
            ("forgotten", list(forgotten).into()),
            ("touched", list(self.touched.iter().map(Touch::to_item)).into()),
        ];
        if !self.replaces.is_empty() {
            let numbers = self.replaces.iter().map(|&number| int(number));
            members.push(("replaces", list(numbers).into()));
        }
        if let Some(mark) = &self.mark {
            members.push(("mark", Value::Object(object(mark.members())).into()));
        }
        sort(&mut members);
        let mut check = crc32fast::Hasher::new();
        write_payload(&members, &mut |piece| check.update(piece));
        members.push(("check", int(check.finalize()).into()));
        sort(&mut members);
        members
    }

    /// Appends the Episode that carries the manifest, with the older versions in it.
    pub fn write(&self, older: &[Older<'_>], sealed_at: Timestamp, out: &mut Vec<u8>) {
        let content = format!(
            "omird sealed segment {}: {} resources, {} older versions, {} forgotten.",
            self.segment,
            self.entries.len(),
            older.len(),
            self.forgotten.iter().filter(|tombstone| tombstone.is_forgotten()).count(),
        );
        // Maturity of an Episode in R1 (spec: Design Principles §4).
        let meta = object([
            ("omirVersion", "R1".into()),
            ("source", PRODUCER.into()),
            ("maturity", int(3)),
        ]);
        // In the order of the deterministic encoding.
        let members: [(&str, Value); 6] = [
            ("id", id(self.segment).into()),
            ("meta", Value::Object(meta)),
            ("name", format!("Sealed segment {}", self.segment).into()),
            ("source", "event".into()),
            ("content", content.into()),
            ("createdAt", sealed_at.to_string().into()),
        ];
        cbor::write_map_header(members.len() + 2, out);
        for (name, value) in &members {
            cbor::write(&Value::from(*name), out);
            cbor::write(value, out);
        }
        cbor::write(&Value::from("extension"), out);
        cbor::write_array_header(1, out);
        cbor::write_map_header(2, out);
        for text in ["url", URL, "valueJson"] {
            cbor::write(&Value::from(text), out);
        }
        write_payload(&self.members(older), &mut |piece| out.extend_from_slice(piece));
        for text in ["resourceType", "Episode"] {
            cbor::write(&Value::from(text), out);
        }
    }
}
