//! Settings of the engine.

use std::time::Duration;

use omir_core::forgetting::HalfLife;
use omir_core::tier::TierPolicy;
use omird_text::Language;

use crate::card::reserve;
use crate::index::fading::Fading;
use crate::index::vectors::Fusion;
use crate::recall::query::DEFAULT_FRAME;

/// The promise of an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// It survives a power cut: every group of writes is synced before it is acknowledged.
    #[default]
    Sync,
    /// It survives a crash of the daemon; a power cut may cost what came in this long before.
    Interval(Duration),
    /// It survives a crash of the daemon; when it reaches the card is up to the kernel.
    None,
}

impl Durability {
    /// The name in the configuration and in `status`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Interval(_) => "interval",
            Self::None => "none",
        }
    }
}

/// Levels that readers by the default of [`Limits`](omir_core::decode::Limits) bear more than any resource may
/// have: for what it is wrapped in where it is stored and sent. The manifest of a segment takes most, which keeps
/// older versions within an extension of an Episode (6).
pub(crate) const DEPTH_HEADROOM: usize = 16;
/// Levels that one resource may have, whatever is configured.
pub const DEEPEST: usize = 128 - DEPTH_HEADROOM;
/// Levels of what resources come in: a Bundle, and the array in it.
const WRAPPING: usize = 2;

/// Bounds on what one request may bring. Exceeding one is `TOO_LARGE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    /// Bytes of a payload.
    pub max_payload_bytes: usize,
    /// Nesting of one resource, whatever it comes in; at most [`DEEPEST`].
    pub max_depth: usize,
    /// Values (members, items, scalars) in a payload.
    pub max_values: usize,
    /// Resources in one request.
    pub max_resources: usize,
    /// Bytes of one stored resource.
    pub max_resource_bytes: usize,
    /// Bytes of a payload that is merged. A file is one request, so that it comes in as a whole or
    /// not at all.
    pub max_import_bytes: usize,
}

impl RequestLimits {
    /// The bounds on a payload of resources: deeper than one of them. So what is accepted alone is accepted in a
    /// Bundle as well.
    pub fn around_resources(&self) -> Self {
        Self { max_depth: self.max_depth.saturating_add(WRAPPING), ..*self }
    }

    /// The bounds on a request that merges: larger, with resources and values in proportion.
    pub fn for_import(&self) -> Self {
        let bytes = self.max_import_bytes.max(self.max_payload_bytes);
        let times = bytes.div_ceil(self.max_payload_bytes.max(1));
        Self {
            max_payload_bytes: bytes,
            max_values: self.max_values.saturating_mul(times),
            max_resources: self.max_resources.saturating_mul(times),
            ..*self
        }
    }
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            max_payload_bytes: 4 << 20,
            max_depth: 64,
            max_values: 500_000,
            max_resources: 10_000,
            max_resource_bytes: 1 << 20,
            max_import_bytes: 32 << 20,
        }
    }
}

/// Endurance of the flash card, and the store's share of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlashSettings {
    /// Bytes the store may take on the disk; 0 for no bound: then nothing is ever evicted.
    pub max_bytes: u64,
    /// Bytes that may be written in a day before compaction, merging, expiry and access counts wait; 0
    /// for no bound. An acknowledged write is never refused for it, but counts.
    pub bytes_per_day: u64,
    /// Size of the card; 0 to ask the file system.
    pub card_bytes: u64,
    /// Erase cycles of each cell of the card. Makers state about 500 for three bits a cell
    /// and 3000 for two; 1000 is between, as most do not state it.
    pub card_write_cycles: u64,
    /// Bytes that the card writes for each that it is given in blocks of 4 KiB, the journal of
    /// the file system included: it erases whole blocks of megabytes, and small synced writes make it
    /// copy the rest. The makers' formula for the life of a card divides by it (JEDEC's write
    /// amplification factor); they measure it and seldom state it. 4 is a guess.
    pub card_write_factor: u64,
    /// Bytes kept for a full disk, so that forgetting works on it and makes room; 0 for none. At least what sealing
    /// the largest log takes is kept, whatever is less here.
    pub reserve_bytes: u64,
}

impl FlashSettings {
    /// Bytes that a card of so many bytes bears before its cells are worn out.
    pub(crate) fn endurance(&self, card_bytes: u64) -> f64 {
        card_bytes as f64 * self.card_write_cycles as f64 / self.card_write_factor as f64
    }
}

impl Default for FlashSettings {
    fn default() -> Self {
        Self {
            max_bytes: 0,
            bytes_per_day: 0,
            card_bytes: 0,
            card_write_cycles: 1000,
            card_write_factor: 4,
            reserve_bytes: 128 << 10,
        }
    }
}

/// A log is let grow to so many bytes, however little the store may take of its card: what lies beside a segment
/// takes four blocks, however small that is.
const SMALLEST_LOG: u64 = 128 << 10;
/// Logs and segments are no larger than this part of the card: so much must be free to rewrite one, on a card that
/// is full.
const PARTS: u64 = 32;

/// Settings of an engine.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The promise of an acknowledgement.
    pub durability: Durability,
    /// Bounds on requests.
    pub limits: RequestLimits,
    /// Requests that may wait for the writer; more are `BUSY`.
    pub queue_requests: usize,
    /// Bytes that may wait for the writer; more are `BUSY`.
    pub queue_bytes: usize,
    /// A log of this many bytes is sealed into a segment.
    pub segment_bytes: u64,
    /// A log this old is sealed even if it is small, and never later than `purge_after`. Until then what
    /// is forgotten or superseded in it is never written a second time.
    pub seal_after: Duration,
    /// The index of a segment of at least so many bytes is kept on the disk; that of a smaller one is
    /// rebuilt at each start.
    pub index_from_bytes: u64,
    /// Interval between journals of access counts.
    pub touch_interval: Duration,
    /// Interval between notes of the time, for a start without a clock.
    pub mark_interval: Duration,
    /// Time for which superseded versions can still be asked for (`asOf`).
    pub keep_history: Duration,
    /// Longest time that a memory forgotten on request stays on the card.
    pub purge_after: Duration,
    /// All that is sealed is read through once in this time, for rot; `None` for never.
    pub scrub_every: Option<Duration>,
    /// Compaction makes no segment larger than this, nor than a small part of the store. A few times as much is
    /// in memory meanwhile.
    pub segment_max_bytes: u64,
    /// The card.
    pub flash: FlashSettings,
    /// Settings of forgetting: how memories fade, move and go.
    pub forgetting: Forgetting,
    /// The way in which words and meaning are weighed.
    pub fusion: Fusion,
    /// True if writes are refused (`UNAUTHORIZED`).
    pub read_only: bool,
    /// The frame that places are meant in where a question names none: where memories lie.
    pub fixed_frame: String,
    /// The language whose stems and stop words recall by words knows.
    pub language: Language,
}

/// Settings of forgetting: how memories fade, move and go.
#[derive(Debug, Clone, PartialEq)]
pub struct Forgetting {
    /// True if time moves anything at all. If not, tiers stay as stored, relationships as strong as
    /// stated, and nothing is merged, expires or is evicted.
    pub enabled: bool,
    /// Interval between sweeps in idle time; `None` only when it is asked for.
    pub sweep_interval: Option<Duration>,
    /// The rules of tiers.
    pub tiers: TierPolicy,
    /// True if near-duplicate observations are merged.
    pub merge: bool,
    /// Time for which observations of the same gather before they are merged, unless they become many or a
    /// sweep is asked for: a merge writes the whole record again.
    pub merge_after: Duration,
    /// Largest distance, in metres, between observations of one place.
    pub merge_radius_m: f64,
    /// Least similarity of their words, in [0, 1]: the words both have, of all they have.
    pub merge_similarity: f64,
    /// Time for which memories that stopped being valid are kept.
    pub expire_after: Duration,
    /// Time from its last use to half the strength of a relationship.
    pub relationship_half_life: HalfLife,
}

impl Forgetting {
    /// The rules the catalog goes by.
    pub fn fading(&self) -> Option<Fading> {
        let fading = Fading { tiers: self.tiers, bond_half_life: self.relationship_half_life };
        self.enabled.then_some(fading)
    }
}

impl Default for Forgetting {
    fn default() -> Self {
        let Fading { tiers, bond_half_life } = Fading::default();
        Self {
            enabled: true,
            sweep_interval: Some(Duration::from_secs(60)),
            tiers,
            merge: true,
            merge_after: Duration::from_secs(7 * 86_400),
            merge_radius_m: 0.5,
            merge_similarity: 0.8,
            expire_after: Duration::from_secs(30 * 86_400),
            relationship_half_life: bond_half_life,
        }
    }
}

impl Settings {
    /// Bounds of a log and a segment on a card of `total` bytes, or where the store may take little of
    /// its card: nothing is freed before it is sealed, and a compaction needs room for what it makes. The reserve
    /// has that room.
    pub(super) fn for_its_card(mut self, total: Option<u64>) -> Self {
        let mut bound = |log: u64, segment: u64| {
            self.segment_bytes = self.segment_bytes.min(log.max(SMALLEST_LOG));
            self.segment_max_bytes = self.segment_max_bytes.min(segment.max(SMALLEST_LOG));
        };
        if let Some(total) = total {
            bound(total / PARTS, total / PARTS);
        }
        let max = self.flash.max_bytes;
        if max > 0 {
            bound(max / 8, max / 4);
        }
        if self.flash.reserve_bytes > 0 {
            let least = reserve::least(self.segment_bytes);
            self.flash.reserve_bytes = self.flash.reserve_bytes.max(least);
        }
        self
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            durability: Durability::Sync,
            limits: RequestLimits::default(),
            queue_requests: 1024,
            queue_bytes: 32 << 20,
            segment_bytes: 8 << 20,
            seal_after: Duration::from_secs(28 * 86_400),
            index_from_bytes: 4 << 20,
            touch_interval: Duration::from_secs(1800),
            mark_interval: Duration::from_secs(3600),
            keep_history: Duration::from_secs(604_800),
            purge_after: Duration::from_secs(28 * 86_400),
            scrub_every: Some(Duration::from_secs(30 * 86_400)),
            segment_max_bytes: 8 << 20,
            flash: FlashSettings::default(),
            forgetting: Forgetting::default(),
            fusion: Fusion::default(),
            read_only: false,
            fixed_frame: DEFAULT_FRAME.to_owned(),
            language: Language::English,
        }
    }
}

#[cfg(test)]
mod tests {
    use omir_core::decode::Limits;
    use omird_store::segment_room;

    use super::*;

    #[test]
    fn a_small_card_has_small_logs_and_a_reserve_that_one_fits_into() {
        let on = |mib: u64| Settings::default().for_its_card(Some(mib << 20));
        assert_eq!(on(16 << 10).segment_bytes, Settings::default().segment_bytes);
        for mib in [1, 4, 16, 64, 256, 16 << 10] {
            let settings = on(mib);
            let reserve = settings.flash.reserve_bytes;
            assert!(settings.segment_bytes <= SMALLEST_LOG.max((mib << 20) / PARTS));
            assert!(settings.segment_bytes <= settings.segment_max_bytes);
            assert!(reserve >= segment_room(settings.segment_bytes), "{mib} MiB");
            assert!(reserve <= (mib << 20) / 4, "{mib} MiB: {reserve}");
        }
        let none = FlashSettings { reserve_bytes: 0, ..FlashSettings::default() };
        let none = Settings { flash: none, ..Settings::default() }.for_its_card(Some(1 << 20));
        assert_eq!(none.flash.reserve_bytes, 0);
    }

    #[test]
    fn what_is_accepted_leaves_readers_room_for_what_it_is_wrapped_in() {
        assert_eq!(DEEPEST + DEPTH_HEADROOM, Limits::default().max_depth);
        assert!(RequestLimits::default().max_depth <= DEEPEST);
    }
}
