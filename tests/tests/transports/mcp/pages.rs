//! Pages: each memory once, whatever is recorded between them, and within what a model reads at once.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::mcp::rig::Rig;

/// All pages of a question. Something is recorded before each but the first.
async fn all(rig: &Rig, tool: &'static str, question: Value) -> (Vec<String>, u64) {
    let (mut found, mut asked, mut pages) = (Vec::new(), question, 0);
    loop {
        let page = rig.ask(tool, asked.clone()).await;
        let memories = page["memories"].as_array().unwrap();
        found.extend(memories.iter().map(|one| one["reference"].as_str().unwrap().to_owned()));
        let size = page.to_string().len();
        assert!(size < 32 << 10, "{size} bytes");
        let Some(cursor) = page.get("next_cursor") else {
            assert_eq!(page["more"], false);
            return (found, page["total"].as_u64().unwrap());
        };
        assert_eq!(page["more"], true);
        asked["cursor"] = cursor.clone();
        pages += 1;
        assert!(pages < 100);
        rig.clock.advance(Duration::from_secs(1));
        rig.ask("remember", json!({"text": format!("between {pages}"), "x": 0, "y": 0})).await;
    }
}

async fn filled(count: usize, text: &str) -> Rig {
    let rig = Rig::open().await;
    for number in 0..count {
        rig.clock.advance(Duration::from_secs(60));
        let memory = json!({"text": format!("{number:03} {text}"), "x": number, "y": 0});
        rig.ask("remember", memory).await;
    }
    rig
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_hold_each_memory_once_whatever_is_recorded_between_them() {
    let rig = filled(33, "a cup").await;
    for (tool, question) in [
        ("recall", json!({"query": "cup", "limit": 7})),
        ("timeline", json!({"limit": 10})),
        ("timeline", json!({"limit": 1, "order": "earliest", "since": "365d"})),
        ("what_is_near", json!({"x": 0, "y": 0, "radius_m": 1000, "limit": 6})),
    ] {
        let before = rig.ask("recall", json!({"type": "MemoryRecord"})).await["total"].clone();
        let (found, total) = all(&rig, tool, question.clone()).await;
        let different: BTreeSet<&String> = found.iter().collect();
        assert_eq!(different.len(), found.len(), "{tool} {question}");
        assert_eq!(found.len() as u64, total, "{tool} {question}");
        if tool == "recall" {
            assert_eq!(total, 33);
        } else {
            assert_eq!(total, before.as_u64().unwrap(), "{tool} {question}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_cut_where_a_model_could_not_read_it() {
    // Each takes over a kilobyte of JSON, so fifty are too much.
    let rig = filled(60, &"длинные слова ".repeat(60)).await;
    let first = rig.ask("recall", json!({"limit": 50, "order": "latest"})).await;
    let count = first["memories"].as_array().unwrap().len();
    assert!((5..50).contains(&count), "{count}");
    assert_eq!(first["memories"][0]["text_is_cut"], true);
    let whole = rig.ask("get", json!({"reference": first["memories"][0]["reference"]})).await;
    assert!(whole["text"].as_str().unwrap().chars().count() > 800);
    assert_eq!(whole.get("text_is_cut"), None);
    let (found, total) = all(&rig, "recall", json!({"limit": 50, "order": "latest"})).await;
    assert_eq!((found.len(), total), (60, 60));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_is_of_one_question_and_of_an_hour() {
    let rig = filled(12, "a cup").await;
    let page = rig.ask("recall", json!({"query": "cup", "limit": 5})).await;
    let cursor = page["next_cursor"].clone();
    let other = rig.refusal("recall", json!({"query": "mug", "cursor": cursor})).await;
    assert_eq!(other["path"], "/cursor");
    let other = rig.refusal("timeline", json!({"query": "cup", "cursor": cursor})).await;
    assert_eq!(other["path"], "/cursor");
    // The size of the pages may change.
    let rest = rig.ask("recall", json!({"query": "cup", "limit": 50, "cursor": cursor})).await;
    assert_eq!(rest["memories"].as_array().unwrap().len(), 7);
    rig.clock.advance(Duration::from_secs(3601));
    let late = rig.refusal("recall", json!({"query": "cup", "cursor": cursor})).await;
    assert!(late["message"].as_str().unwrap().contains("older than an hour"), "{late}");
}
