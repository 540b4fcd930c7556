//! The store of Worlds: looked up, and put.
//!
//! A World is written once. The write asks that nothing lives under its name, so that of several at once one is stored. The
//! others find it there: the same World is `unchanged`, another one a conflict. Worlds are compared by their canonical form,
//! and not by their hash, which leaves out what they state of themselves.

use omir_core::manifesto::World;
use omir_core::reference::Ref;
use omir_core::value::{Map, Value};
use omird_engine::{Change, Code, Durability, Encoding, Error, Precondition, Receipt};

use crate::episode;
use crate::exchange::{Client, Manifesto};
use crate::failure::Failure;
use crate::names::{self, hex};
use crate::request::{Request, check_size};

/// A World that is being stored, as far as its answer needs it: the World itself waits in the change alone.
pub(crate) struct Put {
    pub(crate) name: Ref,
    world_id: String,
    /// The canonical form, of a snapshot that of its members in [`SAME_SNAPSHOT`]: its WorldId is a digest of those, so that one
    /// of the same is the same whenever it was made.
    canonical: String,
    /// Computed before it is queued: who answers must not be held up.
    hash: String,
    is_snapshot: bool,
}

/// Members that two snapshots of the same memories have in common.
const SAME_SNAPSHOT: [&str; 3] = ["schemaHash", "snapshotHash", "snapshot"];

impl Put {
    /// Checks the size of a World.
    pub(crate) fn new(name: Ref, world: &World, is_snapshot: bool) -> Result<Self, Failure> {
        check_size(world, if is_snapshot { "/snapshot" } else { "/world" })?;
        let canonical = compared(world, is_snapshot);
        let (world_id, hash) = (world.id().to_owned(), hex(&world.hash()));
        Ok(Self { name, world_id, canonical, hash, is_snapshot })
    }

    fn is_same(&self, stored: &World) -> bool {
        compared(stored, self.is_snapshot) == self.canonical
    }

    fn answer(&self, hash: &str, stored: &str, is_durable: bool, seq: u64) -> Value {
        let mut map = Map::new();
        map.insert("worldId", self.world_id.as_str());
        map.insert("hash", hash);
        map.insert("stored", stored);
        map.insert("durable", is_durable);
        map.insert("seq", seq);
        Value::Object(map)
    }
}

impl Manifesto {
    /// Answers `get`: `{"world": World}`, or `{"world": null}`.
    pub(crate) fn get(&self, request: &mut Request) -> Result<Value, Failure> {
        let world_id = request.world_id()?;
        let name = names::world(request.tenant(), &world_id)?;
        request.admitted.touched([&name]);
        let world = match self.engine.get(&name)? {
            Some(stored) => episode::world_in(&stored, &world_id)?,
            None => None,
        };
        Ok(Value::Object([("world", world)].into_iter().collect()))
    }

    /// Answers `exists`: `{"exists": bool}`, from the index. One that the card has lost is refused, as `get` does.
    pub(crate) fn exists(&self, request: &mut Request) -> Result<Value, Failure> {
        let name = names::world(request.tenant(), &request.world_id()?)?;
        let exists = self.engine.live_version(&name).is_some() || self.engine.get(&name)?.is_some();
        Ok(Value::Object([("exists", exists)].into_iter().collect()))
    }

    /// Answers `put`, once the World is durable.
    pub(crate) fn put(&self, mut request: Request, client: Client) {
        match self.prepare_put(&mut request) {
            Ok((put, world)) => self.put_prepared(request, client, put, world),
            Err(failure) => client.finish(request.admitted, Err(failure)),
        }
    }

    fn prepare_put(&self, request: &mut Request) -> Result<(Put, World), Failure> {
        let mut members = request.members(&["world", "snapshot", "metadata"])?;
        let (snapshot, metadata) = (members.take("snapshot"), members.take("metadata"));
        let (put, world) = match (snapshot, members.take("world"), metadata) {
            (None, Some(world), None) => {
                let world = World::from_value(world)
                    .map_err(|fault| Failure::of_world("/world", &fault))?;
                let name = names::world(request.tenant(), world.id())?;
                (Put::new(name, &world, false)?, world)
            }
            (None, Some(_), Some(_)) => {
                let message = "goes with `snapshot`; a World has its own in it";
                return Err(Failure::invalid("/metadata", message));
            }
            (Some(filters), None, metadata) => self.snapshot(request, &filters, metadata)?,
            _ => return Err(Failure::invalid("", "expected `world`, or else `snapshot`")),
        };
        request.admitted.touched([&put.name]);
        Ok((put, world))
    }

    fn put_prepared(&self, request: Request, client: Client, put: Put, world: World) {
        let change = match self.change(&request, &put, &world) {
            Ok(Step::Ended(ended)) => return client.finish(request.admitted, Ok((200, ended))),
            Ok(Step::Change(change, bytes)) => (change, bytes),
            Err(failure) => return client.finish(request.admitted, Err(failure)),
        };
        drop(world);
        let (this, (change, bytes)) = (self.clone(), change);
        let reply = move |result| this.was_put(request, client, put, result);
        self.engine.submit(change, bytes, Box::new(reply));
    }

    /// Ends a put by what the writer says of it. On the engine's thread, which does not wait.
    fn was_put(
        &self,
        mut request: Request,
        client: Client,
        put: Put,
        result: Result<Receipt, Error>,
    ) {
        match result {
            Ok(receipt) => {
                request.admitted.note_receipt(&receipt);
                let answer = put.answer(&put.hash, "added", receipt.durable, receipt.seq);
                client.finish(request.admitted, Ok((201, answer)));
            }
            Err(error) if error.code == Code::Conflict => {
                // Another caller was faster. Looking at it reads the card, which is not for this thread.
                let this = self.clone();
                let look = move || {
                    let ended = this.already_stored(&put).and_then(|answer| {
                        answer.ok_or_else(|| {
                            Failure::busy("it was forgotten at this moment; try again")
                        })
                    });
                    client.finish(request.admitted, ended.map(|answer| (200, answer)));
                };
                let spawned =
                    std::thread::Builder::new().name("manifesto-put".to_owned()).spawn(look);
                if let Err(error) = spawned {
                    // The closure was dropped with its client: the transport tells the client.
                    tracing::error!(%error, "no thread to look at a World that was put twice at once");
                }
            }
            Err(error) => client.finish(request.admitted, Err(error.into())),
        }
    }

    /// Returns the answer if something lives under the name of the World.
    fn already_stored(&self, put: &Put) -> Result<Option<Value>, Failure> {
        let Some((_, seq)) = self.engine.live_version(&put.name) else { return Ok(None) };
        let Some(stored) = self.engine.get(&put.name)? else { return Ok(None) };
        let world = episode::world_in(&stored, &put.world_id)?;
        let world = world.and_then(|world| World::from_value(world).ok());
        match world.filter(|world| put.is_same(world)) {
            Some(world) => {
                let is_durable = self.engine.settings().durability == Durability::Sync;
                Ok(Some(put.answer(&hex(&world.hash()), "unchanged", is_durable, seq)))
            }
            _ => {
                let message = format!(
                    "another World is stored as {:?}; a World does not change",
                    put.world_id
                );
                Err(Failure::conflict("/world/worldId", message))
            }
        }
    }

    fn change(&self, request: &Request, put: &Put, world: &World) -> Result<Step, Failure> {
        if let Some(answer) = self.already_stored(put)? {
            return Ok(Step::Ended(answer));
        }
        let tenant = names::tenant(request.tenant())?;
        let is_known = |entity: &Ref| self.engine.may_refer_to(entity);
        let mut resources = Vec::new();
        // One that is damaged on the card has a name and a version still, and nothing may refer to it.
        if !matches!(self.engine.get(&tenant), Ok(Some(_))) {
            resources.push(episode::of_tenant(&tenant));
        }
        resources.push(episode::of_world(&put.name, &tenant, world, is_known));
        let (change, bytes) = self.prepared(resources)?;
        let change = change.only_if_each(|name| match *name == put.name {
            true => Precondition::Absent,
            false => Precondition::None,
        });
        Ok(Step::Change(change, bytes))
    }

    /// Prepares resources of our own to be stored.
    pub(crate) fn prepared(&self, resources: Vec<Value>) -> Result<(Change, usize), Failure> {
        let payload = omir_core::cbor::to_vec(&Value::Array(resources));
        let change = self.engine.prepare(&payload, Encoding::Cbor, None).map_err(|error| {
            // Its place is one in what we have made of the request.
            Failure { path: String::new(), ..Failure::from(error) }
        })?;
        Ok((change, payload.len()))
    }
}

/// Returns what two Worlds are compared by.
fn compared(world: &World, is_snapshot: bool) -> String {
    if !is_snapshot {
        return world.canonical();
    }
    let members = SAME_SNAPSHOT.into_iter().filter_map(|name| world.canonical_member(name));
    members.collect::<Vec<_>>().join(",")
}

/// A put that is answered, or is to be made.
enum Step {
    Ended(Value),
    Change(Change, usize),
}
