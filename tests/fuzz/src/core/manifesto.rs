//! Worlds, proofs, traces and Proposals from strangers.

use omir_core::decode::Limits;
use omir_core::manifesto::{
    Keys, Method, Policy, Proof, Verifier, World, evaluate, has_trace, memory_trace,
};
use omir_core::value::{Map, Value};
use omir_core::{jcs, json};

/// Reads any JSON as each of them.
pub fn run(bytes: &[u8]) {
    let limits = Limits { max_depth: 64, ..Limits::default() };
    let Ok(value) = json::from_slice(bytes, &limits) else { return };
    let keys = Keys::signing([7; 32]);
    canonical(&value);
    if let Some(proof) = Proof::extract(&value) {
        let again = Proof::extract(&proof.to_value());
        assert_eq!(again.as_ref(), Some(&proof));
        let holds = keys.verify(&proof);
        // A proof that is no signature can be verified without our key.
        assert!(!holds || Keys::verifying().verify(&proof) || proof.method == "signature");
    }
    world(&value, &keys);
    let is_sound = memory_trace(&value, false).is_empty();
    assert!(is_sound || !memory_trace(&value, true).is_empty());
    let mut context = Map::new();
    context.insert("memory", value.clone());
    let mut trace = Map::new();
    trace.insert("context", context);
    let proposal = Value::Object([("trace", trace)].into_iter().collect());
    let policy = Policy::from_value(&value).unwrap_or_default();
    for proposal in [&value, &proposal] {
        let judged = evaluate(proposal, &policy, &keys);
        let said = |name| judged.get(name).and_then(Value::as_bool);
        assert_eq!(said("present"), Some(has_trace(proposal)));
        assert!(said("accept") == Some(false) || said("valid") == Some(true));
    }
}

/// The canonical form is one: of what it reads back as, too.
fn canonical(value: &Value) {
    let Ok(form) = jcs::to_string(value) else { return };
    let back = json::from_slice(form.as_bytes(), &Limits::default()).expect("it is JSON");
    assert_eq!(jcs::to_string(&back).as_deref(), Ok(form.as_str()));
}

/// A World is proven, and its proof holds; a proof of another one does not prove this one.
fn world(value: &Value, keys: &Keys) {
    let Ok(world) = World::from_value(value.clone()) else { return };
    for method in Method::ALL {
        let proven = Verifier::new(keys, method).prove(world.id(), &world);
        let holds = proven.proof.as_ref().is_some_and(|proof| keys.verify(proof));
        assert_eq!(holds, proven.valid, "{proven:?}");
    }
    let names = world.value().as_object().expect("a World is an object").keys();
    for name in names.take(8) {
        let proof =
            Verifier::new(keys, Method::Merkle).with_path_of(name).prove(world.id(), &world);
        assert!(proof.proof.is_some(), "{name}");
    }
}
