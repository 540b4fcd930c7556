//! The conditions under which a rule keeps a sighting, and two sightings are one memory.

use std::time::Duration;

use omir_core::value::Value;

use super::YEAR_S;
use super::words::field;
use crate::rules::levels::Level;
use crate::rules::policy::{Merge, Threshold};
use crate::rules::template::{FieldRef, Scene};
use crate::rules::written::{Table, one_of};

/// Most thresholds of one rule.
const MAX_THRESHOLDS: usize = 32;

/// The messages that are kept.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Keep {
    /// Only those of these levels.
    pub levels: Option<Vec<Level>>,
    /// Only those that all of these hold for.
    pub only: Vec<Condition>,
    /// A change of one of these.
    pub on_change: Vec<FieldRef>,
    /// Before the first message, those are taken to be zero.
    pub assume_zero: bool,
    /// Movement by more, metres.
    pub beyond_m: Option<f64>,
    /// Turning by more, degrees.
    pub beyond_deg: Option<f64>,
    /// Movement is measured in the frame of the message, not in the fixed one.
    pub in_own_frame: bool,
    /// The field that says how bad it is, if any.
    pub worsens: Option<SeverityRule>,
    /// Readings that go beyond a limit.
    pub thresholds: Vec<(FieldRef, Threshold)>,
    /// At most so often, of one name.
    pub at_most_every: Option<Duration>,
    /// At most so many new ones in an hour, of all names.
    pub at_most_per_hour: Option<u64>,
}

/// The field that says how bad something is: what got worse since it was stored last goes before the limits.
#[derive(Debug, Clone, PartialEq)]
pub enum SeverityRule {
    /// Nothing, though its type may have a level.
    Never,
    /// A field.
    By(SeverityField),
}

/// A field that says how bad something is.
#[derive(Debug, Clone, PartialEq)]
pub struct SeverityField {
    /// The field.
    pub field: FieldRef,
    /// True if less is worse; else more is.
    pub is_lower: bool,
}

impl SeverityField {
    /// Its badness: more is worse.
    pub fn badness(&self, scene: &Scene<'_>) -> Option<f64> {
        let number = self.field.number(scene)?;
        Some(if self.is_lower { -number } else { number })
    }
}

/// A condition on a field.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The field.
    pub field: FieldRef,
    /// Not less than this.
    pub at_least: Option<f64>,
    /// Not more than this.
    pub at_most: Option<f64>,
    /// One of these, if any is named.
    pub is: Vec<Value>,
}

/// True if the same thing seen again is the same memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Merging {
    /// It is another.
    Never,
    /// It is the same.
    When(Merge),
}

impl Keep {
    pub(super) fn read(table: Table<'_>) -> Self {
        let levels = table.all_parsed("levels", |word| one_of(word, Level::WORDS));
        let only = table.tables("only").into_iter().filter_map(condition).collect();
        let mut thresholds = Vec::new();
        for (name, is_above) in [("above", true), ("below", false)] {
            let limits = table.tables(name).into_iter();
            thresholds.extend(limits.filter_map(|limit| threshold(limit, is_above)));
        }
        if thresholds.len() > MAX_THRESHOLDS {
            table.complain("above", format_args!("more than {MAX_THRESHOLDS} with those below"));
        }
        let keep = Self {
            levels,
            only,
            on_change: table.all_parsed("on_change", field).unwrap_or_default(),
            assume_zero: table.flag("assume_zero").unwrap_or_default(),
            beyond_m: table.number("beyond_m", 0.0..=1e9),
            beyond_deg: table.number("beyond_deg", 0.0..=180.0),
            in_own_frame: table.flag("in_own_frame").unwrap_or_default(),
            worsens: worsening(&table),
            thresholds,
            at_most_every: table.seconds("at_most_every_s", 0.0..=YEAR_S),
            at_most_per_hour: table.integer("at_most_per_hour", 1..=1_000_000_000),
        };
        table.done();
        keep
    }
}

/// A field, a table with which way is worse, or `false`.
fn worsening(table: &Table<'_>) -> Option<SeverityRule> {
    let worse = |field, is_lower| SeverityRule::By(SeverityField { field, is_lower });
    match table.value("worsens")? {
        Value::Bool(false) => Some(SeverityRule::Never),
        Value::Text(_) => table.parsed("worsens", field).map(|field| worse(field, false)),
        Value::Object(_) => {
            let inner = table.table("worsens")?;
            let field = the_field(&inner);
            let is_lower = inner.word("when", &[("higher", false), ("lower", true)]);
            inner.done();
            Some(worse(field?, is_lower.unwrap_or_default()))
        }
        _ => {
            table.complain("worsens", "expected a field, a table or false");
            None
        }
    }
}

pub(super) fn condition(table: Table<'_>) -> Option<Condition> {
    let field = the_field(&table);
    let at_least = table.number("at_least", f64::MIN..=f64::MAX);
    let at_most = table.number("at_most", f64::MIN..=f64::MAX);
    let is = match table.value("is") {
        None => Vec::new(),
        Some(Value::Array(items)) => items.clone(),
        Some(one) => vec![one.clone()],
    };
    if at_least.is_none() && at_most.is_none() && is.is_empty() {
        table.complain("at_least", "a condition needs at_least, at_most or is");
    }
    table.done();
    Some(Condition { field: field?, at_least, at_most, is })
}

pub(super) fn threshold(table: Table<'_>, is_above: bool) -> Option<(FieldRef, Threshold)> {
    let field = the_field(&table);
    let at = table.number("at", f64::MIN..=f64::MAX);
    if table.value("at").is_none() {
        table.complain("at", "is missing; it is the limit");
    }
    let back_at = table.number("back_at", f64::MIN..=f64::MAX).or(at);
    table.done();
    let (field, at, back_at) = (field?, at?, back_at?);
    if if is_above { back_at > at } else { back_at < at } {
        let side = if is_above { "above" } else { "below" };
        table.complain("back_at", format_args!("{back_at} is {side} the limit of {at} itself"));
    }
    Some((field, Threshold { is_above, at, back_at }))
}

fn the_field(table: &Table<'_>) -> Option<FieldRef> {
    if table.value("field").is_none() {
        table.complain("field", "is missing; it is the path of a field, such as percentage");
    }
    table.parsed("field", field)
}

pub(super) fn merging(table: Table<'_>) -> Merging {
    let seconds = |name, default: u64| {
        table.seconds(name, 0.0..=YEAR_S).unwrap_or(Duration::from_secs(default))
    };
    let merge = Merge {
        within_m: table.number("within_m", 0.0..=1e6),
        within: seconds("within_s", 3600),
        update_every: seconds("update_every_s", 60),
    };
    table.done();
    Merging::When(merge)
}
