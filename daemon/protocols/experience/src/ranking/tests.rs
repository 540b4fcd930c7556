//! Hints by hand, and what holds for all of them.

use proptest::prelude::*;

use super::*;

fn used(node_type: &str, reference: &str) -> Used {
    Used::new(node_type, reference, None)
}

fn candidate(task: &str, similarity: f64, nodes: &[Used], patterns: &[&str]) -> Candidate {
    Candidate {
        task_id: task.into(),
        similarity,
        retrievability: 0.5,
        domain: Some("general".into()),
        nodes: nodes.to_vec(),
        patterns: patterns.iter().map(|&slug| Pattern::from(slug)).collect(),
    }
}

fn usage(uses: u64, successes: f64) -> Usage {
    Usage { uses, successes, mean_ms: Some(7) }
}

#[test]
fn confidence_by_hand() {
    let one = candidate("a", 0.5, &[used("tool", "nav2"), used("database", "map_db")], &["dock"]);
    let all = |thing: &Key| match thing {
        thing if *thing == node_key("tool", "nav2") => usage(4, 3.0),
        thing if *thing == node_key("database", "map_db") => usage(1, 0.0),
        _ => usage(3, 3.0),
    };
    let tools = ["nav2".to_owned()];
    let found = hints(&[&one], &tools, 10, all);
    let told: Vec<(&str, &str, f64)> =
        found.iter().map(|hint| (&*hint.reference, hint.hint_type, hint.confidence)).collect();
    // 0.6 · 0.5 + 0.3 · damped rate + 0.1 · 0.5, and 0.05 for the tool at hand.
    assert_eq!(
        told,
        [("nav2", "tool", 0.60), ("pattern_dock", "pattern", 0.59), ("map_db", "external", 0.45)]
    );
    let value = found[2].to_value();
    assert_eq!(value.pointer("/metadata/node_type"), Some(&Value::from("database")));
    assert_eq!(
        value.get("reason").and_then(Value::as_str),
        Some("used in 1 similar task, 0 % of its uses succeeded")
    );
    assert_eq!(found[1].to_value().get("title"), Some(&Value::from("dock")));
    let best = hints(&[&one], &tools, 1, all);
    assert_eq!(best.len(), 1);
    let other = candidate("b", 0.5, &[used("api", "nav2")], &["nav2"]);
    assert_eq!(supports(&best, &[&other, &one]), [1]);
    let uncounted = hints(&[&one], &[], 1, |_| Usage::default())[0].to_value();
    let reason = uncounted.get("reason").and_then(Value::as_str);
    assert_eq!(reason, Some("used in 1 similar task"), "what is not counted yet has not failed");
}

#[test]
fn what_rarely_works_is_no_hint_and_what_was_tried_once_is() {
    let one = candidate("a", 1.0, &[used("tool", "x")], &[]);
    let of = |uses, successes| hints(&[&one], &[], 10, |_| usage(uses, successes)).len();
    assert_eq!([of(1, 0.0), of(2, 0.0), of(3, 0.0), of(3, 1.0), of(100, 20.0)], [1, 1, 0, 1, 1]);
    let far = candidate("a", 0.05, &[used("tool", "x")], &[]);
    let of = |successes| hints(&[&far], &[], 10, |_| usage(2, successes)).len();
    // 0.03 + 0.3 · 1/4 + 0.05, and 0.03 + 0.3 · 3/4 + 0.05.
    assert_eq!([of(0.0), of(2.0)], [0, 1]);
}

#[test]
fn several_candidates_speak_for_one_node() {
    let mut first = candidate("b", 0.4, &[used("tool", "x")], &[]);
    first.nodes[0].title = Some("turn first".into());
    first.domain = None;
    let second = candidate("a", 0.9, &[used("tool", "x"), used("api", "x")], &[]);
    let found = hints(&[&first, &second], &[], 10, |_| usage(2, 2.0));
    let x = found.iter().find(|hint| hint.hint_type == "tool").unwrap();
    assert_eq!((x.support, x.title.as_str()), (2, "turn first"));
    assert_eq!(
        (x.tasks.as_slice(), x.domain.as_deref()),
        (&["a".into(), "b".into()][..], Some("general"))
    );
    assert_eq!(found.len(), 2, "another type is another node");
}

proptest! {
    #[test]
    fn hints_are_in_order_bounded_and_the_same_in_any_order(
        similarities in proptest::collection::vec((0.0..1.0_f64, 0..5_usize, 0..3_u64), 0..12),
        most in 1..20_usize,
    ) {
        let nodes = ["a", "b", "c", "d", "e"];
        let all: Vec<Candidate> = similarities
            .iter()
            .enumerate()
            .map(|(at, (similarity, node, _))| candidate(&format!("t{at}"), *similarity, &[used("tool", nodes[*node])], &["p"]))
            .collect();
        let table = |thing: &Key| usage(2 + u64::from(thing[0] % 3), f64::from(thing[1] % 2));
        let tools = ["a".to_owned()];
        let there: Vec<&Candidate> = all.iter().collect();
        let back: Vec<&Candidate> = all.iter().rev().collect();
        let found = hints(&there, &tools, most, table);
        prop_assert_eq!(&found, &hints(&back, &tools, most, table));
        prop_assert!(found.len() <= most);
        prop_assert!(found.iter().all(|hint| (LEAST_CONFIDENCE..=1.0).contains(&hint.confidence)));
        prop_assert!(found.windows(2).all(|pair| pair[0].confidence >= pair[1].confidence));
    }
}
