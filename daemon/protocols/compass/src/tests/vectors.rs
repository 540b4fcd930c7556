//! The thread that has vectors made, and what it leaves to others: memories of clients, time, money and the card.

use omird_embedding::{EMBEDDING_URL, Given, Vector};

use super::meaning::*;
use super::*;
use crate::embedding::hash_of;
use crate::store::{Batch, Shape, Store};

/// States a vector on a memory as a client does, who does not say what it was made of.
fn state_as_client(rig: &Rig, id: &str, model: &str) {
    let store = Store::new(&rig.engine, omird_router::DEFAULT_TENANT);
    let kept = kept(rig, id);
    let vector = Vector::of(&[1.0, 0.0, 0.0]).unwrap();
    let stated = Given { model: model.to_owned(), vector }.to_extension();
    let shape = Shape { vector: Some(stated), ..Shape::of(&kept.record) };
    let mut batch = Batch::default();
    store.change(&mut batch, &kept, &kept.state, &shape).unwrap();
    store.commit(batch).unwrap();
}

/// Returns the models of the vectors that a memory states.
fn models_of(rig: &Rig, id: &str) -> Vec<String> {
    let stated = kept(rig, id).record.extension.into_iter().flatten();
    let stated = stated.filter(|one| one.url == EMBEDDING_URL);
    stated.map(|one| Given::from_extension(&one).unwrap().model).collect()
}

#[test]
fn the_vector_of_a_client_goes_with_the_text_that_it_was_made_of() {
    let rig = Rig::new();
    remember(&rig, "m1", "A red mug stands by the sink.");
    state_as_client(&rig, "m1", "of-a-client");
    rig.ask("memory.update", r#"{"memory_id":"m1","relevance_score":0.9}"#);
    assert_eq!(models_of(&rig, "m1"), ["of-a-client"], "the text is the same");
    rig.ask("memory.update", r#"{"memory_id":"m1","content":"The battery is empty."}"#);
    assert!(models_of(&rig, "m1").is_empty());
}

#[test]
fn a_text_that_changed_gets_another_vector_than_that_of_a_client() {
    let server = Arc::new(Server::default());
    let mut rig = Rig::new();
    remember(&rig, "m1", "A red mug stands by the sink.");
    state_as_client(&rig, "m1", "made-up");
    rig.compass = Compass::new(&rig.engine, settings(), Some(server.clone()));
    remember(&rig, "m2", "Somebody locked the entrance.");
    wait_until("a vector", || !vectors_of(&rig, "m2").is_empty());
    assert_eq!(server.texts(), ["Somebody locked the entrance."], "a client has made the other");
    rig.ask("memory.update", r#"{"memory_id":"m1","content":"The battery is empty."}"#);
    wait_until("its vector", || vectors_of(&rig, "m1") == [hash_of("The battery is empty.")]);
    assert_eq!(models_of(&rig, "m1"), ["made-up"]);
}
