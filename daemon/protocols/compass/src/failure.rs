//! Reasons not to answer, as JSON-RPC errors of COMPASS: `docs/compass.md`, "Errors".

use omir_core::code::Code;
use omir_core::value::Value;
use omird_engine::Error;
use omird_router::{Method, Refusal, worded_for};

use crate::jsonrpc::{INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RpcError};

/// A reason, with the code that audit lines tell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    /// The code of the audit line.
    pub(crate) code: Code,
    /// The error of the response.
    pub(crate) error: RpcError,
    /// Another client was faster: working it out again may help.
    is_race: bool,
}

/// Unknown, or of another agent.
const NOT_FOUND: i32 = -32001;
const CONFLICT: i32 = -32002;
const TOO_LARGE: i32 = -32003;
const STORAGE_FULL: i32 = -32004;
const BUSY: i32 = -32005;
const BUDGET_EXCEEDED: i32 = -32006;
const COMPRESSION_FAILED: i32 = -32007;
const CONTEXT_BUDGET_TOO_SMALL: i32 = -32008;
const RATE_LIMITED: i32 = -32009;
const READ_ONLY: i32 = -32010;
const UNAUTHENTICATED: i32 = -32103;
const UNAUTHORIZED: i32 = -32104;

/// The time after which a full queue may have room again, in milliseconds.
const RETRY_MS: u64 = 200;

impl Failure {
    fn new(code: Code, number: i32, message: impl Into<String>) -> Self {
        Self { code, error: RpcError::new(number, message), is_race: false }
    }

    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.error.data.insert(name, value);
        self
    }

    /// A parameter is wrong; `path` is its JSON Pointer.
    pub(crate) fn params(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Code::InvalidQuery, INVALID_PARAMS, message).with("path", path.into())
    }

    /// There is no such method.
    pub(crate) fn no_method(name: &str) -> Self {
        let message = format!("there is no method {name:?}; docs/compass.md lists them");
        Self::new(Code::InvalidQuery, METHOD_NOT_FOUND, message)
    }

    /// Nothing of that id, or not of this agent: the answer does not tell which.
    pub(crate) fn not_found(what: &str, id: &str) -> Self {
        Self::new(Code::NotFound, NOT_FOUND, format!("there is no {what} {id:?}"))
    }

    /// A race was lost, or something else is there.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(Code::Conflict, CONFLICT, message)
    }

    /// Another client changed it in between.
    pub(crate) fn race(message: impl Into<String>) -> Self {
        Self { is_race: true, ..Self::conflict(message) }
    }

    /// Returns true if another client was faster, so that working it out again may help.
    pub(crate) fn is_race(&self) -> bool {
        self.is_race
    }

    /// Above a bound.
    pub(crate) fn too_large(path: &str, message: impl Into<String>) -> Self {
        Self::new(Code::TooLarge, TOO_LARGE, message).with("path", path)
    }

    /// The caller may not.
    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(Code::Unauthorized, UNAUTHORIZED, message)
    }

    /// A model was insisted on, and there is none.
    pub(crate) fn no_model() -> Self {
        let message = "a model was insisted on (`require_model`), and this daemon has none: see [compass.model] of its configuration";
        Self::new(Code::InvalidQuery, BUDGET_EXCEEDED, message)
    }

    /// A model was insisted on, and the money of the month is spent.
    pub(crate) fn no_money() -> Self {
        let message = "a model was insisted on (`require_model`), and the month's budget for models has no room for it";
        Self::new(Code::InvalidQuery, BUDGET_EXCEEDED, message)
    }

    /// There is nothing to compress, or not without losing facts.
    pub(crate) fn not_compressed(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidQuery, COMPRESSION_FAILED, message)
    }

    /// The parts that are never cut take more tokens than the budget has.
    pub(crate) fn budget_too_small(needed: usize, budget: usize) -> Self {
        let message = format!(
            "what is never cut takes {needed} tokens, and the budget has {budget}; raise token_budget"
        );
        let failure = Self::new(Code::InvalidQuery, CONTEXT_BUDGET_TOO_SMALL, message);
        failure.with("needed", needed).with("budget", budget)
    }

    /// Returns true if the parts that are never cut are above the budget.
    pub(crate) fn is_of_budget(&self) -> bool {
        self.error.code == CONTEXT_BUDGET_TOO_SMALL
    }

    /// The store or a state is not as it should be.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::Internal, INTERNAL_ERROR, message)
    }

    /// Words a refusal of the router.
    pub(crate) fn of_refusal(refusal: Refusal, method: &Method) -> Self {
        let Error { code, message, .. } = worded_for(refusal, method);
        let number = match refusal {
            Refusal::ReadOnly | Refusal::OnlyReads => READ_ONLY,
            Refusal::Unauthenticated(_) => UNAUTHENTICATED,
            Refusal::TooLarge { .. } => TOO_LARGE,
            Refusal::TooOften { .. } => RATE_LIMITED,
            Refusal::ImportUnderWay => BUSY,
            Refusal::Scope { .. }
            | Refusal::WrongToken
            | Refusal::NoToken
            | Refusal::Locked { .. } => UNAUTHORIZED,
        };
        let failure = Self::new(code, number, message);
        match refusal {
            Refusal::TooOften { retry_after } => {
                let wait = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX);
                failure.with("retry_after_ms", wait)
            }
            _ => failure,
        }
    }
}

impl From<Error> for Failure {
    /// Words an error of the engine. A resource or query that it cannot take was made here, so that is our fault.
    fn from(error: Error) -> Self {
        let Error { code, message, .. } = error;
        let number = match code {
            Code::NotFound => NOT_FOUND,
            Code::Conflict => CONFLICT,
            Code::TooLarge => TOO_LARGE,
            Code::StorageFull => STORAGE_FULL,
            Code::Busy => BUSY,
            Code::RateLimited => RATE_LIMITED,
            Code::Unauthenticated => UNAUTHENTICATED,
            Code::Unauthorized => READ_ONLY,
            _ => INTERNAL_ERROR,
        };
        let failure = Self::new(code, number, message);
        if number == BUSY { failure.with("retry_after_ms", RETRY_MS) } else { failure }
    }
}
