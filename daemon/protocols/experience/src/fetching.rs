//! `experience`, `health` and `schema`: what is fetched and changes nothing.

use std::time::Instant;

use omir_core::reference::{Ref, ResourceType};
use omir_core::value::Map;
use omird_engine::{Code, Error};
use omird_router::{Answer, Message};

use crate::answers;
use crate::experience::Experience;
use crate::health::{self, Facts, State};
use crate::ids::{Tenant, hex};
use crate::recording::{related, task_of};
use crate::resources::Stored;
use crate::schema;
use crate::service::{Service, decoded};
use crate::statistics::parse_id;

/// Returns one experience, by its task or by its own id.
///
/// # Errors
/// There is none, or the card does not give it back.
pub(crate) fn experience(
    service: &Service,
    tenant: &Tenant,
    message: &Message,
) -> Result<Answer, Error> {
    let named = message.parameter("task_id").unwrap_or_default();
    let by_id = || {
        let key = service.table().by_id(tenant.spelt(), parse_id(named)?)?;
        let id = format!("xp.{}.{}", tenant.spelt(), hex(&key)).parse().ok()?;
        Some(Ref::new(ResourceType::MemoryRecord, id))
    };
    let found = match service.engine.get(&tenant.experience(named))? {
        Some(found) => Some(found),
        None => match by_id() {
            Some(target) => service.engine.get(&target)?,
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
    metadata.insert("related_count", related(service, tenant, &experience).len());
    let mut body = Map::new();
    body.insert("task_id", experience.task_id);
    body.insert("title", experience.title);
    body.insert("result", result);
    body.insert("metadata", metadata);
    Ok(answers::json(200, &body.into()))
}

/// Returns how the components are.
pub(crate) fn health(service: &Service) -> Answer {
    let facts = Facts {
        card: service.engine.card_state(),
        indexer: service.indexer(),
        queue: service.engine.queue_load(),
        now: Instant::now(),
        timestamp: service.engine.now().0.writable().to_string(),
    };
    let (body, state) = health::report(&mut service.pulse(), &facts);
    answers::json(if state == State::Unhealthy { 503 } else { 200 }, &body)
}

/// Returns a schema of the contract.
///
/// # Errors
/// There is none of that name.
pub(crate) fn schema(message: &Message) -> Result<Answer, Error> {
    let name = message.parameter("name").unwrap_or_default();
    let Some(text) = schema::file(name) else {
        let message = format!("there is no such schema; there are {}", schema::NAMES.join(", "));
        return Err(Error::at(Code::NotFound, "/name", message));
    };
    Ok(Answer::new(200, text))
}
