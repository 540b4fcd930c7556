//! `omir verify`: a proof checked by its public key alone.

use std::path::Path;

use omir_core::hex;
use omir_core::json;
use omir_core::number::Number;
use omir_core::proof::{Proof, ProofFault, PublicKey, Verified};
use omir_core::value::Value;

use crate::cli::{Globals, VerifyArgs};
use crate::document;
use crate::error::{Error, Result};
use crate::output::{self, object};

pub(super) fn run(globals: &Globals, args: &VerifyArgs) -> Result<()> {
    let mut keys = Vec::new();
    for given in &args.key {
        keys.extend(keys_of(given)?);
    }
    let text = document::read_bytes(&args.file)?;
    match judge(&text, &keys) {
        Ok((proof, verified)) => report(globals, &proof, &verified),
        Err(fault) => {
            if globals.json {
                output::print_json(&object([
                    ("valid", false.into()),
                    ("fault", fault.name().into()),
                    ("message", fault.to_string().into()),
                ]))?;
            }
            Err(match fault {
                ProofFault::Unreadable { .. } | ProofFault::OtherFormat(_) => {
                    Error::input(&args.file, fault)
                }
                fault => {
                    let message = format!("{}: not valid: {fault}", args.file.display());
                    Error::Negative { code: "INVALID", message }
                }
            })
        }
    }
}

/// The proof, if one of the keys made it.
fn judge(text: &[u8], keys: &[PublicKey]) -> std::result::Result<(Proof, Verified), ProofFault> {
    let proof = Proof::from_json(text)?;
    let found = proof.seal.public_key;
    let key = keys.iter().find(|&&key| key == found).ok_or(ProofFault::OtherKey { found })?;
    let verified = proof.verify(key)?;
    Ok((proof, verified))
}

fn report(globals: &Globals, proof: &Proof, verified: &Verified) -> Result<()> {
    let Verified { segment, index, entries } = *verified;
    let key = hex::encode(&proof.seal.public_key);
    let resource = proof.resource().unwrap_or(Value::Null);
    let target = proof.reference().map(|target| target.to_string());
    if globals.json {
        let int = |number: u64| Value::Number(Number::from(number));
        return Ok(output::print_json(&object([
            ("valid", true.into()),
            ("ref", target.into()),
            ("segment", int(segment)),
            ("entry", int(index)),
            ("entries", int(entries)),
            ("publicKey", key.into()),
            ("resource", resource),
        ]))?);
    }
    let target = target.as_deref().unwrap_or("a resource without a name");
    Ok(output::print(&format!(
        "valid: {target}, sealed as entry {index} of {entries} (counted from 0) in segment {segment}\nby {key}\n{}",
        json::to_string_pretty(&document::in_schema_order(resource))
    ))?)
}

/// Keys by their digits, or those of a file, one a line.
fn keys_of(given: &str) -> Result<Vec<PublicKey>> {
    if let Some(key) = hex::decode(given) {
        return Ok(vec![key]);
    }
    let file = Path::new(given);
    if !file.exists() {
        let message = format!("--key {given}: neither 64 hex digits nor a file");
        return Err(Error::Usage(message));
    }
    let text = document::read_text(file)?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let keys: Option<Vec<PublicKey>> = lines.map(hex::decode).collect();
    match keys {
        Some(keys) if !keys.is_empty() => Ok(keys),
        _ => Err(Error::input(file, "not a public key: it must have 64 hex digits on each line")),
    }
}
