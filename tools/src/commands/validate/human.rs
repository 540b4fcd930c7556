//! Reports for people: the first findings of each kind in full, equal ones summed up.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use omir_core::json;
use omir_core::profile;
use omir_core::reference::ResourceType;
use omir_core::validate::{FaultCode, Finding, Severity, Subject, Summary};
use omir_core::value::Value;

use super::Report;
use super::check::Verdict;
use super::json::level_name;
use super::tally::Check;
use crate::document;
use crate::output::one_line;

/// Findings that are listed.
const MOST_LISTED: usize = 100;

/// Findings that are listed of those that say the same.
const MOST_ALIKE: usize = 3;

/// Kinds of findings that are told apart; the rest is only counted.
const MOST_KINDS: usize = 1000;

/// Characters of an offending value that are shown.
const LONGEST_VALUE: usize = 60;

/// Bytes of a JSON file in which lines are looked up.
const LONGEST_TEXT: u64 = 64 << 20;

/// The findings of one file, as many as a person reads.
#[derive(Default)]
pub(super) struct Digest {
    /// The file, if it can be read a second time.
    file: Option<PathBuf>,
    listed: Vec<Finding>,
    kinds: BTreeMap<(FaultCode, String), Kind>,
    /// Errors and warnings of kinds beyond [`MOST_KINDS`].
    beyond: usize,
}

/// Findings that say the same.
struct Kind {
    severity: Severity,
    count: usize,
    listed: usize,
    /// Place of the first that is not listed.
    first: String,
}

impl Report for Digest {
    fn finding(&mut self, finding: Finding) {
        let fault = &finding.fault;
        let is_full = self.kinds.len() >= MOST_KINDS;
        let kind = match self.kinds.entry((fault.code, fault.message.clone())) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(_) if is_full => {
                self.beyond += usize::from(fault.severity() > Severity::Info);
                return;
            }
            Entry::Vacant(new) => new.insert(Kind {
                severity: fault.severity(),
                count: 0,
                listed: 0,
                first: String::new(),
            }),
        };
        kind.count += 1;
        let is_serious = kind.severity > Severity::Info;
        if is_serious && kind.listed < MOST_ALIKE && self.listed.len() < MOST_LISTED {
            kind.listed += 1;
            self.listed.push(finding);
        } else if kind.first.is_empty() {
            kind.first.clone_from(&fault.pointer);
        }
    }

    fn clear(&mut self) {
        *self = Self { file: self.file.take(), ..Self::default() };
    }

    fn write(&mut self, verdict: &Verdict<'_>, out: &mut dyn Write) -> io::Result<()> {
        let mut text = format!(
            "omir validate {}: OMIR R1 conformance\ntarget: {}   level: {}\n\n",
            env!("CARGO_PKG_VERSION"),
            one_line(&verdict.target),
            level_name(verdict.options.level)
        );
        write_checks(verdict, &mut text);
        self.write_findings(&mut text);
        self.write_alike(&mut text);
        let _ = write!(text, "\n{}\n", result_line(verdict));
        out.write_all(text.as_bytes())
    }
}

impl Digest {
    /// A digest of what is said about `file`.
    pub(super) fn of(file: &Path) -> Self {
        let file = (!document::is_standard(file)).then(|| file.to_owned());
        Self { file, ..Self::default() }
    }

    /// The text of a JSON file that is not too long to look for lines in it.
    fn text(&self) -> Option<String> {
        let file = self.file.as_deref()?;
        let found = std::fs::metadata(file).ok()?;
        let is_short = found.is_file() && found.len() <= LONGEST_TEXT;
        is_short.then(|| std::fs::read_to_string(file).ok())?
    }

    /// Errors and warnings by entry.
    fn write_findings(&mut self, text: &mut String) {
        // Read again rather than kept: most documents are right.
        let original = if self.listed.is_empty() { None } else { self.text() };
        let places = original.as_deref().and_then(json::Places::of);
        let position = |finding: &Finding| finding.entry.as_ref().map(|entry| entry.index);
        // Findings between entries come last, but are shown with their entry.
        self.listed.sort_by_key(position);
        let mut last = None;
        for finding in &self.listed {
            if last != Some(position(finding)) {
                last = Some(position(finding));
                let title = finding.entry.as_ref().map_or("the document".to_owned(), title);
                let _ = write!(text, "\n  {}\n", one_line(&title));
            }
            let fault = &finding.fault;
            let value = finding.value.as_ref().map(shown).unwrap_or_default();
            let place = places.as_ref().and_then(|all| all.line_and_column(&fault.pointer));
            let place = place.map(|(line, column)| format!("  (line {line}, column {column})"));
            let _ = write!(
                text,
                "    {}  {:<7}  {}{value}{}\n          {}\n",
                fault.code,
                fault.severity(),
                one_line(&fault.pointer),
                place.unwrap_or_default(),
                one_line(&fault.message)
            );
        }
        let unlisted = self.kinds.values().filter(|kind| kind.listed == 0);
        let unlisted = unlisted.filter(|kind| kind.severity > Severity::Info);
        let more = self.beyond + unlisted.map(|kind| kind.count).sum::<usize>();
        if more > 0 {
            let _ = write!(text, "\n  and {more} more; --format json lists all\n");
        }
    }

    /// A finding that tends to hold for every entry, said once.
    fn write_alike(&self, text: &mut String) {
        for ((code, message), kind) in &self.kinds {
            let more = kind.count - kind.listed;
            let is_remark = kind.severity == Severity::Info;
            if more == 0 || (kind.listed == 0 && !is_remark) {
                continue;
            }
            let first = one_line(&kind.first);
            let place = match (is_remark, more) {
                (true, 1) => first,
                (true, _) => format!("{more} times, first at {first}"),
                (false, 1) => format!("once more, at {first}"),
                (false, _) => format!("{more} times more, from {first} on"),
            };
            let severity = kind.severity;
            let message = one_line(message);
            let _ = write!(text, "\n    {code}  {severity:<7}  {place}\n          {message}\n");
        }
    }
}

fn title(entry: &Subject) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".to_owned());
    format!("{}/{}  (entry {})", text(&entry.resource_type), text(&entry.id), entry.index)
}

/// ` = value`, shortened.
fn shown(value: &Value) -> String {
    let text = one_line(&json::to_string(value));
    if text.chars().count() <= LONGEST_VALUE {
        return format!(" = {text}");
    }
    let start: String = text.chars().take(LONGEST_VALUE).collect();
    format!(" = {start}…")
}

/// One line for each group of rules, and what was found besides faults.
fn write_checks(verdict: &Verdict<'_>, text: &mut String) {
    for check in Check::ALL {
        let dots = ".".repeat(22_usize.saturating_sub(check.title().len()));
        let _ = write!(text, "  {} {dots} {}", check.title(), verdict.state_of(check));
        if let Some(found) = &verdict.summary
            && let Some(remark) = remark(check, found, verdict)
        {
            let _ = write!(text, "   ({remark})");
        }
        text.push('\n');
    }
    let Some(found) = &verdict.summary else { return };
    if !found.drafts.is_empty() {
        let fields = found.drafts.iter().map(|(field, count)| format!("{field} ({count})"));
        let fields: Vec<String> = fields.collect();
        let fields = fields.join(", ");
        let _ = writeln!(text, "  draft fields: {fields}; OMM-0, not part of plain R1");
    }
    if !verdict.with_profiles() {
        for (url, count) in found.claims.iter().take(MOST_ALIKE) {
            let known = profile::builtin().into_iter().find(|profile| profile.url == *url);
            let (entries, claim) =
                if *count == 1 { ("entry", "claims") } else { ("entries", "claim") };
            let name = known.as_ref().map_or(url.as_str(), |profile| profile.name.as_str());
            let how = if known.is_some() { name } else { "FILE" };
            let name = one_line(name);
            let _ =
                writeln!(text, "  {count} {entries} {claim} {name}; check with --profile {how}");
        }
        if found.claims.len() > MOST_ALIKE {
            let more = found.claims.len() - MOST_ALIKE;
            let _ = writeln!(text, "  and {more} more profiles are claimed");
        }
    }
}

/// Remarks about a group of rules besides its state.
fn remark(check: Check, found: &Summary, verdict: &Verdict<'_>) -> Option<String> {
    match check {
        Check::Structural => {
            let types: Vec<String> = ResourceType::ALL
                .into_iter()
                .zip(found.by_type)
                .filter(|(_, count)| *count > 0)
                .map(|(kind, count)| format!("{count} {kind}"))
                .collect();
            let of = if types.is_empty() { "" } else { ": " };
            Some(format!("{}{of}{}", counted(found.entries, "entry", "entries"), types.join(", ")))
        }
        Check::ReferenceIntegrity => {
            Some(format!("{} resolved", counted(found.references, "reference", "references")))
        }
        Check::VersionPresence => {
            let resources: usize = found.by_type.iter().sum();
            let noun = if resources == 1 { "entry" } else { "entries" };
            Some(format!("{} of {resources} {noun} with meta", found.with_meta))
        }
        Check::Profile if verdict.with_profiles() => {
            let claims = verdict.options.profiles.iter().map(|profile| {
                let count = found.claims.get(&profile.url).copied().unwrap_or_default();
                format!(
                    "{}: claimed by {}",
                    one_line(&profile.name),
                    counted(count, "entry", "entries")
                )
            });
            let claims: Vec<String> = claims.collect();
            Some(claims.join("; ")).filter(|text| !text.is_empty())
        }
        Check::Profile => None,
    }
}

/// The last line, which also stands alone.
pub(super) fn result_line(verdict: &Verdict<'_>) -> String {
    format!(
        "RESULT: {}  {}  ({}, {})",
        if verdict.passes() { "PASS" } else { "FAIL" },
        one_line(&verdict.target),
        counted(verdict.tally.errors, "error", "errors"),
        counted(verdict.tally.warnings, "warning", "warnings")
    )
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
