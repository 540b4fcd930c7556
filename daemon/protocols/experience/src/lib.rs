//! Experience and hints: an agent records what a task used and how it ended, and asks what is worth using before the next one.
//! `docs/experience.md`.
//!
//! An experience is a MemoryRecord that fades, is exported and is forgotten like any other. What it used are Entities. So hints
//! are a recall, and nothing is stored but what was reported.
//!
//! | file | holds |
//! |---|---|
//! | `methods`, `schema` | the table, with statuses; JSON Schemas |
//! | `exchange`, `parameters` | a message before a transport; parameters beside it |
//! | `answers`, `failure` | bodies and headers of answers; refusals in words |
//! | `recording`, `hinting`, `fetching` | the methods: `record`; `hints`; `experience`, `health` and `schema` |
//! | `shapes`, `check`, `ingest` | a message as it comes in: its shape, the check against it, a record read |
//! | `privacy`, `redact` | pseudonyms of people; secrets taken out of texts |
//! | `experience`, `resources`, `ids` | one experience; the resources that it is stored as; their names |
//! | `candidates`, `ranking`, `patterns` | hints: experiences to go by, hints made of them, kinds of tasks |
//! | `statistics`, `cache`, `relevance` | in memory: uses of nodes, answers of the last minute, hints that were taken |
//! | `shared`, `settings`, `health` | parts that all methods share; `[experience]`; the health of components |

#![warn(unreachable_pub)]

mod answers;
mod cache;
mod candidates;
mod check;
mod exchange;
mod experience;
mod failure;
mod fetching;
mod health;
mod hinting;
mod ids;
mod ingest;
mod methods;
mod parameters;
mod patterns;
mod privacy;
mod ranking;
mod recording;
mod redact;
mod relevance;
mod resources;
mod schema;
mod settings;
mod shapes;
mod shared;
mod statistics;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use self::exchange::{DESCRIPTION, Experiences};
pub use self::methods::{EXPERIENCE, FETCH, HEALTH, HINTS, READ, RECORD, SCHEMA, WRITE};
pub use self::settings::ExperienceSettings;
