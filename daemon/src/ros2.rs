//! The daemon in the ROS 2 graph: an adapter beside [`crate::service`], over the same session.
//!
//! What a node does stands in `omir-ros2`, which knows no engine; here its operations are handed to ours.

use std::io::Read;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use nalgebra::Isometry3;
use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::instant::Timestamp;
use omir_core::reference::Ref;
use omir_core::value::{Map, Value};
use omir_ros2::memory::{Memory, Refusal, Stored};
use omir_ros2::participant::{Clock, Frames as Transforms, Notice, OpenError, Participant};
use omir_ros2::records::{LEFT_OUT, Operation as Service};
use omir_ros2::rules::Ros2;
use omir_ros2::stamp::Stamp;

use crate::clock::SimulatedClock;
use crate::engine::command::Event;
use crate::engine::events::Listening;
use crate::engine::merge::Precedence;
use crate::engine::operation::{Asked, Operation, Payload};
use crate::engine::rebase;
use crate::engine::request::{Encoding, reference};
use crate::engine::{Engine, Found};
use crate::error::{Code, Error};
use crate::recall::frames::Frames;

/// Read from a file at once.
const PIECE: usize = 1 << 20;

/// A running node. Dropping it leaves the graph and stores what it had kept.
pub struct Node {
    participant: Arc<Slot<Participant>>,
    _listening: Listening,
}

/// Something that others look at and one takes away: whoever takes it waits for those who look, and so it ends where
/// it was taken, and never with one who only looked.
struct Slot<T>(RwLock<Option<T>>);

impl<T> Slot<T> {
    fn look<R>(&self, at: impl FnOnce(&T) -> R) -> Option<R> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(at)
    }

    fn take(&self) -> Option<T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Node {
    /// Joins the graph over `session` with `engine` as the memory.
    ///
    /// # Errors
    /// What stands in the way: names, definitions of messages, or the network.
    pub fn start(
        engine: &Engine,
        session: &zenoh::Session,
        config: &Ros2,
        simulated: Option<Arc<SimulatedClock>>,
    ) -> Result<Self, OpenError> {
        let clock: Clock = {
            let engine = engine.clone();
            Arc::new(move || Stamp::from_timestamp(engine.now().0).unwrap_or(Stamp::ZERO))
        };
        let memory = Arc::new(EngineMemory { engine: engine.clone(), simulated });
        let participant = Participant::open(session, config, memory, clock.clone())?;
        let (announcer, surveyor) = (participant.announcer(), participant.surveyor());
        let listening = engine.events().listen(move |event| {
            if event.cause.as_ref().is_some_and(|cause| cause.name == rebase::CAUSE) {
                surveyor.map_moved(&event.target, || decoded(&event.resource).ok());
            }
            announcer.announce(|| notice(event));
        });
        engine.follow_frames(Arc::new(Followed { frames: participant.frames(), clock }));
        let slot = Arc::new(Slot(RwLock::new(Some(participant))));
        let shown = slot.clone();
        engine.tell_of("ros2", Box::new(move || shown.look(Participant::status)));
        Ok(Self { participant: slot, _listening: listening })
    }

    /// Leaves the graph.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // What it had kept is stored.
        drop(self.participant.take());
    }
}

/// Transforms, as recalls ask for them.
struct Followed {
    frames: Arc<Transforms>,
    clock: Clock,
}

impl Frames for Followed {
    fn fixed(&self, frame: &str) -> Result<Option<(String, Isometry3<f64>)>, String> {
        self.frames.fixed(frame, (self.clock)())
    }
}

fn notice(event: &Event) -> Option<Notice> {
    let target = event.target.to_string();
    let carried = decoded(&event.payload()).ok()?;
    let cause = event.cause.as_ref().map(crate::engine::command::Cause::to_value);
    Some(Notice { kind: event.kind.as_str().to_owned(), reference: target, carried, cause })
}

/// What the daemon stored itself.
fn decoded(bytes: &[u8]) -> Result<Value, Error> {
    let limits = Limits { max_bytes: bytes.len(), ..Limits::default() };
    cbor::from_slice(bytes, &limits).map_err(|error| {
        Error::new(Code::Internal, format!("a stored resource cannot be read: {error}"))
    })
}

fn unreadable(file: &Path, error: &std::io::Error) -> Error {
    // The user sees the file there; the service does not.
    let hidden = ["/home", "/root", "/run/user", "/tmp", "/var/tmp"];
    let hint = if hidden.iter().any(|folder| file.starts_with(folder)) {
        ". A service of systemd may not see this folder (ProtectHome, PrivateTmp): put the file where everybody \
         may read it, as in /srv, or call `omir import`, which reads it itself"
    } else if error.kind() == std::io::ErrorKind::PermissionDenied {
        ". The user that omird runs as must be able to read it; `omir import` reads it as you"
    } else {
        ""
    };
    Error::at(Code::NotFound, "/path", format!("{}: {error}{hint}", file.display()))
}

/// Bytes of a file. Asked before it is opened: opening a pipe waits for somebody to write into it.
fn size_of(file: &Path) -> Result<u64, Error> {
    let metadata = std::fs::metadata(file).map_err(|error| unreadable(file, &error))?;
    if !metadata.is_file() {
        let message = format!("{} is no file", file.display());
        return Err(Error::at(Code::NotFound, "/path", message));
    }
    Ok(metadata.len())
}

/// What a service is for.
fn operation(service: Service) -> Operation {
    match service {
        Service::Remember => Operation::Remember,
        Service::Recall => Operation::Recall,
        Service::Forget => Operation::Forget,
        Service::Anchor => Operation::Anchor,
        Service::Feedback => Operation::Feedback,
        Service::Export => Operation::Export,
        Service::Rebase => Operation::Rebase,
    }
}

struct EngineMemory {
    engine: Engine,
    simulated: Option<Arc<SimulatedClock>>,
}

impl EngineMemory {
    fn asked(&self, operation: Operation, asked: Asked) -> Result<Value, Error> {
        let answer = self.engine.ask(operation, asked)?;
        let left_out = answer.left_out();
        let mut value = answer.into_value()?;
        if let (Value::Object(members), Some(left_out)) = (&mut value, left_out) {
            members.insert(LEFT_OUT, left_out);
        }
        Ok(value)
    }

    fn merge_file(
        &self,
        file: &Path,
        overwrite: bool,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Value, Error> {
        let unreadable = |error| unreadable(file, &error);
        let total = size_of(file)?;
        let admitted = self.engine.admit(usize::try_from(total).unwrap_or(usize::MAX), true);
        let mut permit = admitted.map_err(|not| {
            let error = Error::from(not);
            Error::at(error.code, "/path", format!("{}: {}", file.display(), error.message))
        })?;
        let mut input = std::fs::File::open(file).map_err(unreadable)?;
        let (mut bytes, mut piece) = (Vec::new(), vec![0; PIECE]);
        while progress(bytes.len() as u64, total) {
            match input.read(&mut piece).map_err(unreadable)? {
                0 => {
                    let encoding = Encoding::sniff(&bytes);
                    let precedence = if overwrite { Precedence::File } else { Precedence::Newer };
                    let permit = permit.take();
                    let change =
                        self.engine.prepare_admitted(permit, &bytes, encoding, precedence)?;
                    return Ok(self.engine.execute(change)?.to_value());
                }
                read => bytes.extend_from_slice(&piece[..read]),
            }
            // The permit is for so many.
            if bytes.len() as u64 > total {
                let message = format!("{} grows while it is read", file.display());
                return Err(Error::at(Code::TooLarge, "/path", message));
            }
        }
        Err(Error::new(Code::Busy, "cancelled before anything was stored"))
    }

    fn told<T>(&self, result: Result<T, Error>) -> Result<T, Refusal> {
        result.map_err(|error| {
            let refusal = Refusal { code: error.code, message: error.message, path: error.path };
            // What a rule kept is tried again until it is taken.
            if !refusal.code.may_pass() {
                self.engine.note_rejected();
            }
            refusal
        })
    }
}

impl Memory for EngineMemory {
    fn most_bytes(&self) -> usize {
        self.engine.settings().limits.max_payload_bytes
    }

    fn remember(&self, resources: Vec<Value>, merge: Option<&str>) -> Result<Value, Refusal> {
        let bytes = cbor::to_vec(&Value::Array(resources));
        let merge = merge.map(|merge| ("merge".to_owned(), merge.to_owned()));
        let asked = Asked {
            parameters: merge.into_iter().collect(),
            bytes: bytes.len(),
            payload: Payload::Resources(bytes, Encoding::Cbor),
            ..Asked::default()
        };
        self.told(self.asked(Operation::Remember, asked))
    }

    fn get(&self, target: &str) -> Result<Stored, Refusal> {
        let found = reference("ref", target)
            .and_then(|target: Ref| self.engine.look_up(&target))
            .map(|found| match found {
                Found::Nothing => Stored::Nothing,
                Found::Whole(bytes) => decoded(&bytes)
                    .map_or_else(|error| Stored::Damaged(error.message), Stored::Whole),
                Found::Damaged(error) => Stored::Damaged(error.message),
            });
        self.told(found)
    }

    fn ask(&self, service: Service, parameters: &Map) -> Result<Value, Refusal> {
        let most = self.engine.settings().limits.for_import().max_payload_bytes;
        let asked = Asked {
            payload: Payload::Members(Value::Object(parameters.clone())),
            most: Some(most as u64),
            ..Asked::default()
        };
        self.told(self.asked(operation(service), asked))
    }

    fn import(
        &self,
        file: &Path,
        overwrite: bool,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Value, Refusal> {
        self.told(self.merge_file(file, overwrite, progress))
    }

    fn show(&self, now: Stamp) {
        if let Some(clock) = &self.simulated {
            clock.set(Timestamp::from_micros(now.nanos().div_euclid(1000)));
        }
    }
}

#[cfg(test)]
mod tests;
