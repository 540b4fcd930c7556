//! A node of our own in the ROS graph, over a Zenoh session, as `rmw_zenoh_cpp` has it.
//!
//! The wire is that of `docs/design.md` and the sources of <https://github.com/ros2/rmw_zenoh>,
//! branch `jazzy`; see [`Distribution`] for the others. Everything here is dynamic: types come from
//! [`crate::interface`], messages from [`crate::message`].
//!
//! Zenoh's threads only put what comes into bounded queues; decoding and callbacks happen on threads
//! of the entities. Dropping an entity, or the [`Node`], takes it out of the graph.

mod action;
mod attachment;
mod client;
mod describe;
mod distribution;
mod element;
mod error;
mod event;
mod latched;
mod name;
mod node;
mod parameters;
mod publisher;
mod qos;
mod queue;
mod refusals;
mod remap;
mod service;
mod subscription;
mod token;
mod view;

pub use action::{ActionConfig, ActionServer, Ending, Goal, GoalHandler, GoalId, Status};
pub use client::{CallError, Client};
pub use describe::DescribeError;
pub use distribution::{Distribution, UnknownDistribution};
pub use error::NodeError;
pub use event::{Counts, Event, OnEvent, OtherType};
pub use name::NameError;
pub use node::{Clock, Node, NodeConfig, Types};
pub use parameters::{Parameter, ParameterServices};
pub use publisher::Publisher;
pub use qos::{Durability, History, Liveliness, Period, Qos, QosError, Reliability};
pub use refusals::Refused;
pub use remap::{Names, Rule};
pub use service::{Request, Server};
pub use subscription::{Received, Subscription};
pub use token::{Endpoint, Entity, EntityKind, Gid, TokenError};
pub use view::Graph;
