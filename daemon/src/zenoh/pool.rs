//! Threads that read for queries, and hand answers to Zenoh.
//!
//! Handing an answer over waits for the client where its link is full: a stopped one holds the thread until Zenoh
//! closes that link, seconds later. So no thread that others wait for does it. A reader gives up its turn to read
//! while it hands an answer over, and another thread, made when there is none, reads on; what answers elsewhere
//! (Zenoh's own thread, the one that publishes) leaves that to a thread of the pool. There are no more threads than
//! [`MOST_THREADS`]; those that have nothing to do for a while end. Invariant 34 of ARCHITECTURE.md.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

type Job = Box<dyn FnOnce() + Send>;

/// Queries that may wait for their turn; more are `BUSY`.
const WAITING: usize = 256;
/// Probes that may wait beside them.
const PROBES: usize = 8;
/// Queries that may be under way, with those whose answers wait for clients; more are dropped.
const UNDER_WAY: usize = 1024;
/// Threads, with those that wait for clients.
const MOST_THREADS: usize = 128;
/// Bytes of answers that may wait for clients; one that is larger passes alone.
const MOST_BYTES: usize = 64 << 20;
/// Longest time that an answer waits for those before it to make room.
const FOR_ROOM: Duration = Duration::from_secs(10);
/// Longest time that a thread above the number of readers waits for something to do.
const IDLE: Duration = Duration::from_secs(10);
/// Longest time that a client may take for one answer. Zenoh closes its link after five seconds
/// (`transport/link/tx/queue/congestion_control/block/wait_before_close`).
const PATIENCE: Duration = Duration::from_secs(4);

thread_local! {
    /// True if this thread has a turn to read.
    static READS: Cell<bool> = const { Cell::new(false) };
}

pub(super) struct Pool {
    readers: usize,
    state: Mutex<State>,
    work: Condvar,
    room: Condvar,
    under_way: AtomicUsize,
    dropped: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Queries that wait for a turn to read.
    asked: VecDeque<Job>,
    /// Answers that wait for a thread.
    outgoing: VecDeque<Job>,
    /// Turns to read that are taken.
    reading: usize,
    threads: usize,
    idle: usize,
    /// Bytes of answers that are being handed over, or wait for it.
    bytes: usize,
    is_closed: bool,
}

/// Contents of `status`.
pub(super) struct Load {
    /// Queries that are not answered yet.
    pub(super) under_way: usize,
    /// Bytes of answers that wait for clients.
    pub(super) bytes: usize,
    /// Queries of which no answer, or not all, was handed over: too many, or a client that takes nothing.
    pub(super) dropped: u64,
}

/// A query under way.
pub(super) struct UnderWay(Arc<Pool>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Room that an answer takes until it is handed over.
struct Room(Arc<Pool>, usize);

impl Drop for Room {
    fn drop(&mut self) {
        self.0.state().bytes -= self.1;
        self.0.room.notify_all();
    }
}

/// The turn to read of this thread, which is another's until this is dropped.
struct YieldedTurn<'p>(&'p Arc<Pool>);

impl<'p> YieldedTurn<'p> {
    fn of(pool: &'p Arc<Pool>) -> Self {
        READS.set(false);
        let mut state = pool.state();
        state.reading -= 1;
        pool.wake(&mut state);
        Self(pool)
    }
}

impl Drop for YieldedTurn<'_> {
    fn drop(&mut self) {
        self.0.state().reading += 1;
        READS.set(true);
    }
}

/// The pool as its owner holds it: its threads end when this is dropped.
pub(super) struct Running(Arc<Pool>);

impl Running {
    pub(super) fn pool(&self) -> &Arc<Pool> {
        &self.0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.state().is_closed = true;
        self.0.work.notify_all();
    }
}

impl Pool {
    /// Starts threads of which `readers` read at a time.
    pub(super) fn start(readers: usize) -> io::Result<Running> {
        let pool = Arc::new(Self {
            readers: readers.max(1),
            state: Mutex::default(),
            work: Condvar::new(),
            room: Condvar::new(),
            under_way: AtomicUsize::default(),
            dropped: AtomicU64::default(),
        });
        for _ in 0..pool.readers {
            pool.spawn(&mut pool.state())?;
        }
        Ok(Running(pool))
    }

    /// Takes a query on, or not, if too many are under way.
    pub(super) fn admit(self: &Arc<Self>) -> Option<UnderWay> {
        let before = self.under_way.fetch_add(1, Ordering::AcqRel);
        let admitted = UnderWay(self.clone());
        if before < UNDER_WAY {
            return Some(admitted);
        }
        self.note_dropped();
        None
    }

    /// Gives work a turn to read, or gives it back if too much waits.
    pub(super) fn read<T: Send + 'static>(
        self: &Arc<Self>,
        work: T,
        job: impl FnOnce(T) + Send + 'static,
    ) -> Option<T> {
        let mut state = self.state();
        if state.asked.len() >= WAITING {
            return Some(work);
        }
        state.asked.push_back(Box::new(move || job(work)));
        self.wake(&mut state);
        None
    }

    /// Has the next thread that gets a turn to read do something, before the work that waits. No thread does if even
    /// the room that is kept for such is full: then no thread reads.
    pub(super) fn probe(self: &Arc<Self>, job: impl FnOnce() + Send + 'static) {
        let mut state = self.state();
        if state.asked.len() < WAITING + PROBES {
            state.asked.push_front(Box::new(job));
            self.wake(&mut state);
        }
    }

    /// Hands an answer of so many bytes over: here, if this thread has a turn to read and so can give it up, else on
    /// another thread. `answer` is told whether there was room for it.
    pub(super) fn hand_over(
        self: &Arc<Self>,
        bytes: usize,
        answer: impl FnOnce(bool) + Send + 'static,
    ) {
        if READS.get() {
            self.hand_over_here(bytes, answer);
            return;
        }
        let mut state = self.state();
        state.bytes += bytes;
        let room = Room(self.clone(), bytes);
        state.outgoing.push_back(Box::new(move || {
            answer(true);
            drop(room);
        }));
        self.wake(&mut state);
    }

    /// Hands an answer over on this thread; if that has a turn to read, others read meanwhile. Returns whether the
    /// client took it in time.
    pub(super) fn hand_over_here(
        self: &Arc<Self>,
        bytes: usize,
        answer: impl FnOnce(bool),
    ) -> bool {
        let _turn = READS.get().then(|| YieldedTurn::of(self));
        let room = self.take_room(bytes);
        let began = Instant::now();
        answer(room.is_some());
        room.is_some() && began.elapsed() < PATIENCE
    }

    /// Waits for something else than reading; a thread with a turn to read gives it up meanwhile.
    pub(super) fn wait(self: &Arc<Self>, wait: impl FnOnce()) {
        let _turn = READS.get().then(|| YieldedTurn::of(self));
        wait();
    }

    /// Counts a query that is not, or not wholly, answered.
    pub(super) fn note_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns its load.
    pub(super) fn load(&self) -> Load {
        Load {
            under_way: self.under_way.load(Ordering::Acquire),
            bytes: self.state().bytes,
            dropped: self.dropped.load(Ordering::Relaxed),
        }
    }

    fn take_room(self: &Arc<Self>, bytes: usize) -> Option<Room> {
        let is_full = |state: &mut State| state.bytes > 0 && state.bytes + bytes > MOST_BYTES;
        let mut state = self.state();
        if self.room.wait_while_for(&mut state, is_full, FOR_ROOM).timed_out() {
            drop(state);
            self.note_dropped();
            return None;
        }
        state.bytes += bytes;
        Some(Room(self.clone(), bytes))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Sees to it that a thread takes what can be taken.
    fn wake(self: &Arc<Self>, state: &mut MutexGuard<'_, State>) {
        let can_read = !state.asked.is_empty() && state.reading < self.readers;
        if !can_read && state.outgoing.is_empty() {
            return;
        }
        if state.idle > 0 {
            self.work.notify_one();
        } else if state.threads < MOST_THREADS
            && let Err(error) = self.spawn(state)
        {
            tracing::warn!(%error, "no thread more for answers");
        }
    }

    fn spawn(self: &Arc<Self>, state: &mut MutexGuard<'_, State>) -> io::Result<()> {
        let pool = self.clone();
        let name = format!("omird-reader-{}", state.threads);
        std::thread::Builder::new().name(name).spawn(move || pool.run())?;
        state.threads += 1;
        Ok(())
    }

    fn run(self: Arc<Self>) {
        while let Some((job, reads)) = self.next() {
            READS.set(reads);
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(job)).is_err() {
                tracing::error!("answering a query panicked; this is a bug of omird");
            }
            READS.set(false);
            if reads {
                let mut state = self.state();
                state.reading -= 1;
                self.wake(&mut state);
            }
        }
    }

    /// The next job, and whether it has a turn to read; `None` if this thread is to end.
    fn next(self: &Arc<Self>) -> Option<(Job, bool)> {
        let mut state = self.state();
        loop {
            let mut job = state.outgoing.pop_front().map(|job| (job, false));
            if job.is_none() && state.reading < self.readers {
                job = state.asked.pop_front().map(|job| (job, true));
            }
            if let Some((_, reads)) = &job {
                state.reading += usize::from(*reads);
                // A thread takes one job, and wakes another for the rest.
                self.wake(&mut state);
                return job;
            }
            if state.is_closed {
                state.threads -= 1;
                return None;
            }
            state.idle += 1;
            let timeout = self.work.wait_for(&mut state, IDLE);
            state.idle -= 1;
            let is_spare = state.threads > self.readers && state.outgoing.is_empty();
            if timeout.timed_out() && is_spare && state.asked.is_empty() {
                state.threads -= 1;
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

    use super::*;

    const SOON: Duration = Duration::from_secs(60);

    /// A client that takes what it is sent when the test lets it.
    fn client() -> (Sender<()>, Receiver<()>) {
        bounded(0)
    }

    fn wait_for(client: &Receiver<()>) {
        // An error: the test is over.
        let _ = client.recv();
    }

    /// Waits for threads that hand over: a panic takes its time to be told.
    fn until_nothing_waits(pool: &Pool) {
        let began = Instant::now();
        while pool.load().bytes > 0 {
            assert!(began.elapsed() < SOON, "{} bytes wait", pool.load().bytes);
            std::thread::yield_now();
        }
    }

    #[test]
    fn who_waits_for_a_client_lets_others_read() {
        let running = Pool::start(1).unwrap();
        let pool = running.pool();
        let (takes, taken) = client();
        for _ in 0..MOST_THREADS - 1 {
            let (all, taken) = (pool.clone(), taken.clone());
            let job = move |()| {
                all.hand_over_here(1, |_| wait_for(&taken));
            };
            assert!(pool.read((), job).is_none());
            // One after the other, for no more than WAITING may wait for their turn.
            let (tell, told) = bounded(1);
            assert!(pool.read((), move |()| tell.send(()).unwrap()).is_none());
            told.recv_timeout(SOON).expect("another thread reads meanwhile");
        }
        assert_eq!(pool.load().bytes, MOST_THREADS - 1);
        drop(takes);
        until_nothing_waits(pool);
        assert_eq!(pool.load().dropped, 0);
    }

    #[test]
    fn no_more_read_at_a_time_than_may() {
        let running = Pool::start(2).unwrap();
        let (pool, (begun, beginning), (goes_on, go)) = (running.pool(), unbounded(), unbounded());
        for _ in 0..3 {
            let (begun, go): (Sender<()>, Receiver<()>) = (begun.clone(), go.clone());
            let job = move |()| {
                begun.send(()).unwrap();
                go.recv().unwrap();
            };
            assert!(pool.read((), job).is_none());
        }
        for _ in 0..2 {
            beginning.recv_timeout(SOON).unwrap();
        }
        assert!(beginning.recv_timeout(Duration::from_millis(50)).is_err(), "two read");
        goes_on.send(()).unwrap();
        beginning.recv_timeout(SOON).expect("one is done, and the third begins");
        goes_on.send(()).unwrap();
        goes_on.send(()).unwrap();
    }

    #[test]
    fn whoever_does_not_read_waits_for_no_client() {
        let running = Pool::start(1).unwrap();
        let (takes, taken) = client();
        let (tell, told) = bounded(1);
        running.pool().hand_over(1 << 20, move |fits| {
            tell.send(fits).unwrap();
            wait_for(&taken);
        });
        assert!(told.recv_timeout(SOON).unwrap(), "another thread hands it over");
        assert_eq!(running.pool().load().bytes, 1 << 20);
        drop(takes);
    }

    #[test]
    fn a_panic_costs_one_answer_and_no_turn() {
        let running = Pool::start(1).unwrap();
        let pool = running.pool();
        for round in 0..3 {
            let all = pool.clone();
            let job = move |()| {
                all.hand_over_here(9, |_| panic!("round {round}"));
            };
            assert!(pool.read((), job).is_none());
        }
        let (tell, told) = bounded(1);
        assert!(pool.read((), move |()| tell.send(()).unwrap()).is_none());
        told.recv_timeout(SOON).expect("it reads on");
        until_nothing_waits(pool);
    }

    #[test]
    fn more_queries_than_may_be_under_way_are_dropped_and_counted() {
        let running = Pool::start(1).unwrap();
        let pool = running.pool();
        let all: Vec<_> = (0..UNDER_WAY).map(|_| pool.admit().unwrap()).collect();
        assert!(pool.admit().is_none());
        let load = pool.load();
        assert_eq!((load.under_way, load.dropped), (UNDER_WAY, 1));
        drop(all);
        assert!(pool.admit().is_some());
    }
}
