//! The types of a recording: each file brings the definitions of its own messages.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use super::bounds::{MOST_DEFINED, MOST_DESCRIPTION, described};
use super::idl;
use crate::interface::{InterfaceError, MessageType, Registry, TypeName};

/// Types by what files say of them, so that each is read once.
#[derive(Clone, Debug)]
pub(super) struct Types(Rc<Inner>);

/// A type of a recording, if its definition can be read.
type ReadType = Result<Arc<MessageType>, UnreadableType>;

/// A type whose messages cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnreadableType {
    /// The file has no schema for the channel.
    NoSchema,
    /// The messages have another encoding than CDR.
    Messages(String),
    /// The definition is too long.
    TooLong {
        /// Its bytes.
        bytes: usize,
    },
    /// The definitions before it took all the room.
    NoRoom,
    /// The definition is no text.
    NoText,
    /// The file does not define the type, and nothing else does.
    Undefined(InterfaceError),
    /// A type of ROS 1.
    Ros1,
    /// A schema of another kind.
    Schema(String),
    /// The definition is wrong.
    Interface(InterfaceError),
}

impl fmt::Display for UnreadableType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSchema => f.write_str("the file has no schema for it"),
            Self::Messages(encoding) => {
                write!(f, "its messages are {encoding:?}; only cdr is read")
            }
            Self::TooLong { bytes } => {
                write!(f, "its definition has {bytes} bytes, more than {MOST_DESCRIPTION}")
            }
            Self::NoRoom => {
                write!(f, "its definition is not read: those before it take {MOST_DEFINED} bytes")
            }
            Self::NoText => f.write_str("its definition is no text"),
            Self::Undefined(why) => write!(
                f,
                "the file does not define it, and {why}; `ros2.interfaces` in --rules names folders with the \
                 definitions of packages"
            ),
            Self::Ros1 => f.write_str("a type of ROS 1"),
            Self::Schema(kind) => {
                write!(f, "its schema is {kind:?}; ros2msg and ros2idl are read")
            }
            Self::Interface(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for UnreadableType {}

#[derive(Debug)]
struct Inner {
    /// For types that a file names and does not define.
    known: Registry,
    definitions: RefCell<BTreeSet<Rc<Definition>>>,
    /// Their memory.
    described: Cell<usize>,
    read: RefCell<BTreeMap<Rc<Definition>, ReadType>>,
}

/// A file's definition of a type.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Definition {
    pub(super) name: String,
    encoding: String,
    text: Vec<u8>,
}

impl Types {
    pub(super) fn new(known: Registry) -> Self {
        Self(Rc::new(Inner {
            known,
            definitions: RefCell::default(),
            described: Cell::new(0),
            read: RefCell::default(),
        }))
    }

    /// Returns a definition, which all files that have the same one share.
    pub(super) fn definition(
        &self,
        name: &str,
        encoding: &str,
        text: &[u8],
    ) -> Result<Rc<Definition>, UnreadableType> {
        let takes = described(&[name.as_bytes(), encoding.as_bytes(), text]);
        if takes > MOST_DESCRIPTION {
            return Err(UnreadableType::TooLong { bytes: takes });
        }
        let definition = Definition {
            name: name.to_owned(),
            encoding: encoding.to_owned(),
            text: text.to_owned(),
        };
        let mut definitions = self.0.definitions.borrow_mut();
        if let Some(known) = definitions.get(&definition) {
            return Ok(known.clone());
        }
        let all = self.0.described.get().saturating_add(takes);
        if all > MOST_DEFINED {
            return Err(UnreadableType::NoRoom);
        }
        self.0.described.set(all);
        let definition = Rc::new(definition);
        definitions.insert(definition.clone());
        Ok(definition)
    }

    /// Returns the type of a definition. The file goes before what is known under the same name.
    pub(super) fn of(&self, definition: &Rc<Definition>) -> ReadType {
        if let Some(read) = self.0.read.borrow().get(definition) {
            return read.clone();
        }
        let read = self.read(definition);
        self.0.read.borrow_mut().insert(definition.clone(), read.clone());
        read
    }

    fn read(&self, definition: &Definition) -> ReadType {
        let Definition { name, encoding, text } = definition;
        let text = std::str::from_utf8(text).map_err(|_| UnreadableType::NoText)?;
        // rosbag2 writes an empty text where it did not find the definition.
        if text.trim().is_empty() {
            return self.0.known.message(name).map_err(UnreadableType::Undefined);
        }
        let add: fn(&mut Registry, &TypeName, &str) -> Result<(), InterfaceError> =
            match encoding.as_str() {
                "ros2msg" => Registry::add_schema,
                "ros2idl" => idl::add,
                "ros1msg" => return Err(UnreadableType::Ros1),
                other => return Err(UnreadableType::Schema(other.to_owned())),
            };
        let full: TypeName = name.parse().map_err(UnreadableType::Interface)?;
        // A definition that leaves out types it contains means those that everybody has.
        let with = |mut registry: Registry| {
            add(&mut registry, &full, text).and_then(|()| registry.message(name))
        };
        with(Registry::new())
            .or_else(|_| with(Registry::standard()))
            .map_err(UnreadableType::Interface)
    }
}
