//! Protocols of one message and one answer each ([`Exchange`]) over Zenoh: JSON in the payload of a query, and what its
//! selector names.

use std::sync::Arc;
use std::time::Instant;

use super::Context;
use super::identity::ZENOH;
use super::request::Request;
use crate::engine::{Code, Encoding, Error, unanswered};
use crate::protocols::akashik;
use crate::protocols::compass;
use crate::protocols::experience;
use crate::protocols::manifesto;
use crate::router::{
    Admitted, Caller, Denial, Denied, Exchange, Incoming, Message, Method, Refusal, Response,
};

/// The keys below `omir/<robot>/`, and the method of each.
static KEYS: &[(&str, &Method)] = &[
    ("experience/record", &experience::RECORD),
    ("experience/hints", &experience::HINTS),
    ("experience/experience", &experience::FETCH),
    ("experience/health", &experience::HEALTH),
    ("manifesto/get", &manifesto::GET),
    ("manifesto/exists", &manifesto::EXISTS),
    ("manifesto/put", &manifesto::PUT),
    ("manifesto/prove", &manifesto::PROVE),
    ("manifesto/verify-proof", &manifesto::VERIFY_PROOF),
    ("manifesto/select", &manifesto::SELECT),
    ("manifesto/trace", &manifesto::TRACE),
    ("manifesto/trace/attach", &manifesto::ATTACH),
    ("manifesto/trace/validate", &manifesto::VALIDATE),
    ("manifesto/authority/evaluate", &manifesto::EVALUATE),
    ("manifesto/keys", &manifesto::KEYS),
    ("manifesto/health", &manifesto::HEALTH),
    ("compass", &compass::JSONRPC),
    ("akashik", &akashik::MESSAGE),
    ("akashik/field/status", &akashik::STATUS),
    ("akashik/agents", &akashik::AGENTS),
    ("akashik/conflicts", &akashik::CONFLICTS),
    ("akashik/units", &akashik::UNIT),
];

/// A row of the table of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExchangeKey(usize);

impl ExchangeKey {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..KEYS.len()).map(Self)
    }

    pub(super) fn key(self) -> &'static str {
        KEYS[self.0].0
    }

    pub(super) fn method(self) -> &'static Method {
        KEYS[self.0].1
    }
}

/// Takes a query on. `exact` says if its key is one of this robot alone, which a change asks for.
pub(super) fn take_on(
    context: &Arc<Context>,
    exchanged: ExchangeKey,
    request: Request,
    identified: Result<Caller, Refusal>,
    exact: Result<(), Error>,
) {
    let (method, router) = (exchanged.method(), &context.protocols.router);
    let Some(exchange) = context.protocols.exchange(method.protocol).cloned() else { return };
    let began = Instant::now();
    let bytes = request.payload_bytes();
    let caller = match identified {
        Ok(caller) => caller,
        Err(refusal) => {
            let nobody = Caller::unknown(ZENOH);
            router.refuse(&nobody, method, bytes, refusal.code());
            return deny(
                context,
                &*exchange,
                exchanged,
                request,
                &nobody,
                Denial::Refusal(refusal),
            );
        }
    };
    let deny = |request, why| deny(context, &*exchange, exchanged, request, &caller, why);
    if method.effect.names_exactly()
        && let Err(error) = exact
    {
        router.refuse(&caller, method, bytes, error.code);
        return deny(request, Denial::Transport { status: 400, error });
    }
    let admitted = match router.admit(&caller, method, Incoming { bytes, ..Incoming::default() }) {
        Ok(admitted) => admitted,
        Err(refusal) => return deny(request, Denial::Refusal(refusal)),
    };
    let parameters = match parameters_of(&request, method) {
        Ok(parameters) => parameters,
        Err(error) => {
            admitted.failed(error.code);
            return deny(request, Denial::Transport { status: 400, error });
        }
    };
    let work = {
        let (context, exchange) = (context.clone(), exchange.clone());
        let caller = caller.clone();
        move |(request, admitted)| {
            let asked = PendingExchange { context, exchange, exchanged, caller, parameters, began };
            asked.answer(request, admitted);
        }
    };
    if let Some((request, admitted)) = context.pool.pool().read((request, admitted), work) {
        let message = "too many queries are waiting; try again in a moment";
        admitted.failed(Code::Busy);
        let error = Error::new(Code::Busy, message);
        deny(request, Denial::Transport { status: 503, error });
    }
}

/// Returns what the selector names, where the payload is JSON and the method knows all of it.
fn parameters_of(request: &Request, method: &Method) -> Result<Vec<(String, String)>, Error> {
    request.expect_json()?;
    let parameters = request.selector()?;
    Message::check_parameters(method, &parameters)?;
    Ok(parameters)
}

/// A request that is worked on.
struct PendingExchange {
    context: Arc<Context>,
    exchange: Arc<dyn Exchange>,
    exchanged: ExchangeKey,
    caller: Caller,
    parameters: Vec<(String, String)>,
    began: Instant,
}

impl PendingExchange {
    fn answer(self, mut request: Request, admitted: Admitted) {
        let Self { context, exchange, exchanged, caller, parameters, began } = self;
        let message = Message {
            body: request.take_payload(),
            parameters,
            request_id: None,
            trace_id: None,
            began,
        };
        let mut waiting = Waiting {
            context,
            exchange: exchange.clone(),
            exchanged,
            caller,
            request: Some(request),
        };
        let reply = Box::new(move |answer| waiting.reply(answer));
        exchange.answer(admitted, message, reply);
    }
}

/// A client that waits for its answer. One whose answer never comes is told so.
struct Waiting {
    context: Arc<Context>,
    exchange: Arc<dyn Exchange>,
    exchanged: ExchangeKey,
    caller: Caller,
    request: Option<Request>,
}

impl Waiting {
    fn reply(&mut self, answer: Response) {
        if let Some(request) = self.request.take() {
            send(request, self.exchanged, answer);
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(request) = self.request.take() else { return };
        let why = Denial::Transport { status: 500, error: unanswered() };
        deny(&self.context, &*self.exchange, self.exchanged, request, &self.caller, why);
    }
}

fn deny(
    context: &Context,
    exchange: &dyn Exchange,
    exchanged: ExchangeKey,
    request: Request,
    caller: &Caller,
    why: Denial,
) {
    let method = exchanged.method();
    let rate = context.protocols.router.usage(caller, method);
    send(request, exchanged, exchange.refuse(&Denied { method, why, request_id: None, rate }));
}

/// Answers on `omir/<robot>/<key>`. What HTTP says beside an answer is not said here. Nothing is sent where there is nothing
/// to say.
fn send(request: Request, exchanged: ExchangeKey, answer: Response) {
    match answer {
        answer if answer.is_error() => request.refuse_with(answer.body, Encoding::Json),
        answer if answer.body.is_empty() => drop(request),
        answer => request.reply_with(exchanged.key(), answer.body, Encoding::Json),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::protocols::Protocols;

    #[test]
    fn each_key_is_of_a_protocol_that_is_served() {
        let keys: HashSet<&str> = ExchangeKey::all().map(ExchangeKey::key).collect();
        assert_eq!(keys.len(), KEYS.len(), "a key stands twice");
        for (key, method) in KEYS {
            let mut known = Protocols::DESCRIPTIONS.iter().map(|known| known.protocol.name);
            assert!(known.any(|name| name == method.protocol), "{key}");
            assert!(key.starts_with(method.protocol), "{key}");
        }
    }

    /// Schemas are files of the contract over HTTP.
    #[test]
    fn each_method_has_a_key() {
        let methods = Protocols::DESCRIPTIONS.iter().flat_map(|known| known.protocol.methods);
        // Streams come as keys of their own: `pushes.rs`.
        for method in methods.filter(|method| !method.streams && method.name != "schema") {
            let has_key = KEYS.iter().any(|(_, known)| known == method);
            assert!(has_key, "{}.{}", method.protocol, method.name);
        }
    }
}
