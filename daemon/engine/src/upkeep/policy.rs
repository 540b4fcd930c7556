//! The maintenance policy: the segments to compact next, if any. A decision over plain data.
//!
//! A robot's card wears out by what is written to it, and each byte of a memory was written twice
//! already, to the log and to its segment. So nothing is merged eagerly:
//!
//! - Small neighbours are merged when there are many of them, none of which is most of what they
//!   become, or enough for a good segment, and a day old; what is superseded in that time is then
//!   dropped on the way. A good segment is a small part of the store: what is forgotten moves all that
//!   lies beside it.
//! - A segment is rewritten when at least half of it is dead: that writes at most a byte for each
//!   byte it frees.
//! - What someone has had forgotten is gone from the card after a bounded time, however little else is
//!   dead. It waits only for a day whose budget is not used up; what it writes beyond that is owed. What
//!   a rule let go of is only dead: it does no harm where it is.
//! - Where the store takes more of the card than it may, a tenth is enough.
//! - On a disk that is full, room is worth more than wear: whatever frees a block in `WORTH` is rewritten, what frees
//!   most for what it writes first, of what fits into the room there is. Where not even the reserve can be kept, each
//!   block is worth it.

use std::ops::Range;
use std::time::Duration;

use omird_store::disk::BLOCK;
use omird_store::segment_room;

use crate::card::reserve;

/// So many small neighbours are merged, however little that is.
const MANY: usize = 16;
/// Segments are merged into one so many times larger than the largest of them: each byte moves once for each
/// time that what it lies in grows so much (*tiering*, as in log-structured merge trees).
const GROWTH: u64 = 4;
/// A memory forgotten on request is seldom in all of so many parts of a store: nothing is made larger
/// than one of them, so that little else moves with it.
const PARTS: u64 = 32;
/// But segments up to this are, in bytes: below it what each of them says of itself, and the copies it
/// holds of what it refers to, take up too much.
const LEAST: u64 = 128 << 10;
/// On a full disk a block that is freed is worth so many that are written for it.
const WORTH: u64 = 32;
/// Small segments stay as they are until the youngest is so old.
const OLD_ENOUGH: Duration = Duration::from_secs(86_400);

/// A segment, as far as the decision goes; a list of them is in the order of their transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Length of its file.
    pub bytes: u64,
    /// Those of them that a compaction would drop.
    pub dead: u64,
    /// Age of the newest of its versions.
    pub age: Duration,
    /// True if it holds anything that was forgotten, by someone or by a rule.
    pub has_forgotten: bool,
    /// Time for which it has held a memory forgotten on request.
    pub forgotten_for: Option<Duration>,
    /// True if it was compacted before.
    pub is_compacted: bool,
    /// True if it may be compacted at all: not if it is damaged.
    pub is_sound: bool,
}

impl Segment {
    fn left(&self) -> u64 {
        self.bytes.saturating_sub(self.dead)
    }
}

/// The rules of the decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules {
    /// No segment is made larger than this, in bytes.
    pub segment_max: u64,
    /// Longest time that a memory forgotten on request stays on the card.
    pub purge_after: Duration,
}

/// The allowance of the card, as of now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allowance {
    /// Bytes that may be written now: what is left of the day's [`Budget`](crate::card::budget::Budget).
    pub may_write: u64,
    /// True if the store takes more of the card than it may: then room is worth more than wear.
    pub is_short: bool,
    /// The space to work with on a full disk; `None` on one that is not full.
    pub full: Option<Full>,
}

/// The space to work with on a full disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full {
    /// Bytes that a new segment may take, beside those it replaces.
    pub free: u64,
    /// True if there is no room even for the reserve.
    pub is_dire: bool,
}

impl Full {
    /// Returns true if it is worth it to write so many bytes in the place of others.
    pub(crate) fn is_worth(&self, before: u64, after: u64) -> bool {
        let freed = before.saturating_sub(after);
        freed >= BLOCK && (self.is_dire || freed >= after / WORTH)
    }
}

impl Default for Allowance {
    /// No bound.
    fn default() -> Self {
        Self { may_write: u64::MAX, is_short: false, full: None }
    }
}

/// The run of neighbours to compact next; `None` if nothing is due, or nothing that is due may be
/// written.
pub(crate) fn due(
    segments: &[Segment],
    rules: &Rules,
    allowance: &Allowance,
) -> Option<Range<usize>> {
    let left: u64 = segments.iter().map(Segment::left).sum();
    let rules = &Rules { segment_max: rules.segment_max.min(LEAST.max(left / PARTS)), ..*rules };
    let is_overdue = |s: &Segment| s.forgotten_for.is_some_and(|held| held >= rules.purge_after);
    if let Some(full) = &allowance.full {
        let fits = |s: &Segment| s.is_sound && segment_room(s.left()) <= full.free;
        let overdue = || segments.iter().position(|s| is_overdue(s) && fits(s));
        // Two that lost two fifths each become one.
        let most = reserve::segment(rules.segment_max);
        return freeing(segments, most, full).or_else(|| overdue().map(|at| at..at + 1));
    }
    let limit = rules.segment_max.min(allowance.may_write);
    let is_wasteful = |s: &Segment| match allowance.is_short {
        true => s.dead > 0 && s.dead >= s.bytes / 10,
        false => s.dead > 0 && s.dead >= s.bytes / 2,
    };
    // A segment larger than a day's budget would never be purged if it had to fit in.
    let overdue = if allowance.may_write > 0 { u64::MAX } else { 0 };
    grown(segments, limit, overdue, is_overdue)
        .or_else(|| grown(segments, limit, allowance.may_write, is_wasteful))
        .or_else(|| small(segments, rules, limit))
}

/// The run that frees most for what is written, of those that fit into the room and are worth it. Several become
/// one within `limit`; one alone may be larger.
fn freeing(segments: &[Segment], limit: u64, full: &Full) -> Option<Range<usize>> {
    let mut best: Option<(Range<usize>, u64, u64)> = None;
    for first in 0..segments.len() {
        let (mut before, mut left) = (0u64, 0u64);
        for (at, segment) in segments.iter().enumerate().skip(first) {
            before = before.saturating_add(segment_room(segment.bytes));
            left = left.saturating_add(segment.left());
            let after = segment_room(left);
            let is_one = at == first;
            if !segment.is_sound || after > full.free || (!is_one && left > limit) {
                break;
            }
            let freed = before.saturating_sub(after);
            let is_better = best.as_ref().is_none_or(|(_, most, cost)| {
                u128::from(freed) * u128::from(*cost) > u128::from(*most) * u128::from(after)
            });
            if is_better && full.is_worth(before, after) {
                best = Some((first..at + 1, freed, after));
            }
        }
    }
    best.map(|(run, ..)| run)
}

/// The first segment that is wanted, with the neighbours behind it that are wanted too, as far as
/// the result stays within `limit`. One alone may be larger than that, if it may be written at all.
fn grown(
    segments: &[Segment],
    limit: u64,
    may_write: u64,
    is_wanted: impl Fn(&Segment) -> bool,
) -> Option<Range<usize>> {
    let is_wanted = |s: &Segment| s.is_sound && is_wanted(s);
    let first =
        segments.iter().position(|segment| is_wanted(segment) && segment.left() <= may_write)?;
    let mut left = segments[first].left();
    let more = segments[first + 1..].iter().take_while(|segment| {
        left = left.saturating_add(segment.left());
        is_wanted(segment) && left <= limit
    });
    Some(first..first + 1 + more.count())
}

/// The first run of small neighbours that is worth it, as long as may be.
fn small(segments: &[Segment], rules: &Rules, limit: u64) -> Option<Range<usize>> {
    let is_small =
        |s: &Segment| s.is_sound && s.left() < rules.segment_max / 2 && s.age >= OLD_ENOUGH;
    (0..segments.len()).find_map(|first| {
        let (mut bytes, mut largest, mut is_fresh) = (0u64, 0u64, true);
        let mut end = None;
        for (at, segment) in segments.iter().enumerate().skip(first) {
            bytes = bytes.saturating_add(segment.left());
            if !is_small(segment) || bytes > limit {
                break;
            }
            largest = largest.max(segment.left());
            is_fresh &= !segment.is_compacted;
            let len = at + 1 - first;
            let is_many = len >= MANY && largest <= bytes / GROWTH;
            if is_many || (is_fresh && len > 1 && bytes >= rules.segment_max / 2) {
                end = Some(at + 1);
            }
        }
        end.map(|end| first..end)
    })
}

/// The runs that take in all segments that are wanted, with what is left of them within
/// `segment_max`. A segment alone is one only if `alone` says that it gains by it.
pub(crate) fn all(
    segments: &[Segment],
    segment_max: u64,
    is_wanted: impl Fn(usize) -> bool,
    alone: impl Fn(usize) -> bool,
) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut left = 0u64;
    for (at, segment) in segments.iter().enumerate() {
        if !segment.is_sound || !is_wanted(at) {
            continue;
        }
        let with_last = left.saturating_add(segment.left());
        match runs.last_mut() {
            Some(run) if run.end == at && with_last <= segment_max => {
                run.end += 1;
                left = with_last;
            }
            _ => {
                runs.push(at..at + 1);
                left = segment.left();
            }
        }
    }
    runs.retain(|run| run.len() > 1 || alone(run.start));
    runs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MIB: u64 = 1 << 20;
    const DAY: Duration = Duration::from_secs(86_400);
    const RULES: Rules = Rules { segment_max: 32 * MIB, purge_after: DAY };

    fn segment(bytes: u64, dead: u64) -> Segment {
        Segment {
            bytes,
            dead,
            age: 2 * DAY,
            has_forgotten: false,
            forgotten_for: None,
            is_compacted: false,
            is_sound: true,
        }
    }

    #[test]
    fn small_ones_wait_for_each_other() {
        let allowance = Allowance::default();
        let few = vec![segment(100, 0); MANY - 1];
        assert_eq!(due(&few, &RULES, &allowance), None);
        let many = vec![segment(100, 0); MANY];
        assert_eq!(due(&many, &RULES, &allowance), Some(0..MANY));
        let enough = vec![segment(LEAST / 3, 0); 2];
        assert_eq!(due(&enough, &RULES, &allowance), Some(0..2));
        let parts = vec![segment(MIB, 0); 4 * PARTS as usize];
        assert_eq!(due(&parts, &RULES, &allowance), Some(0..4), "a small part of the store");
        let merged = vec![Segment { is_compacted: true, ..segment(LEAST / 3, 0) }; 2];
        assert_eq!(due(&merged, &RULES, &allowance), None, "once is enough");
        let fresh = vec![Segment { age: DAY / 2, ..segment(100, 0) }; MANY];
        assert_eq!(due(&fresh, &RULES, &allowance), None);
    }

    #[test]
    fn what_was_rewritten_alone_does_not_keep_its_neighbours_apart() {
        let budget = Allowance::default();
        let mut segments = vec![segment(100, 0); MANY];
        for rewritten in segments.iter_mut().step_by(3) {
            rewritten.is_compacted = true;
        }
        assert_eq!(due(&segments, &RULES, &budget), Some(0..MANY));
        // A large one waits until there is enough beside it.
        segments.insert(0, segment(1000, 0));
        segments.push(segment(1000, 0));
        assert_eq!(due(&segments, &RULES, &budget), Some(1..1 + MANY));
    }

    #[test]
    fn dead_and_forgotten_bytes_make_a_segment_due() {
        let allowance = Allowance::default();
        let mut segments = vec![segment(20 * MIB, 0); 4];
        segments[2].dead = 10 * MIB;
        assert_eq!(due(&segments, &RULES, &allowance), Some(2..3));
        segments[1].forgotten_for = Some(DAY / 2);
        assert_eq!(due(&segments, &RULES, &allowance), Some(2..3));
        segments[1].forgotten_for = Some(DAY);
        assert_eq!(due(&segments, &RULES, &allowance), Some(1..2), "that comes first");
        segments[1].is_sound = false;
        assert_eq!(due(&segments, &RULES, &allowance), Some(2..3));
        segments[2].dead = 3 * MIB;
        assert_eq!(due(&segments, &RULES, &allowance), None);
        let short = Allowance { is_short: true, ..allowance };
        assert_eq!(due(&segments, &RULES, &short), Some(2..3));
        let spent = Allowance { may_write: MIB, ..short };
        assert_eq!(due(&segments, &RULES, &spent), None);
        segments[3].has_forgotten = true;
        assert_eq!(due(&segments, &RULES, &spent), None, "by a rule, and little of it");
        segments[3].forgotten_for = Some(DAY);
        assert_eq!(due(&segments, &RULES, &spent), Some(3..4), "the rest is owed");
        let owing = Allowance { may_write: 0, ..short };
        assert_eq!(due(&segments, &RULES, &owing), None);
    }

    #[test]
    fn on_a_full_disk_what_frees_most_and_fits_comes_first() {
        let on = |free: u64, is_dire| {
            let full = Some(Full { free, is_dire });
            Allowance { may_write: 0, is_short: false, full }
        };
        let mut segments = vec![segment(MIB, 0); 6];
        let wide = on(2 * MIB, false);
        assert_eq!(due(&segments, &RULES, &wide), None, "nothing is dead");
        segments[1].dead = MIB / 10;
        assert_eq!(due(&segments, &RULES, &wide), Some(1..2), "also without a budget");
        segments[4].dead = MIB / 2;
        assert_eq!(due(&segments, &RULES, &wide), Some(4..5));
        assert_eq!(due(&segments, &RULES, &on(MIB / 4, false)), None, "neither fits");
        segments[3].dead = MIB * 9 / 10;
        assert_eq!(due(&segments, &RULES, &on(MIB / 4, false)), Some(3..4));
        segments[3].is_sound = false;
        segments[4].dead = 0;
        segments[1].dead = MIB / 64;
        assert_eq!(due(&segments, &RULES, &wide), None, "too little for what it costs");
        assert_eq!(due(&segments, &RULES, &on(2 * MIB, true)), Some(1..2));
        // The files beside each of them take room as well.
        let small = vec![segment(LEAST / 8, 0); 4];
        assert!(due(&small, &RULES, &wide).is_some_and(|run| run.len() > 1));
    }

    fn any_segment() -> impl Strategy<Value = Segment> {
        let sizes = prop_oneof![0..100_000u64, 0..40 * MIB];
        let held = proptest::option::of(0..3 * DAY.as_secs());
        (sizes, 0.0..1.0f64, 0..3 * DAY.as_secs(), held, any::<bool>(), 0..10u8).prop_map(
            |(bytes, dead, age, held, is_compacted, luck)| Segment {
                bytes,
                dead: (bytes as f64 * dead) as u64,
                age: Duration::from_secs(age),
                has_forgotten: held.is_some() || luck > 8,
                forgotten_for: held.map(Duration::from_secs),
                is_compacted,
                is_sound: luck > 0,
            },
        )
    }

    proptest! {
        #[test]
        fn a_run_is_sound_within_bounds_and_has_a_reason(
            segments in proptest::collection::vec(any_segment(), 0..40),
            may_write in prop_oneof![Just(u64::MAX), 0..50 * MIB],
            is_short in any::<bool>(),
        ) {
            let allowance = Allowance { may_write, is_short, full: None };
            let Some(run) = due(&segments, &RULES, &allowance) else {
                for s in segments.iter().filter(|s| s.is_sound && s.left() <= may_write) {
                    prop_assert!(s.forgotten_for.is_none_or(|held| held < DAY));
                    prop_assert!(s.dead == 0 || s.dead < s.bytes / 2);
                }
                return Ok(());
            };
            let chosen = &segments[run.clone()];
            prop_assert!(!chosen.is_empty() && chosen.iter().all(|s| s.is_sound));
            let left: u64 = chosen.iter().map(Segment::left).sum();
            let overdue = chosen.iter().all(|s| s.forgotten_for.is_some_and(|held| held >= DAY));
            prop_assert!(left <= may_write || (overdue && chosen.len() == 1 && may_write > 0));
            prop_assert!(chosen.len() == 1 || left <= RULES.segment_max);
            let share = if is_short { 10 } else { 2 };
            let wasteful = chosen.iter().all(|s| s.dead > 0 && s.dead >= s.bytes / share);
            let merged = chosen.len() > 1 && chosen.iter().all(|s| s.age >= DAY);
            prop_assert!(overdue || wasteful || merged);
        }

        #[test]
        fn making_room_comes_to_an_end_and_needs_no_more_than_there_is(
            mut segments in proptest::collection::vec(any_segment(), 0..60),
            free in 0..40 * MIB,
            is_dire in any::<bool>(),
        ) {
            let full = Full { free, is_dire };
            let allowance = Allowance { may_write: 0, is_short: false, full: Some(full) };
            let taken = |segments: &[Segment]| -> u64 {
                segments.iter().map(|s| segment_room(s.bytes)).sum()
            };
            while let Some(run) = due(&segments, &RULES, &allowance) {
                let is_overdue = segments[run.start].forgotten_for.is_some_and(|held| held >= DAY);
                let before = taken(&segments);
                let left: u64 = segments[run.clone()].iter().map(Segment::left).sum();
                prop_assert!(segment_room(left) <= free);
                prop_assert!(segments[run.clone()].iter().all(|s| s.is_sound));
                segments.splice(run, [segment(left, 0)]);
                prop_assert!(is_overdue || taken(&segments) + BLOCK <= before);
            }
        }

        #[test]
        fn compacting_what_is_due_comes_to_an_end(
            mut segments in proptest::collection::vec(any_segment(), 0..60),
        ) {
            let mut written = 0;
            let before: u64 = segments.iter().map(|s| s.bytes).sum();
            while let Some(run) = due(&segments, &RULES, &Allowance::default()) {
                let left: u64 = segments[run.clone()].iter().map(Segment::left).sum();
                let age = segments[run.end - 1].age;
                let merged = Segment {
                    age,
                    is_compacted: true,
                    ..segment(left, 0)
                };
                segments.splice(run, [merged]);
                written += left;
            }
            // Once for what is dead or forgotten, once with its neighbours, once with theirs.
            prop_assert!(written <= 3 * before, "{written} of {before}");
        }

        #[test]
        fn all_takes_each_segment_that_is_wanted_once(
            segments in proptest::collection::vec(any_segment(), 0..40),
            wanted in proptest::collection::vec(any::<bool>(), 40),
        ) {
            let runs = all(&segments, RULES.segment_max, |at| wanted[at], |_| true);
            let taken: Vec<usize> = runs.iter().cloned().flatten().collect();
            let expected: Vec<usize> =
                (0..segments.len()).filter(|&at| wanted[at] && segments[at].is_sound).collect();
            prop_assert_eq!(taken, expected);
            for run in runs.into_iter().filter(|run| run.len() > 1) {
                let left: u64 = segments[run].iter().map(Segment::left).sum();
                prop_assert!(left <= RULES.segment_max);
            }
        }
    }
}
