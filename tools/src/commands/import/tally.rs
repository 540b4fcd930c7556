//! The result of an import, and its report.

use std::path::Path;

use omir_core::value::{Map, Value};

use super::load::File;
use crate::error::{Error, Result};
use crate::output::{self, object};

/// Names that are listed in JSON; all of them are counted.
const LISTED: usize = 1000;
/// Names that are listed in a remark.
const NAMED: usize = 5;

/// Outcome of the resources of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tally {
    added: usize,
    updated: usize,
    restored: usize,
    kept: usize,
    unchanged: usize,
    restored_refs: Vec<Value>,
    kept_refs: Vec<Value>,
    /// Requests that were answered.
    pub(super) requests: usize,
    /// Requests that were sent again.
    pub(super) retries: usize,
}

impl Tally {
    /// Counts the resources of one answer.
    ///
    /// # Errors
    /// [`Error::Partial`] if the answer does not say what became of one.
    pub(super) fn count(&mut self, reply: &Value) -> Result<()> {
        self.requests += 1;
        let stored = reply.get("stored").and_then(Value::as_array).unwrap_or_default();
        for item in stored {
            let name = || item.get("ref").cloned().unwrap_or(Value::Null);
            match item.get("merged").and_then(Value::as_str).unwrap_or_default() {
                "updated" => self.updated += 1,
                "restored" => {
                    self.restored += 1;
                    if self.restored_refs.len() < LISTED {
                        self.restored_refs.push(name());
                    }
                }
                "kept" => {
                    self.kept += 1;
                    if self.kept_refs.len() < LISTED {
                        self.kept_refs.push(name());
                    }
                }
                "unchanged" => self.unchanged += 1,
                "added" => self.added += 1,
                _ => {
                    let name = name().as_str().map(output::one_line).unwrap_or_default();
                    return Err(Error::Partial(format!(
                        "the daemon answered and did not say what became of {name}; is it an older \
                         omird?"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Resources that the daemon answered for.
    pub(super) fn acknowledged(&self) -> usize {
        self.added + self.updated + self.restored + self.kept + self.unchanged
    }

    pub(super) fn to_text(&self) -> String {
        let parts: Vec<String> = [
            (self.added, "added"),
            (self.updated, "updated"),
            (self.restored, "restored"),
            (self.kept, "kept (not newer than the store's)"),
            (self.unchanged, "unchanged"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
        if parts.is_empty() { "nothing in it".to_owned() } else { parts.join(", ") }
    }

    pub(super) fn to_json(&self, file: &File) -> Value {
        let of_file = [
            ("file", file.path.display().to_string().into()),
            ("resources", file.resources.len().into()),
            ("repeated", file.repeated.into()),
        ];
        Value::Object(of_file.into_iter().chain(self.members()).collect::<Map>())
    }

    /// The numbers alone, for what is no file.
    pub(super) fn counts(&self) -> Value {
        object(self.members())
    }

    fn members(&self) -> [(&'static str, Value); 9] {
        [
            ("added", self.added.into()),
            ("updated", self.updated.into()),
            ("restored", self.restored.into()),
            ("kept", self.kept.into()),
            ("unchanged", self.unchanged.into()),
            ("restoredRefs", Value::Array(self.restored_refs.clone())),
            ("keptRefs", Value::Array(self.kept_refs.clone())),
            ("requests", self.requests.into()),
            ("retries", self.retries.into()),
        ]
    }

    /// Remarks for a person about these numbers.
    pub(super) fn remarks(&self, quiet: bool, file: &File) {
        let path = &file.path;
        if file.repeated > 0 {
            output::remark(quiet, &repeated(path, file.repeated));
        }
        if self.kept > 0 {
            let text = format!(
                "{}: kept {}; the higher version stays where the file states one, then the later \
                 meta.lastUpdated. --overwrite takes the file's",
                path.display(),
                some(&self.kept_refs, self.kept)
            );
            output::remark(quiet, &text);
        }
        if self.restored > 0 {
            let text = format!(
                "{}: {} had been forgotten and {} back",
                path.display(),
                some(&self.restored_refs, self.restored),
                if self.restored == 1 { "is" } else { "are" }
            );
            output::remark(quiet, &text);
        }
        if self.retries > 0 && self.unchanged > 0 {
            let text = "sent again; what the first attempt had stored counts as unchanged";
            output::remark(quiet, text);
        }
    }
}

fn repeated(path: &Path, count: usize) -> String {
    let entries = if count == 1 { "entry has" } else { "entries have" };
    format!("{}: {count} {entries} the name of an earlier one; the newer counts", path.display())
}

/// The first few of `count` names.
fn some(names: &[Value], count: usize) -> String {
    let shown: Vec<String> =
        names.iter().take(NAMED).filter_map(Value::as_str).map(output::one_line).collect();
    let more = count.saturating_sub(shown.len());
    match more {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use omir_core::decode::Limits;
    use omir_core::json;

    fn counted(words: &[&str]) -> Tally {
        let items: Vec<String> = words
            .iter()
            .enumerate()
            .map(|(n, word)| format!(r#"{{"ref":"Entity/e{n}","version":1,"merged":"{word}"}}"#))
            .collect();
        let reply = format!(r#"{{"stored":[{}],"durable":true,"seq":1}}"#, items.join(","));
        let mut tally = Tally::default();
        tally.count(&json::from_slice(reply.as_bytes(), &Limits::default()).unwrap()).unwrap();
        tally
    }

    #[test]
    fn only_what_happened_is_told() {
        let tally = counted(&["added", "kept", "updated", "restored", "added", "unchanged"]);
        assert_eq!(
            tally.to_text(),
            "2 added, 1 updated, 1 restored, 1 kept (not newer than the store's), 1 unchanged"
        );
        assert_eq!(tally.acknowledged(), 6);
        assert_eq!(counted(&["unchanged"]).to_text(), "1 unchanged");
        assert_eq!(counted(&[]).to_text(), "nothing in it");
    }

    #[test]
    fn an_answer_that_says_nothing_is_no_success() {
        let reply = object([(
            "stored",
            Value::Array(vec![object([("ref", "Entity/e".into()), ("version", 1.into())])]),
        )]);
        let error = Tally::default().count(&reply).unwrap_err();
        assert!(error.to_string().contains("Entity/e"), "{error}");
    }

    #[test]
    fn lists_of_names_end() {
        let tally = counted(&["kept"; LISTED + 7]);
        assert_eq!((tally.kept, tally.kept_refs.len()), (LISTED + 7, LISTED));
        let text = some(&tally.kept_refs, tally.kept);
        assert_eq!(text, "Entity/e0, Entity/e1, Entity/e2, Entity/e3, Entity/e4 and 1002 more");
        assert_eq!(some(&tally.kept_refs[..2], 2), "Entity/e0, Entity/e1");
    }
}
