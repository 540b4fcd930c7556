//! An experience as resources of OMIR: one record, and the entities and relationships that it needs.
//!
//! `docs/experience.md`, "On the card", has the table. Entities and relationships are sent only where they are not there yet, so
//! that a strength that use has built up stays.

use std::time::Duration;

use omir_core::extension::EXPERIENCE_URL;
use omir_core::instant::Timestamp;
use omir_core::reference::Ref;
use omir_core::spatial::SpatialPose;
use omir_core::value::{Map, Value};

use crate::experience::Experience;
use crate::ids::{ANY_DOMAIN, Tenant};
use crate::ingest::Report;
use crate::settings::ExperienceSettings;

/// Bytes of the text that an experience is found by.
const MOST_WORDS: usize = 8 << 10;
/// The nodes of which each pair is related: 28 relationships.
const MOST_RELATED: usize = 8;

/// The values of the extension that the body of an experience lies in.
pub(crate) struct Stored<'v> {
    pub(crate) record: &'v Value,
    pub(crate) experience_id: &'v str,
    pub(crate) digest: &'v str,
    pub(crate) request_id: &'v str,
    pub(crate) status: &'v str,
    pub(crate) patterns: Vec<&'v str>,
    pub(crate) related: Vec<&'v str>,
    /// `createdAt` of the resource.
    pub(crate) created_at: &'v str,
}

impl<'v> Stored<'v> {
    /// Reads a resource, or returns `None` where it holds no experience.
    pub(crate) fn of(resource: &'v Value) -> Option<Self> {
        let extensions = resource.get("extension")?.as_array()?;
        let is_ours = |extension: &&Value| {
            extension.get("url").and_then(Value::as_str) == Some(EXPERIENCE_URL)
        };
        let value = extensions.iter().find(is_ours)?.get("valueJson")?;
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let texts = |name: &str| -> Vec<&'v str> {
            let list = value.get(name).and_then(Value::as_array);
            list.into_iter().flatten().filter_map(Value::as_str).collect()
        };
        Some(Self {
            record: value.get("record")?,
            experience_id: text("experienceId")?,
            digest: text("digest")?,
            request_id: text("requestId")?,
            status: text("status")?,
            patterns: texts("patterns"),
            related: texts("related"),
            created_at: resource.get("createdAt")?.as_str()?,
        })
    }
}

/// The facts about a submission that are not in its record.
pub(crate) struct RecordingContext<'a> {
    pub(crate) now: Timestamp,
    /// The name of the key that it came with.
    pub(crate) source: &'a str,
    pub(crate) related: &'a [String],
    /// The evidence that goes on from an older version, if there is one.
    pub(crate) later: Option<LaterEvidence>,
    /// `recorded` or `updated`.
    pub(crate) status: &'static str,
    /// The pose of the robot, where it is known.
    pub(crate) pose: Option<SpatialPose>,
}

/// The evidence for and against an experience that came after it: what feedback has told, beside the prior of the report.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct LaterEvidence {
    alpha: f64,
    beta: f64,
}

impl LaterEvidence {
    /// Draws it from a stored experience.
    pub(crate) fn of(resource: &Value, experience: &Experience<'_>) -> Self {
        let (alpha, beta) = prior(experience);
        let since = |pointer: &str, prior: u8| {
            let stored = resource.pointer(pointer).and_then(Value::as_f64);
            stored.map_or(0.0, |stored| (stored - f64::from(prior)).max(0.0))
        };
        Self { alpha: since("/confidence/alpha", alpha), beta: since("/confidence/beta", beta) }
    }
}

/// Returns the record, and the entities and relationships that it refers to, of which `is_there` says that they are stored.
pub(crate) fn resources(
    report: &Report,
    experience: &Experience<'_>,
    told: &Value,
    settings: &ExperienceSettings,
    context: RecordingContext<'_>,
    is_there: impl Fn(&Ref) -> bool,
) -> (Value, Vec<Value>) {
    let Report { tenant, patterns, .. } = report;
    let mut named = Named { is_there, mentions: Vec::new(), new: Vec::new() };
    named.entity(tenant.entity(), tenant.name(), "other", &[]);
    let domain = experience.domain.unwrap_or(ANY_DOMAIN);
    named.entity(tenant.domain(domain), domain, "other", &[]);
    let mut nodes: Vec<Ref> = Vec::new();
    for node in &experience.nodes {
        let name = tenant.node(node.node_type, node.reference);
        if nodes.contains(&name) {
            continue;
        }
        let label = if matches!(node.node_type, "tool" | "api") { "technology" } else { "other" };
        let shown = if node.reference.is_empty() { node.node_type } else { node.reference };
        let attributes = [("type", node.node_type), ("ref", node.reference)];
        named.entity(name.clone(), shown, label, &attributes);
        nodes.push(name);
    }
    for slug in patterns {
        named.entity(tenant.pattern(slug), &slug.replace('_', " "), "concept", &[("slug", slug)]);
    }
    if experience.success {
        let first = &nodes[..nodes.len().min(MOST_RELATED)];
        for (at, a) in first.iter().enumerate() {
            first[at + 1..].iter().for_each(|b| named.used_with(tenant, a, b));
        }
    }
    let record = record(report, experience, told, settings, context, named.mentions);
    (record, named.new)
}

/// Entities and relationships that an experience names.
struct Named<F> {
    is_there: F,
    mentions: Vec<Ref>,
    new: Vec<Value>,
}

impl<F: Fn(&Ref) -> bool> Named<F> {
    fn entity(&mut self, target: Ref, name: &str, label: &str, attributes: &[(&str, &str)]) {
        if !(self.is_there)(&target) {
            let mut map = head(&target);
            map.insert("name", name);
            map.insert("labels", vec![label]);
            if !attributes.is_empty() {
                map.insert("attributes", attributes.iter().copied().collect::<Map>());
            }
            self.new.push(map.into());
        }
        self.mentions.push(target);
    }

    fn used_with(&mut self, tenant: &Tenant, a: &Ref, b: &Ref) {
        let target = tenant.pair(a, b);
        if (self.is_there)(&target) {
            return;
        }
        let (from, to) = if a <= b { (a, b) } else { (b, a) };
        let mut map = head(&target);
        map.insert("from", reference(from));
        map.insert("to", reference(to));
        map.insert("relationType", "used_with");
        map.insert("strength", 0.5);
        self.new.push(map.into());
    }
}

fn record(
    report: &Report,
    experience: &Experience<'_>,
    told: &Value,
    settings: &ExperienceSettings,
    context: RecordingContext<'_>,
    mentions: Vec<Ref>,
) -> Value {
    let RecordingContext { now, source, related, later, status, pose } = context;
    let Report { tenant, request_id, task_id, digest, patterns } = report;
    let mut map = head(&tenant.experience(task_id));
    map.insert("content", experience.words(MOST_WORDS));
    map.insert("kind", "memory");
    map.insert("experienceType", if experience.success { "task" } else { "error" });
    map.insert("eventTime", experience.finished_at);
    map.insert("importance", experience.quality.unwrap_or(0.5));
    map.insert("confidence", confidence(experience, later.unwrap_or_default()));
    // A new version without it has that of the old one: it is as anchored and as often used.
    if later.is_none() {
        let half_life = [("halfLifeHours", settings.half_life_hours)];
        map.insert("decay", half_life.into_iter().collect::<Map>());
    }
    let provenance = [
        ("source", source),
        ("sourceType", "experience"),
        ("externalId", &format!("experience:{task_id}")),
    ];
    map.insert("provenance", provenance.into_iter().collect::<Map>());
    map.insert("entityRefs", mentions.iter().map(reference).collect::<Vec<Value>>());
    if let Some(until) = settings.retention.and_then(|kept| after(now, kept)) {
        map.insert("validUntil", until.writable().to_string());
    }
    let mut body = Map::new();
    body.insert("record", told.clone());
    body.insert("experienceId", tenant.experience_id(task_id));
    body.insert("patterns", texts(patterns));
    body.insert("related", texts(related));
    body.insert("digest", digest.as_str());
    body.insert("requestId", request_id.as_str());
    body.insert("status", status);
    let mut extension = Map::new();
    extension.insert("url", EXPERIENCE_URL);
    extension.insert("valueJson", body);
    let mut extensions = vec![Value::from(extension)];
    if let Some(pose) = pose {
        let mut extension = Map::new();
        extension.insert("url", omir_core::spatial::SPATIAL_POSE_URL);
        extension.insert("valueJson", pose.to_value());
        extensions.push(extension.into());
    }
    map.insert("extension", extensions);
    map.into()
}

/// Evidence that doing it so works: one for the result, and one for a validation that says so too.
fn prior(experience: &Experience<'_>) -> (u8, u8) {
    let (mut alpha, mut beta) = if experience.success { (2_u8, 1_u8) } else { (1, 2) };
    match experience.passed {
        Some(true) => alpha += 1,
        Some(false) => beta += 1,
        None => {}
    }
    (alpha, beta)
}

fn confidence(experience: &Experience<'_>, later: LaterEvidence) -> Map {
    let (alpha, beta) = prior(experience);
    let sum = |prior: u8, later: f64| match later {
        0.0 => Value::from(prior),
        later => Value::from(f64::from(prior) + later),
    };
    [("alpha", sum(alpha, later.alpha)), ("beta", sum(beta, later.beta))].into_iter().collect()
}

fn head(target: &Ref) -> Map {
    [("resourceType", target.kind.as_str()), ("id", target.id.as_str())].into_iter().collect()
}

fn reference(target: &Ref) -> Value {
    [("ref", target.to_string())].into_iter().collect::<Map>().into()
}

fn texts(list: &[String]) -> Value {
    list.iter().map(String::as_str).collect()
}

fn after(now: Timestamp, kept: Duration) -> Option<Timestamp> {
    now.checked_add_micros(i64::try_from(kept.as_micros()).ok()?)
}
