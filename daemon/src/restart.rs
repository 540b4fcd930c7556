//! Starts this program again with variables that are read from the environment only at a start, by
//! [`malloc`] and by Zenoh (`zenoh/threads.rs`): the same process, with its arguments and its
//! descriptors. Setting a variable in a running process is not safe.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::malloc;
use crate::zenoh::threads;

/// Says that the program was started again. The system takes settings of malloc away from programs with
/// privileges of their own: without this they would start for ever.
const AGAIN: &str = "OMIRD_STARTED_AGAIN";

/// Starts this program again with what is lacking, and so does not return, unless nothing is, it was done already, or
/// the system does not let it. Call it before anything else is begun.
pub fn with_settings() {
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
    // The program goes on as it is if this returns.
    let _ = again.args(arguments).envs(lacking).env(AGAIN, "1").exec();
}

/// The variables to start again with; none if there is no need to, or it was done.
fn lacking(variable: impl Fn(&str) -> Option<OsString>) -> Vec<(&'static str, &'static str)> {
    if variable(AGAIN).is_some() {
        return Vec::new();
    }
    let mut lacking = malloc::lacking(&variable);
    lacking.extend(threads::lacking(&variable));
    lacking
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_started_again_once_and_only_for_what_nobody_chose() {
        let with = |given: &[&str]| {
            lacking(|name| given.contains(&name).then(|| OsString::from("anything")))
        };
        let all = with(&[]);
        assert!(all.contains(&threads::SETTING));
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        assert_eq!(with(&names), []);
        assert_eq!(with(&[threads::SETTING.0]).len(), all.len() - 1);
        assert_eq!(with(&[AGAIN]), []);
    }

    #[test]
    fn the_packaged_service_need_not_be_started_again() {
        let unit = include_str!("../../config/omird.service");
        for (name, value) in lacking(|_| None) {
            assert!(unit.contains(&format!("{name}={value}")), "{name}");
        }
    }
}
