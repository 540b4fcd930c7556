//! The settings of glibc's malloc that omird runs with, however it is started.
//!
//! By itself malloc raises two thresholds as large blocks are freed, and from then on keeps what a start, an
//! import or a sealing took. It reads its settings once, from the environment, before `main`: see
//! [`restart`](crate::restart). `mallopt` would do without that, and is safe in no crate that we know of.

use std::ffi::OsString;

/// Blocks from 128 KiB on are given back as they are freed.
pub const SETTINGS: [(&str, &str); 2] =
    [("MALLOC_MMAP_THRESHOLD_", "131072"), ("MALLOC_TRIM_THRESHOLD_", "131072")];

/// The settings to start again with; none if there is no such malloc, or its tunables are set already.
pub(crate) fn lacking(
    variable: impl Fn(&str) -> Option<OsString>,
) -> Vec<(&'static str, &'static str)> {
    let is_tuned = |tunables: OsString| tunables.to_string_lossy().contains("glibc.malloc.");
    let is_ours = cfg!(all(target_os = "linux", target_env = "gnu"));
    if !is_ours || variable("GLIBC_TUNABLES").is_some_and(is_tuned) {
        return Vec::new();
    }
    SETTINGS.into_iter().filter(|(name, _)| variable(name).is_none()).collect()
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_chose_is_set() {
        let with = |given: &[(&str, &str)]| {
            lacking(|name| {
                let found = given.iter().find(|(given, _)| *given == name);
                found.map(|(_, value)| OsString::from(value))
            })
        };
        assert_eq!(with(&[]), SETTINGS);
        assert_eq!(with(&SETTINGS), []);
        assert_eq!(with(&[("MALLOC_TRIM_THRESHOLD_", "1000000")]), SETTINGS[..1]);
        assert_eq!(with(&[("GLIBC_TUNABLES", "glibc.malloc.trim_threshold=0")]), []);
        assert_eq!(with(&[("GLIBC_TUNABLES", "glibc.pthread.rseq=0")]), SETTINGS);
    }
}
