//! Other settings while the engine runs.

use std::sync::atomic::Ordering;

use crate::Engine;
use crate::settings::Settings;

impl Engine {
    /// Goes on with other settings: each is read where it is used. Five are only read at the start, and stay as they
    /// were whatever is said here: `queue_requests`, `index_from_bytes`, `flash.reserve_bytes`, whether the store is
    /// `read_only`, and whether it is swept at all (`sweep_interval`).
    pub fn reconfigure(&self, settings: Settings) {
        let before = self.settings();
        let mut settings =
            settings.for_its_card(self.inner.disk.space().ok().map(|space| space.total));
        settings.queue_requests = before.queue_requests;
        settings.index_from_bytes = before.index_from_bytes;
        settings.flash.reserve_bytes = before.flash.reserve_bytes;
        settings.read_only = before.read_only;
        if before.forgetting.sweep_interval.is_none() {
            settings.forgetting.sweep_interval = None;
        }
        if settings.forgetting.enabled != before.forgetting.enabled {
            // As at a start: until a pass has looked, there may be something.
            let can_free = settings.forgetting.enabled && !settings.read_only;
            self.inner.shared.sweep.can_free.store(can_free, Ordering::Relaxed);
        }
        let language = settings.language;
        let (fading, fusion) = (settings.forgetting.fading(), settings.fusion);
        self.inner.shared.follow(settings);
        let (now, _) = self.now();
        {
            let mut catalog = self.inner.catalog.write();
            catalog.set_fusion(fusion);
            catalog.set_fading(fading);
            // Before it and after it a question is answered wholly in one language.
            catalog.text.set_language(language);
            catalog.refresh_score_bounds(now.as_micros());
        }
        let sweeping = self.inner.sweeping.lock();
        if let Some(sweeper) = &*sweeping {
            // Full: it was woken already, and has not looked yet.
            let _ = sweeper.try_send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::Engine;
    use crate::ingest::request::Encoding;
    use crate::settings::{Durability, Settings};
    use crate::testing::parts;

    #[test]
    fn what_is_bounded_is_bounded_again_and_what_was_read_at_the_start_stays() {
        let data = tempfile::tempdir().unwrap();
        let engine = Engine::open(parts(data.path()), &mut |_| {}).unwrap();
        let remember = |content: &str| {
            let json = format!(r#"{{"resourceType":"Entity","name":"{content}"}}"#);
            let change = engine.prepare(json.as_bytes(), Encoding::Json, None)?;
            engine.execute(change).map(drop)
        };
        let long = "x".repeat(2000);
        remember(&long).unwrap();
        let mut settings = Settings { queue_requests: 1, read_only: true, ..Settings::default() };
        settings.limits.max_resource_bytes = 1000;
        settings.flash.bytes_per_day = 1 << 20;
        settings.forgetting.enabled = false;
        settings.seal_after = Duration::from_secs(60);
        engine.reconfigure(settings);
        assert_eq!(remember(&long).unwrap_err().code.as_str(), "TOO_LARGE");
        remember("short").unwrap();
        assert_eq!(engine.inner.shared.odometer.budget().per_day(), 1 << 20);
        let now = engine.settings();
        assert_eq!((now.queue_requests, now.read_only), (1024, false));
        assert_eq!(now.durability, Durability::Sync);
        assert_eq!(now.seal_after, Duration::from_secs(60));
        engine.stop();
    }
}
