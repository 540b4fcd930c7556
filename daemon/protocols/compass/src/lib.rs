//! COMPASS stage memory for omird: memories of agents by task and stage, with what must be remembered kept word for word.
//!
//! One JSON-RPC 2.0 message or batch is one request of a transport. The protocol takes it apart, has each call admitted by
//! the router, and works on it. `docs/compass.md` has the methods.
//!
//! | module | holds |
//! |---|---|
//! | `exchange`, `jsonrpc`, `methods` | messages, calls, and the table of methods |
//! | `params`, `words`, `failure`, `who` | parameters, closed lists, errors, callers |
//! | `state`, `names`, `store` | what is kept, under which name, read and written with versions |
//! | `stages`, `score`, `similarity`, `compress`, `context`, `patterns` | decisions: plain functions of plain data |
//! | `asking`, `paying`, `model`, `embedding`, `vectors` | a server of models: how it is asked and paid, and what for |
//! | `work` | what each method does |

#![warn(unreachable_pub)]

mod asking;
mod call;
mod compress;
mod context;
mod due;
mod embedding;
mod exchange;
mod failure;
mod heard;
mod jsonrpc;
mod ledger;
mod lookout;
mod methods;
mod model;
mod money;
mod names;
mod params;
mod patient;
mod patterns;
mod paying;
mod score;
mod settings;
mod shared;
mod signals;
mod similarity;
mod stages;
mod state;
mod store;
#[cfg(test)]
mod tests;
mod uses;
mod vectors;
mod watch;
mod who;
mod words;
mod work;

pub use self::exchange::{Compass, DESCRIPTION};
pub use self::methods::{COMPASS, JSONRPC};
pub use self::settings::Settings as CompassSettings;
pub use self::who::{ACE, AGENT, OPERATOR};
/// Counters of tokens, for [`CompassSettings::token_counter`].
pub use omird_text::{Counter, TokenCounter};
