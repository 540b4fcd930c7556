//! The Zenoh transport: `docs/keys.md` over one session. It knows keys, selectors and replies; what is asked is the
//! protocol's.

mod announcing;
mod clock;
mod deleting;
mod error;
mod events;
mod exchanges;
mod identity;
mod keys;
mod listeners;
mod memory;
mod namesake;
mod network;
mod operations;
mod pool;
mod request;
pub(crate) mod threads;
#[cfg(test)]
mod time_ranges;

use std::sync::Arc;

use crossbeam_channel::Receiver;
use omir_core::number::Number;
use omir_core::operation::Operation;
use omir_core::value::{Map, Value};
use zenoh::Wait;
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::Subscriber;
use zenoh::query::{Query, Queryable};

use crate::engine::{Code, Engine, Error, Listening, RequestLimits};
use crate::protocols::Protocols;
use crate::protocols::omir::{GET, is_served_inline, method};
use crate::router::{
    Admitted, Caller, Incoming, Method, Refusal, Router, Unauthenticated, worded, worded_for,
};

use self::announcing::Announcing;
use self::deleting::{Deleter, Deletes};
use self::exchanges::ExchangeKey;
use self::identity::{ZENOH, identified};
use self::pool::{Load, Pool, Running, UnderWay};
use self::request::Request;

pub use self::error::{EndpointError, EndpointFault, NetworkError, NotOpened, StartError};
pub use self::keys::Keys;
pub(crate) use self::listeners::rules;
pub use self::request::{MOST_PARAMETERS, selector_parameters};

pub use self::network::{DEFAULT_LISTEN, DEFAULT_ROUTER, Mode, Network, check_endpoint, plain};

/// Bytes of the largest message that these limits let in. Zenoh is told as it is opened.
pub fn largest_message(limits: &RequestLimits) -> usize {
    // A request of ROS may have a resource twice, in fields and as JSON.
    limits.for_import().max_payload_bytes.max(2 * limits.max_payload_bytes)
}

/// A running service. Dropping it undeclares everything.
pub struct Service {
    session: zenoh::Session,
    engine: Engine,
    context: Arc<Context>,
    queryables: Vec<Queryable<()>>,
    subscriber: Subscriber<()>,
    namesake: Subscriber<()>,
    clock: Option<Subscriber<()>>,
    alive: LivelinessToken,
    listening: Listening,
    announcing: Announcing,
}

impl Service {
    /// Opens the network and serves `protocols` under `keys`, with `workers` threads for reading. What `engine`
    /// announces by itself goes out too.
    ///
    /// # Errors
    /// If an endpoint cannot be listened on or the configuration is refused by Zenoh.
    pub fn start(
        engine: &Engine,
        protocols: &Protocols,
        keys: &Keys,
        network: &Network,
        workers: usize,
    ) -> Result<Self, StartError> {
        let most = largest_message(&engine.settings().limits);
        let config = network.to_zenoh(most).map_err(StartError::Settings)?;
        let session = zenoh::open(config).wait().map_err(|error| {
            let listening = network.listening().unwrap_or_default();
            StartError::NotOpened(NotOpened::find(&listening, plain(&error)))
        })?;
        let pool = Pool::start(workers).map_err(StartError::Threads)?;
        let load = pool.pool().clone();
        let deleter = Deleter::start().map_err(StartError::Threads)?;
        let access = protocols.access.clone();
        let events = events::Publisher::new(session.clone(), keys.clone(), access);
        let context = Arc::new(Context {
            protocols: protocols.clone(),
            keys: keys.clone(),
            pool,
            deleter,
            deletes: Deletes::default(),
            events: events.clone(),
        });
        let publisher = events.clone();
        engine.on_finding(Box::new(move |finding| publisher.found(finding)));
        let announcing =
            Announcing::start(events.clone(), protocols).map_err(StartError::Threads)?;
        let listening = engine.events().listen(move |event| events.publish(event));

        let mut queryables = Vec::new();
        for served in ServedKey::all() {
            let context = context.clone();
            let queryable = session
                .declare_queryable(keys.operation(served.name()))
                .callback(move |query| context.dispatch(served, query))
                .wait()
                .map_err(StartError::Key)?;
            queryables.push(queryable);
        }
        let subscriber = {
            let context = context.clone();
            session
                .declare_subscriber(keys.all_memory())
                .callback(move |sample| memory::sample(&context, &sample))
                .wait()
                .map_err(StartError::Key)?
        };
        let clock = match protocols.omir.has_simulated_time() {
            true => Some(clock::follow(&session, keys, context.clone()).map_err(StartError::Key)?),
            false => None,
        };
        let instance = engine.new_id();
        let namesake =
            namesake::watch(&session, keys, engine, &instance).map_err(StartError::Key)?;
        engine.add_status_section(
            "network",
            Box::new(move || Some(network_section(&instance, &load.load()))),
        );
        let alive =
            session.liveliness().declare_token(keys.alive()).wait().map_err(StartError::Key)?;
        Ok(Self {
            session,
            engine: engine.clone(),
            context,
            queryables,
            subscriber,
            namesake,
            clock,
            alive,
            listening,
            announcing,
        })
    }

    /// The session it serves over, for transports beside it.
    pub fn session(&self) -> &zenoh::Session {
        &self.session
    }

    /// Returns a function that asks a reading thread for a sign of life, which comes once one of them has read
    /// something.
    pub fn reader_probe(&self) -> impl Fn() -> Receiver<()> + Send + use<> {
        let (context, engine) = (self.context.clone(), self.engine.clone());
        move || {
            let (alive, waiting) = crossbeam_channel::bounded(1);
            let engine = engine.clone();
            let probe = move || {
                engine.probe_readers();
                // The client may not wait any more.
                let _ = alive.send(());
            };
            context.pool.pool().probe(probe);
            waiting
        }
    }

    /// Takes the service off the network.
    pub fn stop(self) {
        let Self {
            session,
            context,
            queryables,
            subscriber,
            namesake,
            clock,
            alive,
            listening,
            announcing,
            ..
        } = self;
        drop((queryables, subscriber, namesake, clock));
        // Deletions that wait are refused before the session ends, so that the refusals are announced.
        context.deleter.stop();
        drop((alive, context, announcing));
        if let Err(error) = session.close().wait() {
            tracing::warn!(%error, "the session did not close cleanly");
        }
        // Until then what was committed last is announced.
        drop(listening);
    }
}

/// Returns the section `network` of `status`.
fn network_section(instance: &str, load: &Load) -> Value {
    let number = |n: usize| Value::Number(Number::from(n as u64));
    let mut map = Map::new();
    map.insert("instance", instance);
    map.insert("queries", number(load.under_way));
    map.insert("answerBytes", number(load.bytes));
    map.insert("dropped", Value::Number(Number::from(load.dropped)));
    Value::Object(map)
}

/// The context of every handler.
struct Context {
    protocols: Protocols,
    keys: Keys,
    pool: Running,
    deleter: Deleter,
    deletes: Deletes,
    events: events::Publisher,
}

/// A service under a key of its own: the queryables of `docs/keys.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServedKey {
    Memory,
    Operation(Operation),
    Exchange(ExchangeKey),
}

/// The one question that is answered to everybody, with less to those without a token.
const STATUS: ServedKey = ServedKey::Operation(Operation::Status);

impl ServedKey {
    fn all() -> impl Iterator<Item = Self> {
        let operations = Operation::ALL.into_iter().map(Self::Operation);
        let exchanges = ExchangeKey::all().map(Self::Exchange);
        std::iter::once(Self::Memory).chain(operations).chain(exchanges)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory/**",
            Self::Operation(operation) => operation.as_str(),
            Self::Exchange(exchanged) => exchanged.key(),
        }
    }

    /// Returns true if a key expression that matches it means it. `**/recall` matches a memory with the id `recall`
    /// as well, and means none.
    fn is_meant_by(self, key: &str) -> bool {
        let ends_with = |name: &str| {
            let before = key.strip_suffix(name);
            before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        match self {
            Self::Memory => {
                let is_other = Self::all().any(|other| other != self && ends_with(other.name()));
                !is_other || key.split('/').any(|chunk| chunk == "memory")
            }
            _ => ends_with(self.name()),
        }
    }

    fn method(self) -> &'static Method {
        match self {
            Self::Memory => &GET,
            Self::Operation(operation) => method(operation),
            Self::Exchange(exchanged) => exchanged.method(),
        }
    }
}

/// Takes a query on. One too many gets no answer, and is refused in the audit line.
fn take_on(
    pool: &Arc<Pool>,
    router: &Router,
    caller: &Caller,
    method: &'static Method,
    bytes: usize,
) -> Option<UnderWay> {
    let under_way = pool.admit();
    if under_way.is_none() {
        router.refuse(caller, method, bytes, Code::Busy);
    }
    under_way
}

impl Context {
    /// Answers a query: small changes are read at once on Zenoh's thread (the writer does the waiting),
    /// everything else in the pool, which hands all answers over.
    ///
    /// An operation is only meant when it is named: a network browser that asks for `**` must not
    /// forget or store anything, nor make the daemon export all it has. What changes something is asked of one robot by
    /// its exact name, so that a rule that denies that key has denied it.
    fn dispatch(self: &Arc<Self>, served: ServedKey, query: Query) {
        let key = query.key_expr().as_str();
        let pool = self.pool.pool();
        if !served.is_meant_by(key) {
            // That there is no answer is sent as it is dropped, and may wait for the client.
            return pool.hand_over(0, move |_| drop(query));
        }
        let exact = self.keys.expect_exactly(served.name(), key);
        let size = query.payload().map_or(0, zenoh::bytes::ZBytes::len);
        let (method, router) = (served.method(), &self.protocols.router);
        let identified = identified(&self.protocols.access, query.attachment());
        let caller = identified.clone().unwrap_or_else(|_| Caller::unknown(ZENOH));
        let Some(under_way) = take_on(pool, router, &caller, method, size) else {
            return pool.hand_over(0, move |_| drop(query));
        };
        let request = Request::new(query, self.keys.clone(), pool.clone(), under_way);
        if let ServedKey::Exchange(exchanged) = served {
            return exchanges::take_on(self, exchanged, request, identified, exact);
        }
        match identified {
            Ok(_) => {}
            // That there is a daemon, and that it needs a token, is no secret.
            Err(Refusal::Unauthenticated(Unauthenticated::Missing)) if served == STATUS => {
                router.audit_answered(&caller, method, size);
                let existence = self.protocols.omir.existence(request.encoding);
                return request.reply(STATUS.name(), existence);
            }
            Err(refusal) => {
                router.refuse(&caller, method, size, refusal.code());
                return request.refuse(&worded_for(refusal, method));
            }
        }
        if method.effect.names_exactly()
            && let Err(error) = exact
        {
            router.refuse(&caller, method, size, error.code);
            return request.refuse(&error);
        }
        let incoming =
            Incoming { bytes: size, merges: request.names("merge"), ..Incoming::default() };
        let admitted = match router.admit(&caller, method, incoming) {
            Ok(admitted) => admitted,
            Err(refusal) => return request.refuse(&worded(refusal)),
        };
        let is_inline = match served {
            ServedKey::Operation(operation) => is_served_inline(operation, size),
            ServedKey::Memory | ServedKey::Exchange(_) => false,
        };
        if is_inline {
            self.answer(served, request, admitted);
            return;
        }
        let context = self.clone();
        let read = move |(request, admitted)| context.answer(served, request, admitted);
        if let Some((request, admitted)) = pool.read((request, admitted), read) {
            let message = "too many queries are waiting; try again in a moment";
            admitted.failed(Code::Busy);
            request.refuse(&Error::new(Code::Busy, message));
        }
    }

    fn answer(&self, served: ServedKey, request: Request, admitted: Admitted) {
        match served {
            ServedKey::Memory => memory::get(self, request, admitted),
            ServedKey::Operation(operation) => {
                operations::serve(self, operation, request, admitted)
            }
            // Taken on by itself.
            ServedKey::Exchange(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::testing::{AuditLines, Facts};

    /// Invariant 37 of ARCHITECTURE.md.
    #[test]
    fn a_query_too_many_leaves_an_audit_line_and_is_counted() {
        let running = Pool::start(1).unwrap();
        let facts = Facts::default();
        let lines = AuditLines::default();
        let router = Router::new(facts.clone(), [lines.sink()]);
        let caller = Caller::trusted("zenoh", "zenoh");
        let take_on = || super::take_on(running.pool(), &router, &caller, &GET, 7);
        let mut taken = Vec::new();
        while let Some(under_way) = take_on() {
            taken.push(under_way);
        }
        assert!(!taken.is_empty());
        assert_eq!(lines.take(), ["zenoh omir.get 7 BUSY"]);
        assert_eq!(facts.rejected.load(std::sync::atomic::Ordering::Relaxed), 1);
        drop(taken);
        assert!(take_on().is_some());
        assert!(lines.take().is_empty());
    }
}
