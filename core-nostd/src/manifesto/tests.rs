//! The vectors of the proof formats, and the rules of the specification that concern what is pure. Names such as M-8 and
//! CR-16 are those of the specification.

use alloc::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::decode::Limits;
use crate::json;
use crate::manifesto::proof::{hex, unhex};
use crate::value::{Map, Value};

/// The World of the vectors.
const W1: &str = r#"{"worldId":"w-1","schemaHash":"s1","snapshotHash":"n1","createdAt":1700000000000,"createdBy":null}"#;
const HASH: &str = "3aa4a34e5ef6bc200ffb490ec4ec2648e260fde94118a6fbd0af66705eef6bc2";
const ROOT: &str = "9cf1d42245b5333e9b0e0a14b60d60f5efbb1cfada359a9fe279b0cd825fc48a";
const PUBLIC_KEY: &str = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8";
const SIGNATURE: &str = "abd0bca05678f41612e57441016c84f07f40b853ef619512784503d7e53f6d4799e38c22e899219fb8d56028102e91ab186bf67697541a65c2e8bf063f1c8c07";
/// Of W1 with any digests in its `metadata`.
const STRIPPED_HASH: &str = "26099fced71545f1a85f29238613c1b9d1714ef7dbfbc90347ab754757984734";
const STRIPPED_ROOT: &str = "97c36a7e5a1eb8c828c3e55c96d685842a2e7369a714fd3d770c74f43f59c9b6";

fn value(text: &str) -> Value {
    json::from_slice(text.as_bytes(), &Limits::default()).unwrap()
}

fn world(text: &str) -> World {
    World::from_value(value(text)).unwrap()
}

fn keys() -> Keys {
    Keys::signing(core::array::from_fn(|i| i as u8))
}

fn with_metadata(metadata: &str) -> World {
    world(&W1.replace('}', &format!(r#","metadata":{metadata}}}"#)))
}

fn prove(method: Method, world: &World) -> ProveResult {
    Verifier::new(&keys(), method).prove("w-1", world)
}

fn proof_text(proven: &ProveResult) -> String {
    json::to_string(&proven.to_value())
}

#[test]
fn digests_are_those_of_the_vectors() {
    let w1 = world(W1);
    assert_eq!((hex(&w1.hash()), hex(&w1.root())), (HASH.into(), ROOT.into()));
    let stated = with_metadata(r#"{"contentHash":"x","merkleRoot":"y"}"#);
    assert_eq!(
        (hex(&stated.hash()), hex(&stated.root())),
        (STRIPPED_HASH.into(), STRIPPED_ROOT.into())
    );
    // The `metadata` that is left is not left out.
    assert_eq!(with_metadata("{}").hash(), stated.hash());
    assert_ne!(w1.hash(), stated.hash());
}

#[test]
fn names_that_must_be_escaped_are_hashed_as_their_canonical_form() {
    let text = "{\"a\\\"\\\\\":1,\"\\n\":[],\"\":{\"x\":0.5},\"worldId\":\"w\"}";
    let canonical = crate::jcs::to_string(&value(text)).unwrap();
    use sha2::Digest as _;
    let expected: [u8; 32] = sha2::Sha256::digest(canonical).into();
    assert_eq!(world(text).hash(), expected);
}

#[test]
fn the_path_of_a_member_is_that_of_the_vectors() {
    let keys = keys();
    let verifier = Verifier::new(&keys, Method::Merkle).with_path_of("snapshotHash");
    let proven = verifier.prove("w-1", &world(W1));
    assert!(!proven.valid, "it states no root");
    let expected = format!(
        r#"{{"valid":false,"proof":{{"method":"merkle","proof":{{"alg":"sha-256","canon":"jcs","worldId":"w-1","computedRoot":"{ROOT}","pathProof":{{"leafHash":"122adc06ed1a65e1021582a0d19e5ba16131ae15af2fc30223815b08347dad20","siblings":[{{"hash":"980fac4e06067ee2786b3b9928d71040cd8a4fb4d2847a672cf946d6802e7979","position":"left"}},{{"hash":"396144da1991c98fe9ed0eb7dc7c1bacfcee47523b36119918f8583d35f3dba9","position":"left"}},{{"hash":"c111f2d596412d6e5d1d8857af2915c808206a8911abba863c08f37c5567a7d2","position":"right"}}]}}}}}},"error":"the World states no digest to compare with"}}"#
    );
    assert_eq!(proof_text(&proven), expected);
    let unknown = Verifier::new(&keys, Method::Merkle).with_path_of("x").prove("w-1", &world(W1));
    assert_eq!((unknown.valid, unknown.proof), (false, None));
}

#[test]
fn the_signature_is_that_of_the_vectors() {
    let proven = prove(Method::Signature, &world(W1));
    let expected = format!(
        r#"{{"valid":true,"proof":{{"method":"signature","proof":{{"alg":"ed25519","canon":"jcs","worldId":"w-1","hash":"{HASH}","publicKey":"{PUBLIC_KEY}","signature":"{SIGNATURE}"}}}}}}"#
    );
    assert_eq!(proof_text(&proven), expected);
    let proof = proven.proof.unwrap();
    assert!(keys().verify(&proof));
    assert!(!Keys::verifying().verify(&proof), "nobody is trusted");
    assert!(!Keys::signing([9; 32]).verify(&proof), "somebody else is");
    let former = Keys::signing([9; 32]).trusting_hex(PUBLIC_KEY).trusting_hex("no key");
    assert!(former.verify(&proof), "a former key is trusted still");
    let listed: Vec<(String, bool)> = former.public_keys().collect();
    assert_eq!((listed.len(), listed[0].1, &listed[1]), (2, true, &(PUBLIC_KEY.into(), false)));
}

#[test]
fn a_stated_digest_is_what_makes_hash_and_merkle_valid() {
    let right = format!(r#"{{"contentHash":"{STRIPPED_HASH}","merkleRoot":"{STRIPPED_ROOT}"}}"#);
    for (metadata, valid) in [
        (right.as_str(), [true, true, true]),
        ("{}", [false, false, true]),
        (r#"{"contentHash":null,"merkleRoot":null}"#, [false, false, true]),
        (r#"{"contentHash":"x","merkleRoot":"y"}"#, [false, false, false]),
        (r#"{"contentHash":7}"#, [false, false, false]),
        ("7", [false, false, true]),
    ] {
        let world = with_metadata(metadata);
        for (method, valid) in
            [Method::Hash, Method::Merkle, Method::Signature].into_iter().zip(valid)
        {
            let proven = prove(method, &world);
            assert_eq!(proven.valid, valid, "{metadata} {method:?} {proven:?}");
            assert_eq!(proven.error.is_none(), valid);
            let holds = proven.proof.as_ref().is_some_and(|proof| keys().verify(proof));
            assert_eq!(holds, valid, "what is not proven does not verify: {proven:?}");
        }
    }
}

/// M-7, CR-15: there is a verifier for each method. `none` and unknown methods are never valid.
#[test]
fn each_method_proves_and_verifies_as_its_row_says() {
    let w1 = world(W1);
    assert_eq!(
        proof_text(&prove(Method::Existence, &w1)),
        r#"{"valid":true,"proof":{"method":"existence"}}"#
    );
    let none = prove(Method::None, &w1);
    assert_eq!((none.valid, none.proof), (false, None));
    let merkle = r#"{"method":"merkle","proof":{"computedRoot":"a"}}"#;
    for (text, valid) in [
        (r#"{"method":"existence"}"#, true),
        (r#"{"method":"existence","proof":{"worldId":"w-1"}}"#, false),
        (r#"{"method":"none"}"#, false),
        (r#"{"method":"custom-x","proof":{"any":1}}"#, false),
        (r#"{"method":"hash"}"#, false),
        (r#"{"method":"hash","proof":7}"#, false),
        (r#"{"method":"signature","proof":{}}"#, false),
        (merkle, false),
    ] {
        let proof = Proof::extract(&value(text)).unwrap();
        assert_eq!(keys().verify(&proof), valid, "{text}");
    }
    for method in Method::ALL {
        assert_eq!(Method::by_name(method.as_str()), Some(method));
        let other = Verifier::new(&keys(), method).prove("w-2", &w1);
        assert_eq!((other.valid, other.proof), (false, None), "another World than the memory's");
    }
}

#[test]
fn a_world_is_refused_where_it_is_none() {
    for (text, pointer, message) in [
        ("[]", "", "an object"),
        ("{}", "/worldId", "has a `worldId`"),
        (r#"{"worldId":7}"#, "/worldId", "a number"),
        (r#"{"worldId":""}"#, "/worldId", "1 to 512 bytes"),
        (r#"{"worldId":"a\u0000"}"#, "/worldId", "control"),
        (r#"{"worldId":"w","a":[9007199254740993]}"#, "/a/0", "no double"),
        (
            r#"{"worldId":"w","metadata":{"contentHash":9007199254740993}}"#,
            "/metadata/contentHash",
            "no double",
        ),
    ] {
        let fault = World::from_value(value(text)).unwrap_err();
        assert_eq!(fault.pointer, pointer, "{text}");
        assert!(fault.message.contains(message), "{fault}");
    }
    let nested = |levels: usize| {
        let (open, close) = ("[".repeat(levels - 1), "]".repeat(levels - 1));
        World::from_value(value(&format!(r#"{{"worldId":"w","a":{open}{close}}}"#)))
    };
    assert!(nested(MAX_DEPTH).is_ok());
    assert!(nested(MAX_DEPTH + 1).unwrap_err().message.contains("levels deep"));
    let long = |len: usize| format!(r#"{{"worldId":"{}"}}"#, "x".repeat(len));
    assert!(World::from_value(value(&long(MAX_WORLD_ID))).is_ok());
    assert!(World::from_value(value(&long(MAX_WORLD_ID + 1))).is_err());
}

/// M-11, CR-18: what is in a WorldId means nothing.
#[test]
fn any_text_is_a_world_id() {
    for id in ["../a b/%\u{fc}", "MemoryRecord/x", "a:b:c", "\u{1f916}", "null", "0", "a\"b\\"] {
        assert!(is_world_id(id));
        let mut map = Map::new();
        map.insert("worldId", id);
        let world = World::from_value(Value::Object(map)).unwrap();
        let keys = keys();
        for method in [Method::Existence, Method::Signature] {
            assert!(Verifier::new(&keys, method).prove(id, &world).valid, "{id}");
        }
    }
}

/// Every string and number of a proof with one bit changed, and every member left out.
fn altered(proof: &Proof) -> Vec<Proof> {
    let map = proof.proof.as_ref().and_then(Value::as_object).unwrap();
    let mut all = Vec::new();
    let mut put = |map: Map| all.push(Proof { proof: Some(Value::Object(map)), ..proof.clone() });
    for (name, member) in map.iter() {
        let mut without = map.clone();
        without.remove(name);
        put(without);
        let Some(text) = member.as_str() else { continue };
        for at in 0..text.len() * 7 {
            let mut bytes = text.as_bytes().to_vec();
            bytes[at / 7] ^= 1 << (at % 7);
            let mut changed = map.clone();
            changed.insert(name, String::from_utf8(bytes).unwrap());
            put(changed);
        }
    }
    all
}

#[test]
fn a_proof_with_any_bit_changed_is_refused() {
    let stated = with_metadata(&format!(
        r#"{{"contentHash":"{STRIPPED_HASH}","merkleRoot":"{STRIPPED_ROOT}"}}"#
    ));
    let keys = keys();
    for method in [Method::Hash, Method::Merkle, Method::Signature] {
        let proof = Verifier::new(&keys, method).prove("w-1", &stated).proof.unwrap();
        assert!(keys.verify(&proof));
        for altered in altered(&proof) {
            // The caller that compares it binds a digest to the name of its World: `bound` in an evaluation.
            let is_moved = method != Method::Signature && altered.world_id() != proof.world_id();
            let still_names_one = altered.world_id().is_some_and(is_world_id);
            assert_eq!(keys.verify(&altered), is_moved && still_names_one, "{altered:?}");
        }
        let mut more = proof.proof.clone().unwrap();
        more.as_object_mut().unwrap().insert("verifiedAt", 1);
        assert!(
            !keys.verify(&Proof { proof: Some(more), ..proof }),
            "a member that is none of its format"
        );
    }
}

#[test]
fn a_path_that_leads_elsewhere_is_refused() {
    let stated = with_metadata(&format!(r#"{{"merkleRoot":"{STRIPPED_ROOT}"}}"#));
    let keys = keys();
    for (name, _) in stated.value().as_object().unwrap().iter() {
        let proof = Verifier::new(&keys, Method::Merkle)
            .with_path_of(name)
            .prove("w-1", &stated)
            .proof
            .unwrap();
        assert!(keys.verify(&proof), "{name}");
        let text = json::to_string(proof.proof.as_ref().unwrap());
        let at = text.find("pathProof").unwrap();
        for (at, byte) in text.bytes().enumerate().skip(at) {
            if !byte.is_ascii_hexdigit() {
                continue;
            }
            let mut changed = text.clone().into_bytes();
            changed[at] = if byte == b'0' { b'1' } else { b'0' };
            let Ok(changed) = json::from_slice(&changed, &Limits::default()) else { continue };
            if Some(&changed) == proof.proof.as_ref() {
                continue;
            }
            assert!(!keys.verify(&Proof { proof: Some(changed), ..proof.clone() }), "{name} {at}");
        }
    }
}

fn trace_value() -> Value {
    let proof = prove(Method::Signature, &world(W1)).proof.unwrap().to_value();
    let proof = json::to_string(proof.get("proof").unwrap());
    value(&format!(
        r#"{{"selector":{{"actorId":"agent-1","kind":"agent"}},"query":"dock","selectedAt":1700000000001,"atWorldId":"w-9",
        "selected":[{{"ref":{{"worldId":"w-1"}},"reason":"it says dock","confidence":0.7,"verified":true,
        "evidence":{{"method":"signature","proof":{proof},"verifiedAt":1700000000000,"verifiedBy":{{"actorId":"agent-1","kind":"agent"}}}}}}]}}"#
    ))
}

/// Returns the trace with the member that the pointer names replaced, or removed.
fn changed(pointer: &str, new: Option<&str>) -> Value {
    let mut trace = trace_value();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let mut at = &mut trace;
    for token in parent.split('/').skip(1) {
        at = match token.parse::<usize>() {
            Ok(index) => &mut at.as_array_mut().unwrap()[index],
            Err(_) => at.as_object_mut().unwrap().get_mut(token).unwrap(),
        };
    }
    let map = at.as_object_mut().unwrap();
    match new {
        Some(new) => drop(map.insert(name, value(new))),
        None => drop(map.remove(name)),
    }
    trace
}

/// Checks that each of these at the pointer is one fault with that place, and the others none.
fn judges(pointer: &str, wrong: &[Option<&str>], right: &[Option<&str>]) {
    for new in wrong {
        let faults = memory_trace(&changed(pointer, *new), false);
        let told: Vec<&str> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
        assert_eq!(told, [pointer], "{new:?}: {faults:?}");
        let within = pointer.starts_with("/selected/0");
        assert_eq!(faults[0].text.starts_with("selected[0]: "), within, "{faults:?}");
    }
    for new in right {
        assert_eq!(memory_trace(&changed(pointer, *new), false), [], "{new:?}");
    }
}

const NO_TEXTS: [Option<&str>; 5] = [None, Some("null"), Some(r#""""#), Some("7"), Some("[]")];
const NO_MOMENTS: [Option<&str>; 7] =
    [None, Some("null"), Some("0"), Some("-1"), Some("1.5"), Some(r#""1""#), Some("true")];

/// CR-02: the selector is an ActorRef.
#[test]
fn cr_02_a_selector_is_an_actor() {
    let actor = |rest: &str| format!(r#"{{"actorId":"a","kind":"agent"{rest}}}"#);
    let wrong = [
        r#"{"actorId":"","kind":"agent"}"#,
        r#"{"actorId":"a"}"#,
        r#"{"actorId":"a","kind":"robot"}"#,
        "7",
    ];
    let wrong_name = actor(r#","name":7"#);
    let wrong: Vec<Option<&str>> =
        wrong.into_iter().map(Some).chain([None, Some("null"), Some(&wrong_name)]).collect();
    let right =
        [actor(r#","name":"A","meta":{"x":1}"#), actor(r#","other":1"#), actor(r#","name":null"#)];
    judges("/selector", &wrong, &right.each_ref().map(|text| Some(text.as_str())));
    for kind in ["human", "agent", "system"] {
        assert_eq!(actor_ref(&value(&format!(r#"{{"actorId":"a","kind":"{kind}"}}"#)), true), []);
    }
    assert_eq!(actor_ref(&value(&actor(r#","other":1"#)), true)[0].pointer, "/other");
}

/// CR-03: the query is not empty.
#[test]
fn cr_03_a_query_is_not_empty() {
    judges("/query", &NO_TEXTS, &[Some(r#""x""#)]);
}

/// CR-04: selectedAt is a positive integer.
#[test]
fn cr_04_a_selection_has_a_moment() {
    judges("/selectedAt", &NO_MOMENTS, &[Some("1"), Some("1.0"), Some("1e3")]);
}

/// CR-05: atWorldId is a text that is not empty, and is not looked up.
#[test]
fn cr_05_the_present_world_is_named() {
    judges("/atWorldId", &NO_TEXTS, &[Some(r#""never stored""#)]);
}

/// CR-06: each worldId is valid.
#[test]
fn cr_06_each_memory_points_to_a_world() {
    judges("/selected/0/ref/worldId", &NO_TEXTS, &[Some(r#""x:y/z""#)]);
    assert_eq!(memory_trace(&changed("/selected/0/ref", None), false).len(), 1);
    assert_eq!(memory_ref(&value(r#"{"worldId":""}"#), false).len(), 1);
}

/// CR-07, FP-07: a reason is not empty.
#[test]
fn cr_07_a_reason_is_not_empty() {
    judges("/selected/0/reason", &NO_TEXTS, &[Some(r#""x""#)]);
}

/// CR-08, FP-05, FP-06: confidence is finite, and from 0 to 1.
#[test]
fn cr_08_confidence_is_from_0_to_1() {
    let wrong = [
        None,
        Some("null"),
        Some("-0.1"),
        Some("1.1"),
        Some("1e999"),
        Some(r#""NaN""#),
        Some("true"),
    ];
    judges("/selected/0/confidence", &wrong, &[Some("0"), Some("1"), Some("1.0"), Some("0.5")]);
}

/// CR-09: verified is a boolean.
#[test]
fn cr_09_verified_is_a_boolean() {
    let wrong = [None, Some("null"), Some("1"), Some(r#""true""#)];
    judges("/selected/0/verified", &wrong, &[Some("true"), Some("false")]);
}

/// MR-05, MR-06: no memory, and no evidence, is a valid trace.
#[test]
fn mr_05_mr_06_a_trace_may_be_empty_and_without_evidence() {
    judges("/selected", &[None, Some("null"), Some("{}")], &[Some("[]")]);
    for absent in [None, Some("null")] {
        assert_eq!(memory_trace(&changed("/selected/0/evidence", absent), false), []);
    }
    judges("/selected/0/evidence/method", &NO_TEXTS, &[Some(r#""custom-x""#)]);
    judges("/selected/0/evidence/verifiedAt", &NO_MOMENTS, &[]);
    judges("/selected/0/evidence/verifiedBy", &[None, Some("7")], &[]);
    let faults = verification_evidence(&value("{}"), false);
    assert_eq!(faults.len(), 3);
    assert_eq!(verification_proof(&value("{}"), false)[0].pointer, "/method");
    assert_eq!(selection_result(&value(r#"{"selected":[],"selectedAt":1}"#), true), []);
    assert_eq!(selected_memory(&value("7"), false).len(), 4);
}

#[test]
fn members_that_nobody_knows_are_faults_of_requests_only() {
    for pointer in
        ["/x", "/selector/x", "/selected/0/x", "/selected/0/ref/x", "/selected/0/evidence/x"]
    {
        let trace = changed(pointer, Some("1"));
        assert_eq!(memory_trace(&trace, false), []);
        let faults = memory_trace(&trace, true);
        assert_eq!((faults.len(), faults[0].pointer.as_str()), (1, pointer));
    }
    // Members of a proof and of an actor's `meta` are free.
    for pointer in ["/selected/0/evidence/proof/x", "/selector/meta"] {
        assert_eq!(memory_trace(&changed(pointer, Some("{}")), true), []);
    }
}

#[test]
fn three_faults_are_told_as_three() {
    let text = r#"{"selector":{"actorId":"a","kind":"agent"},"query":"q","selectedAt":0,"atWorldId":"w",
        "selected":[{"ref":{"worldId":"w-1"},"reason":"","confidence":1.5,"verified":true}]}"#;
    let faults = memory_trace(&value(text), false);
    assert_eq!(faults.len(), 3, "{faults:?}");
    assert_eq!(faults.iter().filter(|fault| fault.text.starts_with("selected[0]: ")).count(), 2);
}

/// CR-19, CR-20, FP-10, FP-11: what a verifier makes has no time and no actor at any depth.
#[test]
fn cr_19_cr_20_proofs_hold_no_time_and_no_actor() {
    fn names(value: &Value, into: &mut BTreeSet<String>) {
        match value {
            Value::Object(map) => map.iter().for_each(|(name, value)| {
                into.insert(name.into());
                names(value, into);
            }),
            Value::Array(items) => items.iter().for_each(|item| names(item, into)),
            _ => {}
        }
    }
    let keys = keys();
    let world = with_metadata(&format!(r#"{{"contentHash":"{STRIPPED_HASH}"}}"#));
    let mut found = BTreeSet::new();
    for method in Method::ALL {
        let verifier = Verifier::new(&keys, method).with_path_of("createdAt");
        names(&verifier.prove("w-1", &world).to_value(), &mut found);
    }
    let expected = "alg canon computedHash computedRoot error expectedHash hash leafHash method pathProof position \
                    proof publicKey siblings signature valid worldId";
    assert_eq!(found.into_iter().collect::<Vec<_>>().join(" "), expected);
}

fn request(rest: &str) -> Result<SelectionRequest, Vec<Fault>> {
    let text = format!(
        r#"{{"query":"q","atWorldId":"w","selector":{{"actorId":"a","kind":"agent"}}{rest}}}"#
    );
    SelectionRequest::from_value(&value(&text), &["filter"])
}

#[test]
fn a_request_is_read_or_refused_where_it_is_wrong() {
    let read = request(r#","filter":{},"constraints":{"maxResults":1.0,"minConfidence":0.5,"timeRange":{"after":1}}"#).unwrap();
    let constraints = Constraints {
        max_results: 1,
        min_confidence: Some(0.5),
        after: Some(1),
        ..Default::default()
    };
    assert_eq!(read.constraints, constraints);
    assert_eq!(request("").unwrap().constraints.max_results, DEFAULT_RESULTS);
    assert_eq!(request(r#","constraints":{"maxResults":0}"#).unwrap().constraints.max_results, 0);
    for (rest, pointer) in [
        (r#","x":1"#, "/x"),
        (r#","constraints":7"#, "/constraints"),
        (r#","constraints":{"x":1}"#, "/constraints/x"),
        (r#","constraints":{"maxResults":-1}"#, "/constraints/maxResults"),
        (r#","constraints":{"maxResults":1.5}"#, "/constraints/maxResults"),
        (r#","constraints":{"maxResults":1001}"#, "/constraints/maxResults"),
        (r#","constraints":{"minConfidence":1.1}"#, "/constraints/minConfidence"),
        (r#","constraints":{"minConfidence":"0.5"}"#, "/constraints/minConfidence"),
        (r#","constraints":{"requireVerified":1}"#, "/constraints/requireVerified"),
        (r#","constraints":{"timeRange":{"after":"now"}}"#, "/constraints/timeRange/after"),
        (r#","constraints":{"timeRange":{"since":1}}"#, "/constraints/timeRange/since"),
    ] {
        let faults = request(rest).unwrap_err();
        assert_eq!((faults.len(), faults[0].pointer.as_str()), (1, pointer), "{rest}");
    }
    let faults = SelectionRequest::from_value(&value("{}"), &[]).unwrap_err();
    let told: Vec<&str> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
    assert_eq!(told, ["/query", "/atWorldId", "/selector"]);
}

#[test]
fn a_time_range_is_strict_on_both_sides() {
    let range = Constraints { after: Some(10), before: Some(20), ..Default::default() };
    for (at, is_in) in
        [(Some(10), false), (Some(11), true), (Some(19), true), (Some(20), false), (None, false)]
    {
        assert_eq!(range.is_in_range(at), is_in, "{at:?}");
    }
    assert!(Constraints::default().is_in_range(None));
}

/// M-2, CR-01: a trace travels at `trace.context.memory`.
#[test]
fn m_02_cr_01_a_trace_is_attached_and_found() {
    let request = value(
        r#"{"query":"dock","atWorldId":"w-9","selector":{"actorId":"agent-1","kind":"agent"}}"#,
    );
    let result = value(r#"{"selectedAt":5,"selected":[]}"#);
    let trace = create(&request, &result);
    assert_eq!(memory_trace(&trace, true), []);
    assert_eq!(
        json::to_string(&trace),
        r#"{"selector":{"actorId":"agent-1","kind":"agent"},"query":"dock","selectedAt":5,"atWorldId":"w-9","selected":[]}"#
    );
    for (before, after) in [
        (
            r#"{"proposalId":"p1"}"#,
            r#"{"proposalId":"p1","trace":{"summary":"memory used","context":{"memory":T}}}"#,
        ),
        (
            r#"{"trace":{"summary":"s","context":{"x":1}}}"#,
            r#"{"trace":{"summary":"s","context":{"x":1,"memory":T}}}"#,
        ),
        (
            r#"{"trace":{"summary":"s","reasoning":"r","context":null}}"#,
            r#"{"trace":{"summary":"s","reasoning":"r","context":{"memory":T}}}"#,
        ),
        (r#"{"trace":null}"#, r#"{"trace":{"summary":"memory used","context":{"memory":T}}}"#),
    ] {
        let before = value(before);
        assert!(!has_trace(&before));
        let attached = attach_to_proposal(&before, &trace).unwrap();
        assert_eq!(json::to_string(&attached), after.replace('T', &json::to_string(&trace)));
        assert_eq!(get_from_proposal(&attached), Some(&trace));
        assert_eq!(attach_to_proposal(&attached, &trace), Err(AttachFault::Taken));
    }
    for (text, pointer) in
        [("7", ""), (r#"{"trace":7}"#, "/trace"), (r#"{"trace":{"context":[]}}"#, "/trace/context")]
    {
        assert_eq!(
            attach_to_proposal(&value(text), &trace),
            Err(AttachFault::NoObject(pointer.into()))
        );
    }
    let broken = value(r#"{"trace":{"context":{"memory":7}}}"#);
    assert!(!has_trace(&broken));
    assert_eq!(attach_to_proposal(&broken, &trace), Err(AttachFault::Taken));
    assert!(has_trace(&value(r#"{"trace":{"context":{"memory":{}}}}"#)), "a broken one is one");
}

fn proposal(trace: &Value) -> Value {
    attach_to_proposal(&value(r#"{"proposalId":"p1","submittedAt":1700000000002}"#), trace).unwrap()
}

fn judged(proposal: &Value, policy: &str) -> Value {
    evaluate(proposal, &Policy::from_value(&value(policy)).unwrap(), &keys())
}

fn accepts(proposal: &Value, policy: &str) -> bool {
    judged(proposal, policy).get("accept").and_then(Value::as_bool).unwrap()
}

/// M-12, CR-21, FP-17: an Authority rebuilds the proof from method and proof alone.
#[test]
fn m_12_cr_21_a_proof_is_taken_out_of_its_evidence() {
    let evaluation = judged(&proposal(&trace_value()), "{}");
    assert_eq!(
        json::to_string(&evaluation),
        r#"{"present":true,"valid":true,"errors":[],"policy":[{"rule":"requireTrace","ok":true},{"rule":"selectedBeforeSubmitted","ok":true}],"proofs":[{"index":0,"worldId":"w-1","method":"signature","valid":true,"bound":true}],"accept":true}"#
    );
    let trace = trace_value();
    let evidence = trace.pointer("/selected/0/evidence").unwrap();
    let proof = Proof::extract(evidence).unwrap().to_value();
    assert_eq!(proof.as_object().unwrap().keys().collect::<Vec<_>>(), ["method", "proof"]);
}

#[test]
fn evidence_moved_to_another_reference_is_not_bound() {
    let moved = proposal(&changed("/selected/0/ref/worldId", Some(r#""w-2""#)));
    let evaluation = judged(&moved, "{}");
    let proof = evaluation.pointer("/proofs/0").unwrap();
    assert_eq!(
        json::to_string(proof),
        r#"{"index":0,"worldId":"w-2","method":"signature","valid":true,"bound":false}"#
    );
    assert!(!accepts(&moved, "{}"));
}

/// M-3, CR-10: a selection ends before its Proposal is submitted.
#[test]
fn m_03_cr_10_a_selection_comes_before_its_submission() {
    for (at, accepted) in
        [("1700000000001", true), ("1700000000002", true), ("1700000000003", false)]
    {
        assert_eq!(accepts(&proposal(&changed("/selectedAt", Some(at))), "{}"), accepted, "{at}");
    }
}

/// SR-01, SR-03, SR-04: a risky intent needs verified memories with evidence that cannot be made up.
#[test]
fn sr_01_sr_03_sr_04_risky_intents_need_proofs() {
    let risky = r#"{"highRisk":true}"#;
    assert!(accepts(&proposal(&trace_value()), risky));
    for (pointer, new) in [
        ("/selected/0/verified", Some("false")),
        ("/selected/0/evidence", None),
        ("/selected/0/evidence/method", Some(r#""existence""#)),
        ("/selected/0/evidence/method", Some(r#""hash""#)),
    ] {
        let proposal = proposal(&changed(pointer, new));
        assert!(!accepts(&proposal, risky), "{pointer} {new:?}");
    }
    let existence = proposal(&changed("/selected/0/evidence/method", Some(r#""existence""#)));
    assert!(
        !accepts(&existence, r#"{"highRisk":true,"methods":["existence"]}"#),
        "anybody can write that"
    );
}

/// MR-01: each rule of a policy is judged by the trace alone.
#[test]
fn mr_01_each_rule_of_a_policy_is_judged() {
    let proposal = proposal(&trace_value());
    for (policy, accepted) in [
        (r#"{"maxSelected":1}"#, true),
        (r#"{"maxSelected":0}"#, false),
        (r#"{"minConfidence":0.7}"#, true),
        (r#"{"minConfidence":0.71}"#, false),
        (r#"{"selectors":["agent-1"]}"#, true),
        (r#"{"selectors":["agent-2"]}"#, false),
        (r#"{"maxAgeMs":10,"now":1700000000011}"#, true),
        (r#"{"maxAgeMs":10,"now":1700000000012}"#, false),
        (r#"{"maxAgeMs":10,"now":1699999999500}"#, true),
        (r#"{"maxAgeMs":10,"now":1600000000000}"#, false),
        (r#"{"maxAgeMs":0}"#, true),
        (r#"{"requireVerified":true}"#, true),
        (r#"{"methods":["signature"]}"#, true),
        (r#"{"methods":["merkle"]}"#, false),
    ] {
        assert_eq!(accepts(&proposal, policy), accepted, "{policy}");
    }
    for (policy, pointer) in [
        ("7", ""),
        (r#"{"maxSelected":-1}"#, "/maxSelected"),
        (r#"{"minConfidence":2}"#, "/minConfidence"),
        (r#"{"selectors":"a"}"#, "/selectors"),
        (r#"{"methods":[7]}"#, "/methods"),
        (r#"{"requireTrace":"no"}"#, "/requireTrace"),
        (r#"{"rules":[]}"#, "/rules"),
    ] {
        assert_eq!(Policy::from_value(&value(policy)).unwrap_err()[0].pointer, pointer, "{policy}");
    }
}

/// FP-02: a Proposal without its trace is not accepted, unless the policy asks for none.
#[test]
fn fp_02_a_trace_that_is_left_out_is_told() {
    let bare = value(r#"{"proposalId":"p1"}"#);
    assert_eq!(
        json::to_string(&judged(&bare, "{}")),
        r#"{"present":false,"valid":true,"errors":[],"policy":[{"rule":"requireTrace","ok":false}],"proofs":[],"accept":false}"#
    );
    assert!(accepts(&bare, r#"{"requireTrace":false}"#));
    let broken = value(r#"{"trace":{"context":{"memory":7}}}"#);
    assert!(!accepts(&broken, r#"{"requireTrace":false}"#));
    let invalid = proposal(&changed("/query", None));
    let evaluation = judged(&invalid, "{}");
    assert_eq!(evaluation.get("valid"), Some(&Value::Bool(false)));
    assert_eq!(evaluation.get("accept"), Some(&Value::Bool(false)));
}

/// Any World: names and texts of every kind, some nested.
fn any_world() -> impl Strategy<Value = World> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    let any_value = leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            proptest::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    });
    let id = any::<String>().prop_filter("a WorldId", |id| is_world_id(id));
    (id, proptest::collection::vec((any::<String>(), any_value), 0..20)).prop_map(
        |(id, members)| {
            let mut map: Map = members.into_iter().collect();
            map.insert("worldId", id);
            World::from_value(Value::Object(map)).expect("all of it is sound")
        },
    )
}

/// The World with its members in another order.
fn reversed(world: &World) -> World {
    let map = world.value().as_object().unwrap();
    let mut members: Vec<(String, Value)> = map.clone().into_iter().collect();
    members.reverse();
    World::from_value(Value::Object(members.into_iter().collect())).unwrap()
}

proptest! {
    /// M-8, CR-16, FP-08, FP-09: the same World gives the same proof, whatever the order of its members, and each proof of
    /// any World verifies without the World.
    #[test]
    fn m_08_cr_16_the_same_in_gives_the_same_out(world in any_world(), at in any::<prop::sample::Index>()) {
        let keys = keys();
        let names: Vec<&str> = world.value().as_object().unwrap().keys().collect();
        for method in Method::ALL {
            let verifier = Verifier::new(&keys, method).with_path_of(names[at.index(names.len())]);
            let proven = verifier.prove(world.id(), &world);
            prop_assert_eq!(&proven, &verifier.prove(world.id(), &reversed(&world)));
            prop_assert_eq!(&proven, &verifier.prove(world.id(), &world.clone()));
            if proven.valid {
                prop_assert!(verifier.verify_proof(proven.proof.as_ref().unwrap()));
            }
        }
    }

    /// A World that states its own digests is proven by each method, and with one of its members changed by none.
    #[test]
    fn a_changed_world_is_not_proven(world in any_world()) {
        let keys = keys();
        let mut map = world.value().as_object().unwrap().clone();
        map.insert("metadata", Map::new());
        let bare = World::from_value(Value::Object(map.clone())).unwrap();
        let mut metadata = Map::new();
        metadata.insert("contentHash", hex(&bare.hash()));
        metadata.insert("merkleRoot", hex(&bare.root()));
        map.insert("metadata", metadata);
        let stated = World::from_value(Value::Object(map.clone())).unwrap();
        let mut more = map.clone();
        more.insert("one more", true);
        let mut changed = map.clone();
        changed.insert("one more", false);
        let others = [more, changed].map(|map| World::from_value(Value::Object(map)).unwrap());
        prop_assert_ne!(others[0].hash(), others[1].hash());
        for method in [Method::Hash, Method::Merkle, Method::Signature] {
            let verifier = Verifier::new(&keys, method);
            prop_assert!(verifier.prove(stated.id(), &stated).valid);
            for other in &others {
                prop_assert!(!verifier.prove(other.id(), other).valid);
            }
        }
    }

    /// No value panics anything, and what is refused once is refused again.
    #[test]
    fn no_text_of_a_proof_panics(text in "[0-9a-f]{0,70}", method in "hash|merkle|signature|none|x") {
        let data = format!(r#"{{"method":"{method}","proof":{{"alg":"sha-256","canon":"jcs","worldId":"w","computedHash":"{text}","expectedHash":"{text}"}}}}"#);
        let proof = Proof::extract(&value(&data)).unwrap();
        let is_hash = method == "hash" && unhex::<32>(&text).is_some();
        prop_assert_eq!(keys().verify(&proof), is_hash);
    }
}

#[test]
fn faults_are_collected_up_to_a_bound() {
    let many = alloc::vec!["0"; 50_000].join(",");
    let trace = value(&alloc::format!(r#"{{"selected":[{many}]}}"#));
    assert_eq!(memory_trace(&trace, true).len(), MAX_FAULTS);
    let names: Vec<_> = (0..500).map(|i| alloc::format!(r#""n{i}":1"#)).collect();
    let unknown = value(&alloc::format!("{{{}}}", names.join(",")));
    assert_eq!(memory_ref(&unknown, true).len(), MAX_FAULTS);
    assert_eq!(Policy::from_value(&unknown).unwrap_err().len(), MAX_FAULTS);
    assert!(SelectionRequest::from_value(&unknown, &[]).unwrap_err().len() <= MAX_FAULTS + 1);
    let methods = |count| {
        let methods = alloc::vec![r#""hash""#; count].join(",");
        Policy::from_value(&value(&alloc::format!(r#"{{"methods":[{methods}]}}"#)))
    };
    assert!(methods(64).is_ok());
    assert_eq!(methods(65).unwrap_err()[0].pointer, "/methods");
}

/// D9 of the reference: evidence by `existence` is never bound, whatever stands beside the word.
#[test]
fn evidence_by_existence_is_never_accepted() {
    for proof in ["", r#","proof":{"worldId":"w-1"}"#, r#","proof":null"#] {
        let evidence = alloc::format!(
            r#"{{"method":"existence"{proof},"verifiedAt":1,"verifiedBy":{{"actorId":"a","kind":"agent"}}}}"#
        );
        let proposal = proposal(&changed("/selected/0/evidence", Some(&evidence)));
        let policy = r#"{"methods":["existence"],"requireVerified":true}"#;
        assert!(!accepts(&proposal, policy), "{proof}");
        let judged = judged(&proposal, "{}");
        assert_eq!(judged.get("accept"), Some(&false.into()), "{proof}");
        let is_held =
            |name| judged.pointer(&alloc::format!("/proofs/0/{name}")) == Some(&true.into());
        assert!(!(is_held("valid") && is_held("bound")), "{judged}");
    }
}
