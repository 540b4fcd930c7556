//! Descriptions of the methods for documents.

use omird_router::field::ANY_TEXT;
use omird_router::{About, Field};

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
