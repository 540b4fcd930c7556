//! A robot: a computer with a memory card, an engine while the power is on, and a life.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use omir_core::confidence::{FeedbackOutcome, Weight};
use omir_core::event::EventKind;
use omir_core::instant::Timestamp;
use omir_core::reference::{Ref, ResourceType};
use omir_core::value::Value as Status;
use omird::disk::Folder;
use omird::engine::testing::ByHand;
use omird::engine::{
    Change, Effect, Encoding, Engine, Event, Events, Forgetting, Hit, Listening, Parts, Query,
    Settings, Task,
};
use omird::store::{DeviceKey, SledStore};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::board::{Board, DAY, HOUR, MINUTE, SECOND, Start};
use super::card::{Card, Cause};
use super::day::{LESSONS, Moment, What};
use super::house::{House, ROOMS, pose};
use super::ledger::{Ledger, Worth};
use super::probe::{self, Happening, Lesson, Probes};
use super::{Options, upkeep};
use crate::Result;
use crate::check::decode;
use crate::random::Random;

/// Longest time to seal a log, on the machine's own clock.
const PATIENCE: Duration = Duration::from_secs(30);

/// Time after the clock was set until nothing from before is under way; microseconds.
const SETTLING: i64 = 15 * SECOND;

/// Counts so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Starts.
    pub boots: u64,
    /// Starts after a cut.
    pub cuts: u64,
    /// Starts in 1970.
    pub clockless: u64,
    /// Longest start since this was last taken, in milliseconds.
    pub slowest_start: f64,
    /// Bytes of what was remembered, as stored: what belief, anchors and sweeps add is no payload.
    pub payload: u64,
    /// Memories given to the engine.
    pub told: u64,
    /// Questions asked that count as accesses.
    pub recalls: u64,
    /// Resources that were forgotten by a rule of the store, with an event.
    pub faded: u64,
    /// Resources that were forgotten because someone asked.
    pub forgotten: u64,
    /// Work of the upkeep.
    pub upkeep: upkeep::Done,
}

/// The robot.
pub struct Robot {
    /// Its card.
    pub card: Card,
    /// Its computer.
    pub board: Arc<Board>,
    /// The house it lives in.
    pub house: House,
    /// Memories it was told that are kept.
    pub ledger: Ledger,
    /// Counts so far.
    pub counts: Counts,
    data: PathBuf,
    keeps_index: bool,
    settings: Settings,
    engine: Option<Engine>,
    announced: Arc<Mutex<Vec<Event>>>,
    listening: Option<Listening>,
    random: Random,
    lessons: Vec<Lesson>,
    happenings: Vec<Happening>,
    was_cut: bool,
    last_seq: u64,
    sightings: u64,
    accesses_every: i64,
    mark_every: i64,
    next_accesses: i64,
    next_mark: i64,
    next_upkeep: i64,
    /// The time at which the clock will be set, or be found to be right.
    clock_turns: Option<i64>,
    /// The time by which all will have new dates for it.
    settled_by: Option<i64>,
    was_asked: bool,
}

fn micros(interval: Duration) -> i64 {
    i64::try_from(interval.as_micros()).unwrap_or(i64::MAX)
}

/// A fault in what a store holds or answers.
fn wrong<T>(what: impl std::fmt::Display) -> Result<T> {
    Err(what.to_string().into())
}

impl Robot {
    /// A robot that has never been switched on, with its data in `data`.
    pub fn new(data: &Path, options: &Options, dawn: i64) -> Self {
        let mut random = Random::new(options.seed);
        Self {
            card: Card::new(Folder::new(data)),
            board: Arc::new(Board::new(dawn)),
            house: House::new(&mut random),
            ledger: Ledger::default(),
            counts: Counts::default(),
            data: data.to_owned(),
            keeps_index: options.keeps_index,
            engine: None,
            announced: Arc::default(),
            listening: None,
            random,
            lessons: Vec::new(),
            happenings: Vec::new(),
            was_cut: false,
            last_seq: 0,
            sightings: 0,
            accesses_every: micros(options.settings.touch_interval),
            mark_every: micros(options.settings.mark_interval),
            settings: options.settings.clone(),
            next_accesses: 0,
            next_mark: 0,
            next_upkeep: 0,
            clock_turns: None,
            settled_by: None,
            was_asked: false,
        }
    }

    /// Its data folder.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The engine, while the power is on.
    pub fn engine(&self) -> Option<&Engine> {
        self.engine.as_ref()
    }

    /// Randomness for what is planned for this robot.
    pub fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// Starts, and checks that everything acknowledged is there.
    ///
    /// # Errors
    /// A description of what is wrong.
    pub fn start(&mut self, start: Start) -> Result {
        self.board.start(start);
        self.card.power();
        self.card.doing(Cause::Boots);
        let counter = AtomicU64::new(self.counts.boots << 32);
        let (announced, events) = (self.announced.clone(), Events::default());
        self.listening = Some(events.listen(move |event| {
            announced.lock().push(event.clone());
        }));
        let day = Duration::from_secs(86_400);
        let parts = Parts {
            disk: Arc::new(self.card.clone()),
            index: self.keeps_index.then(|| SledStore::boxed(&self.data.join("index"))),
            clock: self.board.clone(),
            key: DeviceKey::from_secret([7; 32]),
            random: Box::new(move || u128::from(counter.fetch_add(1, Ordering::Relaxed))),
            settings: Settings {
                touch_interval: day,
                mark_interval: day,
                forgetting: Forgetting { sweep_interval: None, ..self.settings.forgetting.clone() },
                ..self.settings.clone()
            },
            events: events.clone(),
        };
        let began = Instant::now();
        let engine = Engine::open(parts, &mut |_| {})
            .map_err(|error| format!("the store does not open: {error}"))?;
        let millis = began.elapsed().as_secs_f64() * 1e3;
        self.counts.slowest_start = self.counts.slowest_start.max(millis);
        self.counts.boots += 1;
        self.counts.cuts += u64::from(self.was_cut);
        self.counts.clockless += u64::from(start != Start::WithClock);
        if let Some(damage) = engine.damage().first() {
            return wrong(format!("damage is reported: {damage:?}"));
        }
        self.engine = Some(engine);
        let now = self.board.truth();
        self.next_accesses = now + self.accesses_every;
        self.next_mark = now + self.mark_every;
        self.next_upkeep = now + HOUR;
        self.settled_by = None;
        self.clock_turns = match start {
            Start::WithClock => Some(now + MINUTE),
            Start::SetAfter(micros) => Some(now + micros.max(MINUTE)),
            Start::NeverSet => None,
        };
        self.seal()?;
        self.compare()
    }

    /// Loses the power, or is switched off properly.
    pub fn stop(&mut self, cut: bool) {
        if cut {
            self.card.cut();
        }
        self.card.doing(Cause::Accesses);
        if let Some(engine) = self.engine.take() {
            engine.stop();
        }
        self.was_cut = cut;
        self.hear();
    }

    /// Takes note of what was announced.
    fn hear(&mut self) {
        let events = std::mem::take(&mut *self.announced.lock());
        for Event { kind, target, cause, .. } in events {
            if kind != EventKind::Forgotten {
                continue;
            }
            self.ledger.forget(&target);
            match cause {
                None => self.counts.forgotten += 1,
                Some(_) => self.counts.faded += 1,
            }
        }
    }

    /// Compares how many are there with how many should be.
    fn compare(&self) -> Result {
        let Some(engine) = &self.engine else { return Ok(()) };
        let status = engine.status("robot");
        for of in ResourceType::ALL {
            let path = format!("/counts/types/{of}");
            let found = status.pointer(&path).and_then(Status::as_u64);
            let expected = self.ledger.count(of);
            if found != Some(expected) {
                return wrong(format!("there are {found:?} live {of} instead of {expected}"));
            }
        }
        Ok(())
    }

    /// Checks that exactly what was acknowledged and not announced as forgotten is there, and that
    /// nothing anchored was let go.
    ///
    /// # Errors
    /// A description of the first difference.
    pub fn audit(&mut self) -> Result {
        let mut found = std::collections::HashSet::new();
        if let Some(engine) = &self.engine {
            engine.each(None, |bytes| {
                found.insert(decode(&bytes).reference());
            });
        }
        // Memories that are gone were announced, or are being announced: answers do not wait for events.
        let began = Instant::now();
        while self.ledger.live().any(|(target, _)| !found.contains(target))
            && began.elapsed() < PATIENCE
        {
            std::thread::sleep(Duration::from_millis(1));
            self.hear();
        }
        let Some(engine) = &self.engine else { return Ok(()) };
        for (target, _) in self.ledger.live() {
            if !found.remove(target) {
                return wrong(match engine.get(target) {
                    Ok(None) => format!("{target} was acknowledged and is lost"),
                    Ok(Some(_)) => format!("{target} is there and is not listed"),
                    Err(error) => format!("{target} was acknowledged and cannot be read: {error}"),
                });
            }
        }
        if let Some(target) = found.into_iter().next() {
            return wrong(format!("{target} should not be there"));
        }
        for lesson in self.lessons.iter().filter(|lesson| lesson.worth == Worth::Anchored) {
            let bytes = engine.get(&lesson.target)?;
            let is_anchored = bytes.is_some_and(|bytes| match decode(&bytes) {
                omir_core::model::Resource::MemoryRecord(record) => {
                    record.decay.and_then(|decay| decay.anchored) == Some(true)
                }
                _ => false,
            });
            if !is_anchored {
                return wrong(format!("{} was anchored and is not there so", lesson.target));
            }
        }
        Ok(())
    }

    /// Everything that is there, as it is handed out, in no order.
    pub fn everything(&self) -> std::collections::BTreeSet<Vec<u8>> {
        let mut found = std::collections::BTreeSet::new();
        if let Some(engine) = &self.engine {
            engine.each(None, |bytes| {
                found.insert(bytes);
            });
        }
        found
    }

    /// Lets time pass until `truth`, with everything the engine does by itself.
    ///
    /// # Errors
    /// A description of what is wrong.
    pub fn pass(&mut self, truth: i64) -> Result {
        while self.engine.is_some() {
            let due = self.next_accesses.min(self.next_mark).min(self.next_upkeep);
            let due = self.clock_turns.map_or(due, |at| due.min(at));
            let due = self.settled_by.map_or(due, |at| due.min(at));
            if due > truth {
                break;
            }
            self.board.pass(due);
            if self.clock_turns.take_if(|at| *at == due).is_some() {
                self.run_task(Task::Accesses, Cause::Clock)?;
                self.settled_by = Some(due + SETTLING);
            } else if self.settled_by.take_if(|at| *at == due).is_some() {
                self.wait_redated()?;
            } else if due == self.next_accesses {
                self.next_accesses += self.accesses_every;
                if std::mem::take(&mut self.was_asked) {
                    self.run_task(Task::Accesses, Cause::Accesses)?;
                    self.next_mark = due + self.mark_every;
                }
            } else if due == self.next_mark {
                self.next_mark += self.mark_every;
                self.run_task(Task::Mark, Cause::Marks)?;
            } else {
                self.next_upkeep += HOUR;
                self.seal()?;
                self.keep_up()?;
            }
        }
        self.board.pass(truth);
        Ok(())
    }

    fn run_task(&self, task: Task, cause: Cause) -> Result {
        self.card.doing(cause);
        let Some(engine) = &self.engine else { return Ok(()) };
        Ok(engine.run_task(task)?)
    }

    fn keep_up(&mut self) -> Result {
        let Some(engine) = &self.engine else { return Ok(()) };
        upkeep::run(engine, &self.card, &mut self.counts.upkeep)?;
        Ok(())
    }

    /// Has sealed what is due.
    fn seal(&self) -> Result {
        self.run_task(Task::Seal, Cause::Sealing)
    }

    /// Lives through one moment.
    ///
    /// # Errors
    /// A description of what is wrong.
    pub fn live(&mut self, moment: &Moment) -> Result {
        self.pass(moment.at)?;
        match &moment.what {
            What::Off(cut) => self.stop(*cut),
            What::On(start) => self.start(*start)?,
            What::Stir(thing) => self.house.stir(*thing, &mut self.random),
            What::Rearrange(furniture) => self.house.rearrange(*furniture, &mut self.random),
            _ if self.engine.is_none() => {}
            What::Look(room) => self.look(*room)?,
            What::Happening(thing) => self.happening(*thing)?,
            What::Lesson(number) => self.lesson(*number)?,
            What::Error => self.error()?,
            What::Task => self.task()?,
            What::Where(thing) => self.whereabouts(*thing)?,
            What::About(number) => {
                self.ask(&Query { limit: Some(3), touch: true, ..probe::lesson(*number) })?;
            }
            What::Here(place) => {
                let query = probe::surroundings(*place);
                self.ask(&Query { limit: Some(10), touch: true, ..query })?;
            }
            What::Forget => self.forget()?,
            What::Evening => self.evening()?,
        }
        Ok(())
    }

    /// Lets the people of the house introduce it, on the first day.
    ///
    /// # Errors
    /// A description of what is wrong.
    pub fn introduce(&mut self) -> Result {
        let entities = self.house.entities();
        self.remember(entities, Worth::Other)
    }

    fn execute(&mut self, change: Change) -> Result<Effect> {
        self.card.doing(Cause::Memories);
        let engine = self.engine.as_ref().ok_or("the power is off")?;
        let receipt = engine.execute(change)?;
        // Nothing here is sent twice, so every receipt is of a transaction of its own.
        if receipt.seq <= self.last_seq {
            return wrong(format!("transaction {} after {}", receipt.seq, self.last_seq));
        }
        self.last_seq = receipt.seq;
        Ok(receipt.effect)
    }

    fn remember(&mut self, resources: Value, worth: Worth) -> Result {
        let engine = self.engine.as_ref().ok_or("the power is off")?;
        let payload = resources.to_string();
        let change = engine
            .prepare(payload.as_bytes(), Encoding::Json, None)
            .map_err(|error| format!("{error}: {payload}"))?;
        let Effect::Remembered(stored) = self.execute(change)? else {
            return wrong("what was remembered was answered as something else");
        };
        let now = self.board.truth();
        for stored in stored {
            let engine = self.engine.as_ref().ok_or("the power is off")?;
            let bytes = engine.get(&stored.target)?;
            self.counts.payload += bytes.map_or(0, |bytes| bytes.len() as u64);
            self.counts.told += 1;
            self.ledger.remember(stored.target, now, worth);
        }
        Ok(())
    }

    fn look(&mut self, room: usize) -> Result {
        let (boots, random) = (self.counts.boots, &mut self.random);
        let mut sightings = self.house.look(room, boots, &mut self.sightings, random);
        if sightings.is_empty() {
            return Ok(());
        }
        if self.random.chance(20) {
            // A client that dates by its own clock, right or wrong.
            let now = Timestamp::from_micros(self.now()).to_string();
            for sighting in &mut sightings {
                sighting.record["createdAt"] = json!(now);
                sighting.record["eventTime"] = json!(now);
            }
        }
        let records = sightings.iter().map(|sighting| sighting.record.clone()).collect();
        self.remember(records, Worth::Trivia)?;
        let now = self.board.truth();
        for sighting in sightings {
            self.house.things[sighting.thing].seen = Some((now, sighting.at));
        }
        Ok(())
    }

    /// Waits until what came in before the clock was set is redated.
    fn wait_redated(&self) -> Result {
        self.run_task(Task::Accesses, Cause::Clock)?;
        let began = Instant::now();
        let settling = |engine: &Engine| {
            let status = engine.status("robot");
            status.pointer("/clock/settling").and_then(Status::as_bool) == Some(true)
        };
        while self.engine.as_ref().is_some_and(settling) {
            if began.elapsed() > PATIENCE {
                return wrong("what came in without a clock is still not redated");
            }
            std::thread::sleep(Duration::from_micros(500));
        }
        Ok(())
    }

    /// Reads the computer's clock.
    fn now(&self) -> i64 {
        omird::engine::Clock::now(&*self.board).as_micros()
    }

    fn number(&mut self) -> u64 {
        self.sightings += 1;
        self.sightings
    }

    fn happening(&mut self, thing: usize) -> Result {
        let number = self.number();
        let what = ["fell down", "was broken", "was thrown", "got wet", "was found under dust"];
        let what = *self.random.pick(&what);
        let thing = self.house.things[thing].clone();
        let id = format!("happening-{number:06}");
        let importance = self.random.between(0.6, 0.8);
        self.remember(
            json!({
                "resourceType": "MemoryRecord", "id": id,
                "content": format!("the {} {what}", thing.name),
                "experienceType": "discovery",
                "importance": (importance * 100.0).round() / 100.0,
                "entityRefs": [{"ref": format!("Entity/{}", thing.id)}],
                "extension": [pose(thing.at)],
            }),
            Worth::Happening,
        )?;
        let target = format!("MemoryRecord/{id}").parse().map_err(|_| "an id of ours")?;
        let at = self.board.truth();
        self.happenings.push(Happening { target, place: thing.at, at });
        Ok(())
    }

    fn lesson(&mut self, number: usize) -> Result {
        let worth = [Worth::Anchored, Worth::Used, Worth::ToldOnce][number % 3];
        let id = format!("lesson-{number}");
        self.remember(
            json!({
                "resourceType": "MemoryRecord", "id": id,
                "content": LESSONS[number].1,
                "kind": "learning",
                "importance": 0.85,
                "provenance": {"source": "Ada", "sourceType": "conversation"},
            }),
            worth,
        )?;
        let target: Ref = format!("MemoryRecord/{id}").parse().map_err(|_| "an id of ours")?;
        if worth == Worth::Anchored {
            self.execute(Change::Anchor(target.clone(), true))?;
        }
        self.lessons.push(Lesson { number, target, worth });
        Ok(())
    }

    fn error(&mut self) -> Result {
        let number = self.number();
        let what = [
            "the left wheel slipped on a wet floor",
            "the gripper missed its target",
            "the way was blocked by a person",
            "the laser lost a scan",
        ];
        let record = json!({
            "resourceType": "MemoryRecord", "id": format!("error-{number:06}"),
            "content": *self.random.pick(&what),
            "experienceType": "error", "importance": 0.4,
        });
        self.remember(record, Worth::Other)
    }

    fn task(&mut self) -> Result {
        let number = self.number();
        let thing = self.random.below(self.house.things.len());
        let thing = &self.house.things[thing];
        let until = Timestamp::from_micros(self.board.truth() + DAY).to_string();
        let record = json!({
            "resourceType": "MemoryRecord", "id": format!("task-{number:06}"),
            "content": format!("bring the {} to {} tomorrow", thing.name, "Ada"),
            "experienceType": "intention", "kind": "plan", "importance": 0.6,
            "validUntil": until,
            "entityRefs": [{"ref": format!("Entity/{}", thing.id)}],
        });
        self.remember(record, Worth::Other)
    }

    fn evening(&mut self) -> Result {
        let number = self.number();
        let room = *self.random.pick(&ROOMS);
        let record = json!({
            "resourceType": "Episode", "id": format!("day-{number:06}"),
            "content": format!("a day of rounds that ended in the {room}"),
            "entityRefs": [{"ref": format!("Entity/{}", room.replace(' ', "-"))}],
        });
        self.remember(record, Worth::Other)
    }

    fn ask(&mut self, query: &Query) -> Result<Vec<Hit>> {
        let engine = self.engine.as_ref().ok_or("the power is off")?;
        self.counts.recalls += 1;
        self.was_asked = true;
        Ok(engine.recall(query)?.hits)
    }

    /// Someone asks where a thing is, goes there, and now and then says whether it was there.
    fn whereabouts(&mut self, thing: usize) -> Result {
        let query = Query { touch: true, ..probe::whereabouts(&self.house, thing) };
        let hits = self.ask(&query)?;
        if let Some(best) = hits.first()
            && let Some(place) = probe::place(best)
            && self.random.chance(30)
        {
            let is_there = probe::distance(place, self.house.things[thing].at) <= 1.0;
            let outcome =
                if is_there { FeedbackOutcome::Confirmed } else { FeedbackOutcome::Contradicted };
            let target = decode(&best.resource).reference();
            self.execute(Change::Feedback(target, outcome, Weight::ONE))?;
        }
        Ok(())
    }

    /// Someone wants something forgotten that the robot has seen in their room.
    fn forget(&mut self) -> Result {
        let place = self.house.things[self.random.below(24)].at;
        let query = Query { limit: Some(10), touch: false, ..probe::surroundings(place) };
        let hits = self.ask(&query)?;
        let target = hits.iter().map(|hit| decode(&hit.resource).reference()).find(|target| {
            self.ledger.get(target).is_some_and(|known| known.worth == Worth::Trivia)
        });
        let Some(target) = target else { return Ok(()) };
        self.execute(Change::Forget(vec![target]))?;
        Ok(())
    }

    /// Asks the questions of the week.
    ///
    /// # Errors
    /// If a recall fails.
    pub fn probe(&mut self) -> Result<Option<Probes>> {
        let Some(engine) = &self.engine else { return Ok(None) };
        let now = self.board.truth();
        self.happenings.retain(|happening| happening.at > now - 7 * DAY);
        let Self { house, ledger, lessons, happenings, .. } = self;
        probe::ask(engine, house, ledger, lessons, happenings, now).map(Some)
    }
}

impl Drop for Robot {
    fn drop(&mut self) {
        self.stop(true);
    }
}
