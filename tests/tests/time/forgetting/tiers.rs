//! The current tier of a memory, and its announcement.

use super::*;

#[test]
fn a_tier_follows_time_wherever_it_is_asked_for() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    // No log is old after a day.
    let settings = Settings { seal_after: 100 * DAY, purge_after: 100 * DAY, ..settings() };
    let session = Session::open_with(Arc::new(disk.clone()), &clock, settings, None);
    let session = session.expect("it opens");
    put(&session, PLAIN);
    // Whatever dates it states, what was stored a moment ago is given back as it came.
    put(
        &session,
        r#"{"resourceType":"MemoryRecord","id":"old","content":"a war","tier":"session",
        "createdAt":"2001-01-01T00:00:00Z"}"#,
    );
    assert!(get(&session, "MemoryRecord/a").expect("it is live").get("tier").is_none());
    assert_eq!(tier(&session, "MemoryRecord/old"), "session");
    assert_eq!([in_tier(&session, "working"), in_tier(&session, "session")], [1, 1]);

    clock.advance(2 * HOUR);
    let after_two_hours = get(&session, "MemoryRecord/a").expect("it is live");
    assert_eq!(tier(&session, "MemoryRecord/a"), "session");
    assert_eq!(tier(&session, "MemoryRecord/old"), "archive");
    assert_eq!([in_tier(&session, "session"), in_tier(&session, "archive")], [1, 1]);

    clock.advance(DAY);
    let operations = disk.operations();
    assert_eq!(tier(&session, "MemoryRecord/a"), "longterm");
    // The copy of yesterday, and what was first sent, are no news.
    assert!(unchanged(put(&session, &after_two_hours.to_string())));
    assert!(unchanged(put(&session, PLAIN)));
    assert_eq!(disk.operations(), operations, "nothing was written");
    drop(session);

    let session = Session::open(&disk, &clock).expect("it opens");
    assert_eq!(tier(&session, "MemoryRecord/a"), "longterm");
    assert_eq!(in_tier(&session, "archive"), 1);
    // An update that states no tier leaves it where it is.
    put(&session, &PLAIN.replace("by the lake", "by the sea"));
    assert_eq!(tier(&session, "MemoryRecord/a"), "longterm");
    assert_eq!(in_tier(&session, "longterm"), 1);
}

/// The moves announced until the engine stopped.
fn moves(session: Session, events: &Mutex<Vec<Event>>) -> Vec<(String, String)> {
    drop(session);
    let events = events.lock().expect("no panic");
    let moved = events.iter().filter(|event| event.kind == EventKind::Tier);
    moved
        .map(|event| {
            let (from, to) = event.cause.as_ref().and_then(|cause| cause.tiers).expect("a move");
            let resource = cbor::from_slice(&event.resource, &Limits::default()).expect("CBOR");
            assert_eq!(resource.get("tier").and_then(Value::as_str), Some(to.as_str()));
            (event.target.to_string(), format!("{from} {to}"))
        })
        .collect()
}

#[test]
fn each_move_is_announced_once() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let (session, events, _listening) = watched(&disk, &clock);
    put(&session, PLAIN);
    clock.advance(2 * HOUR);
    let dry = session.sweep(true).expect("it is only a look");
    assert_eq!(counts(&dry), [1, 0, 0, 0]);
    assert_eq!(counts(&sweep(&session)), [1, 0, 0, 0]);
    assert_eq!(counts(&sweep(&session)), [0, 0, 0, 0]);
    let once = [("MemoryRecord/a".to_owned(), "working session".to_owned())];
    assert_eq!(moves(session, &events), once);

    // A restart does not announce it again, and what happened while it was off is not lost.
    let (session, events, _listening) = watched(&disk, &clock);
    assert_eq!(counts(&sweep(&session)), [0, 0, 0, 0]);
    assert!(moves(session, &events).is_empty());
    clock.advance(DAY);
    let (session, events, _listening) = watched(&disk, &clock);
    assert_eq!(counts(&sweep(&session)), [1, 0, 0, 0]);
    let once = [("MemoryRecord/a".to_owned(), "session longterm".to_owned())];
    assert_eq!(moves(session, &events), once);
}

#[test]
fn the_store_is_swept_by_itself_and_stops_when_told() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let (tell, moves) = std::sync::mpsc::channel();
    let events = Events::default();
    let _listening = events.listen(move |event| {
        if event.kind == EventKind::Tier {
            // Nobody listens any more when the engine stops.
            let _ = tell.send(event.target.to_string());
        }
    });
    let mut settings = settings();
    settings.forgetting.sweep_interval = Some(Duration::from_millis(1));
    let disk = Arc::new(disk);
    let session = Session::open_announcing(disk, &clock, settings, None, events);
    let session = session.expect("it opens");
    for n in 0..300 {
        put(&session, &PLAIN.replace(r#""id":"a""#, &format!(r#""id":"a{n}""#)));
    }
    clock.advance(2 * HOUR);
    let moved: BTreeSet<String> =
        (0..300).map(|_| moves.recv_timeout(Duration::from_secs(60)).expect("a move")).collect();
    assert_eq!(moved.len(), 300, "each is announced once");
    drop(session);
}

#[test]
fn what_is_remembered_again_is_announced_again() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let (session, events, _listening) = watched(&disk, &clock);
    put(&session, &PLAIN.replace(r#""importance":0.7"#, r#""importance":0.7,"tier":"archive""#));
    clock.advance(2 * HOUR);
    assert_eq!(counts(&sweep(&session)), [0; 4], "it was stored there, and nobody asked for it");
    let query = Query { text: Some("bench".into()), ..Query::default() };
    assert_eq!(session.recall(&query).expect("it is answered").total, 1);
    // Recalls are counted between two changes.
    put(&session, r#"{"resourceType":"Entity","id":"x","name":"X"}"#);
    put(&session, r#"{"resourceType":"Entity","id":"y","name":"Y"}"#);
    assert_eq!(tier(&session, "MemoryRecord/a"), "longterm");
    assert_eq!(counts(&sweep(&session)), [1, 0, 0, 0]);
    assert_eq!(counts(&sweep(&session)), [0; 4]);
    let once = [("MemoryRecord/a".to_owned(), "archive longterm".to_owned())];
    assert_eq!(moves(session, &events), once);
}

#[test]
fn an_explanation_names_the_moment_of_the_next_move() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).expect("it opens");
    put(&session, PLAIN);
    let a = "MemoryRecord/a".parse().expect("a reference");
    for expected in ["session", "longterm", "archive"] {
        let explained = session.explain(&a).expect("it is known");
        let next = explained.get("nextMove").expect("it moves on");
        assert_eq!(next.get("tier").and_then(Value::as_str), Some(expected));
        let at = next.get("at").and_then(Value::as_str).expect("an instant");
        let at: omir_core::instant::Instant = at.parse().expect("an instant");
        let wait = at.at().micros_since(session.now().0);
        clock.advance(Duration::from_micros(wait as u64 - 10_000));
        assert_ne!(tier(&session, "MemoryRecord/a"), expected, "not yet");
        clock.advance(Duration::from_micros(10_000));
        assert_eq!(tier(&session, "MemoryRecord/a"), expected);
    }
    let explained = session.explain(&a).expect("it is known");
    assert!(explained.get("nextMove").is_none(), "it stays where it is");
    let reason = explained.get("reason").and_then(Value::as_str).expect("a reason");
    assert!(reason.contains("fell below 0.1"), "{reason}");
    let change = Change::Anchor(a.clone(), true);
    session.execute(change).expect("the disk is good");
    let explained = session.explain(&a).expect("it is known");
    assert_eq!(explained.get("evictable").and_then(Value::as_bool), Some(false));
}

#[test]
fn what_a_client_noted_is_not_taken_for_an_answer() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).expect("it opens");
    let record = r#"{"resourceType":"MemoryRecord","id":"a","content":"a cup","extension":[
        {"url":"urn:omird:ext:tier","valueJson":"longterm"},
        {"url":"urn:omird:ext:forgotten","valueJson":true}]}"#;
    put(&session, record);
    let explained = explain(&session, "MemoryRecord/a");
    assert_eq!(explained.get("tier").and_then(Value::as_str), Some("working"));
    assert_eq!(explained.get("forgotten"), None);
    let noted = explained.pointer("/extensions/tier").and_then(Value::as_str);
    assert_eq!(noted, Some("longterm"));
}

/// A node whose clock nobody had set dated it; hours later somebody puts that right.
#[test]
fn what_a_wrong_date_moved_is_where_the_right_one_puts_it() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).expect("it opens");
    let dated = |date: &str| {
        let text = r#"{"resourceType":"MemoryRecord","id":"a","content":"a door","createdAt":"#;
        put(&session, &format!(r#"{text}"{date}"}}"#));
    };
    let tier = || standing(&session).remove("a").unwrap_or_default();
    dated("1970-01-01T00:01:00Z");
    clock.advance(2 * HOUR);
    sweep(&session);
    assert_eq!(tier(), "archive");
    let now = session.now().0;
    dated(&now.to_string());
    sweep(&session);
    assert_ne!(tier(), "archive");
    clock.advance(2 * HOUR);
    sweep(&session);
    assert_eq!(tier(), "session");
}
