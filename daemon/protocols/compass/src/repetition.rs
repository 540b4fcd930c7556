//! Sentences that a context says already, and memories as a person reads them. No store, no clock.

use std::collections::HashSet;

use omird_text::{Claim, LineKind, StemSet, lines, message, sentences, told};

use crate::compress::LANGUAGE;

/// The share of the stems of a sentence that another one has, from which on it says the same.
const SAME: f64 = 0.85;
/// Stems of a sentence that is compared by them: shorter ones are alike by chance.
const LEAST_STEMS: usize = 4;
/// Sentences that others are compared with.
const MOST_COMPARED: usize = 400;
/// Members of an object that are shown.
const MOST_MEMBERS: usize = 12;
/// Bytes of the value of a member that is shown.
const LONGEST_VALUE: usize = 60;

/// Sentences that a context has already.
#[derive(Debug, Default)]
pub(crate) struct SeenSentences {
    exact: HashSet<String>,
    alike: Vec<(StemSet, Claim)>,
}

impl SeenSentences {
    /// Adds the sentences of a text.
    pub(crate) fn add(&mut self, text: &str) {
        for sentence in sentences(text) {
            if self.exact.insert(bare(sentence).to_owned()) && self.alike.len() < MOST_COMPARED {
                self.alike.push((StemSet::of(LANGUAGE, sentence), Claim::of(LANGUAGE, sentence)));
            }
        }
    }

    /// Returns true for a sentence that was seen word for word.
    pub(crate) fn contains(&self, sentence: &str) -> bool {
        self.exact.contains(bare(sentence))
    }

    /// Returns true for a sentence that says nothing new: its words and all its numbers are in one sentence, which
    /// does not oppose it.
    pub(crate) fn covers(&self, sentence: &str) -> bool {
        if self.contains(sentence) {
            return true;
        }
        let stems = StemSet::of(LANGUAGE, sentence);
        if stems.len() < LEAST_STEMS {
            return false;
        }
        let claim = Claim::of(LANGUAGE, sentence);
        let has_digit = |stem: &&str| stem.bytes().any(|byte| byte.is_ascii_digit());
        self.alike.iter().any(|(other, said)| {
            stems.contained_in(other) >= SAME
                && stems.iter().filter(has_digit).all(|stem| other.contains(stem))
                && claim.opposes(said).is_none()
        })
    }
}

/// Returns a sentence without the sign of a list.
fn bare(sentence: &str) -> &str {
    sentence.trim_start_matches(['-', '*', '•', ' ']).trim_end()
}

/// Returns true for a text of which a tool printed every line, and that tells no outcome.
pub(crate) fn is_printed(content: &str) -> bool {
    let content = content.trim();
    let is_object = content.lines().count() > 1
        && (content.starts_with('{') && content.ends_with('}')
            || content.starts_with('[') && content.ends_with(']'));
    is_object || lines(content).iter().all(|(kind, _)| *kind == LineKind::Listing)
}

/// Returns a memory as a person reads it: without what tools printed, and without what is said elsewhere. Nothing is left of one
/// that says nothing else.
pub(crate) fn shown(content: &str, seen: &SeenSentences) -> String {
    if is_printed(content) {
        return members(content);
    }
    if !sentences(content).any(|one| seen.contains(one)) {
        return told(content).trim().to_owned();
    }
    let mut text = String::new();
    for line in told(content).lines() {
        let own: Vec<&str> = sentences(line).filter(|one| !seen.contains(one)).collect();
        if own.is_empty() {
            continue;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        let is_whole = own.len() == sentences(line).count();
        text.push_str(&if is_whole { line.trim().to_owned() } else { own.join(" ") });
    }
    text
}

/// Returns what an object of JSON says: its members that are no objects themselves, those of the objects in it included.
fn members(content: &str) -> String {
    let is_sign = |c: char| matches!(c, '"' | '\\' | ',') || c.is_whitespace();
    let member = |piece: &str| {
        let (name, value) = piece.split_once("\":")?;
        let (name, value) = (name.trim_matches(is_sign), value.trim_matches(is_sign));
        let is_plain = !name.is_empty() && !value.is_empty() && value.len() <= LONGEST_VALUE;
        is_plain.then(|| format!("{name}: {value}"))
    };
    let pieces = content.split(['\n', '{', '}', '[', ']']).flat_map(|part| part.split(", \""));
    pieces.filter_map(member).take(MOST_MEMBERS).collect::<Vec<_>>().join("; ")
}

/// Returns the messages by which tools said in a text that something failed, newest first, each with its place where that is told.
pub(crate) fn failures(text: &str) -> Vec<String> {
    let (mut found, mut place): (Vec<String>, Option<&str>) = (Vec::new(), None);
    for (kind, line) in lines(text) {
        match kind {
            LineKind::Place => place = Some(line),
            LineKind::Failure => found.push(match place.take() {
                Some(place) => format!("{} ({place})", message(line)),
                None => message(line).to_owned(),
            }),
            _ => {}
        }
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_in_other_words_is_held() {
        let mut seen = SeenSentences::default();
        seen.add("The fault is in the parser of the map, because it reads the origin too early.");
        assert!(seen.covers("The parser of the map reads the origin too early"));
        assert!(!seen.covers("The parser of the map does not read the origin too early"));
        assert!(!seen.covers("The parser of map 2 reads the origin too early"));
        assert!(!seen.covers("The fault."));
    }

    #[test]
    fn a_memory_is_shown_without_listings() {
        let mut seen = SeenSentences::default();
        seen.add("- Never open map 3.");
        let content = "I look at the map. Never open map 3.\nAction: open map.py\n[File: map.py (3 lines total)]\n\
                       1:import yaml\n2:def load(path):\n3:    return 1\nrob@dock:~$";
        assert_eq!(shown(content, &seen), "I look at the map.\nAction: open map.py");
        assert_eq!(
            shown("The lid is shut.\n\nIt stays so.", &seen),
            "The lid is shut.\n\nIt stays so."
        );
        assert_eq!(shown("Never open map 3.", &seen), "");
        let object = "{\n  \"order\": 12,\n  \"items\": [\n    {\"id\": 4}\n  ],\n  \"status\": \"delivered\"\n}";
        assert_eq!(shown(object, &seen), "order: 12; id: 4; status: delivered");
        let call = format!(
            "[{{\"name\": \"track\", \"arguments\": \"{{\\\"order\\\":\\\"W12\\\"}}\", \"note\": \"{}\"}}]",
            "x".repeat(200)
        );
        assert_eq!(shown(&call, &seen), "name: track; order: W12");
        assert_eq!(shown("/a/b/c/d.py\n/a/b/c/e.py", &seen), "", "a list of files says nothing");
    }

    #[test]
    fn failures_have_their_place() {
        let text = "I run it.\nTraceback (most recent call last):\n  File \"/home/rob/map.py\", line 41, in load\n\
                    \x20   return parse(text)\nKeyError: 'origin'\nmake: command not found";
        assert_eq!(
            failures(text),
            [
                "make: command not found",
                "KeyError: 'origin' (File \"/home/rob/map.py\", line 41, in load)"
            ]
        );
    }
}
