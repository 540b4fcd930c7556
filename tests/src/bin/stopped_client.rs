//! A Zenoh client that asks and then takes no answer: it stops itself, as SIGSTOP does, and never goes on.
//!
//! Usage: stopped_client ENDPOINT SELECTOR TIMES

use std::process::Command;

use omird_tests::process::Client;
use zenoh::Wait;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [endpoint, selector, times] = &arguments[..] else { panic!("see the source") };
    let client = Client::connect(endpoint);
    for _ in 0..times.parse().expect("a number") {
        client.session.get(selector).callback(|_| {}).wait().expect("it is sent");
    }
    // Whoever started it ends it.
    let own = std::process::id().to_string();
    let stopped = Command::new("kill").args(["-STOP", &own]).status().expect("kill runs");
    assert!(stopped.success());
}
