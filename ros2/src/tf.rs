//! Positions of the robot's frames, as tf2 defines them: what `/tf` and `/tf_static` said in the last
//! seconds, and the transform between any two frames at any time of these.
//!
//! Frames and axes follow REP-103 and REP-105: metres, right-handed, each frame with one parent, so
//! that they form trees (`map` → `odom` → `base_link` → sensors). Semantics are those of tf2's
//! `BufferCore` unless a comment says otherwise. Nothing here has a clock: stamps come with the data.

mod buffer;
mod error;
mod feed;
mod frames;
mod history;
mod lookup;
pub mod transform;

pub use buffer::{Buffer, FrameInfo, Inserted, Limits};
pub use error::{InsertError, LookupError};
pub use feed::feed;
pub(crate) use frames::{LONGEST_NAME, normalised};
pub use transform::Transform;
