//! What became of files that rotted: repaired, or lost in part. `status` counts them, and adapters tell of each.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::contained::contain;

/// What was found of a file of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What became of it.
    pub outcome: Outcome,
    /// The file, below the data folder.
    pub file: String,
    /// What is wrong, or what was done, for a person.
    pub message: String,
}

/// What became of a file that was found damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is whole again.
    Repaired,
    /// Some of it is lost; the rest is served.
    Lost,
}

impl Outcome {
    /// The name in the key of the event.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Repaired => "repaired",
            Self::Lost => "lost",
        }
    }
}

/// Who is told of findings.
pub type OnFinding = Box<dyn Fn(&Finding) + Send + Sync>;

/// What was found since the start.
#[derive(Default)]
pub struct Integrity {
    repaired: AtomicU64,
    lost: Mutex<BTreeSet<String>>,
    tell: OnceLock<OnFinding>,
}

impl Integrity {
    /// With what the start repaired already.
    pub(super) fn after(repaired: u64) -> Self {
        Self { repaired: AtomicU64::new(repaired), ..Self::default() }
    }

    /// Names who is told. Only the first to be named counts.
    pub(super) fn tell(&self, tell: OnFinding) {
        let _ = self.tell.set(tell);
    }

    /// Notes that nothing is wrong with a file.
    pub(super) fn sound(&self, file: &str) {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).remove(file);
    }

    /// Notes that a file was damaged and is whole again.
    pub(super) fn repaired(&self, file: &str) {
        self.sound(file);
        self.repaired.fetch_add(1, Ordering::Relaxed);
        self.announce(Outcome::Repaired, file, "it was damaged and is whole again");
    }

    /// Notes that some of a file is lost.
    pub(super) fn lost(&self, file: &str, message: &str) {
        let is_news =
            self.lost.lock().unwrap_or_else(PoisonError::into_inner).insert(file.to_owned());
        if is_news {
            tracing::error!(file, message, "damaged");
            self.announce(Outcome::Lost, file, message);
        }
    }

    fn announce(&self, outcome: Outcome, file: &str, message: &str) {
        let Some(tell) = self.tell.get() else { return };
        let finding = Finding { outcome, file: file.to_owned(), message: message.to_owned() };
        contain("an adapter that was told of damage", || tell(&finding));
    }

    /// How many damages were repaired since boot, those at the start included.
    pub fn repairs(&self) -> u64 {
        self.repaired.load(Ordering::Relaxed)
    }

    /// Files of which some was found lost since the start.
    pub fn losses(&self) -> Vec<String> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_loss_is_told_of_once_and_a_repair_takes_it_back() {
        let integrity = Integrity::after(2);
        let told: Arc<Mutex<Vec<(Outcome, String)>>> = Arc::default();
        let teller = told.clone();
        integrity.tell(Box::new(move |finding| {
            teller.lock().unwrap().push((finding.outcome, finding.file.clone()));
        }));
        integrity.lost("segments/1", "gone");
        integrity.lost("segments/1", "gone");
        assert_eq!(integrity.losses(), ["segments/1"]);
        integrity.repaired("segments/1");
        assert_eq!((integrity.repairs(), integrity.losses().len()), (3, 0));
        let expected = [Outcome::Lost, Outcome::Repaired].map(|of| (of, "segments/1".to_owned()));
        assert_eq!(*told.lock().unwrap(), expected);
    }
}
