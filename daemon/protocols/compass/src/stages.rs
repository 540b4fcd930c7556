//! Stage changes, from signals of an agent's text and actions: no store, no clock.
//!
//! The strongest signal counts, if it is strong enough and of another type than the current stage. Two of equal weight that
//! name different types say nothing.

mod wording;

use omir_core::value::{Map, Value};

pub(crate) use self::wording::Wording;
use crate::words::{StageType, Word};

/// The least weight that moves a task on.
const ENOUGH: f64 = 0.5;
/// Memories that are looked at for errors, and errors among them that are many.
pub(crate) const RECENT_MEMORIES: usize = 5;
const MANY_ERRORS: usize = 2;
/// Actions that are looked at, and those of them that decide.
pub(crate) const RECENT_ACTIONS: usize = 5;
const LAST_ACTIONS: usize = 3;

/// The origin of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// A marker in the text, or a parameter.
    Marker,
    /// The supervisor of the agent.
    Ace,
    /// The agent's actions.
    Actions,
    /// The time that the stage has lasted.
    Time,
    /// Errors lately.
    Error,
    /// The wording of the memory.
    Wording,
}

impl Source {
    fn as_str(self) -> &'static str {
        match self {
            Self::Marker => "marker",
            Self::Ace => "ace",
            Self::Actions => "actions",
            Self::Time => "time",
            Self::Error => "error",
            Self::Wording => "wording",
        }
    }
}

/// A sign that another stage has begun.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Signal {
    /// Its origin.
    pub(crate) source: Source,
    /// The stage.
    pub(crate) stage_type: StageType,
    /// Its strength, from 0 to 1.
    pub(crate) weight: f64,
}

impl Signal {
    /// As it stands in an answer.
    pub(crate) fn to_value(self) -> Value {
        let mut map = Map::new();
        map.insert("source", self.source.as_str());
        map.insert("stage_type", self.stage_type.as_str());
        map.insert("weight", self.weight);
        Value::Object(map)
    }
}

/// Returns the signal of a marker that a parameter states, or that stands in the text.
pub(crate) fn marker(stated: Option<StageType>, content: &str) -> Option<Signal> {
    let stage_type = stated.or_else(|| marked(content))?;
    Some(Signal { source: Source::Marker, stage_type, weight: 1.0 })
}

/// Returns the stage of the last `[STAGE:X]`, `@stage:x` or `#stage:x` of a text.
fn marked(content: &str) -> Option<StageType> {
    let lower = content.to_ascii_lowercase();
    let mut last = None;
    for opening in ["[stage:", "@stage:", "#stage:"] {
        for (at, _) in lower.match_indices(opening) {
            let rest = &lower[at + opening.len()..];
            let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
            let is_closed = !opening.starts_with('[') || rest[end..].starts_with(']');
            let Some(stage) = StageType::by_name(&rest[..end]).filter(|_| is_closed) else {
                continue;
            };
            if last.is_none_or(|(known, _)| at > known) {
                last = Some((at, stage));
            }
        }
    }
    last.map(|(_, stage)| stage)
}

/// Returns the signal of the agent's supervisor.
pub(crate) fn told(stage_type: Option<StageType>) -> Option<Signal> {
    Some(Signal { source: Source::Ace, stage_type: stage_type?, weight: 0.9 })
}

/// Returns the signal of the actions, the last of which is the newest.
pub(crate) fn acted<'a>(actions: impl DoubleEndedIterator<Item = &'a str>) -> Option<Signal> {
    let newest: Vec<Option<StageType>> =
        actions.rev().take(RECENT_ACTIONS).map(of_action).collect();
    let last = &newest[..newest.len().min(LAST_ACTIONS)];
    let count =
        |of: &[Option<StageType>], stage| of.iter().filter(|one| **one == Some(stage)).count();
    // Of three, two of one type leave no room for two of another.
    let stage_type = StageType::ALL.iter().copied().find(|stage| count(last, *stage) >= 2)?;
    let beyond = count(&newest, stage_type).saturating_sub(2);
    let weight = 0.6 + 0.1 * beyond as f64;
    Some(Signal { source: Source::Actions, stage_type, weight })
}

/// Returns the type of an action by its words; none if words of two types are in it equally often.
fn of_action(action: &str) -> Option<StageType> {
    let lower = action.to_lowercase();
    let words = || lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let count = |stage| words().filter(|word| is_word_of(stage, word)).count();
    let counted = StageType::ALL.iter().map(|stage| (count(*stage), *stage));
    let (most, stage) = counted.clone().max_by_key(|(count, _)| *count)?;
    let is_alone = counted.filter(|(count, _)| *count == most).count() == 1;
    (most > 0 && is_alone).then_some(stage)
}

fn is_word_of(stage: StageType, word: &str) -> bool {
    let words: &[&str] = match stage {
        StageType::Planning => &[
            "plan", "analyse", "analyze", "design", "outline", "strategy", "consider", "decide",
            "estimate", "read", "search", "find", "grep", "open", "list", "ls", "cat",
        ],
        StageType::Execution => &[
            "run", "call", "write", "create", "build", "apply", "move", "send", "deploy", "invoke",
            "edit", "insert", "replace", "install", "rm", "mkdir",
        ],
        StageType::Reflection => {
            &["error", "fail", "debug", "diagnose", "why", "mistake", "learn", "retry"]
        }
        StageType::Verification => &[
            "verify", "test", "check", "validate", "confirm", "inspect", "assert", "review",
            "pytest",
        ],
    };
    // Forms of the word as well: `tests`, `tested`, `failing`, `verified`.
    let stem = |word: &str| omird_text::Language::English.stem(word).into_owned();
    words.contains(&word) || words.iter().any(|known| stem(known) == stem(word))
}

/// Returns the signal of a stage that has lasted longer than its kind does. Alone it moves nothing.
pub(crate) fn lasted(current: StageType, seconds: f64) -> Option<Signal> {
    let (longest, next) = match current {
        StageType::Planning => (900.0, StageType::Execution),
        StageType::Execution => (1800.0, StageType::Verification),
        StageType::Reflection => (600.0, StageType::Execution),
        // Nothing follows verification without a marker.
        StageType::Verification => return None,
    };
    let stage_type = (seconds > longest).then_some(next)?;
    Some(Signal { source: Source::Time, stage_type, weight: 0.4 })
}

/// Returns the signal of errors among the last memories.
pub(crate) fn erred(current: StageType, errors: usize) -> Option<Signal> {
    let is_one = current == StageType::Execution && errors >= MANY_ERRORS;
    let stage_type = StageType::Reflection;
    is_one.then_some(Signal { source: Source::Error, stage_type, weight: 0.5 })
}

/// Returns the signal of the wording of a memory, from 0.5 for one that barely speaks for another stage. It counts where no
/// other signal says anything.
pub(crate) fn worded(current: StageType, wording: Wording<'_>) -> Option<Signal> {
    let (stage_type, lead) = wording.speaks_for(current)?;
    Some(Signal { source: Source::Wording, stage_type, weight: ENOUGH + 0.09 * lead })
}

/// Returns the signal to follow, if there is one.
pub(crate) fn decided(signals: &[Signal], current: StageType) -> Option<Signal> {
    let best = signals.iter().copied().max_by(|a, b| a.weight.total_cmp(&b.weight))?;
    let tie = signals
        .iter()
        .any(|other| other.weight == best.weight && other.stage_type != best.stage_type);
    (!tie && best.weight >= ENOUGH && best.stage_type != current).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use StageType::{Execution, Planning, Reflection, Verification};

    fn stage(signal: Option<Signal>) -> Option<(StageType, f64)> {
        signal.map(|signal| (signal.stage_type, signal.weight))
    }

    #[test]
    fn markers_are_found() {
        for (content, expected) in [
            ("[STAGE:EXECUTION] run it", Some(Execution)),
            ("now @stage:reflection, please", Some(Reflection)),
            ("#stage:verification", Some(Verification)),
            ("[stage:planning] and then [STAGE:execution]", Some(Execution)),
            ("[STAGE:EXECUTION", None),
            ("[STAGE:DREAMING]", None),
            ("the stage: execution", None),
            ("@stage:executions", None),
        ] {
            assert_eq!(stage(marker(None, content)), expected.map(|one| (one, 1.0)), "{content}");
        }
        assert_eq!(stage(marker(Some(Planning), "[STAGE:EXECUTION]")), Some((Planning, 1.0)));
    }

    #[test]
    fn actions_speak_of_a_stage() {
        let of = |actions: &[&str]| stage(acted(actions.iter().copied()));
        // T13 of the conformance tests.
        let (kind, weight) = of(&["verify_a", "test_b", "check_c"]).unwrap();
        assert_eq!(kind, Verification);
        assert!((weight - 0.7).abs() < 1e-12);
        assert_eq!(of(&["a", "b", "c"]), None);
        assert_eq!(of(&["run it", "call b", "verify_a"]), Some((Execution, 0.6)));
        assert_eq!(of(&["run it", "call b", "verify_a", "test_b"]), Some((Verification, 0.6)));
        assert_eq!(of(&["tests failed", "plans"]), None, "two words of one action name two types");
        assert_eq!(of(&["creating x", "deployed y"]), Some((Execution, 0.6)), "forms of a word");
        let five = ["run a", "run b", "run c", "run d", "run e"];
        assert!((of(&five).unwrap().1 - 0.9).abs() < 1e-12);
    }

    #[test]
    fn time_and_errors_speak_too() {
        assert_eq!(stage(lasted(Planning, 901.0)), Some((Execution, 0.4)));
        assert_eq!(stage(lasted(Execution, 1800.0)), None);
        assert_eq!(stage(lasted(Reflection, 601.0)), Some((Execution, 0.4)));
        assert_eq!(stage(lasted(Verification, 1e9)), None);
        assert_eq!(stage(erred(Execution, 2)), Some((Reflection, 0.5)));
        assert_eq!(stage(erred(Execution, 1)), None);
        assert_eq!(stage(erred(Planning, 9)), None);
    }

    #[test]
    fn the_strongest_signal_moves_on() {
        let signal = |stage_type, weight| Signal { source: Source::Actions, stage_type, weight };
        let of = |signals: &[Signal], current| stage(decided(signals, current));
        assert_eq!(of(&[], Planning), None);
        assert_eq!(of(&[signal(Execution, 0.4)], Planning), None, "time alone never does");
        assert_eq!(of(&[signal(Execution, 0.6)], Planning), Some((Execution, 0.6)));
        assert_eq!(of(&[signal(Execution, 0.6)], Execution), None);
        let tie = [signal(Execution, 0.6), signal(Reflection, 0.6)];
        assert_eq!(of(&tie, Planning), None);
        let both = [signal(Execution, 0.6), signal(Reflection, 0.9)];
        assert_eq!(of(&both, Planning), Some((Reflection, 0.9)));
    }
}
