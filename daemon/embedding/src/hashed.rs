//! The embedding that needs no model, behind the seam.

use omird_text::{DIMENSIONS, HashedEmbedding, Language};

use crate::embedder::{Embedder, ModelName};

/// `hashed-256`: words, forms of words and parts of words, but no synonyms.
#[derive(Debug, Clone)]
pub struct Hashed {
    embedding: HashedEmbedding,
    model: ModelName,
}

impl Hashed {
    /// The embedding for texts of a language.
    pub fn new(language: Language) -> Self {
        let embedding = HashedEmbedding::new(language);
        let model = ModelName { name: embedding.model(), dims: DIMENSIONS, hash: [0; 32] };
        Self { embedding, model }
    }
}

impl Embedder for Hashed {
    fn model(&self) -> &ModelName {
        &self.model
    }

    fn is_lexical(&self) -> bool {
        true
    }

    fn embed(&self, text: &str, out: &mut [f32]) -> bool {
        let embedding = self.embedding.embed(text);
        for (number, value) in out.iter_mut().zip(embedding.values()) {
            *number = f32::from(*value) * embedding.scale();
        }
        embedding.scale() > 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_without_words_have_no_vector() {
        let hashed = Hashed::new(Language::English);
        let mut out = [0.0; DIMENSIONS];
        assert!(!hashed.embed(" ... ", &mut out));
        assert!(hashed.embed("a white mug", &mut out));
        let length: f32 = out.iter().map(|number| number * number).sum();
        assert!((length - 1.0).abs() < 1e-3, "{length}");
    }
}
