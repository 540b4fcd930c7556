//! The one table, and the same numbers for a program to read.

use std::time::Duration;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde_json::{Map, Value, json};

use crate::machine::Machine;
use crate::samples::{self, Samples};

/// Unit of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Things a second.
    PerSecond,
    /// Bytes.
    Bytes,
    /// Of something else.
    Times,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::PerSecond => "1/s",
            Self::Bytes => "B",
            Self::Times => "×",
        }
    }

    fn show(self, n: f64) -> String {
        match self {
            Self::Seconds if n < 1e-3 => format!("{:.0} µs", n * 1e6),
            Self::Seconds if n < 1.0 => format!("{:.2} ms", n * 1e3),
            Self::Seconds => format!("{n:.2} s"),
            Self::PerSecond => format!("{n:.0} /s"),
            Self::Bytes if n < 1e4 => format!("{n:.0} B"),
            Self::Bytes if n < 1e6 => format!("{:.1} kB", n / 1e3),
            Self::Bytes => format!("{:.1} MB", n / 1e6),
            Self::Times => format!("{n:.2}"),
        }
    }
}

/// A goal for one number of a row.
#[derive(Debug, Clone, Copy)]
pub enum Aim {
    /// The ratio stays at or below this.
    RatioAtMost(f64),
    /// The ratio reaches this.
    RatioAtLeast(f64),
    /// The 99th percentile stays below this many seconds.
    P99Below(f64),
    /// The value stays below this.
    Below(f64),
}

/// One line of the table.
#[derive(Debug, Clone)]
pub struct Row {
    name: String,
    unit: Unit,
    value: f64,
    p99: Option<f64>,
    floor: Option<f64>,
    floor_p99: Option<f64>,
    ratio: Option<f64>,
    aim: Option<Aim>,
    note: String,
}

impl Row {
    /// A single number.
    pub fn number(name: impl Into<String>, unit: Unit, value: f64) -> Self {
        Self {
            name: name.into(),
            unit,
            value,
            p99: None,
            floor: None,
            floor_p99: None,
            ratio: None,
            aim: None,
            note: String::new(),
        }
    }

    /// A duration.
    pub fn duration(name: impl Into<String>, duration: Duration) -> Self {
        Self::number(name, Unit::Seconds, duration.as_secs_f64())
    }

    /// Times of many repetitions.
    pub fn times(name: impl Into<String>, samples: &Samples) -> Self {
        let summary = samples.summary();
        let mut row = Self::duration(name, summary.p50);
        row.p99 = Some(summary.p99.as_secs_f64());
        row
    }

    /// Times of many repetitions beside those of a floor that took turns with them, `batch` each.
    pub fn over(name: impl Into<String>, subject: &Samples, floor: &Samples, batch: usize) -> Self {
        let mut row = Self::times(name, subject);
        let summary = floor.summary();
        row.floor = Some(summary.p50.as_secs_f64());
        row.floor_p99 = Some(summary.p99.as_secs_f64());
        row.ratio = Some(samples::ratio(subject, floor, batch));
        row
    }

    /// Beside one number in the same unit.
    pub fn beside(mut self, floor: f64) -> Self {
        self.floor = Some(floor);
        self.ratio = Some(self.value / floor.max(f64::MIN_POSITIVE));
        self
    }

    /// With a goal.
    pub fn aim(mut self, aim: Aim) -> Self {
        self.aim = Some(aim);
        self
    }

    /// With a remark.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Returns true if the goal is met; `None` without one.
    fn is_met(&self) -> Option<bool> {
        Some(match self.aim? {
            Aim::RatioAtMost(most) => self.ratio? <= most,
            Aim::RatioAtLeast(least) => self.ratio? >= least,
            Aim::P99Below(most) => self.p99? < most,
            Aim::Below(most) => self.value < most,
        })
    }

    fn aim_text(&self) -> String {
        let (Some(aim), Some(is_met)) = (self.aim, self.is_met()) else { return String::new() };
        let text = match aim {
            Aim::RatioAtMost(most) => format!("ratio ≤ {most}"),
            Aim::RatioAtLeast(least) => format!("ratio ≥ {least}"),
            Aim::P99Below(most) => format!("p99 < {}", self.unit.show(most)),
            Aim::Below(most) => format!("< {}", self.unit.show(most)),
        };
        format!("{text}: {}", if is_met { "met" } else { "MISSED" })
    }

    fn to_json(&self, section: &str) -> Value {
        let mut map = Map::new();
        let mut put = |name: &str, value: Value| map.insert(name.to_owned(), value);
        put("section", section.into());
        put("name", self.name.as_str().into());
        put("unit", self.unit.name().into());
        put("value", self.value.into());
        for (name, number) in [
            ("p99", self.p99),
            ("floor", self.floor),
            ("floorP99", self.floor_p99),
            ("ratio", self.ratio),
        ] {
            if let Some(number) = number {
                put(name, number.into());
            }
        }
        if let Some(is_met) = self.is_met() {
            put("aim", self.aim_text().into());
            put("met", is_met.into());
        }
        if !self.note.is_empty() {
            put("note", self.note.as_str().into());
        }
        Value::Object(map)
    }
}

/// Everything measured.
#[derive(Default)]
pub struct Report {
    sections: Vec<(String, Vec<Row>)>,
}

impl Report {
    /// An empty report.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a section; rows go into the newest.
    pub fn section(&mut self, name: impl Into<String>) {
        let name = name.into();
        eprintln!("{name} …");
        self.sections.push((name, Vec::new()));
    }

    /// Adds a row.
    pub fn row(&mut self, row: Row) {
        let ratio = row.ratio.map_or_else(String::new, |ratio| format!(", {ratio:.2} × its floor"));
        eprintln!("  {}: {}{ratio}; {}", row.name, row.unit.show(row.value), row.note);
        if let Some((_, rows)) = self.sections.last_mut() {
            rows.push(row);
        }
    }

    /// The table.
    pub fn table(&self) -> Table {
        let mut table = Table::new();
        table
            .load_preset(presets::UTF8_BORDERS_ONLY)
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(["", "p50 / value", "p99", "floor p50", "floor p99", "ratio", "aim", ""]);
        for column in 1..=5 {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for (name, rows) in &self.sections {
            table.add_row([name.to_uppercase()]);
            for row in rows {
                let show = |n: Option<f64>| n.map_or_else(String::new, |n| row.unit.show(n));
                table.add_row([
                    format!("  {}", row.name),
                    row.unit.show(row.value),
                    show(row.p99),
                    show(row.floor),
                    show(row.floor_p99),
                    row.ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}")),
                    row.aim_text(),
                    row.note.clone(),
                ]);
            }
        }
        table
    }

    /// Every number.
    pub fn to_json(&self, machine: &Machine) -> Value {
        let rows: Vec<Value> = self
            .sections
            .iter()
            .flat_map(|(name, rows)| rows.iter().map(|row| row.to_json(name)))
            .collect();
        json!({
            "machine": {
                "cores": machine.cores,
                "processor": machine.processor,
                "kernel": machine.kernel,
                "load": machine.load,
                "fdatasyncP50": machine.sync.p50.as_secs_f64(),
                "fdatasyncP99": machine.sync.p99.as_secs_f64(),
            },
            "rows": rows,
        })
    }
}
