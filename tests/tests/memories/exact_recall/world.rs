//! A store, and all that was ever recorded in it.

use std::sync::Arc;
use std::time::Duration;

use omir_core::reference::{Ref, ResourceType};
use omird::engine::{Clock, Settings};
use omird_tests::cut_disk::CutDisk;
use omird_tests::journal::change;
use omird_tests::life::id;
use omird_tests::model::Request;
use omird_tests::random::Random;
use omird_tests::session::{Session, TestClock, settings};

use crate::exact_recall::seen::{ENTITIES, Seen, Walk, observe};

/// A store and all that was ever recorded in it.
pub struct World {
    pub disk: CutDisk,
    pub clock: Arc<TestClock>,
    pub session: Option<Session>,
    pub seen: Vec<Seen>,
}

pub fn world_settings() -> Settings {
    // Large enough for the spatial index to grow trees, small enough to seal half of it.
    Settings { segment_bytes: 400_000, ..settings() }
}

impl World {
    pub fn open(&mut self) {
        self.session = None;
        let disk = Arc::new(self.disk.clone());
        let opened = Session::open_with(disk, &self.clock, world_settings(), None);
        self.session = Some(opened.expect("it opens"));
    }

    pub fn session(&self) -> &Session {
        self.session.as_ref().expect("it is open")
    }

    pub fn now(&self) -> i64 {
        self.clock.now().as_micros()
    }

    pub fn ask(&self, request: &Request) {
        let change = change(self.session(), request).expect("it is valid");
        self.session().execute(change).expect("the disk is good");
    }

    /// Ends the live version of a name.
    pub fn retire(&mut self, name: &Ref, is_forgotten: bool) {
        let now = self.now();
        let live = self.seen.iter_mut().rev().find(|seen| seen.name == *name);
        if let Some(live) = live.filter(|live| live.retired.is_none()) {
            live.retired = Some(now);
            live.is_forgotten = is_forgotten;
        }
    }

    pub fn remember(&mut self, batch: Vec<Seen>) {
        self.ask(&Request::Remember(batch.iter().map(Seen::resource).collect()));
        for seen in batch {
            self.retire(&seen.name, false);
            self.seen.push(seen);
        }
    }

    pub fn live_one(&self, random: &mut Random) -> Ref {
        loop {
            let seen = random.pick(&self.seen);
            if seen.retired.is_none() && seen.name.id.as_str().starts_with('n') {
                return seen.name.clone();
            }
        }
    }

    pub fn new(seed: u64, count: usize) -> Self {
        let disk = CutDisk::new();
        let mut world = Self { disk, clock: TestClock::new(), session: None, seen: Vec::new() };
        world.open();
        let mut walk = Walk { at: [0.0; 3], random: Random::new(seed) };
        let mut named = Vec::new();
        for name in ENTITIES {
            let mut seen = observe(&mut walk, 0, world.now());
            while seen.name.kind != ResourceType::Entity {
                seen = observe(&mut walk, 0, world.now());
            }
            seen.name.id = id(name);
            named.push(seen);
        }
        world.remember(named);
        let mut number = 0;
        while number < count {
            world.clock.advance(Duration::from_secs(60));
            let mut batch = Vec::new();
            for _ in 0..150 {
                number += 1;
                batch.push(observe(&mut walk, number, world.now()));
            }
            // Some of what was there is seen again, elsewhere.
            if number > 150 {
                for _ in 0..20 {
                    let name = world.live_one(&mut walk.random);
                    let mut again = observe(&mut walk, number, world.now());
                    if again.name.kind == name.kind
                        && batch.iter().all(|other: &Seen| other.name != name)
                    {
                        again.name = name;
                        // A version that says nothing of forgetting inherits what was said; nobody thought of it, so it fades
                        // from its own date.
                        let before = world.seen.iter().rev().find(|seen| seen.name == again.name);
                        if let Some(before) = before.filter(|_| again.half_life.is_none()) {
                            again.half_life = before.half_life;
                            again.is_inherited = true;
                        }
                        batch.push(again);
                    }
                }
            }
            world.remember(batch);
            world.clock.advance(Duration::from_secs(60));
            for _ in 0..5 {
                let name = world.live_one(&mut walk.random);
                world.ask(&Request::Forget(name.clone()));
                world.retire(&name, true);
            }
        }
        world
    }
}
