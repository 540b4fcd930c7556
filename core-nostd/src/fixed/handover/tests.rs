//! A node with flash, a daemon that keeps what it acknowledged, and the simulated line between them: noise, a
//! cable that is pulled, power that goes on either side.
//!
//! Whatever happens, what is marked as handed over is durable over there, what came twice was the same, and in
//! the end all of it is there.

use std::collections::BTreeMap;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::cbor;
use crate::fixed::{Decay, Id, Moment, Record};
use crate::link::message::{
    Answer as Told, Answered, Asked, Failure, Inbox, Info, Push, Pushed, Request,
};
use crate::link::tests::{BYTE_115200, Noise, QUIET, Random, Wire};
use crate::model::Resource;
use crate::value::{Map, Value};
use nor::{Fault, Nor, Torn};

#[path = "../../../tests/flash/nor.rs"]
#[allow(dead_code, reason = "the tests of the ring use the rest")]
mod nor;

type Flash = Nor<4, 1024>;
type Memory = Record<24, 48, 2>;
type Memories = Journal<Flash, 24, 48, 2, 512>;

/// When the simulation begins, for those who know the time: microseconds.
const BEGINNING: i64 = 1_780_141_325_000_000;

fn memory(id: &str, at: Moment) -> Memory {
    let mut record =
        Record::new(Id::try_from(id).unwrap(), Text::try_from("it was so").unwrap(), at);
    record.decay = Some(Decay { access_count: Some(7), ..Decay::default() });
    record
}

/// The other end: answers as `omird` does.
struct Daemon {
    link: Link<32, 256>,
    inbox: Inbox,
    out: Vec<Vec<u8>>,
    sent: usize,
    /// What no cut takes away: by id, as it came.
    durable: BTreeMap<String, Vec<u8>>,
    stored: usize,
    /// Messages that were answered `ok`.
    pushes: usize,
    /// Ids that it does not like.
    refuses: Vec<String>,
    /// Ids that somebody had it forget.
    forgotten: Vec<String>,
    /// How far its clock is behind, microseconds, and what it says of it.
    behind: i64,
    clock: Trust,
    /// Every id that ever came.
    came: Vec<String>,
    write: bool,
    token: Option<String>,
    unlocked: bool,
    /// Answers that are longer than a node looks at.
    talkative: bool,
}

impl Daemon {
    fn new() -> Self {
        Self {
            link: Link::new("daemon"),
            inbox: Inbox::default(),
            out: Vec::new(),
            sent: 0,
            durable: BTreeMap::new(),
            stored: 0,
            pushes: 0,
            refuses: Vec::new(),
            forgotten: Vec::new(),
            behind: 0,
            clock: Trust::Synchronised,
            came: Vec::new(),
            write: true,
            token: None,
            unlocked: false,
            talkative: false,
        }
    }

    fn restart(&mut self) {
        self.link = Link::new("daemon");
        self.forget_session();
    }

    fn forget_session(&mut self) {
        self.inbox.clear();
        self.out.clear();
        (self.sent, self.unlocked) = (0, false);
    }

    fn step(&mut self, bytes: &[u8], now: u64, line: &mut Wire) {
        self.link.receive(bytes, now);
        let mut asked = Vec::new();
        let mut anew = false;
        while let Some(event) = self.link.poll_event() {
            match event {
                Event::Opened => {
                    (anew, asked) = (true, Vec::new());
                    self.inbox.clear();
                }
                Event::Data { bytes, last } => asked.extend(self.inbox.push(bytes, last).unwrap()),
                Event::Closed(_) => {}
            }
        }
        if anew {
            self.out.clear();
            (self.sent, self.unlocked) = (0, false);
        }
        for message in asked {
            let Asked { id, request } = Asked::decode(&message).unwrap();
            assert_eq!(Asked { id, request: request.clone() }.encode(), message, "deterministic");
            let answer = self.answer(request, now);
            self.out.push(Answered { id, answer }.encode());
        }
        while let Some(message) = self.out.first() {
            self.sent += self.link.send(&message[self.sent..], true);
            if self.sent < message.len() {
                break;
            }
            self.out.remove(0);
            self.sent = 0;
        }
        while line.waiting.len() < 16
            && self.link.poll_transmit(now, &mut |byte| line.waiting.push_back(byte))
        {}
    }

    fn answer(&mut self, request: Request, now: u64) -> Told {
        match request {
            Request::Info => {
                let info = Info {
                    robot: if self.talkative { "r".repeat(5_000) } else { "r2".to_owned() },
                    program: "daemon 1".to_owned(),
                    write: self.write || self.unlocked,
                    time: Timestamp::from_micros(BEGINNING + now as i64 - self.behind).to_string(),
                    clock: self.clock.as_str().to_owned(),
                    count: self.durable.len() as u64,
                    deflate: true,
                };
                Told::Ok(info.to_map())
            }
            Request::Unlock(token) if Some(&token) == self.token.as_ref() => {
                self.unlocked = true;
                Told::Ok(Map::new())
            }
            Request::Push(Push { items, restore: false }) if self.write || self.unlocked => {
                self.push(items)
            }
            _ => self.error("UNAUTHORIZED"),
        }
    }

    fn push(&mut self, items: Vec<Value>) -> Told {
        let mut records = Vec::new();
        for item in items {
            let bytes = cbor::to_vec(&item);
            let resource = Resource::from_value(item).unwrap();
            let id = resource.id().as_str().to_owned();
            self.came.push(id.clone());
            if self.refuses.contains(&id) {
                return self.error("INVALID_RESOURCE");
            }
            records.push((id, bytes));
        }
        let mut pushed = Pushed { stored: 0, unchanged: 0 };
        for (id, bytes) in records {
            if self.forgotten.contains(&id) {
                pushed.unchanged += 1;
                continue;
            }
            match self.durable.get(&id) {
                Some(there) => {
                    assert_eq!(*there, bytes, "{id} came twice, and differs");
                    pushed.unchanged += 1;
                }
                None => {
                    self.durable.insert(id, bytes);
                    pushed.stored += 1;
                }
            }
        }
        self.stored += pushed.stored as usize;
        self.pushes += 1;
        Told::Ok(pushed.to_map())
    }

    fn error(&self, code: &str) -> Told {
        let message = if self.talkative { "m".repeat(5_000) } else { "no".to_owned() };
        Told::Error(Failure { code: code.to_owned(), message, path: Some("/items/0".to_owned()) })
    }
}

/// The node, with power.
struct Node {
    journal: Memories,
    link: Link<2, 128>,
    hand_over: HandOver<'static, 512>,
    boot: u32,
    /// When it started, microseconds of the simulation.
    started: u64,
    progress: Progress,
}

impl Node {
    fn start(flash: Flash, now: u64, token: Option<&'static str>) -> Self {
        let mut journal = Memories::mount(flash).unwrap();
        let boot = journal.next_boot().unwrap();
        let hand_over = token.map_or_else(HandOver::new, HandOver::with_token);
        Self {
            journal,
            link: Link::new("node"),
            hand_over,
            boot,
            started: now,
            progress: Progress::Lost,
        }
    }

    fn uptime(&self, now: u64) -> Uptime {
        Uptime { boot: self.boot, micros: now - self.started }
    }

    fn remember(&mut self, number: usize, now: u64) -> Result<Number, JournalError<Fault>> {
        let at = Moment::SinceBoot(self.uptime(now));
        self.journal.remember(&memory(&format!("n-{}-{number}", self.boot), at))
    }

    /// Fails when the power of the flash was cut.
    fn step(
        &mut self,
        bytes: &[u8],
        now: u64,
        session: u32,
        line: &mut Wire,
    ) -> Result<(), JournalError<Fault>> {
        self.link.receive(bytes, now);
        let uptime = self.uptime(now);
        self.progress = self.hand_over.poll(&mut self.link, &mut self.journal, uptime)?;
        if self.progress == Progress::Lost {
            self.link.connect(session, now);
        }
        while line.waiting.len() < 16
            && self.link.poll_transmit(now, &mut |byte| line.waiting.push_back(byte))
        {}
        Ok(())
    }
}

struct World {
    now: u64,
    random: Random,
    node: Node,
    daemon: Daemon,
    to_node: Wire,
    to_daemon: Wire,
    token: Option<&'static str>,
    remembered: usize,
    /// Where every start began, by its number.
    starts: Vec<(u32, u64)>,
}

impl World {
    fn new(seed: u64, pages: usize) -> Self {
        let node = Node::start(Nor::new(pages), 0, None);
        let starts = vec![(node.boot, 0)];
        Self {
            now: 0,
            random: Random(seed),
            node,
            daemon: Daemon::new(),
            to_node: Wire::new(BYTE_115200),
            to_daemon: Wire::new(BYTE_115200),
            token: None,
            remembered: 0,
            starts,
        }
    }

    fn with(mut self, records: usize) -> Self {
        self.remember(records);
        self
    }

    fn remember(&mut self, records: usize) {
        for _ in 0..records {
            self.remembered += 1;
            if self.node.remember(self.remembered, self.now).is_err() {
                self.cut();
            }
        }
    }

    /// The node's power is off for a while.
    fn cut(&mut self) {
        self.now += 1_000_000;
        let flash = std::mem::replace(&mut self.node, Node::start(Nor::new(2), 0, None))
            .journal
            .release()
            .power_on();
        self.node = Node::start(flash, self.now, self.token);
        self.starts.push((self.node.boot, self.now));
        self.to_daemon.waiting.clear();
    }

    fn step(&mut self) {
        self.now += 1_000;
        if self.to_node.waiting.is_empty() && self.to_daemon.waiting.is_empty() {
            let timers = [self.node.link.next_timeout(), self.daemon.link.next_timeout()];
            let next = timers.into_iter().flatten().min().unwrap_or(0);
            self.now = next.clamp(self.now, self.now + 100_000);
        }
        let bytes = self.to_daemon.arrived(self.now, &mut self.random);
        self.daemon.step(&bytes, self.now, &mut self.to_node);
        let bytes = self.to_node.arrived(self.now, &mut self.random);
        let session = self.random.next() as u32;
        match self.node.step(&bytes, self.now, session, &mut self.to_daemon) {
            Ok(()) => {}
            Err(JournalError::Ring(RingError::Flash(Fault::Cut))) => self.cut(),
            Err(error) => panic!("{error}"),
        }
    }

    fn pass(&mut self, milliseconds: u64) {
        let until = self.now + milliseconds * 1_000;
        while self.now < until {
            self.step();
        }
    }

    fn until(&mut self, progress: Progress) {
        let until = self.now + 120_000_000;
        while self.node.progress != progress {
            assert!(self.now < until, "{:?}, {:?}", self.node.progress, self.node.link.counts());
            self.step();
        }
    }

    /// Every record that is in the journal, by its number, as id.
    fn held(&mut self) -> BTreeMap<Number, String> {
        let (mut held, mut last) = (BTreeMap::new(), None);
        loop {
            match self.node.journal.next(last) {
                Ok(None) => return held,
                Ok(Some(kept)) => {
                    last = Some(kept.number);
                    held.insert(kept.number, kept.record.id.as_str().to_owned());
                }
                Err(JournalError::Read { number, .. }) => last = Some(number),
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// What is marked is durable; and, if `all`, the rest is too.
    fn check(&mut self, all: bool) {
        let mark = self.node.journal.handed_over().unwrap();
        for (number, id) in self.held() {
            if all || mark.covers(number) {
                assert!(self.daemon.durable.contains_key(&id), "{id}, mark {mark:?}");
            }
        }
        assert_eq!(self.daemon.stored, self.daemon.durable.len(), "each once");
        if all {
            let last = self.held().keys().last().copied();
            assert!(mark.until() >= last && mark.refused().is_empty(), "all is marked");
        }
    }

    fn noise(&mut self, noise: Noise) {
        (self.to_node.noise, self.to_daemon.noise) = (noise, noise);
    }

    fn up(&mut self, up: bool) {
        (self.to_node.up, self.to_daemon.up) = (up, up);
    }

    /// When a record was, as the daemon has it, microseconds of the simulation.
    fn dated(&self, id: &str) -> i64 {
        let bytes = &self.daemon.durable[id];
        let value = cbor::from_slice(bytes, &crate::decode::Limits::default()).unwrap();
        let Some(Value::Text(at)) = value.as_object().unwrap().get("createdAt").cloned() else {
            panic!("no date")
        };
        Timestamp::parse(&at).unwrap().as_micros() - BEGINNING
    }
}

#[test]
fn everything_is_handed_over_dated_and_marked() {
    let mut world = World::new(1, 6).with(3);
    world.pass(2_000);
    world.cut();
    let second = world.now;
    world.pass(50);
    world.remember(20);
    let remembered = world.now;
    world.until(Progress::Done);
    world.check(true);
    assert_eq!(world.daemon.durable.len(), 23);
    // The first start never learnt the time if its session was cut; this one did.
    assert!((world.dated("n-1-4") - remembered as i64).abs() < 20_000);
    assert!(world.dated("n-0-1") <= second as i64);
    assert_eq!(world.node.hand_over.handed().refused, 0);
    // What comes later is handed over when asked for, and nothing twice.
    let pushes = world.daemon.pushes;
    world.remember(2);
    world.node.hand_over.resume();
    world.node.progress = Progress::Working;
    world.until(Progress::Done);
    world.check(true);
    assert_eq!((world.daemon.pushes, world.daemon.durable.len()), (pushes + 1, 25));
    assert_eq!(world.node.hand_over.handed().unchanged, 0);
}

#[test]
fn what_happened_before_anybody_knew_the_time_has_the_latest_date_there_can_be() {
    let mut world = World::new(1, 6);
    world.up(false);
    world.remember(1);
    world.pass(60_000);
    world.cut();
    world.remember(1);
    world.pass(60_000);
    world.cut();
    let started = world.now;
    world.pass(10_000);
    world.remember(1);
    let third = world.now;
    world.up(true);
    world.until(Progress::Done);
    for id in ["n-0-1", "n-1-2"] {
        assert!((world.dated(id) - started as i64).abs() < 200_000, "{}", world.dated(id));
    }
    assert!((world.dated("n-2-3") - third as i64).abs() < 200_000);
    // The number of a start that told the time is not given away, also if none of its records is left.
    while let Some(kept) = world.node.journal.next(None).unwrap() {
        world.node.journal.forget(kept.number).unwrap();
    }
    world.cut();
    assert_eq!(world.node.boot, 3);
}

#[test]
fn what_is_refused_is_named_and_holds_nothing_else_up() {
    for talkative in [false, true] {
        let mut world = World::new(2, 6).with(20);
        world.daemon.talkative = talkative;
        world.daemon.refuses = vec!["n-0-5".to_owned(), "n-0-11".to_owned()];
        // Too long to be sent, and of another program.
        world.node.journal.ring().append(b"no record", false).unwrap();
        world.remember(4);
        world.until(Progress::Done);
        let handed = world.node.hand_over.handed();
        assert_eq!((handed.stored, handed.refused), (22, 3));
        assert_eq!(world.node.hand_over.refusal(), "INVALID_RESOURCE");
        let mark = world.node.journal.handed_over().unwrap();
        let numbers: Vec<u32> = mark.refused().iter().map(|number| number.get()).collect();
        assert_eq!((numbers, mark.until().map(Number::get)), (vec![5, 11, 21], Some(25)));
        // The daemon has learnt better: now all goes, but what cannot be written, and nothing else again.
        world.daemon.refuses.clear();
        world.daemon.came.clear();
        world.cut();
        world.until(Progress::Done);
        assert_eq!(world.daemon.came, ["n-0-5", "n-0-11"]);
        assert_eq!(world.daemon.durable.len(), 24);
        let mark = world.node.journal.handed_over().unwrap();
        assert_eq!(mark.refused(), &[Number::new(21).unwrap()]);
        assert_eq!(world.node.hand_over.handed().refused, 0, "it was known");
        let steps = world.node.journal.ring().flash_mut(|flash| flash.steps);
        world.cut();
        world.until(Progress::Done);
        let again = world.node.journal.ring().flash_mut(|flash| flash.steps);
        assert!(again - steps < 60, "{} words for another start", again - steps);
    }
}

/// A record is refused in each session, and what was forgotten over there behind it does not go again.
#[test]
fn what_is_refused_brings_nothing_back() {
    let mut world = World::new(7, 6).with(12);
    world.daemon.refuses = vec!["n-0-5".to_owned()];
    world.until(Progress::Done);
    let forgotten = "n-0-9".to_owned();
    assert!(world.daemon.durable.remove(&forgotten).is_some());
    world.daemon.came.clear();
    for turn in 0..3 {
        match turn {
            0 => world.cut(),
            1 => world.daemon.restart(),
            _ => {
                world.up(false);
                world.pass(20_000);
                world.up(true);
            }
        }
        world.node.progress = Progress::Working;
        world.pass(30_000);
        world.until(Progress::Done);
        world.remember(1);
        world.node.hand_over.resume();
        world.node.progress = Progress::Working;
        world.until(Progress::Done);
        assert!(!world.daemon.came.contains(&forgotten), "turn {turn}: {:?}", world.daemon.came);
        assert!(world.daemon.came.iter().filter(|id| **id == "n-0-5").count() > turn);
    }
    assert_eq!(world.daemon.durable.len(), 10 + 3);
}

/// More are refused than are kept in mind, all of them anchored: the oldest are let go, and there is room.
#[test]
fn too_many_that_are_refused_stall_nothing() {
    let mut world = World::new(8, 5);
    let mut kept = 0;
    loop {
        let mut record = memory(&format!("kept-{kept}"), Moment::SinceBoot(world.node.uptime(0)));
        record.decay = Some(Decay { anchored: Some(true), ..Decay::default() });
        match world.node.journal.remember(&record) {
            Ok(_) => kept += 1,
            Err(error) => break assert_eq!(error, JournalError::Ring(RingError::Full)),
        }
    }
    world.daemon.refuses = (0..kept).map(|number| format!("kept-{number}")).collect();
    world.until(Progress::Done);
    let handed = world.node.hand_over.handed();
    assert_eq!((handed.refused, handed.given_up), (kept, kept - 8));
    let mark = world.node.hand_over.reached().clone();
    let newest: Vec<Number> = world.held().into_keys().skip(kept as usize - 8).collect();
    assert_eq!(mark.refused(), newest);
    for left in (0..kept).rev() {
        assert!(world.node.journal.forget_oldest(&mark).unwrap().is_some());
        assert_eq!(world.held().len(), left as usize);
        if left == 8 {
            assert_eq!(world.held().into_keys().collect::<Vec<_>>(), newest, "they go last");
        }
    }
    assert_eq!(world.node.journal.forget_oldest(&mark), Ok(None));
}

/// What was refused gives way to no mark, however full it is.
#[test]
fn what_was_refused_stays_until_it_is_taken() {
    let mut world = World::new(9, 3).with(1);
    world.daemon.refuses = vec!["n-0-1".to_owned()];
    world.until(Progress::Done);
    let first = world.held().into_keys().next().unwrap();
    let mut mark = world.node.journal.handed_over().unwrap();
    assert_eq!(mark.refused(), &[first]);
    for turn in 0..200 {
        mark.pass(Number::new(2 + turn).unwrap());
        world.node.journal.set_handed_over(&mark).unwrap();
    }
    assert!(world.held().contains_key(&first));
    assert_eq!(world.node.journal.handed_over(), Ok(mark));
}

/// Both got power together, and the daemon hears of the time a while later.
#[test]
fn what_a_clock_would_date_that_was_never_set_waits_for_the_time() {
    for clock in [Trust::Unknown, Trust::Coarse] {
        let mut world = World::new(10, 6).with(3);
        world.until(Progress::Done);
        world.cut();
        // Three weeks behind.
        (world.daemon.clock, world.daemon.behind) = (clock, 1_814_400_000_000);
        world.pass(100);
        world.remember(5);
        world.node.hand_over.resume();
        world.node.progress = Progress::Working;
        let remembered = world.now;
        world.pass(40_000);
        assert_eq!((world.daemon.durable.len(), world.node.progress), (3, Progress::Working));
        let start = world.node.journal.starts().unwrap();
        assert_eq!(start.trust(1), Some(clock), "better than nothing, if power goes now");
        (world.daemon.clock, world.daemon.behind) = (Trust::Synchronised, 0);
        world.until(Progress::Done);
        world.check(true);
        let off = world.dated("n-1-4") - remembered as i64;
        assert!(off.abs() < 200_000, "{off}");
        assert_eq!(world.node.journal.starts().unwrap().trust(1), Some(Trust::Synchronised));
        // A worse word later changes nothing.
        (world.daemon.clock, world.daemon.behind) = (clock, 1_814_400_000_000);
        world.daemon.restart();
        world.remember(1);
        let remembered = world.now;
        world.node.progress = Progress::Working;
        world.pass(30_000);
        world.until(Progress::Done);
        assert!((world.dated("n-1-9") - remembered as i64).abs() < 200_000);
    }
}

/// Nobody ever tells the time: after a minute, or what the firmware says, the one there is does.
#[test]
fn a_time_that_can_be_trusted_is_not_waited_for_forever() {
    let mut world = World::new(11, 6).with(2);
    world.daemon.clock = Trust::Coarse;
    // What an earlier start was dated by, another session cannot better.
    world.pass(5_000);
    world.cut();
    world.remember(2);
    world.daemon.refuses = vec!["n-0-1".to_owned(), "n-1-4".to_owned()];
    let begun = world.now;
    world.pass(20_000);
    assert_eq!(world.daemon.durable.keys().collect::<Vec<_>>(), ["n-0-2"], "the first start went");
    world.until(Progress::Done);
    assert!((60_000_000..64_000_000).contains(&(world.now - begun)), "{}", world.now - begun);
    // With the others, and alone; but not each time that the time is asked for.
    let offered = |id: &str| world.daemon.came.iter().filter(|came| *came == id).count();
    assert_eq!(["n-0-1", "n-0-2", "n-1-3", "n-1-4"].map(offered), [2, 1, 2, 2]);
    world.check(false);
    world.daemon.refuses.clear();
    world.daemon.restart();
    world.node.progress = Progress::Working;
    world.pass(30_000);
    world.until(Progress::Done);
    world.check(true);
    world.remember(1);
    world.node.hand_over.resume();
    world.node.progress = Progress::Working;
    let later = world.now;
    world.until(Progress::Done);
    assert!(world.now - later < 2_000_000, "once is enough");

    let mut world = World::new(12, 6).with(2);
    world.daemon.clock = Trust::Unknown;
    world.node.hand_over = HandOver::new().waiting(0);
    world.until(Progress::Done);
    assert!(world.now < 3_000_000, "{}", world.now);
}

/// A node whose clock runs a hundredth too slow: what it remembered lately is dated by what it heard lately.
#[test]
fn a_clock_that_drifts_is_put_right_by_each_session() {
    let mut world = World::new(13, 6).with(1);
    world.until(Progress::Done);
    // Ten days on, by its own counter a hundredth less.
    let days = 864_000_000_000;
    world.up(false);
    world.pass(20_000);
    world.now += days;
    world.node.started += days / 100;
    world.remember(1);
    let remembered = world.now;
    world.up(true);
    world.node.progress = Progress::Working;
    world.pass(30_000);
    world.until(Progress::Done);
    let off = world.dated("n-0-2") - remembered as i64;
    assert!(off.abs() < 2_000_000, "{off}");
    world.check(true);
}

#[test]
fn a_port_that_only_reads_is_said_so_and_opened_with_its_token() {
    let mut world = World::new(3, 4).with(5);
    world.daemon.write = false;
    world.until(Progress::Refused);
    assert_eq!(world.node.hand_over.refusal(), "UNAUTHORIZED");
    assert_eq!(world.node.journal.handed_over(), Ok(Mark::new()));
    // Later it may.
    world.daemon.write = true;
    world.node.hand_over.resume();
    world.until(Progress::Done);
    world.check(true);

    for (token, end) in [("wrong", Progress::Refused), ("right", Progress::Done)] {
        let mut world = World::new(3, 4).with(5);
        (world.daemon.write, world.daemon.token) = (false, Some("right".to_owned()));
        world.token = Some(token);
        world.cut();
        world.until(end);
        assert_eq!(world.daemon.durable.len(), if token == "right" { 5 } else { 0 });
    }
}

/// Nothing can be written where all must be kept, not even the mark; what was handed over makes room then.
#[test]
fn a_full_ring_is_handed_over_and_emptied() {
    let mut world = World::new(4, 2);
    let mut kept = 0;
    loop {
        let mut record = memory(&format!("kept-{kept}"), Moment::SinceBoot(world.node.uptime(0)));
        record.decay = Some(Decay { anchored: Some(true), ..Decay::default() });
        match world.node.journal.remember(&record) {
            Ok(_) => kept += 1,
            Err(error) => break assert_eq!(error, JournalError::Ring(RingError::Full)),
        }
    }
    assert!(kept > 4);
    world.until(Progress::Done);
    assert_eq!(world.daemon.durable.len(), kept);
    let mark = world.node.hand_over.reached().clone();
    assert_eq!(world.held().keys().last().copied(), mark.until());
    let oldest = world.held().into_keys().next();
    assert_eq!(world.node.journal.forget_oldest(&mark), Ok(oldest));
    assert!(world.node.remember(1, world.now).is_ok(), "there is room for one");
    while world.node.journal.forget_oldest(&mark).unwrap().is_some() {}
    let number = world.node.remember(2, world.now).unwrap();
    assert!(Some(number) > mark.until() && world.node.journal.forget_oldest(&mark) == Ok(None));
    assert!(world.held().contains_key(&number), "what is not over there is not forgotten");
}

#[test]
fn a_record_that_is_forgotten_while_it_is_sent_is_not_missed() {
    let mut world = World::new(5, 6).with(30);
    let last = world.held().keys().nth(29).copied().unwrap();
    let sixteenth = world.held().keys().nth(15).copied().unwrap();
    while world.daemon.durable.is_empty() && world.to_daemon.left < 600 {
        world.step();
    }
    world.node.journal.forget(sixteenth).unwrap();
    world.until(Progress::Done);
    assert_eq!(world.node.journal.handed_over().unwrap().until(), Some(last));
    assert!(world.daemon.durable.len() >= 29);
    world.check(true);
}

/// Power goes at every step of the flash that a hand-over takes, and the cable is pulled for good at every byte.
#[test]
fn cut_at_every_step() {
    let whole = {
        let mut world = World::new(6, 3).with(18);
        world.until(Progress::Done);
        world
    };
    let (steps, bytes) = (whole.node.journal.release().steps, whole.to_daemon.left);
    let before = World::new(6, 3).with(18).node.journal.release().steps;
    assert!(steps > before + 8 && bytes > 1_000);
    for torn in Torn::ALL {
        for step in 0..steps - before {
            let mut world = World::new(6, 3).with(18);
            let flash = std::mem::replace(&mut world.node, Node::start(Nor::new(2), 0, None));
            let flash = flash.journal.release().cut_after(step, torn);
            world.node = Node::start(flash, 0, None);
            world.node.boot = 0;
            world.until(Progress::Done);
            assert_eq!(world.starts.len(), 2, "it was cut in step {step}");
            world.check(true);
            assert_eq!(world.daemon.durable.len(), 18);
        }
    }
    for byte in (0..bytes).step_by(11) {
        for which in 0..3 {
            let mut world = World::new(6, 3).with(18);
            while world.to_daemon.left < byte {
                world.step();
            }
            if which != 0 {
                world.daemon.restart();
            }
            if which != 1 {
                world.cut();
            }
            world.check(false);
            world.until(Progress::Done);
            world.check(true);
            assert_eq!(world.daemon.durable.len(), 18);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Noise, cuts of the cable and of power on both sides, and records that come meanwhile: what is marked is
    /// durable at every moment; and when it is quiet, all is.
    #[test]
    fn nothing_is_lost_and_nothing_comes_twice(
        seed: u64,
        pages in 3..8usize,
        records in 0..25usize,
        flip in prop_oneof![Just(0.0), Just(1e-4), Just(1e-3)],
        lose in prop_oneof![Just(0.0), Just(1e-3)],
        repeat in prop_oneof![Just(0.0), Just(1e-3)],
        insert in prop_oneof![Just(0.0), Just(1e-3)],
        troubles in prop::collection::vec((1..3_000u64, 0..6u8), 0..12),
    ) {
        let mut world = World::new(seed, pages).with(records);
        world.noise(Noise { flip, lose, repeat, insert });
        for (wait, trouble) in troubles {
            world.pass(wait);
            match trouble {
                0 => world.cut(),
                1 => world.daemon.restart(),
                2 => {
                    world.up(false);
                    let down = world.random.next() % 20_000;
                    world.pass(down);
                    world.up(true);
                }
                3 => {
                    let flash = std::mem::replace(&mut world.node, Node::start(Nor::new(2), 0, None));
                    let Node { link, hand_over, boot, started, progress, journal } = flash;
                    let torn = Torn::ALL[(world.random.next() % 3) as usize];
                    let flash = journal.release().cut_after(world.random.next() % 60, torn);
                    let journal = Memories::mount(flash).unwrap();
                    world.node = Node { link, hand_over, boot, started, progress, journal };
                }
                _ => {
                    let more = world.random.next() as usize % 6;
                    world.remember(more);
                    world.node.hand_over.resume();
                }
            }
            // Not while the flash is without power.
            if world.node.journal.handed_over().is_ok() {
                world.check(false);
            }
        }
        world.noise(QUIET);
        world.cut();
        world.until(Progress::Done);
        world.check(true);
    }

    #[test]
    fn no_answer_harms(bytes: Vec<u8>, cut: bool) {
        let _ = Answer::read(&bytes, cut);
    }
}

#[test]
fn answers_by_hand() {
    let read = |text: &str| {
        let value = crate::json::from_slice(text.as_bytes(), &crate::decode::Limits::default());
        Answer::read(&cbor::to_vec(&value.unwrap()), false)
    };
    let empty = Answer { id: 3, ..Answer::default() };
    assert_eq!(read(r#"{"id":3,"ok":{}}"#), Some(empty.clone()));
    let pushed = Answer { stored: 5, unchanged: 2, ..empty.clone() };
    assert_eq!(read(r#"{"id":3,"ok":{"stored":5,"unchanged":2,"new":[{}]}}"#), Some(pushed));
    let failed = Answer { error: Some(Text::try_from("BUSY").unwrap()), ..empty };
    assert_eq!(read(r#"{"id":3,"error":{"code":"BUSY","message":"later"}}"#), Some(failed));
    for none in
        ["[]", "{}", r#"{"id":3}"#, r#"{"ok":{}}"#, r#"{"id":-1,"ok":{}}"#, r#"{"id":3,"ok":5}"#]
    {
        assert_eq!(read(none), None, "{none}");
    }
    // The beginning of an answer is one if it was cut, and none if it was not.
    let info = Info {
        robot: "r2".to_owned(),
        program: "p".repeat(400),
        write: false,
        time: "2026-05-30T12:00:00Z".to_owned(),
        clock: "unknown".to_owned(),
        count: 1,
        deflate: true,
    };
    let whole = Answered { id: 9, answer: Told::Ok(info.to_map()) }.encode();
    let front = Answer::read(&whole[..ANSWER], true).unwrap();
    assert_eq!(front.time, Some(Timestamp::parse("2026-05-30T12:00:00Z").unwrap()));
    assert_eq!((front.id, front.may_write), (9, Some(false)));
    assert_eq!(front.clock, Some(Trust::Unknown));
    assert_eq!(Answer::read(&whole[..ANSWER], false), None);
}
