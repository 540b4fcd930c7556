//! With real engines on real folders, whose disk or listeners panic.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use super::*;
use crate::disk::{Disk, DiskFile, Folder, Mode};
use crate::ingest::request::Encoding;
use crate::testing::{ByHand, parts};
use crate::write::command::{Change, Receipt};
use crate::{Engine, unanswered};
use omird_store::pass_on;

/// Long enough for any machine.
const LONG: Duration = Duration::from_secs(60);

/// A folder that panics when `thread` asks for anything, once it is told to.
struct Buggy {
    folder: Folder,
    thread: &'static str,
    is_on: Arc<AtomicBool>,
}

impl Buggy {
    fn look(&self) {
        let is_it = std::thread::current().name() == Some(self.thread);
        assert!(!(is_it && self.is_on.load(Ordering::Acquire)), "a bug, for the test");
    }
}

impl Disk for Buggy {
    pass_on!(folder: list create_dir rename remove sync_dir);

    fn open(&self, path: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        self.look();
        self.folder.open(path, mode)
    }
    fn mount_generation(&self) -> io::Result<u64> {
        self.look();
        self.folder.mount_generation()
    }
}

fn change(engine: &Engine, id: &str) -> Change {
    let json = format!(r#"{{"resourceType":"Entity","id":"{id}","name":"cup"}}"#);
    engine.prepare(json.as_bytes(), Encoding::Json, None).expect("it is valid")
}

fn remember(engine: &Engine, id: &str) -> Result<Receipt, Error> {
    engine.execute(change(engine, id))
}

/// An engine whose `thread` panics once the flag is set, and where it is told that it did.
fn buggy(
    dir: &std::path::Path,
    thread: &'static str,
) -> (Engine, Arc<AtomicBool>, mpsc::Receiver<&'static str>) {
    let mut parts = parts(dir);
    let is_on = Arc::new(AtomicBool::default());
    parts.disk = Arc::new(Buggy { folder: Folder::new(dir), thread, is_on: is_on.clone() });
    let engine = Engine::open(parts, &mut |_| {}).expect("it opens");
    let (tell, told) = mpsc::channel();
    engine.on_broken(Box::new(move |thread| tell.send(thread).expect("the test waits")));
    (engine, is_on, told)
}

#[test]
fn a_panic_in_a_listener_costs_only_what_it_was_told() {
    let dir = tempfile::tempdir().unwrap();
    let (heard, events) = mpsc::channel();
    let engine = Engine::open(parts(dir.path()), &mut |_| {}).unwrap();
    let _buggy = engine.events().listen(|event| {
        assert!(event.target.to_string() != "Entity/a", "a bug, for the test");
    });
    let _heard = engine.events().listen(move |event| heard.send(event.target.to_string()).unwrap());
    for id in ["a", "b"] {
        remember(&engine, id).expect("it is answered");
        let event = events.recv_timeout(LONG);
        assert_eq!(event.as_deref(), Ok(format!("Entity/{id}").as_str()), "the others hear of it");
    }
    engine.stop();
}

#[test]
fn a_panic_in_a_reply_costs_only_that_answer() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open(parts(dir.path()), &mut |_| {}).unwrap();
    engine.submit(change(&engine, "a"), 0, Box::new(|_| panic!("a bug, for the test")));
    remember(&engine, "b").expect("it is answered");
    assert_eq!(engine.live(), 2, "what the answer was about is stored");
    engine.stop();
}

#[test]
fn an_engine_without_its_writer_says_so_and_a_new_start_serves_what_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, is_on, told) = buggy(dir.path(), "omird-writer");
    remember(&engine, "a").expect("it is stored");
    is_on.store(true, Ordering::Release);
    let error = remember(&engine, "b").expect_err("nobody answers");
    assert_eq!(error.code, Code::Internal);
    assert_eq!(told.recv_timeout(LONG), Ok("omird-writer"));
    let error = remember(&engine, "c").expect_err("nobody takes it");
    assert!(error.message.contains("omird-writer"), "{error}");
    let (tell, late) = mpsc::channel();
    engine.on_broken(Box::new(move |thread| tell.send(thread).unwrap()));
    assert_eq!(late.try_recv(), Ok("omird-writer"), "who asks late is told at once");
    is_on.store(false, Ordering::Release);
    engine.stop();
    let engine = Engine::open(parts(dir.path()), &mut |_| {}).unwrap();
    assert_eq!(engine.live(), 1);
    engine.stop();
}

#[test]
fn an_engine_without_its_sealer_serves_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, is_on, told) = buggy(dir.path(), "omird-sealer");
    remember(&engine, "a").expect("it is stored");
    is_on.store(true, Ordering::Release);
    for _ in 0..2 {
        engine.compact(crate::write::orders::CompactionScope::All).expect_err("it is not done");
    }
    remember(&engine, "b").expect("it is stored");
    assert_eq!(engine.live(), 2);
    let status = engine.status("r2");
    let state = status.get("disk").and_then(|disk| disk.get("state")).cloned();
    assert_eq!(state, Some("stuck".into()));
    engine.stop();
    assert!(told.try_recv().is_err(), "it goes on");
    let engine = Engine::open(parts(dir.path()), &mut |_| {}).unwrap();
    assert_eq!(engine.live(), 2);
    engine.stop();
}

/// A message in a channel lives as long as a sender may send another.
#[test]
fn whoever_waits_behind_what_breaks_the_writer_is_answered() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, is_on, told) = buggy(dir.path(), "omird-writer");
    is_on.store(true, Ordering::Release);
    let (answered, answers) = mpsc::channel();
    for n in 0..20 {
        let (engine, answered) = (engine.clone(), answered.clone());
        std::thread::spawn(move || {
            let _ = answered.send(remember(&engine, &format!("e{n}")).is_err());
        });
    }
    for _ in 0..20 {
        assert_eq!(answers.recv_timeout(LONG), Ok(true), "nobody waits for ever");
    }
    assert_eq!(told.recv_timeout(LONG), Ok("omird-writer"));
    engine.stop();
}

#[test]
fn what_was_not_answered_is_not_said_to_be_undone() {
    // Written and durable, and then the thread that answers is not there any more.
    let message = unanswered().message;
    assert!(message.contains("not known whether"), "{message}");
}
