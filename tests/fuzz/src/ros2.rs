//! Targets for what other nodes of a ROS graph send, and for files of interfaces.

pub mod interface;
pub mod message;
pub mod recording;
