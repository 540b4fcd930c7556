//! Which segments to compact next, if any: a decision over plain data.
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
//!   a rule let go of is only dead: nobody minds that it is there.
//! - Where the store takes more of the card than it may, a tenth is enough.

use std::ops::Range;
use std::time::Duration;

/// So many small neighbours are merged, however little that is.
const MANY: usize = 16;
/// What many become is so many times larger than the largest of them: each byte moves once for each
/// time that what it lies in grows so much (*tiering*, as in log-structured merge trees).
const GROWTH: u64 = 4;
/// What someone has had forgotten is seldom in all of so many parts of a store: nothing is made larger
/// than one of them, so that little else moves with it.
const PARTS: u64 = 32;
/// But segments up to this are, in bytes: below it what each of them says of itself, and the copies it
/// holds of what it refers to, take up too much.
const LEAST: u64 = 128 << 10;
/// Small segments stay as they are until the youngest is so old.
const SETTLED: Duration = Duration::from_secs(86_400);

/// A segment, as far as the decision goes; a list of them is in the order of their transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Length of its file.
    pub bytes: u64,
    /// How many of them a compaction would drop.
    pub dead: u64,
    /// How long ago the newest of its versions was recorded.
    pub age: Duration,
    /// Whether it holds anything that was forgotten, by someone or by a rule.
    pub has_forgotten: bool,
    /// How long it has held something that someone has had forgotten.
    pub forgotten_for: Option<Duration>,
    /// Whether it was compacted before.
    pub is_compacted: bool,
    /// Whether it may be compacted at all: not if it is damaged.
    pub is_sound: bool,
}

impl Segment {
    fn left(&self) -> u64 {
        self.bytes.saturating_sub(self.dead)
    }
}

/// What the decision goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// No segment is made larger than this, in bytes.
    pub segment_max: u64,
    /// What someone has had forgotten is on the card no longer than this.
    pub purge_after: Duration,
}

/// What the card allows now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Bytes that may be written now: what is left of the day's [`Budget`](super::budget::Budget).
    pub may_write: u64,
    /// Whether the store takes more of the card than it may: then room is worth more than wear.
    pub is_short: bool,
}

impl Default for Allowance {
    /// No bound.
    fn default() -> Self {
        Self { may_write: u64::MAX, is_short: false }
    }
}

/// The run of neighbours to compact next; `None` if nothing is due, or nothing that is due may be
/// written.
pub fn due(segments: &[Segment], rules: &Rules, allowance: &Allowance) -> Option<Range<usize>> {
    let left: u64 = segments.iter().map(Segment::left).sum();
    let rules = &Rules { segment_max: rules.segment_max.min(LEAST.max(left / PARTS)), ..*rules };
    let limit = rules.segment_max.min(allowance.may_write);
    let is_overdue = |s: &Segment| s.forgotten_for.is_some_and(|held| held >= rules.purge_after);
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
    let is_small = |s: &Segment| s.is_sound && s.left() < rules.segment_max / 2 && s.age >= SETTLED;
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
pub fn all(
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
            let allowance = Allowance { may_write, is_short };
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
