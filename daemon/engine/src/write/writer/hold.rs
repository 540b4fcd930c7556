//! The lock of the catalog while a group comes into it.

use std::time::{Duration, Instant};

use omird_store::{RwLock, WriteGuard};

use crate::index::catalog::Catalog;

/// Longest time that the catalog is held while a group comes into it: so long a recall may wait.
const HOLD: Duration = Duration::from_millis(2);

/// The catalog while a group comes into it: held for [`HOLD`] at a time.
pub(super) struct Hold<'a> {
    lock: &'a RwLock<Catalog>,
    guard: Option<WriteGuard<'a, Catalog>>,
    since: Instant,
}

impl<'a> Hold<'a> {
    /// Not held yet.
    pub(super) fn new(lock: &'a RwLock<Catalog>) -> Self {
        Self { lock, guard: None, since: Instant::now() }
    }

    /// The catalog, after a turn for others if it was held for long.
    pub(super) fn catalog(&mut self) -> &mut Catalog {
        let guard = match self.guard.take() {
            Some(guard) if self.since.elapsed() < HOLD => guard,
            held => {
                let taken = match held {
                    Some(guard) => guard.give_way(),
                    None => self.lock.write(),
                };
                self.since = Instant::now();
                taken
            }
        };
        self.guard.insert(guard)
    }
}
