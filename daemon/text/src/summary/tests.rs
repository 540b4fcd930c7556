//! Summaries against their rules, by hand and over random sources.

use super::*;
use crate::work::{Allowance, counted};
use crate::{Approx1, critical_facts};
use proptest::prelude::*;
use std::cell::Cell;

fn english() -> Summarizer<'static> {
    Summarizer::new(Language::English, &Approx1)
}

fn passages<'a>(texts: &[&'a str]) -> Vec<Passage<'a>> {
    texts.iter().map(|text| Passage::new(text)).collect()
}

#[test]
fn critical_sentences_stay_word_for_word_and_in_order() {
    let source = passages(&[
        "We looked at the arm. The robot must not enter room 12. It was late.",
        "The arm was cleaned. Never lift more than 5 kg. The arm is fine.",
        "The robot must not enter room 12. The arm was painted.",
    ]);
    let summary = english().within(&source, 20).unwrap();
    let facts: Vec<&str> = summary.critical_facts().collect();
    assert_eq!(facts, ["The robot must not enter room 12.", "Never lift more than 5 kg."]);
    assert!(
        summary.text().starts_with("The robot must not enter room 12. Never lift"),
        "{}",
        summary.text()
    );
    assert!(summary.tokens <= 20);
    assert_eq!(english().within(&source, 14), Err(BudgetTooSmall { needed: 15, budget: 14 }));
    let error = BudgetTooSmall { needed: 15, budget: 14 };
    assert_eq!(
        error.to_string(),
        "critical sentences need 15 tokens, the budget is 14; raise the budget"
    );
}

#[test]
fn scores_by_hand() {
    // "arm" is in both passages, each other stem in one: "arm red" has (1 + 1/2) / 2 = 0.75.
    let source = [
        Passage {
            relevance: 0.5,
            ..Passage::new("The arm is red. A lid is blue. It works on the lid.")
        },
        Passage { relevance: f64::NAN, ..Passage::new("The arm moved") },
    ];
    let scores: Vec<f64> =
        english().candidates(&source).iter().map(|candidate| candidate.score).collect();
    let expected = [
        0.45 * 0.75 + 0.50 * 0.5 + 1.50 * statement("The arm is red."),
        0.45 * 0.5 + 0.50 * 0.5 + 1.50 * statement("A lid is blue."),
        0.45 * 0.5 + 0.50 * 0.5 + 1.50 * statement("It works on the lid."),
        0.45 * 0.75 + 1.50 * statement("The arm moved"),
    ];
    assert_eq!(scores.len(), expected.len());
    for (score, expected) in scores.iter().zip(expected) {
        assert!((score - expected).abs() < 1e-12, "{scores:?}");
    }
}

#[test]
fn what_is_said_already_is_not_said_again() {
    let source = passages(&[
        "The gripper slips on wet cups.",
        "The gripper slips on a wet cup again.",
        "Door 3 sticks in the morning.",
    ]);
    // Any two of them fit.
    let summary = english().within(&source, 19).unwrap();
    let expected = "The gripper slips on wet cups. Door 3 sticks in the morning.";
    assert_eq!(summary.text(), expected);
}

#[test]
fn a_ratio_sets_the_budget_and_critical_facts_go_before_it() {
    let long: Vec<String> = (0..140)
        .map(|n| format!("On tour {n} the robot passed shelf {n} and went on to the hall. "))
        .collect();
    let mut source: Vec<Passage<'_>> = long.iter().map(|text| Passage::new(text)).collect();
    let summary = english().by_ratio(&source, 10.0);
    assert!(
        summary.tokens <= summary.input_tokens / 10 && summary.tokens * 20 > summary.input_tokens
    );
    for passage in &mut source[..20] {
        passage.is_critical = true;
    }
    let summary = english().by_ratio(&source, 10.0);
    assert_eq!(summary.critical_facts().count(), 20);
    assert!(summary.tokens > summary.input_tokens / 10);
    assert_eq!(english().by_ratio(&[], 10.0).text(), "");
    assert_eq!(english().by_ratio(&passages(&["Two words."]), f64::NAN).text(), "Two words.");
}

#[test]
fn lines_without_a_mark_stay_lines() {
    let source =
        passages(&["- fetch the mug\n- wash the mug\nThe end is near. All cups are clean"]);
    let text = english().within(&source, 100).unwrap().text();
    assert_eq!(text, "- fetch the mug\n- wash the mug\nThe end is near. All cups are clean");
}

#[test]
fn what_has_no_letter_is_left_out() {
    let source = passages(&["1:\nThe crate is on the lorry.\n2: 14 15"]);
    assert_eq!(english().by_ratio(&source, 1.0).text(), "The crate is on the lorry.");
}

#[test]
fn fragments_are_left_out_where_something_is_said() {
    let source = passages(&["Fine. The lift is shut until noon. Stale again.", "At 12."]);
    assert_eq!(english().by_ratio(&source, 1.0).text(), "The lift is shut until noon. At 12.");
    assert_eq!(english().by_ratio(&passages(&["Docked."]), 1.0).text(), "Docked.");
}

#[test]
fn insights_tell_outcomes_or_corrections() {
    let source = [
        Passage::new("The lid fell because the tape was wet. The lid is red."),
        Passage { is_correction: true, ..Passage::new("Dry the tape before use.") },
        Passage::new("A sofa is there."),
    ];
    assert_eq!(
        english().insights(&source, 5),
        ["The lid fell because the tape was wet.", "Dry the tape before use."]
    );
    assert_eq!(english().insights(&source, 1).len(), 1);
    assert!(english().insights(&source, 0).is_empty());
}

/// A counter under which the whole has more tokens than its parts, and which counts the bytes that it was asked for.
struct Awkward {
    asked: Cell<usize>,
}

impl TokenCounter for Awkward {
    fn name(&self) -> &str {
        "awkward"
    }

    fn count(&self, text: &str) -> usize {
        self.asked.set(self.asked.get() + text.len());
        Approx1.count(text) + text.matches(". ").count() * 2
    }
}

#[test]
fn a_budget_holds_for_counters_that_do_not_add_up() {
    let counter = Awkward { asked: Cell::new(0) };
    let long: Vec<String> = (0..60).map(|n| format!("Tour {n} went by shelf {n}.")).collect();
    let source: Vec<Passage<'_>> = long.iter().map(|text| Passage::new(text)).collect();
    for budget in [0, 7, 30, 100, 300] {
        let summary = Summarizer::new(Language::English, &counter).within(&source, budget).unwrap();
        assert_eq!(summary.tokens, counter.count(&summary.text()));
        assert!(summary.tokens <= budget);
        assert!(budget < 30 || summary.tokens * 3 > budget, "{} of {budget}", summary.tokens);
    }
}

#[test]
fn work_grows_no_faster_than_the_text() {
    let shapes: [fn(usize) -> String; 5] = [
        |n| format!("a{n} b{} c.\n", n % 7),
        |n| format!("robot {n} must stop.\n"),
        |n| format!("x{} ", n % 1000),
        |n| format!("arm door lid cup {n}! "),
        |_| ".\n".to_owned(),
    ];
    for shape in shapes {
        let text = |bytes: usize| -> String {
            let mut text = String::new();
            (0..)
                .map(shape)
                .take_while(|piece| {
                    text.push_str(piece);
                    text.len() < bytes
                })
                .for_each(drop);
            text
        };
        for bytes in [1 << 14, 1 << 16] {
            let text = text(bytes);
            let counter = Awkward { asked: Cell::new(0) };
            let passages: Vec<Passage<'_>> = text.split('\n').map(Passage::new).collect();
            let steps = counted(|| {
                Summarizer::new(Language::English, &counter).by_ratio(&passages, 3.0);
            });
            assert!(
                steps < Allowance::LEAST + (Allowance::PER_BYTE + 40) * text.len(),
                "{steps} steps for {}",
                text.len()
            );
            assert!(
                counter.asked.get() < 24 * text.len(),
                "{} bytes counted of {}",
                counter.asked.get(),
                text.len()
            );
        }
    }
}

proptest! {
    #[test]
    fn summaries_keep_their_promises(
        texts in prop::collection::vec("((The |robot |must |arm |door 3 |is |open|closed|red)[ .!\\n]?){0,12}", 0..8),
        budget in 0usize..80,
        critical in prop::collection::vec(prop::bool::weighted(0.1), 8),
    ) {
        let source: Vec<Passage<'_>> = texts.iter().zip(critical)
            .map(|(text, is_critical)| Passage { is_critical, ..Passage::new(text) }).collect();
        let must: Vec<&str> = source.iter().flat_map(|passage| {
            if passage.is_critical { crate::sentences(passage.text).collect() } else { critical_facts(passage.text) }
        }).collect();
        match english().within(&source, budget) {
            Ok(summary) => {
                prop_assert!(summary.tokens <= budget);
                prop_assert_eq!(summary.tokens, Approx1.count(&summary.text()));
                for fact in must {
                    prop_assert!(summary.critical_facts().any(|kept| kept == fact), "{} is lost", fact);
                }
                let mut before = 0;
                for extract in &summary.extracts {
                    prop_assert!(before <= extract.passage);
                    before = extract.passage;
                    let own: Vec<&str> = crate::sentences(source[extract.passage].text).collect();
                    prop_assert!(own.contains(&extract.text));
                }
                let again = english().within(&source, budget).unwrap();
                prop_assert_eq!(&again, &summary);
            }
            Err(error) => {
                prop_assert!(error.needed > budget && !must.is_empty());
                prop_assert!(english().within(&source, error.needed).is_ok());
            }
        }
        let summary = english().by_ratio(&source, 4.0);
        prop_assert!(summary.tokens <= (summary.input_tokens / 4).max(least_budget(summary.input_tokens)).max(english().needed(&english().candidates(&source))));
    }
}

/// The memory of a coding agent: a thought, a command, and what the tools around it write each time.
#[test]
fn lines_of_a_shell_and_phrases_of_tools_are_left_out() {
    let turn = |thought: &str| {
        format!(
            "{thought}\n```\nls\n```\nOBSERVATION:\nFile updated.\n(Open file: /repo/a.py)\n(Current directory: /repo)\nbash-$"
        )
    };
    let texts: Vec<String> = [
        "The sign is lost where the whole part is zero.",
        "The table of zones is not the cause.",
        "The cache is stale in this container.",
    ]
    .map(turn)
    .into();
    let source: Vec<Passage<'_>> = texts.iter().map(|text| Passage::new(text)).collect();
    let text = english().within(&source, 1000).unwrap().text();
    assert_eq!(
        text,
        "The sign is lost where the whole part is zero. The table of zones is not the cause. The cache is stale in this container."
    );
    let alone = english().within(&[Passage::new("bash-$ ls")], 1000).unwrap();
    assert_eq!(alone.text(), "bash-$ ls", "what is all there is stays");
}

#[test]
fn what_a_tool_printed_gives_way_to_how_it_came_out() {
    let text = "OBSERVATION:\n(Open file: dock/port.py)\n1:import port\n2:def open(name):\n3:    return Port(name)\n\
                PortError: the port of the dock is missing\n2 failed, 7 passed in 0.4s\nrob@dock:~$";
    let passages = [Passage::new(text)];
    let summary = Summarizer::new(Language::English, &Approx1).by_ratio(&passages, 1.0);
    assert_eq!(
        summary.text(),
        "PortError: the port of the dock is missing\n2 failed, 7 passed in 0.4s"
    );
    let listing = [Passage::new("dock/port.py\ndock/check.py")];
    let summary = Summarizer::new(Language::English, &Approx1).by_ratio(&listing, 1.0);
    assert!(!summary.extracts.is_empty(), "nothing else is there");
}
