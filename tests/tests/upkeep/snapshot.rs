//! Selection of a transfer that is resumed: the versions of its beginning, told by a transaction,
//! whatever the clock does, and across starts, sealing and compaction.
//!
//! Invariant 32 of ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use omir_core::value::Value;
use omird::engine::testing::ByHand;
use omird::engine::{CompactionScope, Query, Snapshot};
use omird_tests::cut_disk::CutDisk;
use omird_tests::journal::change;
use omird_tests::life::{self, Step};
use omird_tests::random::{Random, seeds};
use omird_tests::session::{Session, TestClock, settings};

fn open(disk: &CutDisk, clock: &Arc<TestClock>) -> Session {
    Session::open_with(Arc::new(disk.clone()), clock, settings(), None).expect("it opens")
}

/// Contents of a resource, by name: not its dates, which are put right when the clock is set.
type Said = BTreeMap<String, String>;

fn said(resources: impl Iterator<Item = Value>) -> Said {
    let mut all = Said::new();
    for resource in resources {
        let text = |name| resource.get(name).and_then(Value::as_str).unwrap_or_default();
        let name = format!("{}/{}", text("resourceType"), text("id"));
        let words = format!("{}{}{}", text("content"), text("name"), text("title"));
        assert_eq!(all.insert(name.clone(), words), None, "{name} comes twice");
    }
    all
}

fn now(session: &Session) -> Said {
    let bundle = session.export(&Query::everything()).expect("a good disk").to_value();
    said(bundle.get("entry").and_then(Value::as_array).expect("entries").iter().cloned())
}

fn then(session: &Session, snapshot: Snapshot) -> Said {
    let query = Query { snapshot: Some(snapshot), ..Query::everything() };
    let selection = session.select(&query, None, || true).expect("a good disk");
    let one = |at| session.selected(&selection, at).expect("a good disk");
    said((0..selection.len()).filter_map(one))
}

#[test]
fn a_beginning_is_the_same_later_whatever_the_clock_shows() {
    for seed in seeds("OMIRD_SEED", 0..16) {
        let mut random = Random::new(seed);
        let (disk, clock) = (CutDisk::new(), TestClock::new());
        let mut session = open(&disk, &clock);
        let mut past: Vec<(Snapshot, Said)> = Vec::new();
        for (number, step) in life::random(seed, 60).into_iter().enumerate() {
            match random.below(6) {
                // Back and forth, by less than history is kept.
                0 => clock.set(session.now().0.as_micros() - 3_600_000_000, true),
                1 => clock.advance(Duration::from_secs(3600)),
                // All at one moment.
                2 => {}
                _ => clock.advance(Duration::from_millis(1)),
            }
            match step {
                Step::Ask(request) => {
                    let _ = change(&session, &request).and_then(|c| session.execute(c));
                }
                Step::Restart => {
                    drop(session);
                    session = open(&disk, &clock);
                }
                Step::Compact(_) if random.chance(50) => {
                    session.compact(CompactionScope::All).expect("a good disk");
                }
                Step::Compact(_) | Step::Recall(_) | Step::Sweep(_) => {}
            }
            let snapshot = Snapshot { seq: session.newest(), at: session.now().0 };
            past.push((snapshot, now(&session)));
            if number % 10 != 9 {
                continue;
            }
            let mut forgotten: BTreeSet<&String> = BTreeSet::new();
            let mut later: Option<&Said> = None;
            for (snapshot, noted) in past.iter().rev() {
                forgotten.extend(
                    noted
                        .keys()
                        .filter(|name| later.is_some_and(|later| !later.contains_key(*name))),
                );
                later = Some(noted);
                let context = format!("OMIRD_SEED={seed}, step {number}, {snapshot:?}");
                let found = then(&session, *snapshot);
                for (name, words) in &found {
                    assert_eq!(noted.get(name), Some(words), "{context}: {name}");
                }
                for name in noted.keys().filter(|name| !found.contains_key(*name)) {
                    // One that joined something forgotten since, and by now joins something else.
                    let could_go = forgotten.contains(name) || name.starts_with("Relationship/");
                    assert!(could_go, "{context}: {name} is missing");
                }
            }
        }
    }
}
