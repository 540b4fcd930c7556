//! Looking for states: by the handle they bear, and by words.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use omir_core::model::ExperienceType;
use omir_core::reference::{Ref, ResourceType};
use omird_engine::{Order, Query, ScorePart};

use super::{Kept, Sketch, Store, UNSEEN, decode};
use crate::failure::Failure;
use crate::similarity::Agreement;
use crate::state::State;

/// A search. Every hit bears one of the handles, so that nothing of another agent is ever found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Search {
    /// Handles: an agent, a task, a stage, a correction.
    pub(crate) handles: Vec<Ref>,
    /// Words; a hit has at least one of them, or is near in meaning where `by_meaning`.
    pub(crate) text: Option<String>,
    /// The words are understood too, where the engine makes vectors.
    pub(crate) by_meaning: bool,
    /// Newest first, instead of best first.
    pub(crate) newest: bool,
    /// Most hits; `None` for all.
    pub(crate) most: Option<usize>,
    /// Least importance.
    pub(crate) min_importance: Option<f64>,
    /// One of these types of experience; empty for all.
    pub(crate) experience: Vec<ExperienceType>,
    /// Also what is past its time.
    pub(crate) expired: bool,
}

impl Search {
    /// Returns a search for all that bear a handle, newest first.
    pub(crate) fn of(handle: Ref) -> Self {
        Self { handles: vec![handle], newest: true, ..Self::default() }
    }
}

impl Store {
    /// Returns the states that a search finds. Nothing counts as used.
    pub(crate) fn find<S: State>(&self, search: &Search) -> Result<Vec<Kept<S>>, Failure> {
        self.find_counted(search).map(|(found, _)| found)
    }

    /// As [`Store::find`], with the number of records that match in all.
    pub(crate) fn find_counted<S: State>(
        &self,
        search: &Search,
    ) -> Result<(Vec<Kept<S>>, usize), Failure> {
        let mut all = Vec::new();
        let total = self.each(search, true, |bytes, _| {
            if let Some(kept) = decode::<S>(bytes, UNSEEN)?
                && kept.state.identity().0 == self.tenant()
            {
                all.push(kept);
            }
            Ok(())
        })?;
        Ok((all, total))
    }

    /// Returns the memories that a search finds, as far as a score needs them.
    pub(crate) fn sketches(&self, search: &Search) -> Result<Vec<Sketch>, Failure> {
        let mut all = Vec::new();
        self.each_sketch(search, |sketch| all.push(sketch))?;
        Ok(all)
    }

    /// Calls `f` with each memory that a search finds. One is in memory at a time.
    pub(crate) fn each_sketch(
        &self,
        search: &Search,
        mut f: impl FnMut(Sketch),
    ) -> Result<(), Failure> {
        self.each(search, false, |bytes, agreement| {
            if let Some(sketch) = Sketch::of(bytes, agreement)?
                && sketch.memory.tenant == self.tenant()
            {
                f(sketch);
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Calls `f` with the bytes of each record that a search finds, and its agreement with the question. Returns the number of
    /// records that match in all; a lower bound unless `exact_total`.
    fn each(
        &self,
        search: &Search,
        exact_total: bool,
        mut f: impl FnMut(Vec<u8>, Agreement) -> Result<(), Failure>,
    ) -> Result<usize, Failure> {
        if search.handles.is_empty() {
            return Err(Failure::internal(
                "a search without a handle would find what is of others",
            ));
        }
        let query = Query {
            text: search.text.as_deref().map(Into::into),
            by_meaning: search.by_meaning,
            types: vec![ResourceType::MemoryRecord],
            entities: search.handles.clone(),
            experience_types: search.experience.clone(),
            min_importance: search.min_importance,
            include_expired: search.expired,
            order: if search.newest { Order::Latest } else { Order::Score },
            limit: search.most,
            touch: false,
            explain: search.text.is_some(),
            exact_total,
            ..Query::default()
        };
        let mut failed = None;
        let total = self.engine().recall_each_or_unread(&query, |hit| {
            let done = match hit {
                Ok(hit) => {
                    let part = |part| hit.part(part).unwrap_or(0.0);
                    let agreement = Agreement {
                        text: part(ScorePart::Text),
                        cosine: part(ScorePart::Meaning),
                        akin: part(ScorePart::Akin),
                    };
                    f(hit.resource, agreement)
                }
                Err(error) => {
                    tracing::error!(%error, "left out of what an agent is told");
                    self.left_out.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                }
            };
            match done {
                Ok(()) => ControlFlow::Continue(()),
                Err(failure) => {
                    failed = Some(failure);
                    ControlFlow::Break(())
                }
            }
        })?;
        failed.map_or(Ok(usize::try_from(total).unwrap_or(usize::MAX)), Err)
    }

    /// Returns the number of records of these types of experience that bear a handle; of none, of all types.
    pub(crate) fn count(&self, handle: Ref, types: &[ExperienceType]) -> Result<usize, Failure> {
        let query = Query {
            types: vec![ResourceType::MemoryRecord],
            entities: vec![handle],
            experience_types: types.to_vec(),
            order: Order::Latest,
            limit: Some(1),
            touch: false,
            ..Query::default()
        };
        let total = self.engine().recall_each_or_unread(&query, |_| ControlFlow::Break(()))?;
        Ok(usize::try_from(total).unwrap_or(usize::MAX))
    }

    /// Returns all states of a kind that bear a handle, newest first.
    pub(crate) fn all<S: State>(&self, handle: Ref) -> Result<Vec<Kept<S>>, Failure> {
        self.find(&Search::of(handle))
    }
}
