//! The audit line of a request over a cable: who asked for what, and how it ended. Invariant 37 of ARCHITECTURE.md.

use omir_core::link::message::{Pull, Push, Request};
use omird::router::AccessPolicy;

use crate::serial::client::value;
use crate::serial::rig::Rig;
use crate::serial::terminal::Terminal;

/// Takes the lines so far, without the number of bytes.
fn lines(rig: &Rig) -> Vec<String> {
    let line = |line: String| {
        let mut words: Vec<&str> = line.split(' ').collect();
        assert_eq!(words.remove(0), "serial");
        assert!(words.remove(0).ends_with("/port"), "{line}");
        words.remove(1);
        words.join(" ")
    };
    rig.audit.take().into_iter().map(line).collect()
}

#[test]
fn each_request_over_a_cable_leaves_one_line() {
    let token = "open sesame".to_owned();
    let rig = Rig::new(AccessPolicy { write: false, token: Some(token.clone()) }, 2);
    let mut client = rig.call(0.0, 1);
    let push = |text| Request::Push(Push { items: vec![value(text)], restore: false });
    let good = push(r#"{"resourceType":"Entity","id":"new","name":"new"}"#);
    let bad = push(r#"{"resourceType":"Entity","id":"bad"}"#);
    client.ok(Request::Info);
    client.refused(good.clone());
    client.refused(Request::Unlock("open simsim".to_owned()));
    client.ok(Request::Unlock(token));
    client.ok(good);
    client.refused(bad);
    client.pull(Pull::default());
    // Its line is written once the last message is made, and that is what the client has.
    client.ok(Request::Info);
    let expected = [
        "omir.info ok",
        "omir.push UNAUTHORIZED",
        "omir.unlock UNAUTHORIZED",
        "omir.unlock ok",
        "omir.push ok Entity/new",
        "omir.push INVALID_RESOURCE",
        "omir.pull ok",
        "omir.info ok",
    ];
    let mut told = lines(&rig);
    omird_tests::process::eventually("the last line", || {
        told.extend(lines(&rig));
        told.len() >= expected.len()
    });
    // A line is written as its work ends, on the thread that did it.
    let (mut told, mut expected) = (told, expected.map(str::to_owned));
    told.sort();
    expected.sort();
    assert_eq!(told, expected);
}

#[test]
fn each_command_of_a_console_leaves_one_line() {
    let rig = Rig::new(AccessPolicy::default(), 2);
    let mut terminal = Terminal::on(rig.plug(0.0));
    for line in ["help", "status", "get Entity/none", "ls tipe=Entity", "ls", "dump"] {
        terminal.type_in(line);
        terminal.type_in("\r");
        terminal.until("\r\n");
        terminal.until("r2> ");
    }
    let expected = [
        "omir.status ok",
        "omir.get NOT_FOUND",
        "omir.recall INVALID_QUERY",
        "omir.recall ok",
        "omir.document ok",
    ];
    let mut told = Vec::new();
    omird_tests::process::eventually("the last line", || {
        told.extend(lines(&rig));
        told.len() >= expected.len()
    });
    assert_eq!(told, expected);
}
