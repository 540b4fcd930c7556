//! All types that are known, and from where: those that came with this program, folders of interface
//! files, a single text, a type description.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use hiroz_schema::TypeDescriptionMsg;
use parking_lot::Mutex;

use super::parse::{Raw, RawElement, RawField, sections};
use super::{
    ActionType, Element, Field, FieldType, InterfaceError, Kind, MessageType, ServiceType, Shape,
    TypeName, bundled, description,
};
use crate::message::Value;

/// Types by name. What they contain is looked up when one is asked for, so that the order in which they
/// are added means nothing.
#[derive(Debug, Default)]
pub struct Registry {
    raw: BTreeMap<TypeName, Raw>,
    resolved: Mutex<BTreeMap<TypeName, Arc<MessageType>>>,
}

/// Types nested deeper are refused: no package makes them, and each level takes stack.
const DEEPEST: usize = 64;

/// Bytes of memory that a new message of a type may take. A type with more to send has sequences.
const MOST_ROOM: usize = 64 << 20;

/// Folders within folders are looked into so far.
const FOLDERS: usize = 8;

impl Registry {
    /// No types at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// The types that come with this program: those of ROS 2 Jazzy that a robot's memory meets, and
    /// `omir_msgs`.
    pub fn standard() -> Self {
        let mut registry = Self::new();
        for (package, kind, name, text) in bundled::FILES {
            let added =
                TypeName::new(package, *kind, name).and_then(|name| registry.add_text(&name, text));
            debug_assert!(added.is_ok(), "{added:?}");
        }
        registry
    }

    /// Adds the type of an interface file; a type of that name that was there is replaced.
    pub fn add_text(&mut self, name: &TypeName, text: &str) -> Result<(), InterfaceError> {
        self.add_file(name, &name.to_string(), text)
    }

    fn add_file(&mut self, name: &TypeName, file: &str, text: &str) -> Result<(), InterfaceError> {
        let mut parts = sections(name, file, text)?.into_iter();
        let mut next = || parts.next().unwrap_or_default();
        match name.kind() {
            Kind::Msg => self.insert(name.clone(), next()),
            Kind::Srv => self.insert_service(name, next(), next()),
            Kind::Action => self.insert_action(name, next(), next(), next()),
        }
        Ok(())
    }

    /// Adds the type of a recording's schema in the form `ros2msg`: the text of the type, and behind
    /// lines of `=` and `MSG: package/Name` the texts of the types it contains.
    pub fn add_schema(&mut self, name: &TypeName, text: &str) -> Result<(), InterfaceError> {
        let mut name = name.clone();
        let mut lines: Vec<&str> = Vec::new();
        for line in text.lines() {
            match line.strip_prefix("MSG:") {
                Some(next) => {
                    self.add_text(&name, &lines.join("\n"))?;
                    name = next.trim().parse()?;
                    lines.clear();
                }
                None if line.len() >= 40 && line.bytes().all(|b| b == b'=') => {}
                None => lines.push(line),
            }
        }
        self.add_text(&name, &lines.join("\n"))
    }

    /// Adds all `.msg`, `.srv` and `.action` files of a package, or of the packages in a folder (as in
    /// `/opt/ros/jazzy/share`), and says which types these were. The package is what `package.xml`
    /// says, else the name of the folder over `msg`, `srv` or `action`.
    pub fn add_folder(&mut self, dir: &Path) -> Result<Vec<TypeName>, InterfaceError> {
        let mut added = Vec::new();
        self.add_folders(dir, FOLDERS, &mut added)?;
        Ok(added)
    }

    fn add_folders(
        &mut self,
        dir: &Path,
        deep: usize,
        added: &mut Vec<TypeName>,
    ) -> Result<(), InterfaceError> {
        let mut folders = Vec::new();
        for path in entries(dir)? {
            if path.is_dir() {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                match [Kind::Msg, Kind::Srv, Kind::Action].into_iter().find(|k| k.as_str() == name)
                {
                    Some(kind) => self.add_kind(dir, &path, kind, added)?,
                    None if name.starts_with('.') => {}
                    None => folders.push(path),
                }
            }
        }
        if deep > 1 {
            for folder in folders {
                self.add_folders(&folder, deep - 1, added)?;
            }
        }
        Ok(())
    }

    fn add_kind(
        &mut self,
        package: &Path,
        dir: &Path,
        kind: Kind,
        added: &mut Vec<TypeName>,
    ) -> Result<(), InterfaceError> {
        for path in entries(dir)? {
            if path.extension().is_none_or(|extension| extension != kind.as_str()) {
                continue;
            }
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let name = TypeName::new(&package_name(package), kind, &stem)?;
            let text = fs::read_to_string(&path).map_err(|why| unreadable(&path, &why))?;
            self.add_file(&name, &path.display().to_string(), &text)?;
            added.push(name);
        }
        Ok(())
    }

    /// A type as its publisher describes it, with the constants and defaults that a description leaves out where
    /// what it contains is known here. Nothing is added: the user of the type keeps it, since a publisher
    /// may describe a new one each second.
    ///
    /// # Errors
    /// It is no type, or one of what it contains is known under the same name with another hash.
    pub fn described(
        &self,
        described: &TypeDescriptionMsg,
    ) -> Result<Arc<MessageType>, InterfaceError> {
        let ty = description::message_type(described)?;
        let mut all = BTreeMap::new();
        gather(&ty, &mut all);
        for new in all.values() {
            if let Ok(known) = self.resolve(&new.name, None)
                && known.hash != new.hash
            {
                return Err(InterfaceError::Conflict {
                    name: new.name.to_string(),
                    known: known.hash.to_string(),
                    other: new.hash.to_string(),
                });
            }
        }
        let mut together = Self::new();
        for (name, new) in all {
            let raw = self.raw.get(&name).cloned().unwrap_or_else(|| raw(&new));
            together.insert(name, raw);
        }
        together.message(&described.type_description.type_name)
    }

    pub(super) fn insert(&mut self, name: TypeName, raw: Raw) {
        if self.raw.insert(name, raw).is_some() {
            // Types that contain the replaced type are other types now.
            self.resolved.get_mut().clear();
        }
    }

    /// A service is a structure of request, response and event; so `rosidl` derives it since Iron.
    fn insert_service(&mut self, name: &TypeName, request: Raw, response: Raw) {
        let [q, a, e] = ["_Request", "_Response", "_Event"].map(|suffix| name.derived(suffix));
        let event = vec![
            RawField::named("info", well_known("service_msgs", "ServiceEventInfo"), Shape::Single),
            RawField::named("request", q.clone(), Shape::Bounded(1)),
            RawField::named("response", a.clone(), Shape::Bounded(1)),
        ];
        let service = vec![
            RawField::named("request_message", q.clone(), Shape::Single),
            RawField::named("response_message", a.clone(), Shape::Single),
            RawField::named("event_message", e.clone(), Shape::Single),
        ];
        self.insert(q, request);
        self.insert(a, response);
        self.insert(e, Raw { fields: event, constants: Vec::new() });
        self.insert(name.clone(), Raw { fields: service, constants: Vec::new() });
    }

    /// An action is a structure of its three messages, two services and a message that carries
    /// feedback (design.ros2.org, "Actions").
    fn insert_action(&mut self, name: &TypeName, goal: Raw, result: Raw, feedback: Raw) {
        let [g, r, f, send, get, message] =
            ["_Goal", "_Result", "_Feedback", "_SendGoal", "_GetResult", "_FeedbackMessage"]
                .map(|suffix| name.derived(suffix));
        let id = || {
            RawField::named("goal_id", well_known("unique_identifier_msgs", "UUID"), Shape::Single)
        };
        let one = |field: &str, ty: &TypeName| RawField::named(field, ty.clone(), Shape::Single);
        let of = |fields| Raw { fields, constants: Vec::new() };
        self.insert_service(
            &send,
            of(vec![id(), one("goal", &g)]),
            of(vec![
                RawField::plain("accepted", Element::Bool),
                one("stamp", &well_known("builtin_interfaces", "Time")),
            ]),
        );
        self.insert_service(
            &get,
            of(vec![id()]),
            of(vec![RawField::plain("status", Element::I8), one("result", &r)]),
        );
        self.insert(message.clone(), of(vec![id(), one("feedback", &f)]));
        self.insert(
            name.clone(),
            of(vec![
                one("goal", &g),
                one("result", &r),
                one("feedback", &f),
                one("send_goal_service", &send),
                one("get_result_service", &get),
                one("feedback_message", &message),
            ]),
        );
        self.insert(g, goal);
        self.insert(r, result);
        self.insert(f, feedback);
    }

    /// A message, or a part of a service or an action (`omir_msgs/srv/Recall_Request`).
    pub fn message(&self, name: &str) -> Result<Arc<MessageType>, InterfaceError> {
        self.resolve(&name.parse()?, None)
    }

    /// A service.
    pub fn service(&self, name: &str) -> Result<ServiceType, InterfaceError> {
        self.service_of(&of_kind(name, Kind::Srv)?)
    }

    fn service_of(&self, name: &TypeName) -> Result<ServiceType, InterfaceError> {
        let ty = self.resolve(name, None)?;
        Ok(ServiceType {
            name: name.clone(),
            request: self.resolve(&name.derived("_Request"), Some(name))?,
            response: self.resolve(&name.derived("_Response"), Some(name))?,
            event: self.resolve(&name.derived("_Event"), Some(name))?,
            hash: ty.hash,
            ty,
        })
    }

    /// An action.
    pub fn action(&self, name: &str) -> Result<ActionType, InterfaceError> {
        let name = of_kind(name, Kind::Action)?;
        let ty = self.resolve(&name, None)?;
        let part = |suffix| self.resolve(&name.derived(suffix), Some(&name));
        Ok(ActionType {
            goal: part("_Goal")?,
            result: part("_Result")?,
            feedback: part("_Feedback")?,
            send_goal: self.service_of(&name.derived("_SendGoal"))?,
            get_result: self.service_of(&name.derived("_GetResult"))?,
            feedback_message: part("_FeedbackMessage")?,
            hash: ty.hash,
            ty,
            name,
        })
    }

    /// All names that are known, those of the parts of services and actions too.
    pub fn names(&self) -> impl Iterator<Item = &TypeName> {
        self.raw.keys()
    }

    fn resolve(
        &self,
        name: &TypeName,
        needed_by: Option<&TypeName>,
    ) -> Result<Arc<MessageType>, InterfaceError> {
        let mut resolved = self.resolved.lock();
        self.resolve_in(name, needed_by, DEEPEST, &mut resolved)
    }

    fn resolve_in(
        &self,
        name: &TypeName,
        needed_by: Option<&TypeName>,
        deep: usize,
        resolved: &mut BTreeMap<TypeName, Arc<MessageType>>,
    ) -> Result<Arc<MessageType>, InterfaceError> {
        if let Some(known) = resolved.get(name) {
            return Ok(known.clone());
        }
        if deep == 0 {
            return Err(InterfaceError::Depth { name: name.to_string() });
        }
        let raw = self.raw.get(name).ok_or_else(|| InterfaceError::Unknown {
            name: name.to_string(),
            needed_by: needed_by.map(ToString::to_string),
            nearest: self.nearest(name),
        })?;
        let mut fields = Vec::with_capacity(raw.fields.len());
        for field in &raw.fields {
            let element = match &field.element {
                RawElement::Plain(element) => element.clone(),
                RawElement::Named(inner) => {
                    Element::Message(self.resolve_in(inner, Some(name), deep - 1, resolved)?)
                }
            };
            fields.push(Field {
                name: field.name.clone(),
                ty: FieldType { element, shape: field.shape },
                default: field.default.clone(),
            });
        }
        let room = fields.iter().fold(0usize, |sum, field| {
            sum.saturating_add(size_of::<Value>()).saturating_add(field.ty.room())
        });
        if room > MOST_ROOM {
            return Err(InterfaceError::TooLarge { name: name.to_string() });
        }
        let ty = Arc::new(MessageType {
            room,
            name: name.clone(),
            hash: description::hash(name, &fields),
            fields,
            constants: raw.constants.clone(),
        });
        resolved.insert(name.clone(), ty.clone());
        Ok(ty)
    }

    /// The same name elsewhere, or in the same package the name with the longest common beginning.
    fn nearest(&self, name: &TypeName) -> Option<String> {
        let elsewhere =
            self.raw.keys().find(|known| known.name().eq_ignore_ascii_case(name.name()));
        let similar = || {
            let common = |known: &TypeName| {
                known.name().bytes().zip(name.name().bytes()).take_while(|(a, b)| a == b).count()
            };
            self.raw
                .keys()
                .filter(|known| known.package() == name.package())
                .max_by_key(|known| common(known))
                .filter(|known| common(known) >= 3)
        };
        elsewhere.or_else(similar).map(ToString::to_string)
    }
}

fn well_known(package: &str, name: &str) -> TypeName {
    TypeName::known(package, Kind::Msg, name)
}

/// `package/Name` is a service where one is asked for.
fn of_kind(name: &str, kind: Kind) -> Result<TypeName, InterfaceError> {
    let parsed: TypeName = name.parse()?;
    match parsed.kind() {
        Kind::Msg if name.matches('/').count() == 1 => {
            TypeName::new(parsed.package(), kind, parsed.name())
        }
        found if found == kind => Ok(parsed),
        _ => Err(InterfaceError::Name {
            name: name.into(),
            why: match kind {
                Kind::Msg => "a message was asked for",
                Kind::Srv => "a service was asked for",
                Kind::Action => "an action was asked for",
            },
        }),
    }
}

fn gather(ty: &Arc<MessageType>, into: &mut BTreeMap<TypeName, Arc<MessageType>>) {
    if into.insert(ty.name.clone(), ty.clone()).is_none() {
        for field in &ty.fields {
            if let Element::Message(inner) = &field.ty.element {
                gather(inner, into);
            }
        }
    }
}

fn raw(ty: &MessageType) -> Raw {
    let fields = ty.fields.iter().map(|field| RawField {
        name: field.name.clone(),
        element: match &field.ty.element {
            Element::Message(inner) => RawElement::Named(inner.name.clone()),
            plain => RawElement::Plain(plain.clone()),
        },
        shape: field.ty.shape,
        default: field.default.clone(),
    });
    Raw { fields: fields.collect(), constants: ty.constants.clone() }
}

/// Lists a folder, in the order of the names.
fn entries(dir: &Path) -> Result<Vec<std::path::PathBuf>, InterfaceError> {
    let read = fs::read_dir(dir).map_err(|why| unreadable(dir, &why))?;
    let mut all = Vec::new();
    for entry in read {
        all.push(entry.map_err(|why| unreadable(dir, &why))?.path());
    }
    all.sort();
    Ok(all)
}

fn package_name(dir: &Path) -> String {
    let said = fs::read_to_string(dir.join("package.xml")).ok().and_then(|xml| {
        let (_, rest) = xml.split_once("<name>")?;
        Some(rest.split_once("</name>")?.0.trim().to_string())
    });
    said.unwrap_or_else(|| {
        let full = dir.canonicalize().unwrap_or_else(|_| dir.into());
        full.file_name().unwrap_or_default().to_string_lossy().into_owned()
    })
}

fn unreadable(path: &Path, why: &std::io::Error) -> InterfaceError {
    InterfaceError::Unreadable { path: path.into(), why: why.to_string() }
}
