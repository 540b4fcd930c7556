//! Files that a terminal program takes.

use std::time::{Duration, Instant};

use omird::router::AccessPolicy;
use omird_tests::check;

use crate::serial::PATIENCE;
use crate::serial::client::value;
use crate::serial::rig::Rig;
use crate::serial::terminal::Terminal;

#[test]
fn a_terminal_program_takes_a_file_by_zmodem() {
    let rig = Rig::new(AccessPolicy::default(), 50);
    let mut terminal = Terminal::on(rig.plug(0.0));
    terminal.type_in("sz type=Entity\r");
    terminal.until(" bytes; Ctrl-C ends it\r\nrz\r");
    let mut receiver = zmodem2::Receiver::with_flow_control(0, true).unwrap();
    let (mut file, mut name, mut is_done) = (Vec::new(), String::new(), false);
    let until = Instant::now() + PATIENCE;
    while !is_done {
        assert!(Instant::now() < until, "{} bytes came", file.len());
        let mut came = &*terminal.cable.read();
        loop {
            match receiver.poll() {
                zmodem2::Action::WriteWire(bytes) => {
                    let all = bytes.len();
                    terminal.cable.write(bytes.to_vec());
                    receiver.wire_written(all);
                }
                zmodem2::Action::WriteFile(bytes) => {
                    file.extend_from_slice(bytes);
                    let all = bytes.len();
                    receiver.file_written(all).unwrap();
                }
                zmodem2::Action::Event(zmodem2::Event::FileStarted(info)) => {
                    name = String::from_utf8(info.name.to_vec()).unwrap();
                }
                zmodem2::Action::Event(event) => {
                    is_done |= event == zmodem2::Event::SessionCompleted;
                }
                _ if came.is_empty() => break,
                _ => {
                    let taken = receiver.submit_wire(came).unwrap();
                    came = &came[taken..];
                    if taken == 0 {
                        break;
                    }
                }
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(name, "r2.omir");
    let document = value(&String::from_utf8(file).unwrap());
    check::conforms(&document).unwrap();
    assert_eq!(document.get("entry").unwrap().as_array().unwrap().len(), 50);
    terminal.until("\r\nsent\r\nr2> ");

    // Nobody takes it: Ctrl-C, or five times Ctrl-X, and what was typed before is done.
    for cancel in ["\x03", "\x18\x18\x18\x18\x18"] {
        terminal.type_in("sz\r");
        terminal.until("**\x18B00");
        terminal.type_in(cancel);
        terminal.until("\r\ncancelled\r\nr2> ");
    }
    terminal.type_in("get Entity/e1\r");
    terminal.until("\"name\": \"thing 1\"");
}
