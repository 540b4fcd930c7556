//! Reading the document of a proof. Whatever the bytes are, they are a proof in its one form or refused.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{FORMAT, MAX_BYTES, Proof, ProofFault};
use crate::decode::Limits;
use crate::hex;
use crate::json;
use crate::merkle::Hash;
use crate::pointer;
use crate::seal::Seal;
use crate::value::Value;

/// The members of the document.
const MEMBERS: [&str; 5] = ["format", "resource", "entry", "path", "seal"];

fn unreadable(path: &str, message: &str) -> ProofFault {
    ProofFault::Unreadable { path: path.to_owned(), message: message.to_owned() }
}

impl Proof {
    /// Reads the document from its text, JSON of at most [`MAX_BYTES`].
    ///
    /// # Errors
    /// If it is no proof in the form that [`Proof::to_json`] writes, or `resource` says something else than the entry.
    pub fn from_json(text: &[u8]) -> Result<Self, ProofFault> {
        // The resource lies a level deeper in it than by itself.
        let limits = Limits { max_bytes: MAX_BYTES, ..Limits::default() };
        let limits = Limits { max_depth: limits.max_depth + 1, ..limits };
        let value = json::from_slice(text, &limits).map_err(|error| ProofFault::Unreadable {
            message: error.to_string(),
            path: error.pointer,
        })?;
        Self::from_value(&value)
    }

    /// Reads the document from a value.
    ///
    /// # Errors
    /// As [`Proof::from_json`].
    pub fn from_value(value: &Value) -> Result<Self, ProofFault> {
        let members = value.as_object().ok_or_else(|| unreadable("/", "a proof is an object"))?;
        match value.get("format").and_then(Value::as_str) {
            Some(FORMAT) => {}
            Some(other) if other.starts_with("omird-proof-") => {
                return Err(ProofFault::OtherFormat(other.to_owned()));
            }
            _ => return Err(unreadable("/format", &format!("it must say {FORMAT:?}"))),
        }
        if let Some(other) = members.keys().find(|name| !MEMBERS.contains(name)) {
            let message = format!("a proof has no such member, only {}", MEMBERS.join(", "));
            return Err(unreadable(&pointer::join("/", other), &message));
        }
        let proof = Self {
            entry: entry(value)?,
            index: value
                .pointer("/entry/index")
                .and_then(Value::as_u64)
                .ok_or_else(|| unreadable("/entry/index", "a whole number, counted from 0"))?,
            path: path(value)?,
            seal: value
                .get("seal")
                .and_then(Seal::from_value)
                .ok_or_else(|| unreadable("/seal", "the object of a segment's .sig file"))?,
        };
        if proof.seal.contents.root.is_none() {
            return Err(ProofFault::NoRoot);
        }
        for (name, written) in proof.evidence() {
            if value.get(name) != Some(&written) {
                let message = "not in the form that a proof is written in: plain base64, lower-case hex, and no member \
                               that is not used";
                return Err(unreadable(&pointer::join("/", name), message));
            }
        }
        let resource = proof.resource()?;
        match value.get("resource") {
            Some(shown) if *shown != resource => Err(ProofFault::ResourceDiffers),
            _ => Ok(proof),
        }
    }
}

fn entry(value: &Value) -> Result<Vec<u8>, ProofFault> {
    let text = value.pointer("/entry/cbor").and_then(Value::as_str);
    let bytes = text.and_then(|text| STANDARD.decode(text).ok());
    bytes.ok_or_else(|| unreadable("/entry/cbor", "the bytes of the entry, in base64"))
}

fn path(value: &Value) -> Result<Vec<Hash>, ProofFault> {
    let items = value.get("path").and_then(Value::as_array);
    // No list of 64 bits has a longer one.
    let items = items.filter(|items| items.len() <= 64);
    let items = items.ok_or_else(|| unreadable("/path", "a list of at most 64 hashes"))?;
    let hash = |(at, item): (usize, &Value)| {
        let hash = item.as_str().and_then(hex::decode);
        hash.ok_or_else(|| unreadable(&pointer::join_index("/path", at), "64 hex digits"))
    };
    items.iter().enumerate().map(hash).collect()
}
