//! The channels of a file: which topic, which type, and whether anybody wants its messages.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::types::Types;
use crate::interface::MessageType;

/// A topic as one file has it.
#[derive(Debug)]
pub struct Channel {
    /// The full name of the topic.
    pub topic: String,
    /// The name of the type, as the file has it.
    pub type_name: String,
    /// The type, or why its messages cannot be read.
    pub ty: Result<Arc<MessageType>, String>,
}

/// Who decides which channels are wanted.
pub type Wanted = dyn Fn(&Channel) -> bool;

/// All channels of a file that are known so far.
pub(super) struct Channels {
    types: Types,
    wanted: Rc<Wanted>,
    schemas: BTreeMap<u16, Schema>,
    known: BTreeMap<u16, Known>,
    /// Messages of channels that the file says nothing of.
    pub(super) unknown: u64,
}

#[derive(PartialEq, Eq)]
struct Schema {
    name: String,
    encoding: String,
    text: Vec<u8>,
}

struct Known {
    written: mcap::records::Channel,
    channel: Arc<Channel>,
    is_wanted: bool,
    seen: u64,
}

impl Channels {
    pub(super) fn new(types: Types, wanted: Rc<Wanted>) -> Self {
        Self { types, wanted, schemas: BTreeMap::new(), known: BTreeMap::new(), unknown: 0 }
    }

    pub(super) fn add_schema(&mut self, id: u16, name: &str, encoding: &str, text: &[u8]) {
        let schema =
            Schema { name: name.to_owned(), encoding: encoding.to_owned(), text: text.to_owned() };
        self.schemas.insert(id, schema);
    }

    pub(super) fn add(&mut self, written: &mcap::records::Channel) {
        let is_known = |known: &Known| known.written == *written && known.channel.ty.is_ok();
        if self.known.get(&written.id).is_some_and(is_known) {
            return;
        }
        let schema = self.schemas.get(&written.schema_id);
        let ty = match (written.message_encoding.as_str(), schema) {
            ("cdr", Some(schema)) => self.types.of(&schema.name, &schema.encoding, &schema.text),
            ("cdr", None) => Err("the file has no schema for it".to_owned()),
            (other, _) => Err(format!("its messages are {other:?}; only cdr is read")),
        };
        let channel = Channel {
            topic: written.topic.clone(),
            type_name: schema.map(|schema| schema.name.clone()).unwrap_or_default(),
            ty,
        };
        let is_wanted = (self.wanted)(&channel);
        let seen = self.known.get(&written.id).map_or(0, |known| known.seen);
        let known = Known { written: written.clone(), channel: Arc::new(channel), is_wanted, seen };
        self.known.insert(written.id, known);
    }

    /// Whether messages of a channel are wanted; counts this one.
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

    /// Forgets how many messages were met.
    pub(super) fn count_anew(&mut self) {
        self.unknown = 0;
        self.known.values_mut().for_each(|known| known.seen = 0);
    }
}
