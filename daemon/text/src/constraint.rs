//! Sentences that state a constraint: a word that says so, and no sign that it only tells what was, or that a tool wrote it.
//!
//! The words are English. A cue is a whole word, in any case: `read-only` has no `only` in it, and `--limit` no `limit`.

use std::cell::OnceCell;

use crate::cues::cue_of;
use crate::lexeme::{Lexeme, LexemeKind, lexemes};
use crate::{Language, is_stop_word};

/// Words and pairs of words that state a constraint, with their inflected forms.
const CONSTRAINTS: &[&str] = &[
    "must",
    "mustn't",
    "shall",
    "shan't",
    "never",
    "always",
    "require",
    "requires",
    "required",
    "requirement",
    "requirements",
    "constraint",
    "constraints",
    "only",
    "at least",
    "at most",
    "limit",
    "limits",
    "deadline",
    "deadlines",
    "forbidden",
    "do not",
    "don't",
    "cannot",
    "can't",
    "can not",
];

/// Returns the first cue word of `sentence` that states a constraint, such as `must` or `at least`.
///
/// A sentence with one must be remembered: it is critical. So what only tells how something was or came out is none:
/// `must have worked` concludes, `never came` and `only two were there` report, `within the limit` judges, `I can't see it`
/// complains, and `TypeError: it must be a string` is the message of a tool.
pub fn constraint_cue(sentence: &str) -> Option<&'static str> {
    let all: Vec<Lexeme<'_>> = lexemes(sentence).collect();
    let whole = Whole {
        all: &all,
        is_past: OnceCell::new(),
        has_number: OnceCell::new(),
        has_option: OnceCell::new(),
    };
    let found = |at: usize| {
        let word = &all[at];
        if word.kind != LexemeKind::Word || at > 0 && all[at - 1].is_symbol("-") {
            return None;
        }
        cue_of(CONSTRAINTS, word, all.get(at + 1)).filter(|cue| whole.binds(cue, at))
    };
    // A sentence has few of these words, and whose message it is need be known for them alone.
    (0..all.len()).find_map(found).filter(|_| !is_message(&all))
}

/// Words of a speaker who reports and does not rule.
const REPORTERS: &[&str] = &["i", "they", "we"];
/// Words of what is over.
#[rustfmt::skip]
const PAST: &[&str] = &[
    "came", "did", "found", "gave", "got", "had", "have", "i'd", "i've", "made", "ran", "saw", "took", "was", "we'd", "we've", "went",
    "were",
];
/// Words before `only` that make it one thing of its kind, or deny it.
const SOLE: &[&str] = &["an", "her", "his", "if", "its", "my", "not", "our", "the", "their"];
/// Words behind `only` that count or explain.
#[rustfmt::skip]
const COUNTED: &[&str] = &[
    "a", "because", "eight", "five", "four", "just", "nine", "one", "seven", "six", "ten", "three", "two",
];
/// Words by which `only` allows, whatever it counts.
const ALLOWING: &[&str] = &["allowed", "can", "may", "must", "permitted", "shall"];
/// Words behind `only` among which they are looked for.
const MOST_ALLOWED: usize = 8;
/// Words behind `cannot` that bind the speaker.
const BOUNDING: &[&str] = &["exceed", "pass"];
/// Words that tell the reader to hold a limit, at the beginning of a sentence.
const KEEPING: &[&str] = &["drive", "hold", "keep", "remain", "stay"];
/// Words before a limit that something is held against.
#[rustfmt::skip]
const AGAINST: &[&str] = &[
    "above", "at", "below", "beyond", "inside", "near", "over", "raise", "reached", "to", "under", "within",
];
/// Words behind a constraint or requirement that state it.
const STATING: &[&str] = &["are", "for", "is", "remains", "says", "stands", "that", "to"];
/// Words that deny a need.
const DENYING: &[&str] = &["doesn't", "isn't", "no", "not", "without"];
/// Words behind `required` that no part is named by.
const AFTER_REQUIRED: &[&str] =
    &["as", "at", "before", "by", "for", "from", "if", "in", "on", "to", "when"];
/// Words of a sentence that begins with `only`, at most, for it to need a verb.
const SHORT_OF_VERB: usize = 3;
/// Forms by which even a short sentence says what is so.
const VERBS: &[&str] = &["are", "be", "enter", "go", "goes", "is", "open", "use"];
/// Words before a cue that may stand between it and a word that says whose it is.
const MOST_BEFORE: usize = 3;

/// Findings in the whole sentence, made once: it may be long, and have many such words.
struct Whole<'s, 't> {
    all: &'s [Lexeme<'t>],
    is_past: OnceCell<bool>,
    has_number: OnceCell<bool>,
    has_option: OnceCell<bool>,
}

impl Whole<'_, '_> {
    /// Returns true if the cue at `at` binds a person.
    fn binds(&self, cue: &str, at: usize) -> bool {
        let (before, behind) = (&self.all[..at], &self.all[at + 1..]);
        let words = |part: &[Lexeme<'_>], of: &[&str]| part.iter().any(|one| is_one_of(one, of));
        let last = &before[before.len().saturating_sub(1)..];
        let next = &behind[..behind.len().min(1)];
        let near = &before[before.len().saturating_sub(MOST_BEFORE)..];
        let is_option = || *self.has_option.get_or_init(|| has_option(self.all));
        match cue {
            "must" => {
                let words = behind.iter().filter(|one| one.kind == LexemeKind::Word);
                !is_conclusion(&words.take(MOST_BEHIND + 2).copied().collect::<Vec<_>>())
            }
            "do not" | "don't" | "cannot" | "can't" | "can not" => {
                !words(last, REPORTERS) || words(next, BOUNDING)
            }
            "never" | "always" => !words(last, PAST) && !next.iter().any(is_past),
            "only" => {
                let is_past = || {
                    *self
                        .is_past
                        .get_or_init(|| words(self.all, PAST) || words(self.all, REPORTERS))
                };
                if before.is_empty() && is_fragment(behind) {
                    return false;
                }
                let allows = words(&behind[..behind.len().min(MOST_ALLOWED)], ALLOWING);
                let counts = words(next, COUNTED) || next.iter().any(is_number);
                !words(last, SOLE) && (!counts || allows) && !is_past() && !is_option()
            }
            "limit" | "limits" => {
                let has_number = || *self.has_number.get_or_init(|| self.all.iter().any(is_number));
                let is_told = is_one_of_first(self.all, KEEPING);
                (words(next, STATING) || has_number())
                    && (is_told || !words(near, AGAINST))
                    && !is_option()
            }
            "require" | "requires" => !words(near, DENYING),
            // `the required parts` names them; `two parts are required` asks for them.
            "required" => {
                let is_attribute = words(near, &["the", "following", "these", "those"])
                    && next
                        .iter()
                        .any(|one| one.kind == LexemeKind::Word && !is_one_of(one, AFTER_REQUIRED));
                !words(near, DENYING) && !is_attribute
            }
            "constraint" | "constraints" | "requirement" | "requirements" => {
                words(next, STATING) || next.iter().any(|one| one.is_symbol(":"))
            }
            _ => true,
        }
    }
}

/// Returns true for what follows `only` in `Only the sign.`: too short to say what is to be done.
fn is_fragment(behind: &[Lexeme<'_>]) -> bool {
    let says =
        |one: &Lexeme<'_>| is_one_of(one, VERBS) || is_one_of(one, ALLOWING) || is_number(one);
    let words = behind.iter().filter(|one| one.kind != LexemeKind::Symbol);
    words.take(SHORT_OF_VERB + 1).count() <= SHORT_OF_VERB && !behind.iter().any(says)
}

fn is_number(lexeme: &Lexeme<'_>) -> bool {
    matches!(lexeme.kind, LexemeKind::Number(_) | LexemeKind::Time)
}

/// Returns true for a form of the past: of the words above, or with `ed`.
fn is_past(word: &Lexeme<'_>) -> bool {
    word.kind == LexemeKind::Word
        && (is_one_of(word, PAST) || word.text.len() > 3 && ends_as_past(word.text))
}

/// Returns true for `stopped`, and not for `exceed` or `embed`.
fn ends_as_past(word: &str) -> bool {
    let word = word.to_lowercase();
    word.ends_with("ed") && !word.ends_with("eed") && word != "embed"
}

fn is_one_of_first(all: &[Lexeme<'_>], of: &[&str]) -> bool {
    all.first().is_some_and(|first| is_one_of(first, of))
}

/// Returns true for a line of a command: it has an option, such as `--limit` or `-c`.
fn has_option(all: &[Lexeme<'_>]) -> bool {
    all.windows(3).any(|three| {
        let [before, dash, word] = three else { return false };
        let is_apart = before.end() < dash.start || before.is_symbol("-");
        is_apart && dash.is_symbol("-") && word.kind == LexemeKind::Word && dash.end() == word.start
    })
}

/// Returns true for the message of a tool: `error: …`, `ERROR: …`, `error[E0277]: …`, `TypeError: …`.
fn is_message(all: &[Lexeme<'_>]) -> bool {
    let [first, mark, ..] = all else { return false };
    let is_error = first.text == "ERROR"
        || first.text == "error"
        || first.text.len() > 5
            && (first.text.ends_with("Error") || first.text.ends_with("Exception"));
    is_error && (mark.is_symbol(":") || mark.is_symbol("[")) && mark.start == first.end()
}

/// Past participles without the ending `ed`.
#[rustfmt::skip]
const PARTICIPLES: &[&str] = &[
    "been", "begun", "broken", "come", "done", "fallen", "forgotten", "given", "gone", "got", "gotten", "had", "hit",
    "left", "lost", "made", "met", "put", "run", "seen", "sent", "shut", "slept", "stood",
    "stuck", "taken", "thrown", "told", "torn", "worn", "written",
];

/// Words behind `must have` that are looked at.
const MOST_BEHIND: usize = 24;

/// Words behind which a participle is what has to be done in time, and no conclusion.
const IN_TIME: &[&str] = &["before", "by", "once", "prior", "until", "when"];

/// Returns true if `rest`, which follows `must`, makes a conclusion of it: `have been wet`, `have slipped on it`. A participle
/// before a noun is not one (`must have locked doors`), nor what has to be done in time.
fn is_conclusion(rest: &[Lexeme<'_>]) -> bool {
    let [have, verb, behind @ ..] = rest else { return false };
    if !have.is_word("have") || behind.iter().take(MOST_BEHIND).any(|word| is_one_of(word, IN_TIME))
    {
        return false;
    }
    let is_irregular = is_one_of(verb, PARTICIPLES);
    let is_regular = || {
        let lower = verb.text.to_lowercase();
        let is_before_noun = behind
            .first()
            .is_some_and(|next| !is_stop_word(Language::English, &next.text.to_lowercase()));
        lower.len() > 4 && lower.ends_with("ed") && !is_before_noun
    };
    is_irregular || is_regular()
}

fn is_one_of(lexeme: &Lexeme<'_>, words: &[&str]) -> bool {
    words.iter().any(|word| lexeme.is_word(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cue_of_the_rule_makes_a_constraint() {
        for (sentence, cue) in [
            ("The robot must not enter room 12.", "must"),
            ("You shall pass", "shall"),
            ("NEVER open door 3", "never"),
            ("It always sticks", "always"),
            ("Two keys are required", "required"),
            ("They require care", "require"),
            ("A requirement: quiet", "requirement"),
            ("The constraint is time", "constraint"),
            ("Only staff may enter", "only"),
            ("Keep at least 2 m", "at least"),
            ("At most five", "at most"),
            ("The limit is 5", "limit"),
            ("Deadline is 2026-05-30T11:42:05Z", "deadline"),
            ("Entry is forbidden", "forbidden"),
            ("Do not touch", "do not"),
            ("Don’t touch", "don't"),
            ("It cannot turn", "cannot"),
        ] {
            assert_eq!(constraint_cue(sentence), Some(cue), "{sentence}");
        }
        for sentence in [
            "",
            "Use JWT tokens.",
            "The disk is read-only",
            "mustard",
            "It is at the least used dock",
            "It did not move",
        ] {
            assert_eq!(constraint_cue(sentence), None, "{sentence}");
        }
    }

    #[test]
    fn a_conclusion_is_no_constraint() {
        for sentence in [
            "The upload must have worked.",
            "It must have slipped on the wet tiles",
            "Somebody must have left the hatch open",
            "The cart must have been wet",
        ] {
            assert_eq!(constraint_cue(sentence), None, "{sentence}");
        }
        for sentence in [
            "A cart must have brakes",
            "Stores must have locked doors",
            "The pump must have been primed before it runs",
            "It must have worked, but never again",
        ] {
            assert!(constraint_cue(sentence).is_some(), "{sentence}");
        }
    }

    #[test]
    fn what_tells_how_it_was_is_no_constraint() {
        for sentence in [
            "It never came closer than 2.1 m to room 311.",
            "There are only 2 on the left.",
            "The only bowl on the shelf is the blue one.",
            "58 after only five minutes of driving",
            "I had only taken the picture as asked.",
            "The same name only because it is the first of the file",
            "I can't see clients outside the cluster.",
            "They don't: the first sheets are wide.",
            "49 seconds, within the limit but without much room.",
            "Raise the limit at both ends to 5 MB.",
            "2 constraints added.",
            "check constraint NOT VALID, validate",
            "gh run list --workflow ci.yml --limit 200",
            "psql -c \"select pid from activity order by 2 desc limit 3\"",
            "error[E0277]: it cannot be shared between threads",
            "ERROR: package `litrs` requires rustc 1.80",
            "TypeError: int() argument must be a string",
            "Only the sign.",
            "The variable is set but never used",
            "The field is not required.",
            "One of the required parts is missing from the box.",
            "The check does not require a badge.",
        ] {
            assert_eq!(constraint_cue(sentence), None, "{sentence}");
        }
        for sentence in [
            "The lag must not go over 30 s.",
            "Never run it with --force",
            "You don't reverse before she is told",
            "Drawer 2 only for linen from here on.",
            "Entry is only allowed with a badge",
            "Set the speed limit 0.6 on the ramp",
            "I always dock at night",
            "Error rates must stay below 1 %.",
            "Never exceed 0.5 m/s.",
            "Always proceed slowly.",
            "Never embed the key.",
            "Only one robot may be in the lift.",
            "Only a technician may open it.",
            "Only 3 boxes may be stacked.",
            "Stay within the limit of 2 m/s.",
            "Keep below the limit of 5 kg.",
            "We cannot exceed 20 kg.",
            "Only staff may enter.",
            "Drawer 2: staff only.",
            "The badge is required at the gate.",
        ] {
            assert!(constraint_cue(sentence).is_some(), "{sentence}");
        }
    }

    #[test]
    fn a_sentence_of_many_cues_is_read_in_linear_time() {
        use crate::work::counted;
        let long = "we had only the limit ".repeat(20_000);
        let steps = counted(|| assert_eq!(constraint_cue(&long), None));
        assert!(steps < 10 * long.len(), "{steps}");
        let begun = std::time::Instant::now();
        assert_eq!(constraint_cue(&long), None);
        assert!(begun.elapsed().as_secs() < 5, "quadratic work takes minutes");
    }
}
