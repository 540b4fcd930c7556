//! The settings of glibc's malloc that omird runs with, whoever starts it.
//!
//! By itself malloc raises two thresholds as large blocks are freed, and from then on keeps what a start, an
//! import or a sealing took. It reads its settings once, from the environment, before `main`. So a program that
//! was started without them starts itself again with them: the same process, with its arguments and its
//! descriptors. `mallopt` would do without that, and is safe in no crate that we know of.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// As in config/omird.service. Blocks from 128 KiB on are given back as they are freed.
pub const SETTINGS: [(&str, &str); 2] =
    [("MALLOC_MMAP_THRESHOLD_", "131072"), ("MALLOC_TRIM_THRESHOLD_", "131072")];

/// Says that the program was started again. The system takes settings of malloc away from programs with
/// privileges of their own: without this they would start for ever.
const AGAIN: &str = "OMIRD_STARTED_AGAIN";

/// Starts this program again with [`SETTINGS`], and so does not return, unless they are there, someone chose
/// others, there is no such malloc, or the system does not let it. Call it before anything else is begun.
pub fn settle() {
    if !cfg!(all(target_os = "linux", target_env = "gnu")) {
        return;
    }
    let lacking = lacking(|name| env::var_os(name));
    // Not /proc/self/exe: the name of that would be the name of the process.
    let Ok(program) = env::current_exe() else { return };
    if lacking.is_empty() {
        return;
    }
    let mut arguments = env::args_os();
    let mut again = Command::new(program);
    if let Some(name) = arguments.next() {
        again.arg0(name);
    }
    // Where this returns, the program goes on as it is.
    let _ = again.args(arguments).envs(lacking).env(AGAIN, "1").exec();
}

/// The settings to start again with; none if there is no need to, or it was done.
fn lacking(variable: impl Fn(&str) -> Option<OsString>) -> Vec<(&'static str, &'static str)> {
    let is_tuned = |tunables: OsString| tunables.to_string_lossy().contains("glibc.malloc.");
    if variable(AGAIN).is_some() || variable("GLIBC_TUNABLES").is_some_and(is_tuned) {
        return Vec::new();
    }
    SETTINGS.into_iter().filter(|(name, _)| variable(name).is_none()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_has_the_same() {
        let unit = include_str!("../../config/omird.service");
        for (name, value) in SETTINGS {
            assert!(unit.contains(&format!("{name}={value}")), "{name}");
        }
    }

    #[test]
    fn only_what_nobody_chose_is_set_and_only_once() {
        let with = |given: &[(&str, &str)]| {
            lacking(|name| {
                let found = given.iter().find(|(given, _)| *given == name);
                found.map(|(_, value)| OsString::from(value))
            })
        };
        assert_eq!(with(&[]), SETTINGS);
        assert_eq!(with(&SETTINGS), []);
        assert_eq!(with(&[("MALLOC_TRIM_THRESHOLD_", "1000000")]), SETTINGS[..1]);
        assert_eq!(with(&[(AGAIN, "1")]), []);
        assert_eq!(with(&[("GLIBC_TUNABLES", "glibc.malloc.trim_threshold=0")]), []);
        assert_eq!(with(&[("GLIBC_TUNABLES", "glibc.pthread.rseq=0")]), SETTINGS);
    }
}
