//! Selections: candidates by recall, each filtered and proven, ordered, and only then cut.
//!
//! A selection walks through one recall, best hit first, and holds one World at a time. It ends where enough passed, where no
//! later hit can pass, or where its time is over. What needs no World is checked before a World is decoded, and that before
//! one is signed.

use std::cmp::Reverse;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use omir_core::manifesto::{
    Constraints, MAX_RESULTS, Method, ProveResult, SelectionRequest, Verifier, World,
};
use omir_core::reference::{Ref, ResourceType};
use omir_core::value::{Map, Value};
use omird_engine::{Hit, Query, id_of};

use crate::exchange::Manifesto;
use crate::failure::Failure;
use crate::request::Request;
use crate::{episode, filter, names};

/// Candidates that a selection looks at in all, where its filters let few pass.
const MOST_SEEN: usize = 10_000;
/// Time for which a selection looks at candidates. Its caller holds a turn of a reader meanwhile.
const MOST_TIME: Duration = Duration::from_secs(2);

/// A memory that passed the filters.
pub(crate) struct Selected {
    name: Ref,
    pub(crate) world_id: String,
    confidence: f64,
    reason: String,
    proven: ProveResult,
}

/// The facts that hold for the whole selection.
pub(crate) struct Selection<'a> {
    pub(crate) request: &'a SelectionRequest,
    pub(crate) tenant: Option<&'a str>,
    /// `None` for a method that is not known here: it verifies nothing.
    pub(crate) method: Option<Method>,
    pub(crate) verified_at: i64,
}

impl Manifesto {
    /// Answers `select`: a SelectionResult.
    pub(crate) fn select(&self, request: &mut Request) -> Result<Value, Failure> {
        let beside = ["method", "filter"];
        let names = ["query", "atWorldId", "selector", "constraints", "method", "filter"];
        let mut members = request.members(&names)?;
        let (method, filters) = (members.text("method")?, members.take("filter"));
        let criteria = SelectionRequest::from_value(&members.into_value(), &beside)
            .map_err(|faults| Failure::of_faults("", &faults))?;
        request.check_actor(&criteria.selector, "/selector")?;
        let mut query = Query { touch: false, ..Query::default() };
        if let Some(filters) = filters {
            query = filter::read(query, &filters, "/filter", filter::OF_WORLDS)?;
        }
        query.text = Some(criteria.query.as_str().into());
        query.types = vec![ResourceType::Episode];
        // A client of OMIR may have forgotten the Entity that Worlds refer to. Made again it has a later version, and the Worlds from
        // before do not refer to it any more. Each candidate's name is held against its tenant anyway: the Entity only spares the
        // look at other Episodes.
        let tenant = names::tenant(request.tenant())?;
        if matches!(self.engine.live_version(&tenant), Some((1, _))) {
            query.entities = vec![tenant];
        }
        let selection = Selection {
            request: &criteria,
            tenant: request.tenant(),
            method: method.map_or(Some(Method::Signature), |name| Method::by_name(&name)),
            // One for the whole call.
            verified_at: self.milliseconds(),
        };
        let end = Instant::now() + MOST_TIME;
        let mut selected = self.selected(&selection, query, || Instant::now() >= end)?;
        let verified_at = selection.verified_at;
        selected.sort_by(|a, b| {
            let verified =
                |one: &Selected| Reverse(self.settings.prefer_verified && one.proven.valid);
            let by_confidence = b.confidence.total_cmp(&a.confidence);
            verified(a)
                .cmp(&verified(b))
                .then(by_confidence)
                .then_with(|| a.world_id.cmp(&b.world_id))
        });
        selected.truncate(criteria.constraints.max_results);
        let touched: Vec<Ref> = selected.iter().map(|one| one.name.clone()).collect();
        let mut map = Map::new();
        // Behind the cut: each evidence has a copy of the selector.
        let values = selected.into_iter().map(|one| selection.memory(one));
        map.insert("selected", values.collect::<Value>());
        request.admitted.touched(&touched);
        // Last of all; a clock that was set back meanwhile does not make it earlier.
        map.insert("selectedAt", self.milliseconds().max(verified_at));
        Ok(Value::Object(map))
    }

    /// Returns what passes the filters of at least so many candidates as are looked at by default, and of more where fewer
    /// pass than are wanted. `is_over` says before each candidate whether the time is over; what passed until then is returned.
    pub(crate) fn selected(
        &self,
        selection: &Selection<'_>,
        query: Query,
        mut is_over: impl FnMut() -> bool,
    ) -> Result<Vec<Selected>, Failure> {
        let wanted = selection.request.constraints.max_results;
        let mut selected = Vec::new();
        if wanted == 0 {
            return Ok(selected);
        }
        let enough = MAX_RESULTS.min(4 * wanted + 16);
        let query = Query { limit: Some(MOST_SEEN), ..query };
        let (mut seen, mut failed) = (0, None);
        self.engine.recall_each(&query, |hit| {
            // Hits come best first.
            let least = selection.request.constraints.min_confidence;
            if is_over() || least.is_some_and(|least| confidence_of(&hit) < least) {
                return ControlFlow::Break(());
            }
            match self.judge(selection, &hit) {
                Ok(found) => selected.extend(found),
                Err(error) => {
                    failed = Some(error);
                    return ControlFlow::Break(());
                }
            }
            seen += 1;
            if seen >= enough && selected.len() >= wanted {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        failed.map_or(Ok(selected), Err)
    }

    /// Holds a candidate against the filters and proves it. `None` if it is not selected, is no World of this tenant, or cannot
    /// be read.
    fn judge(&self, selection: &Selection<'_>, hit: &Hit) -> Result<Option<Selected>, Failure> {
        let Some(id) = id_of(&hit.resource).filter(|id| names::is_world(id)) else {
            return Ok(None);
        };
        let (world_id, world) = match episode::any_world_in(&hit.resource) {
            Ok(Some(held)) => held,
            Ok(None) => return Ok(None),
            Err(error) => {
                tracing::error!(%error, id, "left out of a selection");
                return Ok(None);
            }
        };
        let request = selection.request;
        let created_at = world.get("createdAt").and_then(Value::as_i64);
        let name = names::world(selection.tenant, &world_id)?;
        let is_candidate = id == name.id.as_str()
            && world_id != request.at_world_id
            && request.constraints.is_in_range(created_at);
        if !is_candidate {
            return Ok(None);
        }
        let Ok(world) = World::from_value(world) else { return Ok(None) };
        if world.id() != world_id {
            return Ok(None);
        }
        let proven = match selection.method {
            Some(method) => Verifier::new(&self.keys, method).prove(&world_id, &world),
            None => ProveResult { valid: false, proof: None, error: None },
        };
        if !passes(&request.constraints, &proven) {
            return Ok(None);
        }
        let reason = Some(hit.reason.as_str()).filter(|reason| !reason.is_empty());
        let reason = reason.unwrap_or("recalled for the query").to_owned();
        Ok(Some(Selected { name, world_id, confidence: confidence_of(hit), reason, proven }))
    }
}

impl Selection<'_> {
    /// Returns the SelectedMemory.
    fn memory(&self, one: Selected) -> Value {
        let mut value = Map::new();
        let reference: Map = [("worldId", one.world_id)].into_iter().collect();
        value.insert("ref", reference);
        value.insert("reason", one.reason);
        value.insert("confidence", one.confidence);
        value.insert("verified", one.proven.valid);
        if let Some(evidence) = self.evidence(&one.proven) {
            value.insert("evidence", evidence);
        }
        Value::Object(value)
    }

    /// Wraps a proof: who verified, and when, is the selector's to say and never the verifier's (M-9).
    fn evidence(&self, proven: &ProveResult) -> Option<Map> {
        let proof = proven.proof.as_ref()?;
        let mut evidence = Map::new();
        evidence.insert("method", proof.method.as_str());
        if let Some(data) = &proof.proof {
            evidence.insert("proof", data.clone());
        }
        evidence.insert("verifiedAt", self.verified_at);
        evidence.insert("verifiedBy", self.request.selector.clone());
        Some(evidence)
    }
}

fn confidence_of(hit: &Hit) -> f64 {
    hit.score.clamp(0.0, 1.0)
}

/// Holds a candidate against the filters that are about its proof.
fn passes(constraints: &Constraints, proven: &ProveResult) -> bool {
    let has_evidence =
        proven.proof.as_ref().is_some_and(|proof| proof.method != Method::None.as_str());
    (!constraints.require_verified || proven.valid)
        && (!constraints.require_evidence || has_evidence)
}
