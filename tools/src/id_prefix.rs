//! Resolves the beginning of an id: the one resource whose id begins so.
//!
//! An id that is there means itself. Only where the daemon has none of that name, it is asked for those that begin with it.

use omir_core::code::Code;
use omir_core::reference::{Id, Ref};
use omir_core::value::Value;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::ids;
use crate::selector::Parameters;

/// Number of candidates that a message names for an ambiguous beginning.
const MOST: usize = 10;

/// Does something with what `named` means, and says what that is. `act` says `NOT_FOUND` of what is not there.
///
/// # Errors
/// What `act` says, `AMBIGUOUS` if several begin so, and those of [`Client::ask`].
pub fn with<T>(
    client: &Client,
    robot: &str,
    named: &Ref,
    mut act: impl FnMut(&Ref) -> Result<T>,
) -> Result<(Ref, T)> {
    match act(named) {
        Err(error) if error.code() == Code::NotFound.as_str() => {
            let Some(meant) = only_one(client, robot, named)? else { return Err(error) };
            act(&meant).map(|done| (meant, done))
        }
        done => done.map(|done| (named.clone(), done)),
    }
}

/// Resolves `named` for a question. What nothing begins with stays as it is: the answer says so.
///
/// # Errors
/// As [`with`].
pub fn by(client: &Client, robot: &str, named: &Ref) -> Result<Ref> {
    match client.fetch(robot, &format!("memory/{named}")) {
        Ok(Some(_)) => return Ok(named.clone()),
        // The card does not give it back. Others may mention it.
        Err(error) if error.code() == Code::Internal.as_str() => return Ok(named.clone()),
        found => found?,
    };
    Ok(only_one(client, robot, named)?.unwrap_or_else(|| named.clone()))
}

/// The only one whose id begins with that of `named`.
fn only_one(client: &Client, robot: &str, named: &Ref) -> Result<Option<Ref>> {
    // An operator who forgets a memory twice does not mean another the second time.
    if was_forgotten(client, robot, named)? {
        return Ok(None);
    }
    let key = format!("memory/{}/{}$*", named.kind, named.id);
    let mut found = Vec::new();
    client.each_key(robot, &key, |key| {
        let id = key.rsplit('/').next().unwrap_or_default();
        if ids::is_meant(named.id.as_str(), id)
            && let Ok(id) = Id::new(id)
        {
            found.push(Ref::new(named.kind, id));
        }
        found.len() <= MOST
    })?;
    one_of(named, found)
}

/// The only one of these, which all begin as `named`.
///
/// # Errors
/// `AMBIGUOUS` if they are several.
pub fn one_of(named: &Ref, mut found: Vec<Ref>) -> Result<Option<Ref>> {
    found.sort();
    found.dedup();
    match found.as_slice() {
        [] => Ok(None),
        [only] => Ok(Some(only.clone())),
        several => Err(ambiguous(named, several)),
    }
}

fn was_forgotten(client: &Client, robot: &str, named: &Ref) -> Result<bool> {
    let mut parameters = Parameters::new();
    parameters.push("ref", &named.to_string());
    match client.ask(robot, "explain", &parameters, None).and_then(|reply| reply.value()) {
        Ok(told) => Ok(told.get("forgotten").and_then(Value::as_bool) == Some(true)),
        // It never was.
        Err(error) if error.code() == Code::NotFound.as_str() => Ok(false),
        Err(error) => Err(error),
    }
}

fn ambiguous(named: &Ref, several: &[Ref]) -> Error {
    let mut message =
        format!("{named} is the beginning of several; write more of the one you mean:");
    for candidate in several.iter().take(MOST) {
        message.push_str(&format!("\n  {candidate}"));
    }
    if several.len() > MOST {
        message.push_str("\n  and more");
    }
    Error::Negative { code: "AMBIGUOUS", message }
}
