use omir_core::cbor;
use omir_core::decode::Limits;

use super::*;
use crate::protocols::omir::link::MOST_TOLD;
use crate::router::Router;
use crate::router::testing::AuditLines;
use crate::serial::Share;
use crate::serial::testing::Bench;

fn handler(bench: &Bench) -> SessionHandler {
    let budget = Budget::new(Share::new(1.0));
    let access = AccessPolicy { write: false, token: None };
    SessionHandler::new(bench.protocols(), Arc::from("serial"), access, budget)
}

fn ask(handler: &mut SessionHandler, id: u64, request: &str) -> Result<(), MessageError> {
    let text = format!(r#"{{"id":{id},{request}}}"#);
    let message =
        cbor::to_vec(&omir_core::json::from_slice(text.as_bytes(), &Limits::default()).unwrap());
    handler.receive(&message, true, 0)
}

#[test]
fn who_asks_and_never_listens_is_not_served_any_longer() {
    let bench = Bench::new();
    let mut handler = handler(&bench);
    let answered = (1..1000).take_while(|&id| ask(&mut handler, id, r#""op":"info""#).is_ok());
    assert_eq!(answered.count(), MOST_UNTAKEN);
    handler.clear();
    ask(&mut handler, 1, r#""op":"info""#).unwrap();
}

#[test]
fn what_waits_is_not_decoded_and_what_may_not_be_done_does_not_wait() {
    let bench = Bench::new();
    let mut handler = handler(&bench);
    let push = |id: u64| {
        let items = std::iter::repeat_n(r#"{"a":0}"#, 100).collect::<Vec<_>>().join(",");
        (id, format!(r#""op":"push","items":[{items}]"#))
    };
    // Pending answers make no difference.
    for id in 1..=40 {
        ask(&mut handler, id, r#""op":"info""#).unwrap();
    }
    let (id, text) = push(41);
    ask(&mut handler, id, &text).unwrap();
    assert_eq!(handler.waiting.len(), 0);
    let told = |handler: &SessionHandler| {
        let last = cbor::from_slice(handler.out.back().unwrap(), &Limits::default()).unwrap();
        omir_core::json::to_string(&last)
    };
    assert!(told(&handler).contains("UNAUTHORIZED"), "{}", told(&handler));
    handler.gate = Gate::new(AccessPolicy { write: true, token: None });
    let (id, text) = push(42);
    ask(&mut handler, id, &text).unwrap();
    assert!(handler.waiting.iter().all(|waiting| waiting.message.len() < 600));
    assert_eq!(handler.waiting.len(), 1);
    // A megabyte as it is sent, and sixty as it would be read.
    let small = [0xbf, 0x61, b'a', 0x00, 0xff].repeat(200_000);
    let head = cbor::to_vec(
        &omir_core::json::from_slice(br#"{"id":43,"op":"push"}"#, &Limits::default()).unwrap(),
    );
    let message = [&[0xbf][..], &head[1..], b"\x65items\x9f", &small, &[0xff, 0xff]].concat();
    handler.receive(&message, true, 0).unwrap();
    assert!(told(&handler).contains("TOO_LARGE"), "{}", told(&handler));
    assert_eq!(handler.waiting.len(), 1);
}

/// There are more ways to write a message than a look at its head knows.
#[test]
fn a_push_in_disguise_is_refused_too() {
    let bench = Bench::new();
    let mut handler = handler(&bench);
    let text = br#"{"id":1,"op":"push","items":[{"resourceType":"Entity","id":"e","name":"e"}]}"#;
    let push = cbor::to_vec(&omir_core::json::from_slice(text, &Limits::default()).unwrap());
    // "This is CBOR": RFC 8949, section 3.4.6.
    let disguised = [&[0xd9, 0xd9, 0xf7][..], &push].concat();
    assert!(
        RequestMessage::peek(&disguised).is_none() && RequestMessage::decode(&disguised).is_ok()
    );
    handler.receive(&disguised, true, 0).unwrap();
    assert!(handler.waiting.is_empty() && handler.running.is_none());
    let answer = cbor::from_slice(handler.out.back().unwrap(), &Limits::default()).unwrap();
    let answer = omir_core::json::to_string(&answer);
    assert!(answer.contains("UNAUTHORIZED"), "{answer}");
}

#[test]
fn a_refusal_does_not_repeat_a_long_question() {
    let bench = Bench::new();
    let mut handler = handler(&bench);
    ask(&mut handler, 1, &format!(r#""op":"{}""#, "\u{e9}".repeat(100_000))).unwrap();
    let (answer, _) = handler.next_part().unwrap();
    assert!(answer.len() < 2 * MOST_TOLD, "{} bytes", answer.len());
}

#[test]
fn what_nobody_waits_for_does_not_go_on_in_any_number() {
    let bench = Bench::new();
    let mut handler = handler(&bench);
    // As many as may run do, and none of them is over.
    let busy: Vec<_> = (0..MOST_RUNNING).map(|_| handler.threads.clone()).collect();
    ask(&mut handler, 1, r#""op":"pull""#).unwrap();
    let (answer, _) = handler.next_part().unwrap();
    let answer = omir_core::json::to_string(&cbor::from_slice(answer, &Limits::default()).unwrap());
    assert!(answer.contains("BUSY"), "{answer}");
    drop(busy);
}

/// Covers each ending: answered at once, refused before it is decoded, no request at all, cancelled, or given up.
/// Invariant 37 of ARCHITECTURE.md.
#[test]
fn each_request_leaves_one_audit_line() {
    let bench = Bench::new();
    let audit = AuditLines::default();
    let mut handler = handler(&bench);
    handler.protocols.router = Router::new(bench.engine.clone(), [audit.sink()]);
    ask(&mut handler, 1, r#""op":"info""#).unwrap();
    ask(&mut handler, 2, r#""op":"push","items":[]"#).unwrap();
    ask(&mut handler, 3, r#""op":"unlock","token":"sesame42""#).unwrap();
    ask(&mut handler, 4, r#""op":"fetch""#).unwrap();
    ask(&mut handler, 5, r#""op":"pull","depth":1"#).unwrap();
    ask(&mut handler, 6, r#""op":"pull""#).unwrap();
    ask(&mut handler, 7, r#""op":"cancel","of":6"#).unwrap();
    ask(&mut handler, 8, r#""op":"pull""#).unwrap();
    handler.clear();
    let lines = audit.take();
    let told: Vec<String> = lines
        .iter()
        .map(|line| {
            let mut words = line.splitn(4, ' ');
            let (caller, method) = (words.next().unwrap(), words.next().unwrap());
            assert_eq!(caller, "serial");
            let method = method.strip_prefix("omir.").unwrap();
            format!("{method} {}", words.nth(1).unwrap())
        })
        .collect();
    let expected = [
        "info ok",
        "push UNAUTHORIZED",
        "unlock UNAUTHORIZED",
        "? INVALID_QUERY",
        "pull INVALID_QUERY",
        "pull BUSY",
        "cancel ok",
        "pull given up",
    ];
    assert_eq!(told, expected);
    let rejected = bench.engine.status("r1").get("rejected").cloned();
    assert_eq!(rejected, Some(5_u64.into()));
}
