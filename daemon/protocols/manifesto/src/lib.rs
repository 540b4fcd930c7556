//! Manifesto Memory 1.2.0: a store of Worlds, a verifier, a selector, and the trace helpers, for agents and for the Authority
//! that judges their Proposals. `docs/manifesto.md`.
//!
//! | file | holds |
//! |---|---|
//! | `methods` | the table |
//! | `about` | what documents say of it |
//! | `request` | a request being read: JSON with every bound, and its members |
//! | `failure` | refusals, in the protocol's own words |
//! | `names` | ids of Worlds and tenants in the store |
//! | `episode` | a World as an Episode, and back |
//! | `store` | Worlds looked up and put |
//! | `snapshot` | live memories made into a World |
//! | `filter` | the filters of a selection or a snapshot |
//! | `selector` | selections |
//! | `judge` | proofs and traces, which need no store |
//!
//! What is pure is [`omir_core::manifesto`]. An Authority reaches nothing here but that: its scope opens no method that
//! looks into the store.

#![warn(unreachable_pub)]

mod about;
mod episode;
mod failure;
mod filter;
mod judge;
mod methods;
mod names;
mod request;
mod selector;
mod snapshot;
mod store;

use std::sync::Arc;

use omir_core::json;
pub use omir_core::manifesto::Keys;
use omir_core::value::Value;
use omird_engine::Engine;
use omird_router::{Admitted, Denied, Description, Exchange, Message, Reply, Response};
use parking_lot::Mutex;

use self::failure::Failure;
pub use self::methods::{
    ACTOR, ATTACH, AUTHORITY, EVALUATE, EXISTS, GET, HEALTH, KEYS, MANIFESTO, PROVE, PUT, SELECT,
    TRACE, VALIDATE, VERIFY_PROOF,
};
use self::request::Request;

/// `[manifesto]`, resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManifestoSettings {
    /// Verified memories come before others in a selection.
    pub prefer_verified: bool,
}

impl Default for ManifestoSettings {
    fn default() -> Self {
        Self { prefer_verified: true }
    }
}

/// The protocol over one engine. Cloning gives another handle.
#[derive(Clone)]
pub struct Manifesto {
    engine: Engine,
    keys: Arc<Keys>,
    settings: ManifestoSettings,
    /// Held while a snapshot is made.
    snapshots: Arc<Mutex<()>>,
}

impl Manifesto {
    /// The facts that transports and documents know of it.
    pub const DESCRIPTION: &Description = &Description {
        protocol: &MANIFESTO,
        about: "Manifesto Memory: Worlds, proofs, selections and traces",
        schemas: about::schemas,
        answers: about::answers,
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
const REQUEST_ID: &str = "X-Request-ID";

/// The one who waits for an answer.
struct Client {
    reply: Reply,
    request_id: String,
}

impl Client {
    /// Answers, and ends the request.
    fn finish(self, admitted: Admitted, ended: Result<(u16, Value), Failure>) {
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

#[cfg(test)]
mod tests;
