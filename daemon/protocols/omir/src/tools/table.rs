//! The table of tools.

use omir_core::model::ExperienceType;
use omir_core::value::Map;
use omird_engine::Error;
use omird_router::field::ANY_NUMBER;
use omird_router::tool::Tool;
use omird_router::{Admitted, Field, Shape};

use super::Call;
use super::change::{ANCHORED, BELIEVED, FORGOTTEN, REMEMBERED};
use super::look::{EXPLANATION, RESOURCE};
use super::memory::MEMORY;
use super::page::{CURSOR, LIMIT, PAGE};
use super::whereabouts::{FOUND, SIGHTING};
use crate::methods;

/// Most characters of a text that is remembered; `limits.max_payload_bytes` holds as well.
const LONGEST: usize = 100_000;
const WORDS: Shape = Shape::Text(1_000);
const MOMENT: Shape = Shape::Text(64);
const ANY: Shape =
    Shape::Form("^(MemoryRecord|Entity|Relationship|Episode)/[A-Za-z0-9._:-]{1,128}$");
const RECORD: Shape = Shape::Form("^MemoryRecord/[A-Za-z0-9._:-]{1,128}$");
const ENTITY: Shape = Shape::Form("^Entity/[A-Za-z0-9._:-]{1,128}$");
const UNIT: Shape = Shape::Number(0.0, 1.0);
const METRES: Shape = Shape::Number(0.0, f64::INFINITY);

const X: Field = Field::new("x", ANY_NUMBER, "Metres along the x axis of `frame`; goes with y.");
const Y: Field = Field::new("y", ANY_NUMBER, "Metres along the y axis of `frame`; goes with x.");
const Z: Field =
    Field::new("z", ANY_NUMBER, "Metres upwards; left out, distances are in the plane.");
const FRAME: Field =
    Field::new("frame", WORDS, "The coordinate frame of x, y and z; the robot's map if left out.");
const RADIUS: Field =
    Field::new("radius_m", METRES, "Metres around x and y; no bound if left out.");
const SINCE: Field = Field::new(
    "since",
    MOMENT,
    "Not before: RFC 3339, such as 2026-05-30T11:00:00Z, or how long ago, such as 2h or 7d.",
);
const UNTIL: Field = Field::new("until", MOMENT, "Not after; the same forms as `since`.");
const ABOUT: Field =
    Field::new("entity", ENTITY, "Only memories that mention this thing, as Entity/<id>.");
const QUERY: Field =
    Field::new("query", WORDS, "Words to search for; any of them matches, and more rank higher.");
const EXPERIENCE: Field = Field::new(
    "experience_type",
    Shape::OneOf(ExperienceType::WORDS),
    "The nature of the experience.",
);
const REFERENCE: Field =
    Field::new("reference", ANY, "Type/id, as `reference` of another tool's result has it.")
        .required();
const OF_RECORD: Field = Field { shape: RECORD, ..REFERENCE };

/// Two lists of fields in one.
const fn joined<const A: usize, const B: usize, const N: usize>(
    a: &[Field],
    b: &[Field],
) -> [Field; N] {
    assert!(a.len() == A && b.len() == B && A + B == N);
    let mut fields = [REFERENCE; N];
    let mut at = 0;
    while at < N {
        fields[at] = if at < A { a[at] } else { b[at - A] };
        at += 1;
    }
    fields
}

static GOTTEN: [Field; MEMORY.len() + RESOURCE.len()] =
    joined::<{ MEMORY.len() }, { RESOURCE.len() }, _>(MEMORY, &RESOURCE);
static WHEREABOUTS: [Field; FOUND.len() + SIGHTING.len()] =
    joined::<{ FOUND.len() }, { SIGHTING.len() }, _>(&FOUND, &SIGHTING);

/// A tool, and what it does.
pub(super) struct Row {
    /// The tool.
    pub(super) tool: Tool,
    /// Carries out one use of it.
    pub(super) run: fn(&Call<'_>, &mut Admitted) -> Result<Map, Error>,
}

/// All tools of this protocol.
pub(super) static ROWS: &[Row] = &[
    Row {
        tool: Tool {
            name: "remember",
            title: "Remember something",
            about: "Stores one memory: what was seen, learned, decided or went wrong, in words that make sense later. State x, \
                y (and z) in metres if it belongs to a place, and the things it is about as entities (an entity that is \
                not known yet is created), so that where_is and what_is_near find it. The result comes when the memory \
                is safe on the disk. It never changes another memory.",
            method: &methods::REMEMBER,
            inputs: &[
                Field::new("text", Shape::Text(LONGEST), "The memory, in one or a few sentences.")
                    .required(),
                X,
                Y,
                Field::new("z", ANY_NUMBER, "Metres upwards; 0 if left out."),
                FRAME,
                Field::new(
                    "entities",
                    Shape::List(&ENTITY, 0, 32),
                    "Things it is about, as Entity/<id>, such as Entity/red-mug.",
                ),
                Field::new("event_time", MOMENT, "When it happened, RFC 3339; now if left out."),
                Field::new("valid_until", MOMENT, "When it stops being true, RFC 3339."),
                EXPERIENCE,
                Field::new("importance", UNIT, "0 to 1; what is important is kept longer."),
                Field::new("confidence", UNIT, "How certain it is, 0 to 1."),
            ],
            outputs: REMEMBERED,
            is_destructive: false,
            is_idempotent: false,
        },
        run: |call, admitted| call.remember(admitted),
    },
    Row {
        tool: Tool {
            name: "recall",
            title: "Search the memory",
            about: "Finds memories by words, place, time and things, best first. All filters narrow together and are exact; \
                `total` counts all matches. Without any argument it returns what matters now. Use where_is for the \
                place of a thing, what_is_near for a place, timeline for what happened when.",
            method: &methods::RECALL,
            inputs: &[
                QUERY,
                X,
                Y,
                Z,
                FRAME,
                RADIUS,
                SINCE,
                UNTIL,
                ABOUT,
                Field::new(
                    "type",
                    Shape::OneOf(&["MemoryRecord", "Entity", "Relationship", "Episode"]),
                    "Only resources of this type; Entity lists known things.",
                ),
                EXPERIENCE,
                Field::new(
                    "min_importance",
                    UNIT,
                    "Only memories that state at least this importance.",
                ),
                Field::new("include_expired", Shape::Flag, "Also what is not valid any more."),
                Field::new(
                    "order",
                    Shape::OneOf(&["score", "latest", "earliest", "distance"]),
                    "Which come first; score if left out.",
                ),
                LIMIT,
                CURSOR,
            ],
            outputs: PAGE,
            is_destructive: false,
            is_idempotent: true,
        },
        run: |call, _| call.recall(),
    },
    Row {
        tool: Tool {
            name: "get",
            title: "Read one memory",
            about: "Returns one memory in full, with the resource as it is stored.",
            method: &methods::GET,
            inputs: &[REFERENCE],
            outputs: &GOTTEN,
            is_destructive: false,
            is_idempotent: true,
        },
        run: |call, _| call.get(),
    },
    Row {
        tool: Tool {
            name: "forget",
            title: "Forget memories",
            about: "Forgets memories for good, and with an Entity its Relationships: all of them, or none if it fails. A \
                memory that is not stored is no error and does not count.",
            method: &methods::FORGET,
            inputs: &[Field::new(
                "references",
                Shape::List(&ANY, 0, 100),
                "The memories, as Type/id.",
            )
            .required()],
            outputs: FORGOTTEN,
            is_destructive: true,
            is_idempotent: true,
        },
        run: |call, admitted| call.forget(admitted),
    },
    Row {
        tool: Tool {
            name: "anchor",
            title: "Keep a memory",
            about: "Makes a memory resist forgetting, or lets it go again.",
            method: &methods::ANCHOR,
            inputs: &[
                OF_RECORD,
                Field::new("anchored", Shape::Flag, "false lets it go; true if left out."),
            ],
            outputs: ANCHORED,
            is_destructive: false,
            is_idempotent: true,
        },
        run: |call, admitted| call.anchor(admitted),
    },
    Row {
        tool: Tool {
            name: "feedback",
            title: "Say if a memory was right",
            about: "Tells the memory that acting on a record confirmed or contradicted it. That changes its confidence.",
            method: &methods::FEEDBACK,
            inputs: &[
                OF_RECORD,
                Field::new(
                    "outcome",
                    Shape::OneOf(&["confirmed", "contradicted"]),
                    "What happened.",
                )
                .required(),
                Field::new(
                    "weight",
                    Shape::Number(f64::MIN_POSITIVE, 1000.0),
                    "Number of observations it stands for; 1 if left out.",
                ),
            ],
            outputs: BELIEVED,
            is_destructive: false,
            is_idempotent: false,
        },
        run: |call, admitted| call.feedback(admitted),
    },
    Row {
        tool: Tool {
            name: "explain",
            title: "Explain a memory's fate",
            about: "Explains how well a memory is held: its tier and why, how far it has faded, when it will, and since when a \
                forgotten one is gone.",
            method: &methods::EXPLAIN,
            inputs: &[REFERENCE],
            outputs: EXPLANATION,
            is_destructive: false,
            is_idempotent: true,
        },
        run: |call, _| call.explain(),
    },
    Row {
        tool: Tool {
            name: "where_is",
            title: "Where a thing was seen last",
            about: "Returns the place where a thing was seen last: x, y and z in metres in `frame`, and how long ago. `found` is \
                false if no place is known. The place is that of the memory under `reference`; the thing may have moved \
                since.",
            method: &methods::RECALL,
            inputs: &[
                Field::new("thing", WORDS, "Its name, such as red mug, or Entity/<id>.").required(),
                Field::new(
                    "frame",
                    WORDS,
                    "Only places in this coordinate frame; any if left out.",
                ),
            ],
            outputs: &WHEREABOUTS,
            is_destructive: false,
            is_idempotent: true,
        },
        run: |call, _| call.where_is(),
    },
    Row {
        tool: Tool {
            name: "what_is_near",
            title: "What was seen near a place",
            about: "Lists what is remembered within a radius of a place, nearest first, with the distance in metres.",
            method: &methods::RECALL,
            inputs: &[
                X.required(),
                Y.required(),
                Z,
                FRAME,
                Field::new("radius_m", METRES, "Metres around the place; 5 if left out."),
                QUERY,
                SINCE,
                UNTIL,
                ABOUT,
                LIMIT,
                CURSOR,
            ],
            outputs: PAGE,
            is_destructive: false,
            is_idempotent: true,
        },
        run: |call, _| call.what_is_near(),
    },
    Row {
        tool: Tool {
            name: "timeline",
            title: "What happened when",
            about: "Lists what happened, by time: of a span, of a thing, at a place, or everything. The latest comes first unless \
                `order` is earliest.",
            method: &methods::RECALL,
            inputs: &[
                SINCE,
                UNTIL,
                ABOUT,
                QUERY,
                X,
                Y,
                Z,
                FRAME,
                RADIUS,
                Field::new(
                    "order",
                    Shape::OneOf(&["latest", "earliest"]),
                    "Which come first; latest if left out.",
                ),
                LIMIT,
                CURSOR,
            ],
            outputs: PAGE,
            is_destructive: false,
            is_idempotent: true,
        },
        run: |call, _| call.timeline(),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of the contract, and the rows they ask.
    #[test]
    fn each_tool_asks_the_row_that_the_router_decides_by() {
        let named: Vec<(&str, &str)> =
            ROWS.iter().map(|row| (row.tool.name, row.tool.method.name)).collect();
        assert_eq!(
            named,
            [
                ("remember", "remember"),
                ("recall", "recall"),
                ("get", "get"),
                ("forget", "forget"),
                ("anchor", "anchor"),
                ("feedback", "feedback"),
                ("explain", "explain"),
                ("where_is", "recall"),
                ("what_is_near", "recall"),
                ("timeline", "recall"),
            ]
        );
        for Row { tool, .. } in ROWS {
            assert!(!tool.is_destructive || !tool.only_reads(), "{}", tool.name);
        }
    }

    #[test]
    fn names_are_unique_and_everything_is_told() {
        for Row { tool, .. } in ROWS {
            for fields in [tool.inputs, tool.outputs] {
                let mut names: Vec<&str> = fields.iter().map(|field| field.name).collect();
                names.sort_unstable();
                let count = names.len();
                names.dedup();
                assert_eq!(names.len(), count, "{}", tool.name);
                assert!(fields.iter().all(|field| !field.about.is_empty()), "{}", tool.name);
            }
            assert!(tool.about.len() < 600, "{} fits a model's context", tool.name);
        }
    }
}
