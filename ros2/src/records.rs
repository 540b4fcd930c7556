//! OMIR resources as messages of `omir_msgs` and back, without loss; requests of its services as the
//! parameters of `docs/keys.md`, and replies back.
//!
//! # How nothing is lost
//!
//! A typed field holds what it can: text without NUL, an instant in whole nanoseconds from 1970 to 2038,
//! the nearest double. That is *near* the value, and often it is the value. What the typed fields of a
//! message do not give back exactly goes into its field `json`, under the same names. On the way back both
//! are laid over each other; where both say something, what `json` says must be near what the field says,
//! and is then taken. Else a sender changed one of them, and the message is refused with the place.

mod field;
mod manifest;
mod overlay;
mod place;
mod pose;
mod reply;
mod request;
mod resource;
mod tables;

use std::fmt;
use std::sync::Arc;

use omir_core::operation::Operation;

use crate::interface::{ActionType, InterfaceError, MessageType, Registry, ServiceType};

pub use reply::{LEFT_OUT, Progress};
pub use request::Call;

/// The types of `omir_msgs`, and what is done with them.
#[derive(Clone, Debug)]
pub struct Records {
    resources: [Arc<MessageType>; 4],
    any: Arc<MessageType>,
    event: Arc<MessageType>,
    /// In the order of [`SERVED`].
    services: Vec<ServiceType>,
    import: ActionType,
}

/// The operations that have a service.
pub const SERVED: [Operation; 7] = [
    Operation::Remember,
    Operation::Recall,
    Operation::Forget,
    Operation::Anchor,
    Operation::Feedback,
    Operation::Export,
    Operation::Rebase,
];

/// Returns the name of a service's type: `omir_msgs/srv/Remember`.
pub fn type_name(operation: Operation) -> String {
    let name = operation.as_str();
    let (first, rest) = name.split_at(1);
    format!("omir_msgs/srv/{}{rest}", first.to_ascii_uppercase())
}

impl Records {
    /// Finds the types. Fails only if a folder of interface files replaced one with something else.
    pub fn new(registry: &Registry) -> Result<Self, InterfaceError> {
        let message = |name: &str| registry.message(&format!("omir_msgs/msg/{name}"));
        let service = |operation| registry.service(&type_name(operation));
        Ok(Self {
            resources: [
                message("MemoryRecord")?,
                message("Entity")?,
                message("Relationship")?,
                message("Episode")?,
            ],
            any: message("Resource")?,
            event: message("MemoryEvent")?,
            services: SERVED.into_iter().map(service).collect::<Result<_, _>>()?,
            import: registry.action("omir_msgs/action/Import")?,
        })
    }

    /// Returns the type of the service that asks for an operation, if it is [`SERVED`].
    pub fn service(&self, operation: Operation) -> Option<&ServiceType> {
        let at = SERVED.into_iter().position(|served| served == operation)?;
        self.services.get(at)
    }

    /// Returns each operation that is [`SERVED`], with the type of its service.
    pub fn services(&self) -> impl Iterator<Item = (Operation, &ServiceType)> {
        SERVED.into_iter().zip(&self.services)
    }

    /// `omir_msgs/action/Import`
    pub fn import(&self) -> &ActionType {
        &self.import
    }

    /// `omir_msgs/msg/MemoryEvent`
    pub fn event_type(&self) -> &Arc<MessageType> {
        &self.event
    }
}

/// A message that is no resource or no request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// JSON Pointer into what was sent, as in `/records/0/decay/half_life_hours`.
    pub path: String,
    /// The fault there.
    pub why: String,
}

impl Refused {
    fn new(path: impl Into<String>, why: impl fmt::Display) -> Self {
        Self { path: path.into(), why: why.to_string() }
    }

    fn within(mut self, outer: &str) -> Self {
        self.path.insert_str(0, outer);
        self
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", omir_core::pointer::displayed(&self.path), self.why)
    }
}

impl std::error::Error for Refused {}
