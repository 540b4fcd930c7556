//! ROS 2 for omird: the memory as services, topics and transforms over `rmw_zenoh`.

#[cfg(feature = "node")]
pub mod graph;
pub mod interface;
#[cfg(feature = "node")]
pub mod memory;
pub mod message;
#[cfg(feature = "node")]
pub mod participant;
pub mod place;
#[cfg(feature = "recordings")]
pub mod recording;
pub mod records;
pub mod rules;
pub mod stamp;
pub mod tf;
