//! The queue between Zenoh's threads, which must not be held up, and one of ours.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::qos::{History, Qos};

/// The most that waits under KEEP_ALL: rmw promises everything, memory does not.
const KEEP_ALL: usize = 10_000;

/// The most bytes that wait: depths are of small messages, and there are large ones.
const MOST_BYTES: usize = 64 << 20;

/// A queue that keeps the last so many items and counts what it dropped.
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    ready: Condvar,
    depth: usize,
}

struct State<T> {
    items: VecDeque<(T, usize)>,
    bytes: usize,
    dropped: u64,
    closed: bool,
    /// Whether what waits when it is closed is still taken out.
    is_last_taken: bool,
}

impl<T> Queue<T> {
    /// A queue as deep as the history of `qos`.
    pub(crate) fn new(qos: &Qos) -> Self {
        let depth = match qos.history {
            History::KeepLast => usize::try_from(qos.depth).unwrap_or(KEEP_ALL).clamp(1, KEEP_ALL),
            History::KeepAll => KEEP_ALL,
        };
        let state = State {
            items: VecDeque::new(),
            bytes: 0,
            dropped: 0,
            closed: false,
            is_last_taken: false,
        };
        Self { state: Mutex::new(state), ready: Condvar::new(), depth }
    }

    /// Adds an item of so many bytes. When the queue is full the oldest ones make room and come back. One
    /// alone may be of any size.
    pub(crate) fn push(&self, item: T, bytes: usize) -> Vec<T> {
        let mut state = self.lock();
        let mut gone = Vec::new();
        if state.closed {
            return gone;
        }
        while state.items.len() >= self.depth || state.bytes.saturating_add(bytes) > MOST_BYTES {
            let Some((oldest, size)) = state.items.pop_front() else { break };
            state.bytes -= size;
            state.dropped += 1;
            gone.push(oldest);
        }
        state.bytes += bytes;
        state.items.push_back((item, bytes));
        self.ready.notify_one();
        gone
    }

    /// The oldest item; waits for one. `None` once the queue is closed.
    pub(crate) fn pop(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            if state.closed && !state.is_last_taken {
                return None;
            }
            if let Some((item, bytes)) = state.items.pop_front() {
                state.bytes -= bytes;
                return Some(item);
            }
            if state.closed {
                return None;
            }
            state = self.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// From here on closing it loses nothing: what waits is still taken out.
    pub(crate) fn take_the_last(&self) {
        self.lock().is_last_taken = true;
    }

    /// Takes nothing in any more, and lets go of everything in it, unless that is still taken out; then `pop`
    /// returns.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        if !state.is_last_taken {
            state.items.clear();
            state.bytes = 0;
        }
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
        let gone: Vec<_> = (1..5).map(|n| queue.push(n, 1)).collect();
        assert_eq!(gone, [vec![], vec![], vec![1], vec![2]]);
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
        assert!(queue.push(1, 1).is_empty());
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn what_waits_may_be_taken_out_of_a_closed_queue() {
        let queue = Queue::new(&Qos::DEFAULT);
        assert!((1..3).all(|n| queue.push(n, 1).is_empty()));
        queue.take_the_last();
        queue.close();
        assert!(queue.push(3, 1).is_empty());
        assert_eq!([queue.pop(), queue.pop(), queue.pop()], [Some(1), Some(2), None]);
    }

    #[test]
    fn large_items_make_room_for_each_other_and_one_alone_may_be_of_any_size() {
        let queue = Queue::new(&Qos::DEFAULT.keep_last(10));
        let third = MOST_BYTES / 3;
        assert!((1..4).all(|n| queue.push(n, third).is_empty()));
        assert_eq!(queue.push(4, 2 * third), vec![1, 2]);
        assert_eq!(queue.push(5, 2 * MOST_BYTES), vec![3, 4]);
        assert_eq!((queue.dropped(), queue.pop()), (4, Some(5)));
        assert!(queue.push(6, third).is_empty());
    }

    #[test]
    fn keep_all_has_an_end_too() {
        let all = Qos { history: History::KeepAll, ..Qos::DEFAULT };
        assert_eq!(Queue::<()>::new(&all).depth, KEEP_ALL);
        assert_eq!(Queue::<()>::new(&Qos::DEFAULT.keep_last(u64::MAX)).depth, KEEP_ALL);
    }
}
