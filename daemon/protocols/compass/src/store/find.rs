//! Looking for states: by the handle they bear, and by words.

use std::ops::ControlFlow;

use omir_core::model::ExperienceType;
use omir_core::reference::{Ref, ResourceType};
use omird_engine::{Order, Query, ScorePart};

use super::{Kept, Store, UNSEEN, decode};
use crate::failure::Failure;
use crate::state::State;

/// A search. Every hit bears one of the handles, so that nothing of another agent is ever found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Search {
    /// Handles: an agent, a task, a stage, a correction.
    pub(crate) handles: Vec<Ref>,
    /// Words; a hit has at least one of them.
    pub(crate) text: Option<String>,
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

/// A hit.
#[derive(Debug, Clone)]
pub(crate) struct FoundState<S> {
    /// The state.
    pub(crate) kept: Kept<S>,
    /// The agreement with the words, from 0 to 1; 0 where there are none.
    pub(crate) text: f64,
}

impl Store {
    /// Returns the states that a search finds. Nothing counts as used.
    pub(crate) fn find<S: State>(&self, search: &Search) -> Result<Vec<FoundState<S>>, Failure> {
        if search.handles.is_empty() {
            return Err(Failure::internal(
                "a search without a handle would find what is of others",
            ));
        }
        let query = Query {
            text: search.text.clone(),
            types: vec![ResourceType::MemoryRecord],
            entities: search.handles.clone(),
            experience_types: search.experience.clone(),
            min_importance: search.min_importance,
            include_expired: search.expired,
            order: if search.newest { Order::Latest } else { Order::Score },
            limit: search.most,
            touch: false,
            explain: search.text.is_some(),
            ..Query::default()
        };
        let mut all = Vec::new();
        let mut failed = None;
        self.engine().recall_each(&query, |hit| {
            let text = hit.parts.as_ref().map_or(0.0, |(scores, _)| scores[ScorePart::Text]);
            match decode::<S>(hit.resource, UNSEEN) {
                Ok(Some(kept)) if kept.state.identity().0 == self.tenant() => {
                    all.push(FoundState { kept, text });
                    ControlFlow::Continue(())
                }
                Ok(_) => ControlFlow::Continue(()),
                Err(failure) => {
                    failed = Some(failure);
                    ControlFlow::Break(())
                }
            }
        })?;
        failed.map_or(Ok(all), Err)
    }

    /// Returns all states of a kind that bear a handle, newest first.
    pub(crate) fn all<S: State>(&self, handle: Ref) -> Result<Vec<Kept<S>>, Failure> {
        let found = self.find::<S>(&Search::of(handle))?;
        Ok(found.into_iter().map(|found| found.kept).collect())
    }
}
