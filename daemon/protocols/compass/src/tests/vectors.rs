//! The thread that has vectors made, and what it leaves to others: memories of clients, time, money and the card.

use std::sync::atomic::Ordering;
use std::sync::mpsc;

use omird_embedding::{EMBEDDING_URL, Given, Vector};
use omird_engine::{RequestLimits, Settings as EngineSettings};
use omird_router::Reached;

use super::meaning::*;
use super::*;
use crate::model::embedding::hash_of;
use crate::names::Sort;
use crate::similarity::{Vectors, similarities};
use crate::state::Memory;
use crate::store::{Batch, Search, Shape, Sketch, Store, Understood};

/// States a vector on a memory, as a client does that does not say what it was made of.
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

/// Has the server answer again when a test ends, however it does: else the threads of the test would wait for good.
struct Released<'s>(&'s Server);

impl Drop for Released<'_> {
    fn drop(&mut self) {
        *self.0.held.lock().unwrap() = None;
    }
}

#[test]
fn no_question_waits_for_a_summary() {
    let server = Arc::new(Server::default());
    let rig = beside(&server, settings());
    remember(&rig, "m1", "A red mug stands by the sink.");
    wait_until("a vector", || !vectors_of(&rig, "m1").is_empty());
    found_by_meaning(&rig, "where is my cup", "m1");
    for task in ["t1", "t2", "t3"] {
        let params = format!(r#"{{"task_id":"{task}","content":"The robot drove to the shelf."}}"#);
        rig.ask("memory.store", &params);
    }
    std::thread::scope(|threads| {
        let released = Released(&server);
        *server.held.lock().unwrap() = Some("/chat/completions");
        let asked = |path: &str| {
            server.asked.lock().unwrap().iter().filter(|(asked, _)| asked == path).count()
        };
        for task in ["t1", "t2", "t3"] {
            let params = format!(r#"{{"task_id":"{task}"}}"#);
            let rig = &rig;
            threads.spawn(move || rig.ask("memory.complete_stage", &params));
        }
        wait_until("all threads wait for summaries", || asked("/chat/completions") == 2);
        let (tell, told) = mpsc::channel();
        let question = &rig;
        threads.spawn(move || tell.send(found(question, "is the battery full")));
        let answer = told.recv_timeout(Duration::from_secs(10));
        drop(released);
        let answer = answer.expect("a question waits for a summary");
        assert_eq!(text(&answer, "/meta/similarity"), "meaning");
    });
}

#[test]
fn no_question_waits_for_a_batch_of_vectors_or_is_refused_for_one() {
    let server = Arc::new(Server::default());
    let rig = beside(&server, settings());
    remember(&rig, "m1", "A red mug stands by the sink.");
    wait_until("a vector", || !vectors_of(&rig, "m1").is_empty());
    found_by_meaning(&rig, "where is my cup", "m1");
    let released = Released(&server);
    *server.held.lock().unwrap() = Some("entrance");
    remember(&rig, "m2", "Somebody locked the entrance.");
    let sent = |text: &str| server.texts().iter().any(|sent| sent == text);
    wait_until("the batch is under way", || sent("Somebody locked the entrance."));
    let answer = found(&rig, "is the battery full");
    assert_eq!(text(&answer, "/meta/similarity"), "meaning");
    assert!(vectors_of(&rig, "m2").is_empty(), "the batch is still under way");
    // A refusal of the batch does not count as one of questions.
    *server.fault.lock().unwrap() = Some(Reached::Refused);
    drop(released);
    wait_until("the batch is refused", || server.ended.load(Ordering::Acquire) == server.calls());
    std::thread::sleep(Duration::from_millis(50));
    *server.fault.lock().unwrap() = None;
    let answer = found(&rig, "is the mug clean");
    assert_eq!(text(&answer, "/meta/similarity"), "meaning");
}

#[test]
fn a_vector_counts_before_the_engine_has_read_it_in() {
    let server = Arc::new(Server::default());
    let rig = beside(&server, settings());
    remember(&rig, "m1", "A red mug stands by the sink.");
    remember(&rig, "m2", "Somebody locked the entrance.");
    wait_until("vectors", || ["m1", "m2"].iter().all(|id| !vectors_of(&rig, id).is_empty()));
    let store = Store::new(&rig.engine, omird_router::DEFAULT_TENANT);
    // As before it is read in: the search compares words, and no vectors.
    let task = store.name(Sort::TaskHandle, "t1").unwrap();
    let search = Search { text: Some("red mug".to_owned()), newest: false, ..Search::of(task) };
    let ranked = |text: &str, model: &str, size: usize, floor: f64| {
        let mut numbers = meaning(text).to_vec();
        numbers.resize(size, 0.0);
        let vector = Vector::of(&numbers).unwrap();
        let question = Understood { model: model.to_owned(), vector };
        let sketches: Vec<Sketch> = store.sketches(&search).unwrap();
        assert_eq!(sketches.len(), 1, "words find m1 alone");
        let one = sketches[0].candidate(Some(&question), floor);
        (one.has_vector, similarities(&[one], Vectors::OfServer)[0])
    };
    let is_near = |found: (bool, f64), expected: (bool, f64)| {
        assert!(found.0 == expected.0 && (found.1 - expected.1).abs() < 0.01, "{found:?}");
    };
    is_near(ranked("cup", "made-up", 3, 0.15), (true, 1.0));
    is_near(ranked("door", "made-up", 3, 0.15), (true, 0.5));
    is_near(ranked("door", "another", 3, 0.15), (false, 1.0));
    is_near(ranked("door", "made-up", 4, 0.15), (false, 1.0));
    // The rule of the engine for what is too far off is kept.
    is_near(ranked("door", "made-up", 3, 0.05), (true, 0.55));
}

/// Remembers so many memories before there is a server, so that its thread finds them all at once.
fn remember_before(rig: &Rig, number: usize, filler: &str) -> Vec<String> {
    let ids: Vec<String> = (0..number).map(|n| format!("m{n}")).collect();
    for id in &ids {
        remember(rig, id, &format!("Box {id} stands beside the charger.{filler}"));
    }
    ids
}

/// Returns a protocol without a server, which puts no memory aside.
fn unbounded() -> (Rig, Settings) {
    let settings = Settings { episodic_memory_capacity: 0, ..settings() };
    (Rig::with(Settings { embedding_model: None, ..settings.clone() }), settings)
}

#[test]
fn a_request_of_too_many_texts_is_halved() {
    let server = Arc::new(Server::default());
    *server.most_texts.lock().unwrap() = Some(6);
    let (mut rig, settings) = unbounded();
    let ids = remember_before(&rig, 40, "");
    rig.compass = Compass::new(&rig.engine, settings, Some(server.clone()));
    // Faster than any rest, so it does not rest between halves.
    let began = Instant::now();
    wait_until("vectors", || all_have_vectors(&rig, &ids));
    assert!(began.elapsed() < crate::model::server::REST);
    let asked = server.asked.lock().unwrap();
    let sizes: Vec<usize> = asked.iter().map(|(_, texts)| texts.len()).collect();
    assert_eq!(sizes[..4], [32, 16, 8, 4], "{sizes:?}");
    assert!(sizes.iter().filter(|size| **size == 1).count() < 10, "not one by one: {sizes:?}");
}

#[test]
fn what_the_money_is_enough_for_is_sent() {
    let server = Arc::new(Server::default());
    let (mut rig, settings) = unbounded();
    let ids = remember_before(&rig, 10, "");
    // All ten would be set aside with more than a dollar, and cost a tenth of one.
    let dear =
        Settings { usd_per_million_embedded: 1000.0, monthly_token_budget_usd: 0.6, ..settings };
    rig.compass = Compass::new(&rig.engine, dear, Some(server.clone()));
    wait_until("vectors", || all_have_vectors(&rig, &ids));
    let asked = server.asked.lock().unwrap();
    assert!(asked.iter().all(|(_, texts)| texts.len() < 5), "{asked:?}");
    let metrics = rig.ask("memory.get_compression_metrics", r#"{"task_id":"t1"}"#);
    let spent = number(&metrics, "/budget/spent_usd");
    assert!(spent > 0.0 && spent <= 0.6, "{spent}");
}

#[test]
fn the_vectors_of_a_request_fit_into_a_write() {
    let server = Arc::new(Server::default());
    let (mut rig, settings) = unbounded();
    let ids = remember_before(&rig, 24, &" It is a box like any other.".repeat(60));
    let stored = kept(&rig, "m0").bytes.len();
    let limits = RequestLimits { max_payload_bytes: 32 << 10, ..RequestLimits::default() };
    rig.engine.reconfigure(EngineSettings { limits, ..EngineSettings::default() });
    rig.compass = Compass::new(&rig.engine, settings, Some(server.clone()));
    wait_until("vectors", || all_have_vectors(&rig, &ids));
    let asked = server.asked.lock().unwrap();
    assert_eq!(asked.iter().map(|(_, texts)| texts.len()).sum::<usize>(), 24, "each text once");
    let most = asked.iter().map(|(_, texts)| texts.len()).max().unwrap();
    assert!(most > 1 && most * stored <= 32 << 10, "{most} of {stored} bytes");
}

#[test]
fn a_server_that_answers_with_no_vectors_is_left_alone_by_questions() {
    let server = Arc::new(Server::default());
    let rig = beside(&server, settings());
    remember(&rig, "m1", "A red mug stands by the sink.");
    wait_until("a vector", || !vectors_of(&rig, "m1").is_empty());
    found_by_meaning(&rig, "where is my cup", "m1");
    *server.is_broken.lock().unwrap() = true;
    let calls = server.calls();
    for question in ["is the sink wet", "is the sink dry", "where is the sink"] {
        let answer = found(&rig, question);
        assert_eq!(text(&answer, "/meta/similarity"), "words");
        assert!(is(&answer, "/meta/degraded"));
    }
    assert_eq!(server.calls() - calls, 1, "each of them is paid for");
}

#[test]
fn tenants_share_a_request_and_nothing_else() {
    let server = Arc::new(Server::default());
    let mut rig = Rig::new();
    let other = Caller { tenant: Some("other".into()), ..agent("a1") };
    remember(&rig, "m1", "A red mug stands by the sink.");
    let params = r#"{"task_id":"t1","memory_id":"m1","content":"Somebody locked the entrance."}"#;
    assert!(rig.response(&other, "memory.store", params).get("result").is_some());
    rig.compass = Compass::new(&rig.engine, settings(), Some(server.clone()));
    let made_of = |tenant: &str| {
        let store = Store::new(&rig.engine, tenant);
        let kept = store.get::<Memory>(Sort::Memory, "m1").unwrap().unwrap();
        let stated = kept.record.extension.into_iter().flatten();
        let mut stated = stated.filter(|one| one.url == EMBEDDING_URL);
        stated.find_map(|one| Some(text(&one.value_json?, "/textHash").to_owned()))
    };
    let both = ["A red mug stands by the sink.", "Somebody locked the entrance."];
    wait_until("vectors", || {
        let hashes = both.map(|text| Some(hash_of(text)));
        [made_of(omird_router::DEFAULT_TENANT), made_of("other")] == hashes
    });
    let mut texts = server.texts();
    texts.sort();
    assert_eq!((server.calls(), texts), (1, both.map(str::to_owned).to_vec()));
    // A memory of the one is none of the other, however near it is.
    found_by_meaning(&rig, "where is my cup", "m1");
    for query in ["where is my cup", "which door"] {
        let params = format!(r#"{{"query":"{query}","touch":false}}"#);
        for (caller, content) in [(&agent("a1"), both[0]), (&other, both[1])] {
            let answer = rig.response(caller, "memory.retrieve", &params);
            for one in list(&answer, "/result/memories") {
                assert_eq!(text(one, "/memory/content"), content, "{query}");
            }
        }
    }
}

#[test]
fn a_read_only_daemon_spends_nothing_and_changes_nothing() {
    let server = Arc::new(Server::default());
    let mut rig = beside(&server, settings());
    remember(&rig, "m1", "A red mug stands by the sink.");
    wait_until("a vector", || !vectors_of(&rig, "m1").is_empty());
    rig.engine.stop();
    let read_only = EngineSettings { read_only: true, ..EngineSettings::default() };
    let clock = rig.clock.clone();
    let parts = Parts { settings: read_only, clock, ..parts(rig.dir.path()) };
    rig.engine = Engine::open(parts, &mut |_| {}).unwrap();
    let calls = server.calls();
    let other = Settings { embedding_model: Some("other".to_owned()), ..settings() };
    rig.compass = Compass::new(&rig.engine, other, Some(server.clone()));
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(server.calls(), calls, "no vectors of another model are made");
    // The cost of a question could not be written down.
    rig.compass.reconfigure(settings());
    wait_until("vectors are read in", || is(&found(&rig, "red sink"), "/meta/degraded"));
    assert_eq!(ids(&found(&rig, "red sink")), ["m1"]);
    assert_eq!(server.calls(), calls);
    assert_eq!(kept(&rig, "m1").version, 2);
    // A request that costs nothing needs no lease.
    rig.compass.reconfigure(Settings { usd_per_million_embedded: 0.0, ..settings() });
    let answer = found(&rig, "where is my cup");
    assert_eq!(text(&answer, "/meta/similarity"), "meaning");
    assert_eq!((ids(&answer), server.calls()), (vec!["m1"], calls + 1));
}

#[test]
fn vectors_have_as_many_numbers_as_they_are_asked_to() {
    let server = Arc::new(Server::default());
    let three = Settings { embedding_dimensions: Some(3), ..settings() };
    let rig = beside(&server, three);
    remember(&rig, "m1", "A red mug stands by the sink.");
    wait_until("a vector", || !vectors_of(&rig, "m1").is_empty());
    found_by_meaning(&rig, "where is my cup", "m1");
    assert!(server.dimensions.lock().unwrap().iter().all(|asked| *asked == Some(3)));
    // The server makes three all the same: those are none.
    let calls = server.calls();
    rig.compass.reconfigure(Settings { embedding_dimensions: Some(4), ..settings() });
    wait_until("it is asked for four", || server.calls() == calls + 1);
    assert_eq!(server.dimensions.lock().unwrap().last(), Some(&Some(4)));
    let answer = found(&rig, "red mug");
    assert_eq!(text(&answer, "/meta/similarity"), "words", "none is of that size");
    assert!((number(&answer, "/memories/0/parts/sim") - 1.0).abs() < 1e-9, "{answer}");
    assert_eq!(kept(&rig, "m1").version, 2);
    // Those of three are there when they are asked for again.
    rig.compass.reconfigure(settings());
    let answer = found(&rig, "where is my cup");
    assert_eq!(text(&answer, "/meta/similarity"), "meaning");
}

#[test]
fn a_stop_while_a_request_is_out_costs_no_memory() {
    let server = Arc::new(Server::default());
    let mut rig = beside(&server, settings());
    let released = Released(&server);
    *server.held.lock().unwrap() = Some("mug");
    remember(&rig, "m1", "A red mug stands by the sink.");
    wait_until("the request is out", || server.calls() == 1);
    // It does not wait for the server.
    let began = Instant::now();
    rig.engine.stop();
    assert!(began.elapsed() < Duration::from_secs(10));
    drop(released);
    wait_until("the answer", || server.ended.load(Ordering::Acquire) == 1);
    restart(&mut rig, &server, settings());
    wait_until("a vector", || !vectors_of(&rig, "m1").is_empty());
    assert_eq!(server.calls(), 2, "the answer came to a daemon that had stopped");
    let metrics = rig.ask("memory.get_compression_metrics", r#"{"task_id":"t1"}"#);
    assert!(number(&metrics, "/budget/spent_usd") > 0.0, "the first request counts");
}

#[test]
fn those_that_it_was_not_told_of_are_looked_for() {
    let server = Arc::new(Server::default());
    let unbounded = Settings { episodic_memory_capacity: 0, ..settings() };
    let rig = beside(&server, unbounded);
    let released = Released(&server);
    *server.held.lock().unwrap() = Some("Box m0 ");
    // More than there is room for, while the thread waits for the server.
    let mut all = remember_before(&rig, 1, "");
    wait_until("the request is out", || server.calls() == 1);
    for n in 1..1100 {
        let id = format!("m{n}");
        remember(&rig, &id, &format!("Box {id} stands beside the charger."));
        all.push(id);
    }
    drop(released);
    wait_until("all were sent", || server.texts().len() >= 1100);
    wait_until("vectors", || all_have_vectors(&rig, &all));
    assert_eq!(server.texts().len(), 1100, "each once");
}
