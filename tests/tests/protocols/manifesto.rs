//! Manifesto Memory across power cuts: a World that was acknowledged is there, as it came; another one is there whole or
//! not at all.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Instant;

use omird::access::Access;
use omird::engine::Engine;
use omird::protocols::manifesto::{ACTOR, GET, Keys, PROVE, PUT, VERIFY_PROOF};
use omird::protocols::{ProtocolSettings, Protocols};
use omird::router::{Caller, Incoming, Message, Method, Response, Router, Scopes};
use omird_tests::cut_disk::{CutDisk, EVERYTHING, ONLY_SYNCED};
use omird_tests::session::{Session, TestClock};

fn ask(engine: &Engine, method: &'static Method, body: &str, world_id: &str) -> Option<Response> {
    let settings =
        ProtocolSettings { manifesto_keys: Keys::signing([7; 32]), ..ProtocolSettings::default() };
    let access = Access::open_to_all(Protocols::SCOPES);
    let router = Router::new(engine.clone(), []);
    let protocols = Protocols::configured(engine, "r1", access, router, settings);
    let caller = Caller { scopes: Scopes::only(&[ACTOR]), ..Caller::trusted("test", "a") };
    let incoming = Incoming { bytes: body.len(), ..Incoming::default() };
    let admitted = protocols.router.admit(&caller, method, incoming).expect("an actor may");
    let message = Message {
        body: body.as_bytes().to_vec(),
        parameters: vec![("worldId".to_owned(), world_id.to_owned())],
        request_id: None,
        trace_id: None,
        began: Instant::now(),
    };
    let exchange = protocols.exchange("manifesto").expect("it is served").clone();
    let (tell, told) = channel();
    exchange.answer(admitted, message, Box::new(move |answer| drop(tell.send(answer))));
    told.recv().ok()
}

/// A World, with its members in the order in which the store gives them.
fn world(n: usize) -> String {
    format!(r#"{{"note":"the dock, seen {n} times","worldId":"w-{n}","createdAt":{n}}}"#)
}

/// Puts Worlds until one is not taken; returns how many were.
fn live(disk: &CutDisk, clock: &Arc<TestClock>) -> usize {
    let Ok(session) = Session::open(disk, clock) else { return 0 };
    let is_stored = |n: &usize| {
        let body = format!(r#"{{"world":{}}}"#, world(*n));
        ask(&session, &PUT, &body, "").is_some_and(|answer| answer.status == 201)
    };
    (0..6).take_while(is_stored).count()
}

#[test]
fn a_cut_at_any_operation_keeps_each_acknowledged_world() {
    for cut in 0.. {
        let (disk, clock) = (CutDisk::new(), TestClock::new());
        disk.cut_at(cut);
        let acknowledged = live(&disk, &clock);
        for seed in [ONLY_SYNCED, EVERYTHING, 2 * cut + 2] {
            let session = Session::open(&disk.survivors(seed), &clock).expect("it opens");
            for n in 0..6 {
                let answer = ask(&session, &GET, "", &format!("w-{n}")).expect("it is answered");
                let body = String::from_utf8(answer.body).expect("JSON");
                let whole = format!(r#"{{"world":{}}}"#, world(n));
                let is_absent = body == r#"{"world":null}"#;
                assert!(
                    body == whole || (is_absent && n >= acknowledged),
                    "cut {cut}, survivors {seed}, {n} of {acknowledged}: {body}"
                );
            }
        }
        if !disk.is_off() {
            assert_eq!(acknowledged, 6);
            assert!(cut > 10, "every operation was cut: {cut}");
            break;
        }
    }
}

#[test]
fn a_proof_holds_after_a_restart() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).expect("it opens");
    let asked = format!(r#"{{"memory":{{"worldId":"w-1"}},"world":{}}}"#, world(1));
    let proven = String::from_utf8(ask(&session, &PROVE, &asked, "").unwrap().body).unwrap();
    drop(session);
    let session = Session::open(&disk, &clock).expect("it opens again");
    let verify = proven.replacen(r#"{"valid":true,"#, "{", 1);
    let verified = ask(&session, &VERIFY_PROOF, &verify, "").unwrap();
    assert_eq!(verified.body, br#"{"valid":true}"#);
}
