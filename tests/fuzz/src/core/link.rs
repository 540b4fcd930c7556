//! The serial link, beside a second reader of its frames: COBS and CRC-32 of others, the rest by position.

use omir_core::link::{Body, Deframer, Event, Fault, Link, XOFF, XON, most_bytes};

const PAYLOAD: usize = 128;
/// Kind, session and number before the payload, a CRC-32 after it.
const AROUND: usize = 7 + 4;

/// Takes the bytes for those of a line.
pub fn run(bytes: &[u8]) {
    frames(bytes);
    ends(bytes);
}

fn frames(bytes: &[u8]) {
    let mut deframer = Deframer::<PAYLOAD>::new();
    let mut between = Vec::new();
    for &byte in bytes {
        let read = deframer.push(byte);
        if byte != 0 {
            assert_eq!(read, None, "a frame ends at a delimiter");
            between.push(byte);
            continue;
        }
        let raw = plain(&between);
        between.clear();
        match read {
            None => assert_eq!(raw, Some(vec![])),
            Some(Err(Fault::Content)) => {
                let raw = raw.expect("its checksum is right");
                assert!(!sound(&raw), "{raw:02x?} was refused");
            }
            Some(Err(fault)) => {
                let long = raw.as_ref().is_some_and(|raw| raw.len() > PAYLOAD + AROUND);
                assert!(
                    long || raw.as_ref().is_none_or(|raw| !checked(raw)),
                    "{fault:?} {raw:02x?}"
                );
            }
            Some(Ok(frame)) => {
                let raw = raw.expect("COBS that others can read");
                assert!(checked(&raw) && sound(&raw), "{raw:02x?}");
                let mut line = Vec::new();
                frame.encode(&mut |byte| line.push(byte));
                assert!(line.len() <= most_bytes(PAYLOAD));
                let inner = &line[1..line.len() - 1];
                let again = plain(inner).expect("we write COBS");
                // The flags of data, and what follows another version, mean nothing to us.
                let payload = match frame.body {
                    Body::Foreign { .. } => 7..8,
                    Body::Data { .. } => 8..raw.len() - 4,
                    _ => 7..raw.len() - 4,
                };
                assert_eq!((&again[..7], &again[payload.clone()]), (&raw[..7], &raw[payload]));
            }
        }
    }
}

/// Without flow control, escapes and COBS. `None`: no COBS.
fn plain(between: &[u8]) -> Option<Vec<u8>> {
    let mut escaped = false;
    let mut stuffed = Vec::new();
    for &byte in between.iter().filter(|byte| ![XON, XOFF].contains(byte)) {
        match (escaped, byte) {
            (false, 0x7d) => escaped = true,
            (false, byte) => stuffed.push(byte),
            (true, byte) => {
                stuffed.push(byte ^ 0x20);
                escaped = false;
            }
        }
    }
    if escaped || stuffed.contains(&0) {
        return None;
    }
    if !stuffed.is_empty() {
        let decoded = cobs::decode_in_place(&mut stuffed).ok()?;
        stuffed.truncate(decoded);
    }
    Some(stuffed)
}

fn checked(raw: &[u8]) -> bool {
    raw.len() >= AROUND && {
        let (frame, crc) = raw.split_at(raw.len() - 4);
        crc32fast::hash(frame).to_le_bytes() == crc
    }
}

/// Returns true if the table of docs/serial-protocol.md allows it.
fn sound(raw: &[u8]) -> bool {
    let payload = &raw[7..raw.len() - 4];
    let greets = || match *payload {
        [1, window, a, b, ref name @ ..] => {
            (1..=32).contains(&window)
                && u16::from_le_bytes([a, b]) >= 64
                && name.len() <= 32
                && std::str::from_utf8(name).is_ok()
        }
        _ => false,
    };
    raw[1..5] != [0; 4]
        && match raw[0] {
            0x01 => payload.first().is_some_and(|&version| version != 1) || greets(),
            0x82 => greets(),
            0x03 | 0x83 => !payload.is_empty(),
            0x04 | 0x84 => payload.len() == 5,
            0x05 | 0x85 => payload.get(1..).is_some_and(|text| std::str::from_utf8(text).is_ok()),
            0x06 | 0x86 => payload.is_empty(),
            _ => false,
        }
}

/// Both kinds of end bear it, and an end that is told that nothing is due says so too.
fn ends(bytes: &[u8]) {
    let mut responder = Link::<4, PAYLOAD>::new("responder");
    let mut initiator = Link::<4, PAYLOAD>::new("initiator");
    initiator.connect(1, 0);
    let mut now = 0;
    for part in bytes.chunks(50) {
        for link in [&mut responder, &mut initiator] {
            link.receive(part, now);
            link.send(part, part.len() % 2 == 0);
            while let Some(event) = link.poll_event() {
                if let Event::Data { bytes, .. } = event {
                    assert!(bytes.len() < PAYLOAD);
                }
            }
            let mut frames = 0;
            while link.poll_transmit(now, &mut |_| {}) {
                frames += 1;
                assert!(frames < 20, "it would send for ever");
            }
            assert!(
                link.next_timeout().is_none_or(|at| at > now),
                "it is done, and says it is not"
            );
        }
        now += u64::from(part[0]) * 2_000;
    }
}
