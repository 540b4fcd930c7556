//! "Did you mean": the allowed word a misspelt one was most likely meant to be.

/// Words longer than this are not compared.
const LONGEST: usize = 32;

/// The candidate nearest to `word`, if one is near enough: up to a third of its letters wrong.
/// Letter case, `_` and `-` do not count, so `created_at` is `createdAt`.
pub fn closest<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let word = Folded::new(word)?;
    candidates
        .filter_map(|candidate| {
            let folded = Folded::new(candidate)?;
            let distance = word.distance(&folded);
            (distance <= folded.len.min(word.len) / 3).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

struct Folded {
    letters: [u8; LONGEST],
    len: usize,
}

impl Folded {
    fn new(word: &str) -> Option<Self> {
        let mut folded = Self { letters: [0; LONGEST], len: 0 };
        for letter in word.bytes().filter(|b| !matches!(b, b'_' | b'-')) {
            *folded.letters.get_mut(folded.len)? = letter.to_ascii_lowercase();
            folded.len += 1;
        }
        (folded.len > 0).then_some(folded)
    }

    /// Levenshtein's distance in which two swapped neighbours count as one mistake (optimal string
    /// alignment), with three rows of the table at hand.
    fn distance(&self, other: &Self) -> usize {
        let mut before = [0; LONGEST + 1];
        let mut last = [0; LONGEST + 1];
        for (column, cell) in last.iter_mut().enumerate() {
            *cell = column;
        }
        for (line, letter) in self.letters[..self.len].iter().enumerate() {
            let mut row = [0; LONGEST + 1];
            row[0] = line + 1;
            for column in 0..other.len {
                let replaced = last[column] + usize::from(*letter != other.letters[column]);
                let mut fewest = replaced.min(last[column + 1] + 1).min(row[column] + 1);
                let swapped = line > 0
                    && column > 0
                    && *letter == other.letters[column - 1]
                    && self.letters[line - 1] == other.letters[column];
                if swapped {
                    fewest = fewest.min(before[column - 1] + 1);
                }
                row[column + 1] = fewest;
            }
            (before, last) = (last, row);
        }
        last[other.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_and_others() {
        let fields = ["createdAt", "content", "confidence", "kind", "id"];
        let near = |word| closest(word, fields.into_iter());
        assert_eq!(near("created_at"), Some("createdAt"));
        assert_eq!(near("creatdAt"), Some("createdAt"));
        assert_eq!(near("contents"), Some("content"));
        assert_eq!(near("Kind"), Some("kind"));
        assert_eq!(near("ID"), Some("id"));
        assert_eq!(near("kidn"), Some("kind"));
        assert_eq!(near("dkni"), None);
        assert_eq!(near("colour"), None);
        assert_eq!(near("x"), None);
        assert_eq!(near(""), None);
        assert_eq!(near("x".repeat(1000).leak()), None);
    }
}
