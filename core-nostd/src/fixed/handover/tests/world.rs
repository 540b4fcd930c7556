//! The node with its flash, the daemon, and the line between them, in a time of their own.

use std::collections::BTreeMap;
use std::vec::Vec;

use super::super::*;
use super::daemon::Daemon;
use super::nor::{Fault, Nor};
use super::{BEGINNING, Flash, Memories, memory};
use crate::cbor;
use crate::fixed::{JournalError, Moment};
use crate::instant::Timestamp;
use crate::link::tests::{BYTE_115200, Noise, Random, Wire};
use crate::value::Value;

/// The node, with power.
pub(super) struct Node {
    pub(super) journal: Memories,
    pub(super) link: Link<2, 128>,
    pub(super) hand_over: HandOver<'static, 512>,
    pub(super) boot: u32,
    /// Its start, microseconds of the simulation.
    pub(super) started: u64,
    pub(super) progress: Progress,
    /// No session begins before this.
    pub(super) rests_until: u64,
}

impl Node {
    pub(super) fn start(flash: Flash, now: u64, token: Option<&'static str>) -> Self {
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
            rests_until: 0,
        }
    }

    pub(super) fn uptime(&self, now: u64) -> Uptime {
        Uptime { boot: self.boot, micros: now - self.started }
    }

    pub(super) fn remember(
        &mut self,
        number: usize,
        now: u64,
    ) -> Result<Number, JournalError<Fault>> {
        let at = Moment::SinceBoot(self.uptime(now));
        self.journal.remember(&memory(&format!("n-{}-{number}", self.boot), at))
    }

    /// Fails when the power of the flash was cut.
    pub(super) fn step(
        &mut self,
        bytes: &[u8],
        now: u64,
        session: u32,
        line: &mut Wire,
    ) -> Result<(), JournalError<Fault>> {
        self.link.receive(bytes, now);
        let uptime = self.uptime(now);
        if now >= self.rests_until {
            self.progress = self.hand_over.poll(&mut self.link, &mut self.journal, uptime)?;
            match self.progress {
                Progress::Lost => self.link.connect(session, now),
                Progress::Ended(_) => self.rests_until = now + 60_000_000,
                _ => {}
            }
        }
        while line.waiting.len() < 16
            && self.link.poll_transmit(now, &mut |byte| line.waiting.push_back(byte))
        {}
        Ok(())
    }
}

pub(super) struct World {
    pub(super) now: u64,
    pub(super) random: Random,
    pub(super) node: Node,
    pub(super) daemon: Daemon,
    pub(super) to_node: Wire,
    pub(super) to_daemon: Wire,
    pub(super) token: Option<&'static str>,
    pub(super) remembered: usize,
    /// The beginning of each start, by its number.
    pub(super) starts: Vec<(u32, u64)>,
}

impl World {
    pub(super) fn new(seed: u64, pages: usize) -> Self {
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

    pub(super) fn with(mut self, records: usize) -> Self {
        self.remember(records);
        self
    }

    pub(super) fn remember(&mut self, records: usize) {
        for _ in 0..records {
            self.remembered += 1;
            if self.node.remember(self.remembered, self.now).is_err() {
                self.cut();
            }
        }
    }

    /// The node's power is off for a while.
    pub(super) fn cut(&mut self) {
        self.now += 1_000_000;
        let flash = std::mem::replace(&mut self.node, Node::start(Nor::new(2), 0, None))
            .journal
            .release()
            .power_on();
        self.node = Node::start(flash, self.now, self.token);
        self.starts.push((self.node.boot, self.now));
        self.to_daemon.waiting.clear();
    }

    pub(super) fn step(&mut self) {
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

    pub(super) fn pass(&mut self, milliseconds: u64) {
        let until = self.now + milliseconds * 1_000;
        while self.now < until {
            self.step();
        }
    }

    pub(super) fn until(&mut self, progress: Progress) {
        let until = self.now + 120_000_000;
        while self.node.progress != progress {
            assert!(self.now < until, "{:?}, {:?}", self.node.progress, self.node.link.counts());
            self.step();
        }
    }

    /// Every record that is in the journal, by its number, as id.
    pub(super) fn held(&mut self) -> BTreeMap<Number, String> {
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

    /// Checks that marked records are durable; and, if `all`, the rest is too.
    pub(super) fn check(&mut self, all: bool) {
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

    pub(super) fn noise(&mut self, noise: Noise) {
        (self.to_node.noise, self.to_daemon.noise) = (noise, noise);
    }

    pub(super) fn up(&mut self, up: bool) {
        (self.to_node.up, self.to_daemon.up) = (up, up);
    }

    /// Returns the date of a record as the daemon has it, microseconds of the simulation.
    pub(super) fn dated(&self, id: &str) -> i64 {
        let bytes = &self.daemon.durable[id];
        let value = cbor::from_slice(bytes, &crate::decode::Limits::default()).unwrap();
        let Some(Value::Text(at)) = value.as_object().unwrap().get("createdAt").cloned() else {
            panic!("no date")
        };
        Timestamp::parse(&at).unwrap().as_micros() - BEGINNING
    }
}
