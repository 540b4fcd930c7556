//! How many threads Zenoh works with.
//!
//! By itself it has two that receive and one that sends, and closing the link of a client that stopped takes one of each
//! for as long as replies to it wait: seconds in which nobody else is heard or answered. Zenoh reads the number from the
//! environment alone, once. A program that was started without it starts itself again with it: the same process, with its
//! arguments and its descriptors. Setting a variable in a running process is not safe.

use std::env;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Where Zenoh looks.
const VARIABLE: &str = "ZENOH_RUNTIME";
/// As many stopped clients as there are threads may be closed at a time. A thread that has nothing to do costs some
/// kilobytes.
const THREADS: &str = "(rx: (worker_threads: 16), tx: (worker_threads: 16))";

/// Starts this program again with enough threads for Zenoh, and so does not return, unless someone chose how many, or the
/// system does not let it. Call it before anything else is begun.
pub fn settle() {
    if env::var_os(VARIABLE).is_some() {
        return;
    }
    // Not /proc/self/exe: the name of that would be the name of the process.
    let Ok(program) = env::current_exe() else { return };
    let mut arguments = env::args_os();
    let mut again = Command::new(program);
    if let Some(name) = arguments.next() {
        again.arg0(name);
    }
    // Where this returns, the program goes on as it is.
    let _ = again.args(arguments).env(VARIABLE, THREADS).exec();
}
