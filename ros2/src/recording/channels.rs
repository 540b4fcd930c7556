//! The channels of a file: topic, type, and whether anybody wants the messages.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::bounds::{MOST_DESCRIBED, described};
use super::types::{Definition, Types, UnreadableType};
use crate::interface::MessageType;

/// A topic as one file has it.
#[derive(Debug)]
pub struct Channel {
    /// The full name of the topic.
    pub topic: String,
    /// The name of the type, as the file has it.
    pub type_name: String,
    /// The type, unless its messages cannot be read.
    pub ty: Result<Arc<MessageType>, UnreadableType>,
}

/// Decides which channels are wanted.
pub type ChannelFilter = dyn Fn(&Channel) -> bool;

/// All channels of a file that are known so far.
pub(super) struct Channels {
    types: Types,
    wanted: Rc<ChannelFilter>,
    schemas: BTreeMap<u16, Result<Rc<Definition>, UnreadableType>>,
    known: BTreeMap<u16, KnownChannel>,
    /// Memory of the channels so far.
    described: usize,
    /// Messages of channels that the file says nothing of.
    pub(super) unknown: u64,
    /// Channels for which there was no room.
    pub(super) too_many: u64,
}

struct KnownChannel {
    /// Without its metadata, which no reader asks for.
    written: mcap::records::Channel,
    channel: Arc<Channel>,
    is_wanted: bool,
    seen: u64,
}

impl Channels {
    pub(super) fn new(types: Types, wanted: Rc<ChannelFilter>) -> Self {
        Self {
            types,
            wanted,
            schemas: BTreeMap::new(),
            known: BTreeMap::new(),
            described: 0,
            unknown: 0,
            too_many: 0,
        }
    }

    pub(super) fn add_schema(&mut self, id: u16, name: &str, encoding: &str, text: &[u8]) {
        self.schemas.insert(id, self.types.definition(name, encoding, text));
    }

    pub(super) fn add(&mut self, written: &mcap::records::Channel) {
        let is_same = |known: &KnownChannel| {
            let (is, was) = (written, &known.written);
            (&is.topic, &is.message_encoding, is.schema_id)
                == (&was.topic, &was.message_encoding, was.schema_id)
        };
        let before = self.known.get(&written.id).filter(|known| is_same(known));
        if before.is_some_and(|known| known.channel.ty.is_ok()) {
            return;
        }
        if before.is_none() {
            if self.described >= MOST_DESCRIBED {
                self.too_many += 1;
                return;
            }
            let texts = [written.topic.as_bytes(), written.message_encoding.as_bytes()];
            self.described = self.described.saturating_add(described(&texts));
        }
        let schema = self.schemas.get(&written.schema_id);
        let ty = match (written.message_encoding.as_str(), schema) {
            ("cdr", Some(Ok(definition))) => self.types.of(definition),
            ("cdr", Some(Err(why))) => Err(why.clone()),
            ("cdr", None) => Err(UnreadableType::NoSchema),
            (other, _) => Err(UnreadableType::Messages(other.to_owned())),
        };
        let channel = Channel {
            topic: written.topic.clone(),
            type_name: match schema {
                Some(Ok(definition)) => definition.name.clone(),
                _ => String::new(),
            },
            ty,
        };
        let is_wanted = (self.wanted)(&channel);
        let seen = self.known.get(&written.id).map_or(0, |known| known.seen);
        let written = mcap::records::Channel { metadata: BTreeMap::new(), ..written.clone() };
        let known = KnownChannel { written, channel: Arc::new(channel), is_wanted, seen };
        self.known.insert(known.written.id, known);
    }

    /// Returns true if messages of a channel are wanted.
    pub(super) fn wants(&self, id: u16) -> bool {
        self.known.get(&id).is_some_and(|known| known.is_wanted)
    }

    /// Returns true if messages of a channel are wanted; counts this one.
    pub(super) fn is_wanted(&mut self, id: u16) -> bool {
        let Some(known) = self.known.get_mut(&id) else {
            self.unknown += 1;
            return false;
        };
        known.seen += 1;
        known.is_wanted
    }

    pub(super) fn get(&self, id: u16) -> Option<&Arc<Channel>> {
        self.known.get(&id).map(|known| &known.channel)
    }

    /// Each channel, with how many messages of it were met and whether they are wanted.
    pub(super) fn all(&self) -> impl Iterator<Item = (u16, &Channel, u64, bool)> {
        self.known.iter().map(|(id, known)| (*id, &*known.channel, known.seen, known.is_wanted))
    }

    /// Sets the counts of messages to zero.
    pub(super) fn reset_counts(&mut self) {
        (self.unknown, self.too_many) = (0, 0);
        self.known.values_mut().for_each(|known| known.seen = 0);
    }
}
