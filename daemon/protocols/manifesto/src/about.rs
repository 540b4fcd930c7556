//! Descriptions of the methods for documents: parameters, schemas and statuses.

use omir_core::decode::Limits;
use omir_core::json;
use omir_core::value::{Map, Value};
use omird_router::field::ANY_TEXT;
use omird_router::{About, ERROR, Effect, Field, Method, Payload, Scope};

const WORLD_ID: Field =
    Field::new("worldId", ANY_TEXT, "The WorldId, of 1 to 512 bytes; what is in it means nothing.")
        .required();

pub(crate) const GET: About = About {
    summary: "Gives a World, or null.",
    parameters: &[WORLD_ID],
    payload: "",
    response: "ManifestoFound",
};
pub(crate) const EXISTS: About = About {
    summary: "Says whether a World is stored.",
    parameters: &[WORLD_ID],
    payload: "",
    response: "ManifestoExists",
};
pub(crate) const PUT: About =
    about("Stores a World, or makes one of live memories.", "ManifestoPut", "ManifestoStored");
pub(crate) const PROVE: About = about(
    "Proves that a World is the one a memory points to.",
    "ManifestoProve",
    "ManifestoProveResult",
);
pub(crate) const VERIFY_PROOF: About =
    about("Verifies a proof without its World.", "ManifestoVerify", "ManifestoVerified");
pub(crate) const SELECT: About = about(
    "Selects memories for a query, with evidence.",
    "ManifestoSelectionRequest",
    "ManifestoSelectionResult",
);
pub(crate) const TRACE: About =
    about("Makes a trace of a selection.", "ManifestoTraceRequest", "ManifestoTrace");
pub(crate) const ATTACH: About =
    about("Attaches a trace to a Proposal.", "ManifestoAttach", "ManifestoAttached");
pub(crate) const VALIDATE: About =
    about("Tells every fault of a trace.", "ManifestoValidate", "ManifestoValidated");
pub(crate) const EVALUATE: About = about(
    "Judges a Proposal by its trace, for an Authority.",
    "ManifestoEvaluate",
    "ManifestoEvaluation",
);
pub(crate) const KEYS: About = About {
    summary: "Lists the public keys that signed proofs are verified with.",
    parameters: &[],
    payload: "",
    response: "ManifestoKeys",
};
pub(crate) const HEALTH: About = About {
    summary: "Says whether the store is well.",
    parameters: &[],
    payload: "",
    response: "ManifestoHealth",
};

const fn about(summary: &'static str, payload: &'static str, response: &'static str) -> About {
    About { summary, parameters: &[], payload, response }
}

/// Returns the JSON Schemas (2020-12) of messages and answers, by name. References between them begin with `place`.
pub(crate) fn schemas(place: &str) -> Map {
    let text = include_str!("../schemas/messages.json").replace("#/", place);
    match json::from_slice(text.as_bytes(), &Limits::default()) {
        Ok(Value::Object(schemas)) => schemas,
        _ => Map::new(),
    }
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
