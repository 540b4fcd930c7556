//! The audit line of a request over Zenoh: who asked for what, and how it ended. Invariant 37 of ARCHITECTURE.md.
//!
//! `serial/audit.rs` has the same over a cable.

use omird::engine::Engine;
use omird::protocols::Protocols;
use omird::router::Router;
use omird::router::testing::Overheard;
use omird::service::{Keys, Network, Service};
use omird_tests::process::{Client, eventually, free_endpoint};
use omird_tests::session::{Session, TestClock, settings};
use serde_json::json;
use zenoh::Wait;

/// A service whose audit lines are kept, and a client of it.
struct Scene {
    client: Client,
    policy: Overheard<Engine>,
    service: Option<Service>,
    _session: Session,
}

impl Scene {
    fn new(is_read_only: bool) -> Self {
        let mut settings = settings();
        settings.limits.max_payload_bytes = 2000;
        settings.read_only = is_read_only;
        let disk = std::sync::Arc::new(omird_tests::cut_disk::CutDisk::new());
        let session = Session::open_with(disk, &TestClock::new(), settings, None).unwrap();
        let engine: &Engine = &session;
        let policy = Overheard::new(engine.clone());
        let router = Router::new(policy.clone());
        let protocols = Protocols { router, ..Protocols::over(&engine, "r1") };
        let endpoint = free_endpoint();
        let network = Network { listen: Some(vec![endpoint.clone()]), ..Network::default() };
        let keys = Keys::new("omir", "r1");
        let service = Service::start(engine, &protocols, &keys, &network, 2).unwrap();
        let client = Client::connect(&endpoint);
        policy.lines();
        Self { client, policy, service: Some(service), _session: session }
    }

    /// Waits for a line, which follows the answer.
    fn expect(&self, line: &str) {
        let mut lines = Vec::new();
        eventually(line, || {
            lines.extend(self.policy.lines());
            !lines.is_empty()
        });
        assert_eq!(lines, [line]);
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if let Some(service) = self.service.take() {
            service.stop();
        }
    }
}

#[test]
fn each_request_over_zenoh_leaves_one_line() {
    let scene = Scene::new(false);
    let client = &scene.client;
    let text = json!({"resourceType": "Entity", "id": "dock", "name": "dock"});
    let size = text.to_string().len();
    // Admitted: handed over to the writer, worked on by a reader, and streamed.
    client.ask_json("omir/r1/remember", &text).value();
    scene.expect(&format!("zenoh omir.remember {size} ok"));
    client.one("omir/r1/recall?q=dock", None).value();
    scene.expect("zenoh omir.recall 0 ok");
    client.ask("omir/r1/memory/**");
    scene.expect("zenoh omir.get 0 ok");
    client.put("omir/r1/memory/Entity/dock", r#"{"name": "quay"}"#);
    scene.expect("zenoh omir.put 16 ok");
    client.session.delete("omir/r1/memory/Entity/*").wait().unwrap();
    scene.expect("zenoh omir.delete 0 ok");

    // Refused by the router, and by the transport for the key.
    let large = json!({"resourceType": "Entity", "id": "large", "name": "x".repeat(2000)});
    assert_eq!(client.ask_json("omir/r1/remember", &large).code(), "TOO_LARGE");
    scene.expect(&format!("zenoh omir.remember {} TOO_LARGE", large.to_string().len()));
    assert_eq!(client.one("omir/*/forget?ref=Entity/dock", None).code(), "INVALID_QUERY");
    scene.expect("zenoh omir.forget 0 INVALID_QUERY");

    // Admitted, and failed: for the parameters, for the payload, and on the writer's thread.
    assert_eq!(client.one("omir/r1/explain?reff=Entity/dock", None).code(), "INVALID_QUERY");
    scene.expect("zenoh omir.explain 0 INVALID_QUERY");
    client.put("omir/r1/memory/Entity/dock", "no JSON");
    scene.expect("zenoh omir.put 7 INVALID_RESOURCE");
    assert_eq!(client.one("omir/r1/anchor?ref=MemoryRecord/none", None).code(), "NOT_FOUND");
    scene.expect("zenoh omir.anchor 0 NOT_FOUND");
}

#[test]
fn a_change_in_read_only_mode_leaves_a_line_too() {
    let scene = Scene::new(true);
    let text = json!({"resourceType": "Entity", "id": "dock", "name": "dock"});
    assert_eq!(scene.client.ask_json("omir/r1/remember", &text).code(), "UNAUTHORIZED");
    scene.expect(&format!("zenoh omir.remember {} UNAUTHORIZED", text.to_string().len()));
    assert_eq!(scene.client.one("omir/r1/sweep", None).code(), "UNAUTHORIZED");
    scene.expect("zenoh omir.sweep 0 UNAUTHORIZED");
    scene.client.one("omir/r1/sweep?dryRun=true", None).value();
    scene.expect("zenoh omir.sweep 0 ok");
    scene.client.put("omir/r1/memory/Entity/dock", r#"{"name": "quay"}"#);
    scene.expect("zenoh omir.put 16 UNAUTHORIZED");
    scene.client.one("omir/r1/status", None).value();
    scene.expect("zenoh omir.status 0 ok");
}
