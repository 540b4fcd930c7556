//! The protocol over a real engine. Names such as M-4 and CR-12 are those of the specification.

mod bench;
mod rows;
mod selecting;
mod storing;

use omir_core::value::Value;
use omird_router::Scope;

use self::bench::{Bench, actor, agent, authority, value};
use crate::exchange::REQUEST_ID;
use crate::*;

/// M-4, CR-12, FP-04, FP-15, FP-16: an Authority judges a trace. It cannot select, prove, or look into the store.
#[test]
fn m_04_cr_12_an_authority_reaches_nothing_but_pure_functions() {
    let bench = Bench::new();
    for method in MANIFESTO.methods {
        let is_open = [&VERIFY_PROOF, &VALIDATE, &EVALUATE, &KEYS, &HEALTH].contains(method);
        let (status, answer) = bench.ask(&authority(), method, "{}", &[("worldId", "w")]);
        assert_eq!(status == 403, !is_open, "{}: {answer}", method.name);
        if !is_open {
            assert_eq!(answer.get("code"), Some(&"UNAUTHORIZED".into()));
        }
        let (status, _) = bench.ask(&actor(), method, "{}", &[("worldId", "w")]);
        assert_eq!(status == 403, **method == EVALUATE, "{}", method.name);
    }
}

/// M-10, CR-11, FP-03, FP-13, FP-14: a caller with neither scope, as Projection, Host and Core do not, reaches no layer.
#[test]
fn m_10_cr_11_who_has_no_scope_of_memory_reaches_no_layer() {
    let bench = Bench::new();
    let other = omird_router::testing::somebody(&[Scope::READ, Scope::WRITE]);
    for method in MANIFESTO.methods {
        let (status, _) = bench.ask(&other, method, "{}", &[("worldId", "w")]);
        assert_eq!(status == 403, **method != HEALTH, "{}", method.name);
    }
}

#[test]
fn what_is_no_request_is_refused_where_it_is_wrong() {
    let bench = Bench::new();
    let deep = format!(r#"{{"world":{}{}}}"#, "[".repeat(70), "]".repeat(70));
    for (method, body, status, code, path) in [
        (&PUT, "", 400, "INVALID_REQUEST", ""),
        (&PUT, "[]", 400, "INVALID_REQUEST", ""),
        (&PUT, r#"{"world":{"worldId":"w"},"world":{}}"#, 400, "INVALID_REQUEST", ""),
        (&PUT, "{}", 400, "INVALID_REQUEST", ""),
        (&PUT, r#"{"world":{}}"#, 400, "INVALID_WORLD", "/world/worldId"),
        (
            &PUT,
            r#"{"world":{"worldId":"w","n":9007199254740993}}"#,
            400,
            "INVALID_WORLD",
            "/world/n",
        ),
        (&PUT, r#"{"world":{"worldId":"w"},"metadata":{}}"#, 400, "INVALID_REQUEST", "/metadata"),
        (&PUT, r#"{"worlds":[]}"#, 400, "INVALID_REQUEST", "/worlds"),
        (&PUT, &deep, 413, "TOO_LARGE", ""),
        (&PROVE, r#"{"memory":{"worldId":"w"}}"#, 400, "INVALID_REQUEST", "/world"),
        (
            &PROVE,
            r#"{"memory":{},"world":{"worldId":"w"}}"#,
            400,
            "INVALID_REQUEST",
            "/memory/worldId",
        ),
        (
            &PROVE,
            r#"{"memory":{"worldId":"w"},"world":{"worldId":"w"},"member":"x"}"#,
            400,
            "INVALID_REQUEST",
            "/member",
        ),
        (&VERIFY_PROOF, r#"{"proof":{"method":""}}"#, 400, "INVALID_REQUEST", "/proof/method"),
        (
            &VERIFY_PROOF,
            r#"{"proof":{"method":"existence","verifiedAt":1}}"#,
            400,
            "INVALID_REQUEST",
            "/proof/verifiedAt",
        ),
        (&TRACE, r#"{"request":{},"result":{}}"#, 400, "INVALID_REQUEST", "/request/query"),
        (&ATTACH, r#"{"proposal":{},"trace":{}}"#, 400, "INVALID_REQUEST", "/trace/selector"),
        (&EVALUATE, r#"{"proposal":{},"policy":{"x":1}}"#, 400, "INVALID_REQUEST", "/policy/x"),
    ] {
        let caller = if *method == EVALUATE { authority() } else { actor() };
        let (found, answer) = bench.ask(&caller, method, body, &[]);
        assert_eq!(found, status, "{body}: {answer}");
        assert_eq!(
            (answer.get("code"), answer.get("path")),
            (Some(&code.into()), Some(&path.into())),
            "{answer}"
        );
    }
    let many = format!(r#"{{"trace":{{"selected":[{}0]}}}}"#, "0,".repeat(1000));
    let (status, answer) = bench.ask(&actor(), &VALIDATE, &many, &[]);
    assert_eq!((status, answer.get("path")), (413, Some(&"/trace/selected".into())));
    let (status, answer) =
        bench.ask(&actor(), &ATTACH, &many.replacen('{', r#"{"proposal":{},"#, 1), &[]);
    assert_eq!((status, answer.get("path")), (413, Some(&"/trace/selected".into())));
    let result = many.replace("trace", "result").replacen('{', r#"{"request":{},"#, 1);
    let (status, answer) = bench.ask(&actor(), &TRACE, &result, &[]);
    assert_eq!((status, answer.get("path")), (413, Some(&"/result/selected".into())));
}

#[test]
fn each_answer_is_as_its_schema_says() {
    let bench = Bench::new();
    let world = r#"{"worldId":"w-1","note":"the dock","createdAt":1700000000000}"#;
    let put = bench.ask(&actor(), &PUT, &format!(r#"{{"world":{world}}}"#), &[]);
    let request =
        r#"{"query":"dock","atWorldId":"w-9","selector":{"actorId":"agent-1","kind":"agent"}}"#;
    let selected = bench.ask(&actor(), &SELECT, request, &[]);
    let both = format!(r#"{{"request":{request},"result":{}}}"#, selected.1);
    let trace = bench.ask(&actor(), &TRACE, &both, &[]);
    let attach =
        format!(r#"{{"proposal":{{"proposalId":"p1"}},"trace":{},"record":true}}"#, trace.1);
    let attached = bench.ask(&actor(), &ATTACH, &attach, &[]);
    let proposal = attached.1.get("proposal").unwrap();
    let prove = format!(r#"{{"memory":{{"worldId":"w-1"}},"world":{world}}}"#);
    let proven = bench.ask(&actor(), &PROVE, &prove, &[]);
    let proof = proven.1.get("proof").unwrap();
    let found = bench.ask(&actor(), &GET, "", &[("worldId", "w-1")]);
    let answers = [
        (&PUT, put),
        (&SELECT, selected.clone()),
        (&TRACE, trace.clone()),
        (&ATTACH, attached.clone()),
        (&PROVE, proven.clone()),
        (&GET, found),
        (&GET, bench.ask(&actor(), &GET, "", &[("worldId", "none")])),
        (&EXISTS, bench.ask(&actor(), &EXISTS, "", &[("worldId", "w-1")])),
        (
            &VERIFY_PROOF,
            bench.ask(&authority(), &VERIFY_PROOF, &format!(r#"{{"proof":{proof}}}"#), &[]),
        ),
        (&VALIDATE, bench.ask(&actor(), &VALIDATE, &format!(r#"{{"trace":{}}}"#, trace.1), &[])),
        (
            &EVALUATE,
            bench.ask(&authority(), &EVALUATE, &format!(r#"{{"proposal":{proposal}}}"#), &[]),
        ),
        (&KEYS, bench.ask(&authority(), &KEYS, "", &[])),
        (&HEALTH, bench.ask(&actor(), &HEALTH, "", &[])),
    ];
    let mut seen = Vec::new();
    for (method, (status, answer)) in answers {
        let told = methods::answers(method).iter().find(|(known, _)| *known == status);
        let (_, schema) =
            told.unwrap_or_else(|| panic!("{} answers {status}: {answer}", method.name));
        assert_eq!(*schema, method.about.response);
        bench::is_as_its_schema_says(schema, &answer);
        seen.push(method.name);
    }
    for method in MANIFESTO.methods {
        assert!(seen.contains(&method.name), "{} was not asked", method.name);
        assert!(methods::schemas("").contains_key(method.about.response));
        assert!(
            method.about.payload.is_empty()
                || methods::schemas("").contains_key(method.about.payload)
        );
    }
    assert_eq!(value(&proposal.to_string()), *proposal);
}

/// FP-17 has its other half in the core; an Authority that is given evidence in the place of a proof is told so.
#[test]
fn a_caller_speaks_as_its_own_agent() {
    let bench = Bench::new();
    let request = |actor: &str| {
        format!(
            r#"{{"query":"x","atWorldId":"w","selector":{{"actorId":"{actor}","kind":"agent"}}}}"#
        )
    };
    let named = agent("agent-1");
    assert_eq!(bench.ask(&named, &SELECT, &request("agent-1"), &[]).0, 200);
    let (status, answer) = bench.ask(&named, &SELECT, &request("other"), &[]);
    assert_eq!((status, answer.get("path")), (403, Some(&"/selector/actorId".into())));
    assert_eq!(
        bench.ask(&actor(), &SELECT, &request("other"), &[]).0,
        200,
        "whom the message names"
    );
    let both =
        format!(r#"{{"request":{},"result":{{"selected":[],"selectedAt":1}}}}"#, request("other"));
    assert_eq!(bench.ask(&named, &TRACE, &both, &[]).0, 403);
    let trace = bench.ask(&actor(), &TRACE, &both, &[]).1;
    for record in [true, false] {
        let attach = format!(r#"{{"proposal":{{}},"trace":{trace},"record":{record}}}"#);
        let (status, answer) = bench.ask(&named, &ATTACH, &attach, &[]);
        let path = answer.get("path").and_then(Value::as_str);
        assert_eq!((status, path), (403, Some("/trace/selector/actorId")), "{answer}");
    }
}

#[test]
fn each_answer_names_its_request() {
    let bench = Bench::new();
    let named = bench.answer(&actor(), &KEYS, "", &[], Some("r-1"));
    assert_eq!(named.headers, [(REQUEST_ID, "r-1".to_owned())]);
    let made_up = bench.answer(&actor(), &SELECT, "{", &[], None);
    assert_eq!((made_up.status, made_up.headers.len()), (400, 1));
    assert!(!made_up.headers[0].1.is_empty());
}
