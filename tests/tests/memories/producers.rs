//! Memories of several producers in one store. Their scores share no scale (OMIR R1, Theory &
//! Scope): they are ranked by rank, filtered by what they state, and nothing is read from the order
//! in which a Bundle lists them.
//!
//! Invariant 14 of ARCHITECTURE.md.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use omir_core::model::{Meta, Resource};
use omir_core::number::Number;
use omir_core::reference::ResourceType;
use omir_core::value::Value;
use omird::disk::Folder;
use omird::engine::testing::ByHand;
use omird::engine::{Engine, Query, ScorePart};
use omird_tests::check::decode;
use omird_tests::journal::change;
use omird_tests::life;
use omird_tests::model::Request;
use omird_tests::random::Random;
use omird_tests::session::{Session, TestClock, settings};

const OTHER: &str = "veld/0.7.6";

fn open(data: &Path, clock: &Arc<TestClock>) -> Session {
    let disk = Arc::new(Folder::new(data));
    Session::open_with(disk, clock, settings(), Some(data.join("index"))).expect("it opens")
}

fn remember(session: &Session, resources: Vec<Resource>) {
    let change = change(session, &Request::Remember(resources)).expect("it is valid");
    session.execute(change).expect("the disk is good");
}

/// A record of a producer; they differ in nothing that ranks them but the importance.
fn record(name: &str, source: Option<&str>, importance: f64) -> Resource {
    let mut resource = life::record(name, "the kettle", &[], None);
    let source = source.map(str::to_owned);
    *resource.meta_mut() = source.map(|source| Meta { source: Some(source), ..Meta::r1() });
    if let Resource::MemoryRecord(record) = &mut resource {
        record.importance = Number::from_f64(importance);
    }
    resource
}

/// Ours are spread over the lower half of the scale, theirs crowd at its upper end.
fn ours(n: u32) -> Resource {
    record(&format!("ours-{n:02}"), None, 0.1 + 0.4 * f64::from(n) / 30.0)
}

fn theirs(n: u32) -> Resource {
    record(&format!("theirs-{n:02}"), Some(OTHER), 0.95 + 0.04 * f64::from(n) / 30.0)
}

fn base() -> Query {
    Query { limit: Some(1000), touch: false, explain: true, ..Query::default() }
}

/// Ids and scores, best first.
fn hits(engine: &Engine, query: &Query) -> Vec<(String, u64)> {
    let recalled = engine.recall(query).expect("it is answered");
    let id = |bytes: &[u8]| decode(bytes).id().as_str().to_owned();
    recalled.hits.iter().map(|hit| (id(&hit.resource), hit.score.to_bits())).collect()
}

fn ids(engine: &Engine, query: &Query) -> Vec<String> {
    hits(engine, query).into_iter().map(|(id, _)| id).collect()
}

/// In descending order of what they state.
fn expected(prefix: &str) -> Vec<String> {
    (0..30).rev().map(|n| format!("{prefix}-{n:02}")).collect()
}

#[test]
fn two_scales_are_ranked_by_rank_and_filtered_by_value() {
    let (data, clock) = (tempfile::tempdir().expect("a folder"), TestClock::new());
    let session = open(data.path(), &clock);
    remember(&session, (0..30).map(theirs).collect());
    assert_eq!(ids(&session, &base()), expected("theirs"), "alone they count as they are");
    let alone = session.recall(&base()).expect("it is answered");
    assert_eq!(
        alone.hits[0].part(ScorePart::Importance),
        Number::from_f64(0.95 + 0.04 * 29.0 / 30.0).map(|n| n.as_f64())
    );

    // Forgotten or older versions are no part of a scale.
    remember(&session, (0..30).map(|n| record(&format!("ours-{n:02}"), None, 0.99)).collect());
    remember(&session, (0..30).map(ours).collect());
    remember(&session, (0..9).map(|n| record(&format!("gone-{n}"), Some(OTHER), 0.1)).collect());
    for n in 0..9 {
        let gone = Request::Forget(life::reference(&format!("MemoryRecord/gone-{n}")));
        session.execute(change(&session, &gone).expect("it is valid")).expect("the disk is good");
    }

    let both = hits(&session, &base());
    let of = |prefix: &str| -> Vec<String> {
        both.iter().map(|(id, _)| id.clone()).filter(|id| id.starts_with(prefix)).collect()
    };
    assert_eq!(of("ours"), expected("ours"));
    assert_eq!(of("theirs"), expected("theirs"));
    // The n-th of ours and the n-th of theirs stand side by side.
    for (at, pair) in both.chunks(2).enumerate() {
        let mut pair: Vec<&str> = pair.iter().map(|(id, _)| id.as_str()).collect();
        pair.sort_unstable();
        let number = 29 - at;
        assert_eq!(pair, [format!("ours-{number:02}"), format!("theirs-{number:02}")]);
    }

    // However few are asked for, they are the first of all.
    for limit in [1, 5, 17, 59] {
        let few = Query { limit: Some(limit), ..base() };
        assert_eq!(hits(&session, &few), both[..limit], "the best {limit}");
        let words = Query { text: Some("kettle".into()), ..few };
        let all = Query { limit: Some(1000), ..words.clone() };
        assert_eq!(hits(&session, &words), hits(&session, &all)[..limit], "the best {limit}");
    }

    // A filter is on what is stated.
    let important = Query { min_importance: Some(0.95), ..base() };
    assert_eq!(ids(&session, &important), expected("theirs"));
    let little = Query { min_importance: Some(0.1), ..base() };
    assert_eq!(session.recall(&little).expect("it is answered").total, 60);
    let now = Query { as_of: Some(session.now().0), ..base() };
    assert_eq!(ids(&session, &now), both.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>());
    drop(session);

    let session = open(data.path(), &clock);
    assert_eq!(hits(&session, &base()), both, "after a restart");
    drop(session);
    std::fs::remove_dir_all(data.path().join("index")).expect("it goes");
    let session = open(data.path(), &clock);
    assert!(session.rebuilt() > 0);
    assert_eq!(hits(&session, &base()), both, "with the index rebuilt");
}

#[test]
fn what_others_believe_is_ranked_by_its_evidence() {
    let (data, clock) = (tempfile::tempdir().expect("a folder"), TestClock::new());
    let session = open(data.path(), &clock);
    let believed = |name: &str, source, alpha: f64, beta: f64, calibrated: f64| {
        let mut resource = record(name, source, 0.5);
        if let Resource::MemoryRecord(record) = &mut resource {
            let confidence = record.confidence.get_or_insert_default();
            confidence.alpha = Number::from_f64(alpha);
            confidence.beta = Number::from_f64(beta);
            confidence.calibrated = Number::from_f64(calibrated);
        }
        resource
    };
    remember(
        &session,
        vec![
            believed("boast", Some(OTHER), 1.0, 1.0, 0.99),
            believed("proof", Some(OTHER), 18.0, 2.0, 0.3),
            believed("ours", None, 1.0, 1.0, 0.7),
        ],
    );
    assert_eq!(ids(&session, &base()), ["proof", "ours", "boast"]);
    let sure = Query { min_confidence: Some(0.9), ..base() };
    assert_eq!(ids(&session, &sure), ["boast"]);
}

#[test]
fn the_order_of_a_bundle_means_nothing() {
    let mut entries: Vec<Value> = Vec::new();
    for n in 0..40 {
        let source = (n % 3 == 0).then_some(OTHER);
        // Equal in all that ranks them, so that nothing but the data may decide.
        let mut resource = record(&format!("m{n:02}"), source, 0.5);
        if let Resource::MemoryRecord(record) = &mut resource {
            let target = omir_core::reference::Ref::new(ResourceType::Entity, life::id("table"));
            record.entity_refs = Some(vec![target.into()]);
            record.parent_id = (n > 0).then(|| life::id(&format!("m{:02}", n - 1)));
        }
        entries.push(resource.to_value());
    }
    entries.push(life::entity("table", "the table").to_value());
    let mut random = Random::new(7);
    let mut answers = Vec::new();
    for _ in 0..3 {
        let (data, clock) = (tempfile::tempdir().expect("a folder"), TestClock::new());
        let session = open(data.path(), &clock);
        let mut bundle = omir_core::value::Map::new();
        bundle.insert("resourceType", "Bundle");
        bundle.insert("omirVersion", "R1");
        bundle.insert("entry", Value::Array(entries.clone()));
        let text = omir_core::json::to_string(&Value::Object(bundle));
        let change = session
            .prepare(text.as_bytes(), omird::engine::Encoding::Json, None)
            .expect("it is valid");
        session.execute(change).expect("the disk is good");
        clock.advance(Duration::from_secs(60));
        let exported = session.export(&Query::everything()).expect("it is exported").to_value();
        let exported = exported.get("entry").and_then(Value::as_array).unwrap_or_default();
        let mut exported: Vec<String> = exported.iter().map(omir_core::json::to_string).collect();
        exported.sort_unstable();
        let words = Query { text: Some("kettle table".into()), limit: Some(15), ..base() };
        answers.push((exported, hits(&session, &base()), hits(&session, &words)));
        for at in (1..entries.len()).rev() {
            entries.swap(at, random.below(at + 1));
        }
    }
    assert_eq!(answers[0].0.len(), 41);
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
}
