//! The number of threads that Zenoh works with.
//!
//! By itself it has two that receive and one that sends, and closing the link of a client that stopped takes one of
//! each for as long as replies to it wait: seconds in which no other client is heard or answered. Zenoh reads the
//! number from the environment alone, once: see [`restart`](crate::restart).

use std::ffi::OsString;

/// Zenoh's scouting, and its result. As many stopped clients as there are threads may be closed at a time. A thread
/// that has nothing to do costs some kilobytes.
pub(crate) const SETTING: (&str, &str) =
    ("ZENOH_RUNTIME", "(rx: (worker_threads: 16), tx: (worker_threads: 16))");

/// The setting, unless the environment has another.
pub(crate) fn lacking(
    variable: impl Fn(&str) -> Option<OsString>,
) -> Option<(&'static str, &'static str)> {
    variable(SETTING.0).is_none().then_some(SETTING)
}
