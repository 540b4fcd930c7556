//! A call that takes long: progress is told while it waits for the disk, and a cancelled one holds up nobody.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use omird::router::Scopes;
use omird_tests::process::eventually;
use omird_tests::session::settings;
use omird_tests::slow_disk::{Gate, SlowDisk};
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest};
use rmcp::service::PeerRequestOptions;
use serde_json::json;

use crate::mcp::rig::Rig;

async fn slow() -> (Rig, Arc<Gate>) {
    let gate = Arc::new(Gate::default());
    let disk = Arc::new(SlowDisk::behind(&gate));
    (Rig::over(disk, settings(), Scopes::All).await, gate)
}

fn remember(text: &str) -> ClientRequest {
    let arguments = json!({"text": text}).as_object().cloned().unwrap();
    let params = CallToolRequestParams::new("remember").with_arguments(arguments);
    ClientRequest::CallToolRequest(CallToolRequest::new(params))
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_told_while_a_memory_waits_for_the_disk() {
    let (rig, gate) = slow().await;
    gate.shut();
    let options = PeerRequestOptions::no_options();
    let call = rig.client.send_cancellable_request(remember("a cup"), options).await.unwrap();
    let token = call.progress_token.clone();
    while rig.heard.0.lock().unwrap().len() < 3 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    gate.open();
    call.await_response().await.unwrap();
    let heard = rig.heard.0.lock().unwrap().clone();
    assert!(heard.iter().all(|note| note.progress_token == token));
    assert!(heard.windows(2).all(|pair| pair[0].progress < pair[1].progress), "it always rises");
    assert!(heard[0].message.as_ref().unwrap().contains("at work"), "{heard:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_calls_are_given_up_and_hold_up_nobody() {
    let (rig, gate) = slow().await;
    rig.ask("remember", json!({"text": "before"})).await;
    gate.shut();
    rig.audit.take();
    let mut calls = Vec::new();
    for number in 0..4 {
        let request = remember(&format!("number {number}"));
        let options = PeerRequestOptions::no_options();
        calls.push(rig.client.send_cancellable_request(request, options).await.unwrap());
    }
    // Each of them is at work.
    let tokens = || {
        rig.heard
            .0
            .lock()
            .unwrap()
            .iter()
            .map(|note| note.progress_token.clone())
            .collect::<HashSet<_>>()
    };
    while !calls.iter().all(|call| tokens().contains(&call.progress_token)) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for call in calls {
        call.cancel(Some("never mind".to_owned())).await.unwrap();
    }
    // Over the same connection, while nothing becomes durable.
    let found = rig.ask("recall", json!({"query": "before"})).await;
    assert_eq!(found["total"], 1);
    gate.open();
    rig.ask("remember", json!({"text": "after"})).await;
    // The changes had been handed over: they are made, and their lines say so.
    let mut lines = Vec::new();
    eventually("five changes are told", || {
        lines.extend(rig.audit.take());
        lines.iter().filter(|line| line.contains(" ok MemoryRecord/")).count() == 5
    });
    assert_eq!(rig.ask("recall", json!({"query": "number"})).await["total"], 4);
}
