use zmodem2::Receiver;

use super::*;
use crate::serial::spool::MOST_PACKED;

const SECOND: u64 = 1_000_000;

fn document() -> String {
    (0..900).map(|n| format!("{{\"id\":\"e{n}\",\"name\":\"thing \u{7f} {n}\"}},\n")).collect()
}

fn transfer() -> Transfer {
    let mut spool = Spool::new(MOST_PACKED);
    spool.push(&document()).unwrap();
    Transfer::new("r2.omir", 1_750_000_000, spool, 0).unwrap()
}

/// A receiver that says again what was not answered, as those of terminal programs do.
struct Far {
    receiver: Receiver,
    file: Vec<u8>,
    name: String,
    is_done: bool,
    /// Its last message.
    said: Vec<u8>,
}

impl Far {
    fn new() -> Far {
        let receiver = Receiver::with_flow_control(0, true).unwrap();
        let (file, said) = (Vec::new(), Vec::new());
        Far { receiver, file, name: String::new(), is_done: false, said }
    }

    /// Its message when nothing came for long. This receiver leaves it to us: what it has of a subpacket is
    /// wrong by now, and else it says what it said.
    fn again(&mut self) -> Vec<u8> {
        let says = self.turn(b"\x18kxxxx");
        if says.is_empty() { self.said.clone() } else { says }
    }

    /// Takes what came; what it says.
    fn turn(&mut self, mut came: &[u8]) -> Vec<u8> {
        let mut says = Vec::new();
        loop {
            match self.receiver.poll() {
                Action::WriteWire(bytes) => {
                    says.extend_from_slice(bytes);
                    let all = bytes.len();
                    self.receiver.wire_written(all);
                }
                Action::WriteFile(bytes) => {
                    self.file.extend_from_slice(bytes);
                    let all = bytes.len();
                    self.receiver.file_written(all).unwrap();
                }
                Action::Event(Event::FileStarted(info)) => {
                    self.name = String::from_utf8(info.name.to_vec()).unwrap();
                    assert_eq!(info.size.unwrap().get() as usize, document().len());
                }
                Action::Event(Event::SessionCompleted) => self.is_done = true,
                Action::Event(_) => {}
                _ => match came.split_first() {
                    Some((byte, rest)) if !self.is_done => {
                        let _ = self.receiver.submit_wire(&[*byte]);
                        came = rest;
                    }
                    _ => break,
                },
            }
        }
        if !says.is_empty() {
            self.said = says.clone();
        }
        says
    }
}

/// Runs both ends over a line that `spoils` what it carries (true: to the receiver), to the end.
fn run(transfer: &mut Transfer, mut spoils: impl FnMut(bool, &mut Vec<u8>)) -> Far {
    let mut far = Far::new();
    let (mut now, mut quiet_since) = (0, 0);
    while transfer.ended().is_none() {
        let mut line = Vec::new();
        transfer.send(64, &mut line, now);
        transfer.tick(now);
        let came = !line.is_empty();
        spoils(true, &mut line);
        let mut says = far.turn(&line);
        if says.is_empty() && NUDGES.iter().any(|nudge| line.starts_with(nudge)) {
            says = far.again();
        }
        if !says.is_empty() || came {
            quiet_since = now;
        } else if now >= quiet_since + 10 * SECOND {
            says = far.again();
            quiet_since = now;
        }
        spoils(false, &mut says);
        says.iter().filter(|byte| **byte != 0x11).for_each(|byte| transfer.take(*byte));
        now += 10_000;
        assert!(now < 36_000 * SECOND, "for ever: {:?}", String::from_utf8_lossy(&far.said));
    }
    far
}

#[test]
fn a_receiver_gets_the_file_with_all_control_characters_escaped() {
    let mut transfer = transfer();
    let mut all = Vec::new();
    let far = run(&mut transfer, |to_receiver, line| {
        if to_receiver {
            all.extend_from_slice(line);
        }
    });
    assert_eq!(transfer.ended(), Some(Ending::Sent));
    assert!(far.is_done && far.name == "r2.omir");
    assert!(far.file == document().as_bytes());
    assert!(all.starts_with(b"rz\r**\x18B00"));
    let odd = all.iter().filter(|byte| **byte & 0x60 == 0 && **byte != ZDLE).count();
    assert!(odd < 20, "{odd} besides the ends of three lines");
}

#[test]
fn whatever_piece_of_the_line_is_lost_comes_again() {
    let mut pieces = 0;
    run(&mut transfer(), |_, line| pieces += u32::from(!line.is_empty()));
    let lose: Vec<u32> =
        (0..12).chain(pieces - 14..pieces).chain((12..pieces).step_by(29)).collect();
    for lost in lose {
        let mut transfer = transfer();
        let mut piece = 0;
        let far = run(&mut transfer, |_, line| {
            if !line.is_empty() {
                piece += 1;
                if piece - 1 == lost {
                    line.clear();
                }
            }
        });
        assert_eq!(transfer.ended(), Some(Ending::Sent), "without piece {lost} of {pieces}");
        assert!(far.file == document().as_bytes(), "without piece {lost} of {pieces}");
    }
}

#[test]
fn five_can_end_it_and_the_other_end_is_told() {
    for after in [0, 3, 500] {
        let mut transfer = transfer();
        let mut turns = 0;
        run(&mut transfer, |to_receiver, line| {
            turns += 1;
            if turns >= after && !to_receiver && line.is_empty() {
                line.extend([CAN; 5]);
            }
        });
        assert_eq!(transfer.ended(), Some(Ending::Cancelled));
    }
    let mut transfer = transfer();
    [CAN, CAN, CAN, CAN, b'x', CAN].iter().for_each(|byte| transfer.take(*byte));
    assert_eq!(transfer.ended(), None);
    transfer.cancel(Ending::Cancelled);
    let mut line = Vec::new();
    transfer.send(100, &mut line, 0);
    assert!(line.starts_with(&[CAN; 5]), "{line:?}");
    assert_eq!(transfer.ended(), Some(Ending::Cancelled));
}

#[test]
fn who_is_not_there_is_invited_for_a_minute() {
    let mut silent = transfer();
    let mut line = Vec::new();
    let mut now = 0;
    while silent.ended().is_none() {
        silent.tick(now);
        silent.send(64, &mut line, now);
        // A terminal that echoes, or a person who types, is no receiver.
        b"hello\n".iter().for_each(|byte| silent.take(*byte));
        now += SECOND / 10;
    }
    assert_eq!((silent.ended(), now / SECOND), (Some(Ending::Unheard), 60));
    assert_eq!(line.windows(6).filter(|window| window == b"**\x18B00").count(), 6);

    // Or was there, and is not any more: nothing can be sent.
    let mut gone = transfer();
    let mut left = 2_000_usize;
    run(&mut gone, |_, line| {
        if left == 0 {
            line.clear();
        }
        left = left.saturating_sub(line.len());
    });
    assert_eq!(gone.ended(), Some(Ending::Unheard));
}

#[test]
fn a_receiver_that_has_such_a_file_may_pass() {
    let mut transfer = transfer();
    let mut far = Far::new();
    far.receiver.set_manual_file_accept(true);
    let mut now = 0;
    while transfer.ended().is_none() {
        let mut line = Vec::new();
        transfer.send(64, &mut line, now);
        let mut says = far.turn(&line);
        if far.name == "r2.omir" && far.receiver.skip_file().is_ok() {
            says.extend(far.turn(&[]));
        }
        says.iter().filter(|byte| **byte != 0x11).for_each(|byte| transfer.take(*byte));
        now += 10_000;
    }
    assert_eq!(transfer.ended(), Some(Ending::Skipped));
    assert!(far.file.is_empty() && far.is_done);
}
