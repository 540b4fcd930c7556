//! The protocol before a transport: a message taken apart into calls, each of which is admitted by itself.

use std::sync::Arc;
use std::time::Instant;

use omir_core::code::Code;
use omir_core::json;
use omir_core::value::{Map, Value};
use omird_engine::Engine;
use omird_router::{
    Admitted, Denial, Denied, Description, Exchange, Message, Method, Parts, Refusal, Reply,
    Response,
};

use crate::call::{Call, Counts};
use crate::failure::Failure;
use crate::jsonrpc::{self, INVALID_REQUEST, RpcCall, RpcError};
use crate::methods::{self, COMPASS, Entry, UNKNOWN};
use crate::names::uuid;
use crate::params::Params;
use crate::settings::Settings;
use crate::store::Store;
use crate::who::{Conversation, Who};

/// The protocol over one engine. Cloning gives another handle.
#[derive(Clone)]
pub struct Compass {
    engine: Engine,
    settings: Arc<Settings>,
    counts: Arc<Counts>,
}

impl Compass {
    /// Returns the protocol over `engine`.
    pub fn new(engine: &Engine, settings: Settings) -> Self {
        Self { engine: engine.clone(), settings: Arc::new(settings), counts: Arc::default() }
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
        let entry = methods::entry(&call.method);
        let method: &'static Method = entry.map_or(&UNKNOWN, |entry| &entry.method);
        let caller = parts.caller().clone();
        let context = Conversation::of(&call.beside, trace, || uuid(&self.engine.new_id()));
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
            (Some(entry), None) => self.work(entry, &who, &call, &mut admitted, began),
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

    fn work(
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
        let mut call = Call {
            settings: &self.settings,
            store: Store::new(&self.engine, who.tenant()),
            who,
            params: Params::new(params),
            admitted,
            counts: &self.counts,
            agent: None,
            degraded: false,
        };
        let mut result = (entry.work)(&mut call)?;
        let took_ms = began.elapsed().as_micros() as f64 / 1000.0;
        result.insert("meta", who.meta(call.agent.as_deref(), took_ms, call.degraded));
        Ok(Value::Object(result))
    }
}

impl Exchange for Compass {
    fn description(&self) -> &'static Description {
        &DESCRIPTION
    }

    /// A batch is worked on in the order given, so that a call sees what the one before it stored. A change waits for the disk
    /// on this thread: its answer may need a second try, and the calls after it come later.
    fn answer(&self, admitted: Admitted, message: Message, reply: Reply) {
        let mut parts = Parts::of(admitted);
        let incoming = match jsonrpc::read(&message.body) {
            Ok(incoming) => incoming,
            Err(error) => {
                parts.failed(Code::InvalidQuery);
                return reply(worded(200, error));
            }
        };
        let trace = message.request_id.as_deref();
        let response = jsonrpc::respond(incoming, |asked| self.one(&mut parts, asked, trace));
        reply(match response {
            Some(response) => Response::new(200, json::to_string(&response)),
            None => Response::new(204, ""),
        });
    }

    fn refuse(&self, denied: &Denied) -> Response {
        match &denied.why {
            Denial::Refusal(refusal) => {
                let status = match refusal {
                    Refusal::Unauthenticated(_) => 401,
                    Refusal::TooLarge { .. } => 413,
                    Refusal::TooOften { .. } => 429,
                    Refusal::ImportUnderWay => 503,
                    _ => 403,
                };
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

/// Words an error of the message as a whole: nobody knows the id of its request.
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
