//! A document, checked entry by entry: what it costs is its names, not its size.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::bundle;
use super::edges::Edges;
use super::fault::{Fault, FaultCode, Level};
use super::names::{NONE, Names};
use super::references::References;
use super::schema;
use super::uri::is_absolute_uri;
use super::walk::{self, At, MOST_FAULTS, id_shown, quoted};
use crate::profile::{self, Profile};
use crate::reference::ResourceType;
use crate::value::{Map, Value};

/// Demands on a document.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// The level of conformance.
    pub level: Level,
    /// Refuse the draft fields, as releases of R1 without them do.
    pub plain_r1: bool,
    /// Profiles that are checked where a resource claims them.
    pub profiles: &'a [Profile],
    /// URLs of profiles that every resource they speak of must claim. If there are any, a claimed
    /// profile that is not among `profiles` is an error, because it cannot be checked.
    pub required: &'a [String],
}

/// A fault, with what a report says about its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Rule, pointer and message.
    pub fault: Fault,
    /// The entry it is in; `None` for the envelope.
    pub entry: Option<Subject>,
    /// The value at the pointer, unless it is an object or an array.
    pub value: Option<Value>,
}

/// An entry, as reports name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Position in the document.
    pub index: usize,
    /// Its stated type, if that is text.
    pub resource_type: Option<String>,
    /// Its stated id, if that is text.
    pub id: Option<String>,
}

/// The value at `entry` of a document.
#[derive(Clone, Copy, Debug)]
pub enum Entries<'v> {
    /// Nothing.
    Absent,
    /// An array; its items were given to [`Checker::entry`].
    Array,
    /// Something else.
    Other(&'v Value),
}

/// The kind of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum DocumentKind {
    /// A Bundle; the sink has its findings.
    Bundle(Summary),
    /// No Bundle. This is all there is to say: what the sink was given before is void.
    NotABundle(Finding),
}

/// Contents of a Bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Entries, also those that are no resource.
    pub entries: usize,
    /// Resources, in the order of [`ResourceType::ALL`].
    pub by_type: [usize; ResourceType::ALL.len()],
    /// References that lead where they must.
    pub references: usize,
    /// Resources with `meta`.
    pub with_meta: usize,
    /// Occurrences of each draft field, as `Type.field`.
    pub drafts: BTreeMap<String, usize>,
    /// Number of resources that claim each profile, by URL.
    pub claims: BTreeMap<String, usize>,
}

/// Claimed profiles that are counted by name; a hostile document could name a new one each time.
const MOST_CLAIMS: usize = 1000;

/// Checks a document that is handed over entry by entry.
///
/// What must be known of all entries is kept: their names and the references that lead to later ones.
#[derive(Default)]
pub struct Checker<'a> {
    options: Options<'a>,
    names: Names,
    references: References,
    edges: Edges,
    summary: Summary,
    faults: Vec<Fault>,
}

impl<'a> Checker<'a> {
    /// A checker that has seen nothing yet.
    pub fn new(options: Options<'a>) -> Self {
        Self { options, ..Self::default() }
    }

    /// Checks the next entry. What concerns other entries is found out at the end.
    pub fn entry(&mut self, entry: &Value, sink: &mut dyn FnMut(Finding)) {
        let index = self.summary.entries;
        self.summary.entries += 1;
        let root = At::base("/");
        let entries = root.name("entry");
        let at = entries.index(index);
        let kind = walk::resource(entry, &at, self.options.plain_r1, &mut self.faults);
        if let (Some(kind), Some(map)) = (kind, entry.as_object()) {
            self.resource(kind, entry, map, index, &at);
        }
        if self.faults.is_empty() {
            return;
        }
        let text = |name| entry.get(name).and_then(Value::as_str).map(String::from);
        let subject = Subject { index, resource_type: text("resourceType"), id: text("id") };
        let base = format!("/entry/{index}");
        for fault in self.faults.drain(..) {
            let inside = fault.pointer.strip_prefix(&base);
            let value = inside.and_then(|pointer| scalar(entry, pointer));
            sink(Finding { fault, entry: Some(subject.clone()), value });
        }
    }

    fn resource(
        &mut self,
        kind: ResourceType,
        entry: &Value,
        map: &Map,
        index: usize,
        at: &At<'_>,
    ) {
        let summary = &mut self.summary;
        summary.by_type[schema::position(kind)] += 1;
        let mut name = NONE;
        if let Some(id) = map.get("id").and_then(Value::as_str) {
            name = self.names.intern(kind, id);
            if let Some(first) = self.names.declare(name, index) {
                let id = id_shown(id);
                let message = format!(
                    "{kind}/{id} is already the id of /entry/{first}; ids are unique within a type"
                );
                let fault = at.name("id").fault(FaultCode::DuplicateId, message);
                self.faults.push(fault.at_level(self.options.level));
            }
        }
        if map.contains_key("meta") {
            summary.with_meta += 1;
        } else {
            let code = match self.options.level {
                Level::Core => FaultCode::MetaAbsent,
                Level::Strict => FaultCode::MetaRequired,
            };
            let message = "no \"meta\"; add \"meta\": {\"omirVersion\": \"R1\"}";
            self.faults.push(at.fault(code, message));
        }
        for field in super::draft_fields(kind).filter(|field| map.contains_key(field)) {
            *summary.drafts.entry(format!("{kind}.{field}")).or_default() += 1;
        }
        self.references.note(&mut self.names, kind, map, index, name);
        // Plain R1 has no strengths to sum.
        if kind == ResourceType::Relationship && !self.options.plain_r1 {
            self.edges.note(&mut self.names, map, index, name);
        }
        self.profiles(kind, entry, at);
    }

    fn profiles(&mut self, kind: ResourceType, entry: &Value, at: &At<'_>) {
        let claims = entry.pointer("/meta/profile").and_then(Value::as_array).unwrap_or_default();
        let claimed = |url: &str| claims.iter().any(|claim| claim.as_str() == Some(url));
        for url in claims.iter().filter_map(Value::as_str) {
            let counts = &mut self.summary.claims;
            if let Some(count) = counts.get_mut(url) {
                *count += 1;
            } else if counts.len() < MOST_CLAIMS {
                counts.insert(url.into(), 1);
            }
        }
        let profiles = self.options.profiles;
        for profile in profiles.iter().filter(|profile| claimed(&profile.url)) {
            profile.check_at(kind, entry, at, &mut self.faults);
            self.faults.truncate(2 * MOST_FAULTS);
        }
        if self.options.required.is_empty() {
            return;
        }
        for (index, url) in claims.iter().enumerate().take(MOST_FAULTS) {
            // A claim that is no URI has been reported as such.
            let Some(url) = url.as_str().filter(|url| is_absolute_uri(url)) else { continue };
            if !profile::BUILTIN.contains(&url) && !profiles.iter().any(|known| known.url == url) {
                let url = quoted(url);
                let message =
                    format!("profile {url} is not known here; load it with --profile FILE");
                let (meta, code) = (at.name("meta"), FaultCode::UnknownProfile);
                self.faults.push(meta.name("profile").index(index).fault(code, message));
            }
        }
        for url in self.options.required {
            let known = profiles.iter().find(|profile| profile.url == *url);
            if known.is_none_or(|profile| profile.applies_to(kind)) && !claimed(url) {
                let message = format!("does not claim the required profile {url} in meta.profile");
                self.faults.push(at.fault(FaultCode::ProfileNotClaimed, message));
            }
        }
    }

    /// Checks what is left when all entries were seen: the envelope, given as the members of the
    /// document without `entry`, and what holds between entries.
    pub fn finish(
        mut self,
        envelope: &Map,
        entries: Entries<'_>,
        sink: &mut dyn FnMut(Finding),
    ) -> DocumentKind {
        match self.envelope(envelope, entries, sink) {
            None => DocumentKind::Bundle(self.resolve(sink)),
            Some(finding) => DocumentKind::NotABundle(finding),
        }
    }

    /// Checks the envelope; what is returned says that the document is no Bundle.
    pub(super) fn envelope(
        &mut self,
        envelope: &Map,
        entries: Entries<'_>,
        sink: &mut dyn FnMut(Finding),
    ) -> Option<Finding> {
        let mut whole = envelope.clone();
        match entries {
            Entries::Absent => {}
            Entries::Array => drop(whole.insert("entry", Value::Array(Vec::new()))),
            Entries::Other(value) => drop(whole.insert("entry", value.clone())),
        }
        let whole = Value::Object(whole);
        let located = |fault: Fault| {
            let value = scalar(&whole, &fault.pointer);
            Finding { fault, entry: None, value }
        };
        let mut faults = Vec::new();
        match bundle::envelope(&whole, self.options.plain_r1, &mut faults) {
            Some(map) => {
                for field in schema::BUNDLE.fields.iter().filter(|field| field.draft) {
                    if map.contains_key(field.name) {
                        self.summary.drafts.insert(format!("Bundle.{}", field.name), 1);
                    }
                }
                faults.into_iter().map(located).for_each(sink);
                None
            }
            None => Some(not_a_bundle(faults, located)),
        }
    }

    /// Rules between entries.
    pub(super) fn resolve(mut self, sink: &mut dyn FnMut(Finding)) -> Summary {
        self.summary.references = self.references.resolve(&mut self.names, sink);
        self.edges.judge(&self.names, sink);
        self.summary
    }
}

/// A document that is no object has one finding.
fn not_a_bundle(faults: Vec<Fault>, located: impl Fn(Fault) -> Finding) -> Finding {
    let fault = faults.into_iter().next();
    let unexplained = || Fault::new("/", FaultCode::NotABundle, "a Bundle is expected");
    located(fault.unwrap_or_else(unexplained))
}

fn scalar(within: &Value, pointer: &str) -> Option<Value> {
    let value = within.pointer(pointer)?;
    (value.as_object().is_none() && value.as_array().is_none()).then(|| value.clone())
}

/// Everything there is to say about a whole document, in the order envelope, entries, references.
///
/// A document that is no Bundle at all gets one finding and no summary.
pub fn check_document(value: &Value, options: Options<'_>) -> (Vec<Finding>, Option<Summary>) {
    let mut findings = Vec::new();
    let Some(map) = value.as_object() else {
        let mut faults = Vec::new();
        bundle::envelope(value, options.plain_r1, &mut faults);
        let located = |fault| Finding { fault, entry: None, value: scalar(value, "") };
        return (alloc::vec![not_a_bundle(faults, located)], None);
    };
    let mut envelope = Map::new();
    for (name, member) in map.iter().filter(|(name, _)| *name != "entry") {
        envelope.insert(name, member.clone());
    }
    let (entries, items) = match map.get("entry") {
        None => (Entries::Absent, None),
        Some(Value::Array(items)) => (Entries::Array, Some(items)),
        Some(other) => (Entries::Other(other), None),
    };
    let mut checker = Checker::new(options);
    if let Some(finding) = checker.envelope(&envelope, entries, &mut |one| findings.push(one)) {
        return (alloc::vec![finding], None);
    }
    for entry in items.into_iter().flatten() {
        checker.entry(entry, &mut |one| findings.push(one));
    }
    let summary = checker.resolve(&mut |one| findings.push(one));
    (findings, Some(summary))
}
