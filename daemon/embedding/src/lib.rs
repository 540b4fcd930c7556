//! Texts made into vectors: the seam, and the backends that need no runtime.
//!
//! The engine knows the trait [`Embedder`] and nothing of models. All of it is pure but what opens a model, which reads a folder
//! once. Nothing panics, whatever bytes a model or a client brings.

#![warn(unreachable_pub)]

mod categories;
mod embedder;
mod folder;
mod given;
mod hashed;
mod model;
#[cfg(feature = "onnx")]
mod onnx;
mod safetensors;
mod usual;
mod vector;
mod wordpiece;

pub use self::embedder::{Embedder, ModelName};
pub use self::folder::ModelError;
pub use self::given::{
    EMBEDDING_URL, Given, GivenFault, MAX_DIMS, VectorFault, is_model_name, parse_vector,
};
pub use self::hashed::Hashed;
pub use self::model::StaticModel;
#[cfg(feature = "onnx")]
pub use self::onnx::{NotEncoded, OnnxModel};
pub use self::usual::Usual;
pub use self::vector::{Bits, Probe, Vector};
