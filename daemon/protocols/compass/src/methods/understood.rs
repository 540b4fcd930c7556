//! The meaning of a question, where vectors are made: by the engine, or by a server of models.

use std::time::Instant;

use crate::call::Call;
use crate::model::Similarity;
use crate::model::embedding::{Maker, Texts, hash_of};
use crate::model::server::Patience;
use crate::money::paying::{self, NoAnswer, Paid, Requester};
use crate::state::Task;
use crate::store::Understood;

/// Returns the vector of a question by the server of models, if it makes vectors and there are any to compare with. Where it
/// does not answer in time words rank, or the vectors of the engine, and the answer says that it is less than was asked for.
pub(crate) fn understood(
    call: &Call<'_>,
    query: Option<&str>,
    task: Option<&Task>,
) -> Option<Understood> {
    let query = query?;
    let by_engine = call.shared.engine.knows_synonyms();
    let otherwise = if by_engine { Similarity::Meaning } else { Similarity::Words };
    let maker = Maker::of(call.settings).filter(|_| call.shared.understander().is_some());
    let Some(maker) = maker else {
        if by_engine {
            call.model.similarity.set(Some(otherwise));
        }
        return None;
    };
    let sizes = || -> Vec<usize> {
        let sizes = call.shared.engine.sizes_of_vectors(&maker.model).into_iter();
        sizes.filter(|size| maker.dims.is_none_or(|dims| dims == *size)).collect()
    };
    if sizes().is_empty() {
        // No memory has one yet.
        call.model.similarity.set(Some(otherwise));
        return None;
    }
    let hash = hash_of(query);
    let vector = match call.shared.vector_cache.get(&maker, &hash) {
        Some(vector) => Some(vector),
        None => asked(call, &maker, query, &hash, task),
    };
    // The last of that size may have gone while the server was asked.
    let vector = vector.filter(|vector| sizes().contains(&vector.values.len()));
    if vector.is_none() {
        call.model.is_missed.set(true);
    }
    let similarity = if vector.is_some() { Similarity::Meaning } else { otherwise };
    call.model.similarity.set(Some(similarity));
    vector.map(|vector| Understood { model: maker.model, vector })
}

fn asked(
    call: &Call<'_>,
    maker: &Maker,
    query: &str,
    hash: &str,
    task: Option<&Task>,
) -> Option<omird_embedding::Vector> {
    let (settings, shared) = (call.settings, call.shared);
    let server = shared.understander()?;
    let texts = Texts::of(settings, &[query])?;
    let patience = Patience::short(settings, settings.question_timeout);
    let requester = task.map(Requester::of);
    let began = Instant::now();
    let Paid { answer, cost } =
        paying::ask(shared.purse(), settings, server, &texts, &patience, requester.as_ref());
    call.model.cost.set(call.model.cost.get().saturating_add(cost));
    let why = match answer {
        Ok(vectors) => {
            let vector = vectors.into_iter().next()?;
            shared.vector_cache.put(maker, hash, vector.clone());
            return Some(vector);
        }
        Err(NoAnswer::Capped) => "the month's budget has no room for it".to_owned(),
        Err(NoAnswer::Silent(silent)) => silent.message,
    };
    let took_ms = began.elapsed().as_millis();
    tracing::debug!(why, took_ms, "a question was not understood by the server of models");
    None
}
