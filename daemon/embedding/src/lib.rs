//! Texts made into vectors: the seam, and the backends that need no runtime.
//!
//! The engine knows the trait [`Embedder`] and nothing of models. All of it is pure but [`StaticModel::open`], which reads a
//! folder once. Nothing panics, whatever bytes a model or a client brings.

#![warn(unreachable_pub)]

mod categories;
mod embedder;
mod given;
mod hashed;
mod model;
mod safetensors;
mod vector;
mod wordpiece;

pub use self::embedder::{Embedder, ModelName};
pub use self::given::{EMBEDDING_URL, Given, GivenFault, MAX_DIMS, parse_vector};
pub use self::hashed::Hashed;
pub use self::model::{ModelError, StaticModel};
pub use self::vector::{Bits, Probe, Vector};
