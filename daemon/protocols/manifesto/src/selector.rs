//! Selections: candidates by recall, each proven, filtered, ordered, and only then cut.

use std::cmp::Reverse;

use omir_core::manifesto::{
    Constraints, MAX_RESULTS, Method, ProveResult, SelectionRequest, Verifier, World,
};
use omir_core::reference::{Ref, ResourceType};
use omir_core::value::{Map, Value};
use omird_engine::{Hit, Query, id_of};

use crate::asked::Asked;
use crate::failure::Failure;
use crate::{Manifesto, episode, filter, names};

/// Candidates of one look into the store: their Worlds are in memory together.
const PAGE: usize = 64;
/// Candidates that a selection looks at in all, where its filters let few pass.
const MOST_SEEN: usize = 10_000;

/// A memory that passed the filters.
struct Selected {
    name: Ref,
    world_id: String,
    confidence: f64,
    verified: bool,
    value: Value,
}

/// What holds for the whole selection.
struct Selection<'a> {
    request: &'a SelectionRequest,
    tenant: Option<&'a str>,
    /// `None` for a method that nobody knows: it verifies nothing.
    method: Option<Method>,
    verified_at: i64,
}

impl Manifesto {
    /// Answers `select`: a SelectionResult.
    pub(crate) fn select(&self, asked: &mut Asked) -> Result<Value, Failure> {
        let beside = ["method", "filter"];
        let names = ["query", "atWorldId", "selector", "constraints", "method", "filter"];
        let mut members = asked.members(&names)?;
        let (method, filters) = (members.text("method")?, members.take("filter"));
        let request = SelectionRequest::from_value(&members.into_value(), &beside)
            .map_err(|faults| Failure::of_faults("", &faults))?;
        asked.check_actor(&request.selector, "/selector/actorId")?;
        let mut query = Query { touch: false, ..Query::default() };
        if let Some(filters) = filters {
            query = filter::read(query, &filters, "/filter", filter::OF_WORLDS)?;
        }
        query.text = Some(request.query.clone());
        query.types = vec![ResourceType::Episode];
        query.entities = vec![names::tenant(asked.tenant())?];
        let selection = Selection {
            request: &request,
            tenant: asked.tenant(),
            method: method.map_or(Some(Method::Signature), |name| Method::by_name(&name)),
            // One for the whole call.
            verified_at: self.milliseconds(),
        };
        let mut selected = self.selected(&selection, query)?;
        let verified_at = selection.verified_at;
        selected.sort_by(|a, b| {
            let verified = |one: &Selected| Reverse(self.settings.prefer_verified && one.verified);
            let by_confidence = b.confidence.total_cmp(&a.confidence);
            verified(a)
                .cmp(&verified(b))
                .then(by_confidence)
                .then_with(|| a.world_id.cmp(&b.world_id))
        });
        selected.truncate(request.constraints.max_results);
        asked.admitted.touched(selected.iter().map(|one| &one.name));
        let mut map = Map::new();
        map.insert("selected", selected.into_iter().map(|one| one.value).collect::<Value>());
        // Last of all; a clock that was set back meanwhile does not make it earlier.
        map.insert("selectedAt", self.milliseconds().max(verified_at));
        Ok(Value::Object(map))
    }

    /// Returns what passes the filters of at least so many candidates as are looked at by default, and of more where fewer
    /// pass than are wanted.
    fn selected(&self, selection: &Selection<'_>, query: Query) -> Result<Vec<Selected>, Failure> {
        let wanted = selection.request.constraints.max_results;
        let mut selected = Vec::new();
        if wanted == 0 {
            return Ok(selected);
        }
        let enough = MAX_RESULTS.min(4 * wanted + 16);
        let mut query = Query { limit: Some(PAGE.min(enough)), ..query };
        loop {
            let page = query.limit.unwrap_or(PAGE);
            let (found, snapshot) = self.engine.recall_page(&query, page)?;
            for hit in found.hits {
                selected.extend(self.judge(selection, &hit)?);
            }
            query.offset += page;
            let Some(snapshot) = snapshot else { break };
            query.snapshot = Some(snapshot);
            if query.offset >= MOST_SEEN || (query.offset >= enough && selected.len() >= wanted) {
                break;
            }
        }
        Ok(selected)
    }

    /// Proves a candidate and holds it against the filters. `None` if it is not selected, or is no World of this tenant.
    fn judge(&self, selection: &Selection<'_>, hit: &Hit) -> Result<Option<Selected>, Failure> {
        let Some((world_id, world)) = episode::any_world_in(&hit.resource)? else {
            return Ok(None);
        };
        let name = names::world(selection.tenant, &world_id)?;
        let is_its_own = id_of(&hit.resource).is_some_and(|id| id == name.id.as_str());
        let Ok(world) = World::from_value(world) else { return Ok(None) };
        let request = selection.request;
        let is_candidate = is_its_own
            && world.id() == world_id
            && world_id != request.at_world_id
            && request.constraints.is_in_range(world.created_at());
        if !is_candidate {
            return Ok(None);
        }
        let proven = match selection.method {
            Some(method) => Verifier::new(&self.keys, method).prove(&world_id, &world),
            None => ProveResult { valid: false, proof: None, error: None },
        };
        let confidence = hit.score.clamp(0.0, 1.0);
        if !passes(&request.constraints, confidence, &proven) {
            return Ok(None);
        }
        let mut value = Map::new();
        let reference: Map = [("worldId", world_id.as_str())].into_iter().collect();
        value.insert("ref", reference);
        let reason = Some(hit.reason.as_str()).filter(|reason| !reason.is_empty());
        value.insert("reason", reason.unwrap_or("recalled for the query"));
        value.insert("confidence", confidence);
        value.insert("verified", proven.valid);
        if let Some(evidence) = selection.evidence(&proven) {
            value.insert("evidence", evidence);
        }
        let (verified, value) = (proven.valid, Value::Object(value));
        Ok(Some(Selected { name, world_id, confidence, verified, value }))
    }
}

impl Selection<'_> {
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

/// Holds a candidate against the filters that need no World.
fn passes(constraints: &Constraints, confidence: f64, proven: &ProveResult) -> bool {
    let has_evidence =
        proven.proof.as_ref().is_some_and(|proof| proof.method != Method::None.as_str());
    constraints.min_confidence.is_none_or(|least| confidence >= least)
        && (!constraints.require_verified || proven.valid)
        && (!constraints.require_evidence || has_evidence)
}
