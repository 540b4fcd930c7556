//! Causes of deletions by the sweep, for those who ask later: the latest since boot. The store itself
//! keeps nothing of a forgotten memory but its tombstone.

use std::collections::{HashMap, VecDeque};

use omird_store::RefKey;
use parking_lot::Mutex;

/// Most reasons that are kept; the oldest go first.
const MAX_KEPT: usize = 4096;

/// Causes by the key of the forgotten memory.
#[derive(Debug, Default)]
pub(crate) struct DeletionCauses(Mutex<LatestCauses>);

#[derive(Debug, Default)]
struct LatestCauses {
    reasons: HashMap<RefKey, String>,
    order: VecDeque<RefKey>,
}

impl DeletionCauses {
    /// Keeps the cause of a deletion.
    pub(crate) fn note(&self, key: RefKey, reason: String) {
        let mut kept = self.0.lock();
        if kept.reasons.insert(key, reason).is_none() {
            kept.order.push_back(key);
        }
        if kept.order.len() > MAX_KEPT
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.reasons.remove(&oldest);
        }
    }

    /// Drops the cause if the memory is there again, or was forgotten for another.
    pub(crate) fn drop(&self, key: &RefKey) {
        let mut kept = self.0.lock();
        if kept.reasons.remove(key).is_some() {
            kept.order.retain(|other| other != key);
        }
    }

    /// Returns the cause of a deletion, if it is known.
    pub(crate) fn of(&self, key: &RefKey) -> Option<String> {
        let kept = self.0.lock();
        kept.reasons.get(key).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_kept() {
        let causes = DeletionCauses::default();
        let key = |n: usize| RefKey::of_text(&format!("MemoryRecord/{n}"));
        causes.note(key(0), "first".to_owned());
        causes.note(key(0), "second".to_owned());
        assert_eq!(causes.of(&key(0)).as_deref(), Some("second"));
        causes.drop(&key(0));
        assert_eq!(causes.of(&key(0)), None);
        for n in 0..=MAX_KEPT {
            causes.note(key(n), n.to_string());
        }
        assert_eq!(causes.of(&key(0)), None);
        assert_eq!(causes.of(&key(1)).as_deref(), Some("1"));
        assert_eq!(causes.of(&key(MAX_KEPT)), Some(MAX_KEPT.to_string()));
    }
}
