//! The daemon in the ROS 2 graph: a transport beside [`crate::zenoh`], over the same session.
//!
//! What a node does stands in `omir-ros2`, which knows no engine; here what it asks for goes by the router to the protocol.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use nalgebra::Isometry3;
use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::instant::Timestamp;
use omir_core::operation::Operation;
use omir_core::reference::Ref;
use omir_core::value::{Map, Value};
use omir_ros2::memory::{Memory, Refusal, Stored};
use omir_ros2::participant::{Clock, Frames as Transforms, Notice, OpenError, Participant};
use omir_ros2::records::LEFT_OUT;
use omir_ros2::rules::Ros2;
use omir_ros2::stamp::Stamp;
use parking_lot::RwLock;

use crate::engine::{
    Code, Encoding, Engine, Error, Event, Frames, Listening, Lookup, REBASE_CAUSE,
};
use crate::protocols::Protocols;
use crate::protocols::omir::{CLOCK, GET, Params, Payload, Response, method, reference};
use crate::router::{
    Admitted, Bounds, Caller, Incoming, Method, Refusal as Refused, Scope, worded,
};

/// The way in, for audit lines and counts.
const ROS2: &str = "ros2";
/// Read from a file at once.
const PIECE: usize = 1 << 20;

/// A running node. Dropping it leaves the graph and stores what it had kept.
pub struct Node {
    participant: Arc<Slot<Participant>>,
    _listening: Listening,
}

/// Something that many threads look at and one takes away. The taker waits for those that look, so it ends where it was
/// taken, and never in a thread that only looked.
struct Slot<T>(RwLock<Option<T>>);

impl<T> Slot<T> {
    fn look<R>(&self, at: impl FnOnce(&T) -> R) -> Option<R> {
        self.0.read().as_ref().map(at)
    }

    fn take(&self) -> Option<T> {
        self.0.write().take()
    }
}

impl Node {
    /// Joins the graph over `session` with `protocols` for what is asked; what `engine` announces by itself goes out too.
    ///
    /// # Errors
    /// What stands in the way: names, definitions of messages, or the network.
    pub fn start(
        engine: &Engine,
        protocols: &Protocols,
        session: &zenoh::Session,
        config: &Ros2,
    ) -> Result<Self, OpenError> {
        let clock: Clock = {
            let engine = engine.clone();
            Arc::new(move || Stamp::from_timestamp(engine.now().0).unwrap_or(Stamp::ZERO))
        };
        let memory = Arc::new(RoutedMemory { protocols: protocols.clone() });
        let participant = Participant::open(session, config, memory, clock.clone())?;
        let (announcer, surveyor) = (participant.announcer(), participant.surveyor());
        let access = protocols.access.clone();
        let listening = engine.events().listen(move |event| {
            if event.cause.as_ref().is_some_and(|cause| cause.name == REBASE_CAUSE) {
                surveyor.map_moved(&event.target, || decoded(&event.resource).ok());
            }
            announcer.announce(|| {
                // A graph without the scope to read gets references alone.
                let may_read = access.graph(ROS2).scopes.hold(Scope::READ);
                if may_read { notice(event) } else { Some(reference_alone(event)) }
            });
        });
        engine.follow_frames(Arc::new(LiveTransforms { frames: participant.frames(), clock }));
        let slot = Arc::new(Slot(RwLock::new(Some(participant))));
        let shown = slot.clone();
        engine.add_status_section("ros2", Box::new(move || shown.look(Participant::status)));
        Ok(Self { participant: slot, _listening: listening })
    }

    /// Leaves the graph.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // The participant stores what it had kept.
        drop(self.participant.take());
    }
}

/// Transforms, as recalls ask for them.
struct LiveTransforms {
    frames: Arc<Transforms>,
    clock: Clock,
}

impl Frames for LiveTransforms {
    fn fixed(
        &self,
        frame: &str,
    ) -> Result<Option<(String, Isometry3<f64>)>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.frames.fixed(frame, (self.clock)())?)
    }
}

fn notice(event: &Event) -> Option<Notice> {
    let target = event.target.to_string();
    let carried = decoded(&event.payload()).ok()?;
    let cause = event.cause.as_ref().map(|cause| cause.to_value());
    Some(Notice { kind: event.kind, reference: target, carried, cause })
}

fn reference_alone(event: &Event) -> Notice {
    let reference = event.target.to_string();
    let mut map = Map::new();
    map.insert("ref", reference.as_str());
    Notice { kind: event.kind, reference, carried: Value::Object(map), cause: None }
}

/// Resources that the daemon stored itself.
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

/// Bytes of a file. Asked before it is opened: opening a pipe waits for a writer.
fn size_of(file: &Path) -> Result<u64, Error> {
    let metadata = std::fs::metadata(file).map_err(|error| unreadable(file, &error))?;
    if !metadata.is_file() {
        let message = format!("{} is no file", file.display());
        return Err(Error::at(Code::NotFound, "/path", message));
    }
    Ok(metadata.len())
}

/// The memory, by the router.
struct RoutedMemory {
    protocols: Protocols,
}

impl RoutedMemory {
    /// The caller of a service. A ROS graph has no tokens, so it acts with `[ros2] scopes`. An answer goes out as one
    /// message.
    fn service_caller(&self) -> Caller {
        let most = self.protocols.omir.limits().for_import().max_payload_bytes;
        let bounds = Bounds { reply_bytes: Some(most as u64), ..Bounds::default() };
        Caller { bounds, ..self.protocols.access.graph(ROS2) }
    }

    /// The node itself, which acts as the daemon. Its rules try again what may be taken later.
    fn node_caller() -> Caller {
        Caller { retries: true, ..Caller::trusted(ROS2, ROS2) }
    }

    fn admit(
        &self,
        caller: &Caller,
        method: &'static Method,
        incoming: Incoming,
    ) -> Result<Admitted, Refused> {
        self.protocols.router.admit(caller, method, incoming)
    }

    fn store(
        &self,
        caller: &Caller,
        resources: Vec<Value>,
        merge: Option<&str>,
    ) -> Result<Value, Refusal> {
        let bytes = cbor::to_vec(&Value::Array(resources));
        let merges = merge.is_some();
        let incoming = Incoming { bytes: bytes.len(), merges, ..Incoming::default() };
        let merge = merge.map(|merge| ("merge".to_owned(), merge.to_owned()));
        let parameters = merge.into_iter().collect();
        let payload = Payload::Resources(bytes, Encoding::Cbor);
        let admitted = self.admit(caller, method(Operation::Remember), incoming).map_err(worded);
        admitted
            .and_then(|admitted| self.carry_out(admitted, Params { parameters, payload }))
            .map_err(to_refusal)
    }

    fn carry_out(&self, admitted: Admitted, params: Params) -> Result<Value, Error> {
        self.protocols.omir.ask(admitted, params, |response: Response| {
            let left_out = response.left_out();
            let mut value = response.into_value()?;
            if let (Value::Object(members), Some(left_out)) = (&mut value, left_out) {
                members.insert(LEFT_OUT, left_out);
            }
            Ok(value)
        })
    }

    fn merge_file(
        &self,
        file: &Path,
        overwrite: bool,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Value, Error> {
        let total = size_of(file)?;
        let bytes = usize::try_from(total).unwrap_or(usize::MAX);
        let incoming = Incoming { bytes, merges: true, ..Incoming::default() };
        let caller = self.service_caller();
        let admitted = self.admit(&caller, method(Operation::Remember), incoming);
        let admitted = admitted.map_err(|refused| {
            let error = worded(refused);
            Error::at(error.code, "/path", format!("{}: {}", file.display(), error.message))
        })?;
        match read(file, total, progress) {
            Ok(bytes) => {
                let merge = if overwrite { "overwrite" } else { "true" };
                let parameters = vec![("merge".to_owned(), merge.to_owned())];
                let encoding = Encoding::sniff(&bytes);
                let payload = Payload::Resources(bytes, encoding);
                self.carry_out(admitted, Params { parameters, payload })
            }
            Err(error) => {
                admitted.failed(error.code);
                Err(error)
            }
        }
    }
}

/// Reads a file of so many bytes.
fn read(
    file: &Path,
    total: u64,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Vec<u8>, Error> {
    let unreadable = |error| unreadable(file, &error);
    let mut input = std::fs::File::open(file).map_err(unreadable)?;
    let (mut bytes, mut piece) = (Vec::new(), vec![0; PIECE]);
    while progress(bytes.len() as u64, total) {
        match input.read(&mut piece).map_err(unreadable)? {
            0 => return Ok(bytes),
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

fn to_refusal(error: Error) -> Refusal {
    Refusal { code: error.code, message: error.message, path: error.path }
}

impl Memory for RoutedMemory {
    fn most_bytes(&self) -> usize {
        self.protocols.omir.limits().max_payload_bytes
    }

    fn remember(&self, resources: Vec<Value>, merge: Option<&str>) -> Result<Value, Refusal> {
        self.store(&self.service_caller(), resources, merge)
    }

    fn record(&self, resources: Vec<Value>) -> Result<Value, Refusal> {
        self.store(&Self::node_caller(), resources, None)
    }

    fn get(&self, target: &str) -> Result<Stored, Refusal> {
        let admitted = self.admit(&Self::node_caller(), &GET, Incoming::default());
        let admitted = admitted.map_err(worded).map_err(to_refusal)?;
        let found = reference("ref", target)
            .and_then(|target: Ref| self.protocols.omir.look_up(&admitted, &target))
            .map(|found| match found {
                // Nothing may refer to what is lost, and what is recorded takes its place.
                Lookup::Nothing | Lookup::Lost(_) => Stored::Nothing,
                Lookup::Whole(bytes) => decoded(&bytes)
                    .map_or_else(|error| Stored::Damaged(error.message), Stored::Whole),
                Lookup::Damaged(error) => Stored::Damaged(error.message),
            });
        admitted.finish(&found);
        found.map_err(to_refusal)
    }

    fn ask(&self, operation: Operation, parameters: &Map) -> Result<Value, Refusal> {
        // Without a size: the bound on payloads is for the resources of `remember`. These parameters came decoded, and
        // the largest message of the node bounds them.
        let admitted = self.admit(&self.service_caller(), method(operation), Incoming::default());
        let admitted = admitted.map_err(worded);
        let payload = Payload::Members(Value::Object(parameters.clone()));
        let params = Params { payload, ..Params::default() };
        admitted.and_then(|admitted| self.carry_out(admitted, params)).map_err(to_refusal)
    }

    fn import(
        &self,
        file: &Path,
        overwrite: bool,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Value, Refusal> {
        self.merge_file(file, overwrite, progress).map_err(to_refusal)
    }

    fn show(&self, now: Stamp) {
        let omir = &self.protocols.omir;
        if !omir.has_simulated_time() {
            return;
        }
        let at = Timestamp::from_micros(now.nanos().div_euclid(1000));
        let admitted = self.admit(&Self::node_caller(), &CLOCK, Incoming::default());
        let set = admitted.map_err(worded).and_then(|admitted| omir.set_time(admitted, Ok(at)));
        if let Err(error) = set {
            tracing::warn!(why = %error, "the time is not set");
        }
    }
}

#[cfg(test)]
mod tests;
