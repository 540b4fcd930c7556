//! Akashik 0.1.0-draft, levels 0 to 3: a field of memory units that agents and robots share. `docs/akashik.md`.
//!
//! | file | holds |
//! |---|---|
//! | `methods` | the tables of methods |
//! | `exchange` | a message before a transport |
//! | `envelope`, `params`, `words` | what comes in, read |
//! | `failure` | errors, to the letter of the draft |
//! | `types`, `log`, `model` | things of a field, entries of its log, and what they add up to |
//! | `machines`, `clock`, `rights` | the rules, as tables and plain functions |
//! | `operation_context`, `operations` | one operation being decided; the twelve operations |
//! | `field` | the one way in which a field changes |
//! | `store`, `names` | a field as memories of omird |
//! | `push`, `announce`, `tools` | notifications; those that anybody may hear of; the tools of MCP |
//! | `meaning`, `nearby`, `claims` | vectors and tokens; which units are near to one; which oppose each other |
//! | `answers`, `fingerprint` | shapes of answers; fingerprints of messages and units |

#![warn(unreachable_pub)]

mod announce;
mod answers;
mod claims;
mod clock;
mod envelope;
mod exchange;
mod failure;
mod field;
mod fingerprint;
mod log;
mod machines;
mod meaning;
mod methods;
mod model;
mod names;
mod nearby;
mod operation_context;
mod operations;
mod params;
mod push;
mod rights;
mod store;
#[cfg(test)]
mod tests;
mod tools;
mod types;
mod words;

pub use self::exchange::{Akashik, DESCRIPTION, NoListener};
pub use self::methods::{AGENT, AGENTS, AKASHIK, CONFLICTS, EVENTS, MESSAGE, STATUS, UNIT};
pub use self::push::{Listening, Push, Pushes};
