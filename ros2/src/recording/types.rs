//! The types of a recording: each file brings the definitions of its own messages.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use super::bounds::{MOST_DEFINED, MOST_DESCRIPTION, described};
use super::idl;
use crate::interface::{InterfaceError, MessageType, Registry, TypeName};

/// Types by what files say of them, so that each is read once.
#[derive(Clone, Debug)]
pub(super) struct Types(Rc<Inner>);

/// Result of reading a definition.
type Outcome = Result<Arc<MessageType>, String>;

#[derive(Debug)]
struct Inner {
    /// For types that a file names and does not define.
    known: Registry,
    definitions: RefCell<BTreeSet<Rc<Definition>>>,
    /// Their memory.
    described: Cell<usize>,
    read: RefCell<BTreeMap<Rc<Definition>, Outcome>>,
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

    /// A definition, which all files that have the same one share; or why it is not read.
    pub(super) fn definition(
        &self,
        name: &str,
        encoding: &str,
        text: &[u8],
    ) -> Result<Rc<Definition>, String> {
        let takes = described(&[name.as_bytes(), encoding.as_bytes(), text]);
        if takes > MOST_DESCRIPTION {
            return Err(format!("its definition has {takes} bytes, more than {MOST_DESCRIPTION}"));
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
            return Err(format!(
                "its definition is not read: those before it take {MOST_DEFINED} bytes"
            ));
        }
        self.0.described.set(all);
        let definition = Rc::new(definition);
        definitions.insert(definition.clone());
        Ok(definition)
    }

    /// The type of a definition. What the file says goes before what is known under the same name.
    pub(super) fn of(&self, definition: &Rc<Definition>) -> Outcome {
        if let Some(read) = self.0.read.borrow().get(definition) {
            return read.clone();
        }
        let read = self.read(definition);
        self.0.read.borrow_mut().insert(definition.clone(), read.clone());
        read
    }

    fn read(&self, definition: &Definition) -> Outcome {
        let Definition { name, encoding, text } = definition;
        let text = std::str::from_utf8(text).map_err(|_| "its definition is no text".to_owned())?;
        // rosbag2 writes an empty text where it did not find the definition.
        if text.trim().is_empty() {
            let known = self.0.known.message(name);
            return known.map_err(|why| {
                format!(
                    "the file does not define it, and {why}; `ros2.interfaces` in --rules names folders with the \
                     definitions of packages"
                )
            });
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
