//! Worlds stored and looked up.

use std::thread;

use omir_core::json;
use omir_core::value::Value;
use omird_engine::{Change, Query};
use omird_router::testing::somebody;
use omird_router::{Caller, Scope};

use super::bench::{Bench, actor, value};
use crate::*;

const W1: &str = r#"{"worldId":"w-1","schemaHash":"s1","snapshotHash":"n1","createdAt":1700000000000,"createdBy":null}"#;
const HASH: &str = "3aa4a34e5ef6bc200ffb490ec4ec2648e260fde94118a6fbd0af66705eef6bc2";

/// M-5, CR-13: a store is provided: `get` gives the World as it came, or null, and `exists` tells.
#[test]
fn m_05_cr_13_a_world_is_stored_once_and_given_as_it_came() {
    let bench = Bench::new();
    assert!(bench.get("w-1").is_null());
    let (status, answer) = bench.put(W1);
    assert_eq!((status, answer.get("stored")), (201, Some(&"added".into())));
    assert_eq!(
        (answer.get("hash"), answer.get("durable")),
        (Some(&HASH.into()), Some(&true.into()))
    );
    assert_eq!(bench.get("w-1"), value(W1));
    let (status, again) = bench.put(W1);
    assert_eq!((status, again.get("stored")), (200, Some(&"unchanged".into())));
    assert_eq!(again.get("seq"), answer.get("seq"));
    // The same with its members in another order, and its numbers in other words.
    let same = r#"{"createdBy":null,"createdAt":1.7e12,"snapshotHash":"n1","schemaHash":"s1","worldId":"w-1"}"#;
    assert_eq!(bench.put(same).0, 200);
    let (status, other) = bench.put(&W1.replace("n1", "n2"));
    assert_eq!((status, other.get("code")), (409, Some(&"CONFLICT".into())));
    // Only what it states of itself is another, which the hash leaves out.
    let stated = W1.replace('}', r#","metadata":{"contentHash":"x"}}"#).replace("w-1", "w-2");
    assert_eq!(bench.put(&stated).0, 201);
    assert_eq!(bench.put(&stated.replace("\"x\"", "\"y\"")).0, 409);
    assert_eq!(bench.get("w-1"), value(W1));
    let exists = |id| bench.ask(&actor(), &EXISTS, "", &[("worldId", id)]).1;
    assert_eq!(exists("w-1"), value(r#"{"exists":true}"#));
    assert_eq!(exists("nope"), value(r#"{"exists":false}"#));
}

#[test]
fn of_twenty_at_once_one_is_stored() {
    let bench = Bench::new();
    let puts = |world: &'static str| {
        thread::scope(|scope| {
            let all: Vec<_> = (0..20).map(|_| scope.spawn(|| bench.put(world))).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
        })
    };
    let answers = puts(W1);
    let added = answers.iter().filter(|(status, _)| *status == 201).count();
    let unchanged = answers.iter().filter(|(status, _)| *status == 200).count();
    assert_eq!((added, unchanged), (1, 19), "{answers:?}");
    let name = names::world(None, "w-1").unwrap();
    assert_eq!(bench.engine.live_version(&name).unwrap().0, 1);
    // Twenty other Worlds of that name: each is told.
    let answers = puts(r#"{"worldId":"w-1","other":true}"#);
    assert!(answers.iter().all(|(status, _)| *status == 409), "{answers:?}");
}

/// M-11, CR-18, FP-12: a WorldId is compared, and nothing in it means anything.
#[test]
fn m_11_cr_18_hostile_ids_are_names_like_others() {
    let bench = Bench::new();
    let long = "x".repeat(512);
    let hostile =
        ["../a b/%\u{fc}", "MemoryRecord/x", "a:b#c?d=e&f", "mm.w.0", "\u{1f916}", "null", &long];
    for id in hostile {
        let world = format!(r#"{{"worldId":"{id}","n":1}}"#);
        assert_eq!(bench.put(&world).0, 201, "{id}");
        assert_eq!(bench.get(id), value(&world), "{id}");
    }
    let longer = "x".repeat(513);
    for id in ["", "a\u{7}", &longer] {
        assert_eq!(bench.ask(&actor(), &GET, "", &[("worldId", id)]).0, 400, "{id:?}");
        let world = json::to_string(&Value::Object([("worldId", id)].into_iter().collect()));
        assert_eq!(bench.put(&world).0, 400, "{id:?}");
    }
}

/// D21: a World that is forgotten is gone, and what was proven of it stays proven.
#[test]
fn a_forgotten_world_is_null_and_its_proof_still_holds() {
    let bench = Bench::new();
    bench.put(W1);
    let prove = format!(r#"{{"memory":{{"worldId":"w-1"}},"world":{W1}}}"#);
    let proven = bench.ask(&actor(), &PROVE, &prove, &[]).1;
    bench.engine.execute(Change::Forget(vec![names::world(None, "w-1").unwrap()])).unwrap();
    assert!(bench.get("w-1").is_null());
    let verify = format!(r#"{{"proof":{}}}"#, proven.get("proof").unwrap());
    assert_eq!(bench.ask(&actor(), &VERIFY_PROOF, &verify, &[]).1, value(r#"{"valid":true}"#));
    // Its name is free again.
    assert_eq!(bench.put(&W1.replace("n1", "n2")).0, 201);
    assert_eq!(bench.get("w-1").get("snapshotHash"), Some(&"n2".into()));
}

#[test]
fn tenants_meet_nowhere() {
    let bench = Bench::new();
    let of = |tenant: &str| Caller { tenant: Some(tenant.into()), ..actor() };
    let put = |tenant, world: &str| {
        bench.ask(&of(tenant), &PUT, &format!(r#"{{"world":{world}}}"#), &[]).0
    };
    assert_eq!(put("acme", r#"{"worldId":"w-1","note":"dock"}"#), 201);
    assert_eq!(
        put("other", r#"{"worldId":"w-1","note":"dock elsewhere"}"#),
        201,
        "a name of its own"
    );
    assert!(bench.get("w-1").is_null());
    let request = r#"{"query":"dock","atWorldId":"w","selector":{"actorId":"a","kind":"agent"}}"#;
    let found = bench.ask(&of("acme"), &SELECT, request, &[]).1;
    assert_eq!(super::bench::ids(&found), ["w-1"]);
    assert_eq!(bench.get_as(&of("acme"), "w-1").get("note"), Some(&"dock".into()));
    assert!(super::bench::ids(&bench.select("dock", "")).is_empty());
    let snapshot = bench.ask(&of("acme"), &PUT, r#"{"snapshot":{}}"#, &[]);
    assert_eq!(snapshot.0, 403);
}

/// M-1, FP-01: what a selection says of a World is no content of a memory.
#[test]
fn m_01_fp_01_reasons_are_not_stored_as_content() {
    let bench = Bench::new();
    bench.put(r#"{"worldId":"w-1","note":"dock"}"#);
    let request =
        r#"{"query":"dock","atWorldId":"w-9","selector":{"actorId":"agent-1","kind":"agent"}}"#;
    let result = r#"{"selectedAt":5,"selected":[{"ref":{"worldId":"w-1"},"reason":"zanzibar","confidence":0.5,"verified":false}]}"#;
    let both = format!(r#"{{"request":{request},"result":{result}}}"#);
    let trace = bench.ask(&actor(), &TRACE, &both, &[]).1;
    let attach = format!(r#"{{"proposal":{{}},"trace":{trace},"record":true}}"#);
    let (status, attached) = bench.ask(&actor(), &ATTACH, &attach, &[]);
    assert_eq!(status, 200, "{attached}");
    let recorded = attached.get("recorded").unwrap().as_str().unwrap();
    let stored = bench.engine.get(&recorded.parse().unwrap()).unwrap().unwrap();
    let stored = omird_engine::decode_stored(&stored).unwrap();
    assert_eq!(stored.pointer("/extension/0/valueJson"), Some(&trace), "the trace is there, whole");
    let found = |text: &str| {
        let query = Query { text: Some(text.into()), ..Query::default() };
        bench.engine.recall(&query).unwrap().total
    };
    assert_eq!((found("zanzibar"), found("dock")), (0, 1), "no trace is found by what it says");
    let again = format!(r#"{{"proposal":{},"trace":{trace}}}"#, attached.get("proposal").unwrap());
    let (status, answer) = bench.ask(&actor(), &ATTACH, &again, &[]);
    assert_eq!((status, answer.get("code")), (409, Some(&"CONFLICT".into())));
}

#[test]
fn a_snapshot_of_the_same_memories_is_the_same_world() {
    let bench = Bench::new();
    bench.remember(
        r#"[{"resourceType":"Entity","id":"cup","name":"Cup"},
            {"resourceType":"MemoryRecord","id":"r1","content":"a cup","entityRefs":[{"ref":"Entity/cup"}]}]"#,
    );
    let owner = somebody(&[ACTOR, Scope::READ]);
    let (status, first) =
        bench.ask(&owner, &PUT, r#"{"snapshot":{},"metadata":{"title":"All"}}"#, &[]);
    assert_eq!(status, 201, "{first}");
    let id = first.get("worldId").unwrap().as_str().unwrap();
    let world = bench.get(id);
    let data = world.pointer("/snapshot/data").unwrap().as_array().unwrap();
    let ids: Vec<&str> = data.iter().map(|one| one.get("id").unwrap().as_str().unwrap()).collect();
    assert_eq!(ids, ["cup", "r1"], "by reference");
    assert!(
        data.iter().all(|one| ["decay", "meta", "tier"].iter().all(|name| one.get(name).is_none()))
    );
    assert_eq!(world.pointer("/metadata/title"), Some(&"All".into()));
    // The digests as their definition says, computed from what is given.
    use sha2::Digest as _;
    let of = |text: &str| names::hex(&sha2::Sha256::digest(text));
    let canonical = omir_core::jcs::to_string(&Value::Array(data.to_vec())).unwrap();
    assert_eq!(world.get("snapshotHash"), Some(&of(&canonical).into()));
    assert_eq!(world.get("schemaHash"), Some(&of("omir:R1").into()));
    assert_eq!(id, of(&format!("{}:{}", of("omir:R1"), of(&canonical))));
    // The World that was put is no memory of the next one.
    let (status, again) = bench.ask(&owner, &PUT, r#"{"snapshot":{}}"#, &[]);
    assert_eq!((status, again.get("worldId")), (200, first.get("worldId")), "{again}");
    let (_, fewer) = bench.ask(&owner, &PUT, r#"{"snapshot":{"type":"Entity"}}"#, &[]);
    assert_ne!(fewer.get("worldId"), first.get("worldId"));
    let refused = bench.ask(&actor(), &PUT, r#"{"snapshot":{}}"#, &[]);
    assert_eq!(
        (refused.0, refused.1.get("path")),
        (403, Some(&"/snapshot".into())),
        "{}",
        refused.1
    );
    let wrong = bench.ask(&owner, &PUT, r#"{"snapshot":{"raduis":1}}"#, &[]);
    assert_eq!(wrong.1.get("path"), Some(&"/snapshot/raduis".into()));
}

#[test]
fn a_snapshot_has_a_time_and_one_is_made_at_a_time() {
    let bench = Bench::new();
    bench.remember(r#"[{"resourceType":"Entity","id":"a","name":"A"},{"resourceType":"Entity","id":"b","name":"B"}]"#);
    let entries = |reads: usize| {
        let mut left = reads;
        bench.manifesto.entries(&Query::everything(), || {
            left = left.saturating_sub(1);
            left > 0
        })
    };
    // Two are selected, and two are taken.
    assert_eq!(entries(5).unwrap().len(), 2);
    for reads in 1..=4 {
        let failure = entries(reads).unwrap_err();
        assert_eq!((failure.status, failure.path.as_str()), (413, "/snapshot"), "{reads}");
    }
    let owner = somebody(&[ACTOR, Scope::READ]);
    let turn = bench.manifesto.snapshots.lock();
    let (status, answer) = bench.ask(&owner, &PUT, r#"{"snapshot":{}}"#, &[]);
    assert_eq!((status, answer.get("code")), (503, Some(&"BUSY".into())));
    drop(turn);
    assert_eq!(bench.ask(&owner, &PUT, r#"{"snapshot":{}}"#, &[]).0, 201);
}

#[test]
fn a_snapshot_is_the_same_only_with_the_same_memories_in_it() {
    let bench = Bench::new();
    bench.remember(r#"{"resourceType":"Entity","id":"a","name":"A"}"#);
    let owner = somebody(&[ACTOR, Scope::READ]);
    let minted = bench.ask(&owner, &PUT, r#"{"snapshot":{}}"#, &[]).1;
    let id = minted.get("worldId").unwrap().as_str().unwrap();
    let mut forged = bench.get(id);
    let map = forged.as_object_mut().unwrap();
    map.insert("snapshot", value(r#"{"data":[]}"#));
    bench.engine.execute(Change::Forget(vec![names::world(None, id).unwrap()])).unwrap();
    assert_eq!(bench.put(&forged.to_string()).0, 201, "somebody was there first");
    let (status, answer) = bench.ask(&owner, &PUT, r#"{"snapshot":{}}"#, &[]);
    assert_eq!((status, answer.get("code")), (409, Some(&"CONFLICT".into())), "{answer}");
}

#[test]
fn a_world_has_a_most_of_bytes() {
    let bench = Bench::new();
    let title = "x".repeat(600 << 10);
    let titled = format!(r#"{{"worldId":"t","metadata":{{"title":"{title}"}}}}"#);
    assert_eq!(bench.put(&titled).0, 201, "the title is stored once");
    let large = format!(r#"{{"worldId":"w","a":"{}"}}"#, "x".repeat(768 << 10));
    let prove = format!(r#"{{"memory":{{"worldId":"w"}},"world":{large}}}"#);
    let (status, answer) = bench.ask(&actor(), &PROVE, &prove, &[]);
    assert_eq!((status, answer.get("path")), (413, Some(&"/world".into())), "{answer}");
    let of = |bytes: usize| format!(r#"{{"worldId":"{bytes}","a":"{}"}}"#, "x".repeat(bytes));
    assert_eq!(bench.put(&of((768 << 10) - 40)).0, 201);
    let (status, answer) = bench.put(&of(768 << 10));
    assert_eq!((status, answer.get("code")), (413, Some(&"TOO_LARGE".into())));
    let deepest = |levels: usize| {
        let (open, close) = ("[".repeat(levels - 1), "]".repeat(levels - 1));
        format!(r#"{{"worldId":"d{levels}","a":{open}{close}}}"#)
    };
    let most = omir_core::manifesto::MAX_DEPTH;
    assert_eq!(bench.put(&deepest(most)).0, 201, "as deep as the store takes it");
    let (status, answer) = bench.put(&deepest(most + 1));
    assert_eq!((status, answer.get("code")), (400, Some(&"INVALID_WORLD".into())), "{answer}");
}

impl Bench {
    fn get_as(&self, caller: &Caller, world_id: &str) -> Value {
        let (_, answer) = self.ask(caller, &GET, "", &[("worldId", world_id)]);
        answer.get("world").unwrap().clone()
    }
}

#[test]
fn a_world_that_is_lost_is_not_said_to_be_none() {
    let mut bench = Bench::new();
    bench.put(&W1.replace("n1", "xylophone"));
    bench.lose("xylophone");
    for method in [&GET, &EXISTS] {
        let (status, answer) = bench.ask(&actor(), method, "", &[("worldId", "w-1")]);
        assert_eq!((status, answer.get("code")), (500, Some(&"INTERNAL".into())), "{answer}");
    }
    // A client that puts it again makes the loss good.
    assert_eq!(bench.put(W1).0, 201);
    assert_eq!(bench.get("w-1"), value(W1));
}
