//! The table of paths: which verbs each has, and the row of a protocol's table that it means.
//!
//! Routes are made of it ([`super::routes`]), and so is `/openapi.json` ([`super::openapi`]): nothing is served that the document
//! does not tell of. `/mcp` speaks a protocol of its own, and `/` is for people; they are beside it.

use hyper::Method as Verb;
use omir_core::operation::Operation;

use crate::protocols::access::{ADD, LIST, REVOKE};
use crate::protocols::akashik;
use crate::protocols::compass;
use crate::protocols::experience;
use crate::protocols::manifesto;
use crate::protocols::omir::{CLOCK, DELETE, EVENTS, GET, PUT, method};
use crate::router::{Effect, Method, Scope};

/// The paths of the OMIR protocol begin so.
const OMIR: &str = "/omir/v1/";
/// The tokens: `docs/access.md`, "Tokens over HTTP".
const TOKENS: &str = "/access/v1/tokens";

/// The paths of protocols of one message and one answer each. What stands in braces is a parameter of the method.
const EXCHANGES: &[(Verb, &str, &Method)] = &[
    (Verb::POST, "/api/v0/record", &experience::RECORD),
    (Verb::POST, "/api/v0/hints", &experience::HINTS),
    (Verb::GET, "/api/v0/experiences/{task_id}", &experience::FETCH),
    (Verb::GET, "/api/v0/health", &experience::HEALTH),
    (Verb::GET, "/api/v0/schemas/{name}", &experience::SCHEMA),
    (Verb::GET, "/manifesto/v1/worlds/{worldId}", &manifesto::GET),
    (Verb::GET, "/manifesto/v1/worlds/{worldId}/exists", &manifesto::EXISTS),
    (Verb::POST, "/manifesto/v1/worlds", &manifesto::PUT),
    (Verb::POST, "/manifesto/v1/prove", &manifesto::PROVE),
    (Verb::POST, "/manifesto/v1/verify-proof", &manifesto::VERIFY_PROOF),
    (Verb::POST, "/manifesto/v1/select", &manifesto::SELECT),
    (Verb::POST, "/manifesto/v1/trace", &manifesto::TRACE),
    (Verb::POST, "/manifesto/v1/trace/attach", &manifesto::ATTACH),
    (Verb::POST, "/manifesto/v1/trace/validate", &manifesto::VALIDATE),
    (Verb::POST, "/manifesto/v1/authority/evaluate", &manifesto::EVALUATE),
    (Verb::GET, "/manifesto/v1/keys", &manifesto::KEYS),
    (Verb::GET, "/manifesto/v1/health", &manifesto::HEALTH),
    (Verb::POST, "/compass/v1/jsonrpc", &compass::JSONRPC),
    (Verb::POST, "/akashik/v1/{operation}", &akashik::MESSAGE),
    (Verb::GET, "/akashik/v1/field/status", &akashik::STATUS),
    (Verb::GET, "/akashik/v1/agents", &akashik::AGENTS),
    (Verb::GET, "/akashik/v1/conflicts", &akashik::CONFLICTS),
    (Verb::GET, "/akashik/v1/units/{id}", &akashik::UNIT),
];

/// A verb on a path.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    /// The path, as axum and OpenAPI write it: `/omir/v1/memory/{type}/{id}`.
    pub(super) path: String,
    /// The verb.
    pub(super) verb: Verb,
    /// What answers.
    pub(super) serves: Serves,
}

/// What answers at an endpoint.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Serves {
    /// An operation.
    Operation(Operation),
    /// A resource under its name, is read.
    Read,
    /// The same, is stored.
    Store,
    /// The same, is forgotten.
    Forget,
    /// Events.
    Events,
    /// Notifications of Akashik, as server-sent events.
    Notifications,
    /// The same over a WebSocket.
    NotificationSocket,
    /// The time of a simulation.
    Clock,
    /// Tokens are listed.
    Tokens,
    /// A token is added.
    AddToken,
    /// A token is revoked.
    RevokeToken,
    /// A method of a protocol of one message and one answer each.
    Exchange(&'static Method),
    /// The daemon lives.
    Live,
    /// The daemon is ready.
    Ready,
    /// Counts and measures.
    Metrics,
    /// The document of all this.
    Document,
}

impl Serves {
    /// Returns the row of the protocol; `None` for those that no protocol has.
    pub(super) fn row(self) -> Option<&'static Method> {
        match self {
            Self::Operation(operation) => Some(method(operation)),
            Self::Read => Some(&GET),
            Self::Store => Some(&PUT),
            Self::Forget => Some(&DELETE),
            Self::Events => Some(&EVENTS),
            Self::Notifications | Self::NotificationSocket => Some(&akashik::EVENTS),
            Self::Clock => Some(&CLOCK),
            Self::Tokens => Some(&LIST),
            Self::AddToken => Some(&ADD),
            Self::RevokeToken => Some(&REVOKE),
            Self::Exchange(method) => Some(method),
            Self::Live | Self::Ready | Self::Metrics | Self::Document => None,
        }
    }

    /// Returns true if no token is needed.
    pub(super) fn is_open(self) -> bool {
        match self {
            Self::Live | Self::Ready => true,
            Self::Exchange(method) => method.scope == Scope::OPEN,
            _ => false,
        }
    }
}

/// Returns all endpoints.
pub(super) fn endpoints() -> Vec<Endpoint> {
    let mut all = Vec::new();
    let mut add = |path: &str, verb: Verb, serves| {
        all.push(Endpoint { path: path.to_owned(), verb, serves });
    };
    for operation in Operation::ALL {
        let path = format!("{OMIR}{operation}");
        let serves = Serves::Operation(operation);
        add(&path, Verb::POST, serves);
        // A browser or a cache may send a GET by itself.
        if method(operation).effect == Effect::Reads {
            add(&path, Verb::GET, serves);
        }
    }
    let name = format!("{OMIR}memory/{{type}}/{{id}}");
    add(&name, Verb::GET, Serves::Read);
    add(&name, Verb::PUT, Serves::Store);
    add(&name, Verb::DELETE, Serves::Forget);
    add(&format!("{OMIR}events"), Verb::GET, Serves::Events);
    add(&format!("{OMIR}clock"), Verb::PUT, Serves::Clock);
    add(&format!("{OMIR}clock"), Verb::POST, Serves::Clock);
    add(TOKENS, Verb::GET, Serves::Tokens);
    add(TOKENS, Verb::POST, Serves::AddToken);
    add(&format!("{TOKENS}/{{name}}"), Verb::DELETE, Serves::RevokeToken);
    add("/akashik/v1/events", Verb::GET, Serves::Notifications);
    add("/akashik/v1/socket", Verb::GET, Serves::NotificationSocket);
    for (verb, path, method) in EXCHANGES {
        add(path, verb.clone(), Serves::Exchange(method));
    }
    add("/health/live", Verb::GET, Serves::Live);
    add("/health/ready", Verb::GET, Serves::Ready);
    add("/metrics", Verb::GET, Serves::Metrics);
    add("/openapi.json", Verb::GET, Serves::Document);
    all
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::protocols::Protocols;
    use crate::protocols::access::ACCESS;
    use crate::protocols::omir::OMIR as PROTOCOL;

    /// Those of a cable, and the parts of an export that HTTP gives as `export`.
    const ELSEWHERE: [&str; 7] = ["document", "info", "unlock", "cancel", "pull", "push", "?"];

    #[test]
    fn each_method_of_the_protocol_has_a_path() {
        let all = endpoints();
        let exchanges = Protocols::DESCRIPTIONS.iter().flat_map(|known| known.protocol.methods);
        for method in PROTOCOL.methods.iter().chain(ACCESS.methods).chain(exchanges) {
            let is_served = all.iter().any(|endpoint| endpoint.serves.row() == Some(*method));
            assert_ne!(is_served, ELSEWHERE.contains(&method.name), "{}", method.name);
        }
        let ways: HashSet<(&str, &Verb)> = all.iter().map(|one| (&*one.path, &one.verb)).collect();
        assert_eq!(ways.len(), all.len(), "a verb stands twice on a path");
    }

    #[test]
    fn what_changes_something_is_no_get() {
        for endpoint in endpoints() {
            let changes = endpoint.serves.row().is_some_and(|row| row.effect != Effect::Reads);
            assert!(!changes || endpoint.verb != Verb::GET, "{endpoint:?}");
        }
    }
}
