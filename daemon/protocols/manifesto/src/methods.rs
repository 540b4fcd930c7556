//! The table of methods, with the schemas and statuses of their answers.

use std::time::Duration;

use omir_core::value::Map;
use omird_router::{
    About, ERROR, Effect, Method, Payload, Protocol, Rate, Scope, embedded_schemas,
};

use crate::about;

const NAME: &str = "manifesto";
/// Bytes of a request.
const MOST: usize = 4 << 20;
/// Requests of one token a second, where it states no rate.
const RATE: Rate = Rate { requests: 50, per: Duration::from_secs(1) };

/// Store, prove and select: what an agent does.
pub const ACTOR: Scope = Scope("manifesto:actor");
/// Judge Proposals: what another than the agent must do.
pub const AUTHORITY: Scope = Scope("manifesto:authority");
/// Pure functions that both need.
const EITHER: Scope = Scope("manifesto:actor manifesto:authority");

const fn row(name: &'static str, scope: Scope, about: &'static About) -> Method {
    Method {
        protocol: NAME,
        name,
        effect: Effect::Reads,
        streams: false,
        payload: Payload::Message(MOST),
        scope,
        rates: [Some(RATE), None],
        about,
    }
}

const fn bare(name: &'static str, scope: Scope, about: &'static About) -> Method {
    Method { payload: Payload::None, ..row(name, scope, about) }
}

/// A World, or `null`.
pub static GET: Method = bare("get", ACTOR, &about::GET);
/// That a World is there.
pub static EXISTS: Method = bare("exists", ACTOR, &about::EXISTS);
/// A World is stored, or live memories are made into one.
pub static PUT: Method = Method { effect: Effect::Changes, ..row("put", ACTOR, &about::PUT) };
/// A World is proven.
pub static PROVE: Method = row("prove", ACTOR, &about::PROVE);
/// A proof is verified.
pub static VERIFY_PROOF: Method = row("verify-proof", EITHER, &about::VERIFY_PROOF);
/// Memories are selected.
pub static SELECT: Method = row("select", ACTOR, &about::SELECT);
/// A trace is made.
pub static TRACE: Method = row("trace", ACTOR, &about::TRACE);
/// A trace is attached to a Proposal, and recorded if that is asked for.
pub static ATTACH: Method =
    Method { effect: Effect::ChangesUnlessDry, ..row("trace/attach", ACTOR, &about::ATTACH) };
/// A trace is validated.
pub static VALIDATE: Method = row("trace/validate", EITHER, &about::VALIDATE);
/// A Proposal is judged.
pub static EVALUATE: Method = row("authority/evaluate", AUTHORITY, &about::EVALUATE);
/// The public keys that proofs are verified with.
pub static KEYS: Method = bare("keys", EITHER, &about::KEYS);
/// That the store is well.
pub static HEALTH: Method =
    Method { rates: [None, None], ..bare("health", Scope::OPEN, &about::HEALTH) };

/// The protocol of `docs/manifesto.md`.
pub static MANIFESTO: Protocol = Protocol {
    name: NAME,
    scopes: &[ACTOR, AUTHORITY],
    methods: &[
        &GET,
        &EXISTS,
        &PUT,
        &PROVE,
        &VERIFY_PROOF,
        &SELECT,
        &TRACE,
        &ATTACH,
        &VALIDATE,
        &EVALUATE,
        &KEYS,
        &HEALTH,
    ],
};

/// Returns the JSON Schemas (2020-12) of messages and answers, by name. References between them begin with `place`.
pub(crate) fn schemas(place: &str) -> Map {
    embedded_schemas(&include_str!("../schemas/messages.json").replace("#/", place))
}

/// Returns the statuses of a method, with the schema of each.
pub(crate) fn answers(method: &'static Method) -> &'static [(u16, &'static str)] {
    macro_rules! statuses {
        ($done:expr, $($more:expr),*) => {
            &[$done, (400, ERROR), (401, ERROR), (403, ERROR), (429, ERROR), (500, ERROR), (503, ERROR), $($more),*]
        };
    }
    // A row of the table each, for the name of the schema of its answer is a constant of it.
    match (method.about.response, method.payload, method.effect) {
        ("ManifestoFound", ..) => statuses!((200, "ManifestoFound"),),
        ("ManifestoExists", ..) => statuses!((200, "ManifestoExists"),),
        ("ManifestoStored", ..) => statuses!(
            (200, "ManifestoStored"),
            (201, "ManifestoStored"),
            (409, ERROR),
            (413, ERROR),
            (415, ERROR),
            (507, ERROR)
        ),
        ("ManifestoProveResult", ..) => {
            statuses!((200, "ManifestoProveResult"), (413, ERROR), (415, ERROR))
        }
        ("ManifestoVerified", ..) => {
            statuses!((200, "ManifestoVerified"), (413, ERROR), (415, ERROR))
        }
        ("ManifestoSelectionResult", ..) => {
            statuses!((200, "ManifestoSelectionResult"), (413, ERROR), (415, ERROR))
        }
        ("ManifestoTrace", ..) => statuses!((200, "ManifestoTrace"), (413, ERROR), (415, ERROR)),
        ("ManifestoAttached", _, Effect::ChangesUnlessDry) => statuses!(
            (200, "ManifestoAttached"),
            (409, ERROR),
            (413, ERROR),
            (415, ERROR),
            (507, ERROR)
        ),
        ("ManifestoValidated", ..) => {
            statuses!((200, "ManifestoValidated"), (413, ERROR), (415, ERROR))
        }
        ("ManifestoEvaluation", ..) => {
            statuses!((200, "ManifestoEvaluation"), (413, ERROR), (415, ERROR))
        }
        ("ManifestoKeys", Payload::None, _) => statuses!((200, "ManifestoKeys"),),
        _ if method.scope == Scope::OPEN => &[(200, "ManifestoHealth"), (503, ERROR)],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_method_is_refused_for_each_reason() {
        omird_router::testing::each_method_is_decided(&MANIFESTO, MANIFESTO.scopes);
    }
}
