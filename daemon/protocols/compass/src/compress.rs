//! Compression of a stage or task by `extract-1`, and how good it is. No store, no clock.

use std::collections::HashSet;

use omird_text::{
    Claim, Counter, EXTRACT_1, Language, Passage, Summarizer, Summary, TokenCounter,
    critical_facts, sentences,
};

use crate::failure::Failure;
use crate::settings::Settings;
use crate::state::{Compression, CriticalPart};

/// The language that texts are compared in.
pub(crate) const LANGUAGE: Language = Language::English;
/// Insights of a stage.
const MOST_INSIGHTS: usize = 5;
/// Sentences of a summary that are compared with each other.
const MOST_COMPARED: usize = 100;
/// Bytes of texts in which facts are looked for that are no sentence of theirs.
const MOST_SEARCHED: usize = 64 << 20;

/// Bytes of the critical facts of a stage, and of those of a task. The record that holds them has a bound: without one here,
/// a task that has gathered many could go on no more. What is above stays in the memories and stages, and is read from there.
pub(crate) const MOST_FACTS: usize = 128 << 10;
/// Bytes of a summary, at most. It stands in the record of a stage twice.
const LONGEST_SUMMARY: usize = 192 << 10;
/// Bytes of an insight, at most.
const LONGEST_INSIGHT: usize = 4 << 10;

/// The result of a compression. A caller that stores the summary stores the critical facts too.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Compressed {
    pub(crate) summary: String,
    pub(crate) critical_facts: Vec<String>,
    /// Critical facts above [`MOST_FACTS`].
    pub(crate) left_out: usize,
    pub(crate) insights: Vec<String>,
    pub(crate) input_tokens: usize,
    pub(crate) output_tokens: usize,
    pub(crate) ratio: f64,
    pub(crate) coherence: f64,
    pub(crate) model: String,
    /// Dollars that a model took for it.
    pub(crate) cost_usd: f64,
}

impl Compressed {
    /// Returns the share of the critical facts that it keeps. They stand beside the summary word for word, so it is all of them
    /// whatever the summary says, up to [`MOST_FACTS`]: no smaller ratio is tried.
    pub(crate) fn retention(&self) -> f64 {
        let kept = self.critical_facts.len();
        if self.left_out == 0 { 1.0 } else { kept as f64 / (kept + self.left_out) as f64 }
    }
}

/// A text that is compressed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Source {
    pub(crate) text: String,
    pub(crate) relevance: f64,
    pub(crate) critical: CriticalPart,
    pub(crate) is_correction: bool,
}

impl Source {
    /// Returns the critical facts in it.
    fn facts(&self) -> Vec<&str> {
        let all = || sentences(&self.text).collect::<Vec<_>>();
        match self.critical {
            CriticalPart::Constraints => critical_facts(&self.text),
            CriticalPart::All => all(),
            CriticalPart::ConstraintsOrAll => {
                let stated = critical_facts(&self.text);
                if stated.is_empty() { all() } else { stated }
            }
        }
    }

    /// Returns true if each sentence of it is a critical fact, whatever it says.
    fn is_critical(&self) -> bool {
        match self.critical {
            CriticalPart::Constraints => false,
            CriticalPart::All => true,
            CriticalPart::ConstraintsOrAll => critical_facts(&self.text).is_empty(),
        }
    }
}

/// Compresses texts in order of time. `given` is a summary that the caller made: it is measured in the place of ours.
///
/// # Errors
/// There is nothing to compress.
pub(crate) fn compress(
    sources: &[Source],
    ratio: f64,
    given: Option<&str>,
    counter: Counter,
) -> Result<Compressed, Failure> {
    let passages: Vec<Passage<'_>> = sources
        .iter()
        .map(|source| Passage {
            text: &source.text,
            relevance: source.relevance,
            is_critical: source.is_critical(),
            is_correction: source.is_correction,
        })
        .collect();
    if !passages.iter().any(|passage| !passage.text.trim().is_empty()) {
        return Err(Failure::not_compressed(
            "there is nothing to compress: no memory says anything",
        ));
    }
    let (facts, left_out) = within(facts_of(sources), MOST_FACTS);
    let summarizer = Summarizer::new(LANGUAGE, &counter);
    let insights = summarizer.insights(&passages, MOST_INSIGHTS);
    let input_tokens = passages.iter().map(|passage| counter.count(passage.text)).sum();
    let (summary, model) = match given {
        Some(given) => (given.to_owned(), "caller"),
        None => (shortened(summarizer.by_ratio(&passages, ratio)).text(), EXTRACT_1),
    };
    let mut search = FactSearch::of([summary.as_str()]);
    let beside = facts.iter().filter(|fact| !search.finds(fact));
    let beside: usize = beside.map(|fact| counter.count(fact)).sum();
    let output_tokens = counter.count(&summary) + beside;
    Ok(Compressed {
        insights: insights
            .iter()
            .filter(|insight| insight.len() <= LONGEST_INSIGHT)
            .map(|insight| (*insight).to_owned())
            .collect(),
        input_tokens,
        output_tokens,
        ratio: two_digits(input_tokens as f64 / output_tokens.max(1) as f64),
        coherence: coherence(&summary, sources),
        model: model.to_owned(),
        cost_usd: 0.0,
        critical_facts: facts,
        left_out,
        summary,
    })
}

/// Returns the facts that take at most so many bytes together, and how many others there are.
pub(crate) fn within(mut facts: Vec<String>, most: usize) -> (Vec<String>, usize) {
    let (count, mut bytes) = (facts.len(), 0);
    facts.retain(|fact| {
        let is_in = bytes + fact.len() <= most;
        bytes += if is_in { fact.len() } else { 0 };
        is_in
    });
    let left_out = count - facts.len();
    (facts, left_out)
}

/// Leaves out what is above [`LONGEST_SUMMARY`]: critical sentences go before the ratio.
fn shortened(mut summary: Summary<'_>) -> Summary<'_> {
    let mut bytes = 0;
    summary.extracts.retain(|extract| {
        let is_in = bytes + extract.text.len() < LONGEST_SUMMARY;
        bytes += if is_in { extract.text.len() + 1 } else { 0 };
        is_in
    });
    summary
}

/// Returns the critical facts: sentences that state a constraint, and those of critical texts, once each.
pub(crate) fn facts_of(sources: &[Source]) -> Vec<String> {
    let mut known: HashSet<&str> = HashSet::new();
    let mut facts: Vec<String> = Vec::new();
    for source in sources {
        let new = source.facts().into_iter().filter(|fact| known.insert(fact));
        facts.extend(new.map(str::to_owned));
    }
    facts
}

/// Texts in which facts are looked for word for word.
pub(crate) struct FactSearch<'t> {
    texts: Vec<&'t str>,
    /// Lines, with and without the dash of a list, and sentences: most facts are one of them.
    parts: HashSet<&'t str>,
    /// Bytes that may be looked through for others.
    left: usize,
}

impl<'t> FactSearch<'t> {
    pub(crate) fn of(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let texts: Vec<&str> = texts.into_iter().collect();
        let mut parts: HashSet<&str> = HashSet::new();
        for text in &texts {
            for line in text.lines() {
                parts.extend([line, line.strip_prefix("- ").unwrap_or(line)]);
            }
            parts.extend(sentences(text));
        }
        Self { texts, parts, left: MOST_SEARCHED }
    }

    /// Returns true if a text holds the fact. After [`MOST_SEARCHED`] bytes one that stands amid other words is missed.
    pub(crate) fn finds(&mut self, fact: &str) -> bool {
        if self.parts.contains(fact) {
            return true;
        }
        let bytes: usize = self.texts.iter().map(|text| text.len()).sum();
        let left = self.left.checked_sub(bytes);
        self.left = left.unwrap_or_default();
        left.is_some() && self.texts.iter().any(|text| text.contains(fact))
    }
}

/// Returns 1, less the share of sentences that contradict each other and did not so before.
fn coherence(summary: &str, sources: &[Source]) -> f64 {
    let all: Vec<&str> = sentences(summary).take(MOST_COMPARED).collect();
    if all.is_empty() {
        return 1.0;
    }
    let is_new = |sentence: &str| !sources.iter().any(|source| source.text.contains(sentence));
    let all: Vec<(bool, &str)> = all.iter().map(|sentence| (is_new(sentence), *sentence)).collect();
    // A summary of extracts, as most are, says nothing new.
    if !all.iter().any(|(new, _)| *new) {
        return 1.0;
    }
    let claims: Vec<(bool, Claim)> =
        all.iter().map(|(new, sentence)| (*new, Claim::of(LANGUAGE, sentence))).collect();
    let mut pairs = 0;
    for (at, (new, claim)) in claims.iter().enumerate() {
        let others = claims.iter().skip(at + 1);
        pairs += others
            .filter(|(other, _)| *new || *other)
            .filter(|(_, one)| claim.opposes(one).is_some())
            .count();
    }
    (1.0 - pairs as f64 / all.len() as f64).max(0.0)
}

fn two_digits(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

/// The load of a task, by which the ratio adapts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Load {
    /// Stages of the task.
    pub(crate) stages: usize,
    /// Memories of the task.
    pub(crate) memories: usize,
    /// Errors for each memory of the current stage.
    pub(crate) error_rate: f64,
}

/// The ratios in force.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct InForce {
    pub(crate) aggressiveness: f64,
    pub(crate) auto: bool,
    pub(crate) stage_ratio: f64,
    pub(crate) task_ratio: f64,
}

/// Returns the ratios in force for a task: its own settings, then those of its agent, then those of the configuration.
pub(crate) fn in_force(
    settings: &Settings,
    task: &Compression,
    agent: &Compression,
    load: Load,
) -> InForce {
    let auto = task.auto.or(agent.auto).unwrap_or(true);
    let stated = task.aggressiveness.or(agent.aggressiveness).unwrap_or(0.5);
    let mut g = stated;
    if auto {
        if load.stages > 5 || load.memories > 200 {
            g -= 0.1;
        }
        if load.error_rate > 0.3 {
            g -= 0.2;
        }
    }
    let g = g.clamp(0.0, 1.0);
    let by = (2.0 * g - 1.0).exp2();
    let stage = task.stage_ratio.or(agent.stage_ratio);
    let task_ratio = task.task_ratio.or(agent.task_ratio);
    InForce {
        aggressiveness: g,
        auto,
        stage_ratio: (stage.unwrap_or(settings.stage_compression_ratio_target) * by)
            .clamp(1.0, 20.0),
        task_ratio: (task_ratio.unwrap_or(settings.task_compression_ratio_target) * by)
            .clamp(1.0, 10.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        let critical = CriticalPart::Constraints;
        Source { text: text.to_owned(), relevance: 1.0, critical, is_correction: false }
    }

    #[test]
    fn a_text_that_is_critical_has_facts() {
        let plain = "The dock is wet. The lamp is on.";
        let stated = "The dock is wet. It must stay closed.";
        let of = |text, critical| facts_of(&[Source { critical, ..source(text) }]);
        assert!(of(plain, CriticalPart::Constraints).is_empty());
        assert_eq!(of(stated, CriticalPart::ConstraintsOrAll), ["It must stay closed."]);
        let both = ["The dock is wet.", "The lamp is on."];
        assert_eq!(of(plain, CriticalPart::ConstraintsOrAll), both);
        assert_eq!(of(plain, CriticalPart::All), both);
        assert_eq!(of(stated, CriticalPart::All).len(), 2);
        let critical = CriticalPart::ConstraintsOrAll;
        let made = compress(
            &[Source { critical, ..source(plain) }, source("The cup is red.")],
            10.0,
            None,
            Counter::Approx1,
        );
        assert_eq!(made.unwrap().critical_facts, both);
    }

    #[test]
    fn facts_are_kept_and_the_ratio_is_what_it_is() {
        let mut sources: Vec<Source> = (0..60)
            .map(|n| {
                source(&format!("The robot drove past shelf {n} and looked at the boxes there."))
            })
            .collect();
        let facts = [
            "The robot must not enter room 12.",
            "The battery must be above 20 percent.",
            "Never lift more than 5 kg.",
            "The deadline is 17:00.",
        ];
        facts.iter().enumerate().for_each(|(at, fact)| sources.insert(at * 9, source(fact)));
        let made = compress(&sources, 10.0, None, Counter::Approx1).unwrap();
        for fact in facts {
            assert!(made.critical_facts.iter().any(|known| known == fact), "{fact}");
        }
        assert_eq!(made.coherence, 1.0);
        assert_eq!(made.model, "extract-1");
        let input: usize = sources.iter().map(|source| Counter::Approx1.count(&source.text)).sum();
        assert_eq!(made.input_tokens, input);
        assert_eq!(made.ratio, two_digits(input as f64 / made.output_tokens as f64));
        assert!(made.ratio > 5.0, "{}", made.ratio);
    }

    #[test]
    fn many_facts_mean_a_small_ratio_and_no_error() {
        let sources: Vec<Source> =
            (0..10).map(|n| source(&format!("Door {n} must stay closed at night."))).collect();
        let made = compress(&sources, 10.0, None, Counter::Approx1).unwrap();
        assert_eq!(made.critical_facts.len(), 10);
        assert!(made.ratio < 10.0);
        let nothing = compress(&[source(" ")], 10.0, None, Counter::Approx1).unwrap_err();
        assert_eq!(nothing.error.code, -32007);
    }

    #[test]
    fn a_summary_that_is_given_is_measured() {
        let sources = [source("The door of room 3 is open."), source("It must stay so.")];
        let made = compress(
            &sources,
            10.0,
            Some("The door of room 3 is not open. The door of room 3 is open."),
            Counter::Approx1,
        );
        let made = made.unwrap();
        assert_eq!(made.model, "caller");
        assert!(made.coherence < 1.0, "{}", made.coherence);
        let facts = Counter::Approx1.count("It must stay so.");
        let summary = Counter::Approx1.count(&made.summary);
        assert_eq!(made.output_tokens, summary + facts, "what is kept beside counts");
    }

    #[test]
    fn facts_are_looked_for_word_for_word() {
        let texts = ["- The door is shut.\nIt must stay so. Never open it.", "so it must be"];
        let mut search = FactSearch::of(texts);
        for fact in ["The door is shut.", "- The door is shut.", "Never open it.", "must stay"] {
            assert!(search.finds(fact), "{fact}");
        }
        assert!(!search.finds("The door is open."));
        search.left = 0;
        assert!(search.finds("Never open it."), "one that is a sentence is found always");
        assert!(!search.finds("must stay"));
    }

    #[test]
    fn many_facts_are_told_apart() {
        let text: String = (0..4000).map(|n| format!("must {n}\n")).collect();
        let made = compress(&[source(&text), source(&text)], 10.0, None, Counter::Approx1).unwrap();
        assert_eq!(made.critical_facts.len(), 4000);
        assert_eq!((made.left_out, made.retention()), (0, 1.0));
        let long: String = (0..4000).map(|n| format!("{n} must be {}\n", "x".repeat(60))).collect();
        let made = compress(&[source(&long)], 10.0, None, Counter::Approx1).unwrap();
        assert_eq!(made.critical_facts.len() + made.left_out, 4000);
        let bytes: usize = made.critical_facts.iter().map(String::len).sum();
        assert!(bytes <= MOST_FACTS && bytes > MOST_FACTS - 100, "{bytes}");
        assert!(made.summary.len() <= LONGEST_SUMMARY && made.retention() < 1.0);
    }

    #[test]
    fn the_ratios_in_force() {
        let settings = Settings::default();
        let none = Compression::default();
        let stated = |g| Compression { aggressiveness: Some(g), auto: Some(false), ..none.clone() };
        let of = |task: &Compression, load| {
            let force = in_force(&settings, task, &none, load);
            (force.stage_ratio, force.task_ratio)
        };
        // T34 of the conformance tests.
        assert_eq!(of(&stated(1.0), Load::default()), (20.0, 10.0));
        assert_eq!(of(&stated(0.0), Load::default()), (5.0, 2.5));
        assert_eq!(of(&none, Load::default()), (10.0, 5.0));
        let heavy = Load { stages: 6, memories: 0, error_rate: 0.4 };
        let ratio = 10.0 * (2.0 * 0.2_f64 - 1.0).exp2();
        assert!((of(&none, heavy).0 - ratio).abs() < 1e-9, "0.5 − 0.1 − 0.2 is 0.2");
        assert_eq!(of(&stated(0.5), heavy), (10.0, 5.0), "nothing adapts by itself");
    }
}
