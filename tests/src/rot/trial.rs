//! One trial: a copy of a folder, one wound, a start, every answer, another start, and a new version of
//! everything.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use omird::engine::CompactionScope;
use omird::engine::testing::ByHand;

use super::hurt::{Class, Kind, Wound, hurt};
use super::judge::{Answers, Verdict};
use super::past::{Past, Running};
use crate::Result;
use crate::random::Random;
use crate::session;

/// The outcome of one folder.
#[derive(Debug, Clone)]
pub struct TrialOutcome {
    /// The seed that gives it again.
    pub seed: u64,
    /// The purpose of the damaged file.
    pub class: Class,
    /// The file, and the damage to it.
    pub what: String,
    /// All answers, compared.
    pub verdict: Verdict,
    /// New versions with numbers that were given out before.
    pub reused: Vec<String>,
    /// The reason why it did not start.
    pub refused: Option<String>,
    /// Number of panics.
    pub panics: u64,
    /// True if the file holds again what it held.
    pub is_healed: bool,
}

impl TrialOutcome {
    /// Everything of which there must be none.
    pub fn faults(&self) -> Vec<String> {
        let named = |name: &str, list: &[String]| -> Vec<String> {
            list.iter().map(|what| format!("{name}: {what}")).collect()
        };
        let mut faults = named("wrong", &self.verdict.wrong);
        faults.extend(named("forgotten returned", &self.verdict.returned));
        faults.extend(named("lost and not told", &self.verdict.silent));
        faults.extend(named("version used twice", &self.reused));
        faults.extend(named("no start", self.refused.as_slice()));
        if self.panics > 0 {
            faults.push(format!("{} panics", self.panics));
        }
        faults
    }
}

/// Runs the trial of a seed in `folder`, which must not be there; nothing where nothing was hurt.
///
/// # Panics
/// If the copy cannot be made.
pub fn run(
    past: &Past,
    folder: &Path,
    kind: Kind,
    classes: &[Class],
    seed: u64,
) -> Option<TrialOutcome> {
    let mut random = Random::new(seed);
    past.copy_to(folder).expect("it is copied");
    let wound = hurt(folder, kind, classes, &mut random).expect("the disk is good");
    let outcome = wound.map(|wound| {
        let panics = session::panics();
        let Wound { class, path, before, what } = wound;
        let what = format!("{}, {what}", path.display());
        let mut outcome = TrialOutcome {
            seed,
            class,
            what,
            verdict: Verdict::default(),
            reused: Vec::new(),
            refused: None,
            panics: 0,
            is_healed: false,
        };
        let lived = catch_unwind(AssertUnwindSafe(|| {
            live(past, folder, &mut random, &mut outcome, || {
                fs::read(folder.join(&path)).is_ok_and(|now| now.starts_with(&before))
            })
        }));
        match lived {
            Ok(Ok(())) => {}
            Ok(Err(why)) => outcome.refused = Some(why.to_string()),
            Err(_) => outcome.panics += 1,
        }
        outcome.panics += session::panics() - panics;
        outcome
    });
    fs::remove_dir_all(folder).expect("it is removed");
    outcome
}

fn live(
    past: &Past,
    folder: &Path,
    random: &mut Random,
    outcome: &mut TrialOutcome,
    is_healed: impl Fn() -> bool,
) -> Result {
    let open = || past.open(folder);
    let ask = |engine: &Running| past.answers.judge(&Answers::of(engine, past.highest.keys()));
    let engine = open()?;
    outcome.verdict = ask(&engine);
    // A compaction that drops or rewrites damaged bytes must not take the mark along.
    if random.chance(30) {
        let _ = engine.compact(CompactionScope::All);
        outcome.verdict.add(ask(&engine));
    }
    outcome.is_healed = is_healed();
    drop(engine);
    let engine = open()?;
    outcome.verdict.add(ask(&engine));
    let given = past.store_all_again(&engine);
    for (target, version) in given {
        // A name of which a compaction left no trace begins again, also if nothing rotted.
        let (highest, whole) = (past.highest[&target], past.given.get(&target));
        if version <= highest && whole.is_none_or(|whole| version < *whole) {
            outcome.reused.push(format!("{target}: {version}, after {highest}"));
        }
    }
    Ok(())
}
