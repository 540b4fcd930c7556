//! A short run of the corruption campaign, with the same seeds each time. The long one is
//! `cargo run --release -p omird-tests --bin rot_campaign -- --trials 10000`, and `--kind sector --trials 2000`.
//!
//! Invariant 10 of ARCHITECTURE.md.

use omird_tests::rot::{Class, Kind, Past, Shape, run};

/// What may rot without any answer being wrong: all but the segments.
const CLASSES: [Class; 5] =
    [Class::Signatures, Class::Logs, Class::Witnesses, Class::Keys, Class::Others];

fn campaign(kind: Kind, seeds: std::ops::Range<u64>) {
    let root = tempfile::tempdir().expect("a folder");
    let past = Past::live(root.path(), Shape::Small);
    let mut whole = 0;
    for seed in seeds.clone() {
        let outcome = run(&past, &root.path().join("trial"), kind, &CLASSES, seed);
        // Bytes that are lost to the same bytes are not.
        let Some(outcome) = outcome else { continue };
        assert!(
            outcome.faults().is_empty(),
            "seed {seed}: {}: {:?}",
            outcome.what,
            outcome.faults()
        );
        whole += u64::from(outcome.verdict.is_whole());
    }
    let trials = seeds.end - seeds.start;
    match kind {
        // The logs are repaired, of the others there is a second copy.
        Kind::Flip => assert!(whole * 100 >= trials * 99, "{whole} of {trials} answer as before"),
        Kind::Sector => assert!(whole * 100 >= trials * 30, "{whole} of {trials} answer as before"),
    }
}

#[test]
fn a_bit_that_flips_outside_segments_changes_no_answer() {
    campaign(Kind::Flip, 1..41);
}

#[test]
fn a_sector_that_is_lost_outside_segments_gives_no_wrong_answer() {
    campaign(Kind::Sector, 1..25);
}
