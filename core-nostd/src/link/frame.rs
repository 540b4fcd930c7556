//! Contents of a frame.
//!
//! ```text
//! | offset | size |                                                        |
//! |--------|------|--------------------------------------------------------|
//! | 0      | 1    | kind; bit 7 is set in what the responder sends         |
//! | 1      | 4    | session, not 0                                         |
//! | 5      | 2    | sequence number                                        |
//! | 7      | n    | payload                                                |
//! | 7 + n  | 4    | CRC-32 of all before; looked after in `line`           |
//! ```
//!
//! All numbers are little endian. What each kind's payload holds is drawn beside [`Body`].

use super::line::{self, Fault};

/// Bytes before the payload.
pub const HEAD: usize = 7;
/// The version of the protocol that this is.
pub const VERSION: u8 = 1;
/// More frames than this are never under way in one direction: as many as a bitmap has bits.
pub const MOST_WINDOW: usize = 32;
/// Every end takes at least this much payload in a frame.
pub const LEAST_PAYLOAD: usize = 64;
/// And none more than this.
pub const MOST_PAYLOAD: usize = 1024;
/// Bytes of the name an end may give itself.
pub const MOST_NAME: usize = 32;

const FROM_RESPONDER: u8 = 0x80;
const LAST: u8 = 1;

/// One frame, read or to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The sender. An end takes nothing of its own kind, so an echo on the line does no harm.
    pub from_responder: bool,
    /// The session it belongs to, drawn by the initiator; never 0.
    pub session: u32,
    /// Its number ([`Body::Data`]), the next number expected ([`Body::Ack`]), else 0.
    pub seq: u16,
    /// Its contents.
    pub body: Body<'a>,
}

/// Contents of a frame, by its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Body<'a> {
    /// Kind 1, initiator: `version u8, window u8, max_payload u16, name`.
    Hello(Greeting<'a>),
    /// Kind 1, initiator, of another version of the protocol; the rest means nothing to us.
    Foreign {
        /// Its number.
        version: u8,
    },
    /// Kind 2, responder: the same as a hello.
    Welcome(Greeting<'a>),
    /// Kind 3: `flags u8, bytes`. Bit 0 of the flags: the message ends here.
    Data {
        /// The message ends here.
        last: bool,
        /// A part of a message; empty only if it is the last.
        bytes: &'a [u8],
    },
    /// Kind 4: `bitmap u32, room u8`. The sequence number is the next one expected.
    Ack {
        /// Bit i: number `seq + 1 + i` is here already.
        bitmap: u32,
        /// Number of frames from `seq` on for which there is room.
        room: u8,
    },
    /// Kind 5: `reason u8, text`.
    Bye {
        /// The reason.
        reason: Reason,
        /// The same for a person; may be empty.
        text: &'a str,
    },
    /// Kind 6: asks for an ACK.
    Ping,
}

/// An end's description of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Greeting<'a> {
    /// Frames it has room for, 1 to [`MOST_WINDOW`].
    pub window: u8,
    /// Payload it takes in a frame, bytes, at least [`LEAST_PAYLOAD`].
    pub max_payload: u16,
    /// Its name, for people; up to [`MOST_NAME`] bytes.
    pub name: &'a str,
}

/// The reason for the end of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// 0: all is said.
    Done,
    /// 1: a frame came for a session that is not open here: this end was restarted.
    NoSession,
    /// 2: the initiator speaks another version.
    Version,
    /// 3: what came in its messages broke the rules.
    Protocol,
    /// 4: this end stops, or needs the line for something else.
    GoingAway,
    /// Any other number.
    Other(u8),
}

impl Reason {
    /// The number on the line.
    pub fn number(self) -> u8 {
        match self {
            Reason::Done => 0,
            Reason::NoSession => 1,
            Reason::Version => 2,
            Reason::Protocol => 3,
            Reason::GoingAway => 4,
            Reason::Other(number) => number,
        }
    }

    /// The meaning of a number on the line.
    pub fn from_number(number: u8) -> Reason {
        match number {
            0 => Reason::Done,
            1 => Reason::NoSession,
            2 => Reason::Version,
            3 => Reason::Protocol,
            4 => Reason::GoingAway,
            other => Reason::Other(other),
        }
    }
}

impl<'a> Frame<'a> {
    /// Reads a frame whose checksum is right. `None`: an unknown kind, a wrong length or value.
    pub(super) fn parse(head: &[u8; HEAD], payload: &'a [u8]) -> Option<Frame<'a>> {
        let from_responder = head[0] & FROM_RESPONDER != 0;
        let session = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
        let seq = u16::from_le_bytes([head[5], head[6]]);
        let body = match (head[0] & !FROM_RESPONDER, from_responder) {
            (1, false) => match *payload.first()? {
                VERSION => Body::Hello(Greeting::parse(payload)?),
                version => Body::Foreign { version },
            },
            (2, true) => Body::Welcome(Greeting::parse(payload)?),
            (3, _) => {
                let (flags, bytes) = payload.split_first()?;
                Body::Data { last: flags & LAST != 0, bytes }
            }
            (4, _) => {
                let &[a, b, c, d, room] = payload else { return None };
                Body::Ack { bitmap: u32::from_le_bytes([a, b, c, d]), room }
            }
            (5, _) => {
                let (&reason, text) = payload.split_first()?;
                let text = core::str::from_utf8(text).ok()?;
                Body::Bye { reason: Reason::from_number(reason), text }
            }
            (6, _) if payload.is_empty() => Body::Ping,
            _ => return None,
        };
        (session != 0).then_some(Frame { from_responder, session, seq, body })
    }

    /// Writes the frame to `sink`, delimiters and all.
    pub fn encode(&self, sink: &mut impl FnMut(u8)) {
        let mut head = [0; HEAD];
        head[0] = match self.body {
            Body::Hello(_) | Body::Foreign { .. } => 1,
            Body::Welcome(_) => 2,
            Body::Data { .. } => 3,
            Body::Ack { .. } => 4,
            Body::Bye { .. } => 5,
            Body::Ping => 6,
        };
        if self.from_responder {
            head[0] |= FROM_RESPONDER;
        }
        head[1..5].copy_from_slice(&self.session.to_le_bytes());
        head[5..7].copy_from_slice(&self.seq.to_le_bytes());
        match self.body {
            Body::Hello(greeting) | Body::Welcome(greeting) => {
                let [a, b] = greeting.max_payload.to_le_bytes();
                let fixed = [VERSION, greeting.window, a, b];
                line::encode(&head, [&fixed, greeting.name.as_bytes()], sink);
            }
            Body::Foreign { version } => line::encode(&head, [&[version], &[]], sink),
            Body::Data { last, bytes } => line::encode(&head, [&[u8::from(last)], bytes], sink),
            Body::Ack { bitmap, room } => {
                line::encode(&head, [&bitmap.to_le_bytes(), &[room]], sink);
            }
            Body::Bye { reason, text } => {
                line::encode(&head, [&[reason.number()], text.as_bytes()], sink);
            }
            Body::Ping => line::encode(&head, [&[], &[]], sink),
        }
    }
}

impl<'a> Greeting<'a> {
    fn parse(payload: &'a [u8]) -> Option<Greeting<'a>> {
        let (&[version, window, a, b], name) = payload.split_first_chunk()?;
        let max_payload = u16::from_le_bytes([a, b]);
        let name = core::str::from_utf8(name).ok()?;
        let sound = version == VERSION
            && (1..=MOST_WINDOW).contains(&usize::from(window))
            && usize::from(max_payload) >= LEAST_PAYLOAD
            && name.len() <= MOST_NAME;
        sound.then_some(Greeting { window, max_payload, name })
    }
}

impl core::fmt::Display for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        f.write_str(match self {
            Fault::TooLong => "a frame is longer than this end takes",
            Fault::Stuffing => "the COBS of a frame is broken",
            Fault::Checksum => "a frame has another CRC-32 than it says",
            Fault::Content => {
                "a frame is of an unknown kind, or has values that its kind does not allow"
            }
        })
    }
}

impl core::fmt::Display for Reason {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        match self {
            Reason::Done => f.write_str("all is said"),
            Reason::NoSession => f.write_str("the other end was restarted"),
            Reason::Version => f.write_str("the other end speaks another version of the protocol"),
            Reason::Protocol => f.write_str("the other end could make nothing of a message"),
            Reason::GoingAway => f.write_str("the other end stops, or needs the line"),
            Reason::Other(number) => write!(f, "the other end gave the reason {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::Deframer;
    use super::*;

    fn read_back(frame: Frame) {
        let mut deframer = Deframer::<256>::new();
        let mut seen = 0;
        frame.encode(&mut |byte| {
            if let Some(read) = deframer.push(byte) {
                assert_eq!(read, Ok(frame));
                seen += 1;
            }
        });
        assert_eq!(seen, 1, "{frame:?}");
    }

    #[test]
    fn every_kind_comes_back() {
        let greeting = Greeting { window: 32, max_payload: 0x1312, name: "küche" };
        for (from_responder, body) in [
            (false, Body::Hello(greeting)),
            (false, Body::Foreign { version: 2 }),
            (true, Body::Welcome(greeting)),
            (false, Body::Data { last: false, bytes: b"part" }),
            (true, Body::Data { last: true, bytes: b"" }),
            (true, Body::Ack { bitmap: 0x8000_0001, room: 32 }),
            (false, Body::Bye { reason: Reason::GoingAway, text: "stopping" }),
            (true, Body::Bye { reason: Reason::Other(9), text: "" }),
            (false, Body::Ping),
        ] {
            read_back(Frame { from_responder, session: 0x7d11_1300, seq: 0xfffe, body });
        }
    }

    #[test]
    fn values_that_nobody_may_send_are_refused() {
        fn parse(kind: u8, payload: &[u8]) -> Option<Body<'_>> {
            Frame::parse(&[kind, 1, 0, 0, 0, 0, 0], payload).map(|frame| frame.body)
        }
        assert!(parse(1, &[1, 1, 64, 0]).is_some());
        assert_eq!(parse(1, &[1, 0, 64, 0]), None, "no window");
        assert_eq!(parse(1, &[1, 33, 64, 0]), None, "a window wider than the bitmap");
        assert_eq!(parse(1, &[1, 1, 63, 0]), None, "too little payload");
        assert_eq!(parse(1, &[1, 1, 64, 0, 0xff]), None, "a name that is no UTF-8");
        assert_eq!(parse(1, &[&[1, 1, 64, 0][..], &[b'x'; 33]].concat()), None, "a long name");
        assert_eq!(parse(1, &[]), None);
        assert_eq!(parse(1, &[2]), Some(Body::Foreign { version: 2 }));
        assert_eq!(parse(0x81, &[1, 1, 64, 0]), None, "a responder does not say hello");
        assert_eq!(parse(2, &[1, 1, 64, 0]), None, "an initiator does not say welcome");
        assert_eq!(parse(3, &[]), None);
        assert_eq!(parse(4, &[0; 4]), None);
        assert_eq!(parse(4, &[0; 6]), None);
        assert_eq!(parse(5, &[]), None);
        assert_eq!(parse(6, &[0]), None);
        assert_eq!(parse(0, &[]), None);
        assert_eq!(parse(7, &[]), None);
        assert_eq!(Frame::parse(&[6, 0, 0, 0, 0, 0, 0], &[]), None, "session 0");
    }
}
