//! A context within a budget of tokens: sections with parts, cut by their worth. No store, no clock.
//!
//! Each part is a text of its own lines, which begins with no white space. So the tokens of the whole are the sum of those of
//! its parts, by the counter `approx-1`, and nearly so by a vocabulary: [`Draft::fit`] need not count the whole again for each
//! part that it takes away, but where the rest may fit.

use std::cmp::Reverse;

use omir_core::json;
use omir_core::value::{Map, Value};
use omird_text::{Counter, Passage, Summarizer, TokenCounter};

use crate::compress::LANGUAGE;
use crate::failure::Failure;
use crate::words::Format;

/// Tokens that go with a part beside its own, at most: of quotes, of a comma, or where it meets others.
const BESIDE: usize = 4;

/// A section of a context, in the order in which they stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    /// The goal, and how far it is reached.
    Progress,
    /// The current stage.
    Current,
    /// Memories, where there is no task.
    Memories,
    /// Stages that are over.
    Past,
    /// Facts that must be remembered.
    Facts,
    /// Errors lately.
    Errors,
}

impl Section {
    const ALL: [Self; 6] =
        [Self::Progress, Self::Current, Self::Memories, Self::Past, Self::Facts, Self::Errors];

    /// Returns the heading.
    fn heading(self) -> &'static str {
        match self {
            Self::Progress => "Task Progress",
            Self::Current => "Current Stage",
            Self::Memories => "Memories",
            Self::Past => "Past Stages",
            Self::Facts => "Critical Facts",
            Self::Errors => "Errors",
        }
    }
}

/// The worth of a part: what is cut first is of least worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Worth {
    /// Memories as they were stored, from the lowest score: their summaries take their place before any is cut.
    Raw,
    /// Stages that are over, from the oldest.
    Past,
    /// Errors, from the oldest.
    Error,
    /// The summary of the current stage.
    Stage,
    /// The summary of the task: shortened to what is left.
    Progress,
    /// The best memories of the current stage in short.
    Now,
    /// Never cut.
    Fixed,
}

/// A part of a section.
#[derive(Debug, Clone, PartialEq)]
struct Part {
    section: Section,
    worth: Worth,
    text: String,
    /// A shorter text that takes its place before the part is cut.
    short: Option<String>,
    is_cut: bool,
    /// Its place in time among the parts of its section. Those of one place stand as they were added.
    at: usize,
}

/// A context that may be too long yet. Of the parts of one worth, the last ones go first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Draft {
    parts: Vec<Part>,
}

/// A context within its budget.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Context {
    /// The text, or an object with a list for each section.
    pub(crate) context: Value,
    /// Tokens of the context.
    pub(crate) tokens: usize,
    /// The budget.
    pub(crate) budget: usize,
    /// The counter of the tokens.
    pub(crate) counter: Counter,
    /// Name, tokens, and if something was cut, of each section.
    pub(crate) sections: Vec<(&'static str, usize, bool)>,
}

impl Context {
    /// Writes the sections as they stand in an answer.
    pub(crate) fn sections(&self) -> Value {
        let of = |(name, tokens, truncated): &(&'static str, usize, bool)| {
            let mut map = Map::new();
            map.insert("name", *name);
            map.insert("tokens", *tokens);
            map.insert("truncated", *truncated);
            Value::Object(map)
        };
        self.sections.iter().map(of).collect()
    }
}

impl Draft {
    /// Adds a part. Parts of one worth come in the order in which they are wanted; a blank one is none.
    pub(crate) fn add(&mut self, section: Section, worth: Worth, text: impl AsRef<str>) {
        let text = text.as_ref().trim();
        if !text.is_empty() {
            let (text, short) = (text.to_owned(), None);
            self.parts.push(Part { section, worth, text, short, is_cut: false, at: 0 });
        }
    }

    /// Adds a part that has a short form, and a place in time.
    pub(crate) fn add_with_short(
        &mut self,
        section: Section,
        worth: Worth,
        text: &str,
        short: Option<String>,
        at: usize,
    ) {
        let count = self.parts.len();
        self.add(section, worth, text);
        if let Some(part) = self.parts.get_mut(count) {
            part.at = at;
            part.short = short.filter(|short| short.len() < part.text.len());
        }
    }

    /// Adds critical facts. They are never cut.
    pub(crate) fn add_facts(&mut self, facts: &[String]) {
        for fact in facts {
            // One of a list has its sign already.
            let sign = if fact.starts_with("- ") { "" } else { "- " };
            self.add(Section::Facts, Worth::Fixed, format!("{sign}{fact}"));
        }
    }

    /// Cuts the draft until it fits, by the tokens of `counter`.
    ///
    /// # Errors
    /// The facts that are never cut do not fit.
    pub(crate) fn fit(
        mut self,
        budget: usize,
        format: Format,
        counter: Counter,
    ) -> Result<Context, Failure> {
        let all: Vec<Section> = Section::ALL.into_iter().filter(|one| self.has(*one)).collect();
        let mut cut: Vec<Section> = Vec::new();
        let mut order = self.order().into_iter();
        // At least so many tokens, or exactly so many. The whole is counted again only once it may fit: there may be
        // thousands of parts, and each may be long.
        let (mut needed, mut is_exact) = (self.whole(format, counter), true);
        loop {
            if needed <= budget && !is_exact {
                needed = self.whole(format, counter);
            }
            if needed <= budget {
                break;
            }
            let Some(at) = order.next() else {
                return Err(Failure::budget_too_small(self.whole(format, counter), budget));
            };
            let worth = self.parts[at].worth;
            if let Some(short) = self.parts[at].short.take() {
                let before = self.tokens_of(at, format, counter);
                self.parts[at].text = short;
                let saved = before.saturating_sub(self.tokens_of(at, format, counter));
                needed = needed.saturating_sub(saved + BESIDE);
                is_exact = false;
                cut.push(self.parts[at].section);
                continue;
            }
            cut.push(self.parts[at].section);
            needed = needed.saturating_sub(self.cut(at, format, counter));
            is_exact = false;
            if worth != Worth::Progress {
                continue;
            }
            let text = std::mem::take(&mut self.parts[at].text);
            needed = self.whole(format, counter);
            let room = budget.saturating_sub(needed);
            if let Some(short) = shortened(&text, room, format, counter) {
                self.parts[at] = Part { text: short, is_cut: false, ..self.parts[at].clone() };
                let with_it = self.whole(format, counter);
                match with_it <= budget {
                    true => needed = with_it,
                    false => self.parts[at].is_cut = true,
                }
            }
            is_exact = true;
        }
        let sections = all
            .into_iter()
            .map(|section| {
                let (text, _) = self.section(section, format);
                (section.heading(), counter.count(&text), cut.contains(&section))
            })
            .collect();
        let context = self.written(format);
        let tokens = counter.count(&text_of(&context));
        Ok(Context { context, tokens, budget, counter, sections })
    }

    /// Returns the places of the parts that may be cut, in that order: those of least worth first, of these the last one. One
    /// with a short form comes twice: all of these are shortened before anything is cut.
    fn order(&self) -> Vec<usize> {
        let parts = self.parts.iter().enumerate();
        let open = parts.filter(|(_, part)| part.worth != Worth::Fixed);
        let mut steps: Vec<(Worth, bool, Reverse<usize>)> = Vec::new();
        for (at, part) in open {
            if part.short.is_some() {
                steps.push((Worth::Raw, false, Reverse(at)));
            }
            steps.push((part.worth, true, Reverse(at)));
        }
        steps.sort_unstable();
        steps.into_iter().map(|(_, _, Reverse(at))| at).collect()
    }

    /// Returns the tokens of a part by itself.
    fn tokens_of(&self, at: usize, format: Format, counter: Counter) -> usize {
        let text = self.parts[at].text.as_str();
        match format {
            Format::Markdown => counter.count(&lined(text)),
            Format::Json => counter.count(&json::to_string(&Value::from(text))),
        }
    }

    /// Cuts a part, and returns the most tokens that this can save.
    fn cut(&mut self, at: usize, format: Format, counter: Counter) -> usize {
        self.parts[at].is_cut = true;
        let (section, saved) = (self.parts[at].section, self.tokens_of(at, format, counter));
        let heading = if self.has(section) { 0 } else { counter.count(&heading(section)) + BESIDE };
        let is_sum = format == Format::Markdown && counter.adds_up();
        saved + heading + if is_sum { 0 } else { BESIDE }
    }

    /// Returns the parts that are there still.
    fn kept(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(|part| !part.is_cut)
    }

    fn has(&self, section: Section) -> bool {
        self.kept().any(|part| part.section == section)
    }

    /// Returns the tokens of the whole as it goes out.
    fn whole(&self, format: Format, counter: Counter) -> usize {
        counter.count(&text_of(&self.written(format)))
    }

    /// Returns the text of a section, and its parts.
    fn section(&self, section: Section, format: Format) -> (String, Vec<&str>) {
        let mut parts: Vec<&Part> = self.kept().filter(|part| part.section == section).collect();
        parts.sort_by_key(|part| part.at);
        let parts: Vec<&str> = parts.into_iter().map(|part| part.text.as_str()).collect();
        if parts.is_empty() {
            return (String::new(), parts);
        }
        let text = match format {
            Format::Markdown => {
                let lines: String = parts.iter().map(|part| lined(part)).collect();
                format!("{}{lines}", heading(section))
            }
            Format::Json => json::to_string(&parts.iter().copied().collect::<Value>()),
        };
        (text, parts)
    }

    fn written(&self, format: Format) -> Value {
        match format {
            Format::Markdown => {
                let texts = Section::ALL.into_iter().map(|section| self.section(section, format).0);
                Value::Text(texts.collect())
            }
            Format::Json => {
                let mut map = Map::new();
                for section in Section::ALL {
                    let (_, parts) = self.section(section, format);
                    if !parts.is_empty() {
                        let name = section.heading().to_lowercase().replace(' ', "_");
                        map.insert(name, parts.into_iter().collect::<Value>());
                    }
                }
                Value::Object(map)
            }
        }
    }
}

fn heading(section: Section) -> String {
    format!("# {}\n", section.heading())
}

fn lined(text: &str) -> String {
    format!("{text}\n")
}

/// Returns what is counted: a text is its own, an object the JSON that goes out.
fn text_of(context: &Value) -> String {
    match context {
        Value::Text(text) => text.clone(),
        other => json::to_string(other),
    }
}

/// Shortens a summary to so many tokens with the ends of its lines, if any of it fits.
fn shortened(text: &str, room: usize, format: Format, counter: Counter) -> Option<String> {
    // In JSON there are quotes and a comma as well.
    let beside = match format {
        Format::Markdown => 1,
        Format::Json => 4,
    };
    let room = room.checked_sub(beside)?;
    let short = Summarizer::new(LANGUAGE, &counter).within(&[Passage::new(text)], room).ok()?;
    let short = short.text();
    (!short.trim().is_empty()).then_some(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft() -> Draft {
        let mut draft = Draft::default();
        draft.add(Section::Progress, Worth::Fixed, "Goal: Build the login");
        draft.add(
            Section::Progress,
            Worth::Progress,
            "The plan is made. The tokens are signed. The tests are written.",
        );
        draft.add(Section::Current, Worth::Stage, "Tokens are signed with a key.");
        for n in 0..20 {
            draft.add(
                Section::Current,
                Worth::Raw,
                format!("- memory {n} about the tokens of the login"),
            );
        }
        draft.add(Section::Past, Worth::Past, "- planning: the plan was made");
        draft.add(Section::Facts, Worth::Fixed, "- must not store passwords");
        draft.add(Section::Errors, Worth::Error, "- missing_info 0.5: no key was found");
        draft
    }

    #[test]
    fn the_budget_is_kept_whatever_it_is() {
        let formats = [Format::Markdown, Format::Json];
        for (counter, format) in Counter::ALL.iter().flat_map(|one| formats.map(|it| (*one, it))) {
            let mut last = 0;
            // An exact count takes its time in a debug build.
            for budget in (0..400).step_by(if counter.adds_up() { 1 } else { 41 }) {
                match draft().fit(budget, format, counter) {
                    Ok(context) => {
                        assert!(context.tokens <= budget, "{budget}: {context:?}");
                        let count = counter.count(&text_of(&context.context));
                        assert_eq!(context.tokens, count);
                        let text = text_of(&context.context);
                        assert!(
                            text.contains("must not store passwords")
                                && text.contains("Build the login")
                        );
                        last = context.tokens;
                    }
                    Err(failure) => {
                        assert_eq!(failure.error.code, -32008);
                        let needed = failure.error.data.get("needed").and_then(Value::as_u64);
                        assert!(needed.unwrap() > budget as u64);
                        assert_eq!(last, 0, "a larger budget fits too");
                    }
                }
            }
        }
    }

    /// Tokens of a vocabulary reach over the end of a line: a colon, the newline and the slash after it are one of o200k_base.
    #[cfg(feature = "tiktoken")]
    #[test]
    fn tokens_across_lines_count_as_in_the_whole() {
        let counter = Counter::named("o200k_base").unwrap();
        let mut draft = Draft::default();
        for n in 0..12 {
            draft.add(Section::Current, Worth::Raw, format!("file {n}:"));
            draft.add(Section::Current, Worth::Raw, format!("/var/log/{n}.txt:"));
        }
        let lines = draft.parts.iter().map(|part| counter.count(&lined(&part.text)));
        let sum = counter.count(&heading(Section::Current)) + lines.sum::<usize>();
        let whole = draft.whole(Format::Markdown, counter);
        assert_ne!(sum, whole);
        for budget in 0..whole + 2 {
            let context = draft.clone().fit(budget, Format::Markdown, counter).unwrap();
            let text = text_of(&context.context);
            assert!(context.tokens <= budget && context.tokens == counter.count(&text));
        }
    }

    #[test]
    fn what_is_of_least_worth_goes_first() {
        let whole = draft().fit(10_000, Format::Markdown, Counter::Approx1).unwrap();
        let text = text_of(&whole.context);
        let at = |heading: &str| text.find(heading).unwrap();
        let order =
            ["# Task Progress", "# Current Stage", "# Past Stages", "# Critical Facts", "# Errors"];
        assert!(order.windows(2).all(|pair| at(pair[0]) < at(pair[1])));
        assert!(whole.sections.iter().all(|(_, _, truncated)| !truncated));
        let less = draft().fit(whole.tokens - 1, Format::Markdown, Counter::Approx1).unwrap();
        let text = text_of(&less.context);
        assert!(
            !text.contains("memory 19 ") && text.contains("memory 18 ") && text.contains("no key")
        );
        let cut: Vec<bool> = less.sections.iter().map(|(_, _, truncated)| *truncated).collect();
        assert_eq!(cut, [false, true, false, false, false]);
        let least = (0..)
            .find_map(|budget| draft().fit(budget, Format::Markdown, Counter::Approx1).ok())
            .unwrap();
        assert_eq!(
            text_of(&least.context),
            "# Task Progress\nGoal: Build the login\n# Critical Facts\n- must not store passwords\n"
        );
        // With a little more room, a part of the progress summary.
        let more = draft().fit(least.tokens + 8, Format::Markdown, Counter::Approx1).unwrap();
        let text = text_of(&more.context);
        assert!(text.contains("tokens are signed.") || text.contains("plan is made."), "{text}");
    }

    /// Many parts, each of many tokens, of which few fit.
    #[test]
    fn what_is_kept_is_as_much_as_fits() {
        let long = "the arm moved to the next bin and looked at what lay in it, ".repeat(200);
        let mut draft = Draft::default();
        for n in 0..100 {
            draft.add(Section::Current, Worth::Raw, format!("- {n}: {long}"));
        }
        for n in 0..300 {
            draft.add(Section::Past, Worth::Past, format!("- planning: stage {n}"));
        }
        draft.add(Section::Facts, Worth::Fixed, "- must not store passwords");
        let counter = Counter::Approx1;
        for format in [Format::Markdown, Format::Json] {
            for kept in [0, 1, 2, 299, 300, 301, 302, 399] {
                let mut less = draft.clone();
                less.parts.retain(|part| part.worth != Worth::Raw);
                let raw = kept.max(300) - 300;
                less.parts.drain(kept.min(300)..300);
                let first = draft.parts.iter().take(raw).cloned();
                less.parts.splice(0..0, first);
                let budget = less.whole(format, counter);
                let fitted = draft.clone().fit(budget, format, counter).unwrap();
                assert_eq!(fitted.context, less.written(format), "{kept} parts");
            }
        }
    }

    #[test]
    fn memories_are_shortened_before_one_is_cut() {
        let mut draft = Draft::default();
        for n in 0..4 {
            let whole =
                format!("- memory {n} with all that the tools wrote at that time of the day");
            let short = Some(format!("- memory {n}"));
            draft.add_with_short(Section::Current, Worth::Raw, &whole, short, 0);
        }
        for format in [Format::Markdown, Format::Json] {
            let whole = draft.clone().fit(1000, format, Counter::Approx1).unwrap();
            let mut last = String::new();
            for budget in (2..whole.tokens).rev() {
                let made = draft.clone().fit(budget, format, Counter::Approx1).unwrap();
                let text = text_of(&made.context);
                assert!(made.tokens <= budget && made.sections[0].2, "{text}");
                let wholes = text.matches("tools").count();
                let all = text.matches("memory").count();
                assert!(wholes == 0 || all == 4, "none goes while one is whole: {text}");
                assert!(last.is_empty() || text.len() <= last.len());
                last = text;
            }
        }
    }

    #[test]
    fn an_empty_draft_is_empty() {
        let context = Draft::default().fit(64, Format::Markdown, Counter::Approx1).unwrap();
        assert_eq!((context.context, context.tokens), (Value::from(""), 0));
    }
}
