//! The router of omird: the one place that decides if a request may be worked on, for every protocol over every
//! transport.
//!
//! A transport knows who asks (a [`Caller`]) and which [`Method`] of a protocol is meant. [`Router::admit`] decides
//! read-only mode, scope, size and rate from the two. What a protocol works on is the [`Admitted`] request that comes
//! back, and only the router makes one. So no transport reaches a protocol around the router.
//!
//! A [`Refusal`] carries facts. Each protocol words it in its own form. Each request leaves one [`AuditLine`], refused or
//! not, which each [`Sink`] takes.
//!
//! Protocols bring the tables, transports the callers, and the engine is the [`Policy`].

#![warn(unreachable_pub)]

mod admitted;
mod audit;
mod caller;
mod exchange;
pub mod field;
mod gate;
mod method;
mod model;
mod parts;
mod rate;
mod refusal;
mod schemas;
mod tenant;
#[doc(hidden)]
pub mod testing;
#[cfg(test)]
mod tests;
pub mod tool;
mod wording;

use std::sync::Arc;
use std::time::{Duration, Instant};

use omir_core::code::Code;
use omir_core::reference::Ref;
use parking_lot::Mutex;

pub use self::admitted::Admitted;
pub use self::audit::{AUDIT, AuditLine, MOST_NAMED, RequestOutcome, Sink, Touched, Weight};
pub use self::caller::{Bounds, Caller, DecodedBounds, Scopes};
pub use self::exchange::{
    Announcement, Count, Denial, Denied, Description, ERROR, Exchange, Listener, Message, Reply,
    Response,
};
pub use self::field::{Field, Shape};
pub use self::gate::{AccessPolicy, Gate, Identify};
pub use self::method::{About, Effect, Method, Payload, Protocol, Rate, Scope};
pub use self::model::{ModelClient, ModelFault, Reached};
pub use self::parts::Parts;
pub use self::rate::RateUsage;
use self::rate::Rates;
pub use self::refusal::{Refusal, Remedy, Size, Unauthenticated};
pub use self::schemas::embedded_schemas;
pub use self::tenant::{DEFAULT_TENANT, store_key};
pub use self::wording::{error_value, worded, worded_for};
use omird_engine::{Engine, ImportPermit, NotAdmitted};

/// The facts about the memory that the router decides by. The engine has them; a test brings its own.
pub trait Policy: Send + Sync {
    /// Returns true if the configuration allows no changes.
    fn is_read_only(&self) -> bool;

    /// Takes or refuses a payload of so many bytes, to be merged or not; gives the permit that a large one needs.
    ///
    /// # Errors
    /// Says which bound it is above, or that another large one is under way.
    fn admit(&self, bytes: usize, merges: bool) -> Result<Option<ImportPermit>, NotAdmitted>;

    /// Counts a refusal, for `status`.
    fn note_rejected(&self);
}

impl Policy for Engine {
    fn is_read_only(&self) -> bool {
        self.settings().read_only
    }

    fn admit(&self, bytes: usize, merges: bool) -> Result<Option<ImportPermit>, NotAdmitted> {
        Engine::admit(self, bytes, merges)
    }

    fn note_rejected(&self) {
        Engine::note_rejected(self);
    }
}

/// The size of a request, as far as the transport knows it before anything is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Incoming {
    /// Bytes of the payload.
    pub bytes: usize,
    /// Bytes of memory that it takes once it is decoded; 0 where the transport does not estimate them.
    pub decoded: usize,
    /// The payload is merged into what is stored, as a file is, and may be as large as one. Counts only where the method
    /// takes resources.
    pub merges: bool,
}

/// Decides. Cloning gives another handle on the same router.
#[derive(Clone)]
pub struct Router(Arc<Inner>);

struct Inner {
    policy: Box<dyn Policy>,
    sinks: Vec<Box<dyn Sink>>,
    rates: Mutex<Rates>,
    began: Instant,
}

impl Router {
    /// Returns a router that decides by `policy`, and tells each of `sinks` of each request that is over.
    pub fn new(
        policy: impl Policy + 'static,
        sinks: impl IntoIterator<Item = Box<dyn Sink>>,
    ) -> Self {
        let (policy, rates) = (Box::new(policy), Mutex::default());
        let sinks = sinks.into_iter().collect();
        Self(Arc::new(Inner { policy, sinks, rates, began: Instant::now() }))
    }

    /// Admits a request, or refuses it.
    ///
    /// # Errors
    /// Why it is refused. That is counted, and in the audit line.
    pub fn admit(
        &self,
        caller: &Caller,
        method: &'static Method,
        incoming: Incoming,
    ) -> Result<Admitted, Refusal> {
        self.admit_at(caller, method, incoming, self.0.began.elapsed())
    }

    /// As [`Router::admit`], of a request whose key names one resource: that is in its audit line.
    ///
    /// # Errors
    /// As [`Router::admit`].
    pub fn admit_named(
        &self,
        caller: &Caller,
        method: &'static Method,
        incoming: Incoming,
        named: Option<&Ref>,
    ) -> Result<Admitted, Refusal> {
        self.admit_named_at(caller, method, incoming, named, self.0.began.elapsed())
    }

    fn admit_at(
        &self,
        caller: &Caller,
        method: &'static Method,
        incoming: Incoming,
        now: Duration,
    ) -> Result<Admitted, Refusal> {
        self.admit_named_at(caller, method, incoming, None, now)
    }

    fn admit_named_at(
        &self,
        caller: &Caller,
        method: &'static Method,
        incoming: Incoming,
        named: Option<&Ref>,
        now: Duration,
    ) -> Result<Admitted, Refusal> {
        let mut decided =
            self.check(caller, method, incoming).and_then(|()| self.permit(method, incoming));
        // The last reason to refuse. A protocol that has rates counts what it is asked, also what it refuses, by whatever rate holds
        // for the caller; others count what they answer.
        let mut usage = None;
        if decided.is_ok() || method.rates != [None, None] {
            let counted = {
                let mut rates = self.rates();
                let counted = rates.take(caller, method, now);
                usage = rates.usage(caller, method, now);
                counted
            };
            decided = decided.and_then(|permit| counted.map(|()| permit));
        }
        let mut admitted = Admitted::new(self.clone(), caller.clone(), method, incoming.bytes);
        admitted.touched(named);
        match decided {
            Ok(permit) => {
                admitted.put_permit(permit);
                admitted.put_usage(usage);
                Ok(admitted)
            }
            Err(refusal) => {
                admitted.failed(refusal.code());
                Err(refusal)
            }
        }
    }

    /// Decides by what does not change from one request to the next: mode, scope, and the decoded size. A transport asks
    /// before it decodes a message that might be large; [`Router::admit`] asks again.
    ///
    /// # Errors
    /// Why it would be refused. Nothing is counted: [`Router::refuse`] does, where that is the end of it.
    pub fn check(
        &self,
        caller: &Caller,
        method: &Method,
        incoming: Incoming,
    ) -> Result<(), Refusal> {
        match method.effect {
            Effect::Changes => self.check_change(caller)?,
            Effect::Maintains | Effect::Administers if caller.only_reads => {
                return Err(Refusal::OnlyReads);
            }
            // The message tells, once the protocol has read it: `Admitted::expect_change` decides then.
            Effect::ChangesUnlessDry => {}
            Effect::Reads | Effect::Maintains | Effect::Administers => {}
        }
        if !caller.scopes.hold(method.scope) {
            return Err(match caller.remedy {
                Some(Remedy::Token) => Refusal::Unauthenticated(Unauthenticated::Missing),
                remedy => Refusal::Scope { needed: method.scope, remedy },
            });
        }
        caller.bounds.check_decoded(method, incoming.decoded)
    }

    /// Ends a request that was never admitted: counts it, and writes its audit line.
    pub fn refuse(&self, caller: &Caller, method: &'static Method, bytes: usize, code: Code) {
        self.refuse_named(caller, method, bytes, None, code);
    }

    /// As [`Router::refuse`], of a request whose key names one resource.
    pub fn refuse_named(
        &self,
        caller: &Caller,
        method: &'static Method,
        bytes: usize,
        named: Option<&Ref>,
        code: Code,
    ) {
        let mut ended = Admitted::new(self.clone(), caller.clone(), method, bytes);
        ended.touched(named);
        ended.failed(code);
    }

    /// Writes the audit line of a request that was answered without asking the protocol, for it told nothing that anybody
    /// must be let in for.
    pub fn audit_answered(&self, caller: &Caller, method: &'static Method, bytes: usize) {
        Admitted::new(self.clone(), caller.clone(), method, bytes).done();
    }

    /// Bounds the size of a request, and gives the permit that a large one needs.
    fn permit(
        &self,
        method: &Method,
        Incoming { bytes, merges, .. }: Incoming,
    ) -> Result<Option<ImportPermit>, Refusal> {
        match method.payload {
            Payload::Message(most) if bytes > most => {
                Err(Refusal::TooLarge { bytes, most, size: Size::Message })
            }
            Payload::Message(_) => Ok(None),
            kind => Ok(self.0.policy.admit(bytes, merges && kind == Payload::Resources)?),
        }
    }

    fn check_change(&self, caller: &Caller) -> Result<(), Refusal> {
        if self.0.policy.is_read_only() {
            return Err(Refusal::ReadOnly);
        }
        if caller.only_reads { Err(Refusal::OnlyReads) } else { Ok(()) }
    }

    /// Returns what is left of the caller's second rate, if it has one for this method.
    pub fn usage(&self, caller: &Caller, method: &Method) -> Option<RateUsage> {
        self.rates().usage(caller, method, self.0.began.elapsed())
    }

    fn rates(&self) -> parking_lot::MutexGuard<'_, Rates> {
        self.0.rates.lock()
    }
}
