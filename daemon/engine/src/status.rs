//! The status: `docs/replies.md`, "Status".

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use omir_core::instant::Timestamp;
use omir_core::number::Number;
use omir_core::reference::ResourceType;
use omir_core::tier::Tier;
use omir_core::value::{Map, Value};

use crate::Engine;
use crate::card::health::State;
use crate::card::wear::{Life, card_years};
use crate::index::catalog::TierCount;

fn int(n: u64) -> Value {
    Value::Number(Number::from(n))
}

fn float(n: f64) -> Value {
    Number::from_f64(n).map_or(Value::Null, Value::Number)
}

/// A bound, where 0 is none.
fn bound(n: u64) -> Value {
    if n == 0 { Value::Null } else { int(n) }
}

/// Bytes written to the card, beside bytes that came in.
fn odometer(written: u64, payload: u64) -> Map {
    let mut map = Map::new();
    map.insert("bytesWritten", int(written));
    map.insert("payloadBytes", int(payload));
    let ratio = (payload > 0).then(|| float(written as f64 / payload as f64));
    map.insert("writeAmplification", ratio.unwrap_or(Value::Null));
    map
}

/// Files by name, as many as one reads.
fn named(files: &[&str]) -> String {
    const MOST: usize = 3;
    let first = files.iter().take(MOST).copied().collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(MOST) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

impl Engine {
    /// Returns the state of the card, which is `disk.state` of the status.
    pub fn card_state(&self) -> State {
        let shared = &self.inner.shared;
        if let Some(fault) = shared.faults.health().worst() {
            return fault.state;
        }
        let is_damaged = !self.damaged_files(&shared.integrity.losses()).is_empty();
        if is_damaged { State::Damaged } else { State::Ok }
    }

    /// Returns the number of changes that wait for the disk, and how many may.
    pub fn queue_load(&self) -> (u64, u64) {
        let queue = &self.inner.shared.queue;
        let accepted = queue.accepted.load(Ordering::Relaxed);
        let committed = queue.committed.load(Ordering::Relaxed);
        (accepted.saturating_sub(committed), self.settings().queue_requests as u64)
    }

    /// Returns the number of live resources.
    pub fn live(&self) -> u64 {
        self.catalog().counts.live().into_iter().sum()
    }

    /// Returns the status as an object. `robot` is the name the daemon serves under.
    pub fn status(&self, robot: &str) -> Value {
        let shared = &self.inner.shared;
        let (now, _) = self.now();
        let (types, tiers, forgotten, versions) = self.counts(now.as_micros());
        let mut counts = Map::new();
        counts.insert("types", Value::Object(types));
        counts.insert("tiers", Value::Object(tiers));
        counts.insert("forgotten", int(forgotten));
        counts.insert("versions", int(versions));
        counts.insert("lost", int(self.catalog().losses.count()));
        let mut disk = Map::new();
        let quota = shared.quota_usage();
        let space = self.inner.disk.space().ok();
        disk.insert("bytes", int(quota.bytes));
        disk.insert("maxBytes", bound(quota.max_bytes));
        disk.insert("freeBytes", space.map_or(Value::Null, |space| int(space.free)));
        disk.insert("segments", int(shared.sealed.segments.load(Ordering::Relaxed)));
        disk.insert("unsealedLogs", int(shared.sealed.unsealed_logs.load(Ordering::Relaxed)));
        let log_bytes = shared.sealed.unsealed_bytes.load(Ordering::Relaxed)
            + shared.sealed.log_bytes.load(Ordering::Relaxed);
        disk.insert("logBytes", int(log_bytes));
        let fault = shared.faults.health().worst().cloned();
        let losses = shared.integrity.losses();
        let damaged = self.damaged_files(&losses);
        let is_damaged = !damaged.is_empty();
        let sound = if is_damaged { State::Damaged } else { State::Ok };
        let state = fault.as_ref().map_or(sound, |fault| fault.state);
        disk.insert("full", Value::Bool(state == State::Full));
        disk.insert("state", state.as_str());
        disk.insert("since", fault.as_ref().map_or(Value::Null, |t| t.since.to_string().into()));
        disk.insert("lastError", fault.map_or(Value::Null, |t| t.error.into()));
        let hint = match (state, damaged.as_slice()) {
            (State::Ok, _) => None,
            (State::Damaged, [_, ..]) => Some(format!("{}: {}", named(&damaged), state.hint())),
            _ => Some(state.hint().to_owned()),
        };
        disk.insert("hint", hint.map_or(Value::Null, Value::from));
        // A file may be told of twice: what it was, and what is lost with it.
        let found = self.inner.damage.iter().map(|damage| damage.file.as_str());
        let found = found.chain(losses.iter().map(String::as_str));
        let found: BTreeSet<&str> =
            found.map(|file| file.strip_suffix(".damaged").unwrap_or(file)).collect();
        disk.insert("damagedFiles", int(found.len() as u64));
        disk.insert("repairs", int(shared.integrity.repairs()));
        let scrubbed = shared.sealed.scrubbing().ended;
        let scrubbed = (scrubbed != 0).then(|| Timestamp::from_micros(scrubbed).to_string());
        disk.insert("lastScrub", scrubbed.map_or(Value::Null, Value::from));
        let mut queue = Map::new();
        let (waiting, capacity) = self.queue_load();
        queue.insert("waiting", int(waiting));
        queue.insert("capacity", int(capacity));
        queue.insert("bytes", int(shared.queue.bytes.load(Ordering::Relaxed) as u64));

        let bounds = self.settings().limits.for_import();
        let mut import = Map::new();
        import.insert("maxBytes", int(bounds.max_payload_bytes as u64));
        import.insert("maxResources", int(bounds.max_resources as u64));
        import.insert("maxResourceBytes", int(bounds.max_resource_bytes as u64));

        let mut status = Map::new();
        status.insert("robot", robot);
        status.insert("version", env!("CARGO_PKG_VERSION"));
        status.insert("uptimeSeconds", int(self.inner.started.elapsed().as_secs()));
        status.insert("bootCount", int(self.inner.boots));
        status.insert("counts", Value::Object(counts));
        status.insert("disk", Value::Object(disk));
        let written = shared.odometer.bytes_written();
        status.insert("bytesWrittenSinceBoot", int(written));
        let payload = shared.odometer.payload.load(Ordering::Relaxed);
        let mut wear = Map::new();
        let mut since_boot =
            odometer(written, payload.saturating_sub(shared.odometer.payload_before));
        let blocks = shared.odometer.usage.synced.load(Ordering::Relaxed);
        since_boot.insert("blockBytes", int(blocks));
        wear.insert("sinceBoot", Value::Object(since_boot));
        let over_life = odometer(shared.odometer.written_over_life(), payload);
        wear.insert("overLife", Value::Object(over_life));
        let began = shared.odometer.began();
        let life = Life {
            written: shared.odometer.written_over_life(),
            micros: (began > 0).then(|| now.as_micros() - began),
            written_since_boot: written,
            blocks_since_boot: blocks,
            uptime: self.inner.started.elapsed(),
        };
        let per_day = life.bytes_per_day();
        let flash = &shared.settings().flash;
        let card_bytes = match flash.card_bytes {
            0 => space.map_or(0, |space| space.total),
            bytes => bytes,
        };
        let given = life.block_bytes_per_day();
        let years = given.and_then(|rate| card_years(flash.endurance(card_bytes), rate));
        wear.insert("bytesPerDay", per_day.map_or(Value::Null, |rate| int(rate as u64)));
        wear.insert("cardYears", years.map_or(Value::Null, float));
        let budget = shared.odometer.budget();
        let mut today = Map::new();
        today.insert("bytesPerDay", bound(budget.per_day()));
        today.insert("writtenToday", int(budget.today()));
        wear.insert("budget", Value::Object(today));
        status.insert("wear", Value::Object(wear));
        status.insert("clock", Value::Object(shared.time.status()));
        status.insert("durability", self.settings().durability.as_str());
        status.insert("readOnly", Value::Bool(self.settings().read_only));
        status.insert("rejected", int(shared.queue.rejected.load(Ordering::Relaxed)));
        status.insert("unreadable", int(shared.unreadable.load(Ordering::Relaxed)));
        status.insert("fixedFrame", self.settings().fixed_frame.as_str());
        let mut recall = Map::new();
        recall.insert("language", self.settings().language.code());
        status.insert("recall", Value::Object(recall));
        status.insert("queue", Value::Object(queue));
        status.insert("import", Value::Object(import));
        if let Some(embedding) = self.embedding_status() {
            status.insert("embedding", embedding);
        }
        let sections = self.inner.sections.lock();
        for (name, section) in sections.iter() {
            if let Some(section) = section() {
                status.insert(*name, section);
            }
        }
        Value::Object(status)
    }

    /// Files that were damaged at the start or found so since, or had been set aside by an earlier one.
    fn damaged_files<'a>(&'a self, since: &'a [String]) -> Vec<&'a str> {
        let found = self.inner.damage.iter().map(|damage| damage.file.as_str());
        let mut files: Vec<&str> =
            found.chain(self.inner.set_aside.iter().chain(since).map(String::as_str)).collect();
        files.sort_unstable();
        files.dedup();
        // Set aside by this start: it has its other name by now.
        let is_moved = |file: &str| {
            files.iter().any(|other| other.strip_suffix(".damaged").is_some_and(|of| of == file))
        };
        files.iter().copied().filter(|file| !is_moved(file)).collect()
    }

    fn counts(&self, now: i64) -> (Map, Map, u64, u64) {
        let mut types = Map::new();
        for (of, count) in ResourceType::ALL.iter().zip(self.catalog().counts.live()) {
            types.insert(of.as_str(), int(count));
        }
        let mut by_tier = TierCount::at(now);
        while !self.catalog().count_tiers(&mut by_tier) {}
        let mut tiers = Map::new();
        for (tier, count) in Tier::ALL.iter().zip(by_tier.tiers()) {
            tiers.insert(tier.as_str(), int(count));
        }
        let (forgotten, versions) = {
            let catalog = self.catalog();
            (catalog.counts.forgotten(), catalog.version_count())
        };
        (types, tiers, forgotten, versions)
    }
}
