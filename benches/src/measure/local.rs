//! The engine in this process: the same work without the network.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use omir_core::instant::Timestamp;
use omird::disk::{Disk, Folder};
use omird::engine::{Clock, Encoding, Engine, Events, Forgetting, Parts, Settings, SystemClock};
use omird::store::{SledStore, device_key};

use super::slow_disk::SlowDisk;
use crate::Result;
use omird_tests::random::Random;

/// Opens the engine on a data folder; gives also how long that took.
pub fn open(data: &Path) -> Result<(Engine, Duration)> {
    open_on(data, Arc::new(Folder::new(data)), SystemClock::default(), Settings::default())
}

/// The same `later`, as if the machine had been off for so long, without sweeping by itself.
pub fn open_later(data: &Path, later: Duration) -> Result<(Engine, Duration)> {
    let forgetting = Forgetting { sweep_interval: None, ..Forgetting::default() };
    let settings = Settings { forgetting, ..Settings::default() };
    let clock = Ahead { by: later, clock: SystemClock::default() };
    open_on(data, Arc::new(Folder::new(data)), clock, settings)
}

/// A clock that is ahead.
struct Ahead {
    by: Duration,
    clock: SystemClock,
}

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        let micros = i64::try_from(self.by.as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(self.clock.now().as_micros().saturating_add(micros))
    }

    fn monotonic(&self) -> Duration {
        self.clock.monotonic() + self.by
    }

    fn boot_id(&self) -> String {
        "later".to_owned()
    }

    fn is_synchronised(&self) -> bool {
        true
    }
}

/// The same on a disk whose syncs take at least this long.
pub fn open_with_slow_sync(data: &Path, sync: Duration) -> Result<Engine> {
    let disk = SlowDisk { inner: Folder::new(data), sync };
    Ok(open_on(data, Arc::new(disk), SystemClock::default(), Settings::default())?.0)
}

/// An engine on a folder, with settings.
pub fn open_with(data: &Path, settings: Settings) -> Result<Engine> {
    Ok(open_on(data, Arc::new(Folder::new(data)), SystemClock::default(), settings)?.0)
}

fn open_on(
    data: &Path,
    disk: Arc<dyn Disk>,
    clock: impl Clock,
    settings: Settings,
) -> Result<(Engine, Duration)> {
    std::fs::create_dir_all(data)?;
    // Keys and ids need no secrecy here.
    let key = device_key(data, || [7; 32])?;
    let random = std::sync::Mutex::new(Random::new(1));
    let parts = Parts {
        disk,
        index: Some(SledStore::boxed(&data.join("index"))),
        clock: Arc::new(clock),
        key,
        random: Box::new(move || random.lock().map_or(0, |mut random| random.bits().into())),
        settings,
        events: Events::default(),
    };
    let began = Instant::now();
    let engine = Engine::open(parts, &mut |_| {})?;
    Ok((engine, began.elapsed()))
}

/// Remembers one payload and waits until it is durable.
pub fn remember(engine: &Engine, payload: &[u8]) -> Result<()> {
    let change = engine.prepare(payload, Encoding::Cbor, None).map_err(|e| e.message)?;
    engine.execute(change).map_err(|e| e.message)?;
    Ok(())
}

/// As [`crate::wire::Wire::stream`], without the wire.
pub fn stream(
    engine: &Engine,
    in_flight: usize,
    span: Duration,
    payloads: &mut dyn Iterator<Item = Vec<u8>>,
) -> Result<f64> {
    let (sender, answers) = mpsc::channel();
    let began = Instant::now();
    let (mut sent, mut answered) = (0u64, 0u64);
    loop {
        while sent - answered < in_flight as u64 && began.elapsed() < span {
            let Some(payload) = payloads.next() else { break };
            let change = engine.prepare(&payload, Encoding::Cbor, None).map_err(|e| e.message)?;
            let sender = sender.clone();
            let reply = Box::new(move |result: Result<_, _>| {
                let _ = sender.send(result.is_ok());
            });
            engine.submit(change, payload.len(), reply);
            sent += 1;
        }
        if sent == answered {
            return Ok(answered as f64 / began.elapsed().as_secs_f64());
        }
        if !answers.recv()? {
            return Err("the engine refused".into());
        }
        answered += 1;
    }
}
