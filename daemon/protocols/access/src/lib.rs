//! The protocol that adds, lists and revokes tokens: `docs/access.md`, "Tokens over HTTP".
//!
//! Each method needs the scope `omir:admin`. A token that was added is shown in the answer, and never again.

#![warn(unreachable_pub)]

mod methods;

use omir_core::value::{Map, Value};
use omird_access::{Access, Grant, InvalidGrant, Record, TokenError, expiry, is_name};
use omird_engine::{Code, Error};
use omird_router::{Admitted, Caller, embedded_schemas};

pub use self::methods::{ACCESS, ADD, LIST, REVOKE};

/// The protocol over the identities of one daemon.
#[derive(Debug, Clone)]
pub struct Tokens {
    access: Access,
}

impl Tokens {
    /// Returns the protocol over `access`.
    pub fn new(access: Access) -> Self {
        Self { access }
    }

    /// Answers `list`: `{"tokens": [{"name", "scopes", …}]}`.
    ///
    /// # Errors
    /// The tokens cannot be read.
    pub fn list(&self, admitted: Admitted) -> Result<Value, Error> {
        let listed = self.access.tokens().map_err(worded).map(|tokens| {
            let tokens: Value = tokens.iter().map(Record::to_value).collect();
            Value::Object([("tokens", tokens)].into_iter().collect())
        });
        admitted.finish(&listed);
        listed
    }

    /// Answers `add` with what the token grants, and its text in `token`. `asked` is an object of the parameters.
    ///
    /// # Errors
    /// A parameter is wrong, the name is taken, or the disk refuses.
    pub fn add(&self, mut admitted: Admitted, asked: &Value) -> Result<Value, Error> {
        let added = grant(asked, self.access.now()).and_then(|grant| {
            touch(&mut admitted, &grant.name);
            let secret = self.access.add(grant.clone()).map_err(worded)?;
            Ok(grant.to_answer(&secret))
        });
        admitted.finish(&added);
        added
    }

    /// Answers `revoke`: `{"revoked": NAME}`.
    ///
    /// # Errors
    /// There is no such token, or the disk refuses.
    pub fn revoke(&self, mut admitted: Admitted, name: &str) -> Result<Value, Error> {
        touch(&mut admitted, name);
        let revoked = self.access.revoke(name).map_err(worded);
        let revoked =
            revoked.map(|()| Value::Object([("revoked", Value::from(name))].into_iter().collect()));
        admitted.finish(&revoked);
        revoked
    }
}

/// Names the token in the audit line, unless no token can have that name: a line holds no text of a stranger.
fn touch(admitted: &mut Admitted, name: &str) {
    if is_name(name) {
        admitted.touched_other(&format!("token/{name}"));
    }
}

/// Returns the JSON Schemas (2020-12) of the answers, by name.
pub fn schemas() -> Map {
    embedded_schemas(include_str!("../schemas/answers.json"))
}

/// Reads what a token is to grant.
fn grant(asked: &Value, now: Option<i64>) -> Result<Grant, Error> {
    let Some(members) = asked.as_object() else {
        let message = format!("expected an object of parameters, found {}", asked.kind_name());
        return Err(Error::new(Code::InvalidQuery, message));
    };
    let mut grant = Grant::default();
    for (name, value) in members.iter() {
        let expected = |what: &str| {
            Error::query(name, format!("expected {what}, found {}", value.kind_name()))
        };
        let text = || value.as_str().map(str::to_owned).ok_or_else(|| expected("a text"));
        // A list, or a text with commas: as every list of parameters.
        let texts = || {
            if let Some(texts) = value.as_str() {
                return Ok(texts.split(',').map(str::to_owned).collect());
            }
            let texts = value.as_array().ok_or_else(|| expected("a list of texts"))?;
            let text = |text: &Value| text.as_str().map(str::to_owned);
            texts.iter().map(text).collect::<Option<Vec<_>>>().ok_or_else(|| expected("texts"))
        };
        let number = || {
            let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
            number.ok_or_else(|| expected("a whole number below 4294967296"))
        };
        match name {
            _ if value.is_null() => {}
            "name" => grant.name = text()?,
            "scopes" => grant.scopes = texts()?,
            "tenant" => grant.tenant = Some(text()?),
            "agents" => grant.agents = texts()?,
            "authority" => grant.authority = Some(number()?),
            "expires" => grant.expires = Some(expiry(&text()?, now).map_err(invalid)?),
            "rate" => grant.rate = Some(number()?),
            "perHour" => grant.per_hour = Some(number()?),
            _ => {
                let known: Vec<&str> =
                    ADD.about.parameters.iter().map(|known| known.name).collect();
                return Err(Error::query(name, format!("is none of {}", known.join(", "))));
            }
        }
    }
    Ok(grant)
}

fn invalid(InvalidGrant { field, message }: InvalidGrant) -> Error {
    Error::query(field, message)
}

fn worded(error: TokenError) -> Error {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    let message = error.to_string();
    let code = match error {
        TokenError::Invalid(why) => return invalid(why),
        TokenError::Exists(_) => Code::Conflict,
        TokenError::NotFound(name) if name == Caller::LOCAL => {
            let message =
                "the token of the person at the machine is gone; the next start makes another";
            return Error::new(Code::NotFound, message);
        }
        TokenError::NotFound(_) => Code::NotFound,
        TokenError::TooMany => Code::TooLarge,
        TokenError::Held => Code::Busy,
        TokenError::Disk(error) if matches!(error.kind(), StorageFull | QuotaExceeded) => {
            Code::StorageFull
        }
        _ => Code::Internal,
    };
    Error::new(code, message)
}

#[cfg(test)]
mod tests;
