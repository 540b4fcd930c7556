//! Vectors by a server of models, and by the engine.

use std::sync::atomic::{AtomicUsize, Ordering};

use omird_embedding::{EMBEDDING_URL, Embedder, ModelName};
use omird_router::{ModelClient, ModelFault, Reached};

use super::*;
use crate::model::embedding::TEXT_HASH;
use crate::names::Sort;
use crate::state::Memory;
use crate::store::{Store, Stored};

/// Words of one meaning, which have a direction for themselves.
const MEANINGS: [&[&str]; 3] = [&["mug", "cup"], &["charger", "battery"], &["door", "entrance"]];

pub(super) fn meaning(text: &str) -> [f32; 3] {
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    MEANINGS.map(|words| if says(words) { 1.0 } else { 0.05 })
}

/// The embedder of the engine.
struct Synonyms(ModelName);

impl Embedder for Synonyms {
    fn model(&self) -> &ModelName {
        &self.0
    }

    fn embed(&self, text: &str, out: &mut [f32]) -> bool {
        out.copy_from_slice(&meaning(text));
        true
    }
}

/// A server of models that knows some synonyms.
#[derive(Default)]
pub(super) struct Server {
    /// The path and the texts of each request.
    pub(super) asked: Mutex<Vec<(String, Vec<String>)>>,
    /// The fault that it answers with instead of vectors.
    pub(super) fault: Mutex<Option<Reached>>,
    /// It answers with what are no vectors.
    pub(super) is_broken: Mutex<bool>,
    /// The numbers that each request asks vectors to have, if it does.
    pub(super) dimensions: Mutex<Vec<Option<u64>>>,
    /// Bytes of all requests.
    pub(super) bytes: AtomicUsize,
    /// It refuses requests of more texts.
    pub(super) most_texts: Mutex<Option<usize>>,
    /// Requests that it has answered, or refused.
    pub(super) ended: AtomicUsize,
    /// It answers no request in whose path or texts this stands, as long as it does.
    pub(super) held: Mutex<Option<&'static str>>,
}

impl Server {
    pub(super) fn texts(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().flat_map(|(_, texts)| texts.clone()).collect()
    }

    pub(super) fn calls(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl ModelClient for Server {
    fn post(&self, path: &str, body: Vec<u8>, _: Instant) -> Result<Vec<u8>, ModelFault> {
        let sent = value(&body);
        self.bytes.fetch_add(body.len(), Ordering::AcqRel);
        self.dimensions.lock().unwrap().push(sent.get("dimensions").and_then(Value::as_u64));
        let texts = sent.get("input").and_then(Value::as_array).unwrap_or_default();
        let texts: Vec<String> =
            texts.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect();
        self.asked.lock().unwrap().push((path.to_owned(), texts.clone()));
        let is_held = || {
            self.held.lock().unwrap().is_some_and(|held| {
                path.contains(held) || texts.iter().any(|text| text.contains(held))
            })
        };
        while is_held() {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.ended.fetch_add(1, Ordering::AcqRel);
        let has_too_many = self.most_texts.lock().unwrap().is_some_and(|most| texts.len() > most);
        let refused = has_too_many.then_some(Reached::Refused);
        if let Some(reached) = refused.or(*self.fault.lock().unwrap()) {
            return Err(ModelFault { reached, message: "down".to_owned() });
        }
        if *self.is_broken.lock().unwrap() {
            return Ok(b"{}".to_vec());
        }
        let vector = |text: &String| {
            let numbers = meaning(text).map(|number| number.to_string());
            format!(r#"{{"embedding":[{}]}}"#, numbers.join(","))
        };
        let data: Vec<String> = texts.iter().map(vector).collect();
        Ok(format!(r#"{{"data":[{}]}}"#, data.join(",")).into_bytes())
    }
}

pub(super) fn settings() -> Settings {
    Settings { embedding_model: Some("made-up".to_owned()), ..Settings::default() }
}

pub(super) fn beside(server: &Arc<Server>, settings: Settings) -> Rig {
    let mut rig = Rig::new();
    rig.compass = Compass::new(&rig.engine, settings, Some(server.clone()));
    rig
}

/// Ends the daemon without a word, and starts it again beside a server.
pub(super) fn restart(rig: &mut Rig, server: &Arc<Server>, settings: Settings) {
    rig.restart();
    rig.compass = Compass::new(&rig.engine, settings, Some(server.clone()));
}

pub(super) fn kept(rig: &Rig, id: &str) -> Stored<Memory> {
    let store = Store::new(&rig.engine, omird_router::DEFAULT_TENANT);
    store.get::<Memory>(Sort::Memory, id).unwrap().unwrap()
}

/// Returns the hashes of the texts of the vectors that a memory states.
pub(super) fn vectors_of(rig: &Rig, id: &str) -> Vec<String> {
    let record = kept(rig, id).record;
    let stated = record.extension.iter().flatten().filter(|one| one.url == EMBEDDING_URL);
    let hash = |value: &Value| value.get(TEXT_HASH).and_then(Value::as_str).map(str::to_owned);
    stated.filter_map(|one| hash(one.value_json.as_ref()?)).collect()
}

pub(super) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(30), "not in time: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns true if all memories of these ids state a vector.
pub(super) fn all_have_vectors(rig: &Rig, ids: &[String]) -> bool {
    ids.iter().all(|id| !vectors_of(rig, id).is_empty())
}

pub(super) fn remember(rig: &Rig, id: &str, content: &str) -> Value {
    let params = format!(r#"{{"task_id":"t1","memory_id":"{id}","content":"{content}"}}"#);
    rig.ask("memory.store", &params)
}

pub(super) fn found(rig: &Rig, query: &str) -> Value {
    rig.ask("memory.retrieve", &format!(r#"{{"task_id":"t1","query":"{query}","touch":false}}"#))
}

pub(super) fn ids(answer: &Value) -> Vec<&str> {
    list(answer, "/memories").iter().map(|one| text(one, "/memory/memory_id")).collect()
}

/// Asks until the engine compares the vectors that memories state.
pub(super) fn found_by_meaning(rig: &Rig, query: &str, first: &str) -> Value {
    let answer = || found(rig, query);
    wait_until(query, || ids(&answer()).first() == Some(&first));
    answer()
}

#[test]
fn a_memory_is_found_that_shares_no_word_with_the_question() {
    let server = Arc::new(Server::default());
    let rig = beside(&server, settings());
    remember(&rig, "m1", "A red mug stands by the sink.");
    remember(&rig, "m2", "Somebody locked the entrance.");
    wait_until("vectors", || ["m1", "m2"].iter().all(|id| !vectors_of(&rig, id).is_empty()));
    assert!(server.asked.lock().unwrap().iter().all(|(path, _)| path == "/embeddings"));
    let answer = found_by_meaning(&rig, "where is my cup", "m1");
    assert_eq!(text(&answer, "/meta/similarity"), "meaning");
    assert!(!is(&answer, "/meta/degraded"));
    // No word in common: half of the likeness is the cosine, which is 1.
    assert!((number(&answer, "/memories/0/parts/sim") - 0.5).abs() < 0.01, "{answer}");
    assert_eq!(ids(&found(&rig, "which door"))[0], "m2");
    let calls = server.calls();
    found(&rig, "which door");
    assert_eq!(server.calls(), calls, "the same question is asked once");
    let context = rig.ask("memory.get_context", r#"{"task_id":"t1","query":"which door"}"#);
    assert_eq!(text(&context, "/meta/similarity"), "meaning");
}

#[test]
fn texts_are_sent_in_batches_and_each_once() {
    let server = Arc::new(Server::default());
    // One that is put aside before its turn gets no vector.
    let unbounded = Settings { episodic_memory_capacity: 0, ..settings() };
    let rig = beside(&server, unbounded.clone());
    for n in 0..70 {
        remember(&rig, &format!("m{n}"), &format!("Box {n} stands beside the charger."));
    }
    wait_until("vectors", || (0..70).all(|n| !vectors_of(&rig, &format!("m{n}")).is_empty()));
    let mut texts = server.texts();
    assert!(server.asked.lock().unwrap().iter().all(|(_, texts)| texts.len() <= 32));
    assert_eq!(texts.len(), 70);
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), 70);
    let mut restarted = rig;
    restart(&mut restarted, &server, unbounded);
    remember(&restarted, "m70", "Box 70 stands beside the battery.");
    wait_until("one more", || !vectors_of(&restarted, "m70").is_empty());
    assert_eq!(server.texts().len(), 71, "what has a vector is not sent again");
}

#[test]
fn a_vector_is_no_change_to_whoever_updates_a_memory() {
    let server = Arc::new(Server::default());
    let rig = beside(&server, settings());
    let stored = remember(&rig, "m1", "A red mug stands by the sink.");
    wait_until("a vector", || !vectors_of(&rig, "m1").is_empty());
    assert_eq!((number(&stored, "/version"), kept(&rig, "m1").version), (1.0, 2));
    let before = vectors_of(&rig, "m1");
    let update = r#"{"memory_id":"m1","version":1,"content":"The battery is empty."}"#;
    let changed = rig.ask("memory.update", update);
    assert_eq!(number(&changed, "/version"), 3.0);
    assert_eq!(rig.fault("memory.update", update), -32002, "that was the only one");
    wait_until("the vector of what it says now", || {
        let now = vectors_of(&rig, "m1");
        now.len() == 1 && now != before
    });
    let answer = found_by_meaning(&rig, "charger", "m1");
    let shown = list(&answer, "/memories").first().unwrap();
    for hidden in ["vector_since", "vector_at"] {
        assert!(shown.pointer(&format!("/memory/{hidden}")).is_none(), "{shown}");
    }
}

#[test]
fn any_number_of_vectors_is_no_change_and_a_change_between_them_is_one() {
    let server = Arc::new(Server::default());
    let rig = beside(&server, settings());
    remember(&rig, "m1", "A red mug stands by the sink.");
    remember(&rig, "m2", "Somebody locked the entrance.");
    let both = |version| ["m1", "m2"].iter().all(|id| kept(&rig, id).version == version);
    wait_until("vectors", || both(2));
    for (name, version) in [("second", 3), ("third", 4)] {
        let model = Some(name.to_owned());
        rig.compass.reconfigure(Settings { embedding_model: model, ..settings() });
        wait_until("vectors of another model", || both(version));
    }
    // Something else has changed, and a vector came after it.
    let update = |id: &str, version: u64, relevance: f64| {
        let params =
            format!(r#"{{"memory_id":"{id}","version":{version},"relevance_score":{relevance}}}"#);
        rig.response(&agent("a1"), "memory.update", &params)
    };
    assert_eq!(number(&update("m2", 4, 0.9), "/result/version"), 5.0);
    let model = Some("fourth".to_owned());
    rig.compass.reconfigure(Settings { embedding_model: model, ..settings() });
    wait_until("vectors of another model", || {
        kept(&rig, "m1").version == 5 && kept(&rig, "m2").version == 6
    });
    for seen in 1..=4 {
        assert_eq!(code(&update("m2", seen, 0.1)), -32002, "{seen} is before the change");
    }
    assert_eq!(number(&update("m2", 5, 0.1), "/result/version"), 7.0);
    assert_eq!(code(&update("m1", 6, 0.9)), -32002, "there is no such version yet");
    assert_eq!(number(&update("m1", 1, 0.9), "/result/version"), 6.0);
    for seen in 1..=5 {
        assert_eq!(code(&update("m1", seen, 0.1)), -32002, "{seen} is before the change");
    }
}

#[test]
fn words_find_where_the_server_says_nothing() {
    let server = Arc::new(Server::default());
    let rig = beside(&server, settings());
    remember(&rig, "m1", "A red mug stands by the sink.");
    let before = found(&rig, "red sink");
    assert_eq!(text(&before, "/meta/similarity"), "words", "no memory has a vector yet");
    wait_until("a vector", || !vectors_of(&rig, "m1").is_empty());
    found_by_meaning(&rig, "where is my cup", "m1");
    *server.fault.lock().unwrap() = Some(Reached::NoAnswer);
    assert!(is(&remember(&rig, "m2", "The sink is wet."), "/durable"), "no store waits for it");
    let answer = found(&rig, "wet sink");
    assert_eq!(text(&answer, "/meta/similarity"), "words");
    assert!(is(&answer, "/meta/degraded"));
    assert_eq!(ids(&answer), ["m2", "m1"]);
    let calls = server.calls();
    found(&rig, "another question about the sink");
    // The thread for memories may ask again; a question does not.
    let asked = server.asked.lock().unwrap();
    assert!(asked[calls..].iter().all(|(_, texts)| texts[0] == "The sink is wet."), "{asked:?}");
}

#[test]
fn what_was_not_done_is_done_after_a_start() {
    let server = Arc::new(Server::default());
    *server.is_broken.lock().unwrap() = true;
    let mut rig = beside(&server, settings());
    remember(&rig, "m1", "A red mug stands by the sink.");
    wait_until("it was asked", || server.calls() == 1);
    assert!(vectors_of(&rig, "m1").is_empty());
    *server.is_broken.lock().unwrap() = false;
    restart(&mut rig, &server, settings());
    wait_until("a vector", || !vectors_of(&rig, "m1").is_empty());
    // Another model makes them all again, and takes the place of the one before.
    let other = Settings { embedding_model: Some("other".to_owned()), ..settings() };
    rig.compass.reconfigure(other);
    let model = || {
        let record = kept(&rig, "m1").record;
        let mut stated = record.extension.into_iter().flatten();
        let stated = stated.find(|one| one.url == EMBEDDING_URL);
        stated.and_then(|one| Some(text(&one.value_json?, "/model").to_owned()))
    };
    wait_until("its vector", || model().as_deref() == Some("other"));
    assert_eq!(vectors_of(&rig, "m1").len(), 1);
}

#[test]
fn a_memory_that_is_told_of_twice_is_sent_once() {
    let server = Arc::new(Server::default());
    let rig = beside(&server, settings());
    // Mostly all of it within the time in which the thread gathers.
    remember(&rig, "m1", "A red mug stands by the sink.");
    let update = r#"{"memory_id":"m1","version":1,"content":"The battery is empty."}"#;
    rig.ask("memory.update", update);
    remember(&rig, "m2", "The battery is empty.");
    wait_until("both vectors", || {
        let of = vectors_of(&rig, "m1");
        of.len() == 1 && of == vectors_of(&rig, "m2")
    });
    let texts = server.texts();
    let sent = texts.iter().filter(|text| *text == "The battery is empty.").count();
    assert_eq!(sent, 1, "{texts:?}");
}

#[test]
fn no_start_leads_past_the_cap() {
    let server = Arc::new(Server::default());
    // A token costs a thousandth of a dollar, and the first request is set aside three times: most of the budget. A start
    // takes that for spent.
    let dear =
        Settings { usd_per_million_embedded: 1000.0, monthly_token_budget_usd: 0.2, ..settings() };
    let mut rig = beside(&server, dear.clone());
    remember(&rig, "m1", "A red mug stands by the sink.");
    wait_until("a vector", || !vectors_of(&rig, "m1").is_empty());
    let spent = || {
        let metrics = rig.ask("memory.get_compression_metrics", r#"{"task_id":"t1"}"#);
        number(&metrics, "/budget/spent_usd")
    };
    assert!(spent() > 0.0 && spent() < 0.2, "{}", spent());
    let calls = server.calls();
    restart(&mut rig, &server, dear);
    remember(&rig, "m2", "The entrance is open.");
    // A question asks the server only once there are vectors to compare with.
    wait_until("vectors are read in", || is(&found(&rig, "sink"), "/meta/degraded"));
    assert_eq!(text(&found(&rig, "sink"), "/meta/similarity"), "words");
    std::thread::sleep(Duration::from_millis(600));
    assert!(vectors_of(&rig, "m2").is_empty());
    assert_eq!(server.calls(), calls, "nobody was asked");
    let metrics = rig.ask("memory.get_compression_metrics", r#"{"task_id":"t1"}"#);
    let spent = number(&metrics, "/budget/spent_usd");
    assert!((0.15..0.2).contains(&spent), "{spent}");
}

#[test]
fn without_vectors_an_answer_says_nothing_of_them() {
    let server = Arc::new(Server::default());
    let with_server = beside(&server, Settings::default());
    let alone = Rig::new();
    for rig in [&with_server, &alone] {
        remember(rig, "m1", "A red mug stands by the sink.");
        remember(rig, "m2", "The sink is wet.");
    }
    let [one, other] = [&with_server, &alone].map(|rig| {
        let answer = found(rig, "red sink");
        assert!(answer.pointer("/meta/similarity").is_none());
        list(&answer, "/memories").iter().map(|one| number(one, "/score")).collect::<Vec<_>>()
    });
    assert_eq!(one, other);
    assert_eq!(server.calls(), 0);
}

#[test]
fn the_engine_makes_vectors_too() {
    let rig = Rig::new();
    let model = ModelName { name: "made-up".to_owned(), dims: 3, hash: [0; 32] };
    rig.engine.embed_with(Some(Arc::new(Synonyms(model))));
    remember(&rig, "m1", "Somebody locked the entrance.");
    remember(&rig, "m2", "A red mug stands by the sink.");
    let answer = found_by_meaning(&rig, "where is my cup", "m2");
    assert_eq!(text(&answer, "/meta/similarity"), "meaning");
    assert_eq!(number(&answer, "/memories/0/parts/sim"), 1.0);
    assert!(!is(&answer, "/meta/degraded"));
}
