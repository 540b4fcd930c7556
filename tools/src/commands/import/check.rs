//! Faults of a document, found before anything of it is sent.

use std::fmt::Write as _;
use std::path::Path;

use omir_core::validate::{
    Checker, DocumentKind, Entries, FaultCode, Finding, Level, Options, Severity,
};
use omir_core::value::{Map, Value};

use crate::error::{Error, Result};

/// Findings that are listed; the others are counted.
const LISTED: usize = 10;

/// The references of a Bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum BundleReferences {
    /// They lead to what is in the Bundle, as the specification asks of a document.
    Within,
    /// They may also lead to what the daemon has.
    OrStored,
}

/// Checks a document by the rules for all documents. A Bundle refers to what `references` says; what is only
/// resources, an array or a single one, may also refer to what the daemon has.
///
/// # Errors
/// [`Error::Input`] with the first findings.
pub(super) fn conforms(file: &Path, document: &Value, references: BundleReferences) -> Result<()> {
    let mut envelope = Map::new();
    let mut entries = Entries::Array;
    // The beginning of the findings' pointers, and the part of this document that stands for it.
    let mut base = "";
    let items = match document {
        Value::Object(map) if map.get("resourceType").and_then(Value::as_str) == Some("Bundle") => {
            for (name, member) in map.iter().filter(|(name, _)| *name != "entry") {
                envelope.insert(name, member.clone());
            }
            match map.get("entry") {
                Some(Value::Array(items)) => items.as_slice(),
                Some(other) => {
                    entries = Entries::Other(other);
                    &[]
                }
                None => {
                    entries = Entries::Absent;
                    &[]
                }
            }
        }
        lone => {
            envelope.insert("resourceType", "Bundle");
            envelope.insert("omirVersion", "R1");
            match lone {
                Value::Array(items) => {
                    base = "/entry";
                    items.as_slice()
                }
                one => {
                    base = "/entry/0";
                    std::slice::from_ref(one)
                }
            }
        }
    };
    let may_be_stored = references == BundleReferences::OrStored || !base.is_empty();
    let mut report = Report { base, may_be_stored, count: 0, text: String::new(), first: None };
    let mut checker = Checker::new(Options { level: Level::Core, ..Options::default() });
    for item in items {
        checker.entry(item, &mut |finding| report.take(&finding));
    }
    if let DocumentKind::NotABundle(finding) =
        checker.finish(&envelope, entries, &mut |finding| report.take(&finding))
    {
        report.take(&finding);
    }
    report.verdict(file)
}

struct Report<'a> {
    base: &'a str,
    /// A reference that leads nowhere in the document may lead to what the daemon has.
    may_be_stored: bool,
    count: usize,
    text: String,
    first: Option<String>,
}

impl Report<'_> {
    fn take(&mut self, finding: &Finding) {
        let fault = &finding.fault;
        let may_pass = self.may_be_stored && fault.code == FaultCode::Dangling;
        if fault.severity() != Severity::Error || may_pass {
            return;
        }
        self.count += 1;
        if self.count > LISTED {
            return;
        }
        let pointer = fault.pointer.strip_prefix(self.base).unwrap_or(&fault.pointer);
        let shown = if pointer.is_empty() { "/" } else { pointer };
        let _ = write!(self.text, "\n  {} {shown}: {}", fault.code, fault.message);
        self.first.get_or_insert_with(|| pointer.to_owned());
    }

    fn verdict(self, file: &Path) -> Result<()> {
        let name = file.display();
        let mut message = match self.count {
            0 => return Ok(()),
            1 => format!("{name}: does not conform, nothing was sent{}", self.text),
            count => format!("{name}: {count} faults, nothing was sent{}", self.text),
        };
        if self.count > LISTED {
            let _ = write!(message, "\n  and {} more", self.count - LISTED);
        }
        let _ = write!(message, "\nAll there is to say: omir validate {name}");
        Err(Error::Input { message, path: self.first })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use omir_core::decode::Limits;
    use omir_core::json;

    fn check(text: &str) -> std::result::Result<(), (String, String)> {
        let value = json::from_slice(text.as_bytes(), &Limits::default()).unwrap();
        conforms(Path::new("x.omir"), &value, BundleReferences::Within)
            .map_err(|error| (error.to_string(), error.path().unwrap_or_default().to_owned()))
    }

    #[test]
    fn a_bundle_may_refer_to_what_the_robot_has_where_that_is_said() {
        let bundle = |more: &str| {
            let text = format!(
                r#"{{"resourceType":"Bundle","omirVersion":"R1","entry":[{{"resourceType":"MemoryRecord","id":"m",
                    "createdAt":"2026-01-01T00:00:00Z","parentId":"elsewhere"{more}}}]}}"#
            );
            let value = json::from_slice(text.as_bytes(), &Limits::default()).unwrap();
            [BundleReferences::Within, BundleReferences::OrStored]
                .map(|references| conforms(Path::new("x.omir"), &value, references).is_ok())
        };
        assert_eq!(bundle(r#","content":"c""#), [false, true]);
        assert_eq!(bundle(""), [false, false], "it has no content");
    }

    #[test]
    fn a_bundle_stands_for_itself_and_resources_lean_on_the_store() {
        let record = r#"{"resourceType":"MemoryRecord","id":"m","content":"c",
            "createdAt":"2026-01-01T00:00:00Z","parentId":"elsewhere"}"#;
        let bundle =
            format!(r#"{{"resourceType":"Bundle","omirVersion":"R1","entry":[{record}]}}"#);
        let (message, path) = check(&bundle).unwrap_err();
        assert!(message.contains("E200 /entry/0/parentId"), "{message}");
        assert!(message.ends_with("omir validate x.omir"), "{message}");
        assert_eq!(path, "/entry/0/parentId");
        check(record).unwrap();
        check(&format!("[{record}]")).unwrap();
    }

    #[test]
    fn pointers_are_those_of_the_document() {
        let bad = r#"{"resourceType":"Entity","id":"e","name":3}"#;
        for (text, pointer) in [
            (
                format!(r#"{{"resourceType":"Bundle","omirVersion":"R1","entry":[{bad}]}}"#),
                "/entry/0/name",
            ),
            (format!("[{bad}]"), "/0/name"),
            (bad.to_owned(), "/name"),
        ] {
            assert_eq!(check(&text).unwrap_err().1, pointer);
        }
        assert!(check(r#"{"resourceType":"Bundle","omirVersion":"R2","entry":[]}"#).is_err());
        assert!(check(r#"{"resourceType":"Bundle","omirVersion":"R1"}"#).is_err());
    }

    #[test]
    fn ten_findings_are_listed_and_the_others_counted() {
        let entries: Vec<String> = (0..12)
            .map(|n| format!(r#"{{"resourceType":"Entity","id":"e{n}","name":3}}"#))
            .collect();
        let text = format!("[{}]", entries.join(","));
        let (message, _) = check(&text).unwrap_err();
        assert!(
            message.starts_with("x.omir: 12 faults, nothing was sent\n  E120 /0/name"),
            "{message}"
        );
        assert!(message.contains("/9/name") && !message.contains("/10/name"), "{message}");
        assert!(message.contains("\n  and 2 more\n"), "{message}");
    }

    #[test]
    fn warnings_and_remarks_stop_nothing() {
        check(r#"[{"resourceType":"Entity","id":"e","name":"n"},{"resourceType":"Entity","id":"e","name":"m"}]"#)
            .unwrap();
    }
}
