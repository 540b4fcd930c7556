//! The claims of units: what their sentences say is so, and which two oppose each other.
//!
//! A new unit is compared with others of its kind, and so was the one before it. So the claims of those are kept for a while, and few
//! units are read and taken apart again.

use std::collections::HashMap;
use std::sync::Arc;

use omird_text::{Claim, Language, sentences};
use parking_lot::Mutex;

use crate::failure::Failure;
use crate::types::Unit;
use crate::words::Detection;

/// Sentences of a unit that are compared.
const MOST_SENTENCES: usize = 8;
/// By so much less sure, a newer unit against an older one is a matter of time.
const LESS_SURE: f64 = 0.15;
/// Units of a generation. There are two, and a unit that was not asked for during a whole one is dropped.
const MOST: usize = 2048;

/// The claims of a unit, and those of its assumptions.
#[derive(Default)]
pub(crate) struct Claims {
    said: Vec<Claim>,
    assumed: Vec<Claim>,
}

impl Claims {
    /// Reads the claims of a unit with its content.
    pub(crate) fn of(unit: &Unit, content: &str) -> Self {
        let language = Language::English;
        let said = sentences(content).take(MOST_SENTENCES);
        let said = said.map(|sentence| Claim::of(language, sentence)).collect();
        let assumed = unit.confidence.iter().flat_map(|confidence| &confidence.assumptions);
        let assumed = assumed.take(MOST_SENTENCES).map(|text| Claim::of(language, text));
        Self { said, assumed: assumed.collect() }
    }

    /// Returns how another unit opposes this one, and a sentence about it.
    pub(crate) fn against(
        &self,
        theirs: &Self,
        unit: &Unit,
        other: &Unit,
    ) -> Option<(Detection, String)> {
        let opposed = |a: &Claim, b: &Claim| a.opposes(b).is_some();
        if self.said.iter().any(|one| theirs.said.iter().any(|two| opposed(one, two))) {
            let (older, newer) =
                if other.epoch <= unit.epoch { (other, unit) } else { (unit, other) };
            let less_sure = matches!(
                (older.score(), newer.score()),
                (Some(older), Some(newer)) if newer + LESS_SURE <= older
            );
            let (by, why) = if less_sure {
                (Detection::Temporal, "is newer and less sure, and opposes")
            } else {
                (Detection::Semantic, "opposes")
            };
            // Nothing of a content stands in it: a purge must leave none.
            return Some((by, format!("{} {why} {}", newer.id, older.id)));
        }
        let assumed = |claims: &Self, said: &Self| {
            claims.assumed.iter().any(|claim| said.said.iter().any(|one| opposed(claim, one)))
        };
        let (assumes, opposes) = if assumed(self, theirs) {
            (unit, other)
        } else if assumed(theirs, self) {
            (other, unit)
        } else {
            return None;
        };
        Some((Detection::Logical, format!("{} assumes what {} opposes", assumes.id, opposes.id)))
    }
}

/// Claims by the id of their unit, which are of its content and so never change.
#[derive(Default)]
pub(crate) struct KnownClaims(Mutex<Generations>);

#[derive(Default)]
struct Generations {
    newer: HashMap<String, Arc<Claims>>,
    older: HashMap<String, Arc<Claims>>,
}

impl KnownClaims {
    /// Returns the claims of a unit, read with `read` unless they are known.
    ///
    /// # Errors
    /// That of `read`.
    pub(crate) fn of(
        &self,
        id: &str,
        read: impl FnOnce() -> Result<Claims, Failure>,
    ) -> Result<Arc<Claims>, Failure> {
        let mut all = self.0.lock();
        if let Some(known) = all.newer.get(id) {
            return Ok(known.clone());
        }
        let claims = match all.older.remove(id) {
            Some(known) => known,
            None => Arc::new(read()?),
        };
        if all.newer.len() >= MOST {
            all.older = std::mem::take(&mut all.newer);
        }
        all.newer.insert(id.to_owned(), claims.clone());
        Ok(claims)
    }

    /// Drops the claims of units that are purged.
    pub(crate) fn forget(&self, ids: &[String]) {
        let mut all = self.0.lock();
        for id in ids {
            all.newer.remove(id);
            all.older.remove(id);
        }
    }

    /// Drops all: ids of units that were never written may come again.
    pub(crate) fn clear(&self) {
        *self.0.lock() = Generations::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::INVALID_TYPE;

    fn reads(known: &KnownClaims, id: &str) -> bool {
        let mut was_read = false;
        let claims = known.of(id, || {
            was_read = true;
            Ok(Claims::default())
        });
        assert!(claims.is_ok());
        was_read
    }

    #[test]
    fn what_is_asked_for_stays_and_what_is_forgotten_is_read_again() {
        let known = KnownClaims::default();
        assert!(reads(&known, "kept") && reads(&known, "dropped") && !reads(&known, "dropped"));
        for at in 0..2 * MOST {
            assert!(reads(&known, &format!("mem-{at}")));
            assert!(!reads(&known, "kept"));
        }
        assert!(reads(&known, "dropped"));
        known.forget(&["kept".to_owned()]);
        assert!(reads(&known, "kept"));
        known.clear();
        assert!(reads(&known, "kept"));
    }

    #[test]
    fn what_cannot_be_read_is_not_known() {
        let known = KnownClaims::default();
        let failed = known.of("mem-1", || Err(Failure::new(&INVALID_TYPE, "no")));
        assert!(failed.is_err());
        assert!(reads(&known, "mem-1"));
    }
}
