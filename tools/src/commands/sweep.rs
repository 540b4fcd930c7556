//! `omir sweep`: what time does to the memories, one line for each.

use omir_core::value::Value;

use super::view;
use crate::cli::{Globals, SweepArgs};
use crate::client::Client;
use crate::error::Result;
use crate::output;
use crate::selector::Parameters;
use crate::table::{self, Column};

pub(super) fn run(globals: &Globals, args: &SweepArgs) -> Result<()> {
    let client = Client::open(globals)?;
    let robot = client.robot(globals.robot.as_deref())?;
    let mut parameters = Parameters::new();
    parameters.push("dryRun", if args.dry_run { "true" } else { "false" });
    let report = client.ask(&robot, "sweep", &parameters, None)?.value()?;
    if globals.json {
        output::print_json(&report)?;
        return Ok(());
    }
    let items = report.get("items").and_then(Value::as_array).unwrap_or_default();
    if !items.is_empty() {
        let mut rows: Vec<Vec<String>> = items.iter().map(row).collect();
        if output::width().is_some() {
            let names: Vec<String> = rows.iter().map(|row| row[1].clone()).collect();
            for (row, name) in rows.iter_mut().zip(view::short_refs(&names)) {
                row[1] = name;
            }
        }
        output::print(&table::render(&COLUMNS, &rows))?;
    }
    output::print(&summary(&report, items.len()))?;
    Ok(())
}

const COLUMNS: [Column; 3] = [Column::Words("what"), Column::Id("memory"), Column::Text("why")];

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn row(item: &Value) -> Vec<String> {
    let what = match text(item, "cause") {
        "sweep" => format!("{} to {}", text(item, "from"), text(item, "to")),
        "consolidation" => "merged".to_owned(),
        "expiry" => "expired".to_owned(),
        "eviction" => "evicted".to_owned(),
        other => other.to_owned(),
    };
    vec![what, text(item, "ref").to_owned(), text(item, "reason").to_owned()]
}

fn summary(report: &Value, shown: usize) -> String {
    let count = |name: &str| report.get(name).and_then(Value::as_u64).unwrap_or(0);
    let names = ["moved", "merged", "expired", "evicted"];
    let all: u64 = names.iter().map(|name| count(name)).sum();
    let would =
        if report.get("dryRun").and_then(Value::as_bool) == Some(true) { "would be " } else { "" };
    let counts = names.map(|name| format!("{} {would}{name}", count(name))).join(", ");
    let shown = shown as u64;
    if all > shown { format!("{counts}; the first {shown} are listed") } else { counts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use omir_core::decode::Limits;
    use omir_core::json;

    #[test]
    fn a_report_is_lines_and_a_sum() {
        let report = json::from_slice(
            br#"{"dryRun":true,"moved":2,"merged":1,"expired":0,"evicted":0,"items":[
                {"cause":"sweep","from":"working","to":"session","reason":"old","ref":"MemoryRecord/a"},
                {"cause":"consolidation","reason":"same","ref":"MemoryRecord/b"}]}"#,
            &Limits::default(),
        )
        .unwrap();
        let items = report.get("items").and_then(Value::as_array).unwrap();
        assert_eq!(row(&items[0]), ["working to session", "MemoryRecord/a", "old"]);
        assert_eq!(row(&items[1]), ["merged", "MemoryRecord/b", "same"]);
        assert_eq!(
            summary(&report, 2),
            "2 would be moved, 1 would be merged, 0 would be expired, 0 would be evicted; \
             the first 2 are listed"
        );
    }
}
