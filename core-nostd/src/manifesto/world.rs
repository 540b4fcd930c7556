//! Worlds: what a memory points to, and the digests over it.
//!
//! A digest that lies in a World cannot be a digest of all of it. So both digests are over the World without
//! `metadata.contentHash` and `metadata.merkleRoot`; everything else stays, an empty `metadata` too.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use sha2::{Digest as _, Sha256};

use crate::jcs;
use crate::merkle::{Hash, Side, Tree, leaf, sides};
use crate::pointer;
use crate::value::{Map, Value};

/// Bytes of a WorldId.
pub const MAX_WORLD_ID: usize = 512;
/// Containers inside one another in a World, itself included.
pub const MAX_DEPTH: usize = 60;

/// Members of `metadata` that state digests.
const DIGESTS: [&str; 2] = ["contentHash", "merkleRoot"];

/// A World: any object with a `worldId` whose numbers are doubles, so that it has a canonical form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct World {
    value: Value,
    id: String,
    /// Bytes of the canonical form of all of it.
    canonical_len: usize,
    /// The members without stored digests, in canonical order.
    members: Vec<Member>,
}

/// A member of a World.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Member {
    name: String,
    /// The canonical form of `[name, value]`: a leaf of the tree.
    entry: String,
    /// The position of the comma between the two.
    comma: usize,
}

/// A reason why something is no World.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldFault {
    /// JSON Pointer into the World; empty for the World itself.
    pub pointer: String,
    /// The fault, and what is expected.
    pub message: String,
}

impl fmt::Display for WorldFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", pointer::displayed(&self.pointer), self.message)
    }
}

impl core::error::Error for WorldFault {}

/// Returns true if a text may be a WorldId. What is in it means nothing: it is compared and never taken apart.
pub fn is_world_id(text: &str) -> bool {
    (1..=MAX_WORLD_ID).contains(&text.len()) && !text.chars().any(char::is_control)
}

impl World {
    /// Checks a World.
    ///
    /// # Errors
    /// It is no object, has no `worldId`, is nested too deep, or states a number that no double has.
    pub fn from_value(value: Value) -> Result<Self, WorldFault> {
        let fault =
            |pointer: &str, message: String| WorldFault { pointer: pointer.into(), message };
        let Some(map) = value.as_object() else {
            return Err(fault("", format!("a World is an object, not {}", value.kind_name())));
        };
        let id = match map.get("worldId") {
            Some(Value::Text(id)) if is_world_id(id) => id.clone(),
            Some(Value::Text(_)) => {
                let message = format!("1 to {MAX_WORLD_ID} bytes without control characters");
                return Err(fault("/worldId", message));
            }
            Some(other) => {
                return Err(fault("/worldId", format!("a text, not {}", other.kind_name())));
            }
            None => return Err(fault("/worldId", "a World has a `worldId`, a text".into())),
        };
        if is_deeper_than(&value, MAX_DEPTH) {
            return Err(fault("", format!("nested more than {MAX_DEPTH} levels deep")));
        }
        // Also of the members that are left out of the digests: the whole World is stored.
        let refused = |error: jcs::InexactNumber| {
            let message = format!("no double holds all digits of {}; send a text", error.number);
            WorldFault { pointer: error.pointer, message }
        };
        let canonical_len = jcs::to_string(&value).map_err(refused)?.len();
        let mut members = Vec::with_capacity(map.len());
        for (name, member) in jcs::sorted(map) {
            let stripped = (name == "metadata").then(|| stripped(member));
            let member = stripped.as_ref().unwrap_or(member);
            let mut entry = String::from("[");
            jcs::append(&Value::from(name), &mut entry).map_err(refused)?;
            let comma = entry.len();
            entry.push(',');
            jcs::append(member, &mut entry).map_err(refused)?;
            entry.push(']');
            members.push(Member { name: name.into(), entry, comma });
        }
        Ok(Self { id, canonical_len, members, value })
    }

    /// Returns the WorldId.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the World as it came.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Returns the canonical form of all of it, with the digests that it states.
    pub fn canonical(&self) -> String {
        // It was made once, when the World was checked.
        jcs::to_string(&self.value).unwrap_or_default()
    }

    /// Returns the bytes of the canonical form.
    pub fn canonical_len(&self) -> usize {
        self.canonical_len
    }

    /// Returns the canonical form of one member.
    pub fn canonical_member(&self, name: &str) -> Option<String> {
        jcs::to_string(self.value.get(name)?).ok()
    }

    /// Returns `createdAt`, milliseconds since 1970, where it is an integer.
    pub fn created_at(&self) -> Option<i64> {
        self.value.get("createdAt").and_then(Value::as_i64)
    }

    /// Returns the SHA-256 of the canonical form without stored digests.
    pub fn hash(&self) -> Hash {
        let mut hasher = Sha256::new();
        hasher.update("{");
        for (index, Member { entry, comma, .. }) in self.members.iter().enumerate() {
            if index > 0 {
                hasher.update(",");
            }
            // In an object the same two stand with a colon between them, and without brackets.
            hasher.update(&entry[1..*comma]);
            hasher.update(":");
            hasher.update(&entry[comma + 1..entry.len() - 1]);
        }
        hasher.update("}");
        hasher.finalize().into()
    }

    /// Returns the root of the tree over the members, one leaf for each in canonical order.
    pub fn root(&self) -> Hash {
        let mut tree = Tree::new();
        self.members.iter().for_each(|member| tree.push(member.entry.as_bytes()));
        tree.finish().0.hash
    }

    /// Returns the hash of a member as a leaf, and the hashes beside its way up to the root, the lowest first.
    pub fn path(&self, name: &str) -> Option<(Hash, Vec<(Side, Hash)>)> {
        let at = self.members.iter().position(|member| member.name == name)?;
        let (index, count) = (at as u64, self.members.len() as u64);
        let mut tree = Tree::with_path_of(index);
        self.members.iter().for_each(|member| tree.push(member.entry.as_bytes()));
        let siblings = tree.finish().1?;
        Some((leaf(self.members[at].entry.as_bytes()), sides(index, count).zip(siblings).collect()))
    }

    /// Returns what the World states in `metadata` under this name, unless it is `null`.
    pub fn stated(&self, name: &str) -> Option<&Value> {
        self.value.get("metadata")?.get(name).filter(|stated| !stated.is_null())
    }
}

/// Returns `metadata` without the digests that it states.
fn stripped(metadata: &Value) -> Value {
    let Some(map) = metadata.as_object() else { return metadata.clone() };
    let kept = map.iter().filter(|(name, _)| !DIGESTS.contains(name));
    Value::Object(kept.map(|(name, value)| (name, value.clone())).collect::<Map>())
}

/// Returns true if containers are nested more than `most` deep. The decoders bound the recursion.
fn is_deeper_than(value: &Value, most: usize) -> bool {
    match value {
        Value::Array(_) | Value::Object(_) if most == 0 => true,
        Value::Array(values) => values.iter().any(|value| is_deeper_than(value, most - 1)),
        Value::Object(map) => map.values().any(|value| is_deeper_than(value, most - 1)),
        _ => false,
    }
}
