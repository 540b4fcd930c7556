//! Messages of any type: read from CDR and written as CDR by the type alone.
//!
//! A message always fits its type: what is set is checked against the field, so that writing cannot
//! fail.

mod decode;
mod encode;
mod fit;
mod json;
mod path;
mod value;

pub use decode::DecodeError;
pub(crate) use fit::{TypeMismatch, fit};
pub use path::{FieldPath, PathError};
pub use value::{Message, Value};
