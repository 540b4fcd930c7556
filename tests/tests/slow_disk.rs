//! A disk that takes its time holds up who waits for it, and nothing that comes over the network.

use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use omird::disk::{Disk, DiskFile, Mode};
use omird::protocols::Protocols;
use omird::service::{Keys, Network, Service};
use omird::store::pass_on;
use omird_tests::cut_disk::CutDisk;
use omird_tests::process::{Client, free_endpoint};
use omird_tests::session::{Session, TestClock, settings};
use serde_json::json;
use zenoh::Wait;

/// True if what is written may become durable.
#[derive(Default)]
struct Gate {
    is_shut: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn shut(&self) {
        *self.is_shut.lock().unwrap() = true;
    }

    fn open(&self) {
        *self.is_shut.lock().unwrap() = false;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let is_shut = self.is_shut.lock().unwrap();
        drop(self.opened.wait_while(is_shut, |is_shut| *is_shut).unwrap());
    }
}

#[derive(Clone)]
struct SlowDisk {
    card: CutDisk,
    gate: Arc<Gate>,
}

struct SlowFile {
    file: Arc<dyn DiskFile>,
    gate: Arc<Gate>,
}

impl Disk for SlowDisk {
    pass_on!(card: create_dir list rename remove sync_dir);

    fn open(&self, path: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(SlowFile { file: self.card.open(path, mode)?, gate: self.gate.clone() }))
    }
}

impl DiskFile for SlowFile {
    pass_on!(file: len read_at write_at truncate);

    fn sync(&self) -> io::Result<()> {
        self.gate.pass();
        self.file.sync()
    }
}

#[test]
fn a_delete_of_all_that_matches_waits_for_the_disk_and_holds_up_nobody() {
    let gate = Arc::new(Gate::default());
    let disk = Arc::new(SlowDisk { card: CutDisk::new(), gate: gate.clone() });
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
