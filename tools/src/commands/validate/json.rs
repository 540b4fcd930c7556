//! Reports for programs: one JSON object on a line for each file.
//!
//! The findings stand behind their counts, so they wait: in memory while they are few, then in a
//! temporary file.

use std::io::{self, Seek as _, Write};

use omir_core::json;
use omir_core::reference::ResourceType;
use omir_core::validate::{Finding, Level};
use omir_core::value::{Map, Value};
use tempfile::{SpooledTempFile, spooled_tempfile};

use super::Report;
use super::check::Verdict;
use super::tally::Check;
use crate::output::object;

/// Findings of this many bytes wait in memory.
const IN_MEMORY: usize = 1 << 20;

/// Findings are handed to the disk in portions of about this many bytes.
const PORTION: usize = 64 * 1024;

/// The findings of one file, written but not yet seen.
pub(super) struct Lines {
    spool: SpooledTempFile,
    portion: String,
    /// Those of the envelope come last and stand first.
    of_envelope: Vec<String>,
    failure: Option<io::Error>,
}

impl Lines {
    pub(super) fn new() -> Self {
        Self {
            spool: spooled_tempfile(IN_MEMORY),
            portion: String::new(),
            of_envelope: Vec::new(),
            failure: None,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.spool.write_all(self.portion.as_bytes())?;
        self.portion.clear();
        Ok(())
    }
}

impl Report for Lines {
    fn finding(&mut self, finding: Finding) {
        let text = json::to_string(&described(&finding));
        if finding.entry.is_none() {
            self.of_envelope.push(text);
            return;
        }
        // Each begins with the comma that separates it from the one before.
        self.portion.push(',');
        self.portion.push_str(&text);
        if self.portion.len() >= PORTION
            && let Err(why) = self.flush()
        {
            // Told when the report is written; until then there is no report to tell it in.
            self.failure.get_or_insert(why);
            self.portion.clear();
        }
    }

    fn clear(&mut self) {
        *self = Self::new();
    }

    fn write(&mut self, verdict: &Verdict<'_>, out: &mut dyn Write) -> io::Result<()> {
        if let Some(why) = self.failure.take() {
            return Err(why);
        }
        self.flush()?;
        let head = json::to_string(&head(verdict));
        let open = head.strip_suffix('}').unwrap_or(&head);
        write!(out, "{open},\"findings\":[{}", self.of_envelope.join(","))?;
        self.spool.rewind()?;
        if self.of_envelope.is_empty() {
            // Past the first comma, if there is any.
            self.spool.seek_relative(1)?;
        }
        io::copy(&mut self.spool, out)?;
        let core = !verdict.tally.breaks_core;
        writeln!(out, "],\"coreConformant\":{core},\"badgeEligible\":{core}}}")
    }
}

/// The report up to its findings.
fn head(verdict: &Verdict<'_>) -> Value {
    let empty = Default::default();
    let found = verdict.summary.as_ref().unwrap_or(&empty);
    let by_type: Map = ResourceType::ALL
        .into_iter()
        .zip(found.by_type)
        .filter(|(_, count)| *count > 0)
        .map(|(kind, count)| (kind.as_str(), count))
        .collect();
    let mut summary = Map::new();
    summary.insert("entriesTotal", found.entries);
    summary.insert("entriesByType", by_type);
    summary.insert("errors", verdict.tally.errors);
    summary.insert("warnings", verdict.tally.warnings);
    summary.insert("info", verdict.tally.remarks);
    if !found.drafts.is_empty() {
        let drafts = found.drafts.iter().map(|(field, count)| (field.as_str(), *count));
        summary.insert("draftFields", drafts.collect::<Map>());
    }
    let checks: Map =
        Check::ALL.into_iter().map(|check| (check.key(), verdict.state_of(check))).collect();
    object([
        ("report", "OMIRConformanceReport".into()),
        ("omirValidateVersion", env!("CARGO_PKG_VERSION").into()),
        ("schemaRelease", "R1".into()),
        ("target", verdict.target.as_str().into()),
        ("level", level_name(verdict.options.level).into()),
        ("result", if verdict.passes() { "pass" } else { "fail" }.into()),
        ("summary", summary.into()),
        ("checks", checks.into()),
    ])
}

/// The word of the option.
pub(super) fn level_name(level: Level) -> &'static str {
    match level {
        Level::Core => "core",
        Level::Strict => "strict",
    }
}

fn described(finding: &Finding) -> Value {
    let fault = &finding.fault;
    let mut members = Map::new();
    members.insert("code", fault.code.as_str());
    members.insert("severity", fault.severity().as_str());
    members.insert("check", Check::of(fault).key());
    if let Some(subject) = &finding.entry {
        let mut entry = Map::new();
        entry.insert("index", subject.index);
        for (name, text) in [("resourceType", &subject.resource_type), ("id", &subject.id)] {
            if let Some(text) = text {
                entry.insert(name, text.as_str());
            }
        }
        members.insert("entry", entry);
    }
    members.insert("path", fault.pointer.as_str());
    if let Some(value) = &finding.value {
        members.insert("value", value.clone());
    }
    members.insert("message", fault.message.as_str());
    Value::Object(members)
}
