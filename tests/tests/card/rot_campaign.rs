//! A short run of the corruption campaign, with the same seeds each time. The long one is
//! `cargo run --release -p omird-tests --bin rot_campaign -- --trials 10000`, and `--kind sector --trials 2000`.
//!
//! Invariant 10 of ARCHITECTURE.md.

use omird_tests::rot::{Class, Kind, Past, Shape, run};

/// Hurts a folder once for each seed; tells in how many trials there was something to hurt, and in how many of
/// these all answers were as before.
fn campaign(kind: Kind, classes: &[Class], seeds: std::ops::Range<u64>) -> (u64, u64) {
    let root = tempfile::tempdir().expect("a folder");
    let past = Past::live(root.path(), Shape::Small);
    let (mut hurt, mut whole) = (0, 0);
    for seed in seeds {
        let outcome = run(&past, &root.path().join("trial"), kind, classes, seed);
        // Bytes that are lost to the same bytes are not.
        let Some(outcome) = outcome else { continue };
        let faults = outcome.faults();
        assert!(faults.is_empty(), "seed {seed}: {}: {faults:?}", outcome.what);
        hurt += 1;
        whole += u64::from(outcome.verdict.is_whole());
    }
    (hurt, whole)
}

#[test]
fn a_bit_that_flips_changes_no_answer() {
    let (hurt, whole) = campaign(Kind::Flip, &Class::ALL, 1..61);
    assert!(whole * 100 >= hurt * 99, "{whole} of {hurt} answer as before");
}

#[test]
fn a_sector_that_is_lost_gives_no_wrong_answer() {
    let (hurt, whole) = campaign(Kind::Sector, &Class::ALL, 1..31);
    // Memories that lie in logs alone may be lost.
    assert!(whole * 100 >= hurt * 50, "{whole} of {hurt} answer as before");
}

#[test]
fn what_a_segment_loses_is_restored() {
    for kind in [Kind::Flip, Kind::Sector] {
        let (hurt, whole) = campaign(kind, &[Class::Segments], 1..41);
        assert_eq!(whole, hurt, "all answer as before");
    }
}
