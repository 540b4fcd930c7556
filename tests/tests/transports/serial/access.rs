//! A cable where every way in needs a token: the gate, the tokens of a data folder, and the audit lines of both together.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use omir_core::link::message::{Pull, Push, Request};
use omird::protocols::Protocols;
use omird::router::AccessPolicy;
use omird_access::{Access, AccessSettings, Clock, Grant};
use omird_tests::process::eventually;
use omird_tests::session::TestClock;

use crate::serial::client::value;
use crate::serial::rig::Rig;
use crate::serial::terminal::Terminal;

/// A clock that is set.
struct Set;

impl Clock for Set {
    fn now(&self) -> Option<i64> {
        Some(1_800_000_000)
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

#[test]
fn a_line_is_closed_until_a_token_opens_what_it_is_for() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("keys")).unwrap();
    let settings = AccessSettings { require: true, ..AccessSettings::default() };
    let scopes = Protocols::SCOPES;
    let drawn = AtomicU8::new(0);
    let random = Box::new(move || [drawn.fetch_add(1, Ordering::Relaxed); 32]);
    let access = Access::open(folder.path(), settings, scopes, Box::new(Set), random).unwrap();
    let token = access.add(Grant {
        name: "arm".to_owned(),
        scopes: vec!["omir:read".to_owned()],
        ..Grant::default()
    });
    let token = token.unwrap().as_str().to_owned();
    // `access = "write"` of the port opens nothing where a token is required.
    let open = AccessPolicy { write: true, token: None };
    let rig = Rig::guarded(open, 2, TestClock::new(), access.clone());
    let push = || {
        let items = vec![value(r#"{"resourceType":"Entity","id":"new","name":"new"}"#)];
        Request::Push(Push { items, restore: false })
    };

    let mut terminal = Terminal::on(rig.plug(0.0));
    terminal.type_in("ls");
    terminal.type_in("\r");
    terminal.until("\r\n");
    let shown = terminal.until("r2> ");
    assert!(!shown.contains("thing"), "{shown}");
    drop(terminal);

    let mut client = rig.call(0.0, 1);
    client.ok(Request::Info);
    assert_eq!(client.refused(Request::Pull(Pull::default())).code, "UNAUTHENTICATED");
    assert_eq!(client.refused(push()).code, "UNAUTHENTICATED");
    client.ok(Request::Unlock(token));
    assert_eq!(client.pull(Pull::default()).len(), 4);
    // Revoked: it stops at once.
    access.revoke("arm").unwrap();
    assert_eq!(client.refused(Request::Pull(Pull::default())).code, "UNAUTHENTICATED");

    let mut told = Vec::new();
    eventually("the last line", || {
        told.extend(rig.audit.take());
        told.len() >= 7
    });
    let ended = |method: &str, outcome: &str| {
        let of = |line: &&String| line.contains(method) && line.contains(outcome);
        told.iter().filter(of).count()
    };
    assert_eq!(ended("omir.pull", "UNAUTHENTICATED"), 2, "{told:?}");
    assert_eq!(ended("omir.push", "UNAUTHENTICATED"), 1, "{told:?}");
    assert!(told.iter().any(|line| line.starts_with("arm omir.pull")), "{told:?}");
}
