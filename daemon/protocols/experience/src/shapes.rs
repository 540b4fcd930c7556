//! The shapes of the two messages: the schemas of the contract, with bounds of our own.

use crate::check::{Member, Shape, may, need};
use crate::methods::MOST_BYTES;

/// Domains of a task.
pub(crate) const DOMAINS: &[&str] = &["code", "documentation", "research", "general"];

/// The most tools at hand that a request may name.
const MOST_TOOLS: usize = 1024;
const ADAPTERS: &[&str] = &["mcp", "http", "websocket", "grpc"];
const KIB: usize = 1024;
/// A text that the bound of the message bounds.
const ANY_TEXT: Shape = Shape::Text(0, MOST_BYTES);
const COUNT: Shape = Shape::Whole(0, None);

const NODE: Shape = Shape::Object(&[
    need("type", Shape::OneOf(&["document", "tool", "external", "api", "database"])),
    need("ref", Shape::Text(0, KIB)),
    need("outcome", Shape::OneOf(&["success", "partial", "failure", "timeout", "error"])),
    may("notes", ANY_TEXT),
    may("latency_ms", COUNT),
    may("cost_tokens", COUNT),
]);

const ARTIFACT: Shape = Shape::Object(&[
    need("type", Shape::OneOf(&["code", "document", "config", "data", "visualization"])),
    need("content", Shape::Text(0, 64 * KIB)),
    may("metadata", Shape::Open),
]);

const VALIDATION: &[Member] = &[
    may("passed", Shape::Flag),
    may("test_results", Shape::List(&ANY_TEXT, MOST_BYTES)),
    may("quality_score", Shape::Share),
];

/// `experience_record.v0`.
pub(crate) const RECORD: Shape = Shape::Object(&[
    need("request_id", Shape::Text(0, 256)),
    need("task_id", Shape::Text(1, 256)),
    need("title", Shape::Text(1, KIB)),
    may("intent", Shape::Text(0, 8 * KIB)),
    need("nodes_used", Shape::List(&NODE, 256)),
    need(
        "result",
        Shape::Object(&[
            need("summary", ANY_TEXT),
            need("success", Shape::Flag),
            may("artifacts", Shape::List(&ARTIFACT, 64)),
            may("validation", Shape::Object(VALIDATION)),
        ]),
    ),
    need(
        "timestamps",
        Shape::Object(&[
            need("started_at", Shape::Instant),
            need("finished_at", Shape::Instant),
            may("duration_ms", COUNT),
        ]),
    ),
    may(
        "context",
        Shape::Object(&[
            may("user_id", ANY_TEXT),
            may("session_id", ANY_TEXT),
            may("domain", Shape::OneOf(DOMAINS)),
            may("adapter_type", Shape::OneOf(ADAPTERS)),
        ]),
    ),
]);

/// `hint_request.v0`.
pub(crate) const HINT_REQUEST: Shape = Shape::Object(&[
    need("request_id", Shape::Text(0, 256)),
    need("query_type", Shape::OneOf(&["task_id", "intent", "similar_pattern"])),
    may("task_id", Shape::Text(0, 8 * KIB)),
    may("intent", Shape::Text(0, 8 * KIB)),
    may("pattern", Shape::Text(0, 8 * KIB)),
    may("max_hints", Shape::Whole(1, Some(20))),
    need("deadline_ms", Shape::Whole(100, None)),
    may(
        "context",
        Shape::Object(&[
            may("user_id", ANY_TEXT),
            may("domain", Shape::OneOf(DOMAINS)),
            may("adapter_type", Shape::OneOf(ADAPTERS)),
            may("current_tools", Shape::List(&Shape::Text(0, KIB), MOST_TOOLS)),
        ]),
    ),
]);
