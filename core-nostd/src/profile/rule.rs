//! One rule of a profile: the types it applies to, and the test that they must or should pass.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::model::Extension;
use crate::number::Number;
use crate::pointer;
use crate::reference::ResourceType;
use crate::spatial::{SPATIAL_POSE_URL, SpatialPose};
use crate::validate::{
    At, Fault, FaultCode, Field, Range, Shape, Table, closed, closest, may, need,
    resource as resource_table,
};
use crate::value::{Value, from_value};

const TYPES: &[&str] = &["MemoryRecord", "Entity", "Relationship", "Episode"];
const TESTS: Shape = Shape::List(&Shape::Object(&TEST));

pub(super) static RULE: Table = closed(
    "Rule",
    "One constraint",
    &[
        need("on", Shape::List(&Shape::Words(TYPES)), "Types it speaks of"),
        may("when", TESTS, "It applies only if all of these hold"),
        may("unless", TESTS, "It does not apply if one of these holds"),
        may("must", Shape::Object(&TEST), "Broken by what does not pass (E400)"),
        may("should", Shape::Object(&TEST), "Advised against what does not pass (W403)"),
        may("why", Shape::Text, "Reason, shown with a fault"),
    ],
);

static TEST: Table = closed(
    "Test",
    "A question about a resource",
    &[
        may("path", Shape::SomeText, "JSON Pointer to the field it is about"),
        may("present", Shape::Flag, "Whether the field is there"),
        may("in", Shape::List(&Shape::Text), "The field is one of these"),
        may("contains", Shape::List(&Shape::Text), "The array holds one of these"),
        may("atLeast", Shape::Number(Range::All), "Least value of the field"),
        may("atMost", Shape::Number(Range::All), "Greatest value of the field"),
        may("extension", Shape::Uri, "An extension with this URL is there"),
        may("poses", Shape::Words(&["valid"]), "Every spatial pose is one"),
    ],
);

/// See the module [`profile`](super).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rule {
    pub(super) on: Vec<ResourceType>,
    when: Vec<Test>,
    unless: Vec<Test>,
    test: Test,
    code: FaultCode,
    why: String,
}

#[derive(Clone, Debug, PartialEq)]
enum Test {
    /// A field, by its path.
    Field(String, Check),
    Extension(String),
    Poses,
}

#[derive(Clone, Debug, PartialEq)]
enum Check {
    Present,
    Absent,
    In(Vec<String>),
    Contains(Vec<String>),
    Between(Option<Number>, Option<Number>),
}

impl Rule {
    /// Reads a rule that fits [`RULE`].
    pub(super) fn read(value: &Value, at: &At<'_>, faults: &mut Vec<Fault>) -> Option<Self> {
        let on = texts(value, "on").iter().filter_map(|name| name.parse().ok()).collect::<Vec<_>>();
        if on.is_empty() {
            faults.push(at.name("on").fault(FaultCode::Schema, "name at least one type"));
        }
        let when = Test::read_all(value, "when", &on, at, faults);
        let unless = Test::read_all(value, "unless", &on, at, faults);
        let (name, test, code) = match (value.get("must"), value.get("should")) {
            (Some(must), None) => ("must", must, FaultCode::Profile),
            (None, Some(should)) => ("should", should, FaultCode::ProfileAdvice),
            _ => {
                let message = "a rule has either \"must\" or \"should\"";
                faults.push(at.fault(FaultCode::Schema, message));
                return None;
            }
        };
        let test = Test::read(test, &on, &at.name(name), faults)?;
        let why = value.get("why").and_then(Value::as_str).unwrap_or_default().to_string();
        Some(Self { on, when, unless, test, code, why })
    }

    /// Checks a resource of one of its types.
    pub(super) fn check(&self, profile: &str, resource: &Value, at: &At<'_>, out: &mut Vec<Fault>) {
        let holds = |test: &Test| test.complaints(resource, at).is_empty();
        if !self.when.iter().all(holds) || self.unless.iter().any(holds) {
            return;
        }
        for (pointer, complaint) in self.test.complaints(resource, at) {
            let mut message = format!("{profile}: {complaint}");
            if !self.why.is_empty() {
                message.push_str(&format!("; {}", self.why));
            }
            out.push(Fault::new(pointer, self.code, message));
        }
    }
}

impl Test {
    fn read_all(
        rule: &Value,
        name: &str,
        on: &[ResourceType],
        at: &At<'_>,
        faults: &mut Vec<Fault>,
    ) -> Vec<Self> {
        let at = at.name(name);
        let tests = rule.get(name).and_then(Value::as_array).unwrap_or_default();
        let tests = tests.iter().enumerate();
        tests.filter_map(|(index, test)| Self::read(test, on, &at.index(index), faults)).collect()
    }

    fn read(
        value: &Value,
        on: &[ResourceType],
        at: &At<'_>,
        faults: &mut Vec<Fault>,
    ) -> Option<Self> {
        let members: Vec<&str> =
            value.as_object().into_iter().flatten().map(|(name, _)| name).collect();
        let has = |name: &str| members.contains(&name);
        let number = |name| value.get(name).and_then(Value::as_number).cloned();
        let mut words = |name: &str| {
            let words = texts(value, name);
            if words.is_empty() {
                let message = "an empty list lets nothing pass; name at least one value";
                faults.push(at.name(name).fault(FaultCode::Schema, message));
            }
            words
        };
        let test = match (value.get("path").and_then(Value::as_str), members.len()) {
            (Some(path), 2) if has("present") => {
                let is_present = value.get("present").and_then(Value::as_bool) == Some(true);
                let check = if is_present { Check::Present } else { Check::Absent };
                Some(Self::Field(path.to_string(), check))
            }
            (Some(path), 2) if has("in") => {
                Some(Self::Field(path.to_string(), Check::In(words("in"))))
            }
            (Some(path), 2) if has("contains") => {
                Some(Self::Field(path.to_string(), Check::Contains(words("contains"))))
            }
            (Some(path), 2 | 3)
                if members.iter().all(|name| matches!(*name, "path" | "atLeast" | "atMost")) =>
            {
                let range = Check::Between(number("atLeast"), number("atMost"));
                Some(Self::Field(path.to_string(), range))
            }
            (None, 1) if has("extension") => value
                .get("extension")
                .and_then(Value::as_str)
                .map(|url| Self::Extension(url.into())),
            (None, 1) if has("poses") => Some(Self::Poses),
            _ => {
                let message = "a test is about one thing: \"path\" with one of \"present\", \"in\", \
                               \"contains\" or a range; or \"extension\"; or \"poses\"";
                faults.push(at.fault(FaultCode::Schema, message));
                None
            }
        };
        if let Some(Self::Field(path, _)) = &test
            && let Err(complaint) = check_path(path, on)
        {
            faults.push(at.name("path").fault(FaultCode::Schema, complaint.to_string()));
            return None;
        }
        test
    }

    /// The obstacle of a resource: pointer and words. Empty if it passes.
    fn complaints(&self, resource: &Value, at: &At<'_>) -> Vec<(String, String)> {
        let here = || pointer::displayed(&at.pointer()).to_string();
        match self {
            Self::Field(path, check) => {
                let found = resource.pointer(path);
                let place = match found {
                    Some(_) => format!("{}{path}", at.pointer()),
                    None => pointer::displayed(&holder(resource, path, &at.pointer())).to_string(),
                };
                check
                    .complaint(path, found)
                    .map(|complaint| (place, complaint))
                    .into_iter()
                    .collect()
            }
            Self::Extension(url) => {
                let is_there = extensions(resource)
                    .any(|(_, one)| one.get("url").and_then(Value::as_str) == Some(url));
                let complaint = || (here(), format!("the extension {url} is missing"));
                if is_there { Vec::new() } else { alloc::vec![complaint()] }
            }
            Self::Poses => {
                let at = at.name("extension");
                let mut complaints = Vec::new();
                for (index, one) in extensions(resource) {
                    if one.get("url").and_then(Value::as_str) != Some(SPATIAL_POSE_URL) {
                        continue;
                    }
                    // A value that is no extension has been reported against the schema.
                    let Ok(extension) = from_value::<Extension>(one.clone()) else { continue };
                    let faults = SpatialPose::from_extension(&extension).err().unwrap_or_default();
                    complaints.extend(faults.into_iter().map(|fault| {
                        let inner = fault.pointer.strip_suffix('/').unwrap_or(&fault.pointer);
                        (format!("{}{inner}", at.index(index).pointer()), fault.message)
                    }));
                }
                complaints
            }
        }
    }
}

impl Check {
    fn complaint(&self, path: &str, found: Option<&Value>) -> Option<String> {
        let name = path.trim_start_matches('/').replace('/', ".");
        let text = found.and_then(Value::as_str);
        match self {
            Self::Present => found.is_none().then(|| format!("\"{name}\" is missing")),
            Self::Absent => found.is_some().then(|| format!("\"{name}\" is not allowed here")),
            Self::In(words) => {
                let is_one = text.is_some_and(|text| words.iter().any(|word| word == text));
                let complaint = || match found {
                    Some(_) => format!("\"{name}\" is not one of {}", words.join(", ")),
                    None => format!("\"{name}\" is missing; one of {}", words.join(", ")),
                };
                (!is_one).then(complaint)
            }
            Self::Contains(words) => {
                let items = found.and_then(Value::as_array).unwrap_or_default();
                let holds = |item: &Value| words.iter().any(|word| item.as_str() == Some(word));
                let complaint = || format!("\"{name}\" holds none of {}", words.join(", "));
                (!items.iter().any(holds)).then(complaint)
            }
            Self::Between(low, high) => {
                let number = found.and_then(Value::as_number);
                let lies_within = number.is_some_and(|number| {
                    let number = number.as_f64();
                    low.as_ref().is_none_or(|low| number >= low.as_f64())
                        && high.as_ref().is_none_or(|high| number <= high.as_f64())
                });
                let end = |end: &Option<Number>| {
                    end.as_ref().map_or_else(|| "any".to_string(), ToString::to_string)
                };
                let complaint = || format!("\"{name}\" is not in [{}, {}]", end(low), end(high));
                (!lies_within).then(complaint)
            }
        }
    }
}

fn texts(value: &Value, name: &str) -> Vec<String> {
    let items = value.get(name).and_then(Value::as_array).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(ToString::to_string).collect()
}

fn extensions(resource: &Value) -> impl Iterator<Item = (usize, &Value)> {
    let items = resource.get("extension").and_then(Value::as_array).unwrap_or_default();
    items.iter().enumerate()
}

/// Pointer to the innermost object on the way to `path` that is there.
fn holder(resource: &Value, path: &str, base: &str) -> String {
    let mut end = path.len();
    while let Some(slash) = path[..end].rfind('/') {
        end = slash;
        if resource.pointer(&path[..end]).is_some() {
            break;
        }
    }
    format!("{base}{}", &path[..end])
}

/// A path that leads to no field.
enum BadPath<'a> {
    NoPointer(&'a str),
    Unknown { kind: ResourceType, path: &'a str, token: String, nearest: Option<&'static str> },
}

impl fmt::Display for BadPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPointer(path) => {
                write!(f, "{path:?} is no JSON Pointer; it begins with a slash, as \"/eventTime\"")
            }
            Self::Unknown { kind, path, token, nearest } => {
                write!(f, "{kind} has no field {path:?} ({token:?} is unknown)")?;
                nearest.map_or(Ok(()), |near| write!(f, "; did you mean \"{near}\"?"))
            }
        }
    }
}

/// Checks that the schema of each type has the field.
fn check_path<'a>(path: &'a str, on: &[ResourceType]) -> Result<(), BadPath<'a>> {
    if !path.starts_with('/') {
        return Err(BadPath::NoPointer(path));
    }
    for kind in on {
        let mut table = Some(resource_table(*kind));
        for token in pointer::tokens(path) {
            let fields: &[Field] = table.map(|table| table.fields).unwrap_or_default();
            let Some(field) = fields.iter().find(|field| field.name == token) else {
                let nearest = closest(&token, fields.iter().map(|field| field.name));
                let token = token.to_string();
                return Err(BadPath::Unknown { kind: *kind, path, token, nearest });
            };
            table = match &field.shape {
                Shape::Object(table) => Some(table),
                _ => None,
            };
        }
    }
    Ok(())
}
