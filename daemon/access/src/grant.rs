//! Grants of tokens: checked when it is made, and once more when it is read.

use std::fmt;

use omir_core::instant::Timestamp;
use omir_core::value::{Map, Value};
use omird_router::{DEFAULT_TENANT, Scope};
use serde::{Deserialize, Serialize};

use crate::secret::Secret;

/// Characters of a name and of a tenant.
const LONGEST_NAME: usize = 64;
/// Bytes of an agent.
const LONGEST_AGENT: usize = 256;
/// Agents and scopes of one token.
const MOST: usize = 64;
/// Names that callers without a token of their own have in audit lines.
const RESERVED: [&str; 8] = ["local", "socket", "zenoh", "http", "serial", "ros2", "mcp", "jwt"];

/// The scope of a verifier, which must be another caller than the actor.
pub(crate) const MANIFESTO_AUTHORITY: &str = "manifesto:authority";
/// The scope of an actor.
const MANIFESTO_ACTOR: &str = "manifesto:actor";
/// The scopes of the robot's owner begin so; they see all tenants.
const OF_OWNER: &str = "omir:";

/// The rights that a token grants, and their holder.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Grant {
    /// The name: of a person, a program or a robot, in lists, audit lines and `revoke`.
    pub name: String,
    /// The scopes, such as `omir:read`.
    pub scopes: Vec<String>,
    /// The part of the memory that it is for; `None` is tenant `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The agents it speaks as, the first one where a protocol knows one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// The authority among agents (Akashik).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<u32>,
    /// The end, in seconds since 1970; `None` is never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<i64>,
    /// Requests a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
    /// Requests an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_hour: Option<u32>,
}

/// A grant that no token may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidGrant {
    /// The field, as it is named in requests and in the file.
    pub field: &'static str,
    /// The fault, and what would be right.
    pub message: String,
}

impl fmt::Display for InvalidGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl std::error::Error for InvalidGrant {}

impl Grant {
    /// Returns the members of a token in answers.
    pub(crate) fn to_map(&self) -> Map {
        let texts = |texts: &[String]| texts.iter().map(String::as_str).collect::<Value>();
        let mut members = Map::new();
        members.insert("name", self.name.as_str());
        members.insert("scopes", texts(&self.scopes));
        members.insert("tenant", self.tenant.as_deref());
        members.insert("agents", texts(&self.agents));
        members.insert("authority", self.authority);
        members.insert("expires", instant(self.expires));
        members.insert("rate", self.rate);
        members.insert("perHour", self.per_hour);
        members
    }

    /// Returns the answer to the operator who added it: the text of the token, which is shown this once, and what it
    /// grants.
    pub fn to_answer(&self, secret: &Secret) -> Value {
        let mut answer = Map::new();
        answer.insert("token", secret.as_str());
        for (name, value) in self.to_map().iter() {
            answer.insert(name, value.clone());
        }
        Value::Object(answer)
    }

    /// Checks a grant for a new token, of which every scope must be known.
    ///
    /// # Errors
    /// Names the field, and says what is allowed.
    pub fn check_new(&self, known: &[Scope]) -> Result<(), InvalidGrant> {
        if let Some(scope) = self.scopes.iter().find(|scope| find(known, scope).is_none()) {
            let names: Vec<&str> = known.iter().map(|scope| scope.0).collect();
            let message = format!("{scope:?} is none of {}", names.join(", "));
            return Err(InvalidGrant { field: "scopes", message });
        }
        if RESERVED.contains(&self.name.as_str()) {
            let message = format!("{:?} names callers without a token of their own", self.name);
            return Err(InvalidGrant { field: "name", message });
        }
        self.check()
    }

    /// Checks what holds for each token, also one with scopes of another version of omird.
    pub(crate) fn check(&self) -> Result<(), InvalidGrant> {
        let fault = |field, message: String| Err(InvalidGrant { field, message });
        check_name("name", &self.name)?;
        if let Some(tenant) = &self.tenant {
            check_name("tenant", tenant)?;
        }
        if self.scopes.is_empty() {
            return fault("scopes", "there is none, so that it would open nothing".to_owned());
        }
        for (field, list) in [("scopes", &self.scopes), ("agents", &self.agents)] {
            if list.len() > MOST {
                return fault(field, format!("there are {}; at most {MOST}", list.len()));
            }
        }
        let is_scope = |scope: &&String| {
            let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b":._-".contains(&byte);
            (1..=LONGEST_NAME).contains(&scope.len()) && scope.bytes().all(is_sign)
        };
        if let Some(scope) = self.scopes.iter().find(|scope| !is_scope(scope)) {
            return fault("scopes", format!("{scope:?} is no scope such as omir:read"));
        }
        let is_agent = |agent: &&String| {
            let is_sign = |c: char| !c.is_control() && !c.is_whitespace();
            (1..=LONGEST_AGENT).contains(&agent.len()) && agent.chars().all(is_sign)
        };
        if let Some(agent) = self.agents.iter().find(|agent| !is_agent(agent)) {
            let most = LONGEST_AGENT;
            return fault("agents", format!("{agent:?} is not 1 to {most} bytes without spaces"));
        }
        if let Some(why) = conflict(&self.scopes, self.tenant.as_deref()) {
            return fault("scopes", why.to_owned());
        }
        for (field, bound) in [("rate", self.rate), ("perHour", self.per_hour)] {
            if bound == Some(0) {
                return fault(field, "0 is no rate; leave it out for none".to_owned());
            }
        }
        Ok(())
    }
}

/// Returns seconds since 1970 as RFC 3339 has them.
pub(crate) fn instant(seconds: Option<i64>) -> Value {
    let text = seconds.map(|seconds| Timestamp::from_unix(seconds, 0).writable().to_string());
    text.into()
}

/// Returns true if a token may have this name.
pub fn is_name(name: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(is_sign)
}

fn check_name(field: &'static str, name: &str) -> Result<(), InvalidGrant> {
    if is_name(name) {
        return Ok(());
    }
    let message = format!("{name:?} is not 1 to {LONGEST_NAME} of A-Z a-z 0-9 . _ -");
    Err(InvalidGrant { field, message })
}

/// Returns the reason why no caller may hold these scopes in this tenant, if there is one. Contract, section 8.
pub(crate) fn conflict<S: AsRef<str>>(scopes: &[S], tenant: Option<&str>) -> Option<&'static str> {
    let hold = |wanted: &str| scopes.iter().any(|scope| scope.as_ref() == wanted);
    if hold(MANIFESTO_ACTOR) && hold(MANIFESTO_AUTHORITY) {
        return Some(
            "manifesto:actor and manifesto:authority are never held by one: make two tokens",
        );
    }
    let is_limited = tenant.is_some_and(|tenant| tenant != DEFAULT_TENANT);
    if is_limited && scopes.iter().any(|scope| scope.as_ref().starts_with(OF_OWNER)) {
        return Some(
            "the scopes omir:* see all tenants, and cannot be limited to one: leave the tenant out",
        );
    }
    None
}

/// Returns the scope of that name, if this build knows it.
pub(crate) fn find(known: &[Scope], name: &str) -> Option<Scope> {
    known.iter().copied().find(|scope| scope.0 == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [Scope; 5] = [
        Scope::READ,
        Scope::WRITE,
        Scope("manifesto:actor"),
        Scope("manifesto:authority"),
        Scope("akashik:agent"),
    ];

    fn grant(name: &str, scopes: &[&str]) -> Grant {
        let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
        Grant { name: name.to_owned(), scopes, ..Grant::default() }
    }

    #[test]
    fn what_no_token_may_have_is_refused_with_a_reason() {
        let read = || grant("a", &["omir:read"]);
        let long = "a".repeat(65);
        for (grant, expected) in [
            (grant("", &["omir:read"]), "name: \"\" is not 1 to 64"),
            (grant(&long, &["omir:read"]), "is not 1 to 64"),
            (grant("a b", &["omir:read"]), "name: \"a b\""),
            (grant("zenoh", &["omir:read"]), "name: \"zenoh\" names callers"),
            (grant("a", &[]), "scopes: there is none"),
            (grant("a", &["omir:raed"]), "\"omir:raed\" is none of omir:read, omir:write"),
            (grant("a", &["manifesto:actor", "manifesto:authority"]), "make two tokens"),
            (Grant { tenant: Some("t".into()), ..read() }, "cannot be limited to one"),
            (Grant { tenant: Some("t/u".into()), ..grant("a", &["akashik:agent"]) }, "tenant: "),
            (Grant { agents: vec!["a b".into()], ..read() }, "agents: \"a b\""),
            (Grant { agents: vec!["a".into(); 65], ..read() }, "agents: there are 65"),
            (Grant { rate: Some(0), ..read() }, "rate: 0 is no rate"),
            (Grant { per_hour: Some(0), ..read() }, "perHour: 0 is no rate"),
        ] {
            let error = grant.check_new(&KNOWN).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        for good in [
            read(),
            Grant { tenant: Some("default".into()), ..read() },
            Grant { tenant: Some("t".into()), ..grant("a", &["akashik:agent"]) },
            Grant { agents: vec!["did:web:é.example".into()], ..read() },
        ] {
            assert_eq!(good.check_new(&KNOWN), Ok(()));
        }
    }

    #[test]
    fn a_scope_of_another_version_is_no_fault_of_a_stored_token() {
        let stored = grant("a", &["compass:agent", "omir:read"]);
        assert_eq!(stored.check(), Ok(()));
        assert!(stored.check_new(&KNOWN).is_err());
    }
}
