//! Candidates by meaning: the versions whose vectors are similar to that of the question.
//!
//! They pass the filters before they are kept, as the largest cosine among those that match decides how much each counts.

use crate::index::catalog::Catalog;
use crate::index::doc::DocId;
use crate::index::vectors::{Similar, compare};
use crate::recall::query::{Query, QueryVector};

/// Adds the versions that are similar in meaning, ascending, and returns true if some may be missing; `None` if there are no vectors
/// of that model.
pub(super) fn similar(
    catalog: &Catalog,
    query: &Query,
    wanted: &QueryVector,
    within: Option<&[DocId]>,
    passes: &mut dyn FnMut(DocId) -> bool,
    found: &mut Vec<Similar>,
) -> Option<bool> {
    let floor = query.min_cosine.unwrap_or(catalog.fusion().min_cosine) as f32;
    let spaces = catalog.vectors.spaces();
    let space = spaces.iter().find(|space| compare(space.model(), &wanted.model))?;
    // Only where a total that is too low will do.
    let signs_first = !query.exact_total && space.has_signs();
    space.similar(&wanted.vector, floor, within, signs_first, passes, found);
    // Rows lie in order unless some were made later.
    if !found.is_sorted_by(|(a, _), (b, _)| a < b) {
        found.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        found.dedup_by_key(|(id, _)| *id);
    }
    Some(signs_first)
}
