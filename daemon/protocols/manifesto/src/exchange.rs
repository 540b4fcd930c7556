//! The protocol before a transport: each method of the table, and its answer.

use std::sync::Arc;

use omir_core::json;
use omir_core::manifesto::Keys;
use omir_core::value::Value;
use omird_engine::Engine;
use omird_router::{Admitted, Denied, Description, Exchange, Message, Reply, Response};
use parking_lot::Mutex;

use crate::failure::{self, Failure};
use crate::methods::{
    self, ATTACH, EVALUATE, EXISTS, GET, HEALTH, KEYS, MANIFESTO, PROVE, PUT, SELECT, TRACE,
    VALIDATE, VERIFY_PROOF,
};
use crate::request::Request;
use crate::settings::ManifestoSettings;

/// The protocol over one engine. Cloning gives another handle.
#[derive(Clone)]
pub struct Manifesto {
    pub(crate) engine: Engine,
    pub(crate) keys: Arc<Keys>,
    pub(crate) settings: ManifestoSettings,
    /// Held while a snapshot is made.
    pub(crate) snapshots: Arc<Mutex<()>>,
}

impl Manifesto {
    /// The facts that transports and documents know of it.
    pub const DESCRIPTION: &Description = &Description {
        protocol: &MANIFESTO,
        about: "Manifesto Memory: Worlds, proofs, selections and traces",
        schemas: methods::schemas,
        answers: methods::answers,
    };

    /// Returns the protocol over `engine`. It signs with `keys`, and trusts those and the former ones of the store. Keys that
    /// do not sign make no proof by `signature`.
    pub fn new(engine: Engine, keys: Keys, settings: ManifestoSettings) -> Self {
        let keys = engine.former_keys().iter().fold(keys, |keys, key| keys.trusting_hex(key));
        Self { engine, keys: Arc::new(keys), settings, snapshots: Arc::default() }
    }

    /// Answers what needs no wait for the disk's writer.
    fn at_once(&self, request: &mut Request) -> Result<Value, Failure> {
        let method = request.admitted.method();
        match method {
            method if *method == GET => self.get(request),
            method if *method == EXISTS => self.exists(request),
            method if *method == PROVE => self.prove(request),
            method if *method == VERIFY_PROOF => self.verify_proof(request),
            method if *method == SELECT => self.select(request),
            method if *method == TRACE => self.trace(request),
            method if *method == VALIDATE => self.validate(request),
            method if *method == EVALUATE => self.evaluate(request),
            method if *method == KEYS => self.list_keys(request),
            method if *method == HEALTH => self.health(request),
            method => {
                Err(Failure::internal(format!("no method of this protocol is {:?}", method.name)))
            }
        }
    }
}

impl Exchange for Manifesto {
    fn description(&self) -> &'static Description {
        Self::DESCRIPTION
    }

    fn answer(&self, admitted: Admitted, message: Message, reply: Reply) {
        let method = admitted.method();
        let request_id = message.request_id.clone().unwrap_or_else(|| self.engine.new_id());
        let client = Client { reply, request_id };
        let mut request = Request { admitted, message };
        if *method == PUT {
            return self.put(request, client);
        }
        if *method == ATTACH {
            return self.attach(request, client);
        }
        let ended = self.at_once(&mut request).map(|value| (200, value));
        client.finish(request.admitted, ended);
    }

    fn refuse(&self, denied: &Denied) -> Response {
        let request_id = denied.request_id.clone().unwrap_or_else(|| self.engine.new_id());
        failure::denied(denied).to_answer().header(REQUEST_ID, request_id)
    }
}

/// The header that names a request.
pub(crate) const REQUEST_ID: &str = "X-Request-ID";

/// The one who waits for an answer.
pub(crate) struct Client {
    reply: Reply,
    request_id: String,
}

impl Client {
    /// Answers, and ends the request.
    pub(crate) fn finish(self, admitted: Admitted, ended: Result<(u16, Value), Failure>) {
        let answer = match ended {
            Ok((status, value)) => {
                admitted.done();
                Response::new(status, json::to_string(&value))
            }
            Err(failure) => {
                admitted.failed(failure.kind);
                failure.to_answer()
            }
        };
        (self.reply)(answer.header(REQUEST_ID, self.request_id));
    }
}
