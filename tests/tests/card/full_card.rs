//! A card that is full is no dead end: what is forgotten makes room for about as much that is new, within
//! seconds and without a restart, however the card was filled and wherever the power is cut meanwhile.
//!
//! Invariant 35 of ARCHITECTURE.md.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use omird::engine::testing::ByHand;
use omird::engine::{Code, CompactionScope, Error, Forgetting, Settings};
use omird_tests::check::{recognise, store};
use omird_tests::cut_disk::{CutDisk, EVERYTHING, ONLY_SYNCED};
use omird_tests::journal::{Journal, change};
use omird_tests::life;
use omird_tests::model::{Answer, Model, Request};
use omird_tests::random::Random;
use omird_tests::session::{Session, TestClock};

const MIB: u64 = 1 << 20;

/// Longest time to make room: long beyond what it takes, as the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(15);

/// As it comes, but nothing is forgotten by itself.
fn settings() -> Settings {
    Settings {
        forgetting: Forgetting { sweep_interval: None, ..Forgetting::default() },
        ..Settings::default()
    }
}

/// A card as file systems divide them.
fn card(capacity: Option<u64>) -> CutDisk {
    let disk = CutDisk::new();
    disk.set_block(4096);
    disk.set_capacity(capacity);
    disk
}

/// The contents after a power cut, on a card of the same size.
fn survivors(disk: &CutDisk, seed: u64, capacity: u64) -> CutDisk {
    let disk = disk.survivors(seed);
    disk.set_block(4096);
    disk.set_capacity(Some(capacity));
    disk
}

/// A card with the same files, whose power is on.
fn copy(disk: &CutDisk, capacity: u64) -> CutDisk {
    survivors(disk, EVERYTHING, capacity)
}

/// A store on a card, and what it acknowledged.
struct Run {
    session: Session,
    model: Model,
    /// Names that are live.
    live: BTreeSet<String>,
    told: usize,
    /// Bytes of a content.
    size: usize,
}

impl Run {
    fn on(disk: &CutDisk, size: usize) -> Self {
        let session = open(disk);
        Self { session, model: Model::default(), live: BTreeSet::new(), told: 0, size }
    }

    fn ask(&mut self, request: &Request) -> Result<(), Error> {
        let answer = change(&self.session, request).and_then(|it| self.session.execute(it));
        if let Err(error) = &answer {
            return Err(error.clone());
        }
        assert_eq!(Answer::of(&answer), self.model.apply(request));
        Ok(())
    }

    /// Something new.
    fn next(&self) -> Request {
        let words = format!("{} ", life::WORDS[self.told % life::WORDS.len()]);
        let words = words.repeat(self.size / words.len());
        Request::Remember(vec![life::record(&format!("memory-{}", self.told), &words, &[], None)])
    }

    fn remember(&mut self) -> Result<(), Error> {
        self.ask(&self.next())?;
        self.live.insert(format!("memory-{}", self.told));
        self.told += 1;
        Ok(())
    }

    /// Remembers until the card is full; returns how many memories that are.
    fn fill(&mut self) -> usize {
        let before = self.told;
        loop {
            match self.remember() {
                Ok(()) => {}
                Err(error) => {
                    assert_eq!(error.code, Code::StorageFull, "{error}");
                    return self.told - before;
                }
            }
        }
    }

    /// Forgets so many of a hundred, here and there; returns how many memories that are.
    fn forget(&mut self, percent: usize, random: &mut Random) -> usize {
        let mut names: Vec<String> = self.live.iter().cloned().collect();
        let count = names.len() * percent / 100;
        for _ in 0..count {
            let name = names.swap_remove(random.below(names.len()));
            let target = life::reference(&format!("MemoryRecord/{name}"));
            self.ask(&Request::Forget(target)).expect("forgetting works on a full card");
            self.live.remove(&name);
        }
        count
    }

    /// Remembers `count` memories, each as soon as there is room for it.
    fn take_back(&mut self, count: usize, context: &str) {
        for taken in 0..count {
            let patience = Instant::now() + PATIENCE;
            while let Err(error) = self.remember() {
                assert_eq!(error.code, Code::StorageFull, "{context}: {error}");
                assert!(Instant::now() < patience, "{context}: only {taken} of {count}: {error}");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    fn check(&self, context: &str) {
        store(&self.session, &self.model).unwrap_or_else(|why| panic!("{context}: {why}"));
    }
}

fn open(disk: &CutDisk) -> Session {
    try_open(disk).expect("it opens")
}

fn try_open(disk: &CutDisk) -> std::io::Result<Session> {
    Session::open_with(Arc::new(disk.clone()), &TestClock::new(), settings(), None)
}

/// Number of memories of so many bytes that must find room instead of those forgotten: the rest is tombstones, what is
/// not worth a rewrite, and the blocks of two more segments.
fn most_of(forgotten: usize, size: usize) -> usize {
    (forgotten * size * 4 / 5).saturating_sub(6 * 4096) / size
}

#[test]
fn what_is_forgotten_on_a_full_card_makes_room_for_as_much() {
    for (capacity, size) in [(MIB, 1000), (4 * MIB, 4000), (16 * MIB, 20_000)] {
        for percent in [10, 40, 80] {
            let context = format!("{} MiB, {percent} %", capacity / MIB);
            let disk = card(Some(capacity));
            let mut run = Run::on(&disk, size);
            let filled = run.fill();
            let payload = filled as u64 * size as u64;
            assert!(payload > capacity * 2 / 5, "{context}: only {payload} bytes fit");
            let forgotten = run.forget(percent, &mut Random::new(capacity + percent as u64));
            run.take_back(most_of(forgotten, size), &context);
            let back = most_of(forgotten, size) + run.fill();
            println!("{context}: {filled} fit, {forgotten} forgotten, {back} fit again");
            run.check(&context);
            drop(run.session);
            run.session = open(&survivors(&disk, ONLY_SYNCED, capacity));
            run.check(&format!("{context}, cut"));
        }
    }
}

#[test]
fn what_someone_asks_to_be_compacted_on_a_full_card_is_compacted() {
    let disk = card(Some(2 * MIB));
    let mut run = Run::on(&disk, 2000);
    run.fill();
    let forgotten = run.forget(20, &mut Random::new(3));
    for scope in [CompactionScope::Due, CompactionScope::Forgotten, CompactionScope::All] {
        run.session.compact(scope).unwrap_or_else(|error| panic!("{scope:?}: {error}"));
    }
    run.take_back(most_of(forgotten, 2000), "compacted");
    run.check("compacted");
}

#[test]
fn on_a_card_that_others_filled_what_is_forgotten_makes_room_as_well() {
    let disk = card(None);
    let mut run = Run::on(&disk, 2000);
    for _ in 0..400 {
        run.remember().expect("there is room");
    }
    // Not a block is left to the store.
    disk.set_capacity(Some(disk.used()));
    let more = run.fill();
    assert!(more < 20, "{more} fit into no room");
    let forgotten = run.forget(40, &mut Random::new(5));
    run.take_back(most_of(forgotten, 2000), "filled by others");
    run.check("filled by others");
}

#[test]
fn a_cut_while_room_is_made_costs_nothing_and_room_is_made_after_it() {
    const CAPACITY: u64 = 768 << 10;
    let disk = card(Some(CAPACITY));
    let mut full = Run::on(&disk, 6000);
    full.fill();
    let Run { session, model, live, told, size } = full;
    drop(session);
    let files = disk.operations();
    let mut cuts = 0;
    for cut in (3..).step_by(7) {
        let context = format!("cut at {cut}");
        let disk = copy(&disk, CAPACITY);
        disk.cut_at(cut);
        let Ok(session) = try_open(&disk) else { continue };
        let mut run = Run { session, model: model.clone(), live: live.clone(), told, size };
        // At most one request is in doubt, the last.
        let mut in_doubt = None;
        let mut random = Random::new(cut);
        for step in 0..60 {
            let name = run.live.iter().nth(random.below(run.live.len())).expect("some are left");
            let name = name.clone();
            let request = match step % 3 {
                2 => run.next(),
                _ => Request::Forget(life::reference(&format!("MemoryRecord/{name}"))),
            };
            match run.ask(&request) {
                Ok(()) if step % 3 == 2 => run.told += 1,
                Ok(()) => drop(run.live.remove(&name)),
                Err(error) if error.code == Code::StorageFull && !disk.is_off() => {}
                Err(error) => {
                    assert!(disk.is_off(), "{context}: {request:?} is refused: {error}");
                    let mut after = run.model.clone();
                    after.apply(&request);
                    in_doubt = Some(after);
                    break;
                }
            }
        }
        let is_last = !disk.is_off();
        cuts += usize::from(!is_last);
        drop(run.session);
        let journal = Journal { acknowledged: run.model, in_doubt };
        let card = survivors(&disk, [ONLY_SYNCED, EVERYTHING, cut][cut as usize % 3], CAPACITY);
        run.session = open(&card);
        run.model =
            recognise(&run.session, &journal).unwrap_or_else(|why| panic!("{context}: {why}"));
        run.check(&context);
        run.live = run.model.live().map(|(target, ..)| target.id.to_string()).collect();
        run.told += 1;
        // It goes on as if nothing had been.
        let forgotten = run.forget(40, &mut random);
        run.take_back(forgotten / 2, &context);
        run.check(&format!("{context}, gone on with"));
        if is_last {
            break;
        }
    }
    assert!(cuts > 20, "only {cuts} cuts of {files} operations");
}
