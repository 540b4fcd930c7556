//! The bytes of one file, and what of them is certain.

use crate::random::Random;

/// Bytes that a card writes at once.
const SECTOR: usize = 512;

/// One change to a file's bytes.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Write { at: u64, bytes: Vec<u8> },
    Truncate(u64),
}

/// Certainty of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Certainty {
    /// Not synced yet: the next sync makes it certain.
    Waiting,
    /// Its sync failed: it may be on the card or not, and no later sync changes that.
    Doubtful,
    /// Synced, after a doubtful one.
    Certain,
}

/// The bytes of one file.
#[derive(Debug, Clone, Default)]
pub(super) struct Content {
    /// The certain time before all of `changes`.
    base: Vec<u8>,
    changes: Vec<(Change, Certainty)>,
    current: Vec<u8>,
}

impl Change {
    /// Least end of the file afterwards.
    pub(super) fn end(&self) -> u64 {
        match self {
            Self::Write { at, bytes } => at + bytes.len() as u64,
            Self::Truncate(len) => *len,
        }
    }

    /// The part of it that ends at `end` at most.
    pub(super) fn up_to(mut self, end: u64) -> Self {
        match &mut self {
            Self::Write { at, bytes } => {
                bytes.truncate(usize::try_from(end.saturating_sub(*at)).unwrap_or(usize::MAX));
            }
            Self::Truncate(len) => *len = (*len).min(end),
        }
        self
    }

    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Self::Write { at, bytes } => put(to, index(*at), bytes),
            Self::Truncate(len) => to.resize(index(*len), 0),
        }
    }

    /// Applies what is left of it after a cut.
    fn apply_torn(&self, to: &mut Vec<u8>, random: &mut Random) {
        let Self::Write { at, bytes } = self else {
            return if random.chance(50) {
                self.apply(to)
            };
        };
        let at = index(*at);
        match random.below(7) {
            0 => {}
            1 | 2 => self.apply(to),
            // Cut short at any byte.
            3 => put(to, at, &bytes[..random.below(bytes.len() + 1)]),
            // Any of the sectors; what is missing in between stays as it was, or zero.
            4 => {
                let mut from = 0;
                while from < bytes.len() {
                    let until = ((at + from) / SECTOR + 1) * SECTOR - at;
                    let until = until.min(bytes.len());
                    if random.chance(50) {
                        put(to, at + from, &bytes[from..until]);
                    }
                    from = until;
                }
            }
            // The length was noted, the bytes were not.
            5 => to.resize(to.len().max(at + bytes.len()), 0),
            // Power failed in the middle of a sector: the rest of it is noise.
            _ => {
                let whole = random.below(bytes.len() + 1);
                let mut torn = bytes.clone();
                let noise = (whole + 64).min(torn.len());
                torn[whole..noise].iter_mut().for_each(|byte| *byte = random.bits() as u8);
                put(to, at, &torn[..noise]);
            }
        }
    }
}

fn index(offset: u64) -> usize {
    usize::try_from(offset).expect("a test file is small")
}

fn put(to: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    if to.len() < at + bytes.len() {
        to.resize(at + bytes.len(), 0);
    }
    to[at..at + bytes.len()].copy_from_slice(bytes);
}

impl Content {
    /// The bytes as a reader sees them.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.current
    }

    pub(super) fn change(&mut self, change: Change) {
        change.apply(&mut self.current);
        self.changes.push((change, Certainty::Waiting));
    }

    pub(super) fn sync(&mut self) {
        if self.changes.iter().any(|(_, certainty)| *certainty == Certainty::Doubtful) {
            self.resolve_waiting(Certainty::Certain);
        } else {
            self.changes.drain(..).for_each(|(change, _)| change.apply(&mut self.base));
        }
    }

    pub(super) fn fail_sync(&mut self) {
        self.resolve_waiting(Certainty::Doubtful);
    }

    fn resolve_waiting(&mut self, as_what: Certainty) {
        for (_, certainty) in &mut self.changes {
            if *certainty == Certainty::Waiting {
                *certainty = as_what;
            }
        }
    }

    /// Changes what is on the card.
    pub(super) fn rot(&mut self, f: impl FnOnce(&mut Vec<u8>)) {
        f(&mut self.current);
        self.base = self.current.clone();
        self.changes.clear();
    }

    /// The states that may be found after a cut; see [`super::CutDisk::survivors`].
    pub(super) fn survivors(&self, seed: u64, random: &mut Random) -> Self {
        let mut bytes = self.base.clone();
        let mut rest = self.changes.as_slice();
        while let Some((_, first)) = rest.first() {
            // Between two syncs anything may come before anything.
            let run = rest.iter().take_while(|(_, certainty)| certainty == first).count();
            let mut order: Vec<&Change> = rest[..run].iter().map(|(change, _)| change).collect();
            rest = &rest[run..];
            if *first == Certainty::Certain || seed == super::EVERYTHING {
                order.iter().for_each(|change| change.apply(&mut bytes));
            } else if seed != super::ONLY_SYNCED {
                if random.chance(30) {
                    for at in (1..order.len()).rev() {
                        order.swap(at, random.below(at + 1));
                    }
                }
                order.iter().for_each(|change| change.apply_torn(&mut bytes, random));
            }
        }
        Self { base: bytes.clone(), changes: Vec::new(), current: bytes }
    }
}
