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
/// The mean likeness from which on errors are of one situation. It and the weights below were fitted to the part of
/// `benches/data/compass` that is there for it.
const ALIKE: f64 = 0.07;
/// The weight of what was done about an error, beside 1 for what happened and where.
const RECOVERY_WEIGHT: f64 = 0.7;
/// What errors of one type are more alike than by their words, and those of two types less.
const TYPE_WEIGHT: f64 = 0.04;
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
            // The first error under these circumstances names the pattern.
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

/// One situation: errors with a context whose words are alike, all in all. Groups are joined, the likest two first, while the
/// mean likeness of their errors is enough (average linkage).
fn circumstances(errors: &[&ErrorRecord]) -> Vec<Repeated> {
    let with_context: Vec<&ErrorRecord> = errors
        .iter()
        .copied()
        .filter(|error| error.context_when_occurred.as_deref().is_some_and(says_something))
        .collect();
    let last = &with_context[with_context.len().saturating_sub(MOST_COMPARED)..];
    let mut groups: Vec<Vec<usize>> = (0..last.len()).map(|at| vec![at]).collect();
    // The sum of the likenesses of the errors of two groups; those of a group that is gone are not looked at.
    let mut sums = likenesses(last);
    while let Some((mean, one, other)) = likest(&groups, &sums) {
        if mean < ALIKE {
            break;
        }
        let gone = std::mem::take(&mut groups[other]);
        groups[one].extend(gone);
        for row in &mut sums {
            row[one] += row[other];
        }
        let column: Vec<_> = sums.iter().map(|row| row[one]).collect();
        sums[one] = column;
    }
    let mut found: Vec<Repeated> = Vec::new();
    for mut group in groups.into_iter().filter(|group| group.len() >= 2) {
        group.sort_unstable();
        let group: Vec<&ErrorRecord> = group.into_iter().map(|at| last[at]).collect();
        let mut kinds: Vec<ErrorType> = group.iter().map(|error| error.error_type).collect();
        kinds.sort();
        kinds.dedup();
        let said = group[0].context_when_occurred.as_deref().unwrap_or_default();
        let description = format!("{} errors came under alike circumstances: {said}", group.len());
        found.push(repeated(PatternType::Context, kinds, &group, description));
    }
    found
}

fn says_something(text: &str) -> bool {
    !StemSet::of(LANGUAGE, text).is_empty()
}

/// Returns the two groups whose errors are the likest in the mean, the earlier one first.
fn likest(groups: &[Vec<usize>], sums: &[Vec<f64>]) -> Option<(f64, usize, usize)> {
    let mut best: Option<(f64, usize, usize)> = None;
    for (one, first) in groups.iter().enumerate().filter(|(_, group)| !group.is_empty()) {
        for (other, second) in groups.iter().enumerate().skip(one + 1) {
            if second.is_empty() {
                continue;
            }
            let mean = sums[one][other] / (first.len() * second.len()) as f64;
            if best.is_none_or(|(most, ..)| mean > most) {
                best = Some((mean, one, other));
            }
        }
    }
    best
}

/// Returns how alike errors are, each with each: the cosine of their weighted stems, a little more if they are of one type and
/// less if not. A stem weighs by how few of the errors have it; numbers are readings and do not count.
fn likenesses(errors: &[&ErrorRecord]) -> Vec<Vec<f64>> {
    let mut stems: Vec<BTreeMap<String, f64>> = Vec::with_capacity(errors.len());
    let mut holding: BTreeMap<String, usize> = BTreeMap::new();
    for error in errors {
        let parts = [
            (Some(error.error_description.as_str()), 1.0),
            (error.context_when_occurred.as_deref(), 1.0),
            (error.recovery_action.as_deref(), RECOVERY_WEIGHT),
        ];
        let mut own: BTreeMap<String, f64> = BTreeMap::new();
        for (text, weight) in parts {
            LANGUAGE.stems(text.unwrap_or_default(), |stem| {
                if stem.len() > 1 && !stem.starts_with(|c: char| c.is_ascii_digit()) {
                    let known = own.entry(stem.to_owned()).or_insert(weight);
                    *known = known.max(weight);
                }
            });
        }
        own.keys().for_each(|stem| *holding.entry(stem.clone()).or_default() += 1);
        stems.push(own);
    }
    let rare = |stem: &str| {
        let holding = holding.get(stem).copied().unwrap_or(1) as f64;
        ((1.0 + errors.len() as f64) / holding).ln()
    };
    for own in &mut stems {
        let length =
            own.iter().map(|(stem, weight)| (weight * rare(stem)).powi(2)).sum::<f64>().sqrt();
        own.iter_mut()
            .for_each(|(stem, weight)| *weight *= rare(stem) / length.max(f64::MIN_POSITIVE));
    }
    let mut all = vec![vec![0.0; errors.len()]; errors.len()];
    for one in 0..errors.len() {
        for other in 0..one {
            let shared = stems[one]
                .iter()
                .filter_map(|(stem, weight)| Some(weight * stems[other].get(stem)?));
            let same = errors[one].error_type == errors[other].error_type;
            let likeness = shared.sum::<f64>() + if same { TYPE_WEIGHT } else { -TYPE_WEIGHT };
            all[one][other] = likeness;
            all[other][one] = likeness;
        }
    }
    all
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
