//! The embedder of a store, and what `status` tells of vectors.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use omir_core::hex;
use omir_core::value::{Map, Value};
use omird_embedding::{Embedder, Vector};

use crate::Engine;
use crate::error::{Code, Error};
use crate::index::vectors::{MAX_SPACES, VectorSpace, compare};
use crate::question::Question;
use crate::recall::query::{Order, Query, QueryVector, QueryWord};

/// Most words of a question that others are akin to: a text as long as a page says by its vector what it is about.
const MOST_WORDS: usize = 32;

/// The words of a question one by one, each once.
fn words_of(embedder: &dyn Embedder, question: &Question) -> Vec<QueryWord> {
    let mut seen = HashSet::new();
    let mut numbers = vec![0.0; embedder.model().dims];
    let one = |word: &str| {
        let is_made = embedder.word(word, &mut numbers);
        let vector = Vector::of(&numbers).filter(|_| is_made)?;
        let usual = embedder.usual(&vector)?;
        Some(QueryWord { name: word.to_owned(), vector, usual })
    };
    let words = question.words().iter().map(String::as_str);
    words.filter(|word| seen.insert(*word)).filter_map(one).take(MOST_WORDS).collect()
}

impl Engine {
    /// Makes vectors with this embedder from now on, or with none. Those of another one are thrown away; those of all
    /// memories are made in idle time, and words are found meanwhile. Until this is called, vectors of an earlier run stay as
    /// they are and nothing is made.
    pub fn embed_with(&self, embedder: Option<Arc<dyn Embedder>>) {
        self.inner.shared.vectors.follow(embedder);
    }

    /// The query with the vector of its words, if it is to be understood; one that states a vector with the model that is
    /// meant.
    ///
    /// Words alone decide where the order is not that of scores or all matches are counted, unless `min_cosine` asks for more.
    ///
    /// # Errors
    /// `INVALID_QUERY` where there are no vectors to compare with, `BUSY` while those of the last run are still read.
    pub(crate) fn understood<'q>(&self, query: Cow<'q, Query>) -> Result<Cow<'q, Query>, Error> {
        if let Some(stated) = &query.vector {
            let vector = QueryVector { model: self.model_of(stated)?, ..stated.clone() };
            return Ok(Cow::Owned(Query { vector: Some(vector), ..query.into_owned() }));
        }
        let counts = query.asks.count || query.asks.need_all();
        let is_ranked = query.order == Order::Score && !counts && !query.all_words;
        let is_meant = query.by_meaning && (is_ranked || query.min_cosine.is_some());
        if !(is_meant || query.min_cosine.is_some()) {
            return Ok(query);
        }
        let embedder = self.inner.shared.vectors.backend().embedder;
        let text = query.text.as_ref().filter(|text| text.ranks());
        let (Some(embedder), Some(text)) = (embedder, text) else {
            if query.min_cosine.is_some() {
                let message = "needs `vector`, or `q` where [embedding] names a backend";
                return Err(Error::query("minCosine", message));
            }
            return Ok(query);
        };
        let mut numbers = vec![0.0; embedder.model().dims];
        let is_made = embedder.embed(text.text(), &mut numbers);
        let Some(vector) = Vector::of(&numbers).filter(|_| is_made) else { return Ok(query) };
        let words = words_of(&*embedder, text);
        let (model, is_lexical) = (embedder.model().clone(), embedder.is_lexical());
        let vector = QueryVector { model, vector, words, is_lexical };
        Ok(Cow::Owned(Query { vector: Some(vector), ..query.into_owned() }))
    }

    /// The model whose vectors a stated one compares with.
    fn model_of(&self, stated: &QueryVector) -> Result<omird_embedding::ModelName, Error> {
        let is_loaded = self.inner.shared.vectors.is_loaded.load(Ordering::Acquire);
        let spaces = self.inner.shared.vectors.spaces();
        let dims = stated.model.dims;
        let mut fits = spaces.iter().map(VectorSpace::model).filter(|model| {
            if stated.model.name.is_empty() {
                model.dims == dims
            } else {
                compare(model, &stated.model)
            }
        });
        match (fits.next(), fits.next()) {
            (Some(one), None) => return Ok(one.clone()),
            (Some(_), Some(_)) if !stated.model.name.is_empty() => return Ok(stated.model.clone()),
            _ => {}
        }
        if !is_loaded {
            let message =
                "vectors of the last run are still read from the card: ask again in a moment";
            return Err(Error::new(Code::Busy, message));
        }
        let known = spaces
            .iter()
            .map(|space| format!("{} ({} numbers)", space.model().name, space.model().dims));
        let known: Vec<String> = known.collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let left_out = self.inner.shared.vectors.left_out.load(Ordering::Relaxed);
        let more = match left_out {
            0 => String::new(),
            _ => format!("; {left_out} more are stored, of models beyond the first {MAX_SPACES}"),
        };
        let (at, message) = if stated.model.name.is_empty() {
            (
                "model",
                format!(
                    "say which model made the {dims} numbers of `vector`; there are vectors of: {known}"
                ),
            )
        } else {
            (
                "model",
                format!(
                    "no vector of {dims} numbers of the model {:?} is compared; those that are: {known}{more}",
                    stated.model.name
                ),
            )
        };
        Err(Error::query(at, message))
    }

    /// Returns the name of the model that makes vectors; `None` if none are made here.
    pub fn embedding_model(&self) -> Option<String> {
        let embedder = self.inner.shared.vectors.backend().embedder;
        embedder.map(|embedder| embedder.model().name.clone())
    }

    /// Returns true if the model that makes vectors knows more of words than their letters: `cup` for `mug`.
    pub fn knows_synonyms(&self) -> bool {
        let embedder = self.inner.shared.vectors.backend().embedder;
        embedder.is_some_and(|embedder| !embedder.is_lexical())
    }

    /// Returns the sizes of the vectors of a model that are compared; none if there are none.
    pub fn sizes_of_vectors(&self, model: &str) -> Vec<usize> {
        let spaces = self.inner.shared.vectors.spaces();
        let of_model = spaces.iter().map(VectorSpace::model).filter(|known| known.name == model);
        of_model.map(|known| known.dims).collect()
    }

    /// The section of `status`; `None` where there is neither an embedder nor a vector.
    pub(crate) fn embedding_status(&self) -> Option<Value> {
        let vectors = &self.inner.shared.vectors;
        let embedder = vectors.backend().embedder;
        let spaces = vectors.spaces();
        if embedder.is_none() && spaces.is_empty() {
            return None;
        }
        let int = |number: u64| Value::from(number);
        let own = embedder.as_ref().map(|embedder| embedder.model());
        let of = |space: &VectorSpace| {
            let mut map = Map::new();
            map.insert("model", space.model().name.as_str());
            map.insert("dims", int(space.model().dims as u64));
            map.insert("vectors", int(space.rows() as u64));
            map.insert("memoryBytes", int(space.memory() as u64));
            map.insert("given", Value::Bool(space.is_given()));
            Value::Object(map)
        };
        let mut status = Map::new();
        status.insert("model", own.map_or(Value::Null, |own| own.name.as_str().into()));
        let hash = own.filter(|own| own.hash != [0; 32]).map(|own| hex::encode(&own.hash));
        status.insert("modelHash", hash.map_or(Value::Null, Value::from));
        status.insert("pending", int(vectors.pending.load(Ordering::Relaxed)));
        status.insert("bytes", int(vectors.bytes.load(Ordering::Relaxed)));
        status.insert("damagedFiles", int(vectors.damaged.load(Ordering::Relaxed)));
        status.insert("leftOut", int(vectors.left_out.load(Ordering::Relaxed)));
        if let Some(words) = vectors.words().as_ref() {
            status.insert("words", int(words.len() as u64));
            status.insert("wordBytes", int(words.memory() as u64));
        }
        let is_shown = |space: &&VectorSpace| {
            space.is_given() || own.is_some_and(|own| compare(own, space.model()))
        };
        status.insert("models", Value::Array(spaces.iter().filter(is_shown).map(of).collect()));
        Some(Value::Object(status))
    }
}
