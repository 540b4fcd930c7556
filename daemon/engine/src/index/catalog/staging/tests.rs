use omir_core::instant::{Instant, Timestamp};
use omir_core::model::{MemoryRecord, Resource};
use omir_core::space::Center;
use omir_core::spatial::SpatialPose;
use proptest::prelude::*;

use super::*;
use crate::index::catalog::{ReadPoint, TierCount, VersionReader};
use crate::index::doc::FileId;
use crate::index::facts::terms_of;
use crate::recall::query::{Order, Query};
use crate::recall::search::search;
use crate::recall::texts::Verdicts;

const NOW: i64 = 1_780_272_000_000_000;

fn key(name: u8) -> RefKey {
    RefKey::of_text(&format!("MemoryRecord/m{name}"))
}

/// A record under one of a few names, with words, a place, a parent and a tier that follow from `content`.
fn record(name: u8, content: u8) -> Resource {
    let at = Instant::from(Timestamp::from_micros(NOW));
    let words = ["red cup", "door seven", "a lamp by the door", ""][usize::from(content % 4)];
    let mut record = MemoryRecord::new(format!("m{name}").parse().unwrap(), words, at.clone());
    record.event_time = content.is_multiple_of(3).then_some(at);
    let position = [f64::from(content), 0.0, 0.0];
    let frame = if content.is_multiple_of(5) { "odom" } else { "map" };
    let pose = SpatialPose::new(frame, position.into());
    record.extension = Some(vec![pose.to_extension()]);
    record.into()
}

/// A step of a transaction: a version of a name, or a tombstone.
type Change = (u8, Option<u8>);

fn stamp(catalog: &Catalog, seq: u64, ordinal: u32, name: u8) -> Stamp {
    let version = catalog.head(&key(name)).map_or(1, |head| head.version + 1);
    Stamp { seq, ordinal, version, recorded: NOW }
}

fn location() -> Location {
    Location { file: FileId::Log(1), offset: 0, len: 1, crc: 0 }
}

/// The words of the live version of a name.
fn words(state: &[Option<u8>; 6], name: u8) -> Option<DocTerms> {
    state[usize::from(name)].map(|content| terms_of(&record(name, content)))
}

fn stage(catalog: &mut Catalog, state: &[Option<u8>; 6], stamp: Stamp, change: Change) -> Staged {
    let (name, content) = change;
    let old = words(state, name);
    match content {
        Some(content) => {
            let record = record(name, content);
            let facts = Box::new(Facts::of(&record));
            catalog.stage(facts, &terms_of(&record), old.as_ref(), stamp, location())
        }
        None => catalog.stage_forget(key(name), old.as_ref(), stamp, DeletionOrigin::User),
    }
}

fn at_once(catalog: &mut Catalog, state: &[Option<u8>; 6], stamp: Stamp, change: Change) {
    let (name, content) = change;
    let old = words(state, name);
    match content {
        Some(content) => {
            let record = record(name, content);
            let facts = Facts::of(&record);
            catalog.put(&facts, &terms_of(&record), old.as_ref(), stamp, location());
        }
        None => {
            catalog.forget(&key(name), old.as_ref(), stamp, DeletionOrigin::User);
        }
    }
}

/// Everything that a reader can learn of a catalog.
fn seen(catalog: &Catalog) -> String {
    let base = Query { limit: None, ..Query::default() };
    let near = Some(Center::Plane { x: 1.0, y: 0.0 });
    let questions = [
        base.clone(),
        Query { text: Some("door".into()), ..base.clone() },
        Query { text: Some("red lamp".into()), limit: Some(2), ..base.clone() },
        Query { near, ..base.clone() },
        Query { near, radius: Some(3.0), ..base.clone() },
        Query { order: Order::Latest, limit: Some(3), ..base.clone() },
        Query { include_forgotten: true, ..base.clone() },
        Query { as_of: Some(Timestamp::from_micros(NOW)), ..base.clone() },
        Query { as_of: Some(Timestamp::from_micros(i64::MIN / 2)), ..base },
    ];
    let found = questions.map(|query| {
        let found = search(catalog, &query, NOW, &mut Verdicts::default());
        (found.page, found.total)
    });
    let mut tiers = TierCount::at(NOW);
    while !catalog.count_tiers(&mut tiers) {}
    let heads = (0..6).map(|name| catalog.head(&key(name))).collect::<Vec<_>>();
    let newest = catalog.newest();
    let mut past = VersionReader::new(ReadPoint::UpTo(newest));
    let then = (0..6).map(|name| past.version(catalog, &key(name))).collect::<Vec<_>>();
    let rows = catalog.docs().iter().filter(|doc| doc.is_live()).count();
    let counts = (catalog.counts.live(), catalog.version_count(), catalog.counts.forgotten());
    let (map, special) = (
        catalog.places.frame("map").map_or(0, |frame| catalog.visibility.plain_in_frame(frame)),
        { catalog.visibility.special_from(0).count() },
    );
    let tiers = tiers.tiers();
    format!("{found:?} {tiers:?} {heads:?} {then:?} {newest} {rows} {counts:?} {map} {special}")
}

proptest! {
    /// Staged changes alter no answer. Once they are in the catalog, it is what it would be had each step been
    /// made at once.
    #[test]
    fn what_is_staged_is_seen_by_nobody_and_enters_as_if_made_at_once(
        transactions in proptest::collection::vec(
            proptest::collection::btree_map(0..6u8, proptest::option::weighted(0.8, 0..20u8), 1..6),
            1..12,
        ),
    ) {
        let (mut staging, mut plain) = (Catalog::new(), Catalog::new());
        for catalog in [&mut staging, &mut plain] {
            catalog.set_fading(Some(crate::index::fading::Fading::default()));
        }
        let mut state = [None; 6];
        for (seq, transaction) in (1..).zip(&transactions) {
            let changes: Vec<Change> = transaction.iter().map(|(name, to)| (*name, *to)).collect();
            let before = seen(&staging);
            let mut staged = Vec::new();
            for (ordinal, change) in (0..).zip(&changes) {
                let stamp = stamp(&staging, seq, ordinal, change.0);
                staged.push(stage(&mut staging, &state, stamp, *change));
                prop_assert_eq!(seen(&staging), before.as_str(), "after {:?}", change);
            }
            for step in &staged {
                staging.enter_staged(step);
            }
            for (ordinal, change) in (0..).zip(&changes) {
                let stamp = stamp(&plain, seq, ordinal, change.0);
                at_once(&mut plain, &state, stamp, *change);
                state[usize::from(change.0)] = change.1;
            }
            prop_assert_eq!(seen(&staging), seen(&plain));
        }
    }
}
