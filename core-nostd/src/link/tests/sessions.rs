//! Beginning, course and end of sessions.

use super::*;

/// The examples of docs/serial-protocol.md.
#[cfg(feature = "alloc")]
#[test]
fn the_document_shows_frames_as_they_are() {
    let document = include_str!("../../../../docs/serial-protocol.md");
    let push = message::RequestMessage {
        id: 1,
        request: message::Request::Push(message::Push::default()),
    }
    .encode();
    let greet = |window, max_payload, name| Greeting { window, max_payload, name };
    for (from_responder, seq, body) in [
        (false, 0, Body::Hello(greet(2, 128, "mcu"))),
        (true, 0, Body::Welcome(greet(32, 256, ""))),
        (false, 0, Body::Data { last: true, bytes: &push }),
        (true, 1, Body::Ack { bitmap: 0, room: 32 }),
        (false, 0, Body::Bye { reason: Reason::Done, text: "" }),
    ] {
        let mut shown = String::new();
        let frame = Frame { from_responder, session: 0x0403_0201, seq, body };
        frame.encode(&mut |byte| shown += &format!("{byte:02x} "));
        assert!(
            document.contains(shown.trim()),
            "docs/serial-protocol.md should show {shown}for {frame:?}"
        );
    }
    let shown: Vec<String> = push.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(document.contains(&shown.join(" ")));
}

#[test]
fn the_ends_know_each_other() {
    let mut world = Small::new(1, (1, 1));
    world.finish(5);
    assert_eq!(world.a.link.peer_name(), "responder");
    assert_eq!(world.b.link.peer_name(), "initiator");
    // A second is enough to find out that both are there still; nothing else is said.
    let left = world.to_a.left + world.to_b.left;
    world.pass(10_000);
    assert!(world.a.open && world.b.open);
    let bytes = world.to_a.left + world.to_b.left - left;
    assert!(bytes < 500, "{bytes} bytes in ten idle seconds");
    world.a.link.close(Reason::Done);
    world.pass(100);
    assert!(!world.b.open);
    assert_eq!(world.b.link.next_timeout(), None);
}

#[test]
fn an_end_that_does_not_listen_stops_the_other_one() {
    let mut a = Link::<2, 128>::new("a");
    let mut b = Link::<2, 128>::new("b");
    a.connect(1, 0);
    let (mut sent, mut now) = (0, 0);
    let message = [5; 2_000];
    let exchange = |a: &mut Link<2, 128>, b: &mut Link<2, 128>, now: u64| {
        let mut line = Vec::new();
        while a.poll_transmit(now, &mut |byte| line.push(byte)) {}
        b.receive(&line, now);
        line.clear();
        while b.poll_transmit(now, &mut |byte| line.push(byte)) {}
        a.receive(&line, now);
    };
    // b takes no event but the first for ten seconds.
    for _ in 0..1_000 {
        exchange(&mut a, &mut b, now);
        sent += a.send(&message[sent..], true);
        now += 10_000;
    }
    assert_eq!(sent, 4 * 127, "two windows: the one over there, and ours");
    assert_eq!(a.counts().resent, 0, "it was all acknowledged");
    let (mut heard, mut steps) = (0, 0);
    assert_eq!(b.poll_event(), Some(Event::Opened));
    while heard < message.len() {
        while let Some(Event::Data { bytes, .. }) = b.poll_event() {
            heard += bytes.len();
        }
        exchange(&mut a, &mut b, now);
        sent += a.send(&message[sent..], true);
        now += 10_000;
        steps += 1;
        assert!(steps < 100);
    }
}

#[test]
fn a_responder_that_knows_another_version_only_says_so() {
    let mut b = Link::<2, 128>::new("b");
    let hello =
        Frame { from_responder: false, session: 5, seq: 0, body: Body::Foreign { version: 9 } };
    let mut line = Vec::new();
    hello.encode(&mut |byte| line.push(byte));
    b.receive(&line, 0);
    assert!(!b.is_open());
    let mut deframer = Deframer::<128>::new();
    let mut bye = None;
    b.poll_transmit(0, &mut |byte| {
        if let Some(Ok(Frame { session, body: Body::Bye { reason, .. }, .. })) = deframer.push(byte)
        {
            bye = Some((session, reason));
        }
    });
    assert_eq!(bye, Some((5, Reason::Version)));
}

#[test]
fn an_echo_is_not_an_answer() {
    let mut a = Link::<2, 128>::new("a");
    a.connect(1, 0);
    for now in (0..30_000_000).step_by(10_000) {
        let mut line = Vec::new();
        while a.poll_transmit(now, &mut |byte| line.push(byte)) {}
        a.receive(&line, now);
        assert_eq!(a.poll_event(), None);
    }
}

#[test]
fn a_link_of_a_microcontroller_is_small() {
    let size = size_of::<Link<2, 128>>();
    assert!(size <= 1_280, "{size} bytes");
}

/// The frames an end has to say, one after the other.
fn said<const W: usize, const P: usize>(link: &mut Link<W, P>, now: u64) -> Vec<u8> {
    let mut line = Vec::new();
    while link.poll_transmit(now, &mut |byte| line.push(byte)) {}
    line
}

#[test]
fn silence_ends_a_session_also_where_nothing_can_be_sent() {
    const SILENCE: u64 = 15_000_000;
    for (heard_at, over) in [(SILENCE - 1, false), (SILENCE, true), (4 * SILENCE, true)] {
        let (mut near, mut far) = (Link::<4, 64>::new("near"), Link::<4, 64>::new("far"));
        near.connect(7, 0);
        far.receive(&said(&mut near, 0), 0);
        assert_eq!(far.poll_event(), Some(Event::Opened));
        near.receive(&said(&mut far, 0), 0);
        assert_eq!(near.poll_event(), Some(Event::Opened));
        assert_eq!(far.send(b"what the other end no longer waits for", true), 38);
        // The device takes nothing, so that it is never asked what to send; then there is a frame of the session.
        near.send(b"late", true);
        let late = said(&mut near, 1_000_000);
        far.receive(&late, heard_at);
        if over {
            assert_eq!(far.poll_event(), Some(Event::Closed(Closed::Silence)));
            assert_eq!(far.poll_event(), None, "it is of no session");
            assert!(!far.is_open());
            near.receive(&said(&mut far, heard_at), 1_000_001);
            assert_eq!(near.poll_event(), Some(Event::Closed(Closed::Bye(Reason::NoSession))));
        } else {
            assert_eq!(far.poll_event(), Some(Event::Data { bytes: b"late", last: true }));
        }
    }
}

/// A line is to keep the order of what it carries. What if one repeats a HELLO late, all the same? Then the responder
/// begins again, and the initiator hears of that: neither goes on as if nothing had been.
#[test]
fn a_hello_that_is_repeated_late_ends_the_session_at_both_ends() {
    let (mut near, mut far) = (Link::<4, 64>::new("near"), Link::<4, 64>::new("far"));
    near.connect(7, 0);
    let hello = said(&mut near, 0);
    far.receive(&hello, 0);
    assert_eq!(far.poll_event(), Some(Event::Opened));
    // In time, it is answered and nothing else.
    far.receive(&hello, 0);
    assert_eq!(far.poll_event(), None);
    near.receive(&said(&mut far, 0), 0);
    assert_eq!(near.poll_event(), Some(Event::Opened));
    near.receive(&said(&mut far, 0), 0);
    assert!(near.is_open());
    near.send(b"one", true);
    far.receive(&said(&mut near, 0), 0);
    assert_eq!(far.poll_event(), Some(Event::Data { bytes: b"one", last: true }));
    assert_eq!(far.send(b"an answer", true), 9);
    let answer = said(&mut far, 0);
    near.receive(&answer, 0);

    far.receive(&hello, 0);
    // Messages of the old session are not sent in the new one.
    assert_eq!(far.send(b"the rest", true), 0, "nobody here has heard of it yet");
    assert_eq!(far.poll_event(), Some(Event::Opened));
    assert_eq!(far.send(b"hello", true), 5);
    near.receive(&said(&mut far, 0), 0);
    assert_eq!(near.poll_event(), Some(Event::Data { bytes: b"an answer", last: true }));
    assert_eq!(near.poll_event(), Some(Event::Closed(Closed::Bye(Reason::NoSession))));
    assert_eq!(near.poll_event(), None, "what was said in the other session is not heard");
}
