//! Manifesto Memory 1.2.0: references to past Worlds, proofs of them, traces of their selection, and the judgement of an
//! Authority. Everything of that specification which is pure.
//!
//! Nothing here has a clock, a store or a network, and nothing can get one: the crate has none. A [`Verifier`] works on
//! what it is handed and on keys that are constants of it, so that the same arguments give the same proof, always.
//!
//! | part | holds |
//! |---|---|
//! | `world` | Worlds, their canonical form without stored digests, and hash and tree over that |
//! | `check` | the validators, with every fault and its place |
//! | `proof` | proofs as they are written, and read back |
//! | `verifier` | keys, and proving |
//! | `verdict` | verifying, and the verdict on a document from a stranger |
//! | `selection` | requests for a selection, and the filters they state |
//! | `trace` | traces: made, attached to a Proposal, found there |
//! | `authority` | policies over a trace |
//!
//! ```
//! use omir_core::decode::Limits;
//! use omir_core::json;
//! use omir_core::manifesto::{Keys, Method, Verifier, World};
//!
//! let world = json::from_slice(br#"{"worldId": "w-1", "room": "kitchen"}"#, &Limits::default())?;
//! let world = World::from_value(world)?;
//! let keys = Keys::signing([7; 32]);
//! let proven = Verifier::new(&keys, Method::Signature).prove("w-1", &world);
//! assert!(proven.valid);
//! assert!(keys.verify(&proven.proof.expect("a valid one has it")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod authority;
mod check;
mod proof;
mod selection;
mod trace;
mod verdict;
mod verifier;
mod world;

#[cfg(test)]
mod tests;

pub use self::authority::{Policy, evaluate};
pub use self::check::{
    Fault, MAX_FAULTS, MAX_SELECTED, actor_ref, memory_ref, memory_trace, selected_memory,
    selection_result, verification_evidence, verification_proof,
};
pub use self::proof::Proof;
pub use self::selection::{Constraints, DEFAULT_RESULTS, MAX_RESULTS, SelectionRequest};
pub use self::trace::{AttachFault, attach_to_proposal, create, get_from_proposal, has_trace};
pub use self::verdict::{MAX_PROOF_BYTES, VerifyFault, read_proof, verdict};
pub use self::verifier::{Keys, Method, ProveResult, Verifier};
pub use self::world::{MAX_DEPTH, MAX_WORLD_ID, World, WorldFault, is_world_id};
