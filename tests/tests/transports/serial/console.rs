//! The console of a port.

use std::collections::BTreeSet;
use std::time::Duration;

use omir_core::link::Reason;
use omir_core::link::message::Pull;
use omird::engine::Encoding;
use omird::router::AccessPolicy;
use omird_tests::check;

use crate::serial::client::{Client, references, stored, value};
use crate::serial::rig::Rig;
use crate::serial::terminal::Terminal;

#[test]
fn a_person_finds_a_console() {
    let rig = Rig::new(AccessPolicy::default(), 30);
    let mut terminal = Terminal::on(rig.plug(0.0));
    terminal.type_in("\r");
    terminal.until("\r\nr2> ");
    terminal.type_in("helb\x08p\r\n");
    assert!(terminal.until("r2> ").contains("\r\nstatus "));
    terminal.type_in("status\n");
    assert!(terminal.until("r2> ").contains("counts.types.Entity 30\r\n"));
    terminal.type_in("get Entity/e7\r");
    assert!(terminal.until("r2> ").contains("\r\n  \"name\": \"thing 7\""));
    terminal.type_in("get Entity/none\r");
    assert!(terminal.until("r2> ").contains("NOT_FOUND: there is no Entity/none\r\n"));
    terminal.type_in("recall \"thing 9\" type=MemoryRecord limit=1\r");
    assert!(terminal.until("r2> ").contains("MemoryRecord/m9 saw thing 9\r\n"));
    terminal.type_in("ls tipe=Entity\r");
    assert!(terminal.until("r2> ").contains("INVALID_QUERY (/tipe)"));
    terminal.type_in("ls\r");
    assert!(terminal.until("r2> ").contains("20 of 60; more with offset=20\r\n"));
}

#[test]
fn a_capture_file_of_a_dump_is_a_document() {
    let rig = Rig::new(AccessPolicy::default(), 50);
    let text = r#"{"resourceType":"Entity","id":"odd","name":"k\u00fcche \ud83e\udd16 \u001b[2J"}"#;
    let change = rig.session.prepare(text.as_bytes(), Encoding::Json, None).unwrap();
    rig.session.execute(change).unwrap();
    let mut terminal = Terminal::on(rig.plug(0.0));
    // Text that is typed meanwhile does not show in the middle of it; its command runs afterwards.
    terminal.type_in("dump\rget Entity/e1\r");
    terminal.until("-----BEGIN OMIR-----\r\n");
    let shown = terminal.until("-----END OMIR-----\r\n");
    assert!(shown.bytes().all(|byte| matches!(byte, b'\r' | b'\n' | b' '..=b'~')));
    let document = value(shown.strip_suffix("-----END OMIR-----\r\n").unwrap());
    check::conforms(&document).unwrap();
    let entries = document.get("entry").unwrap().as_array().unwrap();
    assert_eq!(references(entries).into_iter().collect::<BTreeSet<_>>(), stored(&rig));
    assert!(terminal.until("\"name\": \"thing 1\"").contains("get Entity/e1"));
    // A memory cannot steer the terminal.
    terminal.until("r2> ");
    terminal.type_in("recall k\u{fc}che\r");
    terminal.until("Entity/odd k\u{fc}che \u{1f916} ?[2J\r\n");
}

#[test]
fn one_command_does_not_block_the_next() {
    let rig = Rig::new(AccessPolicy::default(), 400);
    let mut terminal = Terminal::on(rig.plug(0.0));
    terminal.type_in("dump\r");
    terminal.until("-----BEGIN OMIR-----\r\n");
    terminal.type_in("\x03");
    assert!(!terminal.until("^C\r\nr2> ").contains("-----END OMIR-----"));
    terminal.type_in("tail\r");
    terminal.until("tail\r\n");
    // Only its answer tells if the console listens already.
    let mut n = 0;
    while !terminal.shown.contains("recorded Entity/new") {
        n += 1;
        let text = format!(r#"{{"resourceType":"Entity","id":"new{n}","name":"new"}}"#);
        let change = rig.session.prepare(text.as_bytes(), Encoding::Json, None).unwrap();
        rig.session.execute(change).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        terminal.shown += &String::from_utf8(terminal.cable.read()).unwrap();
        assert!(n < 1000);
    }
    terminal.type_in("\x03get Entity/e1\r");
    terminal.until("\"name\": \"thing 1\"");
}

#[test]
fn a_terminal_that_asks_for_silence_gets_it() {
    let rig = Rig::new(AccessPolicy::default(), 100);
    let mut terminal = Terminal::on(rig.plug(0.0));
    terminal.type_in("dump\r");
    terminal.until("BEGIN OMIR");
    terminal.type_in("\x13");
    // Bytes that were on their way still come; then nothing does.
    let mut quiet = 0;
    while quiet < 50 {
        quiet = if terminal.cable.read().is_empty() { quiet + 1 } else { 0 };
        std::thread::sleep(Duration::from_millis(2));
    }
    terminal.type_in("\x11");
    terminal.until("END OMIR");
}

#[test]
fn a_person_and_a_program_share_a_line() {
    let rig = Rig::new(AccessPolicy::default(), 50);
    let mut client = rig.call(0.0, 1);
    assert_eq!(client.pull(Pull::default()).len(), 100);
    client.link.close(Reason::Done);
    client.turn();
    let mut terminal = Terminal::on(client.cable);
    terminal.type_in("get Entity/e1\r");
    terminal.until("\"name\": \"thing 1\"");
    terminal.until("r2> ");
    // A program comes while a person dumps.
    terminal.type_in("dump\r");
    terminal.until("BEGIN OMIR");
    let mut client = Client::on(terminal.cable);
    client.open(2);
    assert_eq!(client.pull(Pull::default()).len(), 100);
}
