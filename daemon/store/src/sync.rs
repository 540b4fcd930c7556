//! A lock for many readers and one writer that notices who would wait for ever.
//!
//! While a writer waits, new readers wait behind it. So a thread that reads and begins to read once more
//! waits for a writer that waits for the thread. That takes a write at the wrong microsecond, and then
//! everything stands still; where assertions are on, each try is a panic.

use std::ops::{Deref, DerefMut};
use std::sync::{self, LockResult, PoisonError};

/// A [`std::sync::RwLock`] that panics, where debug assertions are on, if a thread that has it takes it
/// again.
#[derive(Debug, Default)]
pub struct RwLock<T>(sync::RwLock<T>);

/// Reads; see [`RwLock::read`].
#[derive(Debug)]
pub struct ReadGuard<'a, T> {
    guard: sync::RwLockReadGuard<'a, T>,
    _held: Held,
}

/// Writes; see [`RwLock::write`].
#[derive(Debug)]
pub struct WriteGuard<'a, T> {
    guard: sync::RwLockWriteGuard<'a, T>,
    _held: Held,
}

impl<T> RwLock<T> {
    /// A lock around a value.
    pub fn new(value: T) -> Self {
        Self(sync::RwLock::new(value))
    }

    /// Waits until nobody writes.
    ///
    /// # Errors
    /// If a writer panicked; the guard is in the error.
    pub fn read(&self) -> LockResult<ReadGuard<'_, T>> {
        let held = Held::of(&self.0);
        match self.0.read() {
            Ok(guard) => Ok(ReadGuard { guard, _held: held }),
            Err(error) => {
                let guard = error.into_inner();
                Err(PoisonError::new(ReadGuard { guard, _held: held }))
            }
        }
    }

    /// Waits until nobody else reads or writes.
    ///
    /// # Errors
    /// As [`RwLock::read`].
    pub fn write(&self) -> LockResult<WriteGuard<'_, T>> {
        let held = Held::of(&self.0);
        match self.0.write() {
            Ok(guard) => Ok(WriteGuard { guard, _held: held }),
            Err(error) => {
                let guard = error.into_inner();
                Err(PoisonError::new(WriteGuard { guard, _held: held }))
            }
        }
    }
}

impl<T> Deref for ReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> Deref for WriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for WriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// That this thread has a lock.
#[derive(Debug)]
struct Held {
    #[cfg(debug_assertions)]
    lock: usize,
}

#[cfg(debug_assertions)]
thread_local! {
    /// The locks that this thread has.
    static HELD: std::cell::RefCell<Vec<usize>> = const { std::cell::RefCell::new(Vec::new()) };
}

#[cfg(debug_assertions)]
impl Held {
    fn of<T>(lock: &sync::RwLock<T>) -> Self {
        let lock = std::ptr::from_ref(lock).addr();
        let is_free = HELD.with_borrow(|held| !held.contains(&lock));
        assert!(is_free, "this thread has the lock already");
        HELD.with_borrow_mut(|held| held.push(lock));
        Self { lock }
    }
}

#[cfg(debug_assertions)]
impl Drop for Held {
    fn drop(&mut self) {
        HELD.with_borrow_mut(|held| held.retain(|lock| *lock != self.lock));
    }
}

#[cfg(not(debug_assertions))]
impl Held {
    fn of<T>(_: &sync::RwLock<T>) -> Self {
        Self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_after_the_other_and_two_locks_at_once_are_fine() {
        let (one, other) = (RwLock::new(1), RwLock::new(2));
        *one.write().unwrap() += 1;
        assert_eq!(*one.read().unwrap() + *other.read().unwrap(), 4);
        assert_eq!(*one.read().unwrap(), 2);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "this thread has the lock already")]
    fn to_read_while_reading_is_a_panic() {
        let lock = RwLock::new(1);
        let _first = lock.read().unwrap();
        let _ = lock.read();
    }
}
