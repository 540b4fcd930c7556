//! Manifesto Memory 1.2.0: a store of Worlds, a verifier, a selector, and the trace helpers, for agents and for the Authority
//! that judges their Proposals. `docs/manifesto.md`.
//!
//! | file | holds |
//! |---|---|
//! | `methods` | the table, schemas and statuses |
//! | `about` | what documents say of each method |
//! | `exchange` | a message before a transport |
//! | `settings` | what a configuration sets |
//! | `request` | a request being read: JSON with every bound, and its members |
//! | `failure` | refusals, in the protocol's own words |
//! | `names` | ids of Worlds and tenants in the store |
//! | `episode` | a World as an Episode, and back |
//! | `store` | Worlds looked up and put |
//! | `snapshot` | live memories made into a World |
//! | `filter` | the filters of a selection or a snapshot |
//! | `selector` | selections |
//! | `judge` | proofs and traces, which need no store |
//!
//! What is pure is [`omir_core::manifesto`]. An Authority reaches nothing here but that: its scope opens no method that
//! looks into the store.

#![warn(unreachable_pub)]

mod about;
mod episode;
mod exchange;
mod failure;
mod filter;
mod judge;
mod methods;
mod names;
mod request;
mod selector;
mod settings;
mod snapshot;
mod store;
#[cfg(test)]
mod tests;

pub use self::exchange::Manifesto;
pub use self::methods::{
    ACTOR, ATTACH, AUTHORITY, EVALUATE, EXISTS, GET, HEALTH, KEYS, MANIFESTO, PROVE, PUT, SELECT,
    TRACE, VALIDATE, VERIFY_PROOF,
};
pub use self::settings::ManifestoSettings;
pub use omir_core::manifesto::Keys;
