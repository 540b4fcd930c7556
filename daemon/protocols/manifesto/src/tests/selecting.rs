//! Selections.

use omir_core::manifesto::SelectionRequest;
use omir_core::reference::ResourceType;
use omir_core::value::Value;
use omird_engine::{Change, Query};

use super::bench::{Bench, actor, ids, value};
use crate::*;

/// A bench with Worlds of the dock: `a` states a wrong hash and says "dock" most often, `b` and `c` are sound.
fn docks() -> Bench {
    docks_with(ManifestoSettings::default())
}

/// The same, where verified memories are not preferred.
fn docks_by_confidence() -> Bench {
    docks_with(ManifestoSettings { prefer_verified: false })
}

fn docks_with(settings: ManifestoSettings) -> Bench {
    let bench = Bench::with(settings);
    for world in [
        r#"{"worldId":"a","createdAt":1000,"note":"dock dock dock","metadata":{"contentHash":"wrong"}}"#,
        r#"{"worldId":"b","createdAt":2000,"note":"the dock"}"#,
        r#"{"worldId":"c","createdAt":3000,"note":"a long way from here to there is the dock"}"#,
        r#"{"worldId":"d","createdAt":4000,"note":"kitchen"}"#,
    ] {
        assert_eq!(bench.put(world).0, 201);
    }
    bench
}

/// M-6, CR-14, M-9, CR-17: a selector is provided, and it alone says who verified, and when.
#[test]
fn m_06_cr_14_m_09_cr_17_a_selection_comes_with_evidence() {
    let bench = docks();
    let selection = bench.select("dock", "");
    let mut found = ids(&selection);
    found.sort_unstable();
    assert_eq!(found, ["a", "b", "c"]);
    let selected_at = selection.get("selectedAt").unwrap().as_i64().unwrap();
    for one in selection.get("selected").unwrap().as_array().unwrap() {
        let confidence = one.get("confidence").unwrap().as_f64().unwrap();
        assert!((0.0..=1.0).contains(&confidence) && confidence > 0.0, "{one}");
        assert!(!one.get("reason").unwrap().as_str().unwrap().is_empty());
        let is_sound = one.pointer("/ref/worldId") != Some(&"a".into());
        assert_eq!(one.get("verified"), Some(&is_sound.into()));
        assert_eq!(one.get("evidence").is_some(), is_sound, "{one}");
        let Some(evidence) = one.get("evidence") else { continue };
        assert_eq!(evidence.get("method"), Some(&"signature".into()));
        assert_eq!(evidence.pointer("/verifiedBy/actorId"), Some(&"agent-1".into()));
        let verified_at = evidence.get("verifiedAt").unwrap().as_i64().unwrap();
        assert!(verified_at > 0 && verified_at <= selected_at);
        let proof = omir_core::manifesto::Proof::extract(evidence).unwrap();
        assert!(bench.manifesto.keys.verify(&proof));
        assert_eq!(proof.world_id(), one.pointer("/ref/worldId").unwrap().as_str());
    }
    let at: Vec<_> = selection.get("selected").unwrap().as_array().unwrap().iter().collect();
    let times: std::collections::BTreeSet<_> =
        at.iter().filter_map(|one| one.pointer("/evidence/verifiedAt")?.as_i64()).collect();
    assert_eq!(times.len(), 1, "one time for the whole call");
}

/// SR-02: verified memories come first, unless the configuration says otherwise.
#[test]
fn sr_02_verified_memories_come_first() {
    let bench = docks();
    let preferred = bench.select("dock", "");
    assert_eq!(ids(&preferred).last(), Some(&"a"), "{preferred}");
    let by_score = docks_by_confidence().select("dock", "");
    assert_eq!(ids(&by_score)[0], "a", "it says dock most often: {by_score}");
    let confidence = |one: &Value| one.get("confidence").unwrap().as_f64().unwrap();
    let selected = by_score.get("selected").unwrap().as_array().unwrap();
    assert!(selected.windows(2).all(|pair| confidence(&pair[0]) >= confidence(&pair[1])));
}

/// MR-02, MR-03, MR-04: the method of verification, the filters and the query are the caller's choice.
#[test]
fn mr_02_mr_03_mr_04_methods_are_chosen() {
    let bench = docks();
    for (method, has_evidence) in [
        ("none", false),
        ("custom-x", false),
        ("existence", true),
        ("hash", true),
        ("merkle", true),
    ] {
        let selection = bench.select("dock", &format!(r#","method":"{method}""#));
        for one in selection.get("selected").unwrap().as_array().unwrap() {
            assert_eq!(
                one.get("verified"),
                Some(&(method == "existence").into()),
                "{method}: {one}"
            );
            assert_eq!(one.get("evidence").is_some(), has_evidence, "{method}");
        }
        let kept = bench.select(
            "dock",
            &format!(r#","method":"{method}","constraints":{{"requireEvidence":true}}"#),
        );
        assert_eq!(ids(&kept).len(), if has_evidence { 3 } else { 0 }, "{method}");
    }
}

#[test]
fn filters_come_before_the_cut() {
    let bench = docks_by_confidence();
    let with =
        |constraints: &str| bench.select("dock", &format!(r#","constraints":{constraints}"#));
    assert_eq!(ids(&with(r#"{"maxResults":1}"#)), ["a"]);
    let verified = with(r#"{"maxResults":1,"requireVerified":true}"#);
    assert_eq!(ids(&verified).len(), 1, "the second best, not an empty list");
    assert_ne!(ids(&verified), ["a"]);
    assert!(ids(&with(r#"{"maxResults":0}"#)).is_empty());
    assert!(ids(&with(r#"{"minConfidence":1}"#)).is_empty());
    let sorted = |constraints: &str| {
        let found = with(constraints);
        let mut ids: Vec<String> = ids(&found).into_iter().map(str::to_owned).collect();
        ids.sort();
        ids.concat()
    };
    assert_eq!(sorted(r#"{"timeRange":{"after":2000}}"#), "c");
    assert_eq!(sorted(r#"{"timeRange":{"after":1999}}"#), "bc");
    assert_eq!(sorted(r#"{"timeRange":{"before":2000}}"#), "a");
}

#[test]
fn the_present_world_and_what_is_forgotten_are_not_selected() {
    let bench = docks();
    let request =
        r#"{"query":"dock","atWorldId":"b","selector":{"actorId":"agent-1","kind":"agent"}}"#;
    let (_, now) = bench.ask(&super::bench::actor(), &SELECT, request, &[]);
    assert!(!ids(&now).contains(&"b"));
    bench.engine.execute(Change::Forget(vec![names::world(None, "c").unwrap()])).unwrap();
    assert!(!ids(&bench.select("dock", "")).contains(&"c"));
    assert!(
        ids(&bench.select("nothing of the kind", r#","constraints":{"minConfidence":0.99}"#))
            .is_empty()
    );
}

#[test]
fn what_passes_lies_behind_many_that_do_not() {
    let bench = Bench::new();
    for n in 0..200 {
        let world = format!(
            r#"{{"worldId":"bad-{n}","createdAt":1,"note":"dock dock dock","metadata":{{"contentHash":"x"}}}}"#
        );
        assert_eq!(bench.put(&world).0, 201);
    }
    let good = r#"{"worldId":"good","createdAt":1,"note":"one dock among other words that are longer than it is"}"#;
    assert_eq!(bench.put(good).0, 201);
    let found = bench.select("dock", r#","constraints":{"maxResults":1,"requireVerified":true}"#);
    assert_eq!(ids(&found), ["good"]);
    let all = bench.select("dock", r#","constraints":{"maxResults":1000}"#);
    let all = ids(&all);
    assert_eq!(all.len(), 201);
    assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), 201, "none twice");
}

#[test]
fn a_place_narrows_a_selection() {
    let bench = Bench::new();
    for (id, x) in [("near", 1), ("far", 50)] {
        let world = format!(
            r#"{{"worldId":"{id}","note":"dock","metadata":{{"pose":{{"frame":"map","position":[{x},0,0]}}}}}}"#
        );
        assert_eq!(bench.put(&world).0, 201);
    }
    let found = bench.select("dock", r#","filter":{"near":[0,0],"radius":5}"#);
    assert_eq!(ids(&found), ["near"]);
}

/// An Episode of the user's that says so is no World of ours.
#[test]
fn an_episode_that_pretends_is_not_selected() {
    let bench = docks();
    let forged = r#"{"resourceType":"Episode","id":"x","content":"dock dock dock dock","entityRefs":[{"ref":"Entity/mm.n.default"}],
        "extension":[{"url":"urn:omird:ext:manifesto-world","valueJson":{"worldId":"forged","world":{"worldId":"forged"},"hash":""}}]}"#;
    let change =
        bench.engine.prepare(forged.as_bytes(), omird_engine::Encoding::Json, None).unwrap();
    bench.engine.execute(change).unwrap();
    assert_eq!(ids(&bench.select("dock", "")).len(), 3);
    assert!(bench.get("forged").is_null());
}

#[test]
fn an_actor_is_small_for_each_evidence_has_a_copy() {
    let bench = docks();
    let request = |bytes: usize| {
        let meta = "A".repeat(bytes);
        format!(
            r#"{{"query":"dock","atWorldId":"w","selector":{{"actorId":"agent-1","kind":"agent","meta":{{"x":"{meta}"}}}}}}"#
        )
    };
    assert_eq!(bench.ask(&actor(), &SELECT, &request(4000), &[]).0, 200);
    let (status, answer) = bench.ask(&actor(), &SELECT, &request(4097), &[]);
    assert_eq!((status, answer.get("path")), (413, Some(&"/selector".into())), "{answer}");
    let both =
        format!(r#"{{"request":{},"result":{{"selected":[],"selectedAt":1}}}}"#, request(4097));
    let (status, answer) = bench.ask(&actor(), &TRACE, &both, &[]);
    assert_eq!((status, answer.get("path")), (413, Some(&"/request/selector".into())), "{answer}");
}

/// Selects by hand: WorldIds that pass, and the number of looks, until `looks` are over.
fn walked(bench: &Bench, constraints: &str, looks: usize) -> (Vec<String>, usize) {
    let request = format!(
        r#"{{"query":"dock","atWorldId":"w","selector":{{"actorId":"a","kind":"agent"}},"constraints":{constraints}}}"#
    );
    let request = SelectionRequest::from_value(&value(&request), &[]).unwrap();
    let selection = selector::Selection {
        request: &request,
        tenant: None,
        method: Some(omir_core::manifesto::Method::Signature),
        verified_at: 1,
    };
    let query = Query {
        text: Some("dock".into()),
        types: vec![ResourceType::Episode],
        touch: false,
        ..Query::default()
    };
    let mut count = 0;
    let is_over = || {
        count += 1;
        count > looks
    };
    let found = bench.manifesto.selected(&selection, query, is_over).unwrap();
    (found.into_iter().map(|one| one.world_id).collect(), count)
}

#[test]
fn a_selection_ends_with_its_time_and_keeps_what_passed() {
    let bench = docks();
    let (all, looks) = walked(&bench, "{}", usize::MAX);
    assert_eq!((all.len(), looks), (3, 3));
    let (some, looks) = walked(&bench, "{}", 2);
    assert_eq!((some, looks), (all[..2].to_vec(), 3), "the best two");
}

#[test]
fn a_selection_ends_where_no_later_hit_can_pass() {
    let bench = docks();
    let (found, looks) = walked(&bench, r#"{"minConfidence":1}"#, usize::MAX);
    assert_eq!((found.len(), looks), (0, 1), "the best hit is below, so all others are");
}

/// What lies in the place of a World and is none does not end a selection.
#[test]
fn an_episode_that_is_no_world_is_left_out() {
    let bench = docks();
    let name = names::world(None, "b").unwrap();
    let other = format!(
        r#"{{"resourceType":"Episode","id":"{}","content":"dock","entityRefs":[{{"ref":"Entity/mm.n.default"}}]}}"#,
        name.id
    );
    let change =
        bench.engine.prepare(other.as_bytes(), omird_engine::Encoding::Json, None).unwrap();
    bench.engine.execute(change).unwrap();
    let found = bench.select("dock", "");
    assert_eq!(ids(&found), ["c", "a"], "{found}");
}

/// Keys that do not sign make no signature, and a selection says so.
#[test]
fn without_a_key_nothing_is_verified_by_signature() {
    let bench = docks();
    let keys = Keys::verifying();
    let unsigned = Manifesto::new(bench.engine.clone(), keys, ManifestoSettings::default());
    let world = omir_core::manifesto::World::from_value(value(r#"{"worldId":"w"}"#)).unwrap();
    let signature = omir_core::manifesto::Method::Signature;
    let prove = |manifesto: &Manifesto| {
        omir_core::manifesto::Verifier::new(&manifesto.keys, signature).prove("w", &world).valid
    };
    assert!(
        prove(&bench.manifesto) && !prove(&unsigned),
        "the key is handed in, and not the engine's"
    );
}

#[test]
fn worlds_are_found_when_somebody_forgot_what_they_refer_to() {
    let bench = docks();
    let tenant = names::tenant(None).unwrap();
    bench.engine.execute(Change::Forget(vec![tenant.clone()])).unwrap();
    let found = |bench: &Bench| {
        let selection = bench.select("dock", "");
        let mut found: Vec<String> = ids(&selection).into_iter().map(str::to_owned).collect();
        found.sort_unstable();
        found
    };
    assert_eq!(found(&bench), ["a", "b", "c"]);
    assert_eq!(bench.put(r#"{"worldId":"e","createdAt":5000,"note":"another dock"}"#).0, 201);
    assert!(bench.engine.live_version(&tenant).is_some(), "it is made again");
    assert_eq!(found(&bench), ["a", "b", "c", "e"]);
}
