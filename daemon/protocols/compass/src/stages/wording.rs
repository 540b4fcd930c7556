//! The stage that the wording of one memory speaks for, where nobody marks it.
//!
//! Each cue of a text leans towards some stages and away from others; the stage with the largest sum is the one that the text
//! speaks for. Cues are groups of common English words, the shape of the text, the commands among the actions, and the
//! current stage. Their weights, in hundredths, were fitted by logistic regression to the part of `benches/data/compass`
//! that is there for it. A text without a single cue word, such as a bare list of things, speaks for no stage.

use crate::words::StageType;

/// The weights of a cue for planning, execution, reflection and verification, in hundredths.
type Lean = [i32; 4];

/// The order of the weights.
const STAGES: [StageType; 4] =
    [StageType::Planning, StageType::Execution, StageType::Reflection, StageType::Verification];

/// The lead of a stage over the current one, in hundredths, for which a text speaks with certainty.
const CERTAIN: f64 = 400.0;

/// A memory, as far as its wording goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wording<'a> {
    pub(crate) content: &'a str,
    pub(crate) actions: &'a [String],
    pub(crate) outcome: Option<&'a str>,
}

impl Wording<'_> {
    /// Returns the stage that it speaks for while another one is current, and how clearly: from 0 for a tie to 1.
    pub(super) fn speaks_for(&self, current: StageType) -> Option<(StageType, f64)> {
        let mut sum = Sum::default();
        sum.add(EACH);
        sum.add(match current {
            StageType::Planning => IN_PLANNING,
            StageType::Execution => IN_EXECUTION,
            StageType::Reflection => IN_REFLECTION,
            StageType::Verification => IN_VERIFICATION,
        });
        if self.actions.is_empty() {
            sum.add_text(self.content);
        } else {
            sum.add_actions(self.actions, current);
            sum.add_outcome(self.outcome.unwrap_or_default());
        }
        if !sum.has_words {
            return None;
        }
        let of = |stage: StageType| STAGES.iter().position(|one| *one == stage);
        let own = of(current).map_or(0.0, |at| sum.leans[at]);
        let (best, stage) =
            sum.leans.iter().copied().zip(STAGES).max_by(|a, b| a.0.total_cmp(&b.0))?;
        (stage != current).then(|| (stage, ((best - own) / CERTAIN).clamp(0.0, 1.0)))
    }
}

const EACH: Lean = [-22, 206, -130, -53];
const IN_PLANNING: Lean = [135, 3, -38, -99];
const IN_EXECUTION: Lean = [-87, 63, -37, 60];
const IN_REFLECTION: Lean = [44, -15, 22, -51];
const IN_VERIFICATION: Lean = [-92, -48, 50, 89];

/// Sums of leans.
#[derive(Debug, Default)]
struct Sum {
    leans: [f64; 4],
    /// A word of the text, or of an action, was a cue: shape alone says nothing.
    has_words: bool,
}

impl Sum {
    fn add(&mut self, lean: Lean) {
        self.add_share(lean, 1.0);
    }

    fn add_if(&mut self, is_so: bool, lean: Lean) {
        self.add_share(lean, f64::from(u8::from(is_so)));
    }

    fn add_share(&mut self, lean: Lean, share: f64) {
        self.leans.iter_mut().zip(lean).for_each(|(sum, one)| *sum += f64::from(one) * share);
    }

    /// Adds the cues of a text that tells of no action.
    fn add_text(&mut self, text: &str) {
        let all = words(text);
        let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
        let spoken: Vec<&str> =
            all.iter().map(String::as_str).filter(|word| !is_number(word)).collect();
        for (group, lean) in GROUPS {
            if spoken.iter().any(|word| is_of(group, word)) {
                self.has_words = true;
                self.add(*lean);
            }
        }
        let numbers = all.len() - spoken.len();
        self.add_share([-15, -36, -46, 98], numbers.min(MANY_NUMBERS) as f64 / MANY_NUMBERS as f64);
        self.add_share([-15, -6, -21, 42], numbers as f64 / all.len().max(1) as f64);
        self.add_if(text.contains('?'), [22, -23, 48, -47]);
        self.add_if(text.trim_end().ends_with('?'), [26, -22, 38, -42]);
        self.add_if(text.contains('%'), [30, -55, 1, 24]);
        self.add_if(has_part_of(&all, text), [-16, 3, -13, 27]);
        self.add_if(text.contains('\n'), [-41, 76, -6, -29]);
        let sentences = ends_of_sentences(text);
        self.add_if(sentences >= 2, [73, -62, 19, -30]);
        self.add_if(sentences >= 4, [42, -36, 15, -21]);
        self.add_if(spoken.len() <= 6, [22, 0, -27, 6]);
        self.add_if(spoken.len() <= 12, [-23, 48, -50, 25]);
        self.add_if(spoken.len() >= 25, [45, -113, 111, -43]);
        let first = spoken.first().copied().unwrap_or_default();
        let ends = |word: &str, ending: &str| word.len() > 4 && word.ends_with(ending);
        let is_past = ends(first, "ed") || is_of(DONE, first);
        self.add_if(is_past, [-52, 11, 5, 36]);
        self.add_if(ends(first, "ing"), [26, 19, -18, -27]);
        self.add_if(is_of(CHANGING, first), [-4, 16, -26, 15]);
        self.add_if(is_of(TESTING, first) || is_of(CHECKS, first), [-27, -26, -5, 58]);
        self.add_if(spoken.iter().any(|word| ends(word, "ed")), [-36, 22, 15, -1]);
        self.has_words |= is_past;
        let pair =
            |is: &dyn Fn(&str, &str) -> bool| spoken.windows(2).any(|two| is(two[0], two[1]));
        self.add_if(pair(&|a, b| HINDSIGHT.contains(&(a, b))), [-24, -20, 62, -19]);
        let is_meant = |a: &str, b: &str| {
            is_of(INTENT, a) && (is_of(CHANGING, b) || is_of(READING, b) || is_of(TESTING, b))
        };
        self.add_if(pair(&is_meant), [-10, 16, -21, 14]);
    }

    /// Adds what kinds of commands the actions are.
    fn add_actions(&mut self, actions: &[String], current: StageType) {
        let [mut reads, mut tests, mut changes] = [false; 3];
        for action in actions {
            let lower = action.to_ascii_lowercase();
            let commands =
                lower.split(|c: char| !c.is_ascii_lowercase()).filter(|word| !word.is_empty());
            for word in commands.take(COMMAND_WORDS) {
                reads |= is_of(READING, word);
                tests |= is_of(TESTING, word);
                changes |= is_of(CHANGING, word);
            }
        }
        self.has_words |= reads || tests || changes;
        self.add([-64, 13, 4, 47]);
        self.add(match (reads, tests, changes) {
            (false, false, false) => [-29, 62, 11, -44],
            (true, false, false) => [76, -96, 15, 5],
            (false, true, false) => [-23, -33, -12, 67],
            (_, _, true) if tests => [-18, 20, -11, 9],
            (true, _, true) => [-11, -11, 25, -3],
            (_, _, true) => [-59, 98, -23, -16],
            (true, true, false) => [0; 4],
        });
        if !changes && (reads || tests) {
            self.add(match current {
                StageType::Planning => [50, -28, -7, -15],
                StageType::Execution => [-7, -77, -8, 92],
                StageType::Reflection | StageType::Verification => [0; 4],
            });
        }
    }

    /// Adds how the actions went.
    fn add_outcome(&mut self, outcome: &str) {
        let all = words(outcome);
        let has = |group: &[&str]| all.iter().any(|word| is_of(group, word));
        self.add_if(has(GOOD), [-15, -40, -7, 62]);
        self.add_if(has(BAD), [4, -31, 28, -1]);
        self.add_if(has(WHOLE), [-12, 35, -7, -16]);
        self.add_if(has(ENDED), [6, 16, -16, -7]);
        let numbers =
            all.iter().filter(|word| word.starts_with(|c: char| c.is_ascii_digit())).count();
        self.add_share([-6, -48, 6, 48], numbers.min(MANY_NUMBERS) as f64 / MANY_NUMBERS as f64);
        self.add_if(outcome.contains('\n'), [38, -40, -10, 12]);
    }
}

/// Numbers of a text beyond which more say no more.
const MANY_NUMBERS: usize = 6;
/// Words of an action in which its command is looked for.
const COMMAND_WORDS: usize = 6;
/// Words of a text that are looked at.
const MOST_WORDS: usize = 2000;

/// Pairs of words that look back.
const HINDSIGHT: &[(&str, &str)] = &[
    ("should", "have"),
    ("next", "time"),
    ("had", "i"),
    ("must", "have"),
    ("would", "have"),
    ("from", "now"),
    ("at", "first"),
    ("turns", "out"),
    ("turned", "out"),
];

/// Words before a command that is meant to come.
const INTENT: &[&str] = &["i'd", "i'll", "let", "must", "should", "to", "we'll", "will", "would"];

/// Words in lower case, with their apostrophes, and runs of digits.
fn words(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut word = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let is_digit = c.is_numeric();
        let joins = matches!(c, '\'' | '\u{2019}')
            && word.ends_with(char::is_alphabetic)
            && chars.peek().is_some_and(|next| next.is_alphabetic());
        let goes_on = word.is_empty() || word.ends_with(char::is_numeric) == is_digit;
        let ends = !(joins || c.is_alphanumeric() && goes_on);
        if ends && !word.is_empty() {
            all.push(std::mem::take(&mut word));
            if all.len() >= MOST_WORDS {
                return all;
            }
        }
        if joins {
            word.push('\'');
        } else if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
    }
    if !word.is_empty() {
        all.push(word);
    }
    all
}

/// Counts the marks that end a sentence.
fn ends_of_sentences(text: &str) -> usize {
    let mut chars = text.chars().peekable();
    let mut count = 0;
    while let Some(c) = chars.next() {
        let ends = chars.peek().is_none_or(|next| next.is_whitespace());
        count += usize::from(matches!(c, '.' | '!' | '?') && ends);
    }
    count
}

/// Returns true for a part of a whole: `3/4`, `19 of 21`.
fn has_part_of(words: &[String], text: &str) -> bool {
    let is_number = |word: &String| word.starts_with(|c: char| c.is_ascii_digit());
    let said = words
        .windows(3)
        .any(|three| is_number(&three[0]) && three[1] == "of" && is_number(&three[2]));
    said || text.split('/').zip(text.split('/').skip(1)).any(|(before, behind)| {
        let before = before.strip_suffix(' ').unwrap_or(before);
        let behind = behind.strip_prefix(' ').unwrap_or(behind);
        before.ends_with(|c: char| c.is_ascii_digit())
            && behind.starts_with(|c: char| c.is_ascii_digit())
    })
}

fn is_of(sorted: &[&str], word: &str) -> bool {
    sorted.binary_search(&word).is_ok()
}

/// Results that are as they should be.
#[rustfmt::skip]
const GOOD: &[&str] = &[
    "agree", "agreed", "agrees", "approved", "clean", "complete", "confirmed", "confirms",
    "correct", "dry", "equal", "equals", "expected", "fine", "fit", "fits", "good", "green",
    "healthy", "intact", "match", "matched", "matches", "ok", "okay", "pass", "passed", "passes",
    "signed", "steady", "succeeded", "success", "successful", "successfully", "undamaged",
    "valid",
];

/// Results that are not.
#[rustfmt::skip]
const BAD: &[&str] = &[
    "blocked", "broken", "collision", "conflict", "crash", "crashed", "denied", "error", "errors",
    "exception", "fail", "failed", "fails", "failure", "failures", "fatal", "lost", "mismatch",
    "missing", "panic", "red", "refused", "rejected", "stuck", "timeout", "unable",
];

/// All or none.
#[rustfmt::skip]
const WHOLE: &[&str] = &[
    "all", "any", "both", "each", "every", "everything", "none", "nothing", "zero",
];

/// Looking, counting and measuring.
#[rustfmt::skip]
const CHECKS: &[&str] = &[
    "again", "benchmark", "check", "checked", "checking", "checks", "confirm", "count", "counted",
    "counts", "double", "inspect", "inspected", "look", "looked", "measure", "measured", "probe",
    "reading", "readings", "repeated", "review", "reviewed", "sample", "samples", "scan",
    "scanned", "spot", "test", "tested", "testing", "tests", "twice", "validate", "validated",
    "validation", "verified", "verify", "verifying",
];

/// Irregular forms of what was done.
#[rustfmt::skip]
const DONE: &[&str] = &[
    "began", "brought", "built", "came", "cut", "drove", "found", "gave", "got", "held", "hung",
    "kept", "laid", "left", "let", "made", "put", "ran", "read", "said", "sent", "set", "shut",
    "swept", "threw", "told", "took", "went", "wrote",
];

/// Ends and beginnings.
#[rustfmt::skip]
const ENDED: &[&str] = &[
    "arrive", "arrived", "begun", "booted", "closed", "continued", "continuing", "deployed", "done",
    "finished", "installed", "merged", "now", "opened", "picked", "placed", "pushed", "reached",
    "ready", "resume", "resumed", "running", "saved", "started", "underway", "uploaded",
];

/// Groups of words, each with what one of them in a text says for each stage.
#[rustfmt::skip]
const GROUPS: &[(&[&str], Lean)] = &[
    // What will be, may be or has to be.
    (&[
        "could", "going", "i'd", "i'll", "it'll", "let", "lets", "may", "might", "must", "need",
        "needs", "shall", "should", "want", "wants", "we'd", "we'll", "will", "would", "you'd",
    ], [4, -33, 48, -19]),
    // Ways to choose from, and what they cost.
    (&[
        "alternative", "alternatives", "approach", "approaches", "best", "better", "both",
        "candidate", "candidates", "cheaper", "choice", "choices", "choose", "cost", "costs",
        "decide", "decided", "easier", "either", "enough", "idea", "ideas", "if", "instead", "option",
        "options", "or", "possible", "possibly", "prefer", "propose", "rather", "risk", "risks",
        "safer", "suggest", "suspect", "suspects", "unless", "way", "ways", "whether", "which",
        "worth",
    ], [83, -42, -4, -37]),
    // The order of steps.
    (&[
        "after", "afterwards", "before", "finally", "first", "last", "later", "meanwhile", "next",
        "once", "order", "second", "separately", "step", "steps", "then", "third", "tomorrow",
        "tonight", "until",
    ], [47, -50, 34, -30]),
    // Requests.
    (&[
        "please", "you", "your",
    ], [33, -7, -22, -4]),
    // Causes.
    (&[
        "because", "cause", "caused", "causes", "causing", "culprit", "due", "explained", "explains",
        "hence", "means", "meant", "reason", "root", "since", "therefore", "thus", "why",
    ], [-32, 9, 32, -8]),
    // Conclusions.
    (&[
        "it's", "so", "that's", "there's",
    ], [34, -26, 34, -42]),
    // What somebody got wrong, and what surprised.
    (&[
        "actually", "apparently", "assumed", "assuming", "bad", "badly", "believed", "blamed",
        "fault", "forgot", "forgotten", "guess", "guessed", "hidden", "misread", "mistake",
        "mistakes", "mistook", "obviously", "odd", "oddly", "ought", "overlooked", "really",
        "shouldn't", "strange", "surprised", "surprising", "suspicious", "thought", "trusted",
        "weird", "wrong", "wrongly",
    ], [-28, 11, 36, -18]),
    // What follows for later.
    (&[
        "afterwards", "always", "conclusion", "future", "hindsight", "learned", "learnt", "lesson",
        "lessons", "moral", "prove", "proved", "proves", "proving", "remember", "retrospective",
        "rule", "summary", "takeaway", "writeup",
    ], [-10, -5, 43, -28]),
    // What was.
    (&[
        "been", "did", "had", "was", "were",
    ], [-48, 8, 49, -9]),
    // What was not, and should have been.
    (&[
        "couldn't", "didn't", "hadn't", "neither", "never", "nobody", "nor", "nothing", "wasn't",
        "weren't",
    ], [-27, -29, 72, -16]),
    // Negations.
    (&[
        "aren't", "can't", "cannot", "doesn't", "don't", "isn't", "no", "not", "without", "won't",
    ], [39, -93, 3, 51]),
    (GOOD, [10, -77, -66, 133]),
    (BAD, [-61, -71, 53, 79]),
    // Measures, bounds and comparisons.
    (&[
        "above", "against", "apart", "below", "between", "compare", "compared", "comparing",
        "difference", "differs", "fewer", "higher", "inside", "larger", "less", "limit", "lower",
        "more", "of", "off", "out", "outside", "over", "remaining", "same", "smaller", "sum", "sums",
        "than", "total", "unchanged", "under", "versus", "vs", "within",
    ], [15, -26, -15, 26]),
    (WHOLE, [-61, -25, 48, 38]),
    (CHECKS, [-46, -81, 59, 68]),
    (DONE, [-50, 51, -19, 17]),
    // The agent itself.
    (&[
        "i", "i'm", "i've", "me", "my",
    ], [-31, -33, 73, -8]),
    // Everybody.
    (&[
        "our", "us", "we",
    ], [-2, -22, 43, -18]),
    // The moment.
    (&[
        "again", "already", "now", "still", "yet",
    ], [26, -39, 31, -18]),
    // Restrictions.
    (&[
        "although", "but", "except", "however", "only", "though", "yet",
    ], [66, -61, -11, 6]),
    // Pointing at something.
    (&[
        "it", "that", "there", "these", "they", "this", "those",
    ], [52, -27, 23, -48]),
    // Questions.
    (&[
        "how", "what", "when", "where", "which", "who", "why",
    ], [7, -34, 36, -9]),
    // What can be ruled out.
    (&[
        "neither", "nor", "nothing",
    ], [4, -5, 33, -32]),
];
/// Commands that look.
#[rustfmt::skip]
const READING: &[&str] = &[
        "blame", "cat", "describe", "df", "du", "explain", "find", "get", "grep", "head", "history",
        "inspect", "list", "log", "logs", "look", "ls", "open", "ps", "query", "read", "rg", "search",
        "sed", "select", "show", "status", "tail", "tree", "view", "who", "whoami",
];
/// Commands that try, count or compare.
#[rustfmt::skip]
const TESTING: &[&str] = &[
        "assert", "bench", "benchmark", "check", "clippy", "compare", "confirm", "count", "ctest",
        "curl", "diff", "dry-run", "evaluate", "jest", "lint", "measure", "ping", "probe", "pytest",
        "review", "scan", "test", "tests", "time", "validate", "verify", "vitest", "weigh",
];
/// Commands that change something, or move.
#[rustfmt::skip]
const CHANGING: &[&str] = &[
        "add", "alter", "apply", "approach", "build", "cancel", "charge", "checkout", "clean",
        "close", "commit", "cp", "create", "delete", "deploy", "dock", "drive", "edit", "fill", "go",
        "grasp", "insert", "install", "lift", "load", "make", "merge", "move", "mv", "navigate",
        "notify", "open", "patch", "pick", "place", "post", "pour", "press", "publish", "push", "put",
        "rebase", "release", "remove", "rename", "replace", "reply", "restart", "rollout", "rotate",
        "run", "say", "send", "set", "start", "stop", "turn", "undock", "update", "upgrade", "upload",
        "walk", "wipe", "write",
];

#[cfg(test)]
mod tests {
    use super::*;
    use StageType::{Execution, Planning, Reflection, Verification};

    fn of(content: &str, current: StageType) -> Option<StageType> {
        let wording = Wording { content, actions: &[], outcome: None };
        wording.speaks_for(current).map(|(stage, _)| stage)
    }

    fn acting(actions: &[&str], outcome: &str, current: StageType) -> Option<StageType> {
        let actions: Vec<String> = actions.iter().map(|action| (*action).to_owned()).collect();
        let wording = Wording { content: "x", actions: &actions, outcome: Some(outcome) };
        wording.speaks_for(current).map(|(stage, _)| stage)
    }

    #[test]
    fn wording_speaks_for_a_stage() {
        let plan = "Two options: go around by the yard, or wait until the lift is free. The yard is longer but safer.";
        assert_eq!(of(plan, Verification), Some(Planning));
        let why = "It failed because I had assumed the old map. I should have looked at its date first; the wall was never there.";
        assert_eq!(of(why, Execution), Some(Reflection));
        let result = "Checked against the list: 12 of 12 match, no errors, 0.3 % below the limit.";
        assert_eq!(of(result, Execution), Some(Verification));
        assert_eq!(of("Moved the crate to the left.", Planning), Some(Execution));
        assert_eq!(of(plan, Planning), None);
    }

    #[test]
    fn actions_are_looks_tests_or_changes() {
        assert_eq!(acting(&["git push origin main"], "done", Planning), Some(Execution));
        assert_eq!(acting(&["pytest -q"], "214 passed", Execution), Some(Verification));
        assert_eq!(acting(&["grep -rn port src/"], "src/a.rs:4", Planning), None);
    }

    #[test]
    fn what_has_no_cue_speaks_for_nothing() {
        for current in [Planning, Execution, Reflection, Verification] {
            assert_eq!(of("arm belt bolt box cable", current), None);
            assert_eq!(of("", current), None);
            assert_eq!(acting(&["a", "b"], "", current), None);
        }
    }

    #[test]
    fn words_are_letters_with_their_apostrophes_or_digits() {
        assert_eq!(
            words("Don’t mix 12mm, 'so' 3.5!"),
            ["don't", "mix", "12", "mm", "so", "3", "5"]
        );
        assert_eq!(ends_of_sentences("A 1.5 is b. Why? so"), 2);
        assert!(
            has_part_of(&words("19 of 21"), "19 of 21") && has_part_of(&words("3 / 4"), "3 / 4")
        );
        assert!(!has_part_of(&words("a/b of 3"), "a/b of 3"));
    }

    #[test]
    fn groups_are_sorted() {
        let groups = GROUPS.iter().map(|(group, _)| *group);
        for group in groups.chain([READING, TESTING, CHANGING, ENDED, INTENT]) {
            assert!(group.is_sorted_by(|a, b| a < b), "{group:?}");
        }
    }
}
