use omir_core::decode::Limits;
use omir_core::json;

use super::*;
use crate::params::Parameters;
use omird_engine::Encoding;
use omird_engine::Engine;
use omird_router::{Caller, Incoming, Refusal, Router};

/// The protocol, and a router before it.
struct Protocols {
    router: Router,
    omir: Omir,
}

impl Protocols {
    fn over(engine: &Engine) -> Self {
        Self { router: Router::new(engine.clone(), []), omir: Omir::new(engine.clone(), "r1") }
    }
}

fn protocols() -> (tempfile::TempDir, Engine, Protocols) {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open(omird_engine::testing::parts(dir.path()), &mut |_| {}).unwrap();
    let all = Protocols::over(&engine);
    (dir, engine, all)
}

fn parameters(text: &str) -> Parameters {
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').unwrap();
        (name.to_owned(), value.to_owned())
    };
    text.split(';').filter(|part| !part.is_empty()).map(pair).collect()
}

fn members(text: &str) -> Payload {
    Payload::Members(json::from_slice(text.as_bytes(), &Limits::default()).unwrap())
}

fn asked(all: &Protocols, operation: Operation, params: Params) -> Result<String, Error> {
    let caller = Caller::trusted("test", "test");
    let admitted = all.router.admit(&caller, methods::method(operation), Incoming::default());
    let shape = |response: Response| response.encode(Encoding::Json);
    let encoded = all.omir.ask(admitted.map_err(worded)?, params, shape)?;
    Ok(String::from_utf8(encoded.bytes).unwrap())
}

fn remembered(all: &Protocols, text: &str, more: &str) -> Result<String, Error> {
    let payload = Payload::Resources(text.into(), Encoding::Json);
    asked(all, Operation::Remember, Params { parameters: parameters(more), payload })
}

const DOOR: &str = r#"{"resourceType":"MemoryRecord","id":"a","content":"a door"}"#;

#[test]
fn each_operation_is_answered() {
    let (_dir, engine, all) = protocols();
    let stored = remembered(&all, DOOR, "").unwrap();
    assert!(stored.contains(r#""ref":"MemoryRecord/a""#), "{stored}");
    for (operation, text, expected) in [
        (Operation::Remember, "", "there is no payload"),
        (Operation::Recall, "q=door", r#""total":1"#),
        (Operation::Anchor, "ref=MemoryRecord/a", r#""anchored":true"#),
        (Operation::Feedback, "ref=MemoryRecord/a;outcome=confirmed", r#""calibrated":"#),
        (Operation::Export, "", r#""resourceType":"Bundle""#),
        (Operation::Compact, "scope=all", r#""segments"#),
        (Operation::Sweep, "dryRun=true", r#""dryRun":true"#),
        (Operation::Explain, "ref=MemoryRecord/a", r#""retrievability""#),
        (Operation::Rebase, "undo=MemoryRecord/none", "MemoryRecord/none"),
        (Operation::Status, "", r#""readOnly":false"#),
        (Operation::Status, "how=well", "unknown parameter `how`"),
        (Operation::Backup, "", r#""segments""#),
        (Operation::Backup, "segment=1;length=9000000", "more than 1048576 bytes"),
        // The backup sealed it.
        (Operation::Prove, "ref=MemoryRecord/a", r#""format":"omird-proof-1""#),
        (Operation::Prove, "ref=MemoryRecord/b", "MemoryRecord/b is not in the store"),
        (Operation::Prove, "", "ref"),
        (Operation::Forget, "ref=MemoryRecord/a", r#""forgotten":1"#),
    ] {
        let params = Params { parameters: parameters(text), ..Params::default() };
        let answer = asked(&all, operation, params);
        let answer = answer.unwrap_or_else(|error| error.to_string());
        assert!(answer.contains(expected), "{}: {answer}", operation.as_str());
    }
    engine.stop();
}

#[test]
fn members_are_parameters_and_parameters_win() {
    let (_dir, engine, all) = protocols();
    remembered(&all, DOOR, "").unwrap();
    let recalled = |text: &str, payload: &str| {
        let (parameters, payload) = (parameters(text), members(payload));
        asked(&all, Operation::Recall, Params { parameters, payload }).unwrap()
    };
    assert!(recalled("", r#"{"q":"window"}"#).contains(r#""total":0"#));
    assert!(recalled("q=door", r#"{"q":"window"}"#).contains(r#""total":1"#));
    engine.stop();
}

#[test]
fn a_rebase_may_have_its_parameters_among_the_keyframes() {
    let (_dir, engine, all) = protocols();
    let rebase = |text: &str, payload: Payload| {
        let parameters = parameters(text);
        asked(&all, Operation::Rebase, Params { parameters, payload })
    };
    let keyframes = r#""keyframes":{"kf_1":{"position":[1,0,0]}}"#;
    let told = rebase("", members(&format!(r#"{{{keyframes},"dryRun":true}}"#))).unwrap();
    assert!(told.contains(r#""untied":1"#) && !told.contains(r#""ref""#), "{told}");
    assert_eq!(rebase("dryRun=true", members(&format!("{{{keyframes}}}"))).unwrap(), told);
    let error = rebase("", members(r#"{"undo":"MemoryRecord/none"}"#)).unwrap_err();
    assert_eq!(error.code, Code::NotFound, "{error}");
    let both = members(&format!(r#"{{{keyframes},"undo":"MemoryRecord/none"}}"#));
    assert_eq!(rebase("", both).unwrap_err().path, "/undo");
    let error = rebase("", members("[1]")).unwrap_err();
    assert!(error.message.contains("keyframes"), "{error}");
    engine.stop();
}

#[test]
fn only_remember_takes_resources() {
    let (_dir, engine, all) = protocols();
    for operation in Operation::ALL {
        // A backup passes a payload over.
        if !matches!(operation, Operation::Remember | Operation::Backup) {
            let payload = Payload::Resources(DOOR.into(), Encoding::Json);
            let error = asked(&all, operation, Params { payload, ..Params::default() });
            assert_eq!(error.unwrap_err().code, Code::InvalidQuery, "{}", operation.as_str());
        }
    }
    let error = remembered(&all, DOOR, "merge=never").unwrap_err();
    assert_eq!((error.code, &*error.path), (Code::InvalidQuery, "/merge"));
    engine.stop();
}

/// A dry run changes nothing, and a backup has segments made of what there is.
#[test]
fn a_read_only_memory_is_read_swept_dry_and_backed_up() {
    let dir = tempfile::tempdir().unwrap();
    let mut parts = omird_engine::testing::parts(dir.path());
    parts.settings.read_only = true;
    let engine = Engine::open(parts, &mut |_| {}).unwrap();
    let all = Protocols::over(&engine);
    for operation in Operation::ALL {
        let is_refused = |text: &str| {
            let params = Params { parameters: parameters(text), ..Params::default() };
            match asked(&all, operation, params) {
                Err(error) => error.code == Code::Unauthorized,
                Ok(_) => false,
            }
        };
        let reads = matches!(
            operation,
            Operation::Recall
                | Operation::Export
                | Operation::Explain
                | Operation::Status
                | Operation::Backup
                | Operation::Prove
        );
        assert_eq!(is_refused(""), !reads, "{}", operation.as_str());
        if operation == Operation::Sweep {
            assert!(!is_refused("dryRun=true"));
        }
    }
    engine.stop();
}

/// The permit of a large import goes back when its request is over.
#[test]
fn one_large_import_is_let_in_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let mut parts = omird_engine::testing::parts(dir.path());
    parts.settings.limits.max_payload_bytes = 1000;
    let engine = Engine::open(parts, &mut |_| {}).unwrap();
    let router = Router::new(engine.clone(), []);
    let large = Incoming { bytes: 1001, merges: true, ..Incoming::default() };
    let caller = Caller::trusted("test", "a");
    let admit = || router.admit(&caller, methods::method(Operation::Remember), large);
    let first = admit().unwrap();
    assert_eq!(admit().map(Admitted::done), Err(Refusal::ImportUnderWay));
    first.done();
    admit().unwrap().done();
    engine.stop();
}
