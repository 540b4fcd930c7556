//! The typed fields: a line for each value of OMIR R1 that has one.

use super::field::{Codec, Row};

/// The tables are this short so that they can be read beside the `.msg` files.
const fn row(json: &'static [&'static str], field: &'static str, codec: Codec) -> Row {
    Row { json, field, codec }
}

/// A resource type: its name, whether it has a field `pose`, and its rows.
pub(super) struct Table {
    pub resource_type: &'static str,
    pub pose: bool,
    pub rows: &'static [Row],
}

/// In the order of `Records::resources`.
pub(super) static TABLES: [Table; 4] = [
    Table {
        resource_type: "MemoryRecord",
        pose: true,
        rows: &[
            row(&["id"], "id", Codec::Text),
            row(&["content"], "content", Codec::Text),
            row(&["kind"], "kind", Codec::Text),
            row(&["experienceType"], "experience_type", Codec::Text),
            row(&["tier"], "tier", Codec::Text),
            row(&["createdAt"], "created_at", Codec::Instant),
            row(&["eventTime"], "event_time", Codec::Instant),
            row(&["validUntil"], "valid_until", Codec::Instant),
            row(&["importance"], "importance", Codec::Float),
            row(&["confidence", "alpha"], "confidence.alpha", Codec::Float),
            row(&["confidence", "beta"], "confidence.beta", Codec::Float),
            row(&["confidence", "calibrated"], "confidence.calibrated", Codec::Float),
            row(&["decay", "halfLifeHours"], "decay.half_life_hours", Codec::Float),
            row(&["decay", "lastAccess"], "decay.last_access", Codec::Instant),
            row(&["decay", "accessCount"], "decay.access_count", Codec::Uint),
            row(&["decay", "anchored"], "decay.anchored", Codec::Flag),
            row(&["provenance", "source"], "provenance.source", Codec::Text),
            row(&["provenance", "sourceType"], "provenance.source_type", Codec::Text),
            row(&["provenance", "credibility"], "provenance.credibility", Codec::Float),
            row(&["provenance", "externalId"], "provenance.external_id", Codec::Text),
            row(&["entityRefs"], "entities", Codec::Refs),
            row(&["parentId"], "parent_id", Codec::Text),
            row(&["version"], "version", Codec::Count),
        ],
    },
    Table {
        resource_type: "Entity",
        pose: true,
        rows: &[
            row(&["id"], "id", Codec::Text),
            row(&["name"], "name", Codec::Text),
            row(&["labels"], "labels", Codec::Texts),
            row(&["summary"], "summary", Codec::Text),
            row(&["mentionCount"], "mention_count", Codec::Uint),
            row(&["salience"], "salience", Codec::Float),
            row(&["properNoun"], "proper_noun", Codec::Bool),
            row(&["attributes"], "attributes", Codec::Pairs),
            row(&["createdAt"], "created_at", Codec::Instant),
            row(&["lastSeenAt"], "last_seen_at", Codec::Instant),
        ],
    },
    Table {
        resource_type: "Relationship",
        pose: false,
        rows: &[
            row(&["id"], "id", Codec::Text),
            row(&["from"], "from_ref", Codec::Ref),
            row(&["to"], "to_ref", Codec::Ref),
            row(&["relationType"], "relation_type", Codec::Text),
            row(&["strength"], "strength", Codec::Float),
            row(&["reverseStrength"], "reverse_strength", Codec::Float),
            row(&["context"], "context", Codec::Text),
            row(&["sourceEpisode"], "source_episode", Codec::Ref),
            row(&["createdAt"], "created_at", Codec::Instant),
            row(&["validAt"], "valid_at", Codec::Instant),
            row(&["invalidatedAt"], "invalidated_at", Codec::Instant),
        ],
    },
    Table {
        resource_type: "Episode",
        pose: true,
        rows: &[
            row(&["id"], "id", Codec::Text),
            row(&["name"], "name", Codec::Text),
            row(&["content"], "content", Codec::Text),
            row(&["source"], "source", Codec::Text),
            row(&["createdAt"], "created_at", Codec::Instant),
            row(&["eventTime"], "event_time", Codec::Instant),
            row(&["entityRefs"], "entities", Codec::Refs),
            row(&["metadata"], "metadata", Codec::Pairs),
            row(&["boundaryStrength"], "boundary_strength", Codec::Float),
            row(&["boundaryReason"], "boundary_reason", Codec::Text),
        ],
    },
];

/// A hit, beside its resource.
pub(super) static HIT: &[Row] = &[
    row(&["retrievability"], "retrievability", Codec::Float),
    row(&["distance"], "distance", Codec::Float),
    row(&["reason"], "reason", Codec::Text),
    row(&["forgotten"], "forgotten", Codec::Flag),
];

/// One resource in the answer to `remember`.
pub(super) static STORED: &[Row] = &[
    row(&["ref"], "ref", Codec::Text),
    row(&["version"], "version", Codec::Count),
    row(&["unchanged"], "unchanged", Codec::Flag),
];

/// The fields that answers share, and those of one answer only. A field that the answer's message
/// does not have is passed over.
pub(super) static REPLY: &[Row] = &[
    row(&["durable"], "durable", Codec::Flag),
    row(&["seq"], "seq", Codec::Count),
    row(&["version"], "version", Codec::Count),
    row(&["total"], "total", Codec::Count),
    row(&["tookMicros"], "took_micros", Codec::Count),
    row(&["forgotten"], "forgotten", Codec::Count),
    row(&["ref"], "ref", Codec::Text),
    row(&["moved"], "moved", Codec::Count),
    row(&["unreadable"], "unreadable", Codec::Count),
    row(&["untied"], "untied", Codec::Count),
    row(&["unchanged"], "unchanged", Codec::Count),
    row(&["dropped"], "dropped", Codec::Count),
    row(&["confidence", "alpha"], "confidence.alpha", Codec::Float),
    row(&["confidence", "beta"], "confidence.beta", Codec::Float),
    row(&["confidence", "calibrated"], "confidence.calibrated", Codec::Float),
];

/// The filter of memories.
pub(super) static FILTER: &[Row] = &[
    row(&["q"], "text", Codec::Text),
    row(&["frame"], "frame", Codec::Frame),
    row(&["radius"], "radius", Codec::Float),
    row(&["_time"], "time", Codec::Text),
    row(&["type"], "types", Codec::Texts),
    row(&["kind"], "kinds", Codec::Texts),
    row(&["tier"], "tiers", Codec::Texts),
    row(&["experienceType"], "experience_types", Codec::Texts),
    row(&["entity"], "entities", Codec::Texts),
    row(&["label"], "labels", Codec::Texts),
    row(&["minImportance"], "min_importance", Codec::Float),
    row(&["minConfidence"], "min_confidence", Codec::Float),
    row(&["minRetrievability"], "min_retrievability", Codec::Float),
    row(&["includeExpired"], "include_expired", Codec::Flag),
    row(&["includeIntentions"], "include_intentions", Codec::Flag),
    row(&["includeForgotten"], "include_forgotten", Codec::Flag),
    row(&["asOf"], "as_of", Codec::Instant),
];
