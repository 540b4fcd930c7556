//! The queue between Zenoh's threads, which must not be held up, and one of ours.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::qos::{History, Qos};

/// The most that waits under KEEP_ALL: rmw promises everything, memory does not.
const KEEP_ALL: usize = 10_000;

/// A queue that keeps the last so many items and counts what it dropped.
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    ready: Condvar,
    depth: usize,
}

struct State<T> {
    items: VecDeque<T>,
    dropped: u64,
    closed: bool,
}

impl<T> Queue<T> {
    /// A queue as deep as the history of `qos`.
    pub(crate) fn new(qos: &Qos) -> Self {
        let depth = match qos.history {
            History::KeepLast => usize::try_from(qos.depth).unwrap_or(KEEP_ALL).clamp(1, KEEP_ALL),
            History::KeepAll => KEEP_ALL,
        };
        let state = State { items: VecDeque::new(), dropped: 0, closed: false };
        Self { state: Mutex::new(state), ready: Condvar::new(), depth }
    }

    /// Adds an item. When the queue is full the oldest one makes room and comes back.
    pub(crate) fn push(&self, item: T) -> Option<T> {
        let mut state = self.lock();
        if state.closed {
            return None;
        }
        let oldest = if state.items.len() >= self.depth {
            state.dropped += 1;
            state.items.pop_front()
        } else {
            None
        };
        state.items.push_back(item);
        self.ready.notify_one();
        oldest
    }

    /// The oldest item; waits for one. `None` once the queue is closed.
    pub(crate) fn pop(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(item) = state.items.pop_front() {
                return Some(item);
            }
            state = self.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets go of everything in it; `pop` returns.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.items.clear();
        self.ready.notify_all();
    }

    /// How many items were dropped because the queue was full.
    pub(crate) fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_full_queue_drops_the_oldest_and_counts_it() {
        let queue = Queue::new(&Qos::DEFAULT.keep_last(2));
        assert_eq!(
            [queue.push(1), queue.push(2), queue.push(3), queue.push(4)],
            [None, None, Some(1), Some(2)]
        );
        assert_eq!(queue.dropped(), 2);
        assert_eq!((queue.pop(), queue.pop()), (Some(3), Some(4)));
    }

    #[test]
    fn closing_wakes_who_waits_and_keeps_nothing() {
        let queue = Arc::new(Queue::<i32>::new(&Qos::DEFAULT));
        let waiting = std::thread::spawn({
            let queue = Arc::clone(&queue);
            move || queue.pop()
        });
        queue.close();
        assert_eq!(waiting.join().unwrap(), None);
        assert_eq!(queue.push(1), None);
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn keep_all_has_an_end_too() {
        let all = Qos { history: History::KeepAll, ..Qos::DEFAULT };
        assert_eq!(Queue::<()>::new(&all).depth, KEEP_ALL);
        assert_eq!(Queue::<()>::new(&Qos::DEFAULT.keep_last(u64::MAX)).depth, KEEP_ALL);
    }
}
