//! Patterns among errors: what repeats itself. No store, no clock.

use std::collections::BTreeMap;

use omird_text::StemSet;

use crate::compress::LANGUAGE;
use crate::state::ErrorRecord;
use crate::words::{ErrorType, PatternType, Word};

/// Errors among which a sequence is looked for.
const SEQUENCE_WINDOW: usize = 10;
/// Times that a pair must come.
const PAIR_OFTEN: usize = 2;
/// The similarity of circumstances that are alike.
const ALIKE: f64 = 0.6;
/// Errors whose circumstances are compared.
const MOST_COMPARED: usize = 200;

/// A pattern that was found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Repeated {
    pub(crate) pattern_type: PatternType,
    pub(crate) error_types: Vec<ErrorType>,
    /// Oldest first.
    pub(crate) error_ids: Vec<String>,
    pub(crate) description: String,
    /// The recovery that came most often.
    pub(crate) recovery: Option<String>,
}

impl Repeated {
    /// Returns how sure it is: n errors of n + 2.
    pub(crate) fn confidence(&self) -> f64 {
        let n = self.error_ids.len() as f64;
        n / (n + 2.0)
    }

    /// Returns what makes it the same pattern when it is found again.
    pub(crate) fn identity(&self) -> String {
        let types: Vec<&str> = self.error_types.iter().map(|kind| kind.as_str()).collect();
        match self.pattern_type {
            // What happened first under these circumstances.
            PatternType::Context => {
                format!("context {}", self.error_ids.first().map_or("", |id| id))
            }
            kind => format!("{kind} {}", types.join(" ")),
        }
    }
}

/// Looks for patterns among errors, which are oldest first.
pub(crate) fn patterns(
    errors: &[&ErrorRecord],
    least: usize,
    wanted: &[PatternType],
) -> Vec<Repeated> {
    let is_wanted = |kind| wanted.is_empty() || wanted.contains(&kind);
    let mut all = Vec::new();
    if is_wanted(PatternType::Frequency) {
        all.extend(frequent(errors, least));
    }
    if is_wanted(PatternType::Sequence) {
        all.extend(sequences(errors));
    }
    if is_wanted(PatternType::Context) {
        all.extend(circumstances(errors));
    }
    all
}

fn repeated(
    pattern_type: PatternType,
    error_types: Vec<ErrorType>,
    errors: &[&ErrorRecord],
    description: String,
) -> Repeated {
    let mut recoveries: BTreeMap<&str, usize> = BTreeMap::new();
    for recovery in errors.iter().filter_map(|error| error.recovery_action.as_deref()) {
        *recoveries.entry(recovery).or_default() += 1;
    }
    let best = recoveries.into_iter().max_by_key(|(_, count)| *count);
    Repeated {
        pattern_type,
        error_types,
        error_ids: errors.iter().map(|error| error.error_id.clone()).collect(),
        description,
        recovery: best.map(|(recovery, _)| recovery.to_owned()),
    }
}

/// One type, often.
fn frequent(errors: &[&ErrorRecord], least: usize) -> Vec<Repeated> {
    let of_type = |kind: ErrorType| -> Vec<&ErrorRecord> {
        errors.iter().copied().filter(|error| error.error_type == kind).collect()
    };
    let kinds = ErrorType::ALL.iter().copied().map(|kind| (kind, of_type(kind)));
    kinds
        .filter(|(_, errors)| errors.len() >= least)
        .map(|(kind, errors)| {
            let description = format!("{kind} came {} times", errors.len());
            repeated(PatternType::Frequency, vec![kind], &errors, description)
        })
        .collect()
}

/// One type after another, twice or more within the last errors.
fn sequences(errors: &[&ErrorRecord]) -> Vec<Repeated> {
    let last = &errors[errors.len().saturating_sub(SEQUENCE_WINDOW)..];
    let mut pairs: BTreeMap<(ErrorType, ErrorType), Vec<&ErrorRecord>> = BTreeMap::new();
    let mut counts: BTreeMap<(ErrorType, ErrorType), usize> = BTreeMap::new();
    for pair in last.windows(2) {
        let kinds = (pair[0].error_type, pair[1].error_type);
        // The same again is frequency.
        if kinds.0 == kinds.1 {
            continue;
        }
        *counts.entry(kinds).or_default() += 1;
        let found = pairs.entry(kinds).or_default();
        for error in pair {
            if !found.iter().any(|known| known.error_id == error.error_id) {
                found.push(error);
            }
        }
    }
    pairs
        .into_iter()
        .filter(|(kinds, _)| counts.get(kinds).is_some_and(|count| *count >= PAIR_OFTEN))
        .map(|((first, second), errors)| {
            let description = format!("{first} was followed by {second}");
            repeated(PatternType::Sequence, vec![first, second], &errors, description)
        })
        .collect()
}

/// Alike circumstances.
fn circumstances(errors: &[&ErrorRecord]) -> Vec<Repeated> {
    let of = |error: &&ErrorRecord| {
        let said = error.context_when_occurred.as_deref()?;
        let words = StemSet::of(LANGUAGE, said);
        (!words.is_empty()).then_some(words)
    };
    let last = &errors[errors.len().saturating_sub(MOST_COMPARED)..];
    let mut groups: Vec<(StemSet, Vec<&ErrorRecord>)> = Vec::new();
    for error in last {
        let Some(words) = of(error) else { continue };
        match groups.iter_mut().find(|(first, _)| first.jaccard(&words) >= ALIKE) {
            Some((_, group)) => group.push(error),
            None => groups.push((words, vec![error])),
        }
    }
    groups
        .into_iter()
        .filter(|(_, group)| group.len() >= 2)
        .map(|(_, group)| {
            let mut kinds: Vec<ErrorType> = group.iter().map(|error| error.error_type).collect();
            kinds.sort();
            kinds.dedup();
            let said = group[0].context_when_occurred.as_deref().unwrap_or_default();
            let description =
                format!("{} errors came under alike circumstances: {said}", group.len());
            repeated(PatternType::Context, kinds, &group, description)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ErrorType::{Hallucination, IncorrectAction, MissingInfo};

    fn error(
        id: usize,
        error_type: ErrorType,
        context: Option<&str>,
        recovery: Option<&str>,
    ) -> ErrorRecord {
        ErrorRecord {
            tenant: "default".to_owned(),
            error_id: format!("e{id}"),
            task_id: "t".to_owned(),
            agent_id: "a".to_owned(),
            stage_id: None,
            stage_type: None,
            error_type,
            error_description: "it went wrong".to_owned(),
            context_when_occurred: context.map(str::to_owned),
            recovery_action: recovery.map(str::to_owned),
            error_severity: 0.5,
            recorded_at: String::new(),
            memory_ids: Vec::new(),
        }
    }

    fn found(errors: &[ErrorRecord]) -> Vec<Repeated> {
        patterns(&errors.iter().collect::<Vec<_>>(), 3, &[])
    }

    #[test]
    fn three_of_a_type_are_a_pattern() {
        let of = |count| -> Vec<ErrorRecord> {
            let recovery = |n| Some(if n == 1 { "waited" } else { "asked again" });
            (0..count).map(|n| error(n, MissingInfo, None, recovery(n))).collect()
        };
        assert!(found(&of(2)).is_empty());
        let three = found(&of(3));
        assert_eq!(three.len(), 1);
        assert_eq!(three[0].pattern_type, PatternType::Frequency);
        assert!((three[0].confidence() - 0.6).abs() < 1e-12);
        assert_eq!(three[0].recovery.as_deref(), Some("asked again"));
        assert_eq!(three[0].identity(), found(&of(5))[0].identity(), "more of it is no other");
    }

    #[test]
    fn one_after_another_twice_is_a_pattern() {
        let kinds = [MissingInfo, Hallucination, IncorrectAction, MissingInfo, Hallucination];
        let errors: Vec<ErrorRecord> =
            kinds.iter().enumerate().map(|(n, kind)| error(n, *kind, None, None)).collect();
        let all = found(&errors);
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!(all[0].error_types, [MissingInfo, Hallucination]);
        assert_eq!(all[0].error_ids, ["e0", "e1", "e3", "e4"]);
        assert!(found(&errors[..4]).is_empty());
    }

    #[test]
    fn alike_circumstances_are_a_pattern() {
        let contexts = [
            "the gripper was wet after washing the cups",
            "the battery was low",
            "the gripper was wet after washing the plates",
        ];
        let kinds = [IncorrectAction, MissingInfo, Hallucination];
        let errors: Vec<ErrorRecord> =
            (0..3).map(|n| error(n, kinds[n], Some(contexts[n]), None)).collect();
        let all = found(&errors);
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!((all[0].pattern_type, all[0].error_ids.len()), (PatternType::Context, 2));
        let wanted = [PatternType::Frequency];
        assert!(patterns(&errors.iter().collect::<Vec<_>>(), 3, &wanted).is_empty());
    }
}
