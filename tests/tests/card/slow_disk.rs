//! A disk that takes its time holds up who waits for it, and nothing that comes over the network.

use std::sync::Arc;
use std::time::Duration;

use omird::protocols::Protocols;
use omird::zenoh::{Keys, Network, Service};
use omird_tests::process::{Client, free_endpoint};
use omird_tests::session::{Session, TestClock, settings};
use omird_tests::slow_disk::{Gate, SlowDisk};
use serde_json::json;
use zenoh::Wait;

#[test]
fn a_delete_of_all_that_matches_waits_for_the_disk_and_holds_up_nobody() {
    let gate = Arc::new(Gate::default());
    let disk = Arc::new(SlowDisk::behind(&gate));
    let session = Session::open_with(disk, &TestClock::new(), settings(), None).unwrap();
    let endpoint = free_endpoint();
    let network = Network { listen: Some(vec![endpoint.clone()]), ..Network::default() };
    let service = Service::start(
        &session,
        &Protocols::over(&session, "r1"),
        &Keys::new("omir", "r1"),
        &network,
        2,
    )
    .unwrap();
    let client = Client::connect(&endpoint);
    let entity = |id: &str| json!({"resourceType": "Entity", "id": id, "name": id});
    client.ask_json("omir/r1/remember", &entity("old")).value();
    gate.shut();
    client.put("omir/r1/memory/Entity/before", r#"{"name": "before"}"#);
    client.session.delete("omir/r1/memory/**").wait().unwrap();
    client.put("omir/r1/memory/Entity/old", r#"{"name": "put after the DELETE"}"#);
    client.put("omir/r1/memory/Entity/after", r#"{"name": "after"}"#);
    // Over the same link, while nothing becomes durable. Longer than a DELETE could hold the link up, were it to wait.
    for _ in 0..3 {
        client.one("omir/r1/status", None).value();
        std::thread::sleep(Duration::from_millis(500));
    }
    gate.open();
    let mut left: Vec<String> = client
        .ask("omir/r1/memory/**")
        .iter()
        .map(|answer| answer.value()["id"].as_str().unwrap().to_owned())
        .collect();
    left.sort();
    assert_eq!(left, ["after", "old"], "what was put before the DELETE is gone, and nothing else");
    service.stop();
}
