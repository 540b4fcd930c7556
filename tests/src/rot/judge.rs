//! The judgement of answers, in one place: right, marked or withheld, missing, or wrong.

use std::collections::{BTreeMap, BTreeSet};

use omir_core::model::Resource;
use omir_core::reference::Ref;
use omir_core::value::Value;
use omird::engine::{Engine, Query};

use super::past::version_of;
use crate::check::decode;
use crate::model::without_decay;

/// The answer to one name.
#[derive(Debug, Clone, PartialEq)]
enum Got {
    Nothing,
    Whole(Box<Resource>),
    /// An error that names what is unreadable.
    Withheld(String),
}

/// Every answer of a store.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    got: BTreeMap<Ref, Got>,
    versions: BTreeMap<Ref, u64>,
    /// Returns what explain reports as unreadable.
    marked: BTreeSet<Ref>,
    /// Result of a recall of everything, and whether the hit is marked.
    recalled: BTreeMap<Ref, (Resource, bool)>,
    exported: BTreeMap<Ref, Resource>,
    /// Resources left out, counted by recall and export.
    left_out: u64,
    /// True if status tells of any damage.
    is_told: bool,
}

/// Everything that differs from the answers of the whole store.
#[derive(Debug, Clone, Default)]
pub struct Verdict {
    /// An older version or another content as current, without a mark.
    pub wrong: Vec<String>,
    /// Forgotten, and there.
    pub returned: Vec<String>,
    /// Not there, and nobody says so.
    pub silent: Vec<String>,
    /// Not there, and status says so.
    pub told: Vec<String>,
    /// Withheld or marked.
    pub marked: Vec<String>,
}

impl Verdict {
    /// Returns true if all answers are those of the whole store.
    pub fn is_whole(&self) -> bool {
        let all = [&self.wrong, &self.returned, &self.silent, &self.told, &self.marked];
        all.iter().all(|list| list.is_empty())
    }

    /// Adds those of another look at the same folder.
    pub fn add(&mut self, other: Self) {
        self.wrong.extend(other.wrong);
        self.returned.extend(other.returned);
        self.silent.extend(other.silent);
        self.told.extend(other.told);
        self.marked.extend(other.marked);
    }
}

/// Without what may be dropped beside it: references to what is lost, accesses, and our stamps.
fn plain(resource: &Resource) -> Resource {
    let mut resource = without_decay(resource);
    resource.retain_references(|_| false);
    resource
}

fn exported(resource: &Resource) -> Resource {
    let mut resource = plain(resource);
    *resource.meta_mut() = None;
    resource
}

fn is_marked(value: &Value) -> bool {
    value.get("unreadable").is_some()
}

impl Answers {
    /// Asks for everything.
    pub fn of<'a>(engine: &Engine, targets: impl Iterator<Item = &'a Ref>) -> Self {
        let mut answers = Self::default();
        for target in targets {
            let got = match engine.get(target) {
                Ok(None) => Got::Nothing,
                Ok(Some(bytes)) => Got::Whole(Box::new(plain(&decode(&bytes)))),
                Err(error) => Got::Withheld(error.to_string()),
            };
            answers.got.insert(target.clone(), got);
            if let Some(version) = version_of(engine, target) {
                answers.versions.insert(target.clone(), version);
            }
            if engine.explain(target).is_ok_and(|explained| is_marked(&explained)) {
                answers.marked.insert(target.clone());
            }
        }
        match engine.recall(&Query::everything()) {
            Ok(recall) => {
                answers.left_out += recall.unreadable;
                for hit in &recall.hits {
                    let resource = decode(&hit.resource);
                    let target = resource.reference();
                    // The mark of a hit lies beside its resource.
                    let marked = answers.marked.contains(&target);
                    answers.recalled.insert(target, (plain(&resource), marked));
                }
            }
            Err(_) => answers.left_out += 1,
        }
        match engine.export(&Query::everything()) {
            Ok(export) => {
                answers.left_out += export.left_out().count;
                let bundle = export.to_value();
                for entry in bundle.get("entry").and_then(Value::as_array).unwrap_or_default() {
                    if let Ok(resource) = Resource::from_value(entry.clone()) {
                        answers.exported.insert(resource.reference(), exported(&resource));
                    }
                }
            }
            Err(_) => answers.left_out += 1,
        }
        let status = engine.status("robot");
        let count = |path: &str| status.pointer(path).and_then(Value::as_u64).unwrap_or(0);
        let state = status.pointer("/disk/state").and_then(Value::as_str).unwrap_or_default();
        answers.is_told =
            count("/disk/damagedFiles") > 0 || count("/unreadable") > 0 || state != "ok";
        answers
    }

    /// Judges the answers of a hurt store by those of the whole one.
    pub fn judge(&self, hurt: &Self) -> Verdict {
        let mut verdict = Verdict::default();
        for (target, whole) in &self.got {
            let found = hurt.got.get(target).unwrap_or(&Got::Nothing);
            match (whole, found) {
                (whole, found) if whole == found => {}
                (Got::Nothing, Got::Whole(_)) => {
                    verdict.returned.push(format!("{target} is back"));
                }
                (_, Got::Withheld(why)) => verdict.marked.push(format!("{target}: {why}")),
                (_, Got::Whole(_)) if hurt.marked.contains(target) => {
                    verdict.marked.push(format!("{target} is another and marked"));
                }
                (_, Got::Whole(found)) => {
                    verdict.wrong.push(format!("{target} is {found:?}"));
                }
                (_, Got::Nothing) => {
                    let list = if hurt.is_told { &mut verdict.told } else { &mut verdict.silent };
                    list.push(format!("{target} is gone"));
                }
            }
            let is_same = matches!((whole, found), (Got::Whole(a), Got::Whole(b)) if a == b);
            let (was, is) = (self.versions.get(target), hurt.versions.get(target));
            if is_same && is < was && !hurt.marked.contains(target) {
                verdict.wrong.push(format!("{target} is version {is:?} and was {was:?}"));
            }
        }
        self.judge_lists(hurt, &mut verdict);
        verdict
    }

    fn judge_lists(&self, hurt: &Self, verdict: &mut Verdict) {
        for (target, (found, is_marked)) in &hurt.recalled {
            match self.recalled.get(target) {
                Some((whole, _)) if whole == found => {}
                Some(_) if *is_marked => verdict.marked.push(format!("{target}, recalled")),
                Some(_) => verdict.wrong.push(format!("{target} is recalled as {found:?}")),
                None => verdict.returned.push(format!("{target} is recalled")),
            }
        }
        for (target, found) in &hurt.exported {
            match self.exported.get(target) {
                Some(whole) if whole == found => {}
                Some(_) if hurt.marked.contains(target) && hurt.left_out > 0 => {
                    verdict.marked.push(format!("{target}, exported"));
                }
                Some(_) => verdict.wrong.push(format!("{target} is exported as {found:?}")),
                None => verdict.returned.push(format!("{target} is exported")),
            }
        }
        // A list that lacks something which is there by its name, or says nothing of it.
        let lacks = |what: &str, missing: Vec<&Ref>, verdict: &mut Verdict| {
            let is_told = hurt.left_out > 0 || hurt.is_told;
            for target in missing {
                let list = if is_told { &mut verdict.told } else { &mut verdict.silent };
                list.push(format!("{target} is not {what}"));
            }
        };
        let of_recall = self.recalled.keys().filter(|name| !hurt.recalled.contains_key(name));
        lacks("recalled", of_recall.collect(), verdict);
        let of_export = self.exported.keys().filter(|name| !hurt.exported.contains_key(name));
        lacks("exported", of_export.collect(), verdict);
    }
}
