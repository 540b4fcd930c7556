//! A lock for many readers and one writer that notices who would wait for ever.
//!
//! While a writer waits, new readers wait behind it. So a thread that reads and begins to read once more
//! waits for a writer that waits for the thread. That takes a write at the wrong microsecond, and then
//! everything stands still; where assertions are on, each try is a panic.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// How often a writer that gives way looks whether all readers are in, and how long it sleeps in between. Readers that
/// come one after the other must not keep it out for ever.
const LOOKS: usize = 20;
const NAP: Duration = Duration::from_micros(50);

/// A [`parking_lot::RwLock`] that panics, where debug assertions are on, if a thread that has it takes it
/// again, and whose writer can give way.
#[derive(Debug, Default)]
pub struct RwLock<T> {
    lock: parking_lot::RwLock<T>,
    /// Readers that are about to have it.
    waiting: AtomicUsize,
}

/// Reads; see [`RwLock::read`].
#[derive(Debug)]
pub struct ReadGuard<'a, T> {
    guard: parking_lot::RwLockReadGuard<'a, T>,
    _held: Held,
}

/// Writes; see [`RwLock::write`].
#[derive(Debug)]
pub struct WriteGuard<'a, T> {
    lock: &'a RwLock<T>,
    guard: parking_lot::RwLockWriteGuard<'a, T>,
    _held: Held,
}

impl<T> RwLock<T> {
    /// A lock around a value.
    pub fn new(value: T) -> Self {
        Self { lock: parking_lot::RwLock::new(value), waiting: AtomicUsize::new(0) }
    }

    /// Waits until nobody writes.
    pub fn read(&self) -> ReadGuard<'_, T> {
        let held = Held::of(&self.lock);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let guard = self.lock.read();
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        ReadGuard { guard, _held: held }
    }

    /// Reads, also on a thread that reads already. `None` if somebody writes for as long as `patience`.
    pub(crate) fn peek<R>(&self, patience: Duration, read: impl FnOnce(&T) -> R) -> Option<R> {
        self.lock.try_read_recursive_for(patience).map(|value| read(&value))
    }

    /// Waits until nobody else reads or writes.
    pub fn write(&self) -> WriteGuard<'_, T> {
        let held = Held::of(&self.lock);
        WriteGuard { lock: self, guard: self.lock.write(), _held: held }
    }
}

impl<'a, T> WriteGuard<'a, T> {
    /// Lets those in who wait to read, and takes the lock again. A writer that only let go of it would have it again
    /// before any of them is awake.
    pub fn give_way(self) -> WriteGuard<'a, T> {
        let lock = self.lock;
        drop(self);
        for _ in 0..LOOKS {
            if lock.waiting.load(Ordering::Relaxed) == 0 {
                break;
            }
            thread::sleep(NAP);
        }
        lock.write()
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
    fn of<T>(lock: &parking_lot::RwLock<T>) -> Self {
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
    fn of<T>(_: &parking_lot::RwLock<T>) -> Self {
        Self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_after_the_other_and_two_locks_at_once_are_fine() {
        let (one, other) = (RwLock::new(1), RwLock::new(2));
        *one.write() += 1;
        assert_eq!(*one.read() + *other.read(), 4);
        assert_eq!(*one.read(), 2);
    }

    /// Returns what a reader sees that waits while a writer gives way between two writes.
    fn seen() -> i32 {
        let lock = RwLock::new(1);
        let mut guard = lock.write();
        thread::scope(|scope| {
            let reader = scope.spawn(|| *lock.read());
            while lock.waiting.load(Ordering::Relaxed) == 0 {
                thread::yield_now();
            }
            *guard = 2;
            let mut guard = guard.give_way();
            *guard = 3;
            drop(guard);
            reader.join().unwrap()
        })
    }

    #[test]
    fn a_writer_that_gives_way_lets_a_reader_in() {
        // A reader that gets no processor for a millisecond comes too late. On a busy machine some do.
        let came_in = (0..100).filter(|_| seen() == 2).count();
        assert!(came_in > 30, "{came_in} of 100");
    }

    #[test]
    fn a_reader_may_peek_and_a_writer_keeps_others_out() {
        let lock = RwLock::new(1);
        let first = lock.read();
        assert_eq!(lock.peek(Duration::ZERO, |value| *value), Some(1));
        drop(first);
        let _writer = lock.write();
        assert_eq!(lock.peek(Duration::ZERO, |value| *value), None);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "this thread has the lock already")]
    fn to_read_while_reading_is_a_panic() {
        let lock = RwLock::new(1);
        let _first = lock.read();
        let _ = lock.read();
    }
}
