//! `omir store check`: everything that is wrong, by file and byte.

use omir_core::value::{Map, Value};
use omird::store::inspect::{self, FileKind, Finding, History, Kind, Report, Severity, Verdict};

use super::{count, open, with_bar};
use crate::cli::{Globals, StoreCheckArgs};
use crate::error::{Error, Result, told};
use crate::output::{self, object};
use crate::table;

pub(super) fn run(globals: &Globals, args: &StoreCheckArgs) -> Result<()> {
    let store = open(globals, &args.path)?;
    let report = with_bar(globals, "checking (KiB)", |progress| inspect::check(&store, progress))
        .map_err(|why| Error::input(&args.path, why))?;
    let target = args.path.display().to_string();
    let printed = if globals.json {
        output::print_json(&report_json(&report, &target))
    } else if globals.quiet {
        output::print(&result_line(&report, &target))
    } else {
        output::print(&report_text(&report, &target))
    };
    let message = result_line(&report, &target);
    let verdict = match report.verdict() {
        Verdict::Sound => Ok(()),
        Verdict::Faulty => Err(Error::Negative { code: "FAULTY", message }),
        Verdict::Lossy => Err(Error::Partial(message)),
    };
    told(printed, verdict)
}

fn count_of(findings: &[Finding], severity: Severity) -> usize {
    findings.iter().filter(|finding| finding.severity == severity).count()
}

fn result_line(report: &Report, target: &str) -> String {
    let words = match report.verdict() {
        Verdict::Sound => "sound",
        // A missing log may have held something: the check cannot know.
        Verdict::Faulty if report.findings.iter().any(|one| one.kind == Kind::LogMissing) => {
            "faults were found; what a missing log held is lost, if it held anything"
        }
        Verdict::Faulty => "faults were found; nothing acknowledged is lost",
        Verdict::Lossy => "something acknowledged is lost or cannot be read",
    };
    format!(
        "{}: {words} ({}, {})",
        output::one_line(target),
        count(count_of(&report.findings, Severity::Loss), "loss", "losses"),
        count(count_of(&report.findings, Severity::Fault), "fault", "faults"),
    )
}

/// Files of one kind: how many, and how many bytes.
fn files_of(history: &History, is_it: fn(FileKind) -> bool) -> (u64, u64) {
    let rows = history.files.iter().filter(|row| is_it(row.source.kind));
    rows.fold((0, 0), |(count, bytes), row| (count + 1, bytes + row.bytes))
}

fn is_segment(kind: FileKind) -> bool {
    matches!(kind, FileKind::Segment(_))
}

fn is_log(kind: FileKind) -> bool {
    matches!(kind, FileKind::Log(_))
}

fn report_text(report: &Report, target: &str) -> String {
    let files = |is_it| {
        let (count, bytes) = files_of(&report.history, is_it);
        format!("{count} ({})", table::bytes(bytes))
    };
    let rows = [
        ("store", target.to_owned()),
        ("segments", files(is_segment)),
        ("logs", files(is_log)),
        ("transactions", report.history.last_seq().to_string()),
        ("resources", format!("{} live, {} versions", report.live, report.versions)),
        ("forgotten", report.tombstones.to_string()),
        ("losses", count_of(&report.findings, Severity::Loss).to_string()),
        ("faults", count_of(&report.findings, Severity::Fault).to_string()),
    ];
    let rows: Vec<(String, String)> = rows.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
    let mut text = table::pairs(&rows);
    text.push('\n');
    push_findings(&mut text, &report.findings);
    text.push_str("RESULT: ");
    text.push_str(&result_line(report, target));
    text
}

/// The worst first, each on two lines.
pub(super) fn push_findings<'a>(
    text: &mut String,
    findings: impl IntoIterator<Item = &'a Finding>,
) {
    let mut sorted: Vec<&Finding> = findings.into_iter().collect();
    sorted.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    for finding in &sorted {
        let words = finding.to_string();
        let (place, what) = words.split_once(": ").unwrap_or(("", &words));
        text.push_str(&format!(
            "{:<5}  {}  {}\n       {}\n",
            finding.severity.as_str(),
            finding.kind.as_str(),
            output::one_line(place),
            output::one_line(what)
        ));
    }
    if !sorted.is_empty() {
        text.push('\n');
    }
}

pub(super) fn finding_json(finding: &Finding) -> Value {
    let mut members = Map::new();
    members.insert("severity", finding.severity.as_str());
    members.insert("kind", finding.kind.as_str());
    members.insert("file", finding.file.as_str());
    if let Some(offset) = finding.offset {
        members.insert("offset", offset);
    }
    if let Some(bytes) = finding.len {
        members.insert("bytes", bytes);
    }
    if let Some(pointer) = &finding.pointer {
        members.insert("path", pointer.as_str());
    }
    if let Some((first, last)) = finding.transactions {
        members.insert("transactions", Value::Array(vec![first.into(), last.into()]));
    }
    if !finding.names.is_empty() {
        members.insert(
            "names",
            finding.names.iter().map(|n| Value::from(n.as_str())).collect::<Value>(),
        );
    }
    members.insert("message", finding.message.as_str());
    Value::Object(members)
}

fn report_json(report: &Report, target: &str) -> Value {
    let history = &report.history;
    let (segments, segment_bytes) = files_of(history, is_segment);
    let (logs, log_bytes) = files_of(history, is_log);
    object([
        ("store", target.into()),
        ("result", report.verdict().as_str().into()),
        (
            "summary",
            object([
                ("segments", segments.into()),
                ("segmentBytes", segment_bytes.into()),
                ("logs", logs.into()),
                ("logBytes", log_bytes.into()),
                ("lastTransaction", history.last_seq().into()),
                ("live", report.live.into()),
                ("versions", report.versions.into()),
                ("forgotten", report.tombstones.into()),
                ("losses", count_of(&report.findings, Severity::Loss).into()),
                ("faults", count_of(&report.findings, Severity::Fault).into()),
            ]),
        ),
        ("findings", report.findings.iter().map(finding_json).collect()),
    ])
}
