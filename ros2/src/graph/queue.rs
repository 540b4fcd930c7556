//! The queue between Zenoh's threads, which must not be held up, and one of ours.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::qos::{History, Qos};

/// The most that waits under KEEP_ALL, unless there is room for more: rmw promises everything, memory does not.
const KEEP_ALL: usize = 10_000;

/// The most that waits of what publishers had kept: they are asked all at once, and each has a history.
const KEPT: usize = 4096;

/// The most bytes that wait, of new items and of kept ones: depths are of small messages, and there are
/// large ones.
const MOST_BYTES: usize = 64 << 20;

/// Bytes of a queue that its node's room does not count, so that no flood elsewhere leaves it without room.
const FREE: usize = 64 << 10;

/// Largest number of bytes that wait in all queues of a node together, or are worked on.
#[derive(Debug)]
pub(crate) struct Room {
    used: AtomicUsize,
    most: usize,
}

impl Room {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { used: AtomicUsize::new(0), most })
    }

    /// A queue grows or shrinks; whether there is room for it. Beyond its depth it has half of the room, so that no
    /// burst takes from others what their depths promise.
    fn moves(&self, from: usize, to: usize, is_beyond: bool) -> bool {
        let (from, to) = (from.saturating_sub(FREE), to.saturating_sub(FREE));
        let most = if is_beyond { self.most / 2 } else { self.most };
        let moved = |used: usize| {
            let used = used.saturating_sub(from).saturating_add(to);
            (to <= from || used <= most).then_some(used)
        };
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, moved).is_ok()
    }
}

/// The kind of an item, which decides how it counts against the depth of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// New: the depth is for these.
    New,
    /// Published before, and asked for: that much of it comes at once says nothing of how fast we are.
    Kept,
}

/// A queue that keeps the last so many items and counts what it dropped.
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    ready: Condvar,
    depth: usize,
    /// True if more than the depth may wait while there is room.
    grows: bool,
    room: Arc<Room>,
}

struct State<T> {
    items: VecDeque<Item<T>>,
    new: Sum,
    kept: Sum,
    /// Bytes of what was taken out last: it is worked on until the next is asked for.
    in_hand: usize,
    dropped: u64,
    closed: bool,
    /// True if what waits when it is closed is still taken out.
    is_last_taken: bool,
}

struct Item<T> {
    item: T,
    bytes: usize,
    lane: Lane,
}

#[derive(Default)]
struct Sum {
    items: usize,
    bytes: usize,
}

impl<T> State<T> {
    fn sum(&mut self, lane: Lane) -> &mut Sum {
        match lane {
            Lane::New => &mut self.new,
            Lane::Kept => &mut self.kept,
        }
    }

    fn bytes(&self) -> usize {
        self.new.bytes + self.kept.bytes + self.in_hand
    }

    /// Takes the oldest item, or the oldest of that lane, with its bytes.
    fn take(&mut self, lane: Option<Lane>) -> Option<(T, usize)> {
        let is_it = |item: &Item<T>| lane.is_none_or(|lane| item.lane == lane);
        let Item { item, bytes, lane } = self.items.remove(self.items.iter().position(is_it)?)?;
        let sum = self.sum(lane);
        sum.items -= 1;
        sum.bytes -= bytes;
        Some((item, bytes))
    }
}

impl<T> Queue<T> {
    /// Memory of an item beside its bytes: its place, in a list that may be half empty, and what the allocator adds.
    const OVERHEAD: usize = 2 * size_of::<Item<T>>() + 64;

    /// A queue at least as deep as the history of `qos`: what comes faster than it is taken out waits while there is
    /// room for it. For messages that would be lost otherwise; a client that asks something asks again.
    pub(crate) fn growing(qos: &Qos, room: &Arc<Room>) -> Self {
        let mut queue = Self::new(qos, room);
        queue.grows = true;
        queue
    }

    /// A queue as deep as the history of `qos`.
    pub(crate) fn new(qos: &Qos, room: &Arc<Room>) -> Self {
        let depth = match qos.history {
            History::KeepLast => usize::try_from(qos.depth).unwrap_or(KEEP_ALL).clamp(1, KEEP_ALL),
            History::KeepAll => KEEP_ALL,
        };
        let state = State {
            items: VecDeque::new(),
            new: Sum::default(),
            kept: Sum::default(),
            in_hand: 0,
            dropped: 0,
            closed: false,
            is_last_taken: false,
        };
        let (state, ready) = (Mutex::new(state), Condvar::new());
        Self { state, ready, depth, grows: false, room: Arc::clone(room) }
    }

    /// Adds an item of so many bytes. When its lane is full the oldest ones of it make room and come back,
    /// and when the node's room is used up the oldest ones of this queue; in the end the item itself. One
    /// alone may have as many bytes as the room.
    pub(crate) fn push(&self, item: T, bytes: usize, lane: Lane) -> Vec<T> {
        let bytes = bytes.saturating_add(Self::OVERHEAD);
        let mut state = self.lock();
        let mut gone = Vec::new();
        if state.closed {
            return gone;
        }
        let depth = match lane {
            Lane::New => self.depth,
            Lane::Kept => KEPT,
        };
        let before = state.bytes();
        loop {
            let Sum { items, bytes: there } = *state.sum(lane);
            let is_beyond = items >= depth;
            let is_full = (is_beyond && !(self.grows && lane == Lane::New))
                || items > 0 && there.saturating_add(bytes) > MOST_BYTES;
            let after = state.bytes().saturating_add(bytes);
            if !is_full && self.room.moves(before, after, is_beyond) {
                break;
            }
            state.dropped += 1;
            match state.take((is_full || is_beyond).then_some(lane)) {
                Some((oldest, _)) => gone.push(oldest),
                None => {
                    self.room.moves(before, state.bytes(), false);
                    gone.push(item);
                    return gone;
                }
            }
        }
        let sum = state.sum(lane);
        sum.items += 1;
        sum.bytes += bytes;
        state.items.push_back(Item { item, bytes, lane });
        self.ready.notify_one();
        gone
    }

    /// The oldest item; waits for one. `None` once the queue is closed. One thread works on what comes out:
    /// until it asks for the next, the bytes of the last take room.
    pub(crate) fn pop(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            if state.closed && !state.is_last_taken {
                return None;
            }
            let before = state.bytes();
            state.in_hand = 0;
            let next = state.take(None);
            if let Some((_, bytes)) = &next {
                state.in_hand = *bytes;
            }
            self.room.moves(before, state.bytes(), false);
            // The queue gives back the memory that a burst took.
            if state.items.len() < state.items.capacity() / 4 {
                let twice = 2 * state.items.len();
                state.items.shrink_to(twice);
            }
            if let Some((item, _)) = next {
                return Some(item);
            }
            if state.closed {
                return None;
            }
            self.ready.wait(&mut state);
        }
    }

    /// From here on closing it loses nothing: what waits is still taken out.
    pub(crate) fn take_the_last(&self) {
        self.lock().is_last_taken = true;
    }

    /// Returns true if closing it loses nothing.
    pub(crate) fn is_last_taken(&self) -> bool {
        self.lock().is_last_taken
    }

    /// Takes nothing in any more, and lets go of everything in it, unless that is still taken out; then `pop`
    /// returns.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        if !state.is_last_taken {
            self.empty(&mut state);
        }
        self.ready.notify_all();
    }

    fn empty(&self, state: &mut State<T>) {
        self.room.moves(state.bytes(), 0, false);
        state.items = VecDeque::new();
        (state.new, state.kept, state.in_hand) = (Sum::default(), Sum::default(), 0);
    }

    /// Number of items that were dropped because the queue was full.
    pub(crate) fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock()
    }
}

impl<T> Drop for Queue<T> {
    fn drop(&mut self) {
        // No reader takes out what waits any more, but it takes room from others.
        self.empty(&mut self.lock());
    }
}

#[cfg(test)]
mod tests {
    use super::Lane::{Kept, New};
    use super::*;

    fn queue<T>(qos: &Qos) -> Queue<T> {
        Queue::new(qos, &Room::new(4 * MOST_BYTES))
    }

    /// Size of an item's own contents of so many bytes.
    fn taking<T>(bytes: usize) -> usize {
        bytes - Queue::<T>::OVERHEAD
    }

    #[test]
    fn a_full_queue_drops_the_oldest_and_counts_it() {
        let queue = queue(&Qos::DEFAULT.keep_last(2));
        let gone: Vec<_> = (1..5).map(|n| queue.push(n, 1, New)).collect();
        assert_eq!(gone, [vec![], vec![], vec![1], vec![2]]);
        assert_eq!(queue.dropped(), 2);
        assert_eq!((queue.pop(), queue.pop()), (Some(3), Some(4)));
    }

    #[test]
    fn what_was_kept_does_not_count_against_the_depth() {
        let queue = queue(&Qos::DEFAULT.keep_last(2));
        assert!((0..300).all(|n| queue.push(n, 1, Kept).is_empty()));
        assert!((300..302).all(|n| queue.push(n, 1, New).is_empty()));
        assert_eq!(queue.push(302, 1, New), [300], "of the new ones the oldest");
        assert_eq!(queue.dropped(), 1);
        let all: Vec<_> = (0..302).map_while(|_| queue.pop()).collect();
        assert_eq!(all, (0..300).chain([301, 302]).collect::<Vec<_>>());
        let out: usize = (0..2 * KEPT).map(|n| queue.push(n, 1, Kept).len()).sum();
        assert_eq!(out, KEPT, "it has an end too");
    }

    #[test]
    fn a_burst_beyond_the_depth_is_not_lost_while_there_is_room() {
        let room = Room::new(4 << 20);
        let queue = Queue::growing(&Qos::DEFAULT.keep_last(2), &room);
        assert!((0..1000).all(|n| queue.push(n, 1000, New).is_empty()));
        assert_eq!((queue.dropped(), queue.lock().items.len()), (0, 1000));
        assert!((0..1000).all(|n| queue.pop() == Some(n)), "in order");
        assert!(queue.lock().items.capacity() < 16, "what it grew to is given back");
    }

    #[test]
    fn a_burst_beyond_the_room_costs_the_oldest_and_leaves_half_to_others() {
        const EACH: usize = 1000;
        let room = Room::new(1 << 20);
        let new = || Queue::growing(&Qos::DEFAULT.keep_last(2), &room);
        let (burst, other) = (new(), new());
        let gone: usize = (0..5000).map(|n| burst.push(n, EACH, New).len()).sum();
        let fits = (FREE + (1 << 19)) / (EACH + Queue::<i32>::OVERHEAD);
        assert_eq!(burst.lock().items.len(), fits);
        assert_eq!((gone, burst.dropped()), (5000 - fits, (5000 - fits) as u64));
        // Two of the other fill what is left, and more: they have a right to it, and the burst shrinks no further than
        // by what it takes in.
        assert!((0..2).all(|n| other.push(n, taking::<i32>(4 << 16), New).is_empty()));
        assert_eq!(
            other.push(2, taking::<i32>(4 << 16), New),
            [0],
            "beyond its depth there is none left"
        );
        assert_eq!(burst.push(5000, EACH, New).len(), 1);
        assert_eq!(burst.pop(), Some(5001 - fits as i32), "the oldest went");
        drop((burst, other));
        assert_eq!(room.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_was_kept_and_what_is_asked_have_their_bounds_whatever_room_there_is() {
        let queue = Queue::growing(&Qos::DEFAULT, &Room::new(4 * MOST_BYTES));
        let out: usize = (0..2 * KEPT).map(|n| queue.push(n, 1, Kept).len()).sum();
        assert_eq!(out, KEPT);
        let asked = self::queue(&Qos::SERVICES);
        let out: usize = (0..100).map(|n| asked.push(n, 1, New).len()).sum();
        assert_eq!(out as u64, 100 - Qos::SERVICES.depth);
    }

    #[test]
    fn all_queues_of_a_node_share_its_room() {
        let room = Room::new(10 * FREE);
        let new = || Queue::new(&Qos::DEFAULT.keep_last(10), &room);
        let (one, two, three) = (new(), new(), new());
        let free = |times: usize| taking::<i32>(times * FREE);
        assert!((0..5).all(|n| one.push(n, free(2), New).is_empty()));
        assert!(two.push(1, free(2), New).is_empty(), "a part of it is free");
        assert_eq!(two.push(2, free(1) + 1, New), [1], "its own goes first");
        assert_eq!(two.push(3, free(4), New), [2, 3], "then the item itself");
        assert_eq!((one.dropped(), two.dropped()), (0, 3));
        assert!(three.push(1, free(1), New).is_empty(), "small ones always have room");
        assert_eq!([one.pop(), one.pop()], [Some(0), Some(1)]);
        assert!(two.push(4, free(3), New).is_empty());
        drop((one, two, three));
        assert_eq!(room.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn closing_wakes_who_waits_and_keeps_nothing() {
        let queue = Arc::new(queue::<i32>(&Qos::DEFAULT));
        let waiting = std::thread::spawn({
            let queue = Arc::clone(&queue);
            move || queue.pop()
        });
        queue.close();
        assert_eq!(waiting.join().unwrap(), None);
        assert!(queue.push(1, 1, New).is_empty());
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn what_is_worked_on_takes_room() {
        let room = Room::new(3 * MOST_BYTES / 2);
        let new = || Queue::new(&Qos::DEFAULT.keep_last(10), &room);
        let (one, other) = (new(), new());
        assert!(one.push(1, MOST_BYTES, New).is_empty());
        assert_eq!(one.pop(), Some(1));
        assert_eq!(other.push(2, MOST_BYTES, New), [2], "the first is worked on");
        one.close();
        assert_eq!(one.pop(), None);
        drop(one);
        assert!(other.push(3, MOST_BYTES, New).is_empty());
    }

    #[test]
    fn what_waits_may_be_taken_out_of_a_closed_queue() {
        let queue = queue(&Qos::DEFAULT);
        assert!((1..3).all(|n| queue.push(n, 1, New).is_empty()));
        queue.take_the_last();
        queue.close();
        assert!(queue.push(3, 1, New).is_empty());
        assert_eq!([queue.pop(), queue.pop(), queue.pop()], [Some(1), Some(2), None]);
    }

    #[test]
    fn large_items_make_room_for_each_other_and_one_alone_may_be_large() {
        let queue = queue(&Qos::DEFAULT.keep_last(10));
        let third = taking::<i32>(MOST_BYTES / 3);
        assert!((1..4).all(|n| queue.push(n, third, New).is_empty()));
        assert_eq!(queue.push(4, 2 * third, New), vec![1, 2]);
        assert_eq!(queue.push(5, 2 * MOST_BYTES, New), vec![3, 4]);
        assert_eq!((queue.dropped(), queue.pop()), (4, Some(5)));
        assert!(queue.push(6, third, New).is_empty());
    }

    #[test]
    fn keep_all_has_an_end_too() {
        let all = Qos { history: History::KeepAll, ..Qos::DEFAULT };
        assert_eq!(queue::<()>(&all).depth, KEEP_ALL);
        assert_eq!(queue::<()>(&Qos::DEFAULT.keep_last(u64::MAX)).depth, KEEP_ALL);
    }
}
