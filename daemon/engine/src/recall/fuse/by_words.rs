//! Candidates by words, and the agreement with akin words.
//!
//! Whatever has words gets a row of its own, which takes the cosine with it if the version is similar too. Filters are compared
//! here only with what may be the best, since the best that is shown decides how much words count.

use super::candidate::Candidate;
use super::lists::Lists;
use crate::index::catalog::Catalog;
use crate::index::doc::DocId;
use crate::recall::akin::akin;
use crate::recall::filter::Filter;
use crate::recall::propose::{ResolvedQuery, propose_words};
use crate::recall::query::QueryVector;

/// Gathers the candidates by words and by relationships, and returns the most that words say, and the largest share of their weight.
pub(super) fn gather(
    catalog: &Catalog,
    resolved: &ResolvedQuery<'_>,
    filter: &Filter<'_>,
    related: Vec<(DocId, f32)>,
    lists: &mut Lists,
) -> (f64, f32) {
    let Lists { similar, others } = lists;
    let mut similar = similar.as_slice();
    // The candidate of a version, similar in meaning or not, and the relevance that leads there if any does; versions must ascend.
    let mut candidate = |id: DocId, related: Option<f32>| {
        while similar.first().is_some_and(|(other, _)| *other < id) {
            similar = &similar[1..];
        }
        let similar = similar.first().filter(|(other, _)| *other == id);
        let mut one =
            similar.map_or_else(|| Candidate::bare(id), |similar| Candidate::by_meaning(*similar));
        one.related = related.unwrap_or_default();
        one.is_accepted |= related.is_some();
        one
    };
    let mut related = related.into_iter().peekable();
    let (mut t_max, mut most) = (0.0_f32, 0.0_f32);
    let has_vector = resolved.has_vector();
    propose_words(catalog, resolved, &mut |id, text| {
        while let Some((other, relevance)) = related.next_if(|(other, _)| *other < id) {
            others.push(candidate(other, Some(relevance)));
        }
        let leads_here = related.next_if(|(other, _)| *other == id);
        let mut one = candidate(id, leads_here.map(|(_, relevance)| relevance));
        one.is_hidden = !one.is_accepted && resolved.is_hidden();
        one.text = text as f32;
        one.share = if has_vector { resolved.share() } else { 1.0 };
        // The best match that is shown decides, so only what may be the best is compared with the filters here.
        let (said, share) = (one.said(), one.share);
        if (said > t_max || share > most)
            && !one.is_hidden
            && (one.is_accepted || filter.accepts(catalog, id).is_some())
        {
            (t_max, most) = (t_max.max(said), most.max(share));
        }
        others.push(one);
    });
    others.extend(related.map(|(id, relevance)| candidate(id, Some(relevance))));
    (t_max.into(), most)
}

/// Notes the agreement of candidates with words akin to those of the question, and returns the best.
pub(super) fn look_at_akin(
    catalog: &Catalog,
    wanted: &QueryVector,
    filter: &Filter<'_>,
    lists: &mut Lists,
) -> f64 {
    let Lists { similar, others } = lists;
    let (known, mut at) = (others.len(), 0);
    let mut similar = similar.as_slice();
    let mut k_max = 0.0_f32;
    akin(catalog, wanted, |id, agreement| {
        while others.get(at).is_some_and(|one| at < known && one.id < id) {
            at += 1;
        }
        let is_known = at < known && others.get(at).is_some_and(|one| one.id == id);
        if !is_known {
            similar = &similar[similar.partition_point(|(other, _)| *other < id)..];
            let Some(one) = similar.first().filter(|(other, _)| *other == id) else { return };
            others.push(Candidate::by_meaning(*one));
        }
        let one = if is_known { others.get_mut(at) } else { others.last_mut() };
        let Some(one) = one else { return };
        one.akin = agreement;
        if agreement > k_max
            && !one.is_hidden
            && (one.is_accepted || filter.accepts(catalog, id).is_some())
        {
            k_max = agreement;
        }
    });
    // Two lists in order, one behind the other: the sort merges them.
    if known < others.len() {
        others.sort_by_key(|one| one.id);
    }
    k_max.into()
}
