//! A week of a robot's life with five power cycles a day, half of them cuts and half of the starts in
//! 1970. At every start as much must be there as was acknowledged and not announced as forgotten;
//! in the end each of them is looked for, and what is anchored with its anchor.

use std::time::Duration;

use omird::disk::Disk;
use omird::engine::{Forgetting, Settings};
use omird_tests::check;
use omird_tests::random::seeds;
use omird_tests::years::board::Start;
use omird_tests::years::{self, Evening, Options};

const DAYS: i64 = 7;

#[test]
fn a_week_loses_nothing_that_was_not_announced() {
    for seed in seeds("OMIRD_SEED", 1..2) {
        let folder = tempfile::tempdir().expect("a folder");
        // So short that all of it happens in a week.
        let merge_after = Duration::from_secs(86_400);
        let settings = Settings {
            seal_after: Duration::from_secs(3 * 86_400),
            forgetting: Forgetting { merge_after, ..Forgetting::default() },
            ..Settings::default()
        };
        let options = Options { days: DAYS, seed, keeps_index: false, settings };
        let mut evenings: Vec<Evening> = Vec::new();
        let lived = years::run(&options, folder.path(), &mut |evening| {
            evenings.push(evening.clone());
        });
        let mut robot = lived.unwrap_or_else(|why| panic!("OMIRD_SEED repeats it: {why}"));
        robot.audit().unwrap_or_else(|why| panic!("seed {seed}, at the end: {why}"));

        // It was a life, and it was hard.
        assert_eq!(evenings.len() as i64, DAYS);
        let last = evenings.last().expect("days");
        let counts = &last.counts;
        assert!(counts.told > 350 && counts.recalls > 100, "{counts:?}");
        assert!(counts.boots > 30 && counts.cuts > 10 && counts.clockless > 10, "{counts:?}");
        assert!(counts.faded > 0, "sightings became part of others: {counts:?}");
        let asked: u64 = evenings.iter().filter_map(|e| e.probes).map(|p| p.anchored.asked).sum();
        assert!(asked > 0, "something is anchored");
        let found: u64 = evenings.iter().filter_map(|e| e.probes).map(|p| p.anchored.found).sum();
        assert_eq!(found, asked, "what is anchored is found");

        // One start after the other changes nothing, clean or not.
        robot.stop(false);
        robot.start(Start::WithClock).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        let before = robot.everything();
        for cut in [true, false] {
            robot.stop(cut);
            robot.start(Start::NeverSet).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
            assert!(robot.everything() == before, "seed {seed}: a start changed something");
        }
        robot.stop(false);
        robot.card.power();
        let card: &dyn Disk = &robot.card;
        let sealed = check::segments(card).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        assert!(sealed > 0);
    }
}
