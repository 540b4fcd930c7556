//! The examples of the JSON-RPC 2.0 specification, section 7, and the bounds of ours.

use super::*;

/// Answers with what `subtract` and `notify` of the specification do.
fn answered(body: &str) -> Option<String> {
    let work = |asked: Result<RpcCall, RpcError>| {
        let call = asked?;
        match (call.method.as_str(), call.params) {
            ("subtract", Some(Value::Object(map))) => {
                let of = |name| map.get(name).and_then(Value::as_i64).unwrap_or_default();
                Ok(Value::from(of("minuend") - of("subtrahend")))
            }
            ("fail", _) => {
                let mut error = RpcError::new(-32001, "no such thing");
                error.data.insert("path", "/a");
                Err(error)
            }
            _ => Err(RpcError::new(METHOD_NOT_FOUND, "no such method")),
        }
    };
    let response = match read(body.as_bytes()) {
        Ok(message) => respond(message, work),
        Err(error) => Some(response(Value::Null, Err(error))),
    };
    response.map(|value| json::to_string(&value))
}

#[test]
fn a_request_is_answered_under_its_id() {
    let ask = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"subtract","params":{{"minuend":42,"subtrahend":23}},"id":{id}}}"#
        )
    };
    for id in ["3", "0", "\"\"", "\"x\"", "null", "1.5"] {
        let expected = format!(r#"{{"jsonrpc":"2.0","result":19,"id":{id}}}"#);
        assert_eq!(answered(&ask(id)), Some(expected));
    }
    let failed = answered(r#"{"jsonrpc":"2.0","method":"fail","id":1}"#).unwrap();
    let expected = r#"{"jsonrpc":"2.0","error":{"code":-32001,"message":"no such thing","data":{"path":"/a"}},"id":1}"#;
    assert_eq!(failed, expected);
}

#[test]
fn a_notification_is_worked_on_and_not_answered() {
    assert_eq!(answered(r#"{"jsonrpc":"2.0","method":"update","params":{}}"#), None);
    assert_eq!(
        answered(r#"[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b"}]"#),
        None
    );
    let mut seen = Vec::new();
    let message =
        read(br#"[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b"}]"#).unwrap();
    respond(message, |asked| {
        seen.push(asked.unwrap().method);
        Ok(Value::Null)
    });
    assert_eq!(seen, ["a", "b"]);
}

#[test]
fn what_is_no_request_has_its_code() {
    let code = |body: &str| {
        let answer = answered(body).unwrap();
        let value = json::from_slice(answer.as_bytes(), &Limits::default()).unwrap();
        let code = value.pointer("/error/code").and_then(Value::as_i64).unwrap();
        (code, value.get("id").cloned().unwrap())
    };
    let null = Value::Null;
    for (body, expected) in [
        (r#"{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]"#, -32700),
        ("", -32700),
        ("{", -32700),
        ("[]", -32600),
        ("1", -32600),
        (r#"{"jsonrpc":"2.0","method":1,"params":"bar"}"#, -32600),
        (r#"{"jsonrpc":"1.0","method":"subtract"}"#, -32600),
        (r#"{"method":"subtract"}"#, -32600),
        (r#"{"jsonrpc":"2.0","method":"subtract","id":{}}"#, -32600),
    ] {
        assert_eq!(code(body), (expected, null.clone()), "{body}");
    }
    assert_eq!(code(r#"{"jsonrpc":"2.0","method":"a","params":7,"id":5}"#), (-32600, 5.into()));
    assert_eq!(code(r#"{"jsonrpc":"2.0","id":"x"}"#), (-32600, "x".into()));
    let deep = format!(
        r#"{{"jsonrpc":"2.0","method":"a","id":1,"params":{}{}}}"#,
        "[".repeat(40),
        "]".repeat(40)
    );
    assert_eq!(code(&deep), (-32600, null));
}

#[test]
fn a_batch_is_answered_in_order_without_its_notifications() {
    let batch = r#"[{"jsonrpc":"2.0","method":"subtract","params":{"minuend":42,"subtrahend":23},"id":"2"},
        {"jsonrpc":"2.0","method":"notify"},{"foo":"boo"},1,{"jsonrpc":"2.0","method":"foo.get","id":"5"}]"#;
    let answer = answered(batch).unwrap();
    let value = json::from_slice(answer.as_bytes(), &Limits::default()).unwrap();
    let of = |value: &Value| {
        let code = value.pointer("/error/code").and_then(Value::as_i64);
        (code, json::to_string(value.get("id").unwrap()))
    };
    let seen: Vec<_> = value.as_array().unwrap().iter().map(of).collect();
    let expected = [
        (None, "\"2\"".to_owned()),
        (Some(-32600), "null".to_owned()),
        (Some(-32600), "null".to_owned()),
        (Some(-32601), "\"5\"".to_owned()),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_batch_has_a_bound() {
    let batch = |count: usize| {
        let one = r#"{"jsonrpc":"2.0","method":"subtract","params":{"minuend":1},"id":1}"#;
        format!("[{}]", vec![one; count].join(","))
    };
    let whole = answered(&batch(MOST_IN_BATCH)).unwrap();
    assert_eq!(whole.matches("\"result\":1").count(), MOST_IN_BATCH);
    let refused = answered(&batch(MOST_IN_BATCH + 1)).unwrap();
    assert!(refused.starts_with(r#"{"jsonrpc":"2.0","error":{"code":-32600"#), "{refused}");
}

#[test]
fn members_that_json_rpc_does_not_know_are_kept() {
    let body = br#"{"jsonrpc":"2.0","method":"a","id":1,"a2a_context":{"trace_id":"x"}}"#;
    let Ok(Incoming::Single(member)) = read(body) else { panic!("it is one request") };
    let Member::Call(call) = *member else { panic!("it is a call") };
    assert_eq!((call.bytes, call.params), (body.len(), None));
    let trace = call.beside.get("a2a_context").and_then(|context| context.get("trace_id"));
    assert_eq!(trace, Some(&"x".into()));
}
