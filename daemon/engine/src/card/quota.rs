//! Usage of the quota: the bytes on the card, and the bound on them.

use crate::error::{Code, Error};

/// Bytes on the disk beside the bound on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaUsage {
    /// Bytes that logs, segments, signatures and the kept index take.
    pub bytes: u64,
    /// Most of them, as configured; 0 for no bound.
    pub max_bytes: u64,
}

impl QuotaUsage {
    /// Bytes above the bound: what compaction is to win, and then eviction.
    pub fn bytes_to_free(self) -> u64 {
        match self.max_bytes {
            0 => 0,
            max => self.bytes.saturating_sub(max),
        }
    }

    /// The refusal of new memories, if usage is a tenth above the bound and nothing is left to drop.
    pub fn refusal(self, can_free: bool) -> Option<Error> {
        let is_too_much = self.bytes_to_free() > self.max_bytes / 10;
        (is_too_much && !can_free).then(|| {
            let Self { bytes, max_bytes } = self;
            Error::new(
                Code::StorageFull,
                format!(
                    "the store takes {bytes} bytes and may take {max_bytes} (flash.max_bytes), and \
                     nothing more can be dropped; forget something, or allow more"
                ),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_dropped_or_refused_without_a_bound() {
        let unbounded = QuotaUsage { bytes: u64::MAX, max_bytes: 0 };
        assert_eq!(unbounded.bytes_to_free(), 0);
        assert!(unbounded.refusal(false).is_none());
    }

    #[test]
    fn a_tenth_too_much_is_bearable_and_more_only_while_it_shrinks() {
        let of = |bytes| QuotaUsage { bytes, max_bytes: 1000 };
        assert_eq!((of(900).bytes_to_free(), of(1100).bytes_to_free()), (0, 100));
        assert!(of(1100).refusal(false).is_none());
        assert!(of(1101).refusal(true).is_none());
        let refusal = of(1101).refusal(false).unwrap();
        assert_eq!(refusal.code, Code::StorageFull);
        assert!(refusal.message.contains("flash.max_bytes"));
    }
}
