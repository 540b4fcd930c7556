//! Wear of the flash card, and the years until it is worn out.

use std::time::Duration;

/// Microseconds of a day.
const DAY: f64 = 86_400e6;
/// Days of a year: the mean of the Julian calendar.
const YEAR: f64 = 365.25;
/// A life shorter than this tells nothing about a year: its start alone writes more than the rest.
const SHORTEST_LIFE: i64 = 3_600_000_000;
/// The same of a run that has no clock to tell its store's life by.
const SHORTEST_RUN: Duration = Duration::from_secs(60);

/// Bytes written, and the time they took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Life {
    /// Bytes over the life of the store.
    pub written: u64,
    /// Microseconds since they began to count, if a clock was ever right.
    pub micros: Option<i64>,
    /// Bytes since boot.
    pub written_since_boot: u64,
    /// Bytes of the blocks they took since boot; see [`Usage::synced`].
    ///
    /// [`Usage::synced`]: crate::disk::Usage::synced
    pub blocks_since_boot: u64,
    /// Time since boot.
    pub uptime: Duration,
}

impl Life {
    /// Bytes in a day: over the life of the store, or since boot if that is all there is to tell by.
    pub(crate) fn bytes_per_day(&self) -> Option<f64> {
        match self.micros {
            Some(micros) if micros >= SHORTEST_LIFE => {
                Some(self.written as f64 / (micros as f64 / DAY))
            }
            _ if self.uptime >= SHORTEST_RUN => {
                let micros = self.uptime.as_secs_f64() * 1e6;
                Some(self.written_since_boot as f64 / (micros / DAY))
            }
            _ => None,
        }
    }

    /// Bytes in a day as the card is given them, in whole blocks: a small synced write costs one.
    /// How many more that are is told by this run.
    pub(crate) fn block_bytes_per_day(&self) -> Option<f64> {
        let times = self.blocks_since_boot as f64 / self.written_since_boot.max(1) as f64;
        self.bytes_per_day().map(|bytes| bytes * times.max(1.0))
    }
}

/// Years until every cell of a card of so many bytes was erased as often as it can be: capacity ×
/// cycles ÷ (bytes given to the card in a year × what it makes of each), which is how JEDEC's TBW
/// is worked out. Others that write to the card are not counted.
pub(crate) fn card_years(endurance: f64, block_bytes_per_day: f64) -> Option<f64> {
    let years = endurance / (block_bytes_per_day * YEAR);
    (years.is_finite() && endurance > 0.0).then_some(years)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::FlashSettings;

    #[test]
    fn a_card_lasts_as_long_as_its_cells() {
        let flash = FlashSettings { card_write_cycles: 1000, ..FlashSettings::default() };
        // 16 GB and 4 GB a day: 16e12 bytes of wear, 16e9 of them a day, are a thousand days.
        let years = card_years(flash.endurance(16_000_000_000), 4e9).unwrap();
        assert!((years - 1000.0 / 365.25).abs() < 1e-9, "{years}");
        assert_eq!(card_years(flash.endurance(0), 4e9), None);
        assert_eq!(card_years(flash.endurance(16_000_000_000), 0.0), None);
    }

    #[test]
    fn a_day_is_told_by_the_life_or_else_by_the_run() {
        let hour = 3_600_000_000;
        let life = Life {
            written: 1000,
            micros: Some(12 * hour),
            written_since_boot: 10,
            blocks_since_boot: 50,
            uptime: Duration::from_secs(864),
        };
        assert_eq!(life.bytes_per_day(), Some(2000.0));
        assert_eq!(life.block_bytes_per_day(), Some(10_000.0));
        // Before the first sync.
        assert_eq!(Life { blocks_since_boot: 0, ..life }.block_bytes_per_day(), Some(2000.0));
        for micros in [None, Some(hour - 1), Some(-hour)] {
            assert_eq!(Life { micros, ..life }.bytes_per_day(), Some(1000.0));
        }
        let begun = Life { micros: None, uptime: Duration::from_secs(59), ..life };
        assert_eq!(begun.bytes_per_day(), None);
    }
}
