//! Text work, beside its promises and second ways to the same answers.

use omird_text::{
    Approx1, Claim, HashedEmbedding, Language, Passage, StemSet, Summarizer, TokenCounter,
    coherence, critical_facts, entities, facts, keywords, retention, sentences, terms,
};

/// Works on a text in every way, in the language and with the budget that its first byte names.
pub fn run(bytes: &[u8]) {
    let Some((&first, rest)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let language = Language::ALL[usize::from(first) % Language::ALL.len()];
    let lines: Vec<&str> = text.lines().collect();

    let (a, b) = text.split_at(
        text.len() / 2
            - (0..4).take_while(|back| !text.is_char_boundary(text.len() / 2 - back)).count(),
    );
    let (whole, one, two) = (Approx1.count(text), Approx1.count(a), Approx1.count(b));
    assert!(one.max(two) <= whole && whole <= one + two && one + two <= whole + 1);

    terms(text, |term| assert!(!term.is_empty() && term.len() <= omird_text::MAX_TERM_BYTES));
    let own: Vec<&str> = sentences(text).collect();
    let solid = |text: &str| text.chars().filter(|c| !c.is_whitespace()).count();
    assert_eq!(
        own.iter().map(|sentence| solid(sentence)).sum::<usize>(),
        solid(text),
        "characters are lost"
    );

    let found = facts(language, text);
    assert!(found.iter().all(|fact| own.contains(fact)));
    let critical = critical_facts(text);
    assert!(critical.iter().all(|fact| found.contains(fact)));
    for entity in entities(language, text, &lines) {
        assert!(text.contains(entity.text) && !entity.text.is_empty());
    }
    assert!(keywords(language, text, 5).len() <= 5);

    let claims: Vec<Claim> =
        own.iter().take(8).map(|sentence| Claim::of(language, sentence)).collect();
    for (at, claim) in claims.iter().enumerate() {
        assert_eq!(claim.opposes(claim), None, "{}", own[at]);
        for other in &claims {
            assert_eq!(claim.opposes(other), other.opposes(claim));
        }
    }
    let (p, q) = (StemSet::of(language, a), StemSet::of(language, b));
    assert_eq!(p.jaccard(&q), q.jaccard(&p));
    let vector = HashedEmbedding::new(language).embed(text);
    assert!(vector.is_zero() || vector.scale() > 0.0);

    let passages: Vec<Passage<'_>> = lines.iter().map(|line| Passage::new(line)).collect();
    let budget = usize::from(first);
    match Summarizer::new(language, &Approx1).within(&passages, budget) {
        Ok(summary) => {
            assert!(summary.tokens <= budget && Approx1.count(&summary.text()) == summary.tokens);
            let kept: Vec<&str> = summary.extracts.iter().map(|extract| extract.text).collect();
            assert_eq!(retention(language, &critical, &kept), 1.0);
            assert_eq!(coherence(language, &own, &kept), 1.0);
            assert!(kept.iter().all(|sentence| own.contains(sentence)));
        }
        Err(error) => assert!(error.needed > budget && !critical.is_empty()),
    }
}
