//! `omir akashik conformance`: an endpoint held against the checklist of the draft.

mod endpoint;
mod items;
mod probe;

use omir_core::value::Value;

use crate::cli::{AkashikArgs, AkashikCommand, ConformanceArgs, Globals};
use crate::error::{Error, Result, told};
use crate::output::{self, object};

use self::endpoint::Endpoint;
use self::items::ITEMS;
use self::probe::{Probe, Verdict};

pub(super) fn run(globals: &Globals, args: &AkashikArgs) -> Result<()> {
    match &args.command {
        AkashikCommand::Conformance(args) => conformance(globals, args),
    }
}

/// An item and what was found.
struct CheckedItem {
    number: &'static str,
    title: &'static str,
    level: u8,
    result: &'static str,
    why: String,
}

fn conformance(globals: &Globals, args: &ConformanceArgs) -> Result<()> {
    let endpoint = Endpoint::open(globals, args)?;
    let mut probe = Probe::new(endpoint, args)?;
    // An item is not at fault if the daemon does not answer.
    probe.reach()?;
    let mut found: Vec<CheckedItem> = Vec::new();
    // All items are decided, even if the output cannot be printed.
    let mut printed = Ok(());
    for item in ITEMS.iter().filter(|item| item.level <= args.level) {
        let (result, why) = match (item.check)(&mut probe) {
            Ok(()) => ("met", String::new()),
            Err(Verdict::Not(why)) => ("not met", why),
            Err(Verdict::Undecided(why)) => ("undecided", why),
        };
        let one =
            CheckedItem { number: item.number, title: item.title, level: item.level, result, why };
        if !globals.json {
            printed = printed.and(output::print(&line(&one)));
        }
        found.push(one);
    }
    let count = |result: &str| found.iter().filter(|one| one.result == result).count();
    let (met, unmet, open) = (count("met"), count("not met"), count("undecided"));
    // The level below the first item that is not met; none below 0.
    let first =
        found.iter().filter(|one| one.result != "met").map(|one| i64::from(one.level)).min();
    let reached = first.map_or(i64::from(args.level), |level| level - 1);
    let declared = probe.declared_level();
    if globals.json {
        let items: Vec<Value> = found
            .iter()
            .map(|one| {
                object([
                    ("item", one.number.into()),
                    ("level", u64::from(one.level).into()),
                    ("title", one.title.into()),
                    ("result", one.result.into()),
                    ("why", one.why.as_str().into()),
                ])
            })
            .collect();
        printed = printed.and(output::print_json(&object([
            ("level", u64::from(args.level).into()),
            ("declared", declared.into()),
            ("reached", reached.into()),
            ("met", met.into()),
            ("notMet", unmet.into()),
            ("undecided", open.into()),
            ("items", Value::Array(items)),
        ])));
    } else {
        let declared = declared.map_or_else(|| "none".to_owned(), |level| level.to_string());
        let shown = if reached < 0 { "none".to_owned() } else { reached.to_string() };
        printed = printed.and(output::print(&format!(
            "\n{met} met, {unmet} not met, {open} undecided; level {declared} is declared, {shown} is shown"
        )));
    }
    let verdict = if unmet > 0 {
        let message = format!("{unmet} of {} items are not met", found.len());
        Err(Error::Negative { code: "NOT_CONFORMANT", message })
    } else if open > 0 {
        Err(Error::Partial(format!("{open} of {} items are undecided", found.len())))
    } else {
        Ok(())
    };
    told(printed, verdict)
}

fn line(one: &CheckedItem) -> String {
    let why = if one.why.is_empty() {
        String::new()
    } else {
        format!(": {}", output::one_line(&one.why))
    };
    format!("{:<6} {:<10} {}{why}", one.number, one.result, one.title)
}
