//! The table of methods.

use std::time::Duration;

use omir_core::value::Map;
use omird_router::field::{ANY_NUMBER, ANY_TEXT};
use omird_router::{About, ERROR, Effect, Field, Method, Payload, Protocol, Rate, Scope, Shape};

use crate::schema;

const NAME: &str = "experience";

/// Ask for hints, and look at experiences.
pub const READ: Scope = Scope("experience:read");
/// Record experiences.
pub const WRITE: Scope = Scope("experience:write");

/// Most bytes of a message: with what is made of it, it fits one resource, unless it holds very many decimals.
pub(crate) const MOST_BYTES: usize = (1 << 20) - (64 << 10);

/// The rates of the contract for a key that states none: a burst, and an hour.
const RATES: [Option<Rate>; 2] = [
    Some(Rate { requests: 20, per: Duration::from_secs(1) }),
    Some(Rate { requests: 2000, per: Duration::from_secs(3600) }),
];

const fn row(
    name: &'static str,
    effect: Effect,
    payload: Payload,
    scope: Scope,
    about: &'static About,
) -> Method {
    // A method that needs no key counts for no rate.
    let rates = if scope.0.is_empty() { [None, None] } else { RATES };
    Method { protocol: NAME, name, effect, streams: false, payload, scope, rates, about }
}

/// The most metres around a place that hints are asked for.
pub(crate) const MOST_METRES: f64 = 1e7;

/// An experience is stored.
pub static RECORD: Method = row(
    "record",
    Effect::Changes,
    Payload::Message(MOST_BYTES),
    WRITE,
    &About {
        summary: "Records what a task used and how it ended.",
        parameters: &[
            Field::new(
                "on_duplicate",
                Shape::OneOf(&["reject", "update"]),
                "What becomes of a task that is recorded already: a conflict, or a new version of it; by default reject.",
            ),
            Field::new(
                "at",
                Shape::List(&ANY_NUMBER, 2, 3),
                "The place where the task ended: x,y or x,y,z in metres, in the fixed frame of the robot; by default \
                 that of its own frame, where it is known.",
            ),
        ],
        payload: "ExperienceRecord",
        response: "ExperienceResponse",
    },
);

/// Hints are asked for.
pub static HINTS: Method = row(
    "hints",
    Effect::Reads,
    Payload::Message(MOST_BYTES),
    READ,
    &About {
        summary: "Asks what is worth using, by what similar tasks used.",
        parameters: &[
            Field::new(
                "near",
                Shape::List(&ANY_NUMBER, 2, 3),
                "Only by tasks that ended near this place: x,y or x,y,z in metres.",
            ),
            Field::new(
                "radius",
                Shape::Number(0.0, MOST_METRES),
                "Metres around near; by default 5.",
            ),
            Field::new(
                "frame",
                ANY_TEXT,
                "The frame of near; by default the fixed frame of the robot.",
            ),
        ],
        payload: "HintRequest",
        response: "HintsResponse",
    },
);

/// One experience is fetched.
pub static FETCH: Method = row(
    "experience",
    Effect::Reads,
    Payload::None,
    READ,
    &About {
        summary: "Returns the title and the result of one task.",
        parameters: &[
            Field::new("task_id", ANY_TEXT, "The task, or the id of its experience.").required()
        ],
        payload: "",
        response: "Experience",
    },
);

/// The components are asked how they are.
pub static HEALTH: Method = row(
    "health",
    Effect::Reads,
    Payload::None,
    Scope::OPEN,
    &About {
        summary: "Tells how the components of experience and hints are.",
        parameters: &[],
        payload: "",
        response: "ExperienceHealth",
    },
);

/// A schema is fetched.
pub static SCHEMA: Method = row(
    "schema",
    Effect::Reads,
    Payload::None,
    Scope::OPEN,
    &About {
        summary: "Returns one of the JSON Schemas (draft-07) of the contract.",
        parameters: &[
            Field::new("name", Shape::OneOf(&schema::NAMES), "The name of the schema.").required()
        ],
        payload: "",
        response: "",
    },
);

/// The protocol of `docs/experience.md`.
pub static EXPERIENCE: Protocol = Protocol {
    name: NAME,
    scopes: &[READ, WRITE],
    methods: &[&RECORD, &HINTS, &FETCH, &HEALTH, &SCHEMA],
};

/// Returns the schemas for documents: one text each, so none refers to another.
pub(crate) fn schemas(_: &str) -> Map {
    schema::components()
}

/// Returns the statuses, and the schema of each.
pub(crate) fn answers(method: &'static Method) -> &'static [(u16, &'static str)] {
    const RECORDED: &str = "ExperienceResponse";
    const HINTED: &str = "HintsResponse";
    match method.name {
        "record" => &[
            (200, RECORDED),
            (400, RECORDED),
            (401, ERROR),
            (403, ERROR),
            (409, RECORDED),
            (413, ERROR),
            (415, ERROR),
            (429, ERROR),
            (500, RECORDED),
            (503, ERROR),
            (507, RECORDED),
        ],
        "hints" => &[
            (200, HINTED),
            (400, HINTED),
            (401, ERROR),
            (403, ERROR),
            (404, HINTED),
            (413, ERROR),
            (415, ERROR),
            (429, ERROR),
            (500, HINTED),
            (503, ERROR),
        ],
        "experience" => &[
            (200, "Experience"),
            (400, ERROR),
            (401, ERROR),
            (403, ERROR),
            (404, ERROR),
            (413, ERROR),
            (429, ERROR),
            (500, ERROR),
            (503, ERROR),
        ],
        "health" => {
            &[(200, "ExperienceHealth"), (400, ERROR), (413, ERROR), (503, "ExperienceHealth")]
        }
        _ => &[(200, ""), (400, ERROR), (404, ERROR), (413, ERROR), (503, ERROR)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_method_is_refused_for_each_reason() {
        omird_router::testing::each_method_is_decided(&EXPERIENCE, EXPERIENCE.scopes);
    }

    #[test]
    fn what_everybody_may_ask_costs_nothing() {
        for method in EXPERIENCE.methods {
            assert_eq!(
                method.scope == Scope::OPEN,
                method.rates == [None, None],
                "{}",
                method.name
            );
        }
    }
}
