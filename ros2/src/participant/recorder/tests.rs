use std::path::Path;
use std::sync::Mutex;

use omir_core::value::Map;

use super::*;
use crate::records::Operation;
use crate::stamp::Stamp;

/// A memory that is busy or at fault at first, refuses what is called `bad`, and cannot read what is called
/// `rotten`.
#[derive(Default)]
struct Shelf {
    stored: Mutex<HashMap<String, Value>>,
    requests: AtomicU64,
    busy: AtomicU64,
    faults: AtomicU64,
}

fn refusal(code: &str) -> Refusal {
    Refusal { code: code.to_owned(), message: String::new(), path: String::new() }
}

impl Memory for Shelf {
    fn remember(&self, resources: Vec<Value>, _: Option<&str>) -> Result<Value, Refusal> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let is_left = |count: &AtomicU64| {
            count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok()
        };
        if is_left(&self.busy) {
            return Err(refusal("BUSY"));
        }
        if is_left(&self.faults) {
            return Err(refusal("INTERNAL"));
        }
        let named = resources.into_iter().map(|value| (reference(&value).unwrap(), value));
        let named: Vec<(String, Value)> = named.collect();
        if named.iter().any(|(name, _)| name.contains("bad")) {
            return Err(refusal("INVALID_RESOURCE"));
        }
        self.stored.lock().unwrap().extend(named);
        Ok(Value::Null)
    }

    fn get(&self, reference: &str) -> Result<Option<Value>, Refusal> {
        if reference.contains("rotten") {
            return Err(refusal("INTERNAL"));
        }
        Ok(self.stored.lock().unwrap().get(reference).cloned())
    }

    fn ask(&self, _: Operation, _: &Map) -> Result<Value, Refusal> {
        Err(refusal("INTERNAL"))
    }

    fn import(
        &self,
        _: &Path,
        _: bool,
        _: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Value, Refusal> {
        Err(refusal("INTERNAL"))
    }

    fn show(&self, _: Stamp) {}
}

fn resource(of: &str, id: &str) -> Value {
    let mut map = Map::new();
    map.insert("resourceType", of);
    map.insert("id", id);
    map.insert("content", "a cup");
    map.insert("surface", "cup");
    map.insert("createdAt", "2026-05-30T11:42:05Z");
    Value::Object(map)
}

fn keep(id: &str) -> Job {
    Job::Keep(Box::new(Kept {
        resource: resource("MemoryRecord", id),
        about: vec![resource("Entity", "cup")],
        seen: 1,
        is_new: true,
        unplaced: None,
    }))
}

fn record(shelf: &Arc<Shelf>, jobs: Vec<Job>) -> (u64, u64) {
    let recorder = Recorder::start(shelf.clone()).unwrap();
    let inlet = recorder.inlet().unwrap();
    jobs.into_iter().for_each(|job| inlet.put(job));
    drop(inlet);
    let counts = recorder.counts.clone();
    drop(recorder);
    (counts.stored.load(Ordering::Relaxed), counts.refused.load(Ordering::Relaxed))
}

#[test]
fn everything_is_stored_before_it_ends_also_by_a_memory_that_is_busy() {
    let shelf = Arc::new(Shelf { busy: AtomicU64::new(3), ..Shelf::default() });
    let jobs = (0..600).map(|n| keep(&format!("cup-{n}"))).collect();
    assert_eq!(record(&shelf, jobs), (600, 0));
    // With the entity they are about, and many at a time.
    assert_eq!(shelf.stored.lock().unwrap().len(), 601);
    assert!(shelf.requests.load(Ordering::Relaxed) < 600);
}

#[test]
fn what_is_refused_takes_nothing_else_with_it() {
    let shelf = Arc::new(Shelf::default());
    let jobs = vec![keep("a"), keep("bad"), keep("b")];
    assert_eq!(record(&shelf, jobs), (2, 1));
    assert!(shelf.get("MemoryRecord/b").unwrap().is_some());
}

#[test]
fn what_cannot_be_read_holds_up_nothing_else() {
    let again = |id: &str| match keep(id) {
        Job::Keep(kept) => Job::Keep(Box::new(Kept { is_new: false, ..*kept })),
        told => told,
    };
    let shelf = Arc::new(Shelf::default());
    let jobs = vec![again("rotten"), keep("a"), keep("b"), again("rotten")];
    assert_eq!(record(&shelf, jobs), (2, 2));
    assert!(shelf.get("MemoryRecord/b").unwrap().is_some());
    // With nothing else to store it ends all the same.
    assert_eq!(record(&shelf, vec![again("rotten")]), (0, 1));
}

#[test]
fn a_disk_that_fails_for_a_while_costs_nothing() {
    let shelf = Arc::new(Shelf { faults: AtomicU64::new(20), ..Shelf::default() });
    let jobs = (0..40).map(|n| keep(&format!("cup-{n}"))).collect();
    assert_eq!(record(&shelf, jobs), (40, 0));
}

#[test]
fn what_is_known_of_an_entity_is_not_lost_for_a_bare_name() {
    let shelf = Arc::new(Shelf::default());
    let mut known = resource("Entity", "cup");
    known.as_object_mut().unwrap().insert("summary", "blue, with a crack");
    shelf.stored.lock().unwrap().insert("Entity/cup".to_owned(), known.clone());
    record(&shelf, vec![keep("a")]);
    assert_eq!(shelf.get("Entity/cup").unwrap(), Some(known));
}
