//! Kept memories reach the memory, however busy or full that is.
//!
//! Invariant 21 of ARCHITECTURE.md.

use std::path::Path;
use std::sync::Mutex;

use omir_core::decode::Limits;
use omir_core::json;
use omir_core::operation::Operation;
use omir_core::value::Map;

use super::*;
use crate::stamp::Stamp;

/// A memory that is busy at first, refuses what is called `bad`, and reads and writes versions and
/// references as the daemon does.
#[derive(Default)]
struct TestMemory {
    stored: Mutex<HashMap<String, Value>>,
    /// Resources that its disk does not give back.
    damaged: Mutex<HashSet<String>>,
    requests: AtomicU64,
    busy: AtomicU64,
    /// Number of times that another client confirms a record just after it was looked at.
    confirmed: AtomicU64,
}

fn refusal(code: Code) -> Refusal {
    Refusal { code, message: String::new(), path: String::new() }
}

fn is_left(count: &AtomicU64) -> bool {
    count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok()
}

fn version(value: &Value) -> u64 {
    value.get("version").and_then(Value::as_u64).unwrap_or(1)
}

impl TestMemory {
    fn holding(resources: impl IntoIterator<Item = Value>) -> Arc<Self> {
        let memory = Self::default();
        let named = resources.into_iter().map(|value| (reference(&value).unwrap(), value));
        memory.stored.lock().unwrap().extend(named);
        Arc::new(memory)
    }

    fn look(&self, name: &str) -> Option<Value> {
        self.stored.lock().unwrap().get(name).cloned()
    }
}

impl Memory for TestMemory {
    fn remember(&self, resources: Vec<Value>, _: Option<&str>) -> Result<Value, Refusal> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        if is_left(&self.busy) {
            return Err(refusal(Code::Busy));
        }
        let named = resources.into_iter().map(|value| (reference(&value).unwrap(), value));
        let named: Vec<(String, Value)> = named.collect();
        assert!(named.iter().all(|(name, _)| !name.contains("bug")), "as a bug would");
        if named.iter().any(|(name, _)| name.contains("bad")) {
            return Err(refusal(Code::InvalidResource));
        }
        let damaged = self.damaged.lock().unwrap();
        if named.iter().any(|(name, _)| damaged.contains(name)) {
            return Err(refusal(Code::Internal));
        }
        let mut stored = self.stored.lock().unwrap();
        let mut next = stored.clone();
        for (name, mut value) in named.iter().cloned() {
            let refs = value.pointer("/entityRefs/0/ref").and_then(Value::as_str);
            let is_there = |target: &str| {
                stored.contains_key(target)
                    || damaged.contains(target)
                    || named.iter().any(|(name, _)| name == target)
            };
            if !refs.is_none_or(is_there) {
                return Err(refusal(Code::InvalidResource));
            }
            if let Some(before) = stored.get(&name)
                && value.get("resourceType").and_then(Value::as_str) == Some("MemoryRecord")
            {
                if value.get("version").is_some() && version(&value) < version(before) {
                    return Err(refusal(Code::Conflict));
                }
                value.as_object_mut().unwrap().insert("version", version(before) + 1);
            }
            next.insert(name, value);
        }
        *stored = next;
        Ok(Value::Null)
    }

    fn get(&self, reference: &str) -> Result<Stored, Refusal> {
        if self.damaged.lock().unwrap().contains(reference) {
            return Ok(Stored::Damaged("its checksum is wrong".to_owned()));
        }
        let mut stored = self.stored.lock().unwrap();
        let Some(value) = stored.get_mut(reference) else { return Ok(Stored::Nothing) };
        let seen = value.clone();
        if reference.starts_with("MemoryRecord/") && is_left(&self.confirmed) {
            let members = value.as_object_mut().unwrap();
            let alpha = members.get("confidence").and_then(|known| known.get("alpha")?.as_f64());
            let confidence: Map = [("alpha", alpha.unwrap_or(1.0) + 1.0), ("beta", 1.0)]
                .into_iter()
                .map(|(name, number)| (name, Value::from(number)))
                .collect();
            members.insert("confidence", confidence);
            members.insert("version", version(&seen) + 1);
        }
        Ok(Stored::Whole(seen))
    }

    fn ask(&self, _: Operation, _: &Map) -> Result<Value, Refusal> {
        Err(refusal(Code::Internal))
    }

    fn import(
        &self,
        _: &Path,
        _: bool,
        _: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Value, Refusal> {
        Err(refusal(Code::Internal))
    }

    fn show(&self, _: Stamp) {}
}

fn value(text: &str) -> Value {
    json::from_slice(text.as_bytes(), &Limits::default()).unwrap()
}

/// A record of a cup, seen so many minutes after eleven.
fn cup(id: &str, minutes: u32) -> Value {
    value(&format!(
        r#"{{"resourceType":"MemoryRecord","id":"{id}","content":"saw a cup",
        "createdAt":"2026-05-30T11:00:00Z","eventTime":"2026-05-30T11:{minutes:02}:00Z",
        "entityRefs":[{{"ref":"Entity/cup"}}]}}"#
    ))
}

fn entity(more: &str) -> Value {
    value(&format!(
        r#"{{"resourceType":"Entity","id":"cup","name":"cup",
        "createdAt":"2026-05-30T11:00:00Z"{more}}}"#
    ))
}

fn job(resource: Value, about: Vec<Value>) -> Job {
    Job::Keep(Box::new(KeptResource {
        resource,
        about,
        seen: 1,
        is_first: true,
        unplaced: None,
        heard: None,
    }))
}

fn keep(id: &str) -> Job {
    job(cup(id, 0), vec![entity("")])
}

fn writer(memory: &Arc<TestMemory>) -> Writer {
    Writer {
        memory: memory.clone(),
        known: HashSet::new(),
        counts: Arc::default(),
        is_stopping: Arc::default(),
        is_hopeless: false,
    }
}

/// Returns the numbers of stored and refused ones.
fn counted(writer: &Writer) -> (u64, u64) {
    let Counts { stored, refused, .. } = &*writer.counts;
    (stored.load(Ordering::Relaxed), refused.load(Ordering::Relaxed))
}

fn record(memory: &Arc<TestMemory>, jobs: Vec<Job>) -> (u64, u64) {
    let recorder = Recorder::start(memory.clone()).unwrap();
    let inlet = recorder.inlet().unwrap();
    jobs.into_iter().for_each(|job| inlet.put(job));
    drop(inlet);
    let counts = recorder.counts.clone();
    drop(recorder);
    (counts.stored.load(Ordering::Relaxed), counts.refused.load(Ordering::Relaxed))
}

#[test]
fn everything_is_stored_before_it_ends_also_by_a_memory_that_is_busy() {
    let memory = Arc::new(TestMemory { busy: AtomicU64::new(3), ..TestMemory::default() });
    let jobs = (0..600).map(|n| keep(&format!("cup-{n}"))).collect();
    assert_eq!(record(&memory, jobs), (600, 0));
    // With the entity they are about, and many at a time.
    assert_eq!(memory.stored.lock().unwrap().len(), 601);
    assert!(memory.requests.load(Ordering::Relaxed) < 600);
}

#[test]
fn what_is_refused_takes_nothing_else_with_it() {
    let memory = Arc::new(TestMemory::default());
    let jobs = vec![keep("a"), keep("bad"), keep("b")];
    assert_eq!(record(&memory, jobs), (2, 1));
    assert!(memory.look("MemoryRecord/b").is_some());
}

#[test]
fn what_is_known_of_an_entity_is_not_lost_for_a_bare_name() {
    let known = entity(r#","summary":"blue, with a crack""#);
    let memory = TestMemory::holding([known.clone()]);
    record(&memory, vec![keep("a")]);
    assert_eq!(memory.look("Entity/cup"), Some(known));
}

#[test]
fn an_entity_that_is_forgotten_comes_back_with_what_is_seen_next() {
    let memory = Arc::new(TestMemory::default());
    let mut writer = writer(&memory);
    writer.store(&[keep("a")]);
    memory.stored.lock().unwrap().clear();
    writer.store(&[keep("b")]);
    assert_eq!(counted(&writer), (2, 0));
    assert!(memory.look("Entity/cup").is_some() && memory.look("MemoryRecord/b").is_some());
}

#[test]
fn what_is_damaged_holds_nothing_else_up() {
    let memory = TestMemory::holding([entity(""), cup("lost", 0)]);
    memory.damaged.lock().unwrap().insert("MemoryRecord/lost".to_owned());
    let mut writer = writer(&memory);
    writer.store(&[keep("a"), job(cup("lost", 1), vec![entity("")]), keep("b")]);
    assert_eq!(counted(&writer), (2, 1));
    // A memory about a damaged Entity can be kept.
    memory.damaged.lock().unwrap().insert("Entity/cup".to_owned());
    writer.known.clear();
    writer.store(&[keep("c")]);
    assert_eq!(counted(&writer), (3, 1));
}

#[test]
fn after_a_restart_what_is_seen_first_joins_what_is_stored() {
    let known = entity(r#","attributes":{"maker":"acme"},"mentionCount":7,"labels":["product"]"#);
    let mut confirmed = cup("a", 0);
    let members = confirmed.as_object_mut().unwrap();
    members.insert("version", 3);
    members.insert("confidence", value(r#"{"alpha":4,"beta":1,"calibrated":0.8}"#));
    let memory = TestMemory::holding([known, confirmed.clone()]);
    let seen = entity(
        r#","summary":"on the memory","mentionCount":1,"lastSeenAt":"2026-05-30T12:00:00Z""#,
    );
    let mut writer = writer(&memory);
    // A latched message that is played back, and a rule that makes Entities.
    writer.store(&[keep("a"), job(seen, Vec::new())]);
    assert_eq!(memory.look("MemoryRecord/a"), Some(confirmed), "it tells of that sight already");
    let cup = memory.look("Entity/cup").unwrap();
    assert_eq!(cup.get("summary"), Some(&"on the memory".into()));
    assert_eq!(cup.get("mentionCount"), Some(&8.into()));
    assert_eq!(cup.pointer("/attributes/maker"), Some(&"acme".into()));
    assert_eq!(cup.get("createdAt"), Some(&"2026-05-30T11:00:00Z".into()));
}

#[test]
fn what_others_say_meanwhile_is_not_lost() {
    let memory = TestMemory::holding([entity(""), cup("a", 0)]);
    memory.confirmed.store(2, Ordering::Relaxed);
    let mut writer = writer(&memory);
    writer.known.insert("Entity/cup".to_owned());
    writer.store(&[job(cup("a", 5), vec![entity("")])]);
    assert_eq!(counted(&writer), (1, 0));
    let stored = memory.look("MemoryRecord/a").unwrap();
    assert_eq!(stored.pointer("/confidence/alpha").and_then(Value::as_f64), Some(3.0));
    assert_eq!(stored.get("eventTime"), Some(&"2026-05-30T11:05:00Z".into()));
    // And so with what was only counted.
    memory.confirmed.store(1, Ordering::Relaxed);
    let last = "2026-05-30T11:06:00Z".parse().unwrap();
    let untold = UnreportedSightings {
        reference: "MemoryRecord/a".to_owned(),
        seen: 9,
        last: Stamp::from_timestamp(last).unwrap(),
        heard: None,
        late: None,
    };
    writer.store(&[Job::Tell(untold)]);
    assert_eq!(counted(&writer), (2, 0));
    let stored = memory.look("MemoryRecord/a").unwrap();
    assert_eq!(stored.pointer("/confidence/alpha").and_then(Value::as_f64), Some(4.0));
    assert_eq!(stored.pointer("/extension/0/valueJson/count"), Some(&11.into()));
}

#[test]
fn a_panic_is_counted_and_not_the_end() {
    let memory = TestMemory::holding([]);
    let recorder = Recorder::start(memory.clone()).unwrap();
    let inlet = recorder.inlet().unwrap();
    inlet.put(keep("bug"));
    while recorder.counts.refused.load(Ordering::Relaxed) == 0 {
        std::thread::yield_now();
    }
    inlet.put(keep("after"));
    drop(inlet);
    drop(recorder);
    assert!(memory.look("MemoryRecord/after").is_some());
}

#[test]
fn the_memory_dates_what_is_new_and_nothing_else() {
    let memory = TestMemory::holding([cup("old", 0)]);
    let mut writer = writer(&memory);
    let again = job(cup("new", 2), vec![entity("")]);
    writer.store(&[keep("new"), again, job(cup("old", 1), Vec::new())]);
    let created = |name: &str| memory.look(name).unwrap().get("createdAt").cloned();
    assert_eq!((created("MemoryRecord/new"), created("Entity/cup")), (None, None));
    assert_eq!(created("MemoryRecord/old"), cup("old", 0).get("createdAt").cloned());
    let new = memory.look("MemoryRecord/new").unwrap();
    assert_eq!(new.pointer("/extension/0/valueJson/count"), Some(&2.into()));
}
