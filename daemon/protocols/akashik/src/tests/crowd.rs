//! Many agents at once.

use std::collections::BTreeSet;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use omird_router::{Exchange, Incoming};

use super::*;

const AGENTS: usize = 80;
const UNITS: usize = 6;

/// Four words that no other number has, so that units about other things are not near.
fn name(number: usize) -> String {
    let syllable = |digit: usize| ["ba", "ku", "fi", "zo", "me", "lu", "ti", "ga"][digit % 8];
    let word = |of: usize| [of / 64, of / 8, of].map(syllable).concat();
    [number, number * 37 + 5, number * 101 + 77, number * 211 + 300].map(word).join(" ")
}

/// Messages that wait for one decision after the other, more of them than are looked at for conflicts: every one is answered, and
/// what was put off is made up for without anybody asking.
#[test]
fn a_crowd_loses_nothing_and_conflicts_are_found_behind_it() {
    let rig = Rig::new();
    let all: Vec<(String, u64, bool)> = std::thread::scope(|scope| {
        let recording: Vec<_> = (0..AGENTS)
            .map(|at| {
                let rig = &rig;
                scope.spawn(move || {
                    let agent = format!("agent-{at}");
                    rig.ask(&agent, "REGISTER", &format!(r#"{{"id":"{agent}","role":"scout"}}"#));
                    let record = |turn: usize| {
                        // Every two agents contradict each other about a thing of theirs.
                        let state = if at % 2 == 0 { "open" } else { "closed" };
                        let payload = format!(
                            r#"{{"type":"finding","content":"{} is {state}.","intent":{{"purpose":"p"}},
                            "confidence":{{"score":0.9,"reasoning":"seen"}}}}"#,
                            name(turn * AGENTS + at / 2)
                        );
                        let answer = rig.ask(&agent, "RECORD", &payload);
                        assert_eq!(text(&answer, "/status"), "accepted", "{answer:?}");
                        let id = text(&answer, "/memory_unit_id").to_owned();
                        let is_deferred = answer.get("conflict_detection").is_some();
                        (id, number(&answer, "/epoch"), is_deferred)
                    };
                    (0..UNITS).map(record).collect::<Vec<_>>()
                })
            })
            .collect();
        recording.into_iter().flat_map(|one| one.join().unwrap()).collect()
    });
    let ids: BTreeSet<&str> = all.iter().map(|(id, ..)| id.as_str()).collect();
    let epochs: BTreeSet<u64> = all.iter().map(|(_, epoch, _)| *epoch).collect();
    assert_eq!((ids.len(), epochs.len()), (AGENTS * UNITS, AGENTS * UNITS));

    // Nothing is sent but questions.
    let until = Instant::now() + Duration::from_secs(60);
    let field = rig.akashik.field(None);
    let left = || field.look(|model, _, _| model.deferred.len()).unwrap();
    while left() > 0 {
        assert!(Instant::now() < until, "{} units were not looked at", left());
        std::thread::sleep(Duration::from_millis(20));
    }
    let found = rig.ask("agent-0", "DETECT", r#"{"mode":"list"}"#);
    let found = list(&found, "/conflicts").len();
    assert_eq!(found, AGENTS * UNITS / 2);
}

/// A row of large messages is as large as it may be, and those in it are answered.
#[test]
fn a_row_that_is_full_is_busy() {
    let rig = Rig::new();
    rig.join(&["a"]);
    let field = rig.akashik.field(None);
    let deciding = field.hold();
    let (tell, told) = mpsc::channel();
    let large = unit(&"x".repeat(1000 << 10), "");
    for _ in 0..20 {
        let body = rig.message("a", "RECORD", None, &large);
        let incoming = Incoming { bytes: body.len(), ..Incoming::default() };
        let admitted = rig.router.admit(&with(4), &MESSAGE, incoming).unwrap();
        let tell = tell.clone();
        let reply = Box::new(move |answer| tell.send(answer).unwrap());
        rig.akashik.answer(admitted, message(&body, &[]), reply);
    }
    let refused: Vec<Response> = told.try_iter().collect();
    assert!((2..6).contains(&refused.len()), "{}", refused.len());
    for answer in &refused {
        assert_eq!((answer.status, text(&value(&answer.body), "/code")), (503, "BUSY"));
        assert!(answer.retry_after.is_some());
    }
    drop(deciding);
    // The next one decides about all that wait, and there is room again.
    rig.record("a", "The lift works.", "");
    let rest = (0..20 - refused.len()).map(|_| told.recv_timeout(Duration::from_secs(60)).unwrap());
    assert!(rest.map(|answer| answer.status).all(|status| status == 413 || status == 400));
}
