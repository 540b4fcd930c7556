//! Vectors of the words of the store, by which akin words are found (`recall/akin.rs`).

use omird_embedding::{Embedder, Vector};

use super::{Embedding, LOOKED_AT};
use crate::index::vectors::{Words, vector_of};

impl Embedding {
    /// Makes vectors of the words that came into the store since.
    pub(super) fn learn_words(&self) {
        let vectors = &self.shared.vectors;
        let Some(embedder) = self.backend.embedder.as_ref() else { return };
        let mut numbers = vec![0.0; embedder.model().dims];
        while !self.is_stopping() {
            let Some(first) = vectors.words().as_ref().map(Words::looked) else { return };
            let names: Vec<(u32, String)> = {
                let catalog = self.catalog();
                let names = catalog.text.names_from(first).take(LOOKED_AT);
                names.map(|(term, name)| (term, name.to_owned())).collect()
            };
            if names.is_empty() {
                return;
            }
            let of = |(term, name): &(u32, String)| {
                Some((*term, vector_of(&**embedder, name, &mut numbers)?))
            };
            let made: Vec<(u32, Vector)> = names.iter().filter_map(of).collect();
            if let Some(words) = vectors.words_mut().as_mut() {
                words.add(&made, first + names.len());
            }
        }
    }
}

/// Returns true if an embedder has vectors of single words.
pub(super) fn has_words(embedder: &dyn Embedder) -> bool {
    let any = Vector::of(&vec![1.0; embedder.model().dims]);
    any.is_some_and(|any| embedder.usual(&any).is_some())
}
