//! A request being read.

use omir_core::decode::{DecodeErrorKind, Limits};
use omir_core::json;
use omir_core::manifesto::{World, is_world_id};
use omir_core::value::{Map, Value};
use omird_router::{Admitted, Message};

use crate::failure::Failure;

/// Levels of a request.
const DEPTH: usize = 64;
/// Values in a request: more than 4 MiB of sensible JSON hold.
const VALUES: usize = 1 << 19;
/// Bytes of the canonical form of a World.
pub(crate) const MOST_WORLD: usize = 768 << 10;

/// Bytes of an ActorRef as JSON.
pub(crate) const MOST_ACTOR: usize = 4 << 10;

/// An admitted request and its message.
pub(crate) struct Request {
    pub(crate) admitted: Admitted,
    pub(crate) message: Message,
}

impl Request {
    /// Returns the WorldId that the path names.
    pub(crate) fn world_id(&self) -> Result<String, Failure> {
        let id = self.message.parameter("worldId").unwrap_or_default();
        check_world_id(id, "/worldId")?;
        Ok(id.to_owned())
    }

    /// Reads the object that the message is, with these members and no others.
    pub(crate) fn members(&mut self, known: &[&str]) -> Result<Members, Failure> {
        let body = std::mem::take(&mut self.message.body);
        let limits = Limits { max_depth: DEPTH, max_items: VALUES, ..Limits::default() };
        let value = json::from_slice(&body, &limits).map_err(|error| match error.kind {
            DecodeErrorKind::Depth | DecodeErrorKind::TooLarge => {
                Failure::too_large("", error.to_string())
            }
            _ => Failure::invalid("", format!("unreadable JSON: {error}")),
        })?;
        let Value::Object(map) = value else {
            let message = format!("expected an object, found {}", value.kind_name());
            return Err(Failure::invalid("", message));
        };
        if let Some(name) = map.keys().find(|name| !known.contains(name)) {
            let path = omir_core::pointer::join("", name);
            return Err(Failure::invalid(path, format!("is none of {}", known.join(", "))));
        }
        Ok(Members(map))
    }

    /// Checks that the caller may speak as the ActorRef at `path`, and that this is small: each evidence has a copy of it.
    pub(crate) fn check_actor(&self, actor: &Value, path: &str) -> Result<(), Failure> {
        let bytes = json::to_string(actor).len();
        if bytes > MOST_ACTOR {
            let message = format!("{bytes} bytes are more than the {MOST_ACTOR} of an ActorRef");
            return Err(Failure::too_large(path, message));
        }
        let path = format!("{path}/actorId");
        let caller = self.admitted.caller();
        let actor = actor.get("actorId").and_then(Value::as_str).unwrap_or_default();
        if caller.may_name(actor) {
            return Ok(());
        }
        let named: Vec<&str> = caller.agents.iter().map(|agent| &**agent).collect();
        let message = format!("this token speaks as {}, and not as {actor:?}", named.join(", "));
        Err(Failure::unauthorized(&path, message))
    }

    /// Returns the tenant of the caller, unless it is the default one.
    pub(crate) fn tenant(&self) -> Option<&str> {
        self.admitted.caller().tenant.as_deref()
    }
}

/// The members of a request.
pub(crate) struct Members(Map);

impl Members {
    /// Takes a member that is there; `null` is not.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.0.get_mut(name).map(std::mem::take).filter(|value| !value.is_null())
    }

    pub(crate) fn required(&mut self, name: &str) -> Result<Value, Failure> {
        self.take(name)
            .ok_or_else(|| Failure::invalid(format!("/{name}"), format!("`{name}` is missing")))
    }

    pub(crate) fn object(&mut self, name: &str) -> Result<Value, Failure> {
        let value = self.required(name)?;
        if value.as_object().is_some() {
            return Ok(value);
        }
        let message = format!("expected an object, found {}", value.kind_name());
        Err(Failure::invalid(format!("/{name}"), message))
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, Failure> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Text(text)) if !text.is_empty() => Ok(Some(text)),
            Some(_) => {
                Err(Failure::invalid(format!("/{name}"), "expected a text that is not empty"))
            }
        }
    }

    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, Failure> {
        match self.take(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(_) => Err(Failure::invalid(format!("/{name}"), "expected true or false")),
        }
    }

    pub(crate) fn world(&mut self) -> Result<World, Failure> {
        let world = self.required("world")?;
        let world =
            World::from_value(world).map_err(|fault| Failure::of_world("/world", &fault))?;
        check_size(&world, "/world")?;
        Ok(world)
    }

    /// Returns all members as a value again.
    pub(crate) fn into_value(self) -> Value {
        Value::Object(self.0)
    }
}

/// Refuses a World that the store would not take.
pub(crate) fn check_size(world: &World, path: &str) -> Result<(), Failure> {
    let bytes = world.canonical_len();
    if bytes <= MOST_WORLD {
        return Ok(());
    }
    let message = format!("{bytes} bytes are more than the {MOST_WORLD} of a World");
    Err(Failure::too_large(path, message))
}

pub(crate) fn check_world_id(id: &str, path: &str) -> Result<(), Failure> {
    if is_world_id(id) {
        return Ok(());
    }
    Err(Failure::invalid(path, "a WorldId is 1 to 512 bytes without control characters"))
}
