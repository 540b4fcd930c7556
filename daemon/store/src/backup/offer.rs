//! A daemon's offer for a backup, as it goes over the wire.

use std::io;

use omir_core::value::{Map, Value};

use crate::digest::hex;
use crate::disk::{self, Disk, DiskFile};
use crate::files::SeqRange;
use crate::recorded::values::int;
use crate::segment;
use crate::signing::device_key;
use crate::signing::signature::Seal;

/// The list of all segments of a daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Name of the robot.
    pub robot: String,
    /// The daemon and its version.
    pub program: String,
    /// The key it signs with, in hex.
    pub public_key: String,
    /// Why the newest memories are not sealed, and so not in here, if that is so.
    pub unsealed: Option<String>,
    /// The segments, in the order of their transactions.
    pub segments: Vec<Offered>,
}

/// One segment on offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    /// Its number.
    pub segment: u64,
    /// Its length.
    pub bytes: u64,
    /// The first transaction in it.
    pub first_seq: u64,
    /// The last.
    pub last_seq: u64,
    /// The text of its signature file; none if the robot has lost it.
    pub signature: Option<String>,
}

impl Offered {
    /// A segment that is served from an open file.
    ///
    /// # Errors
    /// The path of the file that cannot be read, and why.
    pub fn of(
        disk: &dyn Disk,
        segment: u64,
        span: SeqRange,
        file: &dyn DiskFile,
    ) -> Result<Self, (String, io::Error)> {
        let path = segment::signature_path(segment);
        let signature = match disk::read(disk, &path) {
            Ok(text) => String::from_utf8(text).ok(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err((path, error)),
        };
        let bytes = file.len().map_err(|error| (segment::path(segment), error))?;
        let SeqRange { first_seq, last_seq } = span;
        Ok(Self { segment, bytes, first_seq, last_seq, signature })
    }

    /// Its signature, if that can be read.
    pub fn seal(&self) -> Option<Seal> {
        Seal::from_json(self.signature.as_ref()?.as_bytes()).ok()
    }
}

impl Offer {
    /// The last transaction in any segment.
    pub fn last_seq(&self) -> u64 {
        self.segments.iter().map(|offered| offered.last_seq).max().unwrap_or(0)
    }

    /// As it goes over the wire. `sha256` is that of the signature, for readers of the list.
    pub fn to_value(&self) -> Value {
        let segments = self.segments.iter().map(|offered| {
            let mut map = Map::new();
            map.insert("segment", int(offered.segment));
            map.insert("bytes", int(offered.bytes));
            let sha256 = offered.seal().map(|seal| hex(&seal.contents.sha256));
            map.insert("sha256", sha256.map_or(Value::Null, Value::from));
            map.insert("firstSeq", int(offered.first_seq));
            map.insert("lastSeq", int(offered.last_seq));
            let signature = offered.signature.clone();
            map.insert("signature", signature.map_or(Value::Null, Value::from));
            Value::Object(map)
        });
        let mut map = Map::new();
        map.insert("segments", Value::Array(segments.collect()));
        map.insert("robot", self.robot.as_str());
        map.insert("omird", self.program.as_str());
        map.insert("publicKey", self.public_key.as_str());
        map.insert("lastSeq", int(self.last_seq()));
        map.insert("unsealed", self.unsealed.clone().map_or(Value::Null, Value::from));
        Value::Object(map)
    }

    /// Reads it from the wire; `None` if it is no such list.
    pub fn from_value(value: &Value) -> Option<Self> {
        let text = |value: &Value, name: &str| value.get(name)?.as_str().map(str::to_owned);
        let read = |item: &Value| {
            let int = |name: &str| item.get(name).and_then(Value::as_u64);
            Some(Offered {
                // Larger numbers are no files of a store.
                segment: int("segment").filter(|&n| n < u64::from(u32::MAX))?,
                bytes: int("bytes")?,
                first_seq: int("firstSeq")?,
                last_seq: int("lastSeq")?,
                signature: text(item, "signature"),
            })
        };
        let mut segments =
            value.get("segments")?.as_array()?.iter().map(read).collect::<Option<Vec<_>>>()?;
        segments.sort_by_key(|offered| (offered.first_seq, offered.segment));
        Some(Self {
            robot: text(value, "robot")?,
            program: text(value, "omird")?,
            public_key: device_key::public_keys(&text(value, "publicKey")?).next()?,
            unsealed: text(value, "unsealed"),
            segments,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::digest;
    use crate::signing::signature::{Contents, DeviceKey};

    #[test]
    fn an_offer_survives_the_wire_and_comes_out_in_order() {
        let contents = Contents { bytes: 5, sha256: digest(b"bytes"), root: None };
        let seal = DeviceKey::from_secret([7; 32]).sign(9, &contents, [0; 32], None);
        let offered = |segment, first_seq, signature: Option<String>| Offered {
            segment,
            bytes: 5,
            first_seq,
            last_seq: first_seq + 3,
            signature,
        };
        let sent = Offer {
            robot: "r1".to_owned(),
            program: "omird 0".to_owned(),
            public_key: hex(&seal.public_key),
            unsealed: Some("the disk is full".to_owned()),
            segments: vec![offered(2, 5, None), offered(9, 1, Some(seal.to_json()))],
        };
        assert_eq!(sent.last_seq(), 8);
        let value = sent.to_value();
        let sha256 = value.pointer("/segments/1/sha256").and_then(Value::as_str);
        assert_eq!(sha256, Some(hex(&digest(b"bytes")).as_str()));
        let read = Offer::from_value(&value).unwrap();
        assert_eq!(read.segments, [sent.segments[1].clone(), sent.segments[0].clone()]);
        assert_eq!(read.segments[0].seal(), Some(seal));
        assert_eq!((read.unsealed, read.public_key), (sent.unsealed, sent.public_key));
    }

    #[test]
    fn what_is_no_list_of_segments_is_none() {
        assert_eq!(Offer::from_value(&Value::from("no")), None);
        let mut offer = Offer {
            robot: "r1".to_owned(),
            program: "omird 0".to_owned(),
            public_key: "k".to_owned(),
            unsealed: None,
            segments: Vec::new(),
        };
        assert_eq!(Offer::from_value(&offer.to_value()), None, "what is no key");
        offer.public_key = "7f".repeat(32);
        assert!(Offer::from_value(&offer.to_value()).is_some());
        let signature = None;
        let segment = u64::MAX;
        offer.segments = vec![Offered { segment, bytes: 1, first_seq: 1, last_seq: 1, signature }];
        assert_eq!(Offer::from_value(&offer.to_value()), None, "a number that is no file's");
    }
}
