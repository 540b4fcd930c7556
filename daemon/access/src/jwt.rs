//! JWTs (RFC 7519): signed by an issuer that the configuration trusts, EdDSA (RFC 8037) and HS256 (RFC 7518) only.
//!
//! The key decides the algorithm, never the token. Claims of time go by the daemon's clock and not by the crate's.

mod crypto;
mod keys;

use std::collections::BTreeMap;
use std::sync::Arc;

use jsonwebtoken::Validation;
use omird_router::{Caller, DEFAULT_TENANT, Scope, Scopes, Unauthenticated};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

pub use self::keys::{InvalidKey, JwtKey};
use crate::grant::{self, Grant};

/// Seconds that the clock of a JWT's issuer may be ahead of the daemon's.
const AHEAD: f64 = 60.0;

/// The JWTs that are taken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JwtSettings {
    /// The keys, one of which must have signed it. Without any, no JWT is taken.
    pub keys: Vec<JwtKey>,
    /// The name that `aud` must have among its own. Without it, a JWT that is for a certain audience is refused.
    pub audience: Option<String>,
}

/// The claims that are looked at, of whatever type they are. One that is there twice is refused by serde.
#[derive(Deserialize)]
struct Claims {
    sub: Option<Value>,
    scope: Option<Value>,
    tenant: Option<Value>,
    agents: Option<Value>,
    exp: Option<Value>,
    nbf: Option<Value>,
    aud: Option<Value>,
    /// Other claims are passed over. Claims are an object: with this, serde takes no list for one.
    #[serde(flatten)]
    _others: BTreeMap<String, IgnoredAny>,
}

/// Returns true if the text has the form of a JWT, and none of a token.
pub(crate) fn is_one(text: &str) -> bool {
    text.bytes().filter(|byte| *byte == b'.').count() == 2
}

/// Returns the caller that a JWT speaks for. `now` in seconds since 1970, as far as the clock can be trusted.
///
/// # Errors
/// Says why not. A fault of its claims is only told of a JWT that is signed as it should be.
pub(crate) fn identify(
    settings: &JwtSettings,
    known: &[Scope],
    transport: &'static str,
    text: &str,
    now: Option<i64>,
) -> Result<Caller, Unauthenticated> {
    let claims = settings.keys.iter().find_map(|key| authentic(key, text));
    let claims = claims.ok_or(Unauthenticated::Unknown)?;
    check_time(&claims, now)?;
    check_audience(&claims, settings.audience.as_deref())?;
    caller(claims, known, transport)
}

/// Returns the claims of a JWT that this key has signed, by the algorithm of the key.
fn authentic(key: &JwtKey, text: &str) -> Option<Claims> {
    crypto::install();
    let mut validation = Validation::new(key.algorithm());
    // By the daemon's clock, below.
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_aud = false;
    let header = jsonwebtoken::decode_header(text).ok()?;
    // RFC 7515, section 4.1.11: an extension that one does not know must not be passed over.
    if header.crit.is_some() {
        return None;
    }
    Some(jsonwebtoken::decode::<Claims>(text, key.decoding(), &validation).ok()?.claims)
}

fn check_time(claims: &Claims, now: Option<i64>) -> Result<(), Unauthenticated> {
    let seconds = |claim: &Value| claim.as_f64().filter(|seconds| seconds.is_finite());
    let Some(exp) = &claims.exp else {
        return Err(Unauthenticated::Unsound("it has no end (`exp`)"));
    };
    let exp = seconds(exp).ok_or(Unauthenticated::Unsound("`exp` is no number of seconds"))?;
    let now = now.ok_or(Unauthenticated::ClockUntrusted)? as f64;
    if now >= exp {
        return Err(Unauthenticated::Expired);
    }
    if let Some(nbf) = &claims.nbf {
        let nbf = seconds(nbf).ok_or(Unauthenticated::Unsound("`nbf` is no number of seconds"))?;
        if now + AHEAD < nbf {
            return Err(Unauthenticated::Unsound("it is not valid yet (`nbf`)"));
        }
    }
    Ok(())
}

fn check_audience(claims: &Claims, expected: Option<&str>) -> Result<(), Unauthenticated> {
    let names: Vec<&str> = match &claims.aud {
        None => Vec::new(),
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        Some(_) => return Err(Unauthenticated::Unsound("`aud` is neither a text nor a list")),
    };
    match expected {
        None if claims.aud.is_none() => Ok(()),
        None => Err(Unauthenticated::Unsound(
            "it is for a certain audience (`aud`), and access.jwt.audience names none",
        )),
        Some(expected) if names.contains(&expected) => Ok(()),
        Some(_) => {
            Err(Unauthenticated::Unsound("`aud` does not name what access.jwt.audience says"))
        }
    }
}

fn caller(
    claims: Claims,
    known: &[Scope],
    transport: &'static str,
) -> Result<Caller, Unauthenticated> {
    let unsound = Unauthenticated::Unsound;
    let sub = match claims.sub {
        Some(Value::String(sub)) => sub,
        Some(_) => return Err(unsound("`sub` is no text")),
        None => return Err(unsound("it names nobody (`sub`)")),
    };
    let scopes: Vec<String> = match claims.scope {
        Some(Value::String(scopes)) => scopes.split_whitespace().map(str::to_owned).collect(),
        Some(_) => return Err(unsound("`scope` is no text of scopes between spaces")),
        None => return Err(unsound("it has no `scope`")),
    };
    let tenant = match claims.tenant {
        None | Some(Value::Null) => None,
        Some(Value::String(tenant)) => Some(tenant),
        Some(_) => return Err(unsound("`tenant` is no text")),
    };
    let mut agents = vec![sub.clone()];
    match claims.agents {
        None | Some(Value::Null) => {}
        Some(Value::Array(more)) => {
            for agent in more {
                let Value::String(agent) = agent else {
                    return Err(unsound("`agents` is no list of texts"));
                };
                if !agents.contains(&agent) {
                    agents.push(agent);
                }
            }
        }
        Some(_) => return Err(unsound("`agents` is no list of texts")),
    }
    if let Some(why) = grant::conflict(&scopes, tenant.as_deref()) {
        return Err(unsound(why));
    }
    // The rules of a token hold for all of it; its name is the subject.
    let name = "jwt".to_owned();
    let grant = Grant { name, scopes, tenant, agents, ..Grant::default() };
    grant.check().map_err(|why| {
        unsound(match why.field {
            "scopes" => "`scope` names none, too many, or something that is no scope",
            "tenant" => "`tenant` is not 1 to 64 of A-Z a-z 0-9 . _ -",
            _ => "`sub` or `agents` are too many, too long, or have spaces",
        })
    })?;
    let held = grant.scopes.iter().filter_map(|scope| grant::find(known, scope));
    let name: Arc<str> = format!("jwt {sub}").into();
    Ok(Caller {
        tenant: grant.tenant.filter(|tenant| tenant != DEFAULT_TENANT).map(Into::into),
        agents: grant.agents.into_iter().map(Into::into).collect(),
        scopes: Scopes::Only(held.collect()),
        has_token: true,
        ..Caller::trusted(transport, name)
    })
}

#[cfg(test)]
mod tests;
