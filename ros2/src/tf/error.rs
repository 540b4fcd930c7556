//! Errors of insertions and lookups.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::frames::LONGEST_NAME;
use super::transform::BadTransform;
use crate::stamp::Stamp;

/// A transform that was refused. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InsertError {
    /// The parent or the child has no name.
    NoName,
    /// A name of more than 255 bytes.
    NameTooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// A frame as its own parent.
    SelfParent {
        /// That frame.
        frame: Arc<str>,
    },
    /// The numbers are no transform.
    Bad {
        /// The parent frame.
        parent: Arc<str>,
        /// The child frame.
        child: Arc<str>,
        /// The fault.
        why: BadTransform,
    },
    /// The parent is a descendant of the child by now.
    Loop {
        /// The parent frame.
        parent: Arc<str>,
        /// The child frame.
        child: Arc<str>,
    },
    /// The parent hangs so deep that nothing could be looked up from below it.
    TooDeep {
        /// Largest number of frames above one.
        limit: usize,
        /// The child frame.
        child: Arc<str>,
    },
    /// Older than the buffer reaches back.
    TooOld {
        /// The child frame.
        child: Arc<str>,
        /// Time at which it held.
        stamp: Stamp,
        /// The newest that is known of this frame.
        newest: Stamp,
    },
    /// There is no room for another frame.
    TooManyFrames {
        /// The largest number.
        limit: usize,
        /// The frame that did not fit.
        frame: Arc<str>,
    },
}

impl InsertError {
    /// One word for counters.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NoName | Self::NameTooLong { .. } => "frame-name",
            Self::SelfParent { .. } => "self-parent",
            Self::Bad { .. } => "no-transform",
            Self::Loop { .. } => "loop",
            Self::TooDeep { .. } => "too-deep",
            Self::TooOld { .. } => "too-old",
            Self::TooManyFrames { .. } => "too-many-frames",
        }
    }
}

impl fmt::Display for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoName => f.write_str("a transform without a frame_id or child_frame_id"),
            Self::NameTooLong { len } => {
                write!(f, "a frame name of {len} bytes; at most {LONGEST_NAME} are taken")
            }
            Self::SelfParent { frame } => write!(f, "frame {frame:?} as its own parent"),
            Self::Bad { parent, child, why } => {
                write!(f, "what was sent from {parent:?} to {child:?} is no transform: {why}")
            }
            Self::Loop { parent, child } => {
                write!(f, "{parent:?} is below {child:?}, so it cannot be its parent: a loop")
            }
            Self::TooDeep { limit, child } => {
                write!(f, "frame {child:?} would hang below more than {limit} others")
            }
            Self::TooOld { child, stamp, newest } => write!(
                f,
                "the transform of {child:?} at {stamp} is older than the buffer keeps; the newest is \
                 of {newest}"
            ),
            Self::TooManyFrames { limit, frame } => {
                write!(f, "no room for frame {frame:?}: at most {limit} frames are kept")
            }
        }
    }
}

impl std::error::Error for InsertError {}

/// Two frames without a transform between them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LookupError {
    /// A frame without a name was asked for.
    NoName,
    /// No transform has named that frame yet.
    UnknownFrame {
        /// The frame.
        frame: Arc<str>,
        /// The known frame that may be meant.
        nearest: Option<Arc<str>>,
        /// Number of frames that are known.
        known: usize,
    },
    /// The frames belong to two trees.
    Unconnected {
        /// The frame asked for.
        target: Arc<str>,
        /// The root of its tree.
        target_root: Arc<str>,
        /// The frame to come from.
        source: Arc<str>,
        /// The root of its tree.
        source_root: Arc<str>,
    },
    /// One transform on the way is not known at that moment, and tf does not guess.
    Extrapolation {
        /// The frame asked for.
        target: Arc<str>,
        /// The frame to come from.
        source: Arc<str>,
        /// The parent of the transform that is missing.
        parent: Arc<str>,
        /// The child of the transform that is missing.
        child: Arc<str>,
        /// From when on it is known.
        oldest: Stamp,
        /// Until when it is known.
        newest: Stamp,
        /// The moment asked for.
        at: Stamp,
        /// By the rate so far, the stamp of the sample after which it will be known; `None` if it is
        /// past and never will.
        expected: Option<Stamp>,
    },
    /// More than 1000 frames above one another, or in a circle at that moment.
    TooDeep {
        /// Start of the walk.
        frame: Arc<str>,
    },
}

impl LookupError {
    /// One word for counters.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NoName => "frame-name",
            Self::UnknownFrame { .. } => "unknown-frame",
            Self::Unconnected { .. } => "unconnected-frames",
            Self::Extrapolation { expected: Some(_), .. } => "transform-not-yet",
            Self::Extrapolation { expected: None, .. } => "transform-too-old",
            Self::TooDeep { .. } => "loop",
        }
    }

    /// If waiting can help: the time on the robot's clock at which it is worth to ask again.
    pub fn expected(&self) -> Option<Stamp> {
        match self {
            Self::Extrapolation { expected, .. } => *expected,
            _ => None,
        }
    }

    /// If waiting can help: how long from `now`.
    pub fn wait(&self, now: Stamp) -> Option<Duration> {
        let nanos = self.expected()?.nanos_since(now);
        Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)))
    }
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoName => f.write_str("a frame without a name"),
            Self::UnknownFrame { frame, nearest, known } => {
                write!(f, "frame {frame:?} is not known")?;
                match nearest {
                    Some(nearest) => write!(f, "; is {nearest:?} meant?"),
                    None => write!(f, " ({known} frames are)"),
                }
            }
            Self::Unconnected { target, target_root, source, source_root } => write!(
                f,
                "no transform leads from {source:?} to {target:?}: they are of two trees, whose roots \
                 are {source_root:?} and {target_root:?}"
            ),
            Self::Extrapolation { target, source, parent, child, oldest, newest, at, expected } => {
                write!(f, "from {source:?} to {target:?} at {at}: ")?;
                write!(f, "the transform of {child:?} in {parent:?} is known ")?;
                if oldest == newest {
                    write!(f, "at {oldest} only")?;
                } else {
                    write!(f, "from {oldest} to {newest}")?;
                }
                let millis = |nanos: i64| nanos.unsigned_abs().div_ceil(1_000_000);
                match expected {
                    Some(expected) => write!(
                        f,
                        ", {} ms too early; it may come {} ms after the time asked for",
                        millis(at.nanos_since(*newest)),
                        millis(expected.nanos_since(*at))
                    ),
                    None if at < oldest => {
                        write!(f, ", {} ms too late", millis(oldest.nanos_since(*at)))
                    }
                    None => Ok(()),
                }
            }
            Self::TooDeep { frame } => {
                write!(f, "more than 1000 frames are above {frame:?}, or they are in a circle")
            }
        }
    }
}

impl std::error::Error for LookupError {}
