//! Several observations of the same become one record, with the evidence of all of them and none of
//! it twice.
//!
//! Sums of evidence mean something only while the streams are independent (OMIR R1, Memory Semantics
//! §1). So each piece is kept under the name of where it came from: the `externalId` of the record,
//! else the record itself. Of what came from one source the strongest counts, once. The record that
//! results carries the list, so that it does not matter in which order or in how many steps
//! observations come together, nor whether one that was merged is imported again later.

use std::collections::BTreeSet;

use omir_core::confidence::Beta;
use omir_core::extension::{Consolidated, Evidence};
use omir_core::instant::{Instant, Timestamp};
use omir_core::model::{Confidence, MemoryRecord};
use omir_core::number::Number;
use omir_core::reference::Id;

use crate::index::facts::DecayState;
use crate::time::uncertainty::CLOCK_URL;

/// Most sources of evidence one record can keep apart. What would go beyond is not merged.
pub(crate) const MAX_SOURCES: usize = 64;

/// A record with its access state by now.
#[derive(Debug, Clone)]
pub(crate) struct Observation {
    /// The record.
    pub record: MemoryRecord,
    /// Its access state.
    pub access: DecayState,
}

/// The stronger of two of one source: that with more in all; of as much, that with more for it.
fn stronger(one: Evidence, other: Evidence) -> Evidence {
    let strength = |e: &Evidence| (e.alpha + e.beta, e.alpha);
    if strength(&one) >= strength(&other) { one } else { other }
}

/// Time of the described event, as far as it is stated.
pub(crate) fn event_time(record: &MemoryRecord) -> Timestamp {
    record.event_time.as_ref().unwrap_or(&record.created_at).at()
}

fn own_source(record: &MemoryRecord) -> String {
    let external = record.provenance.as_ref().and_then(|p| p.external_id.clone());
    external.unwrap_or_else(|| format!("MemoryRecord/{}", record.id))
}

fn evidence_of(confidence: Option<&Confidence>) -> Evidence {
    let beyond = |n: &Option<Number>| {
        n.as_ref().map_or(0.0, |n| (n.as_f64() - Beta::PRIOR.alpha()).max(0.0))
    };
    confidence.map_or_else(Evidence::default, |confidence| Evidence {
        alpha: beyond(&confidence.alpha),
        beta: beyond(&confidence.beta),
    })
}

/// Origins of a record, as far as they are known.
fn history_of(record: &MemoryRecord) -> Consolidated {
    let mut history = Consolidated::of(record);
    // Evidence that came in since, by feedback, is the record's own.
    let total = evidence_of(record.confidence.as_ref());
    let known = total_of(&history);
    let rest = |total: f64, known: f64| {
        let rest = total - known;
        // A rest as small as rounding errors is no evidence.
        if rest > 1e-9 * total.max(1.0) { rest } else { 0.0 }
    };
    let rest =
        Evidence { alpha: rest(total.alpha, known.alpha), beta: rest(total.beta, known.beta) };
    if rest.is_some() {
        let own = history.evidence.entry(own_source(record)).or_default();
        own.alpha += rest.alpha;
        own.beta += rest.beta;
    }
    history
}

/// In the order of the names, so that rounding does not depend on the order of merging.
fn total_of(history: &Consolidated) -> Evidence {
    history.evidence.values().fold(Evidence::default(), |sum, one| Evidence {
        alpha: sum.alpha + one.alpha,
        beta: sum.beta + one.beta,
    })
}

fn absorb(history: &mut Consolidated, id: &str, other: Consolidated) {
    history.count = history.count.saturating_add(other.count);
    if other.first.at() < history.first.at() {
        history.first = other.first;
    }
    if other.last.at() > history.last.at() {
        history.last = other.last;
    }
    history.from.push(id.to_owned());
    history.from.extend(other.from);
    for (source, evidence) in other.evidence {
        let known = history.evidence.entry(source).or_insert(evidence);
        *known = stronger(*known, evidence);
    }
}

/// Number of observations that a record stands for.
pub(crate) fn count(record: &MemoryRecord) -> u64 {
    Consolidated::of(record).count
}

/// Sources of its evidence.
pub(crate) fn sources(record: &MemoryRecord) -> BTreeSet<String> {
    Consolidated::of(record).evidence.into_keys().collect()
}

/// The record that stands for `newest` and `others`, under the name `survivor`, which is that of one of
/// them; `None` if it could not keep their evidence apart.
///
/// Its words, its place and how that was found out are those of the newest. Importance and half-life are the greatest, accesses are
/// added up, the last access is the latest, it is as old as the oldest and happened when the newest
/// did; what is in doubt about a date goes with the date. Its confidence is the evidence of all sources over the prior, calibrated by
/// [`Beta::damped`]; without evidence it states what it stated.
pub(crate) fn consolidate<'a>(
    survivor: &Id,
    newest: &Observation,
    others: impl IntoIterator<Item = &'a Observation>,
) -> Option<MemoryRecord> {
    let mut record = newest.record.clone();
    let mut access = newest.access;
    let mut history = history_of(&record);
    let mut oldest = &newest.record;
    for Observation { record: other, access: used } in others {
        absorb(&mut history, other.id.as_str(), history_of(other));
        if other.created_at.at() < oldest.created_at.at() {
            oldest = other;
        }
        let importance = |n: &Option<Number>| n.as_ref().map(Number::as_f64);
        if importance(&other.importance) > importance(&record.importance) {
            record.importance = other.importance.clone();
        }
        access.half_life_hours = access.half_life_hours.max(used.half_life_hours);
        access.access_count = access.access_count.saturating_add(used.access_count);
        access.last_access = access.last_access.max(used.last_access);
    }
    if history.evidence.len() > MAX_SOURCES {
        return None;
    }
    record.created_at = oldest.created_at.clone();
    if record.id != *survivor {
        history.from.push(record.id.as_str().to_owned());
        history.from.retain(|id| id != survivor.as_str());
        record.id = survivor.clone();
    }
    if record.event_time.is_some() || history.last.at() != record.created_at.at() {
        record.event_time = Some(history.last.clone());
    }
    let decay = record.decay.get_or_insert_default();
    decay.half_life_hours = Number::from_f64(access.half_life_hours);
    decay.access_count = Some(Number::from(u64::from(access.access_count)));
    decay.last_access = Some(Instant::from(Timestamp::from_micros(access.last_access)));
    let Evidence { alpha, beta } = total_of(&history);
    let prior = Beta::PRIOR;
    if let Some(belief) = Beta::new(prior.alpha() + alpha, prior.beta() + beta)
        && !history.evidence.is_empty()
    {
        let confidence = record.confidence.get_or_insert_default();
        confidence.alpha = Number::from_f64(belief.alpha());
        confidence.beta = Number::from_f64(belief.beta());
        confidence.calibrated = Number::from_f64(belief.damped());
    }
    let extensions = record.extension.get_or_insert_default();
    extensions.retain(|known| known.url != CLOCK_URL);
    let clock_note = oldest.extension.iter().flatten().find(|known| known.url == CLOCK_URL);
    extensions.extend(clock_note.cloned());
    history.write_to(&mut record);
    Some(record)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::index::facts::Facts;
    use omir_core::extension::CONSOLIDATED_URL;
    use omir_core::model::{Extension, Provenance, Resource};
    use proptest::prelude::*;

    fn observation(n: usize, source: Option<usize>, alpha: u32, beta: u32) -> Observation {
        let at = Timestamp::from_unix(1_780_000_000 + n as i64 * 60, 0);
        let id = format!("m{n}").parse().unwrap();
        let mut record = MemoryRecord::new(id, "the cup is on the table", Instant::from(at));
        record.confidence = Some(Confidence {
            alpha: Number::from_f64(1.0 + f64::from(alpha)),
            beta: Number::from_f64(1.0 + f64::from(beta)),
            calibrated: None,
        });
        record.importance = Number::from_f64(f64::from(alpha % 4) / 4.0);
        record.provenance = source.map(|source| Provenance {
            external_id: Some(format!("camera:{source}")),
            ..Provenance::default()
        });
        seen(record)
    }

    /// As one record, under the name of the newest.
    fn merge<'a>(
        newest: &Observation,
        others: impl IntoIterator<Item = &'a Observation>,
    ) -> Option<MemoryRecord> {
        consolidate(&newest.record.id, newest, others)
    }

    /// A record as the store sees it.
    fn seen(record: MemoryRecord) -> Observation {
        let access = Facts::of(&Resource::from(record.clone())).access.unwrap();
        Observation { record, access }
    }

    fn evidence(record: &MemoryRecord) -> (f64, f64) {
        let Evidence { alpha, beta } = evidence_of(record.confidence.as_ref());
        (alpha, beta)
    }

    #[test]
    fn what_came_from_one_source_counts_once() {
        let all = [
            observation(0, Some(1), 2, 0),
            observation(1, Some(1), 3, 1),
            observation(2, None, 1, 1),
            observation(3, None, 4, 0),
        ];
        let merged = merge(&all[3], &all[..3]).unwrap();
        // 3/1 of the camera, 1/1 and 4/0 of their own.
        assert_eq!(evidence(&merged), (8.0, 2.0));
        assert_eq!(merged.created_at, all[0].record.created_at);
        assert_eq!(event_time(&merged), event_time(&all[3].record));
        assert_eq!(count(&merged), 4);
        // Merged once more with what it is made of, it believes no more than before.
        let again = merge(&seen(merged.clone()), &all[..3]).unwrap();
        assert_eq!(evidence(&again), evidence(&merged));
    }

    #[test]
    fn what_is_known_of_a_place_comes_of_the_newest_and_of_a_date_with_the_date() {
        let noted = |n, notes: &[(&str, &str)]| {
            let mut observation = observation(n, None, 0, 0);
            let note = |(url, text): &(&str, &str)| Extension {
                value_string: Some((*text).to_owned()),
                ..Extension::new(*url)
            };
            observation.record.extension = Some(notes.iter().map(note).collect());
            observation
        };
        let all = [
            noted(0, &[("urn:omird:ext:rebase", "a"), (CLOCK_URL, "a")]),
            noted(1, &[("urn:omird:ext:unplaced", "b")]),
            noted(2, &[("urn:omird:ext:rebase", "c"), (CLOCK_URL, "c")]),
        ];
        let merged = merge(&all[2], &all[..2]).unwrap();
        let notes = merged.extension.iter().flatten();
        let notes: Vec<_> = notes
            .filter_map(|note| Some((note.url.as_str(), note.value_string.as_deref()?)))
            .collect();
        assert_eq!(notes, [("urn:omird:ext:rebase", "c"), (CLOCK_URL, "a")]);
        let merged = merge(&all[2], &all[1..2]).unwrap();
        assert!(merged.extension.iter().flatten().all(|note| note.url != CLOCK_URL));
    }

    #[test]
    fn the_name_may_be_that_of_another() {
        let all =
            [observation(0, Some(1), 2, 0), observation(1, None, 1, 0), observation(2, None, 1, 0)];
        let before = merge(&all[1], &all[..1]).unwrap();
        let merged = consolidate(&before.id, &all[2], [&seen(before.clone())]).unwrap();
        assert_eq!(merged.id, before.id);
        assert_eq!(event_time(&merged), event_time(&all[2].record));
        assert_eq!(history_of(&merged).from, ["m0", "m2"], "never its own");
        // The same as under the other name, what came from each source included.
        let other = merge(&all[2], [&seen(before)]).unwrap();
        assert_eq!(evidence(&merged), evidence(&other));
        assert_eq!(history_of(&merged).evidence, history_of(&other).evidence);
    }

    #[test]
    fn the_list_of_evidence_is_read_as_it_was_written_before() {
        let list = r#"[{"source":"camera:1","alpha":2.0,"beta":1.0}]"#;
        let map = r#"{"camera:1":[2.0,1.0]}"#;
        let sources = [list, map].map(|evidence| {
            let json = format!(
                r#"{{"resourceType":"MemoryRecord","id":"m","content":"a cup",
                "createdAt":"2026-06-01T00:00:00Z","extension":[{{"url":"{CONSOLIDATED_URL}",
                "valueJson":{{"count":2,"evidence":{evidence}}}}}]}}"#
            );
            let value = omir_core::json::from_slice(json.as_bytes(), &Default::default()).unwrap();
            let Ok(Resource::MemoryRecord(record)) = Resource::from_value(value) else { panic!() };
            history_of(&record).evidence
        });
        assert_eq!(sources[0], sources[1]);
        assert_eq!(sources[0]["camera:1"], Evidence { alpha: 2.0, beta: 1.0 });
    }

    #[test]
    fn feedback_on_what_was_merged_is_not_lost() {
        let all =
            [observation(0, None, 2, 0), observation(1, None, 1, 0), observation(2, None, 0, 1)];
        let mut merged = merge(&all[1], &all[..1]).unwrap();
        merged.confidence.as_mut().unwrap().beta = Number::from_f64(3.0);
        let merged = merge(&all[2], [&seen(merged)]).unwrap();
        assert_eq!(evidence(&merged), (3.0, 3.0));
    }

    #[test]
    fn who_has_no_evidence_claims_none() {
        let mut one = observation(0, None, 0, 0);
        let mut other = observation(1, None, 0, 0);
        one.record.confidence = None;
        other.record.confidence = None;
        let merged = merge(&other, [&one]).unwrap();
        assert_eq!(merged.confidence, None);
    }

    #[test]
    fn more_sources_than_can_be_kept_apart_are_not_merged() {
        let all: Vec<_> = (0..=MAX_SOURCES).map(|n| observation(n, Some(n), 1, 0)).collect();
        assert!(merge(&all[0], &all[1..MAX_SOURCES]).is_some());
        assert!(merge(&all[0], &all[1..]).is_none());
    }

    proptest! {
        #[test]
        fn evidence_is_the_same_in_any_order_and_any_grouping(
            stated in proptest::collection::vec(
                (proptest::option::of(0..4usize), 0..9u32, 0..9u32), 2..9),
            order in Just((0..9usize).collect::<Vec<_>>()).prop_shuffle(),
            splits in proptest::collection::vec(any::<bool>(), 9),
        ) {
            let all: Vec<Observation> = stated
                .iter()
                .enumerate()
                .map(|(n, &(source, alpha, beta))| observation(n, source, alpha, beta))
                .collect();
            // By hand: the strongest of each source, once.
            let mut strongest = BTreeMap::new();
            for (n, &(source, alpha, beta)) in stated.iter().enumerate() {
                let key = source.map_or(format!("own {n}"), |source| format!("of {source}"));
                let best = strongest.entry(key).or_insert((0, 0));
                if (alpha + beta, alpha) > (best.0 + best.1, best.0) {
                    *best = (alpha, beta);
                }
            }
            let expected = strongest.values().fold((0.0, 0.0), |sum, &(alpha, beta)| {
                (sum.0 + f64::from(alpha), sum.1 + f64::from(beta))
            });
            let whole = merge(&all[0], &all[1..]).unwrap();
            prop_assert_eq!(evidence(&whole), expected);

            // In another order, some in groups of their own first.
            let shuffled: Vec<&Observation> =
                order.iter().filter(|&&n| n < all.len()).map(|&n| &all[n]).collect();
            let mut groups: Vec<Vec<&Observation>> = vec![Vec::new()];
            for (observation, split) in shuffled.iter().zip(&splits) {
                if *split {
                    groups.push(Vec::new());
                }
                groups.last_mut().unwrap().push(observation);
            }
            let parts: Vec<Observation> = groups
                .iter()
                .filter_map(|group| {
                    let (first, rest) = group.split_first()?;
                    if rest.is_empty() {
                        return Some((*first).clone());
                    }
                    Some(seen(merge(first, rest.iter().copied()).unwrap()))
                })
                .collect();
            let (first, rest) = parts.split_first().unwrap();
            let staged = if rest.is_empty() {
                first.record.clone()
            } else {
                merge(first, rest).unwrap()
            };
            prop_assert_eq!(evidence(&staged), expected);
            prop_assert_eq!(count(&staged), all.len() as u64);
            prop_assert_eq!(event_time(&staged), event_time(&whole));
            prop_assert_eq!(&staged.created_at, &whole.created_at);
            prop_assert_eq!(&staged.importance, &whole.importance);
        }
    }
}
