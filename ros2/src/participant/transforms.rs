//! `/tf` and `/tf_static` into the buffer, and where frames are right now.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use crate::message::Message;
use crate::stamp::Stamp;
use crate::tf::{Buffer, LookupError, Transform, feed, normalised};

/// The transforms of the graph, shared by whoever asks for them.
#[derive(Debug)]
pub struct Frames {
    buffer: RwLock<Buffer>,
    fixed: String,
    /// The robot's clock, as nanoseconds.
    stale_after: Duration,
    refused: AtomicU64,
}

impl Frames {
    /// Empty; poses go to the frame `fixed`.
    pub(super) fn new(fixed: &str, keep: Duration) -> Self {
        Self {
            buffer: RwLock::new(Buffer::new(keep)),
            fixed: normalised(fixed).unwrap_or(fixed).to_owned(),
            stale_after: keep,
            refused: AtomicU64::new(0),
        }
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, Buffer> {
        self.buffer.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a `tf2_msgs/TFMessage`.
    pub(super) fn take(&self, message: &Message, is_static: bool, now: Stamp) {
        let mut buffer = self.buffer.write().unwrap_or_else(PoisonError::into_inner);
        if buffer.clock(now) {
            tracing::info!("the clock went back: transforms begin anew");
        }
        for error in feed(&mut buffer, message, is_static) {
            // Once is worth a line, a hundred a second are not.
            if self.refused.fetch_add(1, Ordering::Relaxed) == 0 {
                tracing::warn!(%error, "a transform is refused; more of them are only counted");
            }
        }
    }

    /// How many transforms were refused.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// The fixed frame, and the pose of `frame` in it by the latest transforms. `None` for the fixed
    /// frame itself, and where no transform ties the two.
    ///
    /// # Errors
    /// Why there is none though the frames are tied; above all that the latest is too old by now.
    pub fn fixed(&self, frame: &str, now: Stamp) -> Result<Option<(String, Transform)>, String> {
        let frame = normalised(frame).unwrap_or(frame);
        if frame == self.fixed {
            return Ok(None);
        }
        match self.read().latest(&self.fixed, frame) {
            Ok((transform, at)) => {
                let age = now.nanos_since(at);
                if at != Stamp::ZERO && i128::from(age) > self.stale_after.as_nanos().cast_signed()
                {
                    return Err(format!(
                        "where {frame:?} is in {:?} was last heard of {:.1} s ago, and tf does not \
                         guess; is the node that publishes it still there?",
                        self.fixed,
                        age as f64 / 1e9
                    ));
                }
                Ok(Some((self.fixed.clone(), transform)))
            }
            Err(LookupError::UnknownFrame { .. } | LookupError::Unconnected { .. }) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The latest pose in the fixed frame of every frame that `is_wanted`.
    pub(super) fn all(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<(String, Transform)> {
        let buffer = self.read();
        let names = buffer.frames().map(|frame| frame.name.to_owned());
        names
            .filter(|name| is_wanted(name))
            .filter_map(|name| {
                let (transform, _) = buffer.latest(&self.fixed, &name).ok()?;
                Some((name, transform))
            })
            .collect()
    }
}
