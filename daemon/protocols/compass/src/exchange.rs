//! The protocol before a transport: a message taken apart into calls, each of which is admitted by itself.

use std::sync::Arc;
use std::time::Instant;

use omir_core::code::Code;
use omir_core::json;
use omir_core::value::{Map, Value};
use omird_engine::Engine;
use omird_router::{
    Admitted, Denial, Denied, Description, Exchange, Listener, Message, Method, ModelClient, Parts,
    Refusal, Reply, Response,
};

use crate::call::Call;
use crate::failure::Failure;
use crate::jsonrpc::{self, INVALID_REQUEST, RpcCall, RpcError};
use crate::methods::{self, COMPASS, Entry, UNKNOWN, Waits};
use crate::model::waiting_pool::{Job, WaitingPool};
use crate::model::{ModelUse, embedding, summary};
use crate::money::account::dollars;
use crate::names::uuid;
use crate::params::Params;
use crate::queues::patterns::PatternQueue;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::store::Store;
use crate::threads;
use crate::who::{Conversation, Who};

/// The protocol over one engine. Cloning gives another handle.
#[derive(Clone)]
pub struct Compass {
    shared: Arc<Shared>,
    patterns: Arc<PatternQueue>,
    /// Threads for calls that wait for a summary by a model, where there is one.
    summaries: Option<Arc<WaitingPool>>,
    /// Threads for calls that wait for the vector of a question.
    questions: Option<Arc<WaitingPool>>,
}

impl Compass {
    /// Starts the protocol over `engine`. A thread looks for patterns among errors after some were recorded.
    pub fn new(engine: &Engine, settings: Settings, model: Option<Arc<dyn ModelClient>>) -> Self {
        let shared = Arc::new(Shared::new(engine, settings, model));
        let patterns = Arc::new(threads::patterns::start(&shared));
        if shared.embedder().is_some() {
            threads::vectors::start(&shared);
        }
        let pool = |name: &str, threads| Arc::new(WaitingPool::start(name, threads));
        let summaries = shared.summarizer().map(|_| pool("omird-cp-model", summary::MOST_AT_ONCE));
        let questions =
            shared.understander().map(|_| pool("omird-cp-ask", embedding::MOST_QUESTIONS));
        Self { shared, patterns, summaries, questions }
    }

    /// Takes other settings. Calls that are under way keep those that they began with.
    pub fn reconfigure(&self, settings: Settings) {
        self.shared.reconfigure(settings);
    }

    /// Works on one call, or on what is none.
    fn one(
        &self,
        parts: &mut Parts,
        asked: Result<RpcCall, RpcError>,
        trace: Option<&str>,
    ) -> Result<Value, RpcError> {
        let began = Instant::now();
        let call = match asked {
            Ok(call) => call,
            Err(error) => {
                // It leaves a line too.
                if let Ok(admitted) = parts.admit(&UNKNOWN, 0) {
                    admitted.failed(Code::InvalidQuery);
                }
                return Err(error);
            }
        };
        let settings = self.shared.settings();
        let entry = methods::entry(&call.method).filter(|entry| entry.is_open(&settings));
        let method: &'static Method = entry.map_or(&UNKNOWN, |entry| &entry.method);
        let caller = parts.caller().clone();
        let context = Conversation::of(&call.beside, trace, || uuid(&self.shared.engine.new_id()));
        let (context, fault) = match context {
            Ok(context) => (context, None),
            Err(failure) => (Conversation::default(), Some(failure)),
        };
        let who = Who::new(&caller, context);
        let told = |failure: Failure| {
            let mut error = failure.error;
            who.note_in(&mut error.data);
            error
        };
        let mut admitted = match parts.admit(method, call.bytes) {
            Ok(admitted) => admitted,
            Err(refusal) => return Err(told(Failure::of_refusal(refusal, method))),
        };
        let worked = match (entry, fault) {
            (None, _) => Err(Failure::no_method(&call.method)),
            (_, Some(failure)) => Err(failure),
            (Some(entry), None) => self.carry_out(entry, &who, &call, &mut admitted, began),
        };
        match worked {
            Ok(result) => {
                admitted.done();
                Ok(result)
            }
            Err(failure) => {
                admitted.failed(failure.code);
                Err(told(failure))
            }
        }
    }

    fn carry_out(
        &self,
        entry: &Entry,
        who: &Who,
        rpc: &RpcCall,
        admitted: &mut Admitted,
        began: Instant,
    ) -> Result<Value, Failure> {
        let none = Map::new();
        let params = match &rpc.params {
            None => &none,
            Some(Value::Object(params)) => params,
            Some(_) => {
                return Err(Failure::params(
                    "",
                    "parameters are an object: this method names them",
                ));
            }
        };
        let settings = self.shared.settings();
        let mut call = Call {
            settings: &settings,
            store: Store::new(&self.shared.engine, who.tenant()),
            who,
            params: Params::new(params),
            admitted,
            shared: &self.shared,
            patterns: &self.patterns,
            model: ModelUse::default(),
            agent: None,
            degraded: false,
        };
        let mut result = (entry.handler)(&mut call)?;
        let took_ms = began.elapsed().as_micros() as f64 / 1000.0;
        let degraded = call.degraded || call.model.is_missed.get() || call.store.left_out() > 0;
        let cost = dollars(call.model.cost.get());
        let similarity = call.model.similarity.get();
        result.insert("meta", who.meta(call.agent.as_deref(), took_ms, cost, degraded, similarity));
        Ok(Value::Object(result))
    }
}

impl Exchange for Compass {
    fn description(&self) -> &'static Description {
        &DESCRIPTION
    }

    /// A batch is worked on in the order given, so that a call sees what the one before it stored. A change waits for the disk
    /// on this thread: its answer may need a second try, and the calls after it come later. A call that asks a model waits on a
    /// thread of its own, so that the transport's threads are there for others.
    fn answer(&self, admitted: Admitted, message: Message, reply: Reply) {
        let mut parts = Parts::of(admitted);
        let incoming = match jsonrpc::read(&message.body) {
            Ok(incoming) => incoming,
            Err(error) => {
                parts.failed(Code::InvalidQuery);
                return reply(worded(200, error));
            }
        };
        let embeds = self.shared.settings().embedding_model.is_some();
        let waits = |answer| {
            let mut entries = incoming.calls().filter_map(|call| methods::entry(&call.method));
            entries.any(|entry| entry.waits == answer)
        };
        let pool = if waits(Waits::Summary) {
            self.summaries.as_ref()
        } else {
            self.questions.as_ref().filter(|_| embeds && waits(Waits::Question))
        };
        let trace = message.trace_id.or(message.request_id);
        let compass = self.clone();
        let work: Job = Box::new(move || {
            let asked = |asked| compass.one(&mut parts, asked, trace.as_deref());
            let response = jsonrpc::respond(incoming, asked);
            reply(match response {
                Some(response) => Response::new(200, json::to_string(&response)),
                None => Response::new(204, ""),
            });
        });
        match pool {
            Some(pool) => pool.work(work),
            None => work(),
        }
    }

    fn listen(&self, listener: Listener) {
        self.shared.announcer.add(listener);
    }

    fn refuse(&self, denied: &Denied) -> Response {
        match &denied.why {
            Denial::Refusal(refusal) => {
                let status = Response::status_of(refusal.code());
                let mut answer = worded(status, Failure::of_refusal(*refusal, denied.method).error);
                if let Refusal::TooOften { retry_after } = refusal {
                    answer.retry_after = Some(*retry_after);
                }
                answer
            }
            Denial::Transport { status, error } => {
                let mut failure = Failure::from(error.clone());
                if matches!(error.code, Code::InvalidQuery | Code::InvalidResource) {
                    failure.error.code = INVALID_REQUEST;
                }
                worded(*status, failure.error)
            }
        }
    }
}

/// Words an error of the message as a whole: the id of its request is unknown.
fn worded(status: u16, error: RpcError) -> Response {
    Response::new(status, json::to_string(&jsonrpc::response(Value::Null, Err(error))))
}

/// The protocol, as transports and documents know it.
pub static DESCRIPTION: Description = Description {
    protocol: &COMPASS,
    about: "Stage memory of agents by COMPASS: one JSON-RPC 2.0 message, or a batch of them.",
    schemas: methods::schemas,
    answers: methods::answers,
};
