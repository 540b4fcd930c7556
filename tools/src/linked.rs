//! Linked data: a Bundle as RDF, in N-Triples.
//!
//! A document is lifted through the JSON-LD context this program carries (`context.jsonld`),
//! whatever context the document itself names; nothing is ever fetched. What a JSON-LD processor cannot
//! know is prepared first: absolute IRIs from ids, exact numbers, canonical JSON, labels of blank nodes.
//! Expansion and writing are the library's. What comes out is described in `docs/linked-data.md`.

mod context;
mod digits;
mod json_literal;
mod names;
mod prepare;

#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use omir_core::json;
use omir_core::pointer;
use omir_core::reference::{Id, ResourceType};
use omir_core::validate::{Level, Severity, validate_bundle};
use omir_core::value::{Map, Value};
use oxjsonld::JsonLdParser;
use oxttl::NTriplesSerializer;
use oxttl::ntriples::WriterNTriplesSerializer;

use self::context::Context;
pub use self::names::Base;
use self::prepare::Prepare;
use crate::error::{Error, Result};

/// Prepared entries wait until there is as much text as this: the context is read once for each
/// portion, and reading it costs as much as lifting ten memories.
const PORTION: usize = 256 * 1024;

/// The context's relative `@base`s must stand on something. Nothing is resolved against it: what the
/// library gets to see are absolute IRIs.
const UNUSED_BASE: &str = "https://base.invalid/";

/// Returns true if a file is to be N-Triples, by its ending.
#[must_use]
pub fn is_triples(file: &Path) -> bool {
    file.extension().and_then(OsStr::to_str).is_some_and(|ending| ending.eq_ignore_ascii_case("nt"))
}

/// A whole document as N-Triples. Without a `base` its names stand on an IRI made from the Bundle's id,
/// or from its content if it has none.
///
/// # Errors
/// [`Error::Usage`] for a base that is none; [`Error::Input`] with the place for what is no Bundle, does
/// not conform at core level, or holds a number that is too long.
pub fn to_triples(file: &Path, document: &Value, base: Option<&str>) -> Result<Vec<u8>> {
    let mut errors = validate_bundle(document, Level::Core);
    errors.retain(|fault| fault.severity() == Severity::Error);
    if let Some(first) = errors.first() {
        let mut message = format!(
            "{}: {}: {} ({}); only a Bundle that conforms can be lifted",
            file.display(),
            first.pointer,
            first.message,
            first.code
        );
        if errors.len() > 1 {
            message.push_str(&format!("; omir validate lists all {} errors", errors.len()));
        }
        return Err(Error::Input { message, path: Some(first.pointer.clone()) });
    }
    let lift = || {
        let base = match base {
            Some(text) => Base::new(text)?,
            None => Base::of_bundle(document),
        };
        let mut lift = Lift::new(base, Vec::new())?;
        lift.envelope(document.as_object().unwrap_or(&Map::new()))?;
        for entry in document.get("entry").and_then(Value::as_array).unwrap_or_default() {
            lift.entry(entry)?;
        }
        lift.finish()
    };
    lift().map_err(|why| why.about(file))
}

/// Writes N-Triples entry by entry: [`Lift::envelope`] once, [`Lift::entry`] for each entry in its
/// order, and [`Lift::finish`].
///
/// What it is given must conform to OMIR R1. Of what does not, it refuses what it could not express; it
/// is no validator.
pub struct Lift<W: Write> {
    context: Context,
    base: Base,
    sink: WriterNTriplesSerializer<W>,
    /// The Bundle's own name.
    bundle: String,
    /// Number of entries.
    entries: usize,
    /// Prepared entries, with commas between.
    waiting: String,
}

impl<W: Write> Lift<W> {
    /// Nothing is written yet.
    ///
    /// # Errors
    /// [`LiftError::Library`] if the context in this program is damaged.
    pub fn new(base: Base, sink: W) -> std::result::Result<Self, LiftError> {
        Ok(Self {
            context: Context::ours()?,
            base,
            sink: NTriplesSerializer::new().for_writer(sink),
            bundle: names::NAMELESS_BUNDLE.to_owned(),
            entries: 0,
            waiting: String::new(),
        })
    }

    /// Lifts what the Bundle says of itself: everything but `entry`, and but `@context`, which is how the
    /// document would be read and nothing it says.
    ///
    /// # Errors
    /// As [`Self::entry`].
    pub fn envelope(&mut self, bundle: &Map) -> std::result::Result<(), LiftError> {
        if let Some(id) = bundle.get("id") {
            self.bundle = self.base.resource("Bundle", &id_at("", id)?);
        }
        let mut about = bundle.clone();
        about.retain(|name, _| !matches!(name, "@context" | "entry"));
        let prepared = self.prepare("bundle", "").resource(&self.bundle, "Bundle", &about)?;
        self.expand(&json::to_string(&prepared))
    }

    /// Lifts one entry. It may be written later, together with others.
    ///
    /// # Errors
    /// [`LiftError::Value`] with the pointer of what cannot be expressed; [`LiftError::Library`] if
    /// expansion fails; [`LiftError::Io`] if the sink does.
    pub fn entry(&mut self, entry: &Value) -> std::result::Result<(), LiftError> {
        let at = pointer::join_index("/entry", self.entries);
        let refuse = |message: &str| Err(LiftError::value(&at, message));
        let Some(members) = entry.as_object() else {
            return refuse("a resource is an object");
        };
        let kind = members.get("resourceType").and_then(Value::as_str).map(str::parse);
        let Some(Ok::<ResourceType, _>(kind)) = kind else {
            return refuse("no resourceType that R1 knows");
        };
        let id = id_at(&at, members.get("id").unwrap_or(&Value::Null))?;
        let name = self.base.resource(kind.as_str(), &id);
        let label = format!("e{}", self.entries);
        let prepared = self.prepare(&label, &at).resource(&name, kind.as_str(), members)?;
        if !self.waiting.is_empty() {
            self.waiting.push(',');
        }
        self.waiting.push_str(&json::to_string(&prepared));
        self.entries += 1;
        if self.waiting.len() >= PORTION { self.write_waiting() } else { Ok(()) }
    }

    /// Writes what waits and gives the sink back.
    ///
    /// # Errors
    /// As [`Self::entry`].
    pub fn finish(mut self) -> std::result::Result<W, LiftError> {
        self.write_waiting()?;
        Ok(self.sink.finish())
    }

    fn prepare<'a>(&'a self, label: &'a str, at: &'a str) -> Prepare<'a> {
        Prepare::new(&self.context, &self.base, label, at)
    }

    fn write_waiting(&mut self) -> std::result::Result<(), LiftError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let bundle = json::to_string(&Value::from(self.bundle.as_str()));
        let waiting = std::mem::take(&mut self.waiting);
        self.expand(&format!(r#"{{"@id":{bundle},"entry":[{waiting}]}}"#))
    }

    /// Expands one prepared object and writes its triples.
    fn expand(&mut self, object: &str) -> std::result::Result<(), LiftError> {
        let library = |why: &dyn fmt::Display| LiftError::Library(why.to_string());
        let members = object.strip_prefix('{').unwrap_or(object);
        let document = format!(r#"{{"@context":{},{members}"#, self.context.text());
        let parser = JsonLdParser::new().with_base_iri(UNUSED_BASE).map_err(|why| library(&why))?;
        for quad in parser.for_slice(&document) {
            let quad = quad.map_err(|why| library(&why))?;
            self.sink.serialize_triple(quad.as_ref())?;
        }
        Ok(())
    }
}

/// The `id` of what stands at that pointer.
fn id_at(pointer: &str, id: &Value) -> std::result::Result<Id, LiftError> {
    let refuse = |why: &dyn fmt::Display| LiftError::value(&pointer::join(pointer, "id"), why);
    let text = id.as_str().ok_or_else(|| refuse(&"an id is a text"))?;
    Id::new(text).map_err(|why| refuse(&why))
}

/// The reason why a document cannot be lifted.
#[derive(Debug)]
#[non_exhaustive]
pub enum LiftError {
    /// The base is none that names can stand on.
    Base(String),
    /// Something in the document has no form in RDF.
    Value {
        /// JSON Pointer to it.
        pointer: String,
        /// The fault.
        message: String,
    },
    /// Context and library do not get along. No document should get here.
    Library(String),
    /// The sink takes no more.
    Io(io::Error),
}

impl LiftError {
    fn value(pointer: &str, message: impl fmt::Display) -> Self {
        let pointer = pointer::displayed(pointer).to_owned();
        Self::Value { pointer, message: message.to_string() }
    }

    /// The same as a failure of a command about that file.
    #[must_use]
    pub fn about(self, file: &Path) -> Error {
        match self {
            Self::Base(message) => Error::Usage(message),
            Self::Io(why) => Error::Output(why),
            Self::Value { ref pointer, .. } => {
                let path = Some(pointer.clone());
                Error::Input { message: format!("{}: {self}", file.display()), path }
            }
            Self::Library(_) => Error::input(file, self),
        }
    }
}

impl fmt::Display for LiftError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Base(message) => f.write_str(message),
            Self::Value { pointer, message } => write!(f, "{pointer}: {message}"),
            Self::Library(message) => write!(f, "cannot expand the JSON-LD: {message}"),
            Self::Io(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for LiftError {}

impl From<io::Error> for LiftError {
    fn from(why: io::Error) -> Self {
        Self::Io(why)
    }
}
