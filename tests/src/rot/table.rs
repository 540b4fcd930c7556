//! Outcomes of all trials, by the damaged file.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use super::hurt::Class;
use super::trial::TrialOutcome;

/// Counts of trials of one class.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    trials: u64,
    whole: u64,
    healed: u64,
    marked: u64,
    told: u64,
    silent: u64,
    wrong: u64,
    returned: u64,
    reused: u64,
    refused: u64,
    panics: u64,
}

/// Names of the columns, and what they mean.
const COLUMNS: [(&str, &str); 11] = [
    ("trials", "folders"),
    ("whole", "all answers as before"),
    ("healed", "the file holds again what it held"),
    ("marked", "something withheld or marked"),
    ("told", "something lost, and status says so"),
    ("silent", "something lost, and nobody says so"),
    ("wrong", "an older or another content without a mark"),
    ("back", "something forgotten is there"),
    ("reused", "a version number given out twice"),
    ("refuse", "no start"),
    ("panic", "a panic"),
];
/// Number of columns, from the end, that must be zero.
const FAULTS: usize = 6;

impl Row {
    fn counts(&self) -> [u64; COLUMNS.len()] {
        [
            self.trials,
            self.whole,
            self.healed,
            self.marked,
            self.told,
            self.silent,
            self.wrong,
            self.returned,
            self.reused,
            self.refused,
            self.panics,
        ]
    }

    fn add(&mut self, outcome: &TrialOutcome) {
        let verdict = &outcome.verdict;
        let is_whole = verdict.is_whole() && outcome.faults().is_empty();
        self.trials += 1;
        self.whole += u64::from(is_whole);
        self.healed += u64::from(outcome.is_healed);
        self.marked += u64::from(!verdict.marked.is_empty());
        self.told += u64::from(!verdict.told.is_empty());
        self.silent += u64::from(!verdict.silent.is_empty());
        self.wrong += u64::from(!verdict.wrong.is_empty());
        self.returned += u64::from(!verdict.returned.is_empty());
        self.reused += u64::from(!outcome.reused.is_empty());
        self.refused += u64::from(outcome.refused.is_some());
        self.panics += u64::from(outcome.panics > 0);
    }
}

/// The counts of a campaign.
#[derive(Debug, Clone, Default)]
pub struct Table {
    rows: BTreeMap<Class, Row>,
    all: Row,
}

impl Table {
    /// Counts a trial.
    pub fn add(&mut self, outcome: &TrialOutcome) {
        self.rows.entry(outcome.class).or_default().add(outcome);
        self.all.add(outcome);
    }

    /// Counts the trials that had something of which there must be none.
    pub fn faults(&self) -> u64 {
        self.all.counts()[COLUMNS.len() - FAULTS..].iter().sum()
    }

    /// Counts the trials of a class, and those in which all answers were as before.
    pub fn whole(&self, class: Class) -> (u64, u64) {
        self.rows.get(&class).map_or((0, 0), |row| (row.trials, row.whole))
    }

    /// The counts as JSON, by class.
    pub fn to_json(&self) -> String {
        let named = self.rows.iter().map(|(class, row)| (class.as_str(), row));
        let rows = named.chain([("all", &self.all)]).map(|(name, row)| {
            let counts = COLUMNS.iter().zip(row.counts());
            let counts: Vec<String> =
                counts.map(|((name, _), count)| format!("\"{name}\":{count}")).collect();
            format!("\"{name}\":{{{}}}", counts.join(","))
        });
        format!("{{{}}}", rows.collect::<Vec<_>>().join(","))
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut head = " ".repeat(10);
        for (name, _) in COLUMNS {
            write!(head, " {name}")?;
        }
        writeln!(f, "{}", head.trim_end())?;
        let named = self.rows.iter().map(|(class, row)| (class.as_str(), row));
        for (name, row) in named.chain([("all", &self.all)]) {
            write!(f, "{name:<10}")?;
            for ((name, _), count) in COLUMNS.iter().zip(row.counts()) {
                write!(f, " {count:>width$}", width = name.len())?;
            }
            writeln!(f)?;
        }
        writeln!(f)?;
        for (at, (name, meaning)) in COLUMNS.iter().enumerate() {
            let must = if at >= COLUMNS.len() - FAULTS { " (must be 0)" } else { "" };
            writeln!(f, "{name:<8}{meaning}{must}")?;
        }
        Ok(())
    }
}
