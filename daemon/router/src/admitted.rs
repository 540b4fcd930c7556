//! An admitted request, from the router's decision to its audit line. Invariant 37 of ARCHITECTURE.md.

use std::time::Instant;

use omir_core::code::Code;
use omir_core::reference::Ref;

use super::audit::{AuditLine, RequestOutcome, Touched};
use super::caller::Caller;
use super::method::{Effect, Method};
use super::rate::RateUsage;
use super::refusal::Refusal;
use super::{Inner, Router};
use omird_engine::{ImportPermit, Receipt};

/// A request that may be worked on. The protocol, once it has answered, says how the request ended; one that is dropped
/// before counts as given up.
pub struct Admitted {
    router: Router,
    caller: Caller,
    method: &'static Method,
    bytes: usize,
    permit: Option<ImportPermit>,
    usage: Option<RateUsage>,
    began: Instant,
    outcome: RequestOutcome,
    touched: Touched,
    is_change: bool,
    /// Its audit line is written by something else.
    is_told: bool,
}

impl Admitted {
    pub(super) fn new(
        router: Router,
        caller: Caller,
        method: &'static Method,
        bytes: usize,
    ) -> Self {
        let (permit, began, outcome) = (None, Instant::now(), RequestOutcome::GivenUp);
        let is_change =
            matches!(method.effect, Effect::Changes | Effect::Maintains | Effect::Administers);
        let touched = Touched::default();
        Self {
            router,
            caller,
            method,
            bytes,
            permit,
            usage: None,
            began,
            outcome,
            touched,
            is_change,
            is_told: false,
        }
    }

    pub(super) fn put_permit(&mut self, permit: Option<ImportPermit>) {
        self.permit = permit;
    }

    pub(super) fn put_usage(&mut self, usage: Option<RateUsage>) {
        self.usage = usage;
    }

    /// Returns the router that admitted it.
    pub(super) fn router(&self) -> &Router {
        &self.router
    }

    /// Makes it a request for `method`, which begins now.
    pub(super) fn turn_into(&mut self, method: &'static Method, bytes: usize) {
        let of_part = Self::new(self.router.clone(), self.caller.clone(), method, bytes);
        // The message leaves no line of its own: its parts do.
        let mut message = std::mem::replace(self, of_part);
        message.is_told = true;
    }

    /// Returns who asks.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Returns what is asked.
    pub fn method(&self) -> &'static Method {
        self.method
    }

    /// Returns the bytes it came in.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns what this request left of the caller's second rate, if it has one for this method. Of several at once each has
    /// left one less.
    pub fn usage(&self) -> Option<RateUsage> {
        self.usage
    }

    /// Notes the size of a message that was admitted before it came in.
    pub fn came_in(&mut self, bytes: usize) {
        self.bytes = bytes;
    }

    /// Takes the permit for a large payload, if it needs one. The change has it until it is made.
    pub fn take_permit(&mut self) -> Option<ImportPermit> {
        self.permit.take()
    }

    /// Returns the bytes that its answer may have, if there is a bound. An answer in parts has none.
    pub fn reply_bytes(&self) -> Option<u64> {
        self.caller.bounds.reply_bytes.filter(|_| !self.method.streams)
    }

    /// Decides about a method that changes something unless it is a dry run, once it is known to be none.
    ///
    /// # Errors
    /// `ReadOnly`, `OnlyReads`.
    pub fn expect_change(&mut self) -> Result<(), Refusal> {
        self.is_change = true;
        self.router.check_change(&self.caller)
    }

    /// Notes resources that it is about or has changed, for the audit line.
    pub fn touched<'r>(&mut self, targets: impl IntoIterator<Item = &'r Ref>) {
        self.touched.add(targets);
    }

    /// Notes the resources that a change is asked for, in the place of the one that a key names.
    pub fn asked_for(&mut self, targets: &[Ref]) {
        self.touched.ask(targets);
    }

    /// Notes something that is no resource, such as `token/NAME`.
    pub fn touched_other(&mut self, name: &str) {
        self.touched.add_other(name);
    }

    /// Notes so many more, without their names.
    pub fn touched_more(&mut self, count: u64) {
        self.touched.add_unnamed(count);
    }

    /// Notes the resources of a change that was made.
    ///
    /// # Panics
    /// In a debug build, if the router has not decided about the change: it is one of a method that may be dry, and
    /// [`Admitted::expect_change`] was not asked.
    pub fn note_receipt(&mut self, receipt: &Receipt) {
        let may_be_dry = self.method.effect == Effect::ChangesUnlessDry;
        debug_assert!(self.is_change || !may_be_dry, "{} is no dry run", self.method.name);
        self.touched.note(receipt);
    }

    /// It was answered.
    pub fn done(mut self) {
        self.outcome = RequestOutcome::Done;
    }

    /// It was refused, or failed.
    pub fn failed(mut self, code: Code) {
        self.outcome = RequestOutcome::Refused(code);
    }

    /// It ended so.
    pub fn finish<T>(self, ended: &Result<T, omird_engine::Error>) {
        match ended {
            Ok(_) => self.done(),
            Err(error) => self.failed(error.code),
        }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if self.is_told {
            return;
        }
        let Inner { policy, sinks, .. } = &*self.router.0;
        if let RequestOutcome::Refused(code) = self.outcome
            && !(self.caller.retries && code.may_pass())
        {
            policy.note_rejected();
        }
        let line = AuditLine {
            caller: &self.caller,
            method: self.method,
            bytes: self.bytes,
            outcome: self.outcome,
            touched: &self.touched,
            is_change: self.is_change,
            took: self.began.elapsed(),
        };
        for sink in sinks {
            sink.note(&line);
        }
    }
}
