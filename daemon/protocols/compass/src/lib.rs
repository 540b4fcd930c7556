//! COMPASS stage memory for omird: memories of agents by task and stage, with what must be remembered kept word for word.
//!
//! One JSON-RPC 2.0 message or batch is one request of a transport. The protocol takes it apart, has each call admitted by
//! the router, and works on it. `docs/compass.md` has the methods.
//!
//! | module | holds |
//! |---|---|
//! | `exchange`, `jsonrpc` | messages taken apart into calls |
//! | `methods` | the tables of methods; a file for each group of them, with what they do |
//! | `call`, `params`, `who` | one call: its parameters and its caller |
//! | `failure`, `words` | errors; closed lists of words |
//! | `settings`, `shared` | `[compass]`; parts that all calls share |
//! | `state`, `names`, `store` | what is kept, under which name, read and written with versions |
//! | `stages`, `score`, `similarity`, `compress`, `context`, `patterns`, `repetition` | decisions that methods make: plain functions of plain data, without a store or a clock |
//! | `active_memories`, `uses` | hints in memory: the active memories of tasks and agents in order of eviction; uses of memories by tasks |
//! | `signals` | signals to supervisors of the agents |
//! | `threads`, `queues` | the threads that look for patterns and have vectors made; the ways to them |
//! | `model` | a server of models: how it is asked, for summaries and vectors; threads for calls that wait for it |
//! | `money` | the budget of a month; a request that is paid for |

#![warn(unreachable_pub)]

mod active_memories;
mod call;
mod compress;
mod context;
mod exchange;
mod failure;
mod jsonrpc;
mod methods;
mod model;
mod money;
mod names;
mod params;
mod patterns;
mod queues;
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
mod threads;
mod uses;
mod who;
mod words;

pub use self::exchange::{Compass, DESCRIPTION};
pub use self::methods::{COMPASS, JSONRPC};
pub use self::settings::Settings as CompassSettings;
pub use self::who::{ACE, AGENT, OPERATOR};
/// Counters of tokens, for [`CompassSettings::token_counter`].
pub use omird_text::{Counter, TokenCounter};
