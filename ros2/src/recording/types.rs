//! The types of a recording: each file brings the definitions of its own messages.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::idl;
use crate::interface::{InterfaceError, MessageType, Registry, TypeName};

/// Types by what files say of them, so that each is read once.
#[derive(Clone, Debug)]
pub(super) struct Types(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    /// For types that a file names and does not define.
    known: Registry,
    read: RefCell<BTreeMap<Definition, Result<Arc<MessageType>, String>>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Definition {
    name: String,
    encoding: String,
    text: Vec<u8>,
}

impl Types {
    pub(super) fn new(known: Registry) -> Self {
        Self(Rc::new(Inner { known, read: RefCell::default() }))
    }

    /// The type of a schema. What the file says goes before what is known under the same name.
    pub(super) fn of(
        &self,
        name: &str,
        encoding: &str,
        text: &[u8],
    ) -> Result<Arc<MessageType>, String> {
        let definition = Definition {
            name: name.to_owned(),
            encoding: encoding.to_owned(),
            text: text.to_owned(),
        };
        if let Some(read) = self.0.read.borrow().get(&definition) {
            return read.clone();
        }
        let read = self.read(&definition);
        self.0.read.borrow_mut().insert(definition, read.clone());
        read
    }

    fn read(&self, definition: &Definition) -> Result<Arc<MessageType>, String> {
        let Definition { name, encoding, text } = definition;
        let text = std::str::from_utf8(text).map_err(|_| "its definition is no text".to_owned())?;
        // rosbag2 writes an empty text where it did not find the definition.
        if text.trim().is_empty() {
            let known = self.0.known.message(name);
            return known.map_err(|why| format!("the file does not define it, and {why}"));
        }
        let add: fn(&mut Registry, &TypeName, &str) -> Result<(), InterfaceError> = match encoding
            .as_str()
        {
            "ros2msg" => Registry::add_schema,
            "ros2idl" => idl::add,
            "ros1msg" => return Err("a type of ROS 1".to_owned()),
            other => return Err(format!("its schema is {other:?}; ros2msg and ros2idl are read")),
        };
        let full: TypeName = name.parse().map_err(|why: InterfaceError| why.to_string())?;
        // A definition that leaves out types it contains means those that everybody has.
        let mut error = None;
        for mut registry in [Registry::new(), Registry::standard()] {
            match add(&mut registry, &full, text).and_then(|()| registry.message(name)) {
                Ok(ty) => return Ok(ty),
                Err(why) => error = Some(why),
            }
        }
        Err(error.map(|why| why.to_string()).unwrap_or_default())
    }
}
