//! The stage that the wording of one memory speaks for, where no caller marks it.
//!
//! Each cue of a text leans towards some stages and away from others; the stage with the largest sum is the one that the text
//! speaks for. Cues are groups of common English words, a little of the shape of the text, what kinds of commands the actions are,
//! and the current stage. Their weights, in hundredths, were fitted by logistic regression to the part of `benches/data/compass`
//! that is there for it, held small so that agents which were left out are foretold best. A text without a single cue word, such
//! as a bare list of things, speaks for no stage.

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
}

impl Wording<'_> {
    /// Returns the stage that it speaks for while another one is current, and how clearly: from 0 for a tie to 1.
    pub(super) fn speaks_for(&self, current: StageType) -> Option<(StageType, f64)> {
        let mut sum = Sum::default();
        sum.add(EACH);
        sum.add(match current {
            StageType::Planning => [94, -12, -28, -54],
            StageType::Execution => [-60, 64, -22, 18],
            StageType::Reflection => [14, -6, 22, -30],
            StageType::Verification => [-49, -44, 26, 66],
        });
        sum.add_actions(self.actions);
        sum.add_text(&self.without_actions());
        if !sum.has_words {
            return None;
        }
        let of = |stage: StageType| STAGES.iter().position(|one| *one == stage);
        let own = of(current).map_or(0.0, |at| sum.leans[at]);
        let (best, stage) =
            sum.leans.iter().copied().zip(STAGES).max_by(|a, b| a.0.total_cmp(&b.0))?;
        (stage != current).then(|| (stage, ((best - own) / CERTAIN).clamp(0.0, 1.0)))
    }

    /// Returns the text without the lines that are its actions: a command says by its kind what it is for, and not by its words.
    fn without_actions(&self) -> String {
        let is_action =
            |line: &&str| self.actions.iter().any(|action| action.trim() == line.trim());
        self.content.lines().filter(|line| !is_action(line)).collect::<Vec<_>>().join("\n")
    }
}

const EACH: Lean = [-40, 236, -177, -19];

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

    /// Adds the cues of a text.
    fn add_text(&mut self, text: &str) {
        let all = words(text);
        for (group, lean) in GROUPS {
            if all.iter().any(|word| is_of(group, word)) {
                self.has_words = true;
                self.add(*lean);
            }
        }
        let count = |is: &dyn Fn(&str) -> bool| all.iter().filter(|word| is(word)).count();
        let share = |count: usize, most: usize| count.min(most) as f64 / most as f64;
        let numbers = count(&|word| word.starts_with(|c: char| c.is_ascii_digit()));
        let past = count(&|word| word.len() > 3 && word.ends_with("ed"));
        self.add_share([4, -53, -39, 88], share(numbers, MANY_NUMBERS));
        self.add_share([-36, 22, 30, -17], share(past, MANY_PAST));
        self.add_share([75, -101, 82, -56], share(all.len(), LONG));
        self.add_if(all.len() <= SHORT, [-19, 15, -33, 37]);
        self.add_if(text.contains('?'), [19, -24, 63, -58]);
    }

    /// Adds what kinds of commands the actions are.
    fn add_actions(&mut self, actions: &[String]) {
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
        self.add_if(!actions.is_empty(), [-21, 6, 17, -2]);
        self.add_if(reads, [74, -109, 22, 12]);
        self.add_if(tests, [-17, -67, -11, 96]);
        self.add_if(changes, [-46, 111, -6, -59]);
    }
}

/// Words of a text that is short, at most, and of one beyond which more say no more.
const SHORT: usize = 8;
const LONG: usize = 60;
/// Forms of the past beyond which more say no more.
const MANY_PAST: usize = 3;
/// Numbers of a text beyond which more say no more.
const MANY_NUMBERS: usize = 6;
/// Words of an action in which its command is looked for.
const COMMAND_WORDS: usize = 6;
/// Words of a text that are looked at.
const MOST_WORDS: usize = 2000;

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

/// Groups of words, each with what one of them in a text says for each stage.
#[rustfmt::skip]
const GROUPS: &[(&[&str], Lean)] = &[
    // Actions that will be, may be or have to be.
    (&[
        "could", "going", "i'd", "i'll", "it'll", "let", "lets", "may", "might", "must", "need",
        "needs", "shall", "should", "want", "wants", "we'd", "we'll", "will", "would", "you'd",
    ], [22, -55, 48, -15]),
    // Ways to choose from, and what they cost.
    (&[
        "alternative", "alternatives", "approach", "approaches", "best", "better", "both",
        "candidate", "candidates", "cheaper", "choice", "choices", "choose", "cost", "costs",
        "decide", "decided", "easier", "either", "enough", "idea", "ideas", "if", "instead", "option",
        "options", "or", "possible", "possibly", "prefer", "propose", "rather", "risk", "risks",
        "safer", "suggest", "suspect", "suspects", "unless", "way", "ways", "whether", "which",
        "worth",
    ], [89, -52, 8, -45]),
    // The order of steps.
    (&[
        "after", "afterwards", "before", "finally", "first", "last", "later", "meanwhile", "next",
        "once", "order", "second", "separately", "step", "steps", "then", "third", "tomorrow",
        "tonight", "until",
    ], [44, -60, 39, -24]),
    // Requests.
    (&[
        "please", "you", "your",
    ], [8, -1, -24, 16]),
    // Causes.
    (&[
        "because", "cause", "caused", "causes", "causing", "culprit", "due", "explained", "explains",
        "hence", "means", "meant", "reason", "root", "since", "therefore", "thus", "why",
    ], [-10, -15, 31, -5]),
    // Conclusions.
    (&[
        "it's", "so", "that's", "there's",
    ], [31, -41, 51, -40]),
    // Mistakes and surprises.
    (&[
        "actually", "apparently", "assumed", "assuming", "bad", "badly", "believed", "blamed",
        "fault", "forgot", "forgotten", "guess", "guessed", "hidden", "misread", "mistake",
        "mistakes", "mistook", "obviously", "odd", "oddly", "ought", "overlooked", "really",
        "shouldn't", "strange", "surprised", "surprising", "suspicious", "thought", "trusted",
        "weird", "wrong", "wrongly",
    ], [-25, 5, 35, -16]),
    // Lessons for later.
    (&[
        "afterwards", "always", "conclusion", "future", "hindsight", "learned", "learnt", "lesson",
        "lessons", "moral", "prove", "proved", "proves", "proving", "remember", "retrospective",
        "rule", "summary", "takeaway", "writeup",
    ], [-12, -10, 47, -26]),
    // Reports of the past.
    (&[
        "been", "did", "had", "was", "were",
    ], [-52, 7, 55, -10]),
    // Things that did not happen, and should have.
    (&[
        "couldn't", "didn't", "hadn't", "neither", "never", "nobody", "nor", "nothing", "wasn't",
        "weren't",
    ], [-21, -27, 65, -17]),
    // Negations.
    (&[
        "aren't", "can't", "cannot", "doesn't", "don't", "isn't", "no", "not", "without", "won't",
    ], [37, -80, 12, 30]),
    (GOOD, [5, -77, -57, 129]),
    (BAD, [-49, -51, 48, 51]),
    // Measures, bounds and comparisons.
    (&[
        "above", "against", "apart", "below", "between", "compare", "compared", "comparing",
        "difference", "differs", "fewer", "higher", "inside", "larger", "less", "limit", "lower",
        "more", "of", "off", "out", "outside", "over", "remaining", "same", "smaller", "sum", "sums",
        "than", "total", "unchanged", "under", "versus", "vs", "within",
    ], [21, -43, 6, 15]),
    (WHOLE, [-48, -26, 48, 27]),
    (CHECKS, [-27, -86, 57, 56]),
    (DONE, [-39, 38, -6, 7]),
    // The agent itself.
    (&[
        "i", "i'm", "i've", "me", "my",
    ], [-28, -42, 88, -19]),
    // Everybody.
    (&[
        "our", "us", "we",
    ], [1, -27, 44, -18]),
    // The moment.
    (&[
        "again", "already", "now", "still", "yet",
    ], [34, -51, 35, -18]),
    // Restrictions.
    (&[
        "although", "but", "except", "however", "only", "though", "yet",
    ], [58, -60, -5, 7]),
    // Pointing at something.
    (&[
        "it", "that", "there", "these", "they", "this", "those",
    ], [49, -44, 37, -42]),
    // Questions.
    (&[
        "how", "what", "when", "where", "which", "who", "why",
    ], [26, -54, 52, -24]),
    // Things that can be ruled out.
    (&[
        "neither", "nor", "nothing",
    ], [15, -7, 16, -24]),
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
        let wording = Wording { content, actions: &[] };
        wording.speaks_for(current).map(|(stage, _)| stage)
    }

    fn acting(actions: &[&str], outcome: &str, current: StageType) -> Option<StageType> {
        let actions: Vec<String> = actions.iter().map(|action| (*action).to_owned()).collect();
        let wording = Wording { content: outcome, actions: &actions };
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
        let found = "src/a.rs:4: port = 7447\nsrc/b.rs:9: listen(port, 10)\nsrc/c.rs:31: connect(host, port)";
        assert_eq!(acting(&["grep -rn port src/"], found, Planning), None);
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
    }

    #[test]
    fn groups_are_sorted() {
        let groups = GROUPS.iter().map(|(group, _)| *group);
        for group in groups.chain([READING, TESTING, CHANGING]) {
            assert!(group.is_sorted_by(|a, b| a < b), "{group:?}");
        }
    }
}
