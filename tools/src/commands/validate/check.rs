//! One document, read part by part and judged.

use std::path::Path;

use omir_core::stream::Event;
use omir_core::validate::{
    Checker, DocumentKind, Entries, Finding, Options, Summary, check_document,
};
use omir_core::value::{Map, Value};

use super::Report;
use super::tally::{Check, Tally};
use crate::document::Parts;
use crate::error::Result;

/// Findings about one document.
#[derive(Debug)]
pub(super) struct Verdict<'a> {
    /// The checked file, as it was named.
    pub(super) target: String,
    pub(super) options: Options<'a>,
    /// Its contents, if it is a Bundle.
    pub(super) summary: Option<Summary>,
    pub(super) tally: Tally,
}

impl Verdict<'_> {
    pub(super) fn passes(&self) -> bool {
        self.tally.passes()
    }

    /// Returns true if profiles were looked at.
    pub(super) fn with_profiles(&self) -> bool {
        !(self.options.profiles.is_empty() && self.options.required.is_empty())
    }

    /// `pass`, `fail`, or `skipped` for what was not looked at: profiles that were not asked for, and the
    /// entries of what is no Bundle.
    pub(super) fn state_of(&self, check: Check) -> &'static str {
        let looked_at = match check {
            Check::Structural => true,
            Check::Profile => self.with_profiles() && self.summary.is_some(),
            Check::ReferenceIntegrity | Check::VersionPresence => self.summary.is_some(),
        };
        match (self.tally.has_failed(check), looked_at) {
            (true, _) => "fail",
            (false, true) => "pass",
            (false, false) => "skipped",
        }
    }
}

/// Judges the document that `parts` reads. The findings go to `report`; `progress` hears how many bytes
/// are behind.
pub(super) fn document<'a>(
    file: &Path,
    parts: &mut Parts,
    options: Options<'a>,
    report: &mut dyn Report,
    progress: impl Fn(u64),
) -> Result<Verdict<'a>> {
    let mut tally = Tally::default();
    let mut checker = Checker::new(options);
    let mut members: Vec<(String, Value)> = Vec::new();
    let mut has_array = false;
    let mut other_entry = None;
    let mut document = None;
    let mut note = |finding: Finding| {
        tally.add(&finding.fault, options.level);
        report.finding(finding);
    };
    while let Some(part) = parts.next_part()? {
        progress(parts.offset());
        match part {
            Event::Member(name, value) if name == "entry" => other_entry = Some(value),
            Event::Member(name, value) => members.push((name, value)),
            Event::Entries => has_array = true,
            Event::Entry(entry) => checker.entry(&entry, &mut note),
            Event::Document(value) => document = Some(value),
        }
    }
    let entries = match &other_entry {
        Some(value) => Entries::Other(value),
        None if has_array => Entries::Array,
        None => Entries::Absent,
    };
    let outcome = match document {
        Some(value) => no_object(&value, options),
        None => Some(checker.finish(&members.into_iter().collect::<Map>(), entries, &mut note)),
    };
    let summary = match outcome {
        Some(DocumentKind::Bundle(summary)) => Some(summary),
        Some(DocumentKind::NotABundle(finding)) => {
            report.clear();
            tally = Tally::default();
            tally.add(&finding.fault, options.level);
            report.finding(finding);
            None
        }
        None => None,
    };
    Ok(Verdict { target: file.display().to_string(), options, summary, tally })
}

/// The one finding about a document that is no object.
fn no_object(value: &Value, options: Options<'_>) -> Option<DocumentKind> {
    let (findings, _) = check_document(value, options);
    findings.into_iter().next().map(DocumentKind::NotABundle)
}
