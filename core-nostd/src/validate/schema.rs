//! The schemas as tables: one row per field, in the order of the specification.
//!
//! Every table is closed (`additionalProperties: false`). The draft rows are those the schemas mark
//! `x-omir-maturity: 0`. The validator walks these tables, and [`crate::json_schema`] prints them; the
//! sentence at the end of a row is what an editor shows for the field.

use crate::model::{
    EpisodeSource, ExperienceType, Kind, Label, NormalizationScheme, NormalizedOver, SketchDomain,
    SketchKind,
};
use crate::reference::ResourceType;
use crate::tier::Tier;

/// A closed object.
pub(crate) struct Table {
    /// Name of its schema.
    pub(crate) name: &'static str,
    /// Its description, a sentence without its full stop.
    pub(crate) doc: &'static str,
    pub(crate) fields: &'static [Field],
    /// Pairs of fields: the first is allowed only with the second. There is one, and it has a code of its
    /// own (E251).
    pub(crate) depends: &'static [(&'static str, &'static str)],
    /// True if implementation-specific data has a place of its own here.
    pub(crate) extensible: bool,
}

/// One member of a closed object.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) required: bool,
    pub(crate) draft: bool,
    /// Its meaning and unit, a sentence without its full stop.
    pub(crate) doc: &'static str,
}

/// Demands on a value.
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
pub(crate) const fn need(name: &'static str, shape: Shape, doc: &'static str) -> Field {
    Field { name, shape, required: true, draft: false, doc }
}

/// An optional field.
pub(crate) const fn may(name: &'static str, shape: Shape, doc: &'static str) -> Field {
    Field { name, shape, required: false, draft: false, doc }
}

/// An optional field of the drafts.
const fn draft(name: &'static str, shape: Shape, doc: &'static str) -> Field {
    Field { draft: true, ..may(name, shape, doc) }
}

/// A closed object without further rules.
pub(crate) const fn closed(
    name: &'static str,
    doc: &'static str,
    fields: &'static [Field],
) -> Table {
    Table { name, doc, fields, depends: &[], extensible: false }
}

/// A closed object with an `extension` field.
const fn extensible(name: &'static str, doc: &'static str, fields: &'static [Field]) -> Table {
    Table { extensible: true, ..closed(name, doc, fields) }
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

static MEMORY_RECORD: Table = extensible(
    "MemoryRecord",
    "The atomic unit of memory: something experienced, planned, instructed or learnt",
    &[
        need("resourceType", Shape::Exactly("MemoryRecord"), "The type of this resource"),
        need("id", Shape::Id, "Unique among the records of a bundle"),
        may("meta", META, "Release and origin"),
        need("content", Shape::Text, "What is remembered, in words"),
        may("kind", Shape::Words(Kind::WORDS), "Lifecycle class; memory where it is absent"),
        may("experienceType", Shape::Words(ExperienceType::WORDS), "Nature of the experience"),
        may("tier", Shape::Words(TIERS), "Place in the hierarchy; working where it is absent"),
        need("createdAt", Shape::Instant, "When it was recorded"),
        may("eventTime", Shape::Instant, "When it happened, which may be before createdAt"),
        may("importance", UNIT, "How much it matters, 0 to 1"),
        may("confidence", Shape::Object(&CONFIDENCE), "How far it is believed"),
        may("decay", Shape::Object(&DECAY), "How it is being forgotten"),
        may("provenance", Shape::Object(&PROVENANCE), "Where it comes from"),
        may("entityRefs", REFERENCES, "The entities it is about"),
        may("parentId", Shape::Id, "Id of the MemoryRecord above this one in a tree"),
        may("validUntil", Shape::Instant, "From then on it is superseded"),
        may("version", FROM_ONE, "Counts up with every change; 1 where it is absent"),
        draft("informationContent", Shape::Object(&INFORMATION_CONTENT), "How new it was"),
        draft("replayPriority", UNIT, "Precedence in offline consolidation, 0 to 1"),
        draft("interference", Shape::Object(&INTERFERENCE), "How it competes with others"),
        may("extension", EXTENSIONS, "Data beyond the core, such as a pose"),
    ],
);

static ENTITY: Table = extensible(
    "Entity",
    "A named thing that memories are about: a person, a place, an object, an idea",
    &[
        need("resourceType", Shape::Exactly("Entity"), "The type of this resource"),
        need("id", Shape::Id, "Unique among the entities of a bundle"),
        may("meta", META, "Release and origin"),
        need("name", Shape::Text, "What it is called"),
        may("labels", Shape::List(&Shape::Words(Label::WORDS)), "What it is, in one word or more"),
        may("summary", Shape::Text, "What is known of it, in words"),
        may("mentionCount", COUNT, "How often it was mentioned"),
        may("salience", UNIT, "How strongly it draws recall, 0 to 1"),
        may("properNoun", Shape::Flag, "Whether the name is a proper noun"),
        may("attributes", Shape::TextMap, "Properties by name, each a text"),
        may("createdAt", Shape::Instant, "When it was recorded"),
        may("lastSeenAt", Shape::Instant, "When it was last met with"),
        may("extension", EXTENSIONS, "Data beyond the core, such as a pose or an embedding"),
    ],
);

static RELATIONSHIP: Table = Table {
    depends: &[("normalizedStrength", "normalization")],
    ..extensible(
        "Relationship",
        "A directed, weighted edge from one entity to another",
        &[
            need("resourceType", Shape::Exactly("Relationship"), "The type of this resource"),
            need("id", Shape::Id, "Unique among the relationships of a bundle"),
            may("meta", META, "Release and origin"),
            need("from", REFERENCE, "The entity it leads from"),
            need("to", REFERENCE, "The entity it leads to"),
            need("relationType", Shape::Text, "Open vocabulary: part_of, located_in, works_with"),
            may("strength", UNIT, "Weight as its producer uses it, 0 to 1"),
            draft("reverseStrength", UNIT, "Weight in the other direction, 0 to 1"),
            draft("normalizedStrength", UNIT, "Portable weight, 0 to 1; normalization says how"),
            draft("normalization", Shape::Object(&EDGE_NORMALIZATION), "How it was normalized"),
            may("context", Shape::Text, "A remark, in words"),
            may("createdAt", Shape::Instant, "When it was recorded"),
            may("validAt", Shape::Instant, "When it was last seen to hold"),
            may("invalidatedAt", Shape::Instant, "When it ceased to hold"),
            may("sourceEpisode", REFERENCE, "The episode it was derived from"),
            may("extension", EXTENSIONS, "Data beyond the core"),
        ],
    )
};

static EPISODE: Table = extensible(
    "Episode",
    "A bounded experience that records, entities and relationships are derived from",
    &[
        need("resourceType", Shape::Exactly("Episode"), "The type of this resource"),
        need("id", Shape::Id, "Unique among the episodes of a bundle"),
        may("meta", META, "Release and origin"),
        may("name", Shape::Text, "A title"),
        need("content", Shape::Text, "What was experienced, in words"),
        may("source", Shape::Words(EpisodeSource::WORDS), "What kind of input it came from"),
        may("eventTime", Shape::Instant, "When it happened"),
        need("createdAt", Shape::Instant, "When it was recorded"),
        may("entityRefs", REFERENCES, "The entities that take part"),
        may("metadata", Shape::TextMap, "Properties by name, each a text"),
        draft("boundaryStrength", UNIT, "Surprise at the boundary of the episode, 0 to 1"),
        draft("boundaryReason", Shape::Text, "Why it was cut there: topic_shift, temporal_gap"),
        may("extension", EXTENSIONS, "Data beyond the core, such as a pose"),
    ],
);

/// The envelope. `resourceType` (E111), `omirVersion` (E300) and the elements of `entry` (E1xx) are
/// rules with codes of their own.
pub(crate) static BUNDLE: Table = closed(
    "Bundle",
    "A document: any number of resources that refer to each other",
    &[
        may("@context", Shape::Any, "JSON-LD context, https://omir.io/spec/R1/context.jsonld"),
        may("resourceType", Shape::Any, "The type of this document"),
        may("omirVersion", Shape::Any, "The release of the format"),
        may("id", Shape::Id, "Name of the document"),
        may("generatedAt", Shape::Instant, "When it was written"),
        may("source", Shape::Text, "What wrote it"),
        draft(
            "familiaritySketch",
            Shape::Object(&FAMILIARITY_SKETCH),
            "What its producer may know of, to be asked before retrieval",
        ),
        need("entry", Shape::List(&Shape::Any), "The resources, in any order"),
    ],
);

static REFERENCE_TABLE: Table = closed(
    "Reference",
    "Another resource, by type and id",
    &[need("ref", Shape::Ref, "Type/id, as in Entity/kitchen")],
);

static META_TABLE: Table = closed(
    "Meta",
    "What may be said of any resource: release, profiles, origin",
    &[
        may("omirVersion", Shape::MetaVersion, "The release; meta without it is refused"),
        may("profile", Shape::List(&Shape::Uri), "The profiles the resource claims to conform to"),
        may("source", Shape::Text, "What produced the resource"),
        may("createdAt", Shape::Instant, "When this version was made"),
        may("lastUpdated", Shape::Instant, "When this version was last changed"),
        may("maturity", Shape::Integer(Range::Between(0, 5)), "Of the type: 0 draft to 5 stable"),
    ],
);

static EXTENSION: Table = closed(
    "Extension",
    "Data beyond the core, under the URL that defines it; consumers may ignore it",
    &[
        need("url", Shape::Uri, "What defines the extension"),
        may("valueString", Shape::Text, "The value, where it is text"),
        may("valueNumber", Shape::Number(Range::All), "The value, where it is a number"),
        may("valueBoolean", Shape::Flag, "The value, where it is true or false"),
        may("valueJson", Shape::Any, "The value, where it is anything else"),
    ],
);

static CONFIDENCE: Table = closed(
    "Confidence",
    "Belief as a Beta distribution, and as one number",
    &[
        may("alpha", POSITIVE, "Observations that confirm, prior included"),
        may("beta", POSITIVE, "Observations that contradict, prior included"),
        may("calibrated", UNIT, "The probability that it is right, 0 to 1"),
    ],
);

static DECAY: Table = closed(
    "Decay",
    "The state of forgetting",
    &[
        may("halfLifeHours", POSITIVE, "Hours after which it is half forgotten"),
        may("lastAccess", Shape::Instant, "When it was last recalled"),
        may("accessCount", COUNT, "How often it was recalled"),
        may("anchored", Shape::Flag, "Whether it resists decay; false where it is absent"),
    ],
);

static PROVENANCE: Table = closed(
    "Provenance",
    "Where a memory comes from, and how far that is trusted",
    &[
        may("source", Shape::Text, "Who or what it was learnt from"),
        may("sourceType", Shape::Text, "Class of origin: conversation, document, observation"),
        may("credibility", UNIT, "How far the origin is trusted, 0 to 1"),
        may("externalId", Shape::Text, "Its name elsewhere, as in github:pr-123"),
    ],
);

static INFORMATION_CONTENT: Table = closed(
    "InformationContent",
    "How new a record was to the model of its producer",
    &[
        may("novelty", UNIT, "How surprising it was to its producer, 0 to 1"),
        may("surprisalBits", NOT_NEGATIVE, "Shannon surprisal in bits, against model"),
        may("model", Shape::Text, "The model novelty and surprisal are measured against"),
        may("reconstructable", Shape::Flag, "Whether a model can produce the content again"),
        may("reconstructableBy", Shape::Text, "The model that can"),
    ],
);

static INTERFERENCE: Table = closed(
    "Interference",
    "How a record competes with similar ones, and how dispensable it is",
    &[
        may("needProbability", UNIT, "The probability that it is needed soon, 0 to 1"),
        may("localDensity", NOT_NEGATIVE, "How crowded its neighbourhood of meaning is"),
        may("competesWith", REFERENCES, "The records it competes with; they may be elsewhere"),
    ],
);

static FAMILIARITY_SKETCH: Table = closed(
    "FamiliaritySketch",
    "An approximate set of what a producer knows: no is certain, yes is probable",
    &[
        need("kind", Shape::Words(SketchKind::WORDS), "Family of the sketch"),
        need("domain", Shape::Words(SketchDomain::WORDS), "What it is built over"),
        need("hashes", FROM_ONE, "Number of hash functions"),
        need("bits", FROM_ONE, "Width of the filter in bits, or of the table in counters"),
        need("hashAlg", Shape::Text, "The hash function and its version, as in xxh3-64"),
        need("data", Shape::Text, "The filter's bytes in base64"),
    ],
);

static EDGE_NORMALIZATION: Table = closed(
    "EdgeNormalization",
    "What makes normalizedStrength portable",
    &[
        may("scheme", Shape::Words(NormalizationScheme::WORDS), "How it was normalized"),
        may("over", Shape::Words(NormalizedOver::WORDS), "The edges of a node that share it"),
    ],
);
