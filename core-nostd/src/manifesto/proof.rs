//! Proofs as they are written, and read back.
//!
//! | method | members of `proof` |
//! |---|---|
//! | `existence` | none |
//! | `hash` | `alg`, `canon`, `worldId`, `computedHash`, `expectedHash`? |
//! | `merkle` | `alg`, `canon`, `worldId`, `computedRoot`, `expectedRoot`?, `pathProof`? |
//! | `signature` | `alg`, `canon`, `worldId`, `hash`, `publicKey`, `signature` |
//!
//! Hashes are lower-case hexadecimal. Each names the World, so that it cannot be moved to another reference. A proof with
//! a member more is none of these.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

pub(super) use crate::hex::encode as hex;
use crate::merkle::{Hash, Side};
use crate::value::{Map, Value};

/// A VerificationProof: a method, and what that method calls a proof. It holds no time and no actor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The method.
    pub method: String,
    /// The data, if the method has some.
    pub proof: Option<Value>,
}

impl Proof {
    /// Takes method and proof out of a VerificationProof or a VerificationEvidence, and nothing else: what an Authority must
    /// do before it verifies. `None` if there is no method.
    pub fn extract(value: &Value) -> Option<Self> {
        let method = value.get("method")?.as_str().filter(|method| !method.is_empty())?;
        let proof = value.get("proof").filter(|proof| !proof.is_null()).cloned();
        Some(Self { method: method.into(), proof })
    }

    /// Returns the JSON of it.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("method", self.method.as_str());
        if let Some(proof) = &self.proof {
            map.insert("proof", proof.clone());
        }
        Value::Object(map)
    }

    /// Returns the WorldId that it names.
    pub fn world_id(&self) -> Option<&str> {
        self.proof.as_ref()?.get("worldId")?.as_str()
    }
}

/// The path of one member of a World.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) leaf: Hash,
    pub(super) siblings: Vec<(Side, Hash)>,
}

/// Begins the data of a proof.
pub(super) fn begin(algorithm: &str, world_id: &str) -> Map {
    [("alg", algorithm), ("canon", "jcs"), ("worldId", world_id)].into_iter().collect()
}

/// Reads the members of a proof: those that every one has, and no other than `known`.
pub(super) fn members<'a>(proof: &'a Proof, algorithm: &str, known: &[&str]) -> Option<&'a Map> {
    let map = proof.proof.as_ref()?.as_object()?;
    let text = |name: &str| map.get(name).and_then(Value::as_str);
    let common = ["alg", "canon", "worldId"];
    let is_sound = text("alg") == Some(algorithm)
        && text("canon") == Some("jcs")
        && text("worldId").is_some_and(super::is_world_id)
        && map.keys().all(|name| common.contains(&name) || known.contains(&name));
    is_sound.then_some(map)
}

/// Reads a member as bytes.
pub(super) fn bytes<const N: usize>(map: &Map, name: &str) -> Option<[u8; N]> {
    unhex(map.get(name)?.as_str()?)
}

impl Path {
    pub(super) fn to_value(&self) -> Value {
        let sibling = |(side, hash): &(Side, Hash)| {
            let position = match side {
                Side::Left => "left",
                Side::Right => "right",
            };
            Value::Object(
                [("hash", hex(hash)), ("position", position.to_string())].into_iter().collect(),
            )
        };
        let mut map = Map::new();
        map.insert("leafHash", hex(&self.leaf));
        map.insert("siblings", self.siblings.iter().map(sibling).collect::<Value>());
        Value::Object(map)
    }

    pub(super) fn from_value(value: &Value) -> Option<Self> {
        let map = value.as_object().filter(|map| map.len() == 2)?;
        let siblings = map.get("siblings")?.as_array()?;
        // As many as levels of a tree over all that a number of 64 bits counts.
        if siblings.len() > 64 {
            return None;
        }
        let sibling = |value: &Value| {
            let map = value.as_object().filter(|map| map.len() == 2)?;
            let side = match map.get("position")?.as_str()? {
                "left" => Side::Left,
                "right" => Side::Right,
                _ => return None,
            };
            Some((side, bytes(map, "hash")?))
        };
        let siblings = siblings.iter().map(sibling).collect::<Option<_>>()?;
        Some(Self { leaf: bytes(map, "leafHash")?, siblings })
    }
}

/// Reads lower-case hexadecimal of exactly so many bytes.
pub(super) fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}
