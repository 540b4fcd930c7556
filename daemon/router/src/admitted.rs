//! An admitted request, from the router's decision to its audit line. Invariant 37 of ARCHITECTURE.md.

use std::time::{Duration, Instant};

use omir_core::code::Code;

use super::caller::Caller;
use super::method::Method;
use super::refusal::Refusal;
use super::{AUDIT, Router};
use omird_engine::ImportPermit;

/// A request that may be worked on. Whoever has answered it says how it ended; one that is dropped before counts as given
/// up.
pub struct Admitted {
    router: Router,
    caller: Caller,
    method: &'static Method,
    bytes: usize,
    permit: Option<ImportPermit>,
    began: Instant,
    end: End,
}

/// The end of a request.
#[derive(Clone, Copy)]
enum End {
    /// Nobody has answered it.
    GivenUp,
    Answered,
    Refused(Code),
}

impl Admitted {
    pub(super) fn new(
        router: Router,
        caller: Caller,
        method: &'static Method,
        bytes: usize,
    ) -> Self {
        let (permit, began, end) = (None, Instant::now(), End::GivenUp);
        Self { router, caller, method, bytes, permit, began, end }
    }

    pub(super) fn put_permit(&mut self, permit: Option<ImportPermit>) {
        self.permit = permit;
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
    /// `ReadOnly`.
    pub fn expect_change(&self) -> Result<(), Refusal> {
        self.router.check_mode()
    }

    /// It was answered.
    pub fn done(mut self) {
        self.end = End::Answered;
    }

    /// It was refused, or failed.
    pub fn failed(mut self, code: Code) {
        self.end = End::Refused(code);
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
        let outcome = match self.end {
            End::GivenUp => "given up",
            End::Answered => "ok",
            End::Refused(code) => {
                if !(self.caller.retries && code.may_pass()) {
                    self.router.0.policy.note_rejected();
                }
                code.as_str()
            }
        };
        let (caller, method, bytes) = (&self.caller, self.method, self.bytes);
        let took = self.began.elapsed();
        self.router.0.policy.audit(&AuditLine { caller, method, bytes, outcome, took });
    }
}

/// The record of a request that is over.
#[derive(Debug, Clone, Copy)]
pub struct AuditLine<'a> {
    /// The caller.
    pub caller: &'a Caller,
    /// The method that was asked for.
    pub method: &'static Method,
    /// The bytes it came in.
    pub bytes: usize,
    /// `ok`, `given up`, or the code of the refusal.
    pub outcome: &'static str,
    /// The time it took, from the router's decision to the answer.
    pub took: Duration,
}

impl AuditLine<'_> {
    pub(super) fn log(&self) {
        tracing::debug!(
            target: AUDIT,
            caller = &*self.caller.name,
            transport = self.caller.transport,
            tenant = self.caller.tenant.as_deref(),
            protocol = self.method.protocol,
            method = self.method.name,
            bytes = self.bytes,
            outcome = self.outcome,
            micros = u64::try_from(self.took.as_micros()).unwrap_or(u64::MAX),
        );
    }
}
