//! The score of a memory for a question: six factors from 0 to 1, weighed. No store, no clock.

use omir_core::model::{ExperienceType, Kind};
use omir_core::value::{Map, Value};
use omird_text::{Language, StemSet};

use crate::settings::Settings;
use crate::state::Memory;
use crate::words::{MemoryType, StageType};

/// Hours after which a memory that is not used counts half.
const HALF_LIFE_HOURS: f64 = 168.0;
/// Uses from which on more do not count.
const MANY_USES: f64 = 100.0;
/// The share that a memory of a favoured kind gains.
const FAVOUR: f64 = 0.2;
/// A factor about which nothing is known.
const UNKNOWN: f64 = 0.5;

/// The weights of the factors; they sum to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Weights {
    sim: f64,
    rec: f64,
    freq: f64,
    stage: f64,
    crit: f64,
    err: f64,
}

impl Weights {
    /// Returns the weights of the settings: two are stated, the others share the rest as 0.35, 0.15, 0.10 and 0.10.
    pub(crate) fn of(settings: &Settings) -> Self {
        let stage = settings.stage_relevance_weight.clamp(0.0, 1.0);
        let err = settings.error_correction_weight.clamp(0.0, 1.0 - stage);
        let part = |share: f64| share / 0.70 * (1.0 - stage - err);
        Self { sim: part(0.35), rec: part(0.15), freq: part(0.10), stage, crit: part(0.10), err }
    }
}

/// The factors of one memory.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Parts {
    pub(crate) sim: f64,
    pub(crate) rec: f64,
    pub(crate) freq: f64,
    pub(crate) stage: f64,
    pub(crate) crit: f64,
    pub(crate) err: f64,
}

impl Parts {
    /// Returns the score.
    pub(crate) fn score(&self, weights: &Weights) -> f64 {
        weights.sim * self.sim
            + weights.rec * self.rec
            + weights.freq * self.freq
            + weights.stage * self.stage
            + weights.crit * self.crit
            + weights.err * self.err
    }

    /// As they stand in an answer.
    pub(crate) fn to_value(self) -> Value {
        let members = [
            ("sim", self.sim),
            ("rec", self.rec),
            ("freq", self.freq),
            ("stage", self.stage),
            ("crit", self.crit),
            ("err", self.err),
        ];
        Value::Object(
            members.into_iter().map(|(name, part)| (name, Value::from(part))).collect::<Map>(),
        )
    }
}

/// Returns how lately a memory was used, or came to be.
pub(crate) fn recency(hours: f64) -> f64 {
    // A time that lies ahead counts as now.
    (-hours.max(0.0) / HALF_LIFE_HOURS).exp2()
}

/// Returns how often a memory was used.
pub(crate) fn frequency(uses: u64) -> f64 {
    ((uses as f64).ln_1p() / MANY_USES.ln_1p()).min(1.0)
}

/// Returns the factor of a memory that is critical, or is not.
pub(crate) fn criticality(is_critical: bool, multiplier: f64) -> f64 {
    if is_critical { (0.5 * multiplier).clamp(0.0, 1.0) } else { UNKNOWN }
}

/// Returns how far a memory belongs to the current stage. A map of its own stands before the table.
pub(crate) fn stage_relevance(memory: &Memory, content: &str, current: Option<StageType>) -> f64 {
    let Some(current) = current else { return UNKNOWN };
    let own = memory.stage_relevance_map.get(&current).copied();
    let base = own.unwrap_or_else(|| by_table(memory.stage_type, current));
    let favour = if is_favoured(memory, content, current) { FAVOUR } else { 0.0 };
    (base + favour).min(1.0)
}

/// The table of the specification's reference: rows are the stage of the memory, columns the current one.
fn by_table(of_memory: Option<StageType>, current: StageType) -> f64 {
    let row = match of_memory {
        Some(StageType::Planning) => [1.0, 0.5, 0.4, 0.5],
        Some(StageType::Execution) => [0.3, 1.0, 0.6, 0.5],
        Some(StageType::Reflection) => [0.6, 0.6, 1.0, 0.4],
        Some(StageType::Verification) => [0.4, 0.4, 0.5, 1.0],
        None => [0.3; 4],
    };
    match current {
        StageType::Planning => row[0],
        StageType::Execution => row[1],
        StageType::Reflection => row[2],
        StageType::Verification => row[3],
    }
}

/// Returns true if memories of this kind help most in the current stage.
fn is_favoured(memory: &Memory, content: &str, current: StageType) -> bool {
    match current {
        StageType::Planning => memory.memory_type == MemoryType::Semantic,
        StageType::Execution => {
            memory.memory_type == MemoryType::Procedural || !memory.actions.is_empty()
        }
        StageType::Reflection => memory.corrects.is_some() || memory.success == Some(false),
        StageType::Verification => {
            let is_named = |fact: &str| {
                let mut is_one = false;
                omird_text::words(fact, |word| {
                    is_one |= matches!(word, "expected" | "pass" | "criteria" | "must");
                });
                is_one
            };
            is_named(content)
        }
    }
}

/// Returns the kind and type of experience of a memory, as the store knows them.
pub(crate) fn class(memory: MemoryType) -> (Option<Kind>, Option<ExperienceType>) {
    match memory {
        MemoryType::Working | MemoryType::Episodic => (None, None),
        MemoryType::Semantic => (Some(Kind::Learning), None),
        MemoryType::Procedural => (Some(Kind::Learning), Some(ExperienceType::Pattern)),
    }
}

/// The errors of a task lately, each with how much a question has to do with it.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecentErrors {
    all: Vec<RecentError>,
}

#[derive(Debug, Clone)]
struct RecentError {
    id: String,
    words: StemSet,
    /// From 0 to 1; 1 for the error that the question has most to do with, and for each one where there is no question.
    weight: f64,
}

impl RecentErrors {
    /// Takes errors by their ids and texts. One that shares no word with the question counts for nothing.
    pub(crate) fn of<'a>(
        query: Option<&str>,
        errors: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let asked = query.map(|query| StemSet::of(Language::English, query));
        let mut all: Vec<RecentError> = errors
            .into_iter()
            .map(|(id, text)| {
                let words = StemSet::of(Language::English, text);
                let weight = asked.as_ref().map_or(1.0, |asked| asked.contained_in(&words));
                RecentError { id: id.to_owned(), words, weight }
            })
            .collect();
        let most = all.iter().map(|error| error.weight).fold(0.0, f64::max);
        all.retain(|error| error.weight > 0.0);
        all.iter_mut().for_each(|error| error.weight /= most);
        Self { all }
    }

    /// Returns how much a memory has to do with them.
    pub(crate) fn relevance(&self, corrects: Option<&str>, content: &str) -> f64 {
        if self.all.is_empty() {
            return 0.0;
        }
        let words = StemSet::of(Language::English, content);
        let of = |error: &RecentError| {
            let is_corrected = corrects.is_some_and(|id| id == error.id);
            // Squared: an error that shares a word with the question by chance moves nothing.
            let alike = if is_corrected { 1.0 } else { error.words.contained_in(&words) };
            error.weight.powi(2) * alike
        };
        self.all.iter().map(of).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 5e-7
    }

    #[test]
    fn the_vectors_of_the_reference() {
        let weights = Weights::of(&Settings::default());
        let week = Parts {
            sim: 0.8,
            rec: recency(168.0),
            freq: frequency(9),
            stage: 1.0,
            crit: criticality(true, 2.0),
            err: 0.0,
        };
        assert!(near(week.freq, 0.498_922), "{}", week.freq);
        assert!(near(week.score(&weights), 0.704_892), "{}", week.score(&weights));
        let other = Parts { crit: criticality(false, 2.0), ..week };
        assert!(near(other.score(&weights), 0.654_892));
        let new = Parts {
            sim: 0.0,
            rec: recency(0.0),
            freq: frequency(0),
            stage: 0.3,
            crit: criticality(false, 2.0),
            err: 0.0,
        };
        assert!(near(new.score(&weights), 0.26), "{}", new.score(&weights));
    }

    #[test]
    fn the_weights_sum_to_one_whatever_is_stated() {
        for (stage, err) in [(0.2, 0.1), (0.0, 0.0), (1.0, 1.0), (0.5, 0.5), (0.9, 0.3)] {
            let settings = Settings {
                stage_relevance_weight: stage,
                error_correction_weight: err,
                ..Settings::default()
            };
            let one = Parts { sim: 1.0, rec: 1.0, freq: 1.0, stage: 1.0, crit: 1.0, err: 1.0 };
            assert!(near(one.score(&Weights::of(&settings)), 1.0), "{stage} {err}");
        }
    }

    #[test]
    fn no_factor_leaves_its_range() {
        assert_eq!((recency(-5.0), recency(0.0), recency(168.0)), (1.0, 1.0, 0.5));
        assert_eq!((frequency(0), frequency(100), frequency(u64::MAX)), (0.0, 1.0, 1.0));
        assert_eq!((criticality(true, 9.0), criticality(true, 0.0)), (1.0, 0.0));
    }

    #[test]
    fn errors_count_by_what_they_say() {
        let errors = RecentErrors::of(None, [("e1", "gripper slipped on the wet cup")]);
        assert_eq!(errors.relevance(Some("e1"), "anything"), 1.0);
        let alike = errors.relevance(None, "the gripper slipped");
        assert!(alike > 0.3 && alike < 1.0, "{alike}");
        assert_eq!(errors.relevance(Some("e2"), "charging"), 0.0);
        assert_eq!(RecentErrors::default().relevance(Some("e1"), "x"), 0.0);
    }

    #[test]
    fn errors_count_by_the_question() {
        let all = [("e1", "gripper slipped on the wet cup"), ("e2", "the dock was taken")];
        let errors = RecentErrors::of(Some("why did the gripper slip"), all);
        assert_eq!(errors.relevance(Some("e1"), "anything"), 1.0);
        assert_eq!(errors.relevance(Some("e2"), "the dock was taken"), 0.0, "of another matter");
        let asked = Some("gripper slip cup dock");
        let errors = RecentErrors::of(asked, all);
        let by_chance = errors.relevance(Some("e2"), "anything");
        assert!(near(by_chance, 1.0 / 9.0), "one word of three, squared: {by_chance}");
    }
}
