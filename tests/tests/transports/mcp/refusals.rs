//! What is refused, in words that a model can act on; and the audit line of each call.

use std::sync::Arc;

use omird::engine::Settings;
use omird::router::{Scope, Scopes};
use omird_tests::cut_disk::CutDisk;
use omird_tests::session::settings;
use rmcp::model::CallToolRequestParams;
use serde_json::json;

use crate::mcp::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_named_and_tells_what_is_expected() {
    let rig = Rig::open().await;
    for (tool, arguments, path, expected) in [
        ("remember", json!({}), "/text", "is missing"),
        ("remember", json!({"text": " "}), "/text", "is empty"),
        ("remember", json!({"text": "a", "x": 1}), "/y", "a place has x and y"),
        ("remember", json!({"text": "a", "frame": "map"}), "/frame", "needs x and y"),
        ("remember", json!({"text": "a", "entities": ["cup"]}), "/entities", "no reference"),
        (
            "remember",
            json!({"text": "a", "entities": ["MemoryRecord/a"]}),
            "/entities",
            "no Entity/<id>",
        ),
        ("remember", json!({"text": "a", "event_time": "noon"}), "/event_time", "no time"),
        ("remember", json!({"text": "a", "importance": 2}), "/importance", "not from 0 to 1"),
        (
            "remember",
            json!({"text": "a", "experience_type": "dream"}),
            "/experience_type",
            "none of",
        ),
        ("recall", json!({"qery": "cup"}), "/qery", "known are query, x"),
        ("recall", json!({"entity": "MemoryRecord/a"}), "/entity", "no Entity/<id>"),
        ("recall", json!({"radius_m": 1}), "/radius_m", "needs x and y"),
        ("recall", json!({"order": "distance"}), "/order", "needs x and y"),
        ("recall", json!({"since": "yesterday"}), "/since", "7d"),
        ("recall", json!({"limit": 51}), "/limit", "from 1 to 50"),
        ("recall", json!({"cursor": "5"}), "/cursor", "begin with the first page"),
        ("get", json!({"reference": "cup"}), "/reference", "such as MemoryRecord/dock-1"),
        ("get", json!({"reference": "Entity/none"}), "/reference", "recall finds what is"),
        ("forget", json!({"references": "Entity/a"}), "/references", "expected a list"),
        ("anchor", json!({"reference": "MemoryRecord/none"}), "/reference", ""),
        ("anchor", json!({"reference": "Entity/cup"}), "/reference", ""),
        (
            "feedback",
            json!({"reference": "MemoryRecord/a", "outcome": "yes"}),
            "/outcome",
            "none of",
        ),
        ("feedback", json!({"reference": "MemoryRecord/a"}), "/outcome", "is missing"),
        ("explain", json!({"reference": "MemoryRecord/none"}), "/reference", "not in the store"),
        ("where_is", json!({"thing": " "}), "/thing", "name a thing"),
        ("what_is_near", json!({"x": 1}), "/y", "is missing"),
        ("timeline", json!({"order": "score"}), "/order", "latest"),
    ] {
        let error = rig.refusal(tool, arguments.clone()).await;
        assert_eq!(error["path"], path, "{tool} {arguments}: {error}");
        assert!(
            error["message"].as_str().unwrap().contains(expected),
            "{tool} {arguments}: {error}"
        );
        let code = error["code"].as_str().unwrap();
        assert!(["INVALID_QUERY", "INVALID_RESOURCE", "NOT_FOUND"].contains(&code), "{error}");
    }
    // Nothing of that was stored.
    assert_eq!(rig.ask("recall", json!({})).await["total"], 0);
    // No tool at all is an error of the protocol.
    let unknown = rig.client.call_tool(CallToolRequestParams::new("shred")).await.unwrap_err();
    assert!(unknown.to_string().contains("known are remember, recall"), "{unknown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_beyond_the_scopes_is_refused_and_says_which_scope_it_needs() {
    let rig = Rig::of(&[Scope::READ]).await;
    for (tool, arguments) in [
        ("remember", json!({"text": "a"})),
        ("forget", json!({"references": ["Entity/a"]})),
        ("anchor", json!({"reference": "MemoryRecord/a"})),
        ("feedback", json!({"reference": "MemoryRecord/a", "outcome": "confirmed"})),
    ] {
        let error = rig.refusal(tool, arguments).await;
        assert_eq!(error["code"], "UNAUTHORIZED", "{tool}");
        assert!(error["message"].as_str().unwrap().contains("omir:write"), "{error}");
    }
    assert_eq!(rig.ask("recall", json!({})).await["total"], 0);
    let writer = Rig::of(&[Scope::WRITE]).await;
    writer.ask("remember", json!({"text": "a"})).await;
    assert_eq!(writer.refusal("recall", json!({})).await["code"], "UNAUTHORIZED");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_daemon_lists_and_takes_no_change() {
    let settings = Settings { read_only: true, ..settings() };
    let rig = Rig::over(Arc::new(CutDisk::new()), settings, Scopes::All).await;
    let error = rig.refusal("remember", json!({"text": "a"})).await;
    assert_eq!(error["code"], "UNAUTHORIZED");
    assert!(error["message"].as_str().unwrap().contains("access.read_only"), "{error}");
    let tools = rig.client.list_all_tools().await.unwrap();
    assert!(tools.iter().all(|tool| tool.name != "remember" && tool.name != "forget"));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_call_leaves_one_audit_line() {
    let rig = Rig::of(&[Scope::READ]).await;
    rig.audit.take();
    rig.ask("where_is", json!({"thing": "cup"})).await;
    rig.refusal("recall", json!({"limit": 0})).await;
    rig.refusal("forget", json!({"references": []})).await;
    let lines = rig.audit.take();
    assert_eq!(
        lines,
        [
            "tester omir.recall 15 ok",
            "tester omir.recall 11 INVALID_QUERY",
            "tester omir.forget 17 UNAUTHORIZED"
        ]
    );
    let rig = Rig::of(&[Scope::WRITE]).await;
    rig.audit.take();
    let stored = rig.ask("remember", json!({"text": "a", "entities": ["Entity/b"]})).await;
    rig.ask("forget", json!({"references": ["Entity/b"]})).await;
    let name = stored["reference"].as_str().unwrap();
    let lines = rig.audit.take();
    assert_eq!(
        lines,
        [
            format!("tester omir.remember 36 ok Entity/b {name}"),
            "tester omir.forget 27 ok Entity/b".to_owned()
        ]
    );
}
