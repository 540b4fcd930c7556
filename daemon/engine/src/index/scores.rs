//! Scores of one version for one query: an array with a number for each part.

use std::ops::{Index, IndexMut};

/// A part of a score; `recall/score.rs` defines each and weighs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScorePart {
    /// Agreement with the words.
    Text,
    /// Agreement of the vectors: their cosine.
    Meaning,
    /// Agreement with words akin to those of the question.
    Akin,
    /// Relevance of what was recorded right before and after.
    Neighbours,
    /// Relevance of what a relationship leads here from.
    Related,
    /// Closeness in space.
    Proximity,
    /// Retrievability: how lately and how often it was used.
    Retrievability,
    /// Recency: how lately it happened.
    Recency,
    /// Importance.
    Importance,
    /// Confidence.
    Confidence,
}

impl ScorePart {
    /// All parts, in the order in which they are summed and reported.
    pub const ALL: [Self; 10] = [
        Self::Text,
        Self::Meaning,
        Self::Akin,
        Self::Neighbours,
        Self::Related,
        Self::Proximity,
        Self::Retrievability,
        Self::Recency,
        Self::Importance,
        Self::Confidence,
    ];

    /// The name in a reply.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Meaning => "meaning",
            Self::Akin => "akin",
            Self::Neighbours => "neighbours",
            Self::Related => "related",
            Self::Proximity => "proximity",
            Self::Retrievability => "retrievability",
            Self::Recency => "recency",
            Self::Importance => "importance",
            Self::Confidence => "confidence",
        }
    }
}

/// A number in [0, 1] for each part of a score.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Scores([f64; ScorePart::ALL.len()]);

impl Scores {
    /// Each part with its number.
    pub fn iter(&self) -> impl Iterator<Item = (ScorePart, f64)> {
        ScorePart::ALL.into_iter().zip(self.0)
    }

    /// The sum of the products with `other`, always added in the same order.
    #[inline]
    pub fn dot(&self, other: &Self) -> f64 {
        self.0.iter().zip(&other.0).map(|(a, b)| a * b).sum()
    }

    /// The numbers, scaled to sum to one.
    pub fn normalized(self) -> Self {
        let sum: f64 = self.0.iter().sum();
        Self(self.0.map(|score| score / sum))
    }
}

impl Index<ScorePart> for Scores {
    type Output = f64;

    #[inline]
    fn index(&self, part: ScorePart) -> &f64 {
        &self.0[part as usize]
    }
}

impl IndexMut<ScorePart> for Scores {
    #[inline]
    fn index_mut(&mut self, part: ScorePart) -> &mut f64 {
        &mut self.0[part as usize]
    }
}
