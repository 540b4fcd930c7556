//! ROS types without generated code: parsed from `.msg`, `.srv` and `.action` text or
//! taken from a type description, with the hash (RIHS01) that ROS nodes compare.
//!
//! A service is two messages and an event, an action is three messages, two services and a feedback
//! message; all of them are structures with fields, as `rosidl` derives them, so one resolver and one
//! hash serve for all.

mod bundled;
mod description;
mod error;
mod parse;
mod registry;
mod type_name;
mod types;

pub use description::message_type;
pub use error::InterfaceError;
pub use hiroz_schema::{TypeDescriptionMsg, TypeHash};
pub use registry::Registry;
pub use type_name::{Kind, TypeName};
pub use types::{ActionType, Constant, Element, Field, FieldType, MessageType, ServiceType, Shape};
