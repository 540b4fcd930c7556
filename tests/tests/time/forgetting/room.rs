//! Expiry and eviction: memories that are over or needed least go; those used together come closer.

use super::*;
use omird::engine::testing::ByHand;

#[test]
fn what_is_over_for_long_goes_and_what_is_pinned_stays() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).expect("it opens");
    let over = |id: &str, more: &str| {
        format!(
            r#"{{"resourceType":"MemoryRecord","id":"{id}","content":"the shop is open",{more}
            "createdAt":"2026-06-01T00:00:00Z","validUntil":"2026-06-02T00:00:00Z"}}"#
        )
    };
    put(&session, &over("gone", ""));
    put(&session, &over("pinned", r#""decay":{"anchored":true},"#));
    put(
        &session,
        r#"[{"resourceType":"Entity","id":"x","name":"X"},{"resourceType":"Entity","id":"y","name":"Y"},
        {"resourceType":"Relationship","id":"xy","from":{"ref":"Entity/x"},"to":{"ref":"Entity/y"},
        "relationType":"knows","invalidatedAt":"2026-06-02T00:00:00Z"}]"#,
    );
    clock.advance(30 * DAY);
    assert_eq!(sweep(&session).expired, 0);
    clock.advance(2 * DAY);
    assert_eq!(sweep(&session).expired, 2);
    assert!(get(&session, "MemoryRecord/gone").is_none());
    assert!(get(&session, "Relationship/xy").is_none());
    assert!(get(&session, "MemoryRecord/pinned").is_some());
    let explained = explain(&session, "MemoryRecord/gone");
    assert!(explained.get("forgottenAt").is_some_and(|at| at.as_str().is_some()));
    let why = explained.get("reason").and_then(Value::as_str).expect("a reason");
    assert!(why.starts_with("it stopped being valid"), "{why}");
    // Compaction leaves of it nothing but that it was forgotten.
    session.compact(CompactionScope::All).expect("the disk is good");
    drop(session);
    let session = Session::open(&disk, &clock).expect("it opens");
    let explained = explain(&session, "MemoryRecord/gone");
    assert_eq!(explained.get("forgotten").and_then(Value::as_bool), Some(true));
    assert!(get(&session, "MemoryRecord/gone").is_none());
    let unknown = session.explain(&"MemoryRecord/never".parse().expect("a reference"));
    assert_eq!(unknown.expect_err("nobody knows it").code, Code::NotFound);
}

#[test]
fn the_store_stays_within_what_it_may_take_of_the_card() {
    const MAX: u64 = 768 << 10;
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let mut settings = Settings { segment_bytes: 32 << 10, ..settings() };
    settings.segment_max_bytes = 128 << 10;
    settings.flash.max_bytes = MAX;
    let session =
        Session::open_with(Arc::new(disk.clone()), &clock, settings, None).expect("it opens");
    let status = |names: &[&str]| number(&session.status("r"), names) as u64;
    let mut most = 0;
    for n in 0..1500 {
        let (importance, word) = (f64::from(n % 10) / 10.0, format!("{n:x} ").repeat(200));
        let anchored = if n == 0 { r#""decay":{"anchored":true},"# } else { "" };
        put(
            &session,
            &format!(
                r#"{{"resourceType":"MemoryRecord","id":"r{n}","content":"{word}",{anchored}
                "createdAt":"2026-06-01T00:00:00Z","importance":{importance}}}"#
            ),
        );
        if n % 40 == 39 {
            clock.advance(HOUR);
            sweep(&session);
            session.compact(CompactionScope::Due).expect("the disk is good");
            most = most.max(status(&["disk", "bytes"]));
        }
    }
    assert!(most < MAX + MAX / 10, "{most} of {MAX}");
    assert!(disk.used() < MAX + MAX / 10, "{} lie there", disk.used());
    let live = status(&["counts", "types", "MemoryRecord"]);
    assert!((300..1300).contains(&live), "{live} are left");
    let left = |n: &u32| get(&session, &format!("MemoryRecord/r{n}")).is_some();
    assert!(left(&0), "what is anchored stays");
    let share = |digit: u32| (digit..1000).step_by(10).filter(left).count();
    let (dull, dear) = (share(1), share(9));
    assert!(dull < 10 && dear > 25, "{dull} dull ones and {dear} dear ones are left of 100 each");
}

#[test]
fn without_room_what_is_needed_least_goes_first() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).expect("it opens");
    let record = |id: &str, importance: f64, more: &str| {
        let word = "word ".repeat(40);
        format!(
            r#"{{"resourceType":"MemoryRecord","id":"{id}","content":"{id} {word}",{more}
            "createdAt":"2026-06-01T00:00:00Z","importance":{importance}}}"#
        )
    };
    put(&session, &record("pinned", 0.0, r#""decay":{"anchored":true},"#));
    put(&session, &record("plan", 0.0, r#""experienceType":"intention","#));
    put(&session, &record("dull", 0.1, ""));
    put(&session, &record("fine", 0.5, ""));
    put(&session, &record("dear", 0.9, ""));
    clock.advance(2 * DAY);
    // Not needed at all, but hardly stored yet.
    put(&session, &record("young", 0.0, "").replace("2026-06-01", "2026-06-03"));
    let gone = || {
        let ids = ["dull", "fine", "dear", "young"];
        let is_gone = |id: &&str| get(&session, &format!("MemoryRecord/{id}")).is_none();
        ids.into_iter().filter(is_gone).collect::<Vec<_>>()
    };
    assert_eq!(sweep(&session).evicted, 0);
    session.relieve(100);
    assert_eq!(session.sweep(true).expect("only a look").evicted, 1);
    assert_eq!(gone(), [""; 0]);
    assert_eq!(sweep(&session).evicted, 1);
    assert_eq!(gone(), ["dull"]);
    assert_eq!(sweep(&session).evicted, 0, "room was made");
    session.relieve(100);
    assert_eq!(sweep(&session).evicted, 0, "compaction has that to free already");
    session.relieve(500);
    assert_eq!(sweep(&session).evicted, 1);
    assert_eq!(gone(), ["dull", "fine"]);
    session.relieve(1 << 30);
    assert_eq!(sweep(&session).evicted, 2);
    assert_eq!(gone(), ["dull", "fine", "dear", "young"]);
    assert!(get(&session, "MemoryRecord/pinned").is_some());
    assert!(get(&session, "MemoryRecord/plan").is_some());
}

#[test]
fn what_is_recalled_together_is_bound_closer() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).expect("it opens");
    put(
        &session,
        r#"[{"resourceType":"Entity","id":"x","name":"X"},{"resourceType":"Entity","id":"y","name":"Y"},
        {"resourceType":"Relationship","id":"xy","from":{"ref":"Entity/x"},"to":{"ref":"Entity/y"},
        "relationType":"knows","strength":0.5,"validAt":"2026-06-01T00:00:00Z"}]"#,
    );
    let xy = "Relationship/xy".parse().expect("a reference");
    let now = |session: &Session, name: &str| {
        number(&session.explain(&xy).expect("it is known"), &[name])
    };
    assert_eq!(now(&session, "strengthNow"), 0.5);
    put(
        &session,
        r#"{"resourceType":"MemoryRecord","id":"met","content":"they met",
        "createdAt":"2026-06-01T00:00:00Z","entityRefs":[{"ref":"Entity/x"},{"ref":"Entity/y"}]}"#,
    );
    assert_eq!(now(&session, "coActivations"), 1.0);
    clock.advance(30 * DAY);
    // Half of 0.55 after a half-life.
    assert!((now(&session, "strengthNow") - 0.275).abs() < 1e-3);
    let query = Query { text: Some("met".into()), ..Query::default() };
    assert_eq!(session.recall(&query).expect("it is answered").total, 1);
    // A clean stop counts it and keeps it.
    session.seal_now(Duration::from_secs(60)).expect("the disk is good");
    drop(session);
    let session = Session::open(&disk, &clock).expect("it opens");
    assert_eq!(now(&session, "coActivations"), 2.0);
    // So does a compaction of two segments into one.
    put(&session, r#"{"resourceType":"Entity","id":"z","name":"Z"}"#);
    let compacted = session.compact(CompactionScope::All).expect("the disk is good");
    assert_eq!(compacted.segments_before - compacted.segments_after, 1);
    drop(session);
    let session = Session::open(&disk, &clock).expect("it opens");
    assert_eq!(now(&session, "coActivations"), 2.0);
    assert!((now(&session, "strengthNow") - 0.595).abs() < 1e-9);
    // The stored strength is the one that the client stated.
    let stored = get(&session, "Relationship/xy").expect("it is live");
    assert_eq!(number(&stored, &["strength"]), 0.5);
}

#[test]
fn what_goes_is_never_pinned_and_never_needed_more_than_what_stays() {
    for seed in seeds("OMIRD_SEED", 1..13) {
        let mut random = Random::new(seed);
        let (disk, clock) = (CutDisk::new(), TestClock::new());
        let mut session = Session::open(&disk, &clock).expect("it opens");
        let mut kept: BTreeSet<String> = BTreeSet::new();
        for n in 0..30 {
            let is_kept = random.chance(20);
            let more = match (is_kept, random.chance(50)) {
                (false, _) => "",
                (true, true) => r#""decay":{"anchored":true},"#,
                (true, false) => r#""experienceType":"intention","#,
            };
            let json = format!(
                r#"{{"resourceType":"MemoryRecord","id":"m{n}","content":"thing {n}",{more}
                "importance":{},"createdAt":"2026-06-01T00:00:00Z"}}"#,
                random.below(100) as f64 / 100.0,
            );
            put(&session, &json);
            if is_kept {
                kept.insert(format!("m{n}"));
            }
            if random.chance(30) {
                let query = Query {
                    text: Some(random.below(n + 1).to_string().into()),
                    ..Query::default()
                };
                session.recall(&query).expect("it is answered");
            }
            clock.advance(HOUR * random.below(4) as u32);
        }
        clock.advance(HOUR);
        sweep(&session);
        if random.chance(50) {
            drop(session);
            session = Session::open(&disk, &clock).expect("it opens");
        }
        assert_eq!(counts(&sweep(&session)), [0; 4], "OMIRD_SEED={seed}: again, there is nothing");
        let (now, _) = session.now();
        // Older than a day first, then by need.
        let worth = |id: &String| {
            let explained = explain(&session, &format!("MemoryRecord/{id}"));
            let recorded = explained.get("recorded").and_then(Value::as_str).expect("an instant");
            let recorded: omir_core::instant::Instant = recorded.parse().expect("an instant");
            let is_young = now.micros_since(recorded.at()) < DAY.as_micros() as i64;
            (is_young, number(&explained, &["need"]))
        };
        let before: BTreeSet<String> = standing(&session).into_keys().collect();
        let worths: BTreeMap<String, (bool, f64)> =
            before.difference(&kept).map(|id| (id.clone(), worth(id))).collect();
        session.relieve(random.below(6000) as u64);
        let evicted = sweep(&session).evicted;
        let after: BTreeSet<String> = standing(&session).into_keys().collect();
        assert!(after.is_superset(&kept), "OMIRD_SEED={seed}: {kept:?} in {after:?}");
        assert_eq!(evicted as usize, before.len() - after.len(), "OMIRD_SEED={seed}");
        let gone = worths.iter().filter(|(id, _)| !after.contains(*id)).map(|(_, worth)| *worth);
        let stays = worths.iter().filter(|(id, _)| after.contains(*id)).map(|(_, worth)| *worth);
        let most = gone.max_by(|a, b| a.partial_cmp(b).expect("numbers"));
        let least = stays.min_by(|a, b| a.partial_cmp(b).expect("numbers"));
        if let (Some(most), Some(least)) = (most, least) {
            assert!(most <= least, "OMIRD_SEED={seed}: {most:?} went and {least:?} stays");
        }
    }
}
