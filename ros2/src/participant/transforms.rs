//! `/tf` and `/tf_static` into the buffer, and where frames are right now.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard};

use crate::message::Message;
use crate::stamp::Stamp;
use crate::tf::{Buffer, LookupError, Transform, feed, normalised};

/// The transforms of the graph, shared by all that ask for them.
#[derive(Debug)]
pub struct Frames {
    buffer: RwLock<Buffer>,
    fixed: String,
    /// A pose older than this is no longer where something is.
    stale_after: Duration,
    /// True if time is that of a simulation, which may stand still.
    is_simulated: bool,
    /// The newest stamp of each frame that moves, and when that came.
    heard: Mutex<HashMap<String, (Stamp, Instant)>>,
    refused: AtomicU64,
}

/// The pose of a frame in the fixed frame that cannot be told.
#[derive(Clone, Debug, PartialEq)]
pub enum FixedError {
    /// The latest transform is too old.
    Stale {
        /// The frame.
        frame: String,
        /// The fixed frame.
        fixed: String,
        /// Age of the transform, nanoseconds.
        age: i64,
    },
    /// The lookup failed.
    Lookup(LookupError),
}

impl fmt::Display for FixedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale { frame, fixed, age } => write!(
                f,
                "where {frame:?} is in {fixed:?} was last heard of {:.1} s ago, and tf does not guess; is the node that \
                 publishes it still there?",
                *age as f64 / 1e9
            ),
            Self::Lookup(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FixedError {}

impl Frames {
    /// Empty; poses go to the frame `fixed`.
    pub(super) fn new(fixed: &str, keep: Duration, is_simulated: bool) -> Self {
        Self {
            buffer: RwLock::new(Buffer::new(keep)),
            fixed: normalised(fixed).unwrap_or(fixed).to_owned(),
            stale_after: keep,
            is_simulated,
            heard: Mutex::default(),
            refused: AtomicU64::new(0),
        }
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, Buffer> {
        self.buffer.read()
    }

    /// The simulation shows this time. Told apart from the daemon's own, which waits where a clock goes
    /// back by seconds: what moved before the simulation began again must not be mixed with what moves now.
    pub(super) fn shown(&self, now: Stamp) {
        let mut buffer = self.buffer.write();
        self.follow(&mut buffer, now);
    }

    fn follow(&self, buffer: &mut Buffer, now: Stamp) {
        if buffer.clock(now) {
            tracing::info!("the clock went back: transforms begin again");
            self.heard().clear();
        }
    }

    /// Takes in a `tf2_msgs/TFMessage`.
    pub(super) fn take(&self, message: &Message, is_static: bool, now: Stamp) {
        let mut buffer = self.buffer.write();
        if !self.is_simulated {
            self.follow(&mut buffer, now);
        }
        for error in feed(&mut buffer, message, is_static) {
            // Once is worth a line, a hundred a second are not.
            if self.refused.fetch_add(1, Ordering::Relaxed) == 0 {
                tracing::warn!(%error, "a transform is refused; more of them are only counted");
            }
        }
        if !is_static {
            self.note_heard(&buffer, message);
        }
    }

    /// A stamp that is sent again and again is no news.
    fn note_heard(&self, buffer: &Buffer, message: &Message) {
        let mut heard = self.heard();
        for one in message.list("transforms").unwrap_or_default() {
            let child = one.as_message().and_then(|one| one.text("child_frame_id"));
            let Some(child) = child.and_then(normalised) else { continue };
            let Some(newest) = buffer.newest(child) else { continue };
            match heard.get_mut(child) {
                Some((stamp, _)) if *stamp == newest => {}
                Some(known) => *known = (newest, Instant::now()),
                None => drop(heard.insert(child.to_owned(), (newest, Instant::now()))),
            }
        }
    }

    /// The frame that memories lie in.
    pub(super) fn fixed_frame(&self) -> &str {
        &self.fixed
    }

    fn heard(&self) -> MutexGuard<'_, HashMap<String, (Stamp, Instant)>> {
        self.heard.lock()
    }

    /// Nanoseconds since the robot was where the transforms of that stamp say.
    ///
    /// That is since they came: their stamps are of the clocks of others, and ours may not know the time
    /// yet. Only in a simulation, which may stand still, it is by the clock.
    fn age(&self, at: Stamp, now: Stamp) -> i64 {
        let heard = self.heard();
        let came = heard.values().find(|(stamp, _)| *stamp == at).map(|(_, came)| came.elapsed());
        match came.filter(|_| !self.is_simulated) {
            Some(age) => i64::try_from(age.as_nanos()).unwrap_or(i64::MAX),
            None => now.nanos_since(at),
        }
    }

    /// Number of transforms that were refused.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// The fixed frame, and the pose of `frame` in it by the latest transforms. `None` for the fixed
    /// frame itself, and where no transform ties the two.
    ///
    /// # Errors
    /// The frames are tied, but the latest pose is too old by now, or the lookup failed.
    pub fn fixed(
        &self,
        frame: &str,
        now: Stamp,
    ) -> Result<Option<(String, Transform)>, FixedError> {
        let frame = normalised(frame).unwrap_or(frame);
        if frame == self.fixed {
            return Ok(None);
        }
        match self.read().latest(&self.fixed, frame) {
            Ok((transform, at)) => {
                let age = self.age(at, now);
                if at != Stamp::ZERO && i128::from(age) > self.stale_after.as_nanos().cast_signed()
                {
                    let (frame, fixed) = (frame.to_owned(), self.fixed.clone());
                    return Err(FixedError::Stale { frame, fixed, age });
                }
                Ok(Some((self.fixed.clone(), transform)))
            }
            Err(LookupError::UnknownFrame { .. } | LookupError::Unconnected { .. }) => Ok(None),
            Err(error) => Err(FixedError::Lookup(error)),
        }
    }

    /// Returns the latest position in the fixed frame of every resting frame that `is_wanted`.
    pub(super) fn all_resting(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<(String, Transform)> {
        let buffer = self.read();
        let names = buffer.frames().map(|frame| frame.name.to_owned());
        names
            .filter(|name| is_wanted(name))
            .filter_map(|name| {
                let transform = buffer.resting(&self.fixed, &name, Stamp::MAX).ok()?;
                Some((name, transform))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::Registry;

    fn tf(sec: i64) -> Message {
        let types = Registry::standard();
        let one = |name: &str| Message::new(&types.message(name).unwrap());
        let mut transform = one("geometry_msgs/msg/TransformStamped");
        transform.set("header.frame_id", "map").unwrap();
        transform.set("header.stamp.sec", sec).unwrap();
        transform.set("child_frame_id", "base_link").unwrap();
        let mut message = one("tf2_msgs/msg/TFMessage");
        let list = crate::message::Value::List(vec![crate::message::Value::Message(transform)]);
        message.set("transforms", list).unwrap();
        message
    }

    fn at(sec: i64) -> Stamp {
        Stamp::from_nanos(sec * 1_000_000_000)
    }

    #[test]
    fn who_does_not_know_the_time_knows_where_the_robot_is_all_the_same() {
        // The system began in 1970; the daemon goes on from when it was shut down.
        let (booted, dated) = (100, 1_780_000_000);
        let frames = Frames::new("map", Duration::from_secs(10), false);
        frames.take(&tf(booted), false, at(dated));
        assert!(frames.fixed("base_link", at(dated)).unwrap().is_some());
        let frames = Frames::new("map", Duration::from_millis(1), false);
        frames.take(&tf(booted), false, at(dated));
        std::thread::sleep(Duration::from_millis(2));
        // Said once more it is no newer.
        frames.take(&tf(booted), false, at(dated));
        let why = frames.fixed("base_link", at(booted)).unwrap_err().to_string();
        assert!(why.contains("last heard of"), "{why}");
    }

    #[test]
    fn in_a_simulation_its_clock_counts() {
        let frames = Frames::new("map", Duration::from_secs(10), true);
        frames.take(&tf(100), false, at(100));
        assert!(frames.fixed("base_link", at(109)).unwrap().is_some());
        let why = frames.fixed("base_link", at(111)).unwrap_err().to_string();
        assert!(why.contains("11.0 s ago"), "{why}");
    }
}
