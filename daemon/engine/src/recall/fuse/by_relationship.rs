//! Candidates by relationships: what a match of an earlier search leads to.
//!
//! The engine finds the related entities (`read/spread.rs`). Here each brings its own version and those that mention it.

use omird_store::RefKey;

use crate::index::catalog::{Catalog, ReadPoint, VersionReader};
use crate::index::doc::DocId;
use crate::recall::query::Query;

/// The versions that mention a related entity, or are one, ascending, with the largest relevance that leads there.
pub(super) fn related(
    catalog: &Catalog,
    query: &Query,
    within: Option<&[DocId]>,
    passes: &mut dyn FnMut(DocId) -> bool,
) -> Vec<(DocId, f32)> {
    let mut versions = VersionReader::new(query.read_point());
    let mut found = Vec::new();
    for (entity, relevance) in &query.related {
        let key = RefKey::of(entity);
        let own = match query.read_point() {
            ReadPoint::Now => catalog.live(&key),
            _ => versions.version(catalog, &key),
        };
        let ids = catalog.mentioning(&key).iter().copied().chain(own);
        let is_within = |id: &DocId| within.is_none_or(|within| within.binary_search(id).is_ok());
        let ids = ids.filter(is_within).filter(|id| passes(*id));
        found.extend(ids.map(|id| (id, *relevance as f32)));
    }
    found.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    found.dedup_by_key(|(id, _)| *id);
    found
}
