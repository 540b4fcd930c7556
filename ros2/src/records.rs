//! OMIR resources as messages of `omir_msgs` and back, without loss; requests of its services as the
//! parameters of `docs/keys.md`, and replies back.
//!
//! # How nothing is lost
//!
//! A typed field holds what it can: text without NUL, an instant in whole nanoseconds from 1970 to 2038,
//! the nearest double. That is *near* the value, and often it is the value. What the typed fields of a
//! message do not give back exactly goes into its field `json`, under the same names. On the way back both
//! are laid over each other; where both say something, what `json` says must be near what the field says,
//! and is then taken. Else somebody changed one of them, and the message is refused with the place.

mod field;
mod overlay;
mod place;
mod pose;
mod reply;
mod request;
mod resource;
mod tables;

use std::fmt;
use std::sync::Arc;

use crate::interface::{ActionType, InterfaceError, MessageType, Registry, ServiceType};

pub use reply::{LEFT_OUT, Progress};
pub use request::Call;

/// The types of `omir_msgs`, and what is done with them.
#[derive(Clone, Debug)]
pub struct Records {
    resources: [Arc<MessageType>; 4],
    any: Arc<MessageType>,
    event: Arc<MessageType>,
    services: [ServiceType; Operation::ALL.len()],
    import: ActionType,
}

/// The memory's services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // The names are those of docs/keys.md.
pub enum Operation {
    Remember,
    Recall,
    Forget,
    Anchor,
    Feedback,
    Export,
    Rebase,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Remember,
        Self::Recall,
        Self::Forget,
        Self::Anchor,
        Self::Feedback,
        Self::Export,
        Self::Rebase,
    ];

    /// The name in `docs/keys.md`, which is that of the service too: `remember`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Remember => "remember",
            Self::Recall => "recall",
            Self::Forget => "forget",
            Self::Anchor => "anchor",
            Self::Feedback => "feedback",
            Self::Export => "export",
            Self::Rebase => "rebase",
        }
    }

    /// The type of the service: `omir_msgs/srv/Remember`.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Remember => "omir_msgs/srv/Remember",
            Self::Recall => "omir_msgs/srv/Recall",
            Self::Forget => "omir_msgs/srv/Forget",
            Self::Anchor => "omir_msgs/srv/Anchor",
            Self::Feedback => "omir_msgs/srv/Feedback",
            Self::Export => "omir_msgs/srv/Export",
            Self::Rebase => "omir_msgs/srv/Rebase",
        }
    }
}

impl Records {
    /// Finds the types. Fails only if a folder of interface files replaced one with something else.
    pub fn new(registry: &Registry) -> Result<Self, InterfaceError> {
        let message = |name: &str| registry.message(&format!("omir_msgs/msg/{name}"));
        let service = |operation: Operation| registry.service(operation.type_name());
        use Operation as Op;
        Ok(Self {
            resources: [
                message("MemoryRecord")?,
                message("Entity")?,
                message("Relationship")?,
                message("Episode")?,
            ],
            any: message("Resource")?,
            event: message("MemoryEvent")?,
            services: [
                service(Op::Remember)?,
                service(Op::Recall)?,
                service(Op::Forget)?,
                service(Op::Anchor)?,
                service(Op::Feedback)?,
                service(Op::Export)?,
                service(Op::Rebase)?,
            ],
            import: registry.action("omir_msgs/action/Import")?,
        })
    }

    /// The type of the service that asks for this.
    pub fn service(&self, operation: Operation) -> &ServiceType {
        &self.services[operation as usize]
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

/// Why a message is no resource or no request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// JSON Pointer into what was sent, as in `/records/0/decay/half_life_hours`.
    pub path: String,
    /// The fault there.
    pub why: String,
}

impl Refused {
    fn new(path: impl Into<String>, why: impl Into<String>) -> Self {
        Self { path: path.into(), why: why.into() }
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
