//! COMPASS stage memory for omird: memories of agents by task and stage, with what must be remembered kept word for word.
//!
//! One JSON-RPC 2.0 message or batch is one request of a transport. The protocol takes it apart, has each call admitted by
//! the router, and works on it. `docs/compass.md` has the methods.
//!
//! | module | holds |
//! |---|---|
//! | `exchange`, `jsonrpc`, `methods`, `call` | messages, calls, the table of methods, and a call being worked on |
//! | `params`, `words`, `failure`, `who` | parameters, closed lists, errors, callers |
//! | `shared`, `settings` | what all calls share; what a configuration sets |
//! | `state`, `names`, `store` | what is kept, under which name, read and written with versions |
//! | `ledger`, `uses` | hints in memory alone: active memories in the order of their worth, and uses |
//! | `stages`, `score`, `similarity`, `compress`, `context`, `patterns`, `repetition` | decisions: plain functions of plain data |
//! | `asking`, `paying`, `money` | a server of models: how it is asked and paid |
//! | `model`, `embedding` | what it is asked for: summaries, vectors |
//! | `waiting_pool` | threads for calls that wait for it |
//! | `due`, `vectors` | the thread that has vectors made of memories, and the way to it |
//! | `pattern_thread`, `pattern_queue` | the thread that looks for patterns among errors, and the way to it |
//! | `signals` | what is told to whoever watches over agents |
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
mod jsonrpc;
mod ledger;
mod methods;
mod model;
mod money;
mod names;
mod params;
mod pattern_queue;
mod pattern_thread;
mod patterns;
mod paying;
mod repetition;
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
mod waiting_pool;
mod who;
mod words;
mod work;

pub use self::exchange::{Compass, DESCRIPTION};
pub use self::methods::{COMPASS, JSONRPC};
pub use self::settings::Settings as CompassSettings;
pub use self::who::{ACE, AGENT, OPERATOR};
/// Counters of tokens, for [`CompassSettings::token_counter`].
pub use omird_text::{Counter, TokenCounter};
