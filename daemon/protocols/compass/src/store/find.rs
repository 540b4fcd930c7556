//! Looking for states: by the handle they bear, and by words.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::model::{ExperienceType, Label, Resource};
use omir_core::reference::{Ref, ResourceType};
use omird_embedding::Vector;
use omird_engine::{Order, Query, QueryVector, ScorePart};

use super::{Sketch, Store, Stored, UNSEEN, decode};
use crate::failure::Failure;
use crate::names::Sort;
use crate::similarity::Agreement;
use crate::state::{Memory, State};

/// Factor by which a search looks at more hits, where too few of them pass.
const WIDER: usize = 10;

/// The vector of a question, and the model that made it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Understood {
    pub(crate) model: String,
    pub(crate) vector: Vector,
}

/// A search. Every hit bears one of the handles, so that nothing of another agent is ever found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Search {
    /// Handles: an agent, a task, a stage, a correction.
    pub(crate) handles: Vec<Ref>,
    /// Words; a hit has at least one of them, or is near in meaning where `by_meaning`.
    pub(crate) text: Option<String>,
    /// The words are understood too, where the engine makes vectors.
    pub(crate) by_meaning: bool,
    /// The vector of the words by a server of models, which takes the place of the engine's.
    pub(crate) vector: Option<Understood>,
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
    pub(crate) fn find<S: State>(&self, search: &Search) -> Result<Vec<Stored<S>>, Failure> {
        self.find_counted(search).map(|(found, _)| found)
    }

    /// As [`Store::find`], with the number of records that match in all.
    pub(crate) fn find_counted<S: State>(
        &self,
        search: &Search,
    ) -> Result<(Vec<Stored<S>>, usize), Failure> {
        let mut all = Vec::new();
        let total = self.each(search, true, |bytes, _| {
            if let Some(stored) = decode::<S>(bytes, UNSEEN)?
                && stored.state.identity().0 == self.tenant()
            {
                all.push(stored);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok((all, total))
    }

    /// Returns the memories that a search finds, as far as a score needs them.
    pub(crate) fn sketches(&self, search: &Search) -> Result<Vec<Sketch>, Failure> {
        let mut all = Vec::new();
        self.each_sketch(search, |sketch| all.push(sketch))?;
        Ok(all)
    }

    /// Returns the first memories of a search that pass, at most as many as it wants. If fewer than `enough` of those hits pass, and
    /// others are in their way, more hits are looked at, in growing steps, up to `most_met`.
    pub(crate) fn sketches_that(
        &self,
        search: &Search,
        enough: usize,
        most_met: usize,
        passes: impl Fn(&Memory) -> bool,
    ) -> Result<Vec<Sketch>, Failure> {
        let most = search.most.unwrap_or(usize::MAX);
        let enough = enough.min(most);
        let left_out = self.left_out();
        let mut search = search.clone();
        // Not many from the beginning: the engine finds few hits faster, and most searches end with them.
        loop {
            let (found, is_short) = self.passing(&search, most, &passes)?;
            let met = search.most.unwrap_or(usize::MAX);
            if !is_short || found.len() >= enough || met >= most_met {
                return Ok(found);
            }
            search.most = Some(met.saturating_mul(WIDER).min(most_met));
            // The same hits are read again, and what cannot be read among them is counted once.
            self.left_out.store(left_out, Ordering::Relaxed);
        }
    }

    /// Returns the first memories of a search that pass, at most `most`, and true if more might be found further on: other records
    /// are among the hits, and not all that match were looked at.
    fn passing(
        &self,
        search: &Search,
        most: usize,
        passes: &impl Fn(&Memory) -> bool,
    ) -> Result<(Vec<Sketch>, bool), Failure> {
        let (mut found, mut has_others) = (Vec::new(), false);
        let total = self.each(search, false, |bytes, agreement| {
            match Sketch::of(bytes, agreement)? {
                Some(sketch) if sketch.memory.tenant == self.tenant() && passes(&sketch.memory) => {
                    found.push(sketch);
                }
                // Errors and stages bear the same handles.
                _ => has_others = true,
            }
            Ok(if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        let is_cut = search.most.is_some_and(|limit| total >= limit);
        let is_short = has_others && is_cut && found.len() < most;
        Ok((found, is_short))
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
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(())
    }

    /// Calls `f` with each memory of all agents of all tenants that is not past its time, newest first of each agent. It reads
    /// the whole store: a thread in the background may.
    pub(crate) fn each_of_all(&self, mut f: impl FnMut(Sketch)) -> Result<(), Failure> {
        let agents = Query {
            types: vec![ResourceType::Entity],
            labels: vec![Label::Other],
            order: Order::Latest,
            limit: None,
            touch: false,
            ..Query::default()
        };
        let mut handles = Vec::new();
        self.engine().recall_each_or_unread(&agents, |hit| {
            let entity = hit.ok().and_then(|hit| entity_of(&hit.resource));
            handles.extend(entity.filter(Sort::is_agent));
            ControlFlow::Continue(())
        })?;
        for handle in handles {
            self.each(&Search::of(handle), false, |bytes, agreement| {
                if let Some(sketch) = Sketch::of(bytes, agreement)? {
                    f(sketch);
                }
                Ok(ControlFlow::Continue(()))
            })?;
        }
        Ok(())
    }

    /// Calls `f` with the bytes of each record that a search finds, and its agreement with the question, until it breaks off.
    /// Returns the number of records that match in all; a lower bound unless `exact_total`.
    fn each(
        &self,
        search: &Search,
        exact_total: bool,
        mut f: impl FnMut(Vec<u8>, Agreement) -> Result<ControlFlow<()>, Failure>,
    ) -> Result<usize, Failure> {
        if search.handles.is_empty() {
            return Err(Failure::internal(
                "a search without a handle would find what is of others",
            ));
        }
        let query = Query {
            text: search.text.as_deref().map(Into::into),
            // A model that knows words by their letters alone ranks worse here than words do:
            // benches/data/compass/README.md.
            by_meaning: search.by_meaning && self.engine().knows_synonyms(),
            vector: search.vector.as_ref().map(|Understood { model, vector }| {
                QueryVector::stated(Some(model), vector.clone())
            }),
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
                    Ok(ControlFlow::Continue(()))
                }
            };
            done.unwrap_or_else(|failure| {
                failed = Some(failure);
                ControlFlow::Break(())
            })
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
    pub(crate) fn all<S: State>(&self, handle: Ref) -> Result<Vec<Stored<S>>, Failure> {
        self.find(&Search::of(handle))
    }
}

/// Returns the name of a stored entity.
fn entity_of(bytes: &[u8]) -> Option<Ref> {
    let value = cbor::from_slice(bytes, &Limits::default()).ok()?;
    Resource::from_value(value).ok().map(|resource| resource.reference())
}
