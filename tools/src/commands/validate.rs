//! `omir validate`: conformance reports over the validator of `omir-core`.
//!
//! The report has the shape of the reference validator's, so that what reads one reads the other.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use omir_core::pointer;
use omir_core::reference::ResourceType;
use omir_core::validate::{self, Fault, FaultCode, Severity};
use omir_core::value::{Map, Value};

use crate::cli::{Globals, Level, ReportFormat, ValidateArgs};
use crate::document::{self, Encoding};
use crate::error::{Error, Result};
use crate::output::{self, object};

pub(super) fn run(globals: &Globals, args: &ValidateArgs) -> Result<()> {
    let json = globals.json || args.format == ReportFormat::Json;
    let mut checked = 0;
    let mut failed = 0;
    let mut unreadable: Option<Error> = None;
    for file in files(&args.files)? {
        let document = match document::read(&file) {
            Ok(document) => document,
            Err(error) => {
                // The others are still worth looking at; the last complaint ends the command.
                if let Some(earlier) = unreadable.replace(error) {
                    earlier.report(globals.json);
                }
                continue;
            }
        };
        let report = Report::of(&file, &document, args.level);
        if json {
            output::print_json_line(&report.to_json())?;
        } else if globals.quiet {
            output::print(&report.verdict())?;
        } else {
            output::print(&report.to_text())?;
        }
        checked += 1;
        failed += usize::from(!report.passes());
    }
    match unreadable {
        Some(error) => Err(error),
        None if failed == 0 => Ok(()),
        None => Err(Error::Negative {
            code: "INVALID",
            message: format!("{failed} of {checked} documents do not conform"),
        }),
    }
}

/// Files as they were named, and for folders every `.omir` and `.omirb` below, in order.
fn files(named: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in named {
        if !document::is_standard(path) && path.is_dir() {
            let before = files.len();
            walk(path, &mut files)?;
            if files.len() == before {
                return Err(Error::input(path, "no .omir or .omirb file below"));
            }
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let unreadable = |why| Error::input(folder, why);
    let entries = std::fs::read_dir(folder).map_err(unreadable)?;
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry.map_err(unreadable)?;
        let kind = entry.file_type().map_err(unreadable)?;
        paths.push((entry.path(), kind.is_dir()));
    }
    paths.sort();
    for (path, is_folder) in paths {
        // Links to folders are not followed: they may lead in circles.
        if is_folder {
            walk(&path, files)?;
        } else if !path.is_dir() && is_document(&path) {
            files.push(path);
        }
    }
    Ok(())
}

fn is_document(path: &Path) -> bool {
    let json = path.extension().is_some_and(|ending| ending == "json" || ending == "cbor");
    Encoding::of_ending(path).is_some() && !json
}

/// Findings that a report for reading lists.
const MOST_SHOWN: usize = 100;

/// The groups of checks, by the first digit of a code.
const CHECKS: [(char, &str, &str); 4] = [
    ('1', "structural", "structural"),
    ('2', "referenceIntegrity", "reference integrity"),
    ('3', "versionPresence", "version presence"),
    ('4', "profile", "profile"),
];

fn check_of(fault: &Fault) -> (char, &'static str) {
    let digit = fault.code.as_str().chars().nth(1).unwrap_or('1');
    let check = CHECKS.iter().find(|(group, ..)| *group == digit);
    check.map_or(('1', "structural"), |(group, name, _)| (*group, name))
}

struct Report<'a> {
    target: String,
    level: Level,
    entries: &'a [Value],
    document: &'a Value,
    faults: Vec<Fault>,
}

impl<'a> Report<'a> {
    fn of(file: &Path, document: &'a Value, level: Level) -> Self {
        let asked = match level {
            Level::Core => validate::Level::Core,
            Level::Strict => validate::Level::Strict,
        };
        let entries = document.get("entry").and_then(Value::as_array);
        Self {
            target: file.display().to_string(),
            level,
            entries: entries.unwrap_or_default(),
            document,
            faults: validate::validate_bundle(document, asked),
        }
    }

    fn count(&self, severity: Severity) -> usize {
        let matching = self.faults.iter();
        matching.filter(|fault| fault.severity() == severity).count()
    }

    fn counts_against(&self, fault: &Fault) -> bool {
        match self.level {
            Level::Core => fault.severity() == Severity::Error,
            Level::Strict => fault.severity() >= Severity::Warning,
        }
    }

    fn passes(&self) -> bool {
        !self.faults.iter().any(|fault| self.counts_against(fault))
    }

    fn level_name(&self) -> &'static str {
        match self.level {
            Level::Core => "core",
            Level::Strict => "strict",
        }
    }

    fn entries_by_type(&self) -> Vec<(ResourceType, usize)> {
        ResourceType::ALL
            .into_iter()
            .map(|kind| {
                let of_kind = |entry: &&Value| {
                    entry.get("resourceType").and_then(Value::as_str) == Some(kind.as_str())
                };
                (kind, self.entries.iter().filter(of_kind).count())
            })
            .filter(|(_, count)| *count > 0)
            .collect()
    }

    fn state_of(&self, group: char) -> &'static str {
        let mut faults = self.faults.iter();
        let broken = faults.any(|fault| check_of(fault).0 == group && self.counts_against(fault));
        match (broken, group) {
            (true, _) => "fail",
            (false, '4') => "skipped",
            (false, _) => "pass",
        }
    }

    /// The entry a pointer leads into, by its position.
    fn entry_of(&self, pointer: &str) -> Option<(usize, &Value)> {
        let mut tokens = pointer::tokens(pointer);
        if tokens.next()? != "entry" {
            return None;
        }
        let index: usize = tokens.next()?.parse().ok()?;
        Some((index, self.entries.get(index)?))
    }

    fn finding(&self, fault: &Fault) -> Value {
        let mut members = Map::new();
        members.insert("code", fault.code.as_str());
        members.insert("severity", fault.severity().as_str());
        members.insert("check", check_of(fault).1);
        if let Some((index, entry)) = self.entry_of(&fault.pointer) {
            let mut named = Map::new();
            named.insert("index", index);
            for name in ["resourceType", "id"] {
                if let Some(text) = entry.get(name).and_then(Value::as_str) {
                    named.insert(name, text);
                }
            }
            members.insert("entry", named);
        }
        members.insert("path", fault.pointer.as_str());
        // Whole objects would repeat the document.
        let value = self.document.pointer(&fault.pointer);
        if let Some(value) = value.filter(|v| v.as_object().is_none() && v.as_array().is_none()) {
            members.insert("value", value.clone());
        }
        members.insert("message", fault.message.as_str());
        Value::Object(members)
    }

    fn to_json(&self) -> Value {
        let by_type: Map = self
            .entries_by_type()
            .into_iter()
            .map(|(kind, count)| (kind.as_str(), count))
            .collect();
        let checks: Map =
            CHECKS.iter().map(|(group, name, _)| (*name, self.state_of(*group))).collect();
        object([
            ("report", "OMIRConformanceReport".into()),
            ("omirValidateVersion", env!("CARGO_PKG_VERSION").into()),
            ("schemaRelease", "R1".into()),
            ("target", self.target.as_str().into()),
            ("level", self.level_name().into()),
            ("result", if self.passes() { "pass" } else { "fail" }.into()),
            (
                "summary",
                object([
                    ("entriesTotal", self.entries.len().into()),
                    ("entriesByType", by_type.into()),
                    ("errors", self.count(Severity::Error).into()),
                    ("warnings", self.count(Severity::Warning).into()),
                    ("info", self.count(Severity::Info).into()),
                ]),
            ),
            ("checks", checks.into()),
            ("findings", self.faults.iter().map(|fault| self.finding(fault)).collect()),
            ("coreConformant", self.passes().into()),
            ("badgeEligible", self.passes().into()),
        ])
    }

    fn to_text(&self) -> String {
        let mut text = format!(
            "omir validate {}: OMIR R1 conformance\ntarget: {}   level: {}\n\n",
            env!("CARGO_PKG_VERSION"),
            output::one_line(&self.target),
            self.level_name()
        );
        for (group, _, title) in CHECKS {
            let dots = ".".repeat(22_usize.saturating_sub(title.len()));
            let _ = write!(text, "  {title} {dots} {}", self.state_of(group));
            if group == '1' {
                let types: Vec<String> = self
                    .entries_by_type()
                    .iter()
                    .map(|(kind, count)| format!("{count} {kind}"))
                    .collect();
                let _ = write!(text, "   ({} entries", self.entries.len());
                if !types.is_empty() {
                    let _ = write!(text, ": {}", types.join(", "));
                }
                text.push(')');
            }
            text.push('\n');
        }
        self.write_findings(&mut text);
        self.write_remarks(&mut text);
        text.push('\n');
        text.push_str(&self.verdict());
        text.push('\n');
        text
    }

    /// Errors and warnings by entry, as many as a person reads.
    fn write_findings(&self, text: &mut String) {
        let serious = |fault: &&Fault| fault.severity() > Severity::Info;
        let mut last = None;
        for fault in self.faults.iter().filter(serious).take(MOST_SHOWN) {
            let place = self.entry_of(&fault.pointer);
            if last != Some(place.map(|(index, _)| index)) {
                last = Some(place.map(|(index, _)| index));
                let title = match place {
                    Some((index, entry)) => {
                        format!("{}  (entry {index})", super::view::name(entry))
                    }
                    None => "the document".to_owned(),
                };
                let _ = write!(text, "\n  {}\n", output::one_line(&title));
            }
            let _ = write!(
                text,
                "    {}  {:<7}  {}\n          {}\n",
                fault.code,
                fault.severity(),
                output::one_line(&fault.pointer),
                output::one_line(&fault.message)
            );
        }
        let all = self.faults.iter().filter(serious).count();
        if all > MOST_SHOWN {
            let more = all - MOST_SHOWN;
            let _ = write!(text, "\n  and {more} more; --format json lists all\n");
        }
    }

    /// What is only worth knowing, once for each kind: it tends to hold for every entry.
    fn write_remarks(&self, text: &mut String) {
        let mut kinds: BTreeMap<(FaultCode, &str), (usize, &str)> = BTreeMap::new();
        for fault in self.faults.iter().filter(|fault| fault.severity() == Severity::Info) {
            let kind = (fault.code, fault.message.as_str());
            kinds.entry(kind).or_insert((0, &fault.pointer)).0 += 1;
        }
        for ((code, message), (count, first)) in kinds {
            let place = match count {
                1 => first.to_owned(),
                _ => format!("{count} times, first at {first}"),
            };
            let _ = write!(
                text,
                "\n    {code}  info     {}\n          {}\n",
                output::one_line(&place),
                output::one_line(message)
            );
        }
    }

    fn verdict(&self) -> String {
        let result = if self.passes() { "PASS" } else { "FAIL" };
        let count = |severity, word: &str| {
            let count = self.count(severity);
            format!("{count} {word}{}", if count == 1 { "" } else { "s" })
        };
        format!(
            "RESULT: {result}  {}  ({}, {})",
            output::one_line(&self.target),
            count(Severity::Error, "error"),
            count(Severity::Warning, "warning")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use omir_core::decode::Limits;
    use omir_core::json;

    fn report(text: &str, level: Level) -> Value {
        let document = json::from_slice(text.as_bytes(), &Limits::default()).unwrap();
        Report::of(Path::new("x.omir"), &document, level).to_json()
    }

    const BROKEN: &str = r#"{"resourceType":"Bundle","omirVersion":"R1","entry":[
        {"resourceType":"Entity","id":"a","name":"A"},
        {"resourceType":"Entity","id":"a","name":"A"},
        {"resourceType":"MemoryRecord","id":"m","content":"c","createdAt":"2026-01-01T00:00:00Z",
         "importance":2,"entityRefs":[{"ref":"Entity/b"}]}]}"#;

    #[test]
    fn a_report_has_the_fields_of_the_reference() {
        let report = report(BROKEN, Level::Core);
        let names: Vec<&str> = report.as_object().unwrap().keys().collect();
        assert_eq!(
            names,
            [
                "report",
                "omirValidateVersion",
                "schemaRelease",
                "target",
                "level",
                "result",
                "summary",
                "checks",
                "findings",
                "coreConformant",
                "badgeEligible"
            ]
        );
        let text = |path: &str| report.pointer(path).and_then(Value::as_str);
        assert_eq!(text("/result"), Some("fail"));
        assert_eq!(text("/checks/structural"), Some("fail"));
        assert_eq!(text("/checks/referenceIntegrity"), Some("fail"));
        assert_eq!(text("/checks/versionPresence"), Some("pass"));
        assert_eq!(text("/checks/profile"), Some("skipped"));
        assert_eq!(
            report.pointer("/summary/entriesByType/Entity").and_then(Value::as_u64),
            Some(2)
        );
        let findings = report.get("findings").and_then(Value::as_array).unwrap();
        let dangling = findings
            .iter()
            .find(|finding| finding.get("code").and_then(Value::as_str) == Some("E200"))
            .unwrap();
        assert_eq!(dangling.pointer("/entry/id").and_then(Value::as_str), Some("m"));
        assert_eq!(dangling.get("check").and_then(Value::as_str), Some("referenceIntegrity"));
    }

    #[test]
    fn the_report_for_reading_lists_faults_and_sums_up_remarks() {
        let document = json::from_slice(BROKEN.as_bytes(), &Limits::default()).unwrap();
        let text = Report::of(Path::new("x.omir"), &document, Level::Core).to_text();
        assert!(text.contains("MemoryRecord/m (entry 2)"), "{text}");
        assert!(text.contains("E200  error    /entry/2/entityRefs/0"), "{text}");
        assert!(text.contains("W202  warning"), "{text}");
        assert_eq!(text.matches("I302").count(), 1, "{text}");
        assert!(text.contains("3 times, first at /entry/0"), "{text}");
        assert!(text.contains("RESULT: FAIL  x.omir  (2 errors, 1 warning)"), "{text}");
    }

    #[test]
    fn strict_wants_more() {
        let lenient = r#"{"resourceType":"Bundle","omirVersion":"R1","entry":[
            {"resourceType":"Entity","id":"a","name":"A"}]}"#;
        let result = |level| {
            let report = report(lenient, level);
            report.get("result").and_then(Value::as_str).map(str::to_owned)
        };
        assert_eq!(result(Level::Core).as_deref(), Some("pass"));
        assert_eq!(result(Level::Strict).as_deref(), Some("fail"));
    }

    #[test]
    fn folders_are_searched_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir(root.join("b")).unwrap();
        for name in ["z.omir", "b/a.omirb", "notes.txt", "c.json"] {
            std::fs::write(root.join(name), "").unwrap();
        }
        let found = files(&[root.to_owned()]).unwrap();
        assert_eq!(found, [root.join("b/a.omirb"), root.join("z.omir")]);
        std::fs::create_dir(root.join("empty")).unwrap();
        assert!(files(&[root.join("empty")]).is_err());
    }
}
