//! The facts that an index extracts from the versions of a segment.
//!
//! They are opaque here: they are kept beside the number of their segment and handed back.

use omir_core::model::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::block::{Block, IndexKind, Row};
use crate::recorded::ref_key::RefKey;

/// The block that an index keeps of a segment.
pub(crate) type BlockOf<D> = Block<<D as IndexExtractor>::Facts, <D as IndexExtractor>::Words>;

/// Extracts from resources what an index needs of them.
pub trait IndexExtractor: 'static {
    /// Facts of one version. As rows they are kept without places and times.
    type Facts: Serialize + DeserializeOwned + Send + Sync;
    /// Places of one version.
    type Places: Serialize + DeserializeOwned + Send + Sync;
    /// When one version was.
    type Times: Serialize + DeserializeOwned + Send + Sync;
    /// Words of one version.
    type Terms: Send;
    /// Words of all versions of a segment.
    type Words: Serialize + DeserializeOwned + Send + Sync;
    /// Words of a segment in the making.
    type Gathering: Default;

    /// The version of what is kept of a kind. What was kept in another one is rebuilt.
    fn format(kind: IndexKind) -> u32;

    /// Extracts the facts of one version.
    fn facts(resource: &Resource) -> Self::Facts;

    /// Extracts the words of one version.
    fn terms(resource: &Resource) -> Self::Terms;

    /// The places of a version, to be kept apart.
    fn places(facts: &Self::Facts) -> &Self::Places;

    /// When a version was, to be kept apart.
    fn times(facts: &Self::Facts) -> Self::Times;

    /// Puts together what was kept apart.
    fn join(facts: &mut Self::Facts, places: Self::Places, times: Self::Times);

    /// The key of the resource that the facts are of.
    fn key(facts: &Self::Facts) -> RefKey;

    /// Adds the words of the next version of a segment.
    fn gather(words: &mut Self::Gathering, terms: &Self::Terms);

    /// The words of a segment, complete.
    fn gathered(words: Self::Gathering) -> Self::Words;

    /// Returns true if facts and words that were read from a disk can belong to one segment.
    fn is_consistent(rows: &[Row<Self::Facts>], words: &Self::Words) -> bool;
}

/// Draws nothing but names, for those who read a segment without an index.
pub struct Names;

impl IndexExtractor for Names {
    type Facts = RefKey;
    type Places = ();
    type Times = ();
    type Terms = ();
    type Words = ();
    type Gathering = ();

    fn format(_: IndexKind) -> u32 {
        0
    }

    fn facts(resource: &Resource) -> RefKey {
        RefKey::of(&resource.reference())
    }

    fn terms(_: &Resource) {}

    fn places(_: &RefKey) -> &() {
        &()
    }

    fn times(_: &RefKey) {}

    fn join(_: &mut RefKey, (): (), (): ()) {}

    fn key(facts: &RefKey) -> RefKey {
        *facts
    }

    fn gather(_: &mut (), (): &()) {}

    fn gathered((): ()) {}

    fn is_consistent(_: &[Row<RefKey>], (): &()) -> bool {
        true
    }
}
