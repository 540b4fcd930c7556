//! A daemon with a serial port, and the cable to it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use omird::engine::Encoding;
use omird::engine::Engine;
use omird::protocols::Protocols;
use omird::router::testing::AuditLines;
use omird::router::{AccessPolicy, Router};
use omird::serial::{Port, Ports, Share};
use omird_access::Access;
use omird_tests::cable::End;
use omird_tests::cut_disk::CutDisk;
use omird_tests::random::Random;
use omird_tests::session::{Session, TestClock, settings};
use tempfile::TempDir;

use crate::serial::client::Client;

/// A daemon with one serial port, and the folder in which the port has its name.
pub struct Rig {
    pub disk: Arc<CutDisk>,
    pub session: Session,
    pub clock: Arc<TestClock>,
    pub ports: Option<Ports>,
    /// The router's, with the audit lines so far.
    pub audit: AuditLines,
    folder: TempDir,
}

impl Rig {
    pub fn new(access: AccessPolicy, resources: usize) -> Rig {
        Rig::with(access, resources, TestClock::new())
    }

    pub fn with(access: AccessPolicy, resources: usize, clock: Arc<TestClock>) -> Rig {
        Rig::guarded(access, resources, clock, Access::open_to_all(Protocols::SCOPES))
    }

    /// A daemon that knows callers by their tokens.
    pub fn guarded(
        access: AccessPolicy,
        resources: usize,
        clock: Arc<TestClock>,
        identities: Access,
    ) -> Rig {
        let disk = Arc::new(CutDisk::new());
        let session = Session::open_with(disk.clone(), &clock, settings(), None).unwrap();
        for n in 0..resources {
            let text = format!(
                r#"[{{"resourceType":"Entity","id":"e{n}","name":"thing {n}"}},
                   {{"resourceType":"MemoryRecord","id":"m{n}","content":"saw thing {n}",
                     "createdAt":"2026-05-31T08:00:00Z","entityRefs":[{{"ref":"Entity/e{n}"}}]}}]"#
            );
            let change = session.prepare(text.as_bytes(), Encoding::Json, None).unwrap();
            session.execute(change).unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let audit = AuditLines::default();
        let router = Router::new(Engine::clone(&session), [audit.sink()]);
        let protocols = Protocols::routed(&session, "r2", identities, router);
        let mut rig = Rig { disk, session, clock, ports: None, audit, folder };
        let port = Port { path: rig.name(), baud: 921_600, access, share: Share::new(1.0) };
        rig.ports = Some(Ports::start(&protocols, &[port]).unwrap());
        rig
    }

    /// Under which the daemon looks for the device, whichever it is today.
    fn name(&self) -> PathBuf {
        self.folder.path().join("port")
    }

    /// Plugs a cable in.
    pub fn plug(&self, noise: f64) -> Cable {
        let end = End::plug(&self.name());
        Cable { end, random: Random::new(7), noise, carried: 0 }
    }

    pub fn call(&self, noise: f64, session: u32) -> Client {
        let mut client = Client::on(self.plug(noise));
        client.open(session);
        client
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Some(ports) = self.ports.take() {
            ports.stop();
        }
    }
}

/// Our end of a pseudo-terminal; pulled out when dropped.
pub struct Cable {
    end: End,
    random: Random,
    /// Chance that a bit is wrong.
    noise: f64,
    /// Bytes that came from the daemon.
    pub carried: usize,
}

impl Cable {
    fn disturb(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            for bit in 0..8 {
                *byte ^= u8::from(self.random.unit() < self.noise) << bit;
            }
        }
    }

    pub fn read(&mut self) -> Vec<u8> {
        let mut buffer = [0; 4096];
        let read = rustix::io::read(&self.end.ours, &mut buffer).unwrap_or(0);
        let mut bytes = buffer[..read].to_vec();
        self.carried += read;
        self.disturb(&mut bytes);
        bytes
    }

    pub fn write(&mut self, mut bytes: Vec<u8>) {
        self.disturb(&mut bytes);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            match rustix::io::write(&self.end.ours, rest) {
                Ok(written) => rest = &rest[written..],
                Err(rustix::io::Errno::AGAIN) => std::thread::sleep(Duration::from_millis(1)),
                Err(error) => panic!("{error}"),
            }
        }
    }
}
