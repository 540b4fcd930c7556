//! The schemas as tables: one row per field, in the order of the specification.
//!
//! Every table is closed (`additionalProperties: false`). The draft rows are those the schemas mark
//! `x-omir-maturity: 0`.

use crate::model::{
    EpisodeSource, ExperienceType, Kind, Label, NormalizationScheme, NormalizedOver, SketchDomain,
    SketchKind,
};
use crate::reference::ResourceType;
use crate::tier::Tier;

/// A closed object.
pub(crate) struct Table {
    pub(crate) fields: &'static [Field],
    /// Pairs of fields: the first is allowed only with the second. There is one, and it has a code of its
    /// own (E251).
    pub(crate) depends: &'static [(&'static str, &'static str)],
    /// Whether implementation-specific data has a place of its own here.
    pub(crate) extensible: bool,
}

/// One member of a closed object.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) required: bool,
    pub(crate) draft: bool,
}

/// What a value must be.
pub(crate) enum Shape {
    /// Anything, `null` included.
    Any,
    Text,
    /// Text of at least one character.
    SomeText,
    Flag,
    /// A text that is exactly this.
    Exactly(&'static str),
    /// The release in `meta`, a rule with a code of its own.
    MetaVersion,
    Words(&'static [&'static str]),
    Id,
    Instant,
    Uri,
    /// `Type/id`.
    Ref,
    Number(Range),
    Integer(Range),
    List(&'static Shape),
    /// A number a float can hold.
    Float,
    /// Exactly so many of those.
    Floats(usize),
    /// An object whose members are all text.
    TextMap,
    Object(&'static Table),
}

/// The numbers allowed.
#[derive(Clone, Copy)]
pub(crate) enum Range {
    All,
    Above(i64),
    AtLeast(i64),
    Between(i64, i64),
}

/// A required field.
pub(crate) const fn need(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, required: true, draft: false }
}

/// An optional field.
pub(crate) const fn may(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, required: false, draft: false }
}

/// An optional field of the drafts.
const fn draft(name: &'static str, shape: Shape) -> Field {
    Field { draft: true, ..may(name, shape) }
}

/// A closed object without further rules.
const fn closed(fields: &'static [Field]) -> Table {
    Table { fields, depends: &[], extensible: false }
}

/// A closed object with an `extension` field.
const fn extensible(fields: &'static [Field]) -> Table {
    Table { extensible: true, ..closed(fields) }
}

/// The table of a resource type.
pub(crate) fn resource(kind: ResourceType) -> &'static Table {
    match kind {
        ResourceType::MemoryRecord => &MEMORY_RECORD,
        ResourceType::Entity => &ENTITY,
        ResourceType::Relationship => &RELATIONSHIP,
        ResourceType::Episode => &EPISODE,
    }
}

/// Position of a type in [`ResourceType::ALL`].
pub(super) fn position(kind: ResourceType) -> usize {
    ResourceType::ALL.iter().position(|&other| other == kind).unwrap_or_default()
}

const UNIT: Shape = Shape::Number(Range::Between(0, 1));
const NOT_NEGATIVE: Shape = Shape::Number(Range::AtLeast(0));
const POSITIVE: Shape = Shape::Number(Range::Above(0));
const COUNT: Shape = Shape::Integer(Range::AtLeast(0));
const FROM_ONE: Shape = Shape::Integer(Range::AtLeast(1));
const REFERENCE: Shape = Shape::Object(&REFERENCE_TABLE);
const REFERENCES: Shape = Shape::List(&REFERENCE);
const EXTENSIONS: Shape = Shape::List(&Shape::Object(&EXTENSION));
const META: Shape = Shape::Object(&META_TABLE);

const TIERS: &[&str] = &[
    Tier::Working.as_str(),
    Tier::Session.as_str(),
    Tier::Longterm.as_str(),
    Tier::Archive.as_str(),
];

static MEMORY_RECORD: Table = extensible(&[
    need("resourceType", Shape::Exactly("MemoryRecord")),
    need("id", Shape::Id),
    may("meta", META),
    need("content", Shape::Text),
    may("kind", Shape::Words(Kind::WORDS)),
    may("experienceType", Shape::Words(ExperienceType::WORDS)),
    may("tier", Shape::Words(TIERS)),
    need("createdAt", Shape::Instant),
    may("eventTime", Shape::Instant),
    may("importance", UNIT),
    may("confidence", Shape::Object(&CONFIDENCE)),
    may("decay", Shape::Object(&DECAY)),
    may("provenance", Shape::Object(&PROVENANCE)),
    may("entityRefs", REFERENCES),
    may("parentId", Shape::Id),
    may("validUntil", Shape::Instant),
    may("version", FROM_ONE),
    draft("informationContent", Shape::Object(&INFORMATION_CONTENT)),
    draft("replayPriority", UNIT),
    draft("interference", Shape::Object(&INTERFERENCE)),
    may("extension", EXTENSIONS),
]);

static ENTITY: Table = extensible(&[
    need("resourceType", Shape::Exactly("Entity")),
    need("id", Shape::Id),
    may("meta", META),
    need("name", Shape::Text),
    may("labels", Shape::List(&Shape::Words(Label::WORDS))),
    may("summary", Shape::Text),
    may("mentionCount", COUNT),
    may("salience", UNIT),
    may("properNoun", Shape::Flag),
    may("attributes", Shape::TextMap),
    may("createdAt", Shape::Instant),
    may("lastSeenAt", Shape::Instant),
    may("extension", EXTENSIONS),
]);

static RELATIONSHIP: Table = Table {
    depends: &[("normalizedStrength", "normalization")],
    ..extensible(&[
        need("resourceType", Shape::Exactly("Relationship")),
        need("id", Shape::Id),
        may("meta", META),
        need("from", REFERENCE),
        need("to", REFERENCE),
        need("relationType", Shape::Text),
        may("strength", UNIT),
        draft("reverseStrength", UNIT),
        draft("normalizedStrength", UNIT),
        draft("normalization", Shape::Object(&EDGE_NORMALIZATION)),
        may("context", Shape::Text),
        may("createdAt", Shape::Instant),
        may("validAt", Shape::Instant),
        may("invalidatedAt", Shape::Instant),
        may("sourceEpisode", REFERENCE),
        may("extension", EXTENSIONS),
    ])
};

static EPISODE: Table = extensible(&[
    need("resourceType", Shape::Exactly("Episode")),
    need("id", Shape::Id),
    may("meta", META),
    may("name", Shape::Text),
    need("content", Shape::Text),
    may("source", Shape::Words(EpisodeSource::WORDS)),
    may("eventTime", Shape::Instant),
    need("createdAt", Shape::Instant),
    may("entityRefs", REFERENCES),
    may("metadata", Shape::TextMap),
    draft("boundaryStrength", UNIT),
    draft("boundaryReason", Shape::Text),
    may("extension", EXTENSIONS),
]);

/// The envelope. `resourceType` (E111), `omirVersion` (E300) and the elements of `entry` (E1xx) are
/// rules with codes of their own.
pub(super) static BUNDLE: Table = closed(&[
    may("@context", Shape::Any),
    may("resourceType", Shape::Any),
    may("omirVersion", Shape::Any),
    may("id", Shape::Id),
    may("generatedAt", Shape::Instant),
    may("source", Shape::Text),
    draft("familiaritySketch", Shape::Object(&FAMILIARITY_SKETCH)),
    need("entry", Shape::List(&Shape::Any)),
]);

static REFERENCE_TABLE: Table = closed(&[need("ref", Shape::Ref)]);

static META_TABLE: Table = closed(&[
    may("omirVersion", Shape::MetaVersion),
    may("profile", Shape::List(&Shape::Uri)),
    may("source", Shape::Text),
    may("createdAt", Shape::Instant),
    may("lastUpdated", Shape::Instant),
    may("maturity", Shape::Integer(Range::Between(0, 5))),
]);

static EXTENSION: Table = closed(&[
    need("url", Shape::Uri),
    may("valueString", Shape::Text),
    may("valueNumber", Shape::Number(Range::All)),
    may("valueBoolean", Shape::Flag),
    may("valueJson", Shape::Any),
]);

static CONFIDENCE: Table =
    closed(&[may("alpha", POSITIVE), may("beta", POSITIVE), may("calibrated", UNIT)]);

static DECAY: Table = closed(&[
    may("halfLifeHours", POSITIVE),
    may("lastAccess", Shape::Instant),
    may("accessCount", COUNT),
    may("anchored", Shape::Flag),
]);

static PROVENANCE: Table = closed(&[
    may("source", Shape::Text),
    may("sourceType", Shape::Text),
    may("credibility", UNIT),
    may("externalId", Shape::Text),
]);

static INFORMATION_CONTENT: Table = closed(&[
    may("novelty", UNIT),
    may("surprisalBits", NOT_NEGATIVE),
    may("model", Shape::Text),
    may("reconstructable", Shape::Flag),
    may("reconstructableBy", Shape::Text),
]);

static INTERFERENCE: Table = closed(&[
    may("needProbability", UNIT),
    may("localDensity", NOT_NEGATIVE),
    may("competesWith", REFERENCES),
]);

static FAMILIARITY_SKETCH: Table = closed(&[
    need("kind", Shape::Words(SketchKind::WORDS)),
    need("domain", Shape::Words(SketchDomain::WORDS)),
    need("hashes", FROM_ONE),
    need("bits", FROM_ONE),
    need("hashAlg", Shape::Text),
    need("data", Shape::Text),
]);

static EDGE_NORMALIZATION: Table = closed(&[
    may("scheme", Shape::Words(NormalizationScheme::WORDS)),
    may("over", Shape::Words(NormalizedOver::WORDS)),
]);
