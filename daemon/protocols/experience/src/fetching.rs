//! `experience`, `health` and `schema`: what is fetched and changes nothing.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use omir_core::reference::{Ref, ResourceType};
use omir_core::value::Map;
use omird_engine::{Code, Error, Query};
use omird_router::{Message, Response};

use crate::answers;
use crate::experience::Experience;
use crate::health::{self, Facts, Indexer, State};
use crate::ids::{Key, Tenant, hex, parse_experience};
use crate::recording::{related, task_of};
use crate::resources::Stored;
use crate::schema;
use crate::shared::{Shared, decoded};
use crate::statistics::parse_id;

/// The time in which all experiences of a tenant are looked at for one that is not counted.
const PATIENCE: Duration = Duration::from_secs(2);

/// Returns the name of the experience with this `experience_id`, if it may be one.
fn by_id(shared: &Shared, tenant: &Tenant, named: &str) -> Result<Option<Ref>, Error> {
    let Some(number) = parse_id(named) else { return Ok(None) };
    let name = |key: &Key| {
        let id = format!("xp.{}.{}", tenant.spelt(), hex(key)).parse().ok()?;
        Some(Ref::new(ResourceType::MemoryRecord, id))
    };
    let (counted, is_cut) = {
        let table = shared.table();
        (table.by_id(tenant.spelt(), number), table.is_cut())
    };
    match (counted, shared.indexer()) {
        (Some(key), _) => Ok(name(&key)),
        (None, Indexer::Complete) if !is_cut => Ok(None),
        (None, Indexer::Rebuilding) => {
            let message = "the experiences are being counted after a start; ask by task_id, or again in a moment";
            Err(Error::at(Code::Busy, "/task_id", message))
        }
        (None, _) => Ok(uncounted(shared, tenant, named)?.as_ref().and_then(name)),
    }
}

/// Looks for an experience that the table has not: it had to make room, or could not be read.
fn uncounted(shared: &Shared, tenant: &Tenant, named: &str) -> Result<Option<Key>, Error> {
    let query = Query {
        types: vec![ResourceType::MemoryRecord],
        entities: shared.home(tenant).into_iter().collect(),
        ..Query::everything()
    };
    let (began, mut found, mut is_late) = (Instant::now(), None, false);
    shared.engine.recall_each(&query, |hit| {
        found = decoded(&hit.resource).and_then(|resource| {
            let task = task_of(&resource, tenant)?;
            let target = tenant.experience(task);
            let (_, key) = parse_experience(target.id.as_str())?;
            (tenant.experience_id(task) == named).then_some(key)
        });
        is_late = began.elapsed() >= PATIENCE;
        if found.is_some() || is_late { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if found.is_none() && is_late {
        let message = "there are too many experiences to look at each one; ask by task_id";
        return Err(Error::at(Code::Busy, "/task_id", message));
    }
    Ok(found)
}

/// Returns one experience, by its task or by its own id.
///
/// # Errors
/// There is none, or the card does not give it back.
pub(crate) fn experience(
    shared: &Shared,
    tenant: &Tenant,
    message: &Message,
) -> Result<Response, Error> {
    let named = message.parameter("task_id").unwrap_or_default();
    let found = match shared.engine.get(&tenant.experience(named))? {
        Some(found) => Some(found),
        None => match by_id(shared, tenant, named)? {
            Some(target) => shared.engine.get(&target)?,
            None => None,
        },
    };
    let resource = found.as_deref().and_then(decoded);
    let known = resource.as_ref().and_then(|resource| {
        task_of(resource, tenant)?;
        let stored = Stored::of(resource)?;
        let experience = Experience::of(stored.record)?;
        Some((stored, experience))
    });
    let Some((stored, experience)) = known else {
        let message = "there is no experience of this task; it may have been forgotten";
        return Err(Error::at(Code::NotFound, "/task_id", message));
    };
    let mut result = Map::new();
    result.insert("summary", experience.summary);
    result.insert("success", experience.success);
    let mut metadata = Map::new();
    metadata.insert("created_at", stored.created_at);
    metadata.insert("related_count", related(shared, tenant, &experience).len());
    let mut body = Map::new();
    body.insert("task_id", experience.task_id);
    body.insert("title", experience.title);
    body.insert("result", result);
    body.insert("metadata", metadata);
    Ok(answers::json(200, &body.into()))
}

/// Returns how the components are.
pub(crate) fn health(shared: &Shared) -> Response {
    let facts = Facts {
        card: shared.engine.card_state(),
        indexer: shared.indexer(),
        queue: shared.engine.queue_load(),
        now: Instant::now(),
        timestamp: shared.engine.now().0.writable().to_string(),
    };
    let (body, state) = health::report(&mut shared.window(), &facts);
    answers::json(if state == State::Unhealthy { 503 } else { 200 }, &body)
}

/// Returns a schema of the contract.
///
/// # Errors
/// There is none of that name.
pub(crate) fn schema(message: &Message) -> Result<Response, Error> {
    let name = message.parameter("name").unwrap_or_default();
    let Some(text) = schema::file(name) else {
        let message = format!("there is no such schema; there are {}", schema::NAMES.join(", "));
        return Err(Error::at(Code::NotFound, "/name", message));
    };
    Ok(Response::new(200, text))
}
