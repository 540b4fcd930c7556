//! Each tool, and the list of them.

use std::time::Duration;

use omird::router::Scope;
use rmcp::model::ReadResourceRequestParams;
use serde_json::{Value, json};

use crate::mcp::rig::Rig;

const MINUTE: Duration = Duration::from_secs(60);

/// The mug is seen in the kitchen, and an hour later in the hall.
async fn seen_twice() -> (Rig, String) {
    let rig = Rig::open().await;
    let kitchen = json!({"text": "the red mug stands in the kitchen", "x": 1.0, "y": 2.0,
        "entities": ["Entity/red-mug"], "experience_type": "observation"});
    rig.ask("remember", kitchen).await;
    rig.clock.advance(60 * MINUTE);
    let hall = json!({"text": "the red mug stands in the hall", "x": 8.0, "y": 0.5, "z": 0.25,
        "entities": ["Entity/red-mug"], "importance": 0.75});
    let seen = rig.ask("remember", hall).await;
    rig.clock.advance(2 * MINUTE);
    (rig, seen["reference"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn remember_answers_with_a_durable_reference_and_makes_new_things_once() {
    let rig = Rig::open().await;
    let asked =
        json!({"text": "a cup", "entities": ["Entity/cup", "Entity/cup", "Entity/the_table"]});
    let first = rig.ask("remember", asked.clone()).await;
    assert_eq!(first["version"], 1);
    assert_eq!(first["durable"], true);
    assert_eq!(first["created_entities"], json!(["Entity/cup", "Entity/the_table"]));
    let second = rig.ask("remember", asked).await;
    assert_ne!(second["reference"], first["reference"], "it changes no other memory");
    assert_eq!(second.get("created_entities"), None);
    let table = rig.ask("get", json!({"reference": "Entity/the_table"})).await;
    assert_eq!(table["text"], "the table");
    let stated = json!({"text": "the dock is free", "event_time": "2026-05-30T11:00:00Z",
        "valid_until": "2030-01-01T00:00:00Z", "confidence": 0.5, "x": 1, "y": -2, "frame": "odom"});
    let stated = rig.ask("remember", stated).await;
    let got = rig.ask("get", json!({"reference": stated["reference"]})).await;
    assert_eq!(got["time"], "2026-05-30T11:00:00Z");
    assert_eq!((&got["x"], &got["y"], &got["z"]), (&json!(1.0), &json!(-2.0), &json!(0.0)));
    assert_eq!(got["frame"], "odom");
    assert_eq!(got["confidence"], 0.5);
    assert_eq!(got["resource"]["validUntil"], "2030-01-01T00:00:00Z");
}

#[tokio::test(flavor = "multi_thread")]
async fn recall_gives_flat_memories_with_place_and_age() {
    let (rig, hall) = seen_twice().await;
    let found = rig.ask("recall", json!({"query": "mug hall", "type": "MemoryRecord"})).await;
    assert_eq!(found["total"], 2);
    assert_eq!(found["more"], false);
    assert_eq!(found.get("next_cursor"), None);
    let best = &found["memories"][0];
    assert_eq!(best["reference"], hall.as_str());
    assert_eq!(best["text"], "the red mug stands in the hall");
    assert_eq!((&best["x"], &best["y"], &best["z"]), (&json!(8.0), &json!(0.5), &json!(0.25)));
    assert_eq!((&best["frame"], &best["age"]), (&json!("map"), &json!("2 minutes ago")));
    assert_eq!(best["age_seconds"], 120);
    assert_eq!(best["entities"], json!(["Entity/red-mug"]));
    assert_eq!(best["importance"], 0.75);
    let latest =
        rig.ask("recall", json!({"order": "latest", "limit": 1, "entity": "Entity/red-mug"})).await;
    assert_eq!(latest["memories"][0]["reference"], hall.as_str());
    assert_eq!((&latest["total"], &latest["more"]), (&json!(2), &json!(true)));
    let old = rig.ask("recall", json!({"until": "30m", "type": "MemoryRecord"})).await;
    assert_eq!(old["memories"][0]["text"], "the red mug stands in the kitchen");
    assert_eq!(old["total"], 1);
    let none = rig.ask("recall", json!({"min_importance": 0.8})).await;
    assert_eq!((&none["memories"], &none["total"]), (&json!([]), &json!(0)));
    let things = rig.ask("recall", json!({"type": "Entity"})).await;
    assert_eq!(things["memories"][0]["reference"], "Entity/red-mug");
    let near = rig.ask("recall", json!({"x": 8, "y": 0.5, "order": "distance"})).await;
    assert_eq!(near["memories"][0]["distance_m"], 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_is_tells_the_place_of_the_latest_sighting() {
    let (rig, hall) = seen_twice().await;
    for thing in ["Entity/red-mug", "red-mug", "red mug", "Red MUG"] {
        let found = rig.ask("where_is", json!({"thing": thing})).await;
        assert_eq!(found["found"], true, "{thing}");
        assert_eq!(found["thing"], "Entity/red-mug", "{thing}");
        assert_eq!((&found["name"], &found["matched_by"]), (&json!("red mug"), &json!("entity")));
        assert_eq!(found["reference"], hall.as_str());
        assert_eq!(
            (&found["x"], &found["y"], &found["frame"]),
            (&json!(8.0), &json!(0.5), &json!("map"))
        );
        assert_eq!(found["age_seconds"], 120);
    }
    // Later it is spoken of, which tells no place; and a clock that is ahead dates something into the future.
    rig.ask(
        "remember",
        json!({"text": "somebody asked for the mug", "entities": ["Entity/red-mug"]}),
    )
    .await;
    let ahead = json!({"text": "the red mug on Mars", "x": 99, "y": 99, "event_time": "2099-01-01T00:00:00Z",
        "entities": ["Entity/red-mug"]});
    rig.ask("remember", ahead).await;
    let found = rig.ask("where_is", json!({"thing": "red mug"})).await;
    assert_eq!(found["reference"], hall.as_str());
    let nowhere = rig.ask("where_is", json!({"thing": "red mug", "frame": "odom"})).await;
    assert_eq!(nowhere["found"], false);
    assert_eq!(nowhere["thing"], "Entity/red-mug");
    assert_eq!(nowhere.get("x"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_is_goes_by_words_where_no_entity_has_the_name_and_never_by_half_of_them() {
    let (rig, _) = seen_twice().await;
    let chair = json!({"text": "a red chair by the window", "x": 3, "y": 3});
    rig.ask("remember", chair).await;
    let found = rig.ask("where_is", json!({"thing": "red chair"})).await;
    assert_eq!((&found["found"], &found["matched_by"]), (&json!(true), &json!("words")));
    assert_eq!((&found["x"], found.get("thing")), (&json!(3.0), None));
    let none = rig.ask("where_is", json!({"thing": "red lamp"})).await;
    assert_eq!(none, json!({"found": false}));
    // Two things of one name: the one of that very name is meant, and the other is told of.
    rig.ask("remember", json!({"text": "a mug", "entities": ["Entity/red-mug-2"]})).await;
    let found = rig.ask("where_is", json!({"thing": "red mug"})).await;
    assert_eq!(found["thing"], "Entity/red-mug");
    assert_eq!(
        found["alternatives"],
        json!([{"reference": "Entity/red-mug-2", "name": "red mug 2"}])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_near_lists_the_nearest_first_within_the_radius() {
    let (rig, _) = seen_twice().await;
    let near = rig.ask("what_is_near", json!({"x": 1, "y": 1, "radius_m": 20})).await;
    let distances: Vec<f64> = near["memories"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["distance_m"].as_f64().unwrap())
        .collect();
    assert_eq!(distances, [1.0, 7.018]);
    let near = rig.ask("what_is_near", json!({"x": 1, "y": 1})).await;
    assert_eq!(near["total"], 1, "within five metres");
    let spoken =
        rig.ask("what_is_near", json!({"x": 1, "y": 1, "radius_m": 20, "query": "hall"})).await;
    assert_eq!(spoken["total"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn timeline_goes_by_time() {
    let (rig, _) = seen_twice().await;
    let texts = |found: Value| -> Vec<String> {
        let memories = found["memories"].as_array().unwrap().clone();
        memories.iter().map(|one| one["text"].as_str().unwrap().to_owned()).collect()
    };
    let latest = texts(rig.ask("timeline", json!({})).await);
    assert_eq!(latest, ["the red mug stands in the hall", "the red mug stands in the kitchen"]);
    let earliest =
        texts(rig.ask("timeline", json!({"order": "earliest", "entity": "Entity/red-mug"})).await);
    assert!(earliest.iter().eq(latest.iter().rev()));
    let of_hour = texts(rig.ask("timeline", json!({"since": "1h", "until": "now"})).await);
    assert_eq!(of_hour, ["the red mug stands in the hall"]);
    let at_place = texts(rig.ask("timeline", json!({"x": 1, "y": 2, "radius_m": 1})).await);
    assert_eq!(at_place, ["the red mug stands in the kitchen"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_memory_is_anchored_believed_explained_and_forgotten() {
    let (rig, hall) = seen_twice().await;
    let anchored = rig.ask("anchor", json!({"reference": hall})).await;
    assert_eq!((&anchored["anchored"], &anchored["version"]), (&json!(true), &json!(2)));
    let again = rig.ask("anchor", json!({"reference": hall})).await;
    assert_eq!(again["unchanged"], true);
    let believed =
        rig.ask("feedback", json!({"reference": hall, "outcome": "confirmed", "weight": 2})).await;
    assert_eq!((&believed["alpha"], &believed["beta"]), (&json!(3.0), &json!(1.0)));
    assert_eq!(believed["reference"], hall.as_str());
    let explained = rig.ask("explain", json!({"reference": hall})).await;
    assert_eq!((&explained["anchored"], &explained["tier"]), (&json!(true), &json!("working")));
    assert!(explained["retrievability"].as_f64().unwrap() > 0.9);
    let gone = rig.ask("forget", json!({"references": [hall, "MemoryRecord/never"]})).await;
    assert_eq!((&gone["forgotten"], &gone["durable"]), (&json!(1), &json!(true)));
    let explained = rig.ask("explain", json!({"reference": hall})).await;
    assert_eq!(explained["forgotten"], true);
    assert_eq!(rig.refusal("get", json!({"reference": hall})).await["code"], "NOT_FOUND");
    let found = rig.ask("where_is", json!({"thing": "red mug"})).await;
    assert_eq!(found["x"], 1.0, "where it was seen before");
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_listed_with_schemas_and_hints_and_by_scope() {
    let rig = Rig::open().await;
    let tools = rig.client.list_all_tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    let all = [
        "remember",
        "recall",
        "get",
        "forget",
        "anchor",
        "feedback",
        "explain",
        "where_is",
        "what_is_near",
        "timeline",
        "akashik_register",
        "akashik_record",
        "akashik_attune",
        "akashik_detect",
        "akashik_merge",
        "akashik_replay",
        "akashik_compact",
    ];
    assert_eq!(names, all);
    for tool in &tools {
        let hints = tool.annotations.as_ref().unwrap();
        let of_akashik = ["akashik_attune", "akashik_replay"].contains(&&*tool.name);
        let of_omir = ["remember", "forget", "anchor", "feedback"].contains(&&*tool.name);
        let changes = of_omir || tool.name.starts_with("akashik_") && !of_akashik;
        assert_eq!(hints.read_only_hint, Some(!changes), "{}", tool.name);
        let destroys = ["forget", "akashik_merge", "akashik_compact"].contains(&&*tool.name);
        assert_eq!(hints.destructive_hint, Some(destroys), "{}", tool.name);
        assert_eq!(hints.open_world_hint, Some(false));
        assert_eq!(tool.input_schema["additionalProperties"], false);
        assert_eq!(tool.output_schema.as_ref().unwrap()["type"], "object");
    }
    let reader = Rig::of(&[Scope::READ]).await;
    let tools = reader.client.list_all_tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["recall", "get", "explain", "where_is", "what_is_near", "timeline"]);
    let nobody = Rig::of(&[]).await;
    assert!(nobody.client.list_all_tools().await.unwrap().is_empty());
    assert!(nobody.client.list_all_resources().await.unwrap().is_empty());
    assert!(nobody.client.list_all_resource_templates().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_memory_and_the_status_are_resources() {
    let (rig, hall) = seen_twice().await;
    let resources = rig.client.list_all_resources().await.unwrap();
    assert_eq!(resources[0].uri, "omir://status");
    let templates = rig.client.list_all_resource_templates().await.unwrap();
    assert_eq!(templates[0].uri_template, "omir://memory/{type}/{id}");
    let read =
        async |uri: &str| rig.client.read_resource(ReadResourceRequestParams::new(uri)).await;
    let text = |read: rmcp::model::ReadResourceResult| -> Value {
        let value = serde_json::to_value(&read.contents[0]).unwrap();
        assert_eq!(value["mimeType"], "application/json");
        serde_json::from_str(value["text"].as_str().unwrap()).unwrap()
    };
    assert_eq!(text(read("omir://status").await.unwrap())["robot"], "r1");
    let memory = text(read(&format!("omir://memory/{hall}")).await.unwrap());
    assert_eq!(memory["content"], "the red mug stands in the hall");
    for uri in ["omir://memory/Entity/none", "omir://memory/Thing/a", "file:///etc/passwd"] {
        let refused = read(uri).await.unwrap_err().to_string();
        assert!(
            refused.contains("is not in the memory") || refused.contains("is none of"),
            "{refused}"
        );
    }
}
