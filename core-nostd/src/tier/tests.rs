extern crate std;

use super::*;
use Tier::{Archive, Longterm, Session, Working};
use proptest::prelude::*;
use std::string::ToString;

fn record(age_hours: f64, importance: f64, access_count: u32, retrievability: f64) -> TierInputs {
    TierInputs { age_hours, importance, access_count, retrievability, anchored: false }
}

#[test]
fn strength_by_hand() {
    let policy = TierPolicy::default(); // k = 4
    let strength = |importance, n| record(0.0, importance, n, 1.0).strength(&policy);
    assert_eq!(strength(0.0, 0), 0.0); // 1 − 1·4/4
    assert_eq!(strength(0.0, 4), 0.5); // 1 − 1·4/8
    assert_eq!(strength(0.5, 0), 0.5); // 1 − (1/2)·4/4
    assert_eq!(strength(0.5, 4), 0.75); // 1 − (1/2)·(1/2)
    assert_eq!(strength(0.0, 12), 0.75); // 1 − 1·4/16
    assert_eq!(strength(1.0, 0), 1.0);
    assert_eq!(strength(7.0, 0), 1.0); // clamped
    assert_eq!(strength(-7.0, 0), 0.0); // clamped
}

#[test]
fn the_table() {
    let policy = TierPolicy::default();
    let table = [
        // Fresh: stays in focus, however important.
        (Working, record(0.5, 1.0, 9, 1.0), Working),
        // One hour: out of focus, however unimportant; the border counts.
        (Working, record(1.0, 0.0, 0, 1.0), Session),
        (Working, record(-1.0, 1.0, 9, 1.0), Working), // clock went back
        (Working, record(1e4, 1.0, 9, 1.0), Session),  // one step, not two
        // A day, and strong enough: consolidated. The border counts: 1 − 0.4·4/4 = 0.6.
        (Session, record(24.0, 0.6, 0, 0.9), Longterm),
        (Session, record(23.9, 0.75, 0, 0.9), Session),
        (Session, record(24.0, 0.5, 0, 0.9), Session), // 0.5 is too weak …
        (Session, record(24.0, 0.5, 1, 0.9), Longterm), // … with one access 1 − 0.5·4/5 = 0.6
        (Session, record(24.0, 0.0, 6, 0.9), Longterm), // 1 − 4/10 = 0.6 by access alone
        (Session, record(24.0, 0.0, 5, 0.9), Session), // 1 − 4/9 = 0.56
        // Knowledge stays while it can be retrieved, strong or not.
        (Longterm, record(1e4, 0.0, 0, 0.1), Longterm),
        (Longterm, record(1e4, 1.0, 9, 0.0999), Archive),
        // Untouched and faded: outward, a step at a time.
        (Working, record(1e4, 0.0, 0, 0.05), Session),
        (Session, record(1e4, 0.0, 0, 0.05), Longterm),
        (Archive, record(1e4, 0.0, 0, 0.05), Archive),
        // Between the two thresholds the archive keeps what it has.
        (Archive, record(1e4, 1.0, 9, 0.3), Archive),
        (Archive, record(1e4, 0.0, 1, 0.5), Longterm),
        (Archive, record(1e4, 0.0, 1, 1.0), Longterm),
    ];
    for (from, inputs, to) in table {
        let (tier, reason) = next(from, &inputs, &policy);
        assert_eq!(tier, to, "{from} {inputs:?}: {reason}");
        assert_eq!(reason == TierReason::Stays, from == to);
    }
}

#[test]
fn anchored_records_keep_out_of_the_archive() {
    let policy = TierPolicy::default();
    // Retrievability below its floor cannot happen; the rule does not depend on that.
    let inputs = TierInputs { anchored: true, ..record(1e4, 0.0, 0, 0.0) };
    assert_eq!(next(Longterm, &inputs, &policy), (Longterm, TierReason::Stays));
    assert_eq!(next(Archive, &inputs, &policy), (Longterm, TierReason::Anchored));
}

#[test]
fn reasons_explain_themselves() {
    let policy = TierPolicy::default();
    let why = |tier, inputs| next(tier, &inputs, &policy).1.to_string();
    assert_eq!(why(Working, record(1.5, 0.0, 0, 1.0)), "age 1.50 h reached 1.00 h");
    assert_eq!(why(Session, record(30.0, 0.75, 0, 1.0)), "strength 0.750 reached 0.600");
    assert_eq!(why(Longterm, record(9e3, 0.0, 0, 0.05)), "retrievability 0.050 fell below 0.100");
    assert_eq!(why(Archive, record(9e3, 0.0, 1, 1.0)), "retrievability 1.000 reached 0.500 again");
    assert_eq!(why(Working, record(0.0, 0.0, 0, 1.0)), "no rule asks it to move");
}

#[test]
fn current_tier_by_hand() {
    let policy = TierPolicy::default();
    let table = [
        // (stored, hours in the store, accessed, inputs) -> tier
        (Working, 0.9, false, record(1e4, 1.0, 9, 0.01), Working), // only just stored
        (Working, 1.0, false, record(1.0, 1.0, 9, 1.0), Session),
        (Working, 24.0, false, record(24.0, 0.6, 0, 0.9), Longterm), // two steps at once
        (Working, 1.0, false, record(1e4, 0.6, 0, 0.9), Longterm),   // an old record, just imported
        (Working, 1e4, false, record(1e4, 0.0, 0, 0.05), Archive),   // all the way out
        (Archive, 1.0, false, record(1.0, 0.0, 0, 1.0), Archive),    // stated; nobody asked for it
        (Archive, 1.0, true, record(1.0, 0.0, 1, 1.0), Longterm),
        (Archive, 0.5, true, record(1.0, 0.0, 1, 1.0), Archive),
        (Working, f64::NAN, false, record(1e4, 0.0, 0, 0.05), Working),
    ];
    for (tier, hours, accessed, inputs, to) in table {
        let stored = Stored { tier, hours, accessed };
        let (now, why) = current(&stored, &inputs, &policy);
        assert_eq!(now, to, "{stored:?} {inputs:?}: {why}");
        assert_eq!(why == TierReason::Stays, stored.tier == to);
    }
}

#[test]
fn tier_words_and_order() {
    for tier in Tier::ALL {
        assert_eq!(tier.as_str().parse(), Ok(tier));
    }
    assert_eq!("long-term".parse::<Tier>(), Err(UnknownTier));
    assert!(Tier::ALL.is_sorted());
    assert_eq!(Tier::default(), Working);
}

fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 0.0..=1.0f64,
        2 => 0.0..200.0f64,
        1 => prop::num::f64::ANY | prop::num::f64::QUIET_NAN | prop::num::f64::INFINITE,
    ]
}

fn any_inputs() -> impl Strategy<Value = TierInputs> {
    (any_number(), any_number(), 0..50u32, any_number(), any::<bool>()).prop_map(
        |(age_hours, importance, access_count, retrievability, anchored)| TierInputs {
            age_hours,
            importance,
            access_count,
            retrievability,
            anchored,
        },
    )
}

fn any_policy() -> impl Strategy<Value = TierPolicy> {
    let any = prop::array::uniform6(any_number()).prop_map(|[a, b, c, d, e, f]| TierPolicy {
        session_after_hours: a,
        longterm_after_hours: b,
        longterm_strength: c,
        access_scale: d,
        archive_below: e,
        restore_at: f,
    });
    prop_oneof![Just(TierPolicy::default()), any]
}

proptest! {
    #[test]
    fn comes_to_rest_without_turning_back(
        start in prop::sample::select(&Tier::ALL[..]),
        inputs in any_inputs(),
        policy in any_policy(),
    ) {
        let mut tier = start;
        let mut seen = std::vec![start];
        loop {
            let (to, reason) = next(tier, &inputs, &policy);
            prop_assert_eq!(to == tier, reason == TierReason::Stays);
            if to == tier {
                break;
            }
            prop_assert_eq!((to as i32 - tier as i32).abs(), 1, "more than one step");
            prop_assert!(!seen.contains(&to), "{:?} then {}", seen, to);
            prop_assert!(!(inputs.anchored && to == Archive));
            seen.push(to);
            tier = to;
        }
    }

    #[test]
    fn the_current_tier_is_where_the_steps_end(
        start in prop::sample::select(&Tier::ALL[..]),
        hours in any_number(),
        accessed in any::<bool>(),
        inputs in any_inputs(),
        policy in any_policy(),
    ) {
        let stored = Stored { tier: start, hours, accessed };
        let (tier, why) = current(&stored, &inputs, &policy);
        prop_assert!(passes(&stored, &inputs, &policy, tier));
        prop_assert!(passes(&stored, &inputs, &policy, start));
        prop_assert_eq!(tier == start, why == TierReason::Stays);
        let again = current(&Stored { tier, ..stored }, &inputs, &policy);
        prop_assert_eq!(again, (tier, TierReason::Stays));
    }

    #[test]
    fn untouched_records_only_move_on(
        start in prop::sample::select(&Tier::ALL[..]),
        (importance, n, half_life) in (0.0..=1.0f64, 0..20u32, 0.1..1e4f64),
        (earlier, later) in (0.0..1e6f64, 0.0..1e6f64),
    ) {
        use crate::forgetting::{HalfLife, retrievability};
        let policy = TierPolicy::default();
        let at = |hours: f64| {
            let half_life = HalfLife::new(half_life).unwrap();
            let inputs = record(hours, importance, n, retrievability(half_life, hours));
            let stored = Stored { tier: start, hours, accessed: false };
            let (tier, _) = current(&stored, &inputs, &policy);
            (tier, stored, inputs)
        };
        let (before, ..) = at(earlier);
        let (after, stored, inputs) = at(earlier + later);
        prop_assert!(before <= after, "{before} then {after}");
        prop_assert!(passes(&stored, &inputs, &policy, before));
    }
}
