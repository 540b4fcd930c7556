//! Why the sweep forgot what it forgot, for those who ask later: the latest since boot. The store
//! itself keeps of what was forgotten nothing but that it was.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use crate::index::key::RefKey;

/// Most reasons that are kept; the oldest go first.
const MAX_KEPT: usize = 4096;

/// Reasons by the key of what was forgotten.
#[derive(Debug, Default)]
pub struct Farewells(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    reasons: HashMap<RefKey, String>,
    order: VecDeque<RefKey>,
}

impl Farewells {
    /// Keeps why something was forgotten.
    pub fn note(&self, key: RefKey, reason: String) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.reasons.insert(key, reason).is_none() {
            kept.order.push_back(key);
        }
        if kept.order.len() > MAX_KEPT
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.reasons.remove(&oldest);
        }
    }

    /// Drops the reason of what is there again, or was forgotten for another.
    pub fn drop(&self, key: &RefKey) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.reasons.remove(key).is_some() {
            kept.order.retain(|other| other != key);
        }
    }

    /// Why something was forgotten, if that is known.
    pub fn why(&self, key: &RefKey) -> Option<String> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.reasons.get(key).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_kept() {
        let farewells = Farewells::default();
        let key = |n: usize| RefKey::of_text(&format!("MemoryRecord/{n}"));
        farewells.note(key(0), "first".to_owned());
        farewells.note(key(0), "second".to_owned());
        assert_eq!(farewells.why(&key(0)).as_deref(), Some("second"));
        farewells.drop(&key(0));
        assert_eq!(farewells.why(&key(0)), None);
        for n in 0..=MAX_KEPT {
            farewells.note(key(n), n.to_string());
        }
        assert_eq!(farewells.why(&key(0)), None);
        assert_eq!(farewells.why(&key(1)).as_deref(), Some("1"));
        assert_eq!(farewells.why(&key(MAX_KEPT)), Some(MAX_KEPT.to_string()));
    }
}
