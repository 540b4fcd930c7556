use omir_core::instant::{Instant, Timestamp};
use omir_core::model::{Decay, MemoryRecord, Resource};
use omir_core::number::Number;
use omir_core::tier::TierPolicy;
use omird_store::RefKey;
use proptest::prelude::*;

use super::*;
use crate::index::block::DeletionOrigin;
use crate::index::catalog::Catalog;
use crate::index::doc::{Doc, FileId, Location, Stamp};
use crate::index::facts::{DecayState, Facts, terms_of};
use crate::index::fading::{Fading, ROUNDING};

const MINUTE: i64 = 60_000_000;
/// 2026-06-01T00:00:00Z.
const DAWN: i64 = 1_780_272_000_000_000;

/// One thing that happens to a catalog.
#[derive(Debug, Clone)]
enum Step {
    /// A record gets a version: its importance in tenths, its stored tier, how long before now it was created.
    Put {
        name: u8,
        importance: u8,
        tier: u8,
        age_minutes: i64,
        anchored: bool,
    },
    Forget {
        name: u8,
    },
    Touch {
        name: u8,
        half_life_hours: f64,
        accesses: u32,
    },
    /// A compaction drops what was superseded or forgotten.
    Compact,
    Fading(Option<TierPolicy>),
    /// Time passes, or the clock is set back.
    Wait {
        minutes: i64,
    },
    Ask,
}

fn step() -> impl Strategy<Value = Step> {
    let names = 0..40u8;
    let ages = prop_oneof![0..3i64, 0..100_000i64, -100_000..0i64];
    prop_oneof![
        8 => (names.clone(), 0..11u8, 0..4u8, ages, any::<bool>()).prop_map(
            |(name, importance, tier, age_minutes, anchored)| {
                Step::Put { name, importance, tier, age_minutes, anchored }
            }
        ),
        2 => names.clone().prop_map(|name| Step::Forget { name }),
        3 => (names, 0.1..300.0, 0..9u32).prop_map(|(name, half_life_hours, accesses)| {
            Step::Touch { name, half_life_hours, accesses }
        }),
        1 => Just(Step::Compact),
        1 => proptest::option::of((0.0..3.0, 0.0..0.9, 0.0..1.0)).prop_map(|policy| {
            Step::Fading(policy.map(|(session_after_hours, archive_below, restore_at)| {
                let rest = TierPolicy::default();
                TierPolicy { session_after_hours, archive_below, restore_at, ..rest }
            }))
        }),
        4 => prop_oneof![1..90i64, 1..30_000i64, -30_000..0i64]
            .prop_map(|minutes| Step::Wait { minutes }),
        6 => Just(Step::Ask),
    ]
}

fn key(name: u8) -> RefKey {
    RefKey::of_text(&format!("MemoryRecord/m{name}"))
}

/// A catalog with a clock.
struct Rig {
    catalog: Catalog,
    now: i64,
    seq: u64,
}

impl Rig {
    fn stamp(&mut self, name: u8) -> Stamp {
        self.seq += 1;
        let version = self.catalog.head(&key(name)).map_or(1, |head| head.version + 1);
        // The order of the store is ahead of a clock that was set back.
        let before = self.catalog.docs().last().map_or(self.now, |doc| doc.recorded);
        Stamp { seq: self.seq, ordinal: 0, version, recorded: self.now.max(before) }
    }

    fn carry_out(&mut self, step: &Step) {
        match *step {
            Step::Put { name, importance, tier, age_minutes, anchored } => {
                let created = Timestamp::from_micros(self.now - age_minutes * MINUTE);
                let id = format!("m{name}").parse().unwrap();
                let mut record = MemoryRecord::new(id, "a cup", Instant::from(created));
                record.importance = Number::from_f64(f64::from(importance) / 10.0);
                record.tier = Tier::ALL.get(usize::from(tier)).copied();
                record.decay = Some(Decay { anchored: Some(anchored), ..Decay::default() });
                let record = Resource::from(record);
                let stamp = self.stamp(name);
                let location = Location { file: FileId::Log(1), offset: 0, len: 1, crc: 0 };
                let terms = terms_of(&record);
                self.catalog.put(&Facts::of(&record), &terms, Some(&terms), stamp, location);
            }
            Step::Forget { name } => {
                let stamp = self.stamp(name);
                self.catalog.forget(&key(name), None, stamp, DeletionOrigin::User);
            }
            Step::Touch { name, half_life_hours, accesses } => {
                let anchored = false;
                let last_access = self.now;
                let access =
                    DecayState { half_life_hours, last_access, access_count: accesses, anchored };
                self.catalog.touch(&key(name), access);
            }
            Step::Compact => {
                let dead = |(_, doc): &(DocId, &Doc)| !doc.is_live() && !doc.dropped;
                let rows = (0..).zip(self.catalog.docs());
                let dropped: Vec<DocId> = rows.filter(dead).map(|(id, _)| id).collect();
                self.catalog.compact(&[], FileId::Segment(1), &dropped, &[]);
            }
            Step::Fading(policy) => {
                let fading = policy.map(|tiers| Fading { tiers, ..Fading::default() });
                self.catalog.set_fading(fading);
            }
            Step::Wait { minutes } => self.now += minutes * MINUTE,
            Step::Ask => {}
        }
    }

    fn kept(&self, now: i64) -> (ByTier<u64>, u64, u64) {
        let mut count = TierCount::at(now);
        while !self.catalog.count_tiers(&mut count) {}
        (count.tiers(), self.catalog.counts.forgotten(), self.catalog.version_count())
    }

    /// The same, by a walk over all rows.
    fn counted(&self, now: i64) -> (ByTier<u64>, u64, u64) {
        let rows = (0..).zip(self.catalog.docs());
        let (mut tiers, mut forgotten, mut versions) = ([0; 4], 0, 0);
        for (id, doc) in rows.filter(|(_, doc)| !doc.dropped) {
            versions += 1;
            forgotten += u64::from(doc.forgotten);
            let tier = if doc.is_live() { self.catalog.tier(id, false, now) } else { None };
            if let Some((tier, _)) = tier {
                tiers[tier as usize] += 1;
            }
        }
        (tiers, forgotten, versions)
    }

    /// Times at which a record may move next, to the microsecond, and just beside them.
    fn moments(&self) -> Vec<i64> {
        let Some(fading) = self.catalog.fading() else { return vec![self.now] };
        let rows = (0..).zip(self.catalog.docs());
        let live = rows.filter(|(_, doc)| doc.is_live());
        let moves =
            live.filter_map(|(id, doc)| Some(fading.moves(doc, &self.catalog.decay_state(id)?)));
        let moves = moves.flatten().flatten().take(60);
        moves
            .flat_map(|at| [-2 * ROUNDING, -ROUNDING, -1, 0, 1, ROUNDING].map(|by| at + by))
            .collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn kept_counts_are_what_a_walk_counts(
        steps in proptest::collection::vec(step(), 1..400),
        at_moments in any::<bool>(),
    ) {
        let mut rig = Rig { catalog: Catalog::new(), now: DAWN, seq: 0 };
        rig.catalog.set_fading(Some(Fading::default()));
        for step in &steps {
            rig.carry_out(step);
            if matches!(step, Step::Ask) {
                prop_assert_eq!(rig.kept(rig.now), rig.counted(rig.now), "{:?}", step);
            }
        }
        let mut moments = if at_moments { rig.moments() } else { vec![rig.now] };
        moments.sort_unstable();
        for now in moments {
            prop_assert_eq!(rig.kept(now), rig.counted(now), "at {}", now);
        }
    }
}

#[test]
fn a_count_that_holds_is_not_made_again() {
    let mut rig = Rig { catalog: Catalog::new(), now: DAWN, seq: 0 };
    rig.catalog.set_fading(Some(Fading::default()));
    let put = |name| Step::Put { name, importance: 5, tier: 0, age_minutes: 0, anchored: false };
    for _ in 0..10 * ROWS {
        rig.carry_out(&put((rig.seq % 200) as u8));
    }
    let stale = |rig: &Rig| {
        let blocks = rig.catalog.tier_counts.blocks.lock();
        blocks.iter().filter(|block| !(block.from <= rig.now && rig.now < block.until)).count()
    };
    // Not in the millisecond in which they came.
    rig.now += MINUTE;
    rig.kept(rig.now);
    assert_eq!(stale(&rig), 0);
    rig.now += 58 * MINUTE;
    assert_eq!(stale(&rig), 0, "they move after an hour");
    rig.carry_out(&put(7));
    assert_eq!(stale(&rig), 1, "that in which it was superseded; the new one begins a block");
    rig.now += 2 * MINUTE;
    assert!(stale(&rig) > 1);
}
