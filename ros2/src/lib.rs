//! ROS 2 for omird: the memory as services, topics and transforms over `rmw_zenoh`.

#[cfg(feature = "node")]
pub mod graph;
pub mod interface;
pub mod message;
pub mod place;
pub mod records;
pub mod rules;
pub mod stamp;
pub mod tf;
