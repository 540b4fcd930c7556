//! Messages of any type: read from CDR and written as CDR by the type alone.
//!
//! A message always fits its type: what is set is checked against the field, so that writing cannot
//! fail.

mod decode;
mod encode;
mod json;
mod path;
mod value;

pub use decode::DecodeError;
pub use path::{FieldPath, PathError};
pub(crate) use value::fit;
pub use value::{Message, Value};
