//! The table of methods in words: what documents and tools say of each, and of its parameters (`docs/keys.md`).
//!
//! The parser refuses what is not in here, and takes nothing else: [`Named`](crate::Named).

use omir_core::vocabulary::{ExperienceType, Kind, Label};
use omird_engine::{CountBy, MAX_LIMIT, MAX_PIECE, Order};
use omird_router::field::{ANY_NUMBER, ANY_TEXT};
use omird_router::{About, Field, Shape};

/// A name: `Type/id`.
const REFERENCE: &str = "^(?:MemoryRecord|Entity|Relationship|Episode)/[A-Za-z0-9._:-]{1,128}$";
const RECORD: &str = "^MemoryRecord/[A-Za-z0-9._:-]{1,128}$";
const ENTITY: &str = "^Entity/[A-Za-z0-9._:-]{1,128}$";
/// A reference or an instant; which, the parser tells.
const MOMENT: Shape = Shape::Form(
    "^(?:(?:MemoryRecord|Entity|Relationship|Episode)/[A-Za-z0-9._:-]{1,128}|[0-9].*[Zz0-9])$",
);
const TYPES: &[&str] = &["MemoryRecord", "Entity", "Relationship", "Episode"];
const TIERS: &[&str] = &["working", "session", "longterm", "archive"];

const UNIT: Shape = Shape::Number(0.0, 1.0);
/// A count that a computer of 32 bits can hold.
const COUNT: Shape = Shape::Integer(0, u32::MAX as i64);

const fn optional(name: &'static str, shape: Shape, about: &'static str) -> Field {
    Field::new(name, shape, about)
}

const fn required(name: &'static str, shape: Shape, about: &'static str) -> Field {
    Field::new(name, shape, about).required()
}

/// One or more of a shape.
const fn some(of: &'static Shape) -> Shape {
    Shape::List(of, 1, usize::MAX)
}

const fn says(
    summary: &'static str,
    parameters: &'static [Field],
    response: &'static str,
) -> About {
    About { summary, parameters, payload: "", response }
}

const fn takes(payload: &'static str, about: About) -> About {
    About { payload, ..about }
}

/// Those that select and order; an export has these.
const SELECTING: &[Field] = &[
    optional(
        "q",
        ANY_TEXT,
        "Words to look for: any form of any of them matches, ranked by BM25. word* is a beginning, \"two words\" must stand so, \
         and -word must not occur.",
    ),
    optional(
        "floor",
        UNIT,
        "Hides hits that have less than this share of the words' weight, and counts them in `hidden`. Default: 0, nothing.",
    ),
    optional(
        "vector",
        ANY_TEXT,
        "A vector: numbers with commas, or base64 of 32-bit floats. What is near it matches, ranked by the cosine.",
    ),
    optional(
        "model",
        ANY_TEXT,
        "The model that made `vector`. Default: the only one of that size.",
    ),
    optional(
        "minCosine",
        Shape::Number(-1.0, 1.0),
        "The least cosine of a match by meaning. Default: the setting `embedding.min_cosine`.",
    ),
    optional(
        "near",
        Shape::List(&ANY_NUMBER, 2, 3),
        "A place x,y or x,y,z in metres, in `frame`; two numbers mean distance in the plane. Without `radius` and `q` the \
         nearest comes first.",
    ),
    optional(
        "frame",
        Shape::Form("."),
        "The frame of `near` and `box`; alone, everything with a pose in it. Default: the fixed frame, `map`.",
    ),
    optional(
        "radius",
        Shape::Number(0.0, f64::INFINITY),
        "Metres around `near` or `geo`, which it needs; the edge counts. Default: no bound.",
    ),
    optional(
        "box",
        Shape::List(&ANY_NUMBER, 6, 6),
        "Two opposite corners x0,y0,z0,x1,y1,z1 in metres, in `frame`; edges count.",
    ),
    optional(
        "geo",
        Shape::List(&ANY_NUMBER, 2, 3),
        "A place lat,lon or lat,lon,alt on WGS 84 in degrees; distances are great-circle metres, and `alt` is ignored.",
    ),
    optional(
        "_time",
        Shape::Form("^[\\[\\]].*(?:\\.\\.|;).*[\\[\\]]$"),
        "A range [from..to] of eventTime, else createdAt: RFC 3339 or now(-1h), open ends allowed; ] and [ turned outwards \
         exclude the end.",
    ),
    optional(
        "before",
        MOMENT,
        "Memories that are earlier than this memory, Type/id, or than this instant.",
    ),
    optional(
        "after",
        MOMENT,
        "Memories that are later than this memory, Type/id, or than this instant.",
    ),
    optional("type", some(&Shape::OneOf(TYPES)), "Resources of these types. Default: all."),
    optional("kind", some(&Shape::OneOf(Kind::WORDS)), "Records of these kinds. Default: all."),
    optional("tier", some(&Shape::OneOf(TIERS)), "Memories in these tiers. Default: all."),
    optional(
        "experienceType",
        some(&Shape::OneOf(ExperienceType::WORDS)),
        "Records of these types of experience. Default: all but `intention`.",
    ),
    optional(
        "entity",
        some(&Shape::Form(ENTITY)),
        "Memories that mention any of these entities, and Relationships of them.",
    ),
    optional(
        "label",
        some(&Shape::OneOf(Label::WORDS)),
        "Entities with these labels. Default: all.",
    ),
    optional("minImportance", UNIT, "Only resources that state at least this importance."),
    optional("minConfidence", UNIT, "Only resources that state at least this confidence."),
    optional("minRetrievability", UNIT, "Only memories that have not faded below this."),
    optional(
        "includeExpired",
        Shape::Flag,
        "Also finds what is past `validUntil` or `invalidatedAt`. Default: false.",
    ),
    optional(
        "includeIntentions",
        Shape::Flag,
        "Also finds records of the experience type `intention`. Default: false.",
    ),
    optional(
        "includeForgotten",
        Shape::Flag,
        "Also finds what was forgotten and is not compacted away. Default: false.",
    ),
    optional(
        "asOf",
        Shape::Named("Instant"),
        "Finds what was known at that instant; one in the future shows how far memories will have faded. Default: now.",
    ),
    optional(
        "order",
        Shape::OneOf(&Order::WORDS),
        "The order of the hits: best score, latest or earliest event, or nearest first. Default: score.",
    ),
    optional(
        "limit",
        Shape::Integer(0, MAX_LIMIT as i64),
        "The most hits on the page. Default: 10; an export has no limit.",
    ),
    optional("offset", COUNT, "Hits to skip. Default: 0."),
    optional(
        "touch",
        Shape::Flag,
        "Counts the hits as accessed; never with `asOf`. Default: true.",
    ),
    optional("explain", Shape::Flag, "Adds the parts of each score. Default: false."),
];

/// Those that ask about all matches.
const ASKING: &[Field] = &[
    optional("count", Shape::Flag, "Only counts the matches: no hits. Default: false."),
    optional(
        "countBy",
        Shape::OneOf(&CountBy::WORDS),
        "Counts matches by the entities that they mention, by square places or by days (UTC): no hits.",
    ),
    optional(
        "cell",
        Shape::Number(f64::MIN_POSITIVE, f64::INFINITY),
        "Metres: the side of a square of `countBy=place`, and how far one place of `history` reaches. Default: 1.",
    ),
    optional(
        "distinct",
        Shape::OneOf(&["entity"]),
        "As hits the newest match of each entity that a match mentions.",
    ),
    optional(
        "unseenSince",
        Shape::Named("Instant"),
        "As hits the last match of each entity that no match mentions from this instant on; of those in `entity`, if it is given.",
    ),
    optional(
        "visits",
        Shape::Flag,
        "Tells how often matches came together in time, and the first and the last of them. Default: false.",
    ),
    optional(
        "visitGap",
        Shape::Number(0.0, f64::INFINITY),
        "Seconds between two matches of two visits. Default: 1800.",
    ),
    optional(
        "history",
        Shape::OneOf(&["place"]),
        "Tells the places of each entity in `entity`, one after the other.",
    ),
    optional(
        "spread",
        Shape::Flag,
        "One hop over relationships: also finds what mentions an entity that is related to those of the best matches. Default: false.",
    ),
    optional(
        "exactTotal",
        Shape::Flag,
        "With false, `total` may be a lower bound; `totalIsExact` tells. Default: true.",
    ),
];

const RECALL_PARAMETERS: [Field; SELECTING.len() + ASKING.len()] = {
    let mut all = [SELECTING[0]; SELECTING.len() + ASKING.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < SELECTING.len() { SELECTING[at] } else { ASKING[at - SELECTING.len()] };
        at += 1;
    }
    all
};

pub(super) static REMEMBER: About = takes(
    "Resources",
    says(
        "Stores a resource, an array of resources or a Bundle, all of it or nothing, and answers when it is durable.",
        &[
            optional(
                "merge",
                Shape::OneOf(&["true", "overwrite"]),
                "Merges as an import does: the newer one stays; with `overwrite` the one in the payload. Default: not merged.",
            ),
            optional(
                "ifAbsent",
                Shape::Flag,
                "Stores only if none of the resources is stored, else CONFLICT. Default: false.",
            ),
            optional(
                "ifVersion",
                Shape::Integer(1, i64::MAX),
                "Stores only if this is the version of each of them, else CONFLICT.",
            ),
        ],
        "Remembered",
    ),
);
pub(super) static RECALL: About =
    says("Finds memories and ranks them; filters are exact.", &RECALL_PARAMETERS, "Recall");
pub(super) static FORGET: About = says(
    "Forgets resources, and what cannot exist without them.",
    &[required(
        "ref",
        some(&Shape::Form(REFERENCE)),
        "The resources, as Type/id with commas between: all or none. One that is not stored is no error.",
    )],
    "Forgotten",
);
pub(super) static ANCHOR: About = says(
    "Anchors a record, so that it never fades below its floor and is never merged, expired or evicted.",
    &[
        required("ref", Shape::Form(RECORD), "The record, as MemoryRecord/id."),
        optional("anchored", Shape::Flag, "`false` lets it go. Default: true."),
    ],
    "Anchored",
);
pub(super) static FEEDBACK: About = says(
    "Says whether acting on a record confirmed it, which revises its confidence, Beta(α, β).",
    &[
        required("ref", Shape::Form(RECORD), "The record, as MemoryRecord/id."),
        required(
            "outcome",
            Shape::OneOf(&["confirmed", "contradicted"]),
            "Whether it was confirmed or contradicted.",
        ),
        optional(
            "weight",
            Shape::Number(f64::MIN_POSITIVE, 1000.0),
            "How many observations it stands for: above 0. Default: 1.",
        ),
    ],
    "Believed",
);
pub(super) static EXPORT: About = says(
    "Gives a Bundle of everything, or of what the parameters of recall select.",
    SELECTING,
    "Bundle",
);
pub(super) static COMPACT: About = says(
    "Rewrites segments without dead data, and answers when that is done.",
    &[optional(
        "scope",
        Shape::OneOf(&["due", "forgotten", "all"]),
        "`due`: what is worth it; `forgotten`: all segments with something forgotten in them; `all`: into as few segments as \
         possible. Default: due.",
    )],
    "Compacted",
);
pub(super) static SWEEP: About = says(
    "Announces moves between tiers, merges, expires and evicts now instead of in idle time.",
    &[optional("dryRun", Shape::Flag, "Only reports what it would do. Default: false.")],
    "Swept",
);
pub(super) static EXPLAIN: About = says(
    "Explains the tier of a memory, how far it has faded, and when it will be forgotten.",
    &[required("ref", Shape::Form(REFERENCE), "The resource, as Type/id; a forgotten one too.")],
    "Explanation",
);
pub(super) static REBASE: About = takes(
    "Rebase",
    says(
        "Moves memories with their keyframes: all that are tied to them, or none.",
        &[
            optional(
                "undo",
                Shape::Form(RECORD),
                "The record of the step to take back, instead of keyframes in the payload; the last one first.",
            ),
            optional("dryRun", Shape::Flag, "Only counts what it would move. Default: false."),
        ],
        "Rebased",
    ),
);
pub(super) static STATUS: About =
    says("Gives the state of the daemon, its card and its clock.", &[], "Status");
pub(super) static BACKUP: About = says(
    "Seals everything and lists the segments, or gives bytes of one.",
    &[
        optional(
            "segment",
            COUNT,
            "The number of a segment, to read its bytes instead of the list.",
        ),
        optional(
            "offset",
            Shape::Integer(0, i64::MAX),
            "The first byte, not behind the segment's end. Default: 0.",
        ),
        optional(
            "length",
            Shape::Integer(0, MAX_PIECE as i64),
            "The most bytes; fewer come at the segment's end. Default: 1 MiB.",
        ),
    ],
    "Backup",
);
pub(super) static PROVE: About = says(
    "Gives a document that shows, without the segment, that this device sealed a resource.",
    &[required(
        "ref",
        Shape::Form(REFERENCE),
        "The resource, as Type/id: its newest version, once it is sealed.",
    )],
    "Proof",
);

pub(super) static GET: About = says("Gives the resource of that name.", &[], "Resource");
pub(super) static PUT: About = takes(
    "NewResource",
    says(
        "Stores or updates the resource of that name, and answers when it is durable.",
        &[],
        "Remembered",
    ),
);
pub(super) static DELETE: About =
    says("Forgets the resource of that name, and what cannot exist without it.", &[], "Forgotten");
pub(super) static EVENTS: About =
    says("Tells what is recorded, updated, moved and forgotten from now on.", &[], "Event");
pub(super) static DOCUMENT: About =
    says("Gives a Bundle of any size, one resource after the other.", SELECTING, "Bundle");
pub(super) static CLOCK: About =
    takes("Time", says("Sets the time of a simulation to the instant in the payload.", &[], "Now"));

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use omir_core::reference::{Ref, ResourceType};
    use omir_core::tier::Tier;

    use crate::methods::OMIR;

    use super::*;

    #[test]
    fn the_words_are_those_of_the_core() {
        assert_eq!(TYPES, ResourceType::ALL.map(ResourceType::as_str));
        assert_eq!(TIERS, Tier::ALL.map(Tier::as_str));
        for of in TYPES {
            let text = format!("{of}/a");
            assert!(REFERENCE.contains(of) && text.parse::<Ref>().is_ok());
        }
    }

    /// One sentence that begins as those of docs/keys.md do, so that lists of them read as one.
    #[test]
    fn what_is_said_is_one_sentence() {
        for method in OMIR.methods {
            let about = method.about;
            if *about == *About::NOTHING {
                continue;
            }
            let names: BTreeSet<&str> = about.names().collect();
            assert_eq!(names.len(), about.parameters.len(), "{}: a name stands twice", method.name);
            let texts = about.parameters.iter().map(|parameter| parameter.about);
            for text in texts.chain([about.summary]) {
                let begins = text.starts_with(|c: char| c.is_uppercase() || c == '`');
                assert!(begins && text.ends_with('.'), "{}: {text:?}", method.name);
            }
        }
    }

    /// The tables of docs/keys.md have a row for each parameter, and no other, in the same order.
    #[test]
    fn the_page_tells_of_every_parameter_and_of_no_other() {
        let page = include_str!("../../../../docs/keys.md");
        let mut compared = 0;
        for section in page.split("\n## ").skip(1) {
            let (heading, text) = section.split_once('\n').unwrap();
            let Some(method) = OMIR.method(&heading.to_lowercase()) else { continue };
            // An export has those of recall, and says so.
            if method.name == "export" {
                assert!(text.contains("accepts the parameters of [Recall]"));
                continue;
            }
            let table = text.split_once("\n| parameter |").map_or("", |(_, table)| table);
            let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
            let told: Vec<(&str, bool)> = rows
                .map(|row| (row.split('`').next().unwrap(), row.contains("| required |")))
                .collect();
            let known: Vec<(&str, bool)> = method
                .about
                .parameters
                .iter()
                .map(|parameter| (parameter.name, parameter.is_required))
                .collect();
            assert_eq!(told, known, "{heading}");
            compared += 1;
        }
        assert!(compared >= 11, "{compared} sections");
    }
}
