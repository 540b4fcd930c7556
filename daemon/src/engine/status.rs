//! How the daemon is doing: contract section 1, `status`.

use std::sync::atomic::Ordering;

use omir_core::number::Number;
use omir_core::reference::ResourceType;
use omir_core::tier::Tier;
use omir_core::value::{Map, Value};

use super::Engine;
use crate::store::cache::folder_size;

fn int(n: u64) -> Value {
    Value::Number(Number::from(n))
}

/// What was written to the card for what came in.
fn odometer(written: u64, payload: u64) -> Value {
    let mut map = Map::new();
    map.insert("bytesWritten", int(written));
    map.insert("payloadBytes", int(payload));
    let ratio = (payload > 0).then(|| Number::from_f64(written as f64 / payload as f64)).flatten();
    map.insert("writeAmplification", ratio.map_or(Value::Null, Value::Number));
    Value::Object(map)
}

impl Engine {
    /// The status as an object. `robot` is the name the daemon serves under.
    pub fn status(&self, robot: &str) -> Value {
        let shared = &self.inner.shared;
        let (now, clock) = self.now();
        let (types, tiers, forgotten, versions) = self.counts();
        let mut counts = Map::new();
        counts.insert("types", Value::Object(types));
        counts.insert("tiers", Value::Object(tiers));
        counts.insert("forgotten", int(forgotten));
        counts.insert("versions", int(versions));
        let mut disk = Map::new();
        let on_disk = self.inner.data_bytes();
        disk.insert("bytes", on_disk.map_or(Value::Null, int));
        disk.insert("segments", int(shared.segments.load(Ordering::Relaxed)));
        disk.insert("unsealedLogs", int(shared.unsealed_logs.load(Ordering::Relaxed)));
        disk.insert("full", Value::Bool(shared.storage_full.load(Ordering::Relaxed)));
        disk.insert("damagedFiles", int(self.inner.damage.len() as u64));
        let mut time = Map::new();
        time.insert("state", clock.as_str());
        time.insert("now", now.to_string());
        let mut queue = Map::new();
        let accepted = shared.accepted.load(Ordering::Relaxed);
        let committed = shared.committed.load(Ordering::Relaxed);
        queue.insert("waiting", int(accepted.saturating_sub(committed)));
        queue.insert("capacity", int(self.inner.settings.queue_requests as u64));

        let bounds = self.inner.settings.limits.for_import();
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
        let written = shared.bytes_written.load(Ordering::Relaxed);
        status.insert("bytesWrittenSinceBoot", int(written));
        let payload = shared.payload.load(Ordering::Relaxed);
        let mut wear = Map::new();
        let since_boot = odometer(written, payload.saturating_sub(shared.payload_before));
        wear.insert("sinceBoot", since_boot);
        wear.insert("overLife", odometer(shared.written_before + written, payload));
        status.insert("wear", Value::Object(wear));
        status.insert("clock", Value::Object(time));
        status.insert("durability", self.inner.settings.durability.as_str());
        status.insert("readOnly", Value::Bool(self.inner.settings.read_only));
        status.insert("rejected", int(shared.rejected.load(Ordering::Relaxed)));
        status.insert("unreadable", int(shared.unreadable.load(Ordering::Relaxed)));
        status.insert("queue", Value::Object(queue));
        status.insert("import", Value::Object(import));
        Value::Object(status)
    }

    fn counts(&self) -> (Map, Map, u64, u64) {
        let catalog = self.catalog();
        let mut types = Map::new();
        for (of, count) in ResourceType::ALL.iter().zip(catalog.live_counts()) {
            types.insert(of.as_str(), int(count));
        }
        let mut by_tier = [0u64; Tier::ALL.len()];
        let mut forgotten = 0;
        for doc in catalog.docs() {
            forgotten += u64::from(doc.forgotten && !doc.gone);
            if doc.is_live()
                && let Some(count) = by_tier.get_mut(usize::from(doc.class.tier))
            {
                *count += 1;
            }
        }
        let mut tiers = Map::new();
        for (tier, count) in Tier::ALL.iter().zip(by_tier) {
            tiers.insert(tier.as_str(), int(count));
        }
        (types, tiers, forgotten, catalog.docs().len() as u64 - catalog.gone())
    }
}

impl super::Inner {
    /// Bytes the data folder takes up, if it is a folder of this machine.
    fn data_bytes(&self) -> Option<u64> {
        self.index.as_deref().and_then(std::path::Path::parent).map(folder_size)
    }
}
