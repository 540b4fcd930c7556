//! The time that ends of tokens go by, handed in.

use std::time::Duration;

/// The clocks of the daemon.
pub trait Clock: Send + Sync {
    /// Returns the seconds since 1970, or `None` while that cannot be trusted.
    fn now(&self) -> Option<i64>;

    /// Returns the time since any fixed moment; it never runs backwards.
    fn monotonic(&self) -> Duration;
}

/// No omird was built before this, in seconds since 1970 (2026-01-01T00:00:00Z): a clock that shows less is not set.
pub const NO_EARLIER: i64 = 1_767_225_600;
