//! Whatever the rules say and whatever comes: no panic, and what is kept conforms to OMIR R1.

mod arbitrary;

use std::sync::LazyLock;
use std::time::Duration;

use nalgebra::Isometry3;
use omir_core::model::Resource;
use omir_core::spatial::pose_of;
use omir_core::value::{Map, Value, from_value};
use omir_ros2::interface::Registry;
use omir_ros2::message::Message;
use omir_ros2::rules::{
    Arrival, Decision, Ros2Section, Rules, folded, known_types, with_unreported,
};
use omir_ros2::stamp::Stamp;
use omir_ros2::tf::Buffer;
use proptest::prelude::*;

static REGISTRY: LazyLock<Registry> = LazyLock::new(Registry::standard);

fn at(seconds: i64) -> Stamp {
    Stamp::from_nanos(seconds * 1_000_000_000)
}

fn transforms() -> Buffer {
    let mut tf = Buffer::new(Duration::from_secs(1000));
    for second in 0..100 {
        let robot = Isometry3::translation(second as f64, 0.0, 0.0);
        tf.insert("map", "base_link", at(second), robot, false).unwrap();
    }
    tf.insert("map", "kf_1", at(0), Isometry3::identity(), true).unwrap();
    tf
}

/// Says what is wrong with a resource.
fn check(value: &Value) -> Result<(), TestCaseError> {
    let resource = match Resource::from_value(value.clone()) {
        Ok(resource) => resource,
        Err(faults) => return Err(TestCaseError::fail(format!("{value}: {faults:?}"))),
    };
    if let Some(Err(faults)) = pose_of(&resource) {
        return Err(TestCaseError::fail(format!("{value}: {faults:?}")));
    }
    Ok(())
}

/// Shows messages to rules, one each second, and checks everything that comes out.
fn show(rules: &mut Rules, messages: &[Message]) -> Result<(), TestCaseError> {
    let tf = transforms();
    for (message, second) in messages.iter().zip(1..) {
        let arrival =
            Arrival { topic: "/topic", node: Some("/node"), received: at(second), is_live: false };
        let mut decisions = Vec::new();
        for decision in rules.observe(&arrival, message, &tf) {
            match decision {
                Decision::Wait(wait) => {
                    let last = rules.retry(&wait, &arrival, message, &tf, true);
                    let waits = |decision: &Decision| matches!(decision, Decision::Wait(_));
                    prop_assert!(!last.iter().any(waits), "{last:?}");
                    decisions.extend(last);
                }
                decision => decisions.push(decision),
            }
        }
        for decision in &decisions {
            let Decision::Keep(kept) = decision else { continue };
            check(&kept.resource)?;
            kept.about.iter().try_for_each(check)?;
            if let Some(value) = folded(Some(&kept.resource), kept) {
                check(&value)?;
            }
            for untold in rules.untold(at(second), true) {
                if let Some(value) = with_unreported(&kept.resource, &untold) {
                    check(&value)?;
                }
            }
        }
    }
    let counters: Vec<_> = rules.counters().map(|(_, counters)| counters.clone()).collect();
    prop_assert_eq!(counters[0].received, messages.len() as u64);
    Ok(())
}

fn rules(section: Map) -> Option<Rules> {
    let section: Ros2Section = from_value(Value::Object(section)).unwrap();
    let resolved = match section.resolve() {
        Ok(resolved) => resolved,
        Err(error) => {
            assert!(error.complaints.iter().all(|c| c.key.starts_with("ros2.")), "{error}");
            return None;
        }
    };
    Rules::compile(&resolved, &REGISTRY).ok()
}

fn map(members: Vec<(String, Value)>) -> Map {
    members.into_iter().collect()
}

/// A rule with nothing but a topic, or with more.
fn rule(more: Vec<(String, Value)>) -> Map {
    let mut rule = map(more);
    rule.insert("topic", "/*");
    map(vec![
        ("topic".into(), Value::Array(vec![Value::Object(rule)])),
        ("keyframes".into(), "kf_*".into()),
    ])
}

/// Values of every kind, among them many that fit somewhere.
fn value() -> impl Strategy<Value = Value> {
    let text = prop::sample::select(vec![
        "",
        ".",
        "f0",
        "f1",
        "f2",
        "f0[*]",
        "f1[*]",
        "{f0}",
        "{f1:name} {^f0}",
        "{f2:.1%}",
        "x {",
        "@robot",
        "@none",
        "@received",
        "map",
        "entity",
        "record",
        "drop",
        "keep",
        "warn",
        "observation",
        "plan",
        "other",
        "data",
        "header",
        "pose",
        "{@topic}",
        "status[*]",
        "{name}",
    ]);
    let leaf = prop_oneof![
        4 => text.prop_map(Value::from),
        2 => (0..4u8).prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let name = prop::sample::select(vec![
            "on_change",
            "beyond_m",
            "beyond_deg",
            "above",
            "below",
            "field",
            "at",
            "back_at",
            "only",
            "at_least",
            "at_most",
            "is",
            "levels",
            "at_most_every_s",
            "assume_zero",
            "in_own_frame",
            "within_m",
            "within_s",
            "update_every_s",
            "error",
            "ok",
        ]);
        prop_oneof![
            prop::collection::vec((name.prop_map(str::to_owned), inner.clone()), 0..3)
                .prop_map(|members| Value::Object(map(members))),
            prop::collection::vec(inner, 0..3).prop_map(Value::Array),
        ]
    })
}

fn written() -> impl Strategy<Value = Vec<(String, Value)>> {
    let name = prop::sample::select(vec![
        "name",
        "type",
        "as",
        "each",
        "by",
        "text",
        "entity",
        "label",
        "kind",
        "experience_type",
        "importance",
        "confidence",
        "half_life_h",
        "anchored",
        "expires_s",
        "pose",
        "frame",
        "geo",
        "stamp",
        "without_transform",
        "keep",
        "merge",
        "queue_depth",
    ]);
    let written = prop::collection::vec((name.prop_map(str::to_owned), value()), 0..5);
    // Duplicates and nonsense are refused early, so a text is always there.
    written.prop_map(|mut members| {
        members.insert(0, ("text".into(), "{f0} {f1} {f2}".into()));
        members
    })
}

/// Some messages of one of the types that have defaults.
fn known() -> impl Strategy<Value = Vec<Message>> {
    let types: Vec<&str> = known_types().collect();
    prop::sample::select(types).prop_flat_map(|ty| {
        let ty = REGISTRY.message(ty).unwrap();
        prop::collection::vec(arbitrary::of(&ty), 1..4)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn known_types_by_their_topic_alone(messages in known()) {
        let mut rules = rules(rule(Vec::new())).unwrap();
        show(&mut rules, &messages)?;
        prop_assert_eq!(rules.misfits().count(), 0);
    }

    #[test]
    fn any_rule_for_any_type(written in written(), (_, message) in arbitrary::message()) {
        if let Some(mut rules) = rules(rule(written)) {
            show(&mut rules, &[message.clone(), message])?;
        }
    }

    #[test]
    fn any_rule_for_known_types(mut written in written(), messages in known()) {
        written.retain(|(name, _)| name != "text");
        if let Some(mut rules) = rules(rule(written)) {
            show(&mut rules, &messages)?;
        }
    }
}
