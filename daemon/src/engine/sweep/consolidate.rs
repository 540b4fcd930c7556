//! Several observations of the same become one record, with the evidence of all of them and none of
//! it twice.
//!
//! Sums of evidence mean something only while the streams are independent (OMIR R1, Memory Semantics
//! §1). So each piece is kept under the name of where it came from: the `externalId` of the record,
//! else the record itself. Of what came from one source the strongest counts, once. The record that
//! results carries the list, so that it does not matter in which order or in how many steps
//! observations come together, nor whether one that was merged is imported again later.

use std::collections::{BTreeMap, BTreeSet};

use omir_core::confidence::Beta;
use omir_core::instant::{Instant, Timestamp};
use omir_core::model::{Confidence, Extension, MemoryRecord};
use omir_core::number::Number;
use omir_core::reference::Id;
use omir_core::value::{Map, Value};

use crate::index::facts::Access;

/// The extension that says what became part of a record.
pub const CONSOLIDATED_URL: &str = "urn:omird:ext:consolidated";
/// Most ids that the extension lists of what became part of it; `count` is exact beyond it.
const MAX_IDS: usize = 8;
/// Most sources of evidence one record can keep apart. What would go beyond is not merged.
pub const MAX_SOURCES: usize = 64;

/// A record with its access state by now.
#[derive(Debug, Clone)]
pub struct Observation {
    /// The record.
    pub record: MemoryRecord,
    /// Its access state.
    pub access: Access,
}

/// Evidence for and against, beyond the prior.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Evidence {
    alpha: f64,
    beta: f64,
}

impl Evidence {
    fn is_some(self) -> bool {
        self.alpha > 0.0 || self.beta > 0.0
    }

    /// The stronger of two of one source: that with more in all; of as much, that with more for it.
    fn or(self, other: Self) -> Self {
        let strength = |e: &Self| (e.alpha + e.beta, e.alpha);
        if strength(&self) >= strength(&other) { self } else { other }
    }
}

/// What is known of how a record came about.
#[derive(Debug, Clone, PartialEq)]
struct History {
    count: u64,
    first: Timestamp,
    last: Timestamp,
    from: Vec<String>,
    sources: BTreeMap<String, Evidence>,
}

/// When the described event happened, as far as it is stated.
pub fn event_time(record: &MemoryRecord) -> Timestamp {
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
    confidence.map_or(Evidence { alpha: 0.0, beta: 0.0 }, |confidence| Evidence {
        alpha: beyond(&confidence.alpha),
        beta: beyond(&confidence.beta),
    })
}

impl History {
    fn of(record: &MemoryRecord) -> Self {
        let at = event_time(record);
        let mut history =
            Self { count: 1, first: at, last: at, from: Vec::new(), sources: BTreeMap::new() };
        let before = record.extension.iter().flatten().find(|e| e.url == CONSOLIDATED_URL);
        if let Some(Value::Object(map)) = before.and_then(|e| e.value_json.as_ref()) {
            history.read(map);
        }
        // What came in since, by feedback, is the record's own.
        let total = evidence_of(record.confidence.as_ref());
        let known = history.total();
        let rest = |total: f64, known: f64| {
            let rest = total - known;
            // What is left of rounding is no evidence.
            if rest > 1e-9 * total.max(1.0) { rest } else { 0.0 }
        };
        let rest =
            Evidence { alpha: rest(total.alpha, known.alpha), beta: rest(total.beta, known.beta) };
        if rest.is_some() {
            let own = history.sources.entry(own_source(record));
            own.and_modify(|own| {
                own.alpha += rest.alpha;
                own.beta += rest.beta;
            })
            .or_insert(rest);
        }
        history
    }

    fn read(&mut self, map: &Map) {
        let at = |name: &str| map.get(name).and_then(Value::as_str)?.parse::<Instant>().ok();
        self.count = map.get("count").and_then(Value::as_u64).unwrap_or(1).max(1);
        self.first = at("first").map_or(self.first, |first| first.at().min(self.first));
        self.last = at("last").map_or(self.last, |last| last.at().max(self.last));
        let items = |name: &str| map.get(name).and_then(Value::as_array).into_iter().flatten();
        self.from = items("from").filter_map(|id| id.as_str().map(str::to_owned)).collect();
        let sources = map.get("evidence").and_then(Value::as_object);
        for (source, evidence) in sources.into_iter().flat_map(Map::iter) {
            let mut numbers = evidence.as_array().into_iter().flatten().map(Value::as_f64);
            let mut next = || numbers.next().flatten().unwrap_or(0.0);
            let evidence = Evidence { alpha: next(), beta: next() };
            if evidence.is_some() {
                self.sources.insert(source.to_string(), evidence);
            }
        }
        // As it was written before: a list of objects.
        for source in items("evidence") {
            let float = |name: &str| source.get(name).and_then(Value::as_f64).unwrap_or(0.0);
            let evidence = Evidence { alpha: float("alpha"), beta: float("beta") };
            let name = source.get("source").and_then(Value::as_str);
            if let Some(name) = name.filter(|_| evidence.is_some()) {
                self.sources.insert(name.to_owned(), evidence);
            }
        }
    }

    /// In the order of the names, so that rounding does not depend on the order of merging.
    fn total(&self) -> Evidence {
        let zero = Evidence { alpha: 0.0, beta: 0.0 };
        self.sources.values().fold(zero, |sum, one| Evidence {
            alpha: sum.alpha + one.alpha,
            beta: sum.beta + one.beta,
        })
    }

    fn absorb(&mut self, id: &str, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.from.push(id.to_owned());
        self.from.extend(other.from);
        for (source, evidence) in other.sources {
            self.sources
                .entry(source)
                .and_modify(|known| *known = known.or(evidence))
                .or_insert(evidence);
        }
    }

    fn to_extension(&self) -> Extension {
        let mut map = Map::new();
        map.insert("count", Value::Number(Number::from(self.count)));
        map.insert("first", self.first.to_string());
        map.insert("last", self.last.to_string());
        let ids = self.from.iter().take(MAX_IDS).map(|id| Value::from(id.as_str()));
        map.insert("from", Value::Array(ids.collect()));
        let mut evidence = Map::new();
        for (source, Evidence { alpha, beta }) in &self.sources {
            evidence.insert(source.as_str(), Value::Array(vec![float(*alpha), float(*beta)]));
        }
        map.insert("evidence", Value::Object(evidence));
        Extension::json(CONSOLIDATED_URL, Value::Object(map))
    }
}

fn float(n: f64) -> Value {
    Number::from_f64(n).map_or(Value::Null, Value::Number)
}

/// How many observations a record stands for.
pub fn count(record: &MemoryRecord) -> u64 {
    History::of(record).count
}

/// Where its evidence came from.
pub fn sources(record: &MemoryRecord) -> BTreeSet<String> {
    History::of(record).sources.into_keys().collect()
}

/// The record that stands for `newest` and `others`, under the name `keeper`, which is that of one of
/// them; `None` if it could not keep their evidence apart.
///
/// Its words and its place are those of the newest. Importance and half-life are the greatest, accesses are
/// added up, the last access is the latest, it is as old as the oldest and happened when the newest
/// did. Its confidence is the evidence of all sources over the prior, calibrated by
/// [`Beta::damped`]; where nobody gave evidence it states what it stated.
pub fn consolidate<'a>(
    keeper: &Id,
    newest: &Observation,
    others: impl IntoIterator<Item = &'a Observation>,
) -> Option<MemoryRecord> {
    let mut record = newest.record.clone();
    let mut access = newest.access;
    let mut history = History::of(&record);
    for Observation { record: other, access: used } in others {
        history.absorb(other.id.as_str(), History::of(other));
        if other.created_at.at() < record.created_at.at() {
            record.created_at = other.created_at.clone();
        }
        let importance = |n: &Option<Number>| n.as_ref().map(Number::as_f64);
        if importance(&other.importance) > importance(&record.importance) {
            record.importance = other.importance.clone();
        }
        access.half_life_hours = access.half_life_hours.max(used.half_life_hours);
        access.access_count = access.access_count.saturating_add(used.access_count);
        access.last_access = access.last_access.max(used.last_access);
    }
    if history.sources.len() > MAX_SOURCES {
        return None;
    }
    if record.id != *keeper {
        history.from.push(record.id.as_str().to_owned());
        history.from.retain(|id| id != keeper.as_str());
        record.id = keeper.clone();
    }
    if record.event_time.is_some() || history.last != record.created_at.at() {
        record.event_time = Some(Instant::from(history.last));
    }
    let decay = record.decay.get_or_insert_default();
    decay.half_life_hours = Number::from_f64(access.half_life_hours);
    decay.access_count = Some(Number::from(u64::from(access.access_count)));
    decay.last_access = Some(Instant::from(Timestamp::from_micros(access.last_access)));
    let Evidence { alpha, beta } = history.total();
    let prior = Beta::PRIOR;
    if let Some(belief) = Beta::new(prior.alpha() + alpha, prior.beta() + beta)
        && !history.sources.is_empty()
    {
        let confidence = record.confidence.get_or_insert_default();
        confidence.alpha = Number::from_f64(belief.alpha());
        confidence.beta = Number::from_f64(belief.beta());
        confidence.calibrated = Number::from_f64(belief.damped());
    }
    let extensions = record.extension.get_or_insert_default();
    extensions.retain(|extension| extension.url != CONSOLIDATED_URL);
    extensions.push(history.to_extension());
    Some(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::facts::Facts;
    use omir_core::model::{Provenance, Resource};
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
    fn the_name_may_be_that_of_another() {
        let all =
            [observation(0, Some(1), 2, 0), observation(1, None, 1, 0), observation(2, None, 1, 0)];
        let before = merge(&all[1], &all[..1]).unwrap();
        let merged = consolidate(&before.id, &all[2], [&seen(before.clone())]).unwrap();
        assert_eq!(merged.id, before.id);
        assert_eq!(event_time(&merged), event_time(&all[2].record));
        assert_eq!(History::of(&merged).from, ["m0", "m2"], "never its own");
        // The same as under the other name, what came from each source included.
        let other = merge(&all[2], [&seen(before)]).unwrap();
        assert_eq!(evidence(&merged), evidence(&other));
        assert_eq!(History::of(&merged).sources, History::of(&other).sources);
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
            History::of(&record).sources
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
