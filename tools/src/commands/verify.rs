//! `omir verify`: a proof checked by its public key alone.

use std::path::Path;

use omir_core::hex;
use omir_core::json;
use omir_core::proof::{self, Proof, ProofFault, PublicKey, Verified};

use crate::cli::{Globals, VerifyArgs};
use crate::error::{Error, Result, told};
use crate::{document, output};

pub(super) fn run(globals: &Globals, args: &VerifyArgs) -> Result<()> {
    let mut keys = Vec::new();
    for given in &args.key {
        keys.extend(keys_of(given)?);
    }
    let text = document::read_bytes(&args.file)?;
    let verdict = proof::judge(&text, &keys);
    let printed = match globals.json {
        true => output::print_json(&proof::report(&verdict)),
        false => Ok(()),
    };
    let outcome = match verdict {
        Ok(_) if globals.json => Ok(()),
        Ok((proof, verified)) => tell(&proof, &verified),
        Err(fault @ (ProofFault::Unreadable { .. } | ProofFault::OtherFormat(_))) => {
            Err(Error::input(&args.file, fault))
        }
        Err(fault) => {
            let message = format!("{}: not valid: {fault}", args.file.display());
            Err(Error::Negative { code: "INVALID", message })
        }
    };
    told(printed, outcome)
}

fn tell(proof: &Proof, verified: &Verified) -> Result<()> {
    let Verified { segment, index, entries } = *verified;
    let key = hex::encode(&proof.seal.public_key);
    let resource = document::in_schema_order(proof.resource().unwrap_or_default());
    let target = proof.reference().map(|target| target.to_string());
    let target = target.as_deref().unwrap_or("a resource without a name");
    Ok(output::print(&format!(
        "valid: {target}, sealed as entry {index} of {entries} (counted from 0) in segment {segment}\nby {key}\n{}",
        json::to_string_pretty(&resource)
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
