//! Pairs of opposite words: states of doors, machines and tasks that exclude each other.

use crate::lexeme::eq_folded;

/// Words of one side and words of the other. The first word names the pair.
const PAIRS: &[(&[&str], &[&str])] = &[
    (&["open", "opened"], &["closed", "shut"]),
    (&["locked"], &["unlocked"]),
    (&["enabled"], &["disabled"]),
    (&["available", "reachable"], &["unavailable", "unreachable"]),
    (&["full"], &["empty"]),
    (&["running", "started"], &["stopped", "halted"]),
    (&["online"], &["offline"]),
    (&["connected"], &["disconnected"]),
    (&["present"], &["absent", "missing"]),
    (&["safe"], &["unsafe", "dangerous"]),
    (&["occupied", "blocked"], &["free", "unoccupied", "clear", "unblocked"]),
    (&["succeeded", "succeeds", "successful"], &["failed", "fails", "unsuccessful"]),
    (&["valid"], &["invalid"]),
    (&["working", "intact"], &["broken", "defective"]),
    (&["active"], &["inactive"]),
    (&["true"], &["false"]),
    (&["allowed", "permitted"], &["forbidden", "prohibited"]),
    (&["rising", "increasing", "increased"], &["falling", "decreasing", "decreased"]),
    (&["charged"], &["discharged"]),
    (&["wet"], &["dry"]),
];

/// Returns the name of the pair that `word` is of, and true for its first side.
pub(crate) fn side(word: &str) -> Option<(&'static str, bool)> {
    PAIRS.iter().find_map(|&(one, other)| {
        let is_of = |words: &[&str]| words.iter().any(|known| eq_folded(word, known));
        if is_of(one) { Some((one[0], true)) } else { is_of(other).then_some((one[0], false)) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_word_is_of_one_side_of_one_pair() {
        let all = PAIRS.iter().flat_map(|(one, other)| one.iter().chain(*other));
        let unlike: BTreeSet<_> = all.clone().collect();
        assert_eq!(all.count(), unlike.len());
        assert_eq!(side("Closed"), Some(("open", false)));
        assert_eq!(side("opens"), None);
    }
}
