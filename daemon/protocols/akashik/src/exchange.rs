//! The protocol before a transport: a message read, its operation admitted by a row of its own, and handed to the field of its tenant.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use omir_core::json;
use omir_core::value::Value;
use omird_engine::Engine;
use omird_router::{
    Admitted, Caller, DEFAULT_TENANT, Denied, Description, Exchange, Listener, Message, Method,
    Parts, Reply, Response, Scope,
};
use parking_lot::Mutex;

use crate::announce::announcement;
use crate::answers;
use crate::envelope::Envelope;
use crate::failure::{
    Failure, INSUFFICIENT_AUTHORITY, INVALID_ENVELOPE, UNIT_NOT_FOUND, UNSUPPORTED_OPERATION,
    quoted,
};
use crate::field::Field;
use crate::log::object;
use crate::meaning;
use crate::methods::{self, AGENTS, AKASHIK, CONFLICTS, MESSAGE, STATUS, UNIT, UNKNOWN};
use crate::operation_context::{CallerRights, OperationResult, value};
use crate::operations::{self, detect::PATIENCE};
use crate::push::Pushes;
use crate::rights::{self, Act, OPERATOR, STANDARD, Viewer};
use crate::store::Store;
use crate::types::Unit;
use crate::words::Operation;

/// The protocol over one engine. Cloning gives another handle.
#[derive(Clone)]
pub struct Akashik {
    engine: Engine,
    fields: Arc<Mutex<HashMap<String, Arc<Field>>>>,
    pushes: Pushes,
    /// False if all is gone at a stop.
    persists: bool,
    /// The longest time that a DETECT looks for conflicts.
    pub(crate) patience: Duration,
}

/// The reason for which a caller gets no notifications.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoListener {
    /// Neither the request nor the token names an agent.
    Unnamed,
    /// No agent of this id is registered.
    NotRegistered(String),
    /// The token may not speak as this agent.
    NotSpokenFor(String),
    /// The log of the field cannot be read.
    Field(String),
}

impl fmt::Display for NoListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unnamed => f.write_str("agent_id is missing, and the token names no agent"),
            Self::NotRegistered(id) => write!(f, "agent {id:?} is not registered"),
            Self::NotSpokenFor(id) => write!(f, "this token does not speak as {id:?}"),
            Self::Field(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for NoListener {}

/// Returns the rights of the caller, as far as a field decides by them.
pub(crate) fn who(caller: &Caller) -> CallerRights {
    let is_owner = caller.is_owner();
    let standard = if is_owner { OPERATOR } else { STANDARD };
    let holder = if caller.has_token { caller.name.to_string() } else { String::new() };
    CallerRights {
        authority: caller.authority.unwrap_or(standard).min(OPERATOR),
        holder,
        caller: caller.name.to_string(),
        agents: caller.agents.iter().map(|agent| agent.to_string()).collect(),
        reads_robot: caller.tenant.is_none() && caller.scopes.hold(Scope::READ),
        is_owner,
    }
}

impl Akashik {
    /// Returns the protocol over `engine`.
    pub fn new(engine: &Engine) -> Self {
        let (fields, pushes) = (Arc::default(), Pushes::default());
        Self { engine: engine.clone(), fields, pushes, persists: true, patience: PATIENCE }
    }

    /// Declares that nothing outlives a stop: level 0, whatever else is offered.
    #[must_use]
    pub fn without_persistence(self) -> Self {
        Self { persists: false, ..self }
    }

    /// Returns a new id.
    pub(crate) fn new_id(&self) -> String {
        self.engine.new_id()
    }

    /// Returns the notifications, for transports that carry them on.
    pub fn pushes(&self) -> &Pushes {
        &self.pushes
    }

    /// Returns the field of a tenant.
    pub(crate) fn field(&self, tenant: Option<&str>) -> Arc<Field> {
        let tenant = tenant.unwrap_or(DEFAULT_TENANT);
        let mut fields = self.fields.lock();
        let made = || {
            let (engine, tenant) = (self.engine.clone(), tenant.to_owned());
            let (persists, patience) = (self.persists, self.patience);
            let store = Store { engine, tenant, persists, patience };
            Arc::new(Field::new(store, self.pushes.clone()))
        };
        fields.entry(tenant.to_owned()).or_insert_with(made).clone()
    }

    /// Returns the agent that a caller listens as: the one it names, else the first of its token.
    ///
    /// # Errors
    /// The token may not speak as it, or the message names no agent. The message is for the client.
    pub fn listener(&self, caller: &Caller, named: Option<&str>) -> Result<Arc<str>, NoListener> {
        let who = who(caller);
        let id = named.map(str::to_owned).or_else(|| who.agents.first().cloned());
        let Some(id) = id else {
            return Err(NoListener::Unnamed);
        };
        let ended =
            self.field(caller.tenant.as_deref()).look(|model, _, _| match model.agent(&id) {
                None => Err(NoListener::NotRegistered(id.clone())),
                Some(agent) if !caller.may_name(&id) || !who.may_be(agent) => {
                    Err(NoListener::NotSpokenFor(id.clone()))
                }
                Some(_) => Ok(Arc::from(id.as_str())),
            });
        ended.unwrap_or_else(|failure| Err(NoListener::Field(failure.message)))
    }

    /// Works on a message.
    fn message(&self, admitted: Admitted, message: Message, reply: Reply) {
        let mut parts = Parts::of(admitted);
        let path = message.parameter("operation").map(str::to_owned);
        let refused = |parts: &mut Parts, failure: Failure, operation: Option<&str>| {
            // It leaves a line too.
            if let Ok(admitted) = parts.admit(&UNKNOWN, message.body.len()) {
                admitted.failed(failure.code.kind);
            }
            failure.to_answer(operation)
        };
        let envelope = match Envelope::read(&message.body) {
            Ok(envelope) => envelope,
            Err((failure, operation)) => {
                return reply(refused(&mut parts, failure, operation.map(Operation::as_str)));
            }
        };
        let operation = envelope.operation;
        if let Some(failure) = path.and_then(|path| wrong_path(&path, operation)) {
            return reply(refused(&mut parts, failure, Some(operation.as_str())));
        }
        let caller = parts.caller().clone();
        let method = methods::row_of(operation);
        let mut admitted = match parts.admit(method, message.body.len()) {
            Ok(admitted) => admitted,
            Err(refusal) => {
                return reply(
                    Failure::of_refusal(refusal, method).to_answer(Some(operation.as_str())),
                );
            }
        };
        let who = who(&caller);
        admitted.touched_other(&format!("agent/{}", envelope.agent_id));
        let finish = move |admitted: Admitted, done: OperationResult| {
            reply(match done {
                Ok((status, value)) => {
                    admitted.done();
                    Response::new(status, json::to_string(&value))
                }
                Err(failure) => {
                    admitted.failed(failure.code.kind);
                    failure.to_answer(Some(operation.as_str()))
                }
            });
        };
        if !caller.may_name(&envelope.agent_id) {
            let message = format!("this token speaks as {}", who.agents.join(", "));
            return finish(admitted, Err(Failure::new(&INSUFFICIENT_AUTHORITY, message)));
        }
        let field = self.field(caller.tenant.as_deref());
        if !operations::changes(&envelope) {
            let done = field.read(&envelope, &who);
            return finish(admitted, done);
        }
        if let Err(refusal) = admitted.expect_change() {
            let failure = Failure::of_refusal(refusal, method);
            return finish(admitted, Err(failure));
        }
        field.change(envelope, who, Box::new(move |done| finish(admitted, done)));
    }

    /// Answers what is read without a message.
    fn look(&self, caller: &Caller, method: &'static Method, message: &Message) -> OperationResult {
        let who = who(caller);
        let named = message.parameter("agent_id").or(who.agents.first().map(String::as_str));
        if let Some(id) = named.filter(|id| !caller.may_name(id)) {
            let message = format!("this token does not speak as {id:?}");
            return Err(Failure::new(&INSUFFICIENT_AUTHORITY, message));
        }
        let field = self.field(caller.tenant.as_deref());
        field.look(|model, store, epoch| {
            let agent = named.and_then(|id| model.agent(id));
            if let Some(agent) = agent.filter(|agent| !who.may_be(agent)) {
                let message = format!("agent {:?} was registered with another token", agent.id);
                return Err(Failure::new(&INSUFFICIENT_AUTHORITY, message));
            }
            let viewer = Viewer {
                agent_id: agent.map_or("", |agent| &agent.id),
                role: agent.map_or("", |agent| &agent.role),
                authority: who.authority_as(agent),
                active: message.parameter("session_id"),
            };
            let answer = match method {
                method if *method == STATUS => object([
                    ("conformance_level", answers::level(store.persists).into()),
                    ("protocol_version", crate::envelope::VERSION.into()),
                    ("epoch", epoch.into()),
                    ("agents", model.registered().count().into()),
                    ("units", model.units.len().into()),
                    ("conflicts", object([("active", model.open_conflicts().into())])),
                    ("embedding", store.embedding().into()),
                    ("token_count", meaning::TOKEN_COUNT.into()),
                ]),
                method if *method == AGENTS => operations::agents::list(model, &viewer),
                method if *method == CONFLICTS => {
                    rights::may(Act::Detect, viewer.authority)?;
                    let seen = model.conflicts_seen(&viewer).into_iter();
                    let seen = seen.filter(|conflict| conflict.is_open());
                    let seen: Vec<Value> = seen.map(answers::conflict).collect::<Result<_, _>>()?;
                    object([("conflicts", Value::Array(seen))])
                }
                method if *method == UNIT => {
                    rights::may(Act::Attune, viewer.authority)?;
                    let id = message.parameter("id").unwrap_or_default();
                    let indexed = model.visible(&viewer, id);
                    let stored = indexed.map(|_| store.unit(id)).transpose()?.flatten();
                    match (indexed, stored) {
                        (Some(indexed), Some(unit)) if indexed.is(&unit) => {
                            let mut shown = value(&Unit { status: indexed.status, ..unit })?;
                            if let Some(map) = shown.as_object_mut().filter(|_| indexed.is_archived)
                            {
                                map.insert("archived", true);
                            }
                            shown
                        }
                        _ => return Err(Failure::unknown(&UNIT_NOT_FOUND, "unit", id)),
                    }
                }
                method => {
                    let message = format!("no method of this protocol is {:?}", method.name);
                    return Err(Failure::internal(message));
                }
            };
            Ok((200, answers::with_gaps(answer, model)))
        })?
    }
}

/// Returns what is wrong with a path: it names no operation, or another one than the envelope.
fn wrong_path(path: &str, operation: Operation) -> Option<Failure> {
    if path == operation.as_str().to_lowercase() {
        return None;
    }
    Some(if Operation::parse(&path.to_uppercase()).is_none() {
        let message = format!("{} is no operation", quoted(path));
        Failure::new(&UNSUPPORTED_OPERATION, message)
    } else {
        let message = format!("the path is that of {path:?}, the envelope that of {operation:?}");
        Failure::new(&INVALID_ENVELOPE, message)
    })
}

impl Exchange for Akashik {
    fn description(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn listen(&self, listener: Listener) {
        let listening = self.pushes.listen(move |push| {
            if let Some(announcement) = announcement(push) {
                listener(&announcement);
            }
        });
        self.pushes.keep(listening);
    }

    /// The thread waits for the disk: it may decide about what others ask as well, and answers them.
    fn answer(&self, admitted: Admitted, message: Message, reply: Reply) {
        if *admitted.method() == MESSAGE {
            return self.message(admitted, message, reply);
        }
        let done = self.look(&admitted.caller().clone(), admitted.method(), &message);
        reply(match done {
            Ok((status, value)) => {
                admitted.done();
                Response::new(status, json::to_string(&value))
            }
            Err(failure) => {
                admitted.failed(failure.code.kind);
                failure.to_answer(None)
            }
        });
    }

    fn refuse(&self, denied: &Denied) -> Response {
        let (failure, status) = Failure::of_denied(denied);
        Response { status, ..failure.to_answer(None) }
    }
}

/// The protocol, as transports and documents know it.
pub static DESCRIPTION: Description = Description {
    protocol: &AKASHIK,
    about: "A field of memory units that agents and robots share, by Akashik 0.1.0-draft.",
    schemas: methods::schemas,
    answers: methods::answers,
};
