//! The seam to a server of language models. The program has one client for all protocols; a protocol knows what it asks, and
//! no address, key or socket.

use std::fmt;
use std::time::Instant;

/// A client of the one server that is configured.
pub trait ModelClient: Send + Sync {
    /// Posts JSON to a path below the server's, such as `/chat/completions`, and returns the JSON of the answer. It returns
    /// when the deadline has passed at the latest.
    ///
    /// # Errors
    /// Says how far the request came, and why there is no answer.
    fn post(&self, path: &str, body: Vec<u8>, deadline: Instant) -> Result<Vec<u8>, ModelFault>;
}

/// A request to a model without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFault {
    /// How far it came.
    pub reached: Reached,
    /// The fault, for the log.
    pub message: String,
}

/// How far a request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// No server got it.
    Nobody,
    /// The server refused it, and may take it later.
    RefusedForNow,
    /// The server refused it.
    Refused,
    /// The server got it, and its answer did not come whole in time. It may have been worked on, and may cost money.
    NoAnswer,
}

impl fmt::Display for ModelFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ModelFault {}
