//! Names with `*` in them: of topics, and of frames.

/// A name in which each `*` stands for any characters, `/` included, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// The pattern as it was written.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self(pattern.into())
    }

    /// As written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if it names one thing only.
    pub fn is_exact(&self) -> bool {
        !self.0.contains('*')
    }

    /// Returns true if `name` fits. Takes time in the product of both lengths at worst.
    pub fn matches(&self, name: &str) -> bool {
        let (pattern, name) = (self.0.as_bytes(), name.as_bytes());
        let (mut p, mut n) = (0, 0);
        // The place of the last star, and how much of the name it has taken so far.
        let mut star: Option<(usize, usize)> = None;
        while n < name.len() {
            match pattern.get(p) {
                Some(b'*') => {
                    star = Some((p, n));
                    p += 1;
                }
                Some(letter) if *letter == name[n] => {
                    p += 1;
                    n += 1;
                }
                _ => {
                    let Some((at, taken)) = star else { return false };
                    star = Some((at, taken + 1));
                    p = at + 1;
                    n = taken + 1;
                }
            }
        }
        pattern[p..].iter().all(|letter| *letter == b'*')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn by_hand() {
        let fits = |pattern: &str, name: &str| Pattern::new(pattern).matches(name);
        assert!(fits("/rosout", "/rosout"));
        assert!(!fits("/rosout", "/rosout2"));
        assert!(fits("/*/detections", "/left/camera/detections"));
        assert!(!fits("/*/detections", "/left/detections/raw"));
        assert!(fits("kf_*", "kf_"));
        assert!(fits("*", ""));
        assert!(!fits("", "x"));
    }

    /// The meaning, plainly.
    fn model(pattern: &[u8], name: &[u8]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some((b'*', rest)) => (0..=name.len()).any(|n| model(rest, &name[n..])),
            Some((letter, rest)) => name.first() == Some(letter) && model(rest, &name[1..]),
        }
    }

    proptest! {
        #[test]
        fn as_the_model_says(pattern in "[ab*]{0,7}", name in "[ab]{0,8}") {
            let found = Pattern::new(pattern.clone()).matches(&name);
            prop_assert_eq!(found, model(pattern.as_bytes(), name.as_bytes()));
        }
    }
}
