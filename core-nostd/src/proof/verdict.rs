//! The verdict on a document, for programs: the same on every machine that verifies.

use super::{Proof, ProofFault, PublicKey, Verified};
use crate::hex;
use crate::number::Number;
use crate::value::{Map, Value};

/// Reads a document and verifies it by the one of `keys` that it names.
///
/// # Errors
/// The first fault; [`ProofFault::OtherKey`] if it names none of them.
pub fn judge(text: &[u8], keys: &[PublicKey]) -> Result<(Proof, Verified), ProofFault> {
    let proof = Proof::from_json(text)?;
    let found = proof.seal.public_key;
    let key = keys.iter().find(|&&key| key == found).ok_or(ProofFault::OtherKey { found })?;
    let verified = proof.verify(key)?;
    Ok((proof, verified))
}

/// A verdict as a value: `docs/proofs.md`, "The verdict".
pub fn report(verdict: &Result<(Proof, Verified), ProofFault>) -> Value {
    let mut map = Map::new();
    match verdict {
        Ok((proof, verified)) => {
            let int = |number: u64| Value::Number(Number::from(number));
            let target = proof.reference().map(|target| Value::Text(alloc::format!("{target}")));
            map.insert("valid", Value::Bool(true));
            map.insert("ref", target.unwrap_or_default());
            map.insert("segment", int(verified.segment));
            map.insert("entry", int(verified.index));
            map.insert("entries", int(verified.entries));
            map.insert("publicKey", hex::encode(&proof.seal.public_key));
            map.insert("resource", proof.resource().unwrap_or_default());
        }
        Err(fault) => {
            map.insert("valid", Value::Bool(false));
            map.insert("fault", fault.name());
            map.insert("message", alloc::format!("{fault}"));
        }
    }
    Value::Object(map)
}
