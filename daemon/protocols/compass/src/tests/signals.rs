//! Signals: told to all listeners, once each, and without contents to unknown ones.

use std::time::Duration;

use omird_router::{Announcement, Exchange};

use super::*;

/// All announcements of a protocol, as they come.
fn heard(rig: &Rig) -> Arc<Mutex<Vec<Announcement>>> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hear = heard.clone();
    rig.compass.listen(Arc::new(move |one| hear.lock().unwrap().push(one.clone())));
    heard
}

fn error(rig: &Rig, severity: f64) -> Value {
    let params = format!(
        r#"{{"task_id":"t1","error_type":"missing_info","error_description":"the map was missing","error_severity":{severity}}}"#
    );
    rig.ask("memory.record_error", &params)
}

/// Waits until so many were heard, and a moment longer for one too many.
fn wait(heard: &Mutex<Vec<Announcement>>, count: usize) -> Vec<Announcement> {
    let until = Instant::now() + Duration::from_secs(20);
    while heard.lock().unwrap().len() < count && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(500));
    heard.lock().unwrap().clone()
}

#[test]
fn a_severe_error_is_told_to_all_who_listen() {
    let rig = Rig::new();
    let first = heard(&rig);
    let second = heard(&rig);
    rig.store("first a plan");
    error(&rig, 0.3);
    let stored = error(&rig, 0.9);
    let told = wait(&first, 1);
    assert_eq!((told.len(), second.lock().unwrap().len()), (1, 1));
    assert_eq!(told[0].key, "compass/signal/t1");
    let body = value(&told[0].body);
    assert_eq!(body, *stored.get("ace_signal").unwrap(), "the same as in the result");
    let reference = value(&told[0].reference);
    assert_eq!(reference.as_object().unwrap().keys().collect::<Vec<_>>(), ["signal_type", "ref"]);
    let id = text(&stored, "/error_id");
    assert_eq!(text(&reference, "/ref"), format!("MemoryRecord/ce.{id}"));
}

#[test]
fn a_pattern_is_found_without_a_question_and_told_once() {
    let rig = Rig::new();
    let heard = heard(&rig);
    rig.store("first a plan");
    (0..3).for_each(|_| drop(error(&rig, 0.3)));
    let told = wait(&heard, 1);
    assert_eq!(told.len(), 1);
    let body = value(&told[0].body);
    assert_eq!((text(&body, "/signal_type"), number(&body, "/value")), ("pattern", 3.0));
    let known = rig.ask("memory.get_error_history", r#"{"task_id":"t1"}"#);
    assert_eq!(list(&known, "/patterns").len(), 1);
    // A pattern that is known is no news, whether a caller or the daemon looks.
    error(&rig, 0.3);
    let asked = rig.ask("memory.detect_error_patterns", r#"{"task_id":"t1"}"#);
    assert_eq!(number(&asked, "/patterns/0/count"), 4.0);
    assert_eq!(wait(&heard, 1).len(), 1);
}

#[test]
fn nobody_looks_where_the_configuration_says_so() {
    let settings = Settings { error_pattern_detection_enabled: false, ..Settings::default() };
    let rig = Rig::with(settings);
    let heard = heard(&rig);
    rig.store("first a plan");
    (0..3).for_each(|_| drop(error(&rig, 0.3)));
    std::thread::sleep(Duration::from_millis(900));
    let known = rig.ask("memory.get_error_history", r#"{"task_id":"t1"}"#);
    assert_eq!((list(&known, "/patterns").len(), heard.lock().unwrap().len()), (0, 0));
    // The same daemon with other settings.
    rig.compass.reconfigure(Settings::default());
    error(&rig, 0.3);
    assert_eq!(wait(&heard, 1).len(), 1);
}
