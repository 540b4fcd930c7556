//! Strategies for anything the formats can hold: numbers, values, and resources with every field.

use omir_core::instant::Timestamp;
use omir_core::number::Number;
use omir_core::value::{Map, Value};
use proptest::collection::vec;
use proptest::prelude::*;

/// Numbers of every size, kind and precision.
pub fn number() -> BoxedStrategy<Number> {
    let parsed = |text: String| Number::parse(&text).expect("the pattern is JSON's grammar");
    prop_oneof![
        any::<i8>().prop_map(Number::from),
        any::<i64>().prop_map(Number::from),
        any::<u64>().prop_map(Number::from),
        any::<i128>().prop_map(Number::from),
        any::<f64>().prop_filter_map("finite", Number::from_f64),
        any::<f32>().prop_filter_map("finite", |float| Number::from_f64(float.into())),
        any::<i16>().prop_filter_map("finite", |int| Number::from_f64(int.into())),
        "-?(0|[1-9][0-9]{0,60})".prop_map(parsed),
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,40})?([eE][-+]?[0-9]{1,4})?".prop_map(parsed),
    ]
    .boxed()
}

/// Any value, a few levels deep.
pub fn value() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[a-z]{0,30}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..8).prop_map(Value::Array),
            vec((key(), inner), 0..40)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
    .boxed()
}

fn key() -> BoxedStrategy<String> {
    prop_oneof!["[a-c]{0,3}", "[a-z]{20,30}", any::<String>()].boxed()
}

/// Any valid resource, each optional field there or not.
pub fn resource() -> BoxedStrategy<Value> {
    prop_oneof![record(), entity(), relationship(), episode()].boxed()
}

type Field = (&'static str, BoxedStrategy<Value>);

fn object(required: Vec<Field>, optional: Vec<Field>) -> BoxedStrategy<Value> {
    let required = required
        .into_iter()
        .map(|(name, value)| value.prop_map(move |value| Some((name, value))).boxed());
    let optional = optional.into_iter().map(|(name, value)| {
        proptest::option::of(value).prop_map(move |value| value.map(|value| (name, value))).boxed()
    });
    let fields: Vec<BoxedStrategy<Option<(&'static str, Value)>>> =
        required.chain(optional).collect();
    fields.prop_map(|members| Value::Object(members.into_iter().flatten().collect::<Map>())).boxed()
}

fn record() -> BoxedStrategy<Value> {
    object(
        vec![
            ("resourceType", just("MemoryRecord")),
            ("id", id()),
            ("content", text()),
            ("createdAt", instant()),
        ],
        vec![
            ("meta", meta()),
            ("kind", words(&["memory", "plan", "prompt", "learning"])),
            ("experienceType", words(&["observation", "intention", "code_edit"])),
            ("tier", words(&["working", "session", "longterm", "archive"])),
            ("eventTime", instant()),
            ("importance", unit()),
            (
                "confidence",
                object(
                    vec![],
                    vec![("alpha", positive()), ("beta", positive()), ("calibrated", unit())],
                ),
            ),
            (
                "decay",
                object(
                    vec![],
                    vec![
                        ("halfLifeHours", positive()),
                        ("lastAccess", instant()),
                        ("accessCount", count()),
                        ("anchored", flag()),
                    ],
                ),
            ),
            (
                "provenance",
                object(
                    vec![],
                    vec![
                        ("source", text()),
                        ("sourceType", text()),
                        ("credibility", unit()),
                        ("externalId", text()),
                    ],
                ),
            ),
            ("entityRefs", list(reference())),
            ("parentId", id()),
            ("validUntil", instant()),
            ("version", from_one()),
            (
                "informationContent",
                object(
                    vec![],
                    vec![
                        ("novelty", unit()),
                        ("surprisalBits", positive()),
                        ("model", text()),
                        ("reconstructable", flag()),
                        ("reconstructableBy", text()),
                    ],
                ),
            ),
            ("replayPriority", unit()),
            (
                "interference",
                object(
                    vec![],
                    vec![
                        ("needProbability", unit()),
                        ("localDensity", positive()),
                        ("competesWith", list(reference())),
                    ],
                ),
            ),
            ("extension", extensions()),
        ],
    )
}

fn entity() -> BoxedStrategy<Value> {
    object(
        vec![("resourceType", just("Entity")), ("id", id()), ("name", text())],
        vec![
            ("meta", meta()),
            ("labels", list(words(&["person", "location", "skill", "other"]))),
            ("summary", text()),
            ("mentionCount", count()),
            ("salience", unit()),
            ("properNoun", flag()),
            ("attributes", texts()),
            ("createdAt", instant()),
            ("lastSeenAt", instant()),
            ("extension", extensions()),
        ],
    )
}

fn relationship() -> BoxedStrategy<Value> {
    let normalization = || {
        object(
            vec![],
            vec![
                ("scheme", words(&["fan", "softmax", "none"])),
                ("over", words(&["source", "target"])),
            ],
        )
    };
    object(
        vec![
            ("resourceType", just("Relationship")),
            ("id", id()),
            ("from", reference()),
            ("to", reference()),
            ("relationType", text()),
            ("normalization", normalization()),
        ],
        vec![
            ("meta", meta()),
            ("strength", unit()),
            ("reverseStrength", unit()),
            ("normalizedStrength", unit()),
            ("context", text()),
            ("createdAt", instant()),
            ("validAt", instant()),
            ("invalidatedAt", instant()),
            ("sourceEpisode", reference()),
            ("extension", extensions()),
        ],
    )
}

fn episode() -> BoxedStrategy<Value> {
    object(
        vec![
            ("resourceType", just("Episode")),
            ("id", id()),
            ("content", text()),
            ("createdAt", instant()),
        ],
        vec![
            ("meta", meta()),
            ("name", text()),
            ("source", words(&["message", "document", "event", "observation"])),
            ("eventTime", instant()),
            ("entityRefs", list(reference())),
            ("metadata", texts()),
            ("boundaryStrength", unit()),
            ("boundaryReason", text()),
            ("extension", extensions()),
        ],
    )
}

fn meta() -> BoxedStrategy<Value> {
    object(
        vec![("omirVersion", just("R1"))],
        vec![
            ("profile", list(uri())),
            ("source", text()),
            ("createdAt", instant()),
            ("lastUpdated", instant()),
            ("maturity", (0_u8..=5).prop_map(Value::from).boxed()),
        ],
    )
}

fn extensions() -> BoxedStrategy<Value> {
    list(object(
        vec![("url", uri())],
        vec![
            ("valueString", text()),
            ("valueNumber", number().prop_map(Value::from).boxed()),
            ("valueBoolean", flag()),
            ("valueJson", value()),
        ],
    ))
}

fn just(text: &'static str) -> BoxedStrategy<Value> {
    Just(Value::from(text)).boxed()
}

fn words(words: &'static [&'static str]) -> BoxedStrategy<Value> {
    proptest::sample::select(words).prop_map(Value::from).boxed()
}

fn text() -> BoxedStrategy<Value> {
    prop_oneof!["[a-z ]{0,20}", any::<String>()].prop_map(Value::from).boxed()
}

fn id() -> BoxedStrategy<Value> {
    "[A-Za-z0-9._:-]{1,128}".prop_map(Value::from).boxed()
}

fn reference() -> BoxedStrategy<Value> {
    let target = "(MemoryRecord|Entity|Relationship|Episode)/[A-Za-z0-9._:-]{1,128}";
    object(vec![("ref", target.prop_map(Value::from).boxed())], vec![])
}

fn uri() -> BoxedStrategy<Value> {
    "(https://[a-z]{1,8}(:[0-9]{2,4})?|urn:[a-z]{2,5})[a-z0-9/:._~-]{0,10}(\\?[a-z%2]{0})?"
        .prop_map(|text| Value::from(text.replace(".:", ".")))
        .prop_filter("an absolute URI", |uri| {
            omir_core::validate::is_absolute_uri(uri.as_str().unwrap_or_default())
        })
        .boxed()
}

fn instant() -> BoxedStrategy<Value> {
    prop_oneof![
        timestamp().prop_map(|at| Value::from(at.to_string())),
        "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,12})?([Zz]|[-+]([01][0-9]|2[0-3]):[0-5][0-9])"
            .prop_map(Value::from),
    ]
    .boxed()
}

/// Any instant RFC 3339 can write.
pub fn timestamp() -> impl Strategy<Value = Timestamp> {
    (-62_167_219_200_i64..=253_402_300_799, 0_u32..1_000_000_000)
        .prop_map(|(secs, nanos)| Timestamp::from_unix(secs, nanos))
}

fn unit() -> BoxedStrategy<Value> {
    prop_oneof![
        (0.0..=1.0).prop_map(|float: f64| Value::from(float)),
        (0_u8..=1).prop_map(Value::from),
        "0\\.[0-9]{1,40}".prop_map(|text| Value::from(Number::parse(&text).expect("a number"))),
    ]
    .boxed()
}

fn positive() -> BoxedStrategy<Value> {
    number().prop_filter("above zero", |number| *number > 0_i64).prop_map(Value::from).boxed()
}

fn count() -> BoxedStrategy<Value> {
    prop_oneof![
        any::<u64>().prop_map(Value::from),
        any::<u16>().prop_map(|int| Value::from(f64::from(int))),
        "[1-9][0-9]{20,50}".prop_map(|text| Value::from(Number::parse(&text).expect("a number"))),
    ]
    .boxed()
}

fn from_one() -> BoxedStrategy<Value> {
    (1..=u64::MAX).prop_map(Value::from).boxed()
}

fn flag() -> BoxedStrategy<Value> {
    any::<bool>().prop_map(Value::from).boxed()
}

fn list(element: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    vec(element, 0..4).prop_map(Value::Array).boxed()
}

fn texts() -> BoxedStrategy<Value> {
    vec((key(), any::<String>()), 0..6)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
        .boxed()
}
