//! The likeness of memories to a question, by words and by meaning. No store, no clock.
//!
//! With `t` the share of the question's words in a memory, `c` its cosine and `k` its agreement with akin words, each beside the
//! best of all candidates, a memory has the relevance
//!
//! ```text
//! t · (1 + m) + lack · m        m = ½ · c + ½ · k        lack = 1 − min(1, t_max / 0.2)
//! ```
//!
//! and a fifth of that of the candidates of its task before and after it, within an hour. Meaning weighs what words find, and finds by itself where words find
//! little. Sums of both were worse than words alone: `benches/data/compass/README.md`. Without vectors the relevance is `t`.

use omir_core::instant::Timestamp;

/// Share of akin words in what meaning counts, where there are vectors of words.
const AKIN: f64 = 0.5;
/// Share of the question's words from which on meaning finds nothing by itself.
const LITTLE: f64 = 0.2;
/// Share of the relevance of the memory before, and of the one after.
const NEIGHBOURS: f64 = 0.2;
/// Longest time between neighbours.
const SAME_HOUR: f64 = 1.0;
/// Share of words beside the cosine of a vector that a server of models made.
const HALF: f64 = 0.5;

/// The agreement of a memory with a question, by part. All are 0 where it has nothing to do with it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Agreement {
    /// The share of the question's words that is in it.
    pub(crate) text: f64,
    /// The cosine of its vector with that of the question, if it reaches the floor.
    pub(crate) cosine: f64,
    /// The agreement with words akin to those of the question.
    pub(crate) akin: f64,
}

impl Agreement {
    /// Returns the larger of each part.
    pub(crate) fn or(&self, other: &Self) -> Self {
        Self {
            text: self.text.max(other.text),
            cosine: self.cosine.max(other.cosine),
            akin: self.akin.max(other.akin),
        }
    }

    fn is_none(&self) -> bool {
        self.text <= 0.0 && self.cosine <= 0.0
    }
}

/// The origin of the cosines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vectors {
    /// The engine, if it makes any: recall finds by meaning too.
    OfEngine,
    /// A server of models: half of the likeness is the cosine, of memories that have a vector.
    OfServer,
}

/// A candidate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate<'s> {
    pub(crate) agreement: Agreement,
    /// It has a vector by the server of models.
    pub(crate) has_vector: bool,
    pub(crate) task: Option<&'s str>,
    pub(crate) at: Option<Timestamp>,
    pub(crate) id: &'s str,
}

/// Returns how well each candidate answers the question, from 0 to 1. The best answer of all counts fully: how much of a
/// question is in it depends on how the question is put.
pub(crate) fn similarities(all: &[Candidate<'_>], vectors: Vectors) -> Vec<f64> {
    let agreements = all.iter().map(|one| one.agreement);
    let most = agreements.fold(Agreement::default(), |most, one| most.or(&one));
    match vectors {
        Vectors::OfServer => all.iter().map(|one| halved(one, &most)).collect(),
        Vectors::OfEngine => understood(all, &most),
    }
}

fn share(part: f64, most: f64) -> f64 {
    if most > 0.0 { part / most } else { 0.0 }
}

/// Half of it is words and half the cosine; a memory without a vector is known by its words alone.
fn halved(one: &Candidate<'_>, most: &Agreement) -> f64 {
    let text = share(one.agreement.text, most.text);
    let sum = if one.has_vector {
        HALF * text + (1.0 - HALF) * one.agreement.cosine.max(0.0)
    } else {
        text
    };
    sum.clamp(0.0, 1.0)
}

fn understood(all: &[Candidate<'_>], most: &Agreement) -> Vec<f64> {
    let akin = if most.akin > 0.0 { AKIN } else { 0.0 };
    let lack = 1.0 - (most.text / LITTLE).min(1.0);
    let relevance = |one: &Agreement| {
        let text = share(one.text, most.text);
        let cosine = share(one.cosine, most.cosine);
        let meaning = (1.0 - akin) * cosine + akin * share(one.akin, most.akin);
        text * (1.0 + meaning) + lack * meaning
    };
    let own: Vec<f64> = all.iter().map(|one| relevance(&one.agreement)).collect();
    let mut with_neighbours = own.clone();
    let mut order: Vec<(&Candidate<'_>, usize)> = all.iter().zip(0..).collect();
    order.sort_by(|(a, _), (b, _)| (a.task, a.at, a.id).cmp(&(b.task, b.at, b.id)));
    for pair in order.windows(2) {
        let [(a, first), (b, second)] = pair else { continue };
        let is_near = match (a.at, b.at) {
            (Some(before), Some(after)) => after.hours_since(before) <= SAME_HOUR,
            _ => false,
        };
        if a.task.is_none() || a.task != b.task || !is_near {
            continue;
        }
        for (one, to, from) in [(a, *first, *second), (b, *second, *first)] {
            // A neighbour does not make an answer of a memory that agrees in nothing itself.
            if !one.agreement.is_none()
                && let (Some(sum), Some(brought)) = (with_neighbours.get_mut(to), own.get(from))
            {
                *sum += NEIGHBOURS * brought;
            }
        }
    }
    let best = with_neighbours.iter().copied().fold(0.0, f64::max);
    with_neighbours.into_iter().map(|one| share(one, best).clamp(0.0, 1.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(id: &str, text: f64, cosine: f64, minute: i64) -> Candidate<'_> {
        Candidate {
            agreement: Agreement { text, cosine, akin: 0.0 },
            has_vector: cosine > 0.0,
            task: Some("t"),
            at: Some(Timestamp::from_micros(minute * 60_000_000)),
            id,
        }
    }

    #[test]
    fn without_vectors_it_is_the_words_beside_the_best() {
        let all = [one("a", 0.4, 0.0, 0), one("b", 0.1, 0.0, 100), one("c", 0.0, 0.0, 200)];
        assert_eq!(similarities(&all, Vectors::OfEngine), [1.0, 0.25, 0.0]);
        let none = [one("a", 0.0, 0.0, 0)];
        assert_eq!(similarities(&none, Vectors::OfEngine), [0.0]);
    }

    #[test]
    fn meaning_weighs_what_words_find() {
        let all = [one("a", 0.4, 0.3, 0), one("b", 0.4, 0.6, 100), one("c", 0.0, 0.6, 200)];
        let found = similarities(&all, Vectors::OfEngine);
        assert_eq!((found[1], found[2]), (1.0, 0.0), "words find enough");
        assert!((found[0] - 0.75).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn meaning_finds_where_words_find_little() {
        let all = [one("a", 0.0, 0.3, 0), one("b", 0.0, 0.6, 100)];
        assert_eq!(similarities(&all, Vectors::OfEngine), [0.5, 1.0]);
    }

    #[test]
    fn what_was_said_around_an_answer_counts() {
        let far = one("d", 0.1, 0.1, 500);
        let all = [one("a", 0.4, 0.4, 0), one("b", 0.1, 0.1, 1), far, one("e", 0.0, 0.0, 2)];
        let found = similarities(&all, Vectors::OfEngine);
        assert!(found[1] > found[2], "{found:?}");
        assert_eq!(found[3], 0.0, "what is no answer does not become one");
        let other = Candidate { task: Some("u"), ..all[1] };
        let found = similarities(&[all[0], other, all[2]], Vectors::OfEngine);
        assert!((found[1] - found[2]).abs() < 1e-9, "of another task: {found:?}");
    }

    #[test]
    fn half_is_the_cosine_where_a_server_made_the_vector() {
        let all = [one("a", 0.4, 0.3, 0), one("b", 0.2, 0.0, 1), one("c", 0.0, 0.8, 2)];
        let found = similarities(&all, Vectors::OfServer);
        let expected = [0.65, 0.5, 0.4];
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?}");
    }
}
