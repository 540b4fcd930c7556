//! Bounds on the work of HTTP and MCP that reads memories, decodes much or waits for the disk, off the threads that move bytes:
//! so much at a time, so much that waits, and no more bytes of bodies and answers than a small machine has room for.
//!
//! Work that waits for the disk has turns of its own: a card that hangs must not hold up readers.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::engine::{Code, Error};

/// Requests that may wait for their turn.
const WAITING: usize = 256;
/// Requests that wait for the disk at a time: calls of tools that may, and changes of tokens.
const AT_THE_DISK: usize = 8;
/// Requests that look into the index for a moment at a time, before they write.
const LOOKS: usize = 4;
/// Bytes of large bodies that are read or worked on; a larger one is read alone.
const BODIES: usize = 64 << 20;
/// Bytes of small ones: a client that sends a large one slowly does not hold up clients with small requests.
const SMALL_BODIES: usize = 16 << 20;
/// Bytes that a body takes room for when its first byte comes; then twice as many ...
const STEP: usize = 4 << 10;
/// ... until it takes so many more at a time.
const LONGEST_STEP: usize = 4 << 20;
/// Bytes of answers that clients have not taken; a larger one waits alone.
const ANSWERS: usize = 64 << 20;
/// Bytes of a body or of an answer up to which it counts as small ...
const SMALL: usize = 64 << 10;
/// ... and of small answers that clients have not taken: a client that does not take a large one does not hold up
/// clients with small requests.
const SMALL_ANSWERS: usize = 16 << 20;
/// Answers that may wait for room: each is in memory already.
const WAITING_FOR_ROOM: usize = 4;
/// Longest wait of an answer for room.
const FOR_ROOM: Duration = Duration::from_secs(10);
/// Documents that are streamed at a time: each keeps a few dozen bytes for each resource.
const DOCUMENTS: usize = 8;
/// The unit that bytes are counted in.
const KIB: usize = 1 << 10;

/// The bounds of all requests together. Cloning gives another handle on the same.
#[derive(Clone)]
pub(crate) struct Capacity {
    waiting: Arc<Semaphore>,
    turns: Arc<Semaphore>,
    disk: Arc<Semaphore>,
    looks: Arc<Semaphore>,
    bodies: Arc<Semaphore>,
    small_bodies: Arc<Semaphore>,
    answers: Arc<Semaphore>,
    small_answers: Arc<Semaphore>,
    for_room: Arc<Semaphore>,
    documents: Arc<Semaphore>,
}

/// A slot among the requests that wait.
pub(crate) struct Slot {
    _waiting: OwnedSemaphorePermit,
    turns: Arc<Semaphore>,
}

/// Room, until it is dropped. What has no byte takes none.
pub(crate) struct Room(
    #[expect(dead_code, reason = "held until it is dropped")] Option<OwnedSemaphorePermit>,
);

/// Room of a body that comes in. It grows with what has come, so that a client that sends nothing holds nothing.
pub(crate) struct BodyRoom {
    bodies: Arc<Semaphore>,
    small_bodies: Arc<Semaphore>,
    /// Bytes that may come at all.
    most: usize,
    /// True where more than a small body was announced.
    is_large: bool,
    /// Bytes that there is room for.
    bytes: usize,
    held: Option<OwnedSemaphorePermit>,
}

impl Capacity {
    /// Returns bounds of so many that read at a time.
    pub(crate) fn new(readers: usize) -> Self {
        let of = |permits| Arc::new(Semaphore::new(permits));
        Self {
            waiting: of(WAITING),
            turns: of(readers),
            disk: of(AT_THE_DISK),
            looks: of(LOOKS),
            bodies: of(BODIES / KIB),
            small_bodies: of(SMALL_BODIES / KIB),
            answers: of(ANSWERS / KIB),
            small_answers: of(SMALL_ANSWERS / KIB),
            for_room: of(WAITING_FOR_ROOM),
            documents: of(DOCUMENTS),
        }
    }

    /// Takes a slot among the requests that wait.
    ///
    /// # Errors
    /// `BUSY` if too many do.
    pub(crate) fn slot(&self) -> Result<Slot, Error> {
        self.slot_for(&self.turns)
    }

    /// As [`Capacity::slot`], of a request that may wait for the disk.
    ///
    /// # Errors
    /// `BUSY` if too many wait.
    pub(crate) fn slot_at_the_disk(&self) -> Result<Slot, Error> {
        self.slot_for(&self.disk)
    }

    fn slot_for(&self, turns: &Arc<Semaphore>) -> Result<Slot, Error> {
        let waiting = self.waiting.clone().try_acquire_owned();
        let waiting =
            waiting.map_err(|_| busy("too many requests are waiting; try again in a moment"))?;
        Ok(Slot { _waiting: waiting, turns: turns.clone() })
    }

    /// Returns the room of a body that is about to come: none yet. `stated` is its length, if that is known; `most` is what may
    /// come at all.
    pub(crate) fn room_for_body(&self, stated: Option<usize>, most: usize) -> BodyRoom {
        BodyRoom {
            bodies: self.bodies.clone(),
            small_bodies: self.small_bodies.clone(),
            most: stated.unwrap_or(most),
            is_large: stated.is_some_and(|bytes| bytes > SMALL),
            bytes: 0,
            held: None,
        }
    }

    /// Takes room for an answer of so many bytes, which is made. A few wait for it.
    ///
    /// # Errors
    /// `BUSY` if other clients do not take theirs.
    pub(crate) async fn room_for_answer(&self, bytes: usize) -> Result<Room, Error> {
        let answers = if bytes <= SMALL { &self.small_answers } else { &self.answers };
        let permits = permits(bytes, ANSWERS);
        if let Ok(room) = answers.clone().try_acquire_many_owned(permits) {
            return Ok(Room(Some(room)));
        }
        if let Ok(_waiting) = self.for_room.clone().try_acquire_owned() {
            let room = answers.clone().acquire_many_owned(permits);
            if let Ok(Ok(room)) = tokio::time::timeout(FOR_ROOM, room).await {
                return Ok(Room(Some(room)));
            }
        }
        Err(busy("too many answers wait for clients that do not take them; try again in a moment"))
    }

    /// Takes a place among the documents that are streamed.
    ///
    /// # Errors
    /// `BUSY` if too many are.
    pub(crate) fn document(&self) -> Result<Room, Error> {
        let room = self.documents.clone().try_acquire_owned();
        let room = room.map(|room| Room(Some(room)));
        room.map_err(|_| busy("too many exports are under way; try again in a moment"))
    }

    /// Goes on with something that has begun: waits for its turn, however many others wait.
    ///
    /// # Errors
    /// `INTERNAL` if it panics.
    pub(crate) async fn go_on<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        in_turn(&self.turns, work).await
    }

    /// Looks into the index for a moment, on a thread that may wait for its lock. Long readings have other turns, so that a write
    /// that looks first does not stand behind them.
    ///
    /// # Errors
    /// `INTERNAL` if it panics.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        in_turn(&self.looks, work).await
    }
}

impl BodyRoom {
    /// Makes it large enough for so many bytes, and returns the number of bytes that there is room for.
    ///
    /// # Errors
    /// `BUSY` if other bodies have the room.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<usize, Error> {
        if bytes <= self.bytes {
            return Ok(self.bytes);
        }
        // Ahead of what comes, so that a body is not moved for each of its parts.
        let ahead = self.bytes + self.bytes.clamp(STEP, LONGEST_STEP);
        let wanted = bytes.max(ahead.min(self.most));
        let was_large = self.is_large || self.bytes > SMALL;
        let is_large = self.is_large || bytes > SMALL;
        let (pool, size, wanted) = match is_large {
            true => (&self.bodies, BODIES, wanted),
            false => (&self.small_bodies, SMALL_BODIES, wanted.min(SMALL)),
        };
        let have = match was_large == is_large {
            true => permits(self.bytes, size),
            // It has outgrown the room of small ones, and gives that back.
            false => 0,
        };
        let more = permits(wanted, size).saturating_sub(have);
        let more = pool.clone().try_acquire_many_owned(more);
        let more =
            more.map_err(|_| busy("too many large requests come in; try again in a moment"))?;
        match &mut self.held {
            Some(held) if was_large == is_large => held.merge(more),
            held => *held = Some(more),
        }
        self.bytes = wanted;
        Ok(wanted)
    }

    /// Returns the room of the whole body.
    pub(crate) fn whole(self) -> Room {
        Room(self.held)
    }
}

impl Slot {
    /// Works in its turn, on a thread that may wait.
    ///
    /// # Errors
    /// `INTERNAL` if it panics.
    pub(crate) async fn work<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        in_turn(&self.turns, work).await
    }
}

async fn in_turn<T: Send + 'static>(
    turns: &Arc<Semaphore>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    let turn = turns.clone().acquire_owned().await.map_err(|_| broken())?;
    let worked = tokio::task::spawn_blocking(move || {
        // Held until the work is done, even if no client waits for it any more.
        let _turn = turn;
        work()
    });
    worked.await.map_err(|_| broken())
}

fn permits(bytes: usize, most: usize) -> u32 {
    u32::try_from(bytes.min(most).div_ceil(KIB)).unwrap_or(u32::MAX)
}

fn busy(message: &str) -> Error {
    Error::new(Code::Busy, message)
}

/// The error of work that panicked.
pub(crate) fn broken() -> Error {
    Error::new(
        Code::Internal,
        "answering this request failed; this is a bug of omird, and its log says more",
    )
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn what_waits_for_the_disk_holds_up_no_reader_and_is_bounded() {
        let capacity = Capacity::new(1);
        let (open, shut) = mpsc::channel::<()>();
        let shut = Arc::new(std::sync::Mutex::new(shut));
        let mut all = Vec::new();
        // Each of them has a turn, or waits for one.
        for _ in 0..WAITING {
            let (slot, shut) = (capacity.slot_at_the_disk().unwrap(), shut.clone());
            all.push(tokio::spawn(slot.work(move || shut.lock().unwrap().recv().is_ok())));
        }
        assert!(matches!(capacity.slot(), Err(error) if error.code == Code::Busy));
        open.send(()).unwrap();
        let slot = loop {
            match capacity.slot() {
                Ok(slot) => break slot,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        assert_eq!(slot.work(|| 7).await, Ok(7), "nobody else reads");
        for _ in 1..WAITING {
            open.send(()).unwrap();
        }
        for one in all {
            assert_eq!(one.await.unwrap(), Ok(true));
        }
    }

    #[tokio::test]
    async fn who_takes_no_large_answer_holds_up_no_small_one() {
        let capacity = Capacity::new(1);
        let large = capacity.room_for_answer(ANSWERS).await.unwrap();
        let waiting: Vec<_> = (0..WAITING_FOR_ROOM)
            .map(|_| {
                let capacity = capacity.clone();
                tokio::spawn(async move { capacity.room_for_answer(SMALL + 1).await.is_ok() })
            })
            .collect();
        tokio::task::yield_now().await;
        let began = std::time::Instant::now();
        let refused = capacity.room_for_answer(SMALL + 1).await;
        assert!(matches!(refused, Err(error) if error.code == Code::Busy));
        capacity.room_for_answer(SMALL).await.unwrap();
        assert!(began.elapsed() < FOR_ROOM / 2, "nobody waits");
        drop(large);
        for one in waiting {
            assert!(one.await.unwrap());
        }
        capacity.room_for_answer(2 * ANSWERS).await.unwrap();
    }

    #[test]
    fn a_body_takes_room_as_it_comes_and_all_of_them_no_more_than_there_is() {
        let capacity = Capacity::new(1);
        let left =
            || (capacity.bodies.available_permits(), capacity.small_bodies.available_permits());
        let all = left();
        let mut one = capacity.room_for_body(Some(32 << 20), 32 << 20);
        assert_eq!(left(), all, "nothing has come");
        for (came, has) in [(1, STEP), (STEP, STEP), (STEP + 1, 2 * STEP), (1 << 20, 1 << 20)] {
            assert_eq!(one.grow(came), Ok(has));
            assert_eq!(left(), (all.0 - has / KIB, all.1));
        }
        assert_eq!(one.grow((32 << 20) - 1), Ok((32 << 20) - 1));
        assert_eq!(one.grow(32 << 20), Ok(32 << 20), "no more than was announced");
        assert_eq!(left(), (all.0 - (32 << 10), all.1));
        let mut next = capacity.room_for_body(None, 32 << 20);
        assert_eq!(next.grow(32 << 20), Ok(32 << 20), "two of the largest imports fit");
        let mut third = capacity.room_for_body(None, 32 << 20);
        third.grow(SMALL).unwrap();
        assert!(matches!(third.grow(SMALL + 1), Err(error) if error.code == Code::Busy));
        drop(third.whole());
        drop(next.whole());
        drop(one.whole());
        assert_eq!(left(), all);
        // More than there is at all comes alone.
        let mut huge = capacity.room_for_body(Some(3 * BODIES), 3 * BODIES);
        huge.grow(2 * BODIES).unwrap();
        huge.grow(3 * BODIES).unwrap();
        assert_eq!(left(), (0, all.1));
        // Small ones come meanwhile, and what turns out to be large does not.
        let mut small = capacity.room_for_body(Some(SMALL), 32 << 20);
        let mut unknown = capacity.room_for_body(None, 32 << 20);
        assert_eq!(small.grow(SMALL), Ok(SMALL));
        assert_eq!(unknown.grow(SMALL), Ok(SMALL));
        assert_eq!(left(), (0, all.1 - 2 * SMALL / KIB));
        assert!(unknown.grow(SMALL + 1).is_err());
        drop(huge);
        unknown.grow(SMALL + 1).unwrap();
        assert_eq!(left().1, all.1 - SMALL / KIB, "it is a large one now");
    }

    #[tokio::test]
    async fn a_panic_ends_one_request() {
        let capacity = Capacity::new(1);
        let ended = capacity.slot().unwrap().work(|| panic!("as a bug would")).await;
        assert_eq!(ended, Err::<(), _>(broken()));
        assert_eq!(capacity.slot().unwrap().work(|| 7).await, Ok(7));
    }
}
