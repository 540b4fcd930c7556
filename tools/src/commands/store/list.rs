//! `omir store ls`: what is in a store, by resource or by file.

use std::io;

use omir_core::value::{Map, Value};
use omird::store::inspect::{History, Reader, Row, State, Store};

use super::{complete, instant, open, read};
use crate::cli::{Globals, StoreLsArgs};
use crate::commands::view;
use crate::error::{Result, told};
use crate::output::{self, object};
use crate::table::{self, Column};

pub(super) fn run(globals: &Globals, args: &StoreLsArgs) -> Result<()> {
    let store = open(globals, &args.path)?;
    let history = read(globals, &store, &args.path)?;
    let printed = if args.files {
        list_files(globals, &history)
    } else {
        list_rows(globals, &store, &history, args.all)
    };
    told(printed, complete(&history, &args.path))
}

fn list_rows(globals: &Globals, store: &Store, history: &History, all: bool) -> io::Result<()> {
    let mut reader = Reader::new(store, history);
    let rows = history.rows();
    let wanted = rows.iter().filter(|row| all || row.state == State::Live);
    if globals.json {
        for row in wanted {
            let words = reader.resource(&row.version.position).map(|r| view::words(&r.to_value()));
            output::print_json_line(&row_json(history, row, words.ok()))?;
        }
        return Ok(());
    }
    let mut lines = Vec::new();
    for row in wanted {
        let version = row.version;
        let words = match reader.resource(&version.position) {
            Ok(resource) => view::words(&resource.to_value()),
            Err(why) => format!("({why})"),
        };
        let mark = if version.is_exact { "" } else { "~" };
        let mut line = vec![
            words,
            version.target.to_string(),
            format!("{mark}{}", version.stamp.version),
            instant(version.stamp.recorded),
            place(history, row),
            (version.position.range.end - version.position.range.start).to_string(),
        ];
        if all {
            line.push(state(row.state).to_owned());
        }
        lines.push(line);
    }
    let width = output::width();
    if width.is_some() {
        let names: Vec<String> = lines.iter().map(|line| line[1].clone()).collect();
        for (line, name) in lines.iter_mut().zip(view::short_refs(&names)) {
            line[1] = name;
        }
    }
    let mut columns = vec![
        Column::Text("content"),
        Column::Id("ref"),
        Column::Number("version"),
        Column::Words("recorded"),
        Column::Words("where"),
        Column::Number("bytes"),
    ];
    if all {
        columns.push(Column::Words("state"));
    }
    let spare = ["bytes", "where", "version", "recorded"];
    output::print(&table::set(&columns, &lines, &spare, width))
}

fn state(state: State) -> &'static str {
    match state {
        State::Live => "live",
        State::Superseded => "superseded",
        State::Forgotten { .. } => "forgotten",
    }
}

fn place(history: &History, row: &Row<'_>) -> String {
    let place = &row.version.position;
    let file = history.files.get(place.file).map_or("?", |file| &file.source.path);
    format!("{file}@{}", place.range.start)
}

fn row_json(history: &History, row: &Row<'_>, words: Option<String>) -> Value {
    let version = row.version;
    let file = history.files.get(version.position.file);
    let mut members = Map::new();
    members.insert("ref", version.target.to_string());
    members.insert("version", version.stamp.version);
    members.insert("state", state(row.state));
    members.insert("recorded", instant(version.stamp.recorded));
    members.insert("exact", version.is_exact);
    members.insert("transaction", version.stamp.seq);
    if let State::Forgotten { at, by, .. } = row.state {
        members.insert("forgottenAt", instant(at));
        members.insert("forgottenBy", by.as_str());
    }
    members.insert("file", file.map_or("?", |file| file.source.path.as_str()));
    members.insert("offset", version.position.range.start);
    members.insert("bytes", version.position.range.end - version.position.range.start);
    members.insert("content", words);
    Value::Object(members)
}

fn list_files(globals: &Globals, history: &History) -> io::Result<()> {
    let mut lines = Vec::new();
    for file in &history.files {
        let state = match (file.source.is_set_aside, file.is_readable, file.is_needed) {
            (true, ..) => "set aside",
            (_, false, _) => "unreadable",
            (.., false) => "held elsewhere",
            _ => "in use",
        };
        if globals.json {
            let span = file.transactions;
            output::print_json_line(&object([
                ("file", file.source.path.as_str().into()),
                ("bytes", file.bytes.into()),
                ("firstTransaction", span.map(|(first, _)| first).into()),
                ("lastTransaction", span.map(|(_, last)| last).into()),
                ("versions", file.versions.into()),
                ("forgotten", file.tombstones.into()),
                ("state", state.into()),
            ]))?;
            continue;
        }
        let span = file.transactions.map(|(first, last)| format!("{first}..{last}"));
        lines.push(vec![
            file.source.path.clone(),
            file.bytes.to_string(),
            span.unwrap_or_else(|| "-".to_owned()),
            file.versions.to_string(),
            file.tombstones.to_string(),
            state.to_owned(),
        ]);
    }
    if globals.json {
        return Ok(());
    }
    let columns = [
        Column::Text("file"),
        Column::Number("bytes"),
        Column::Words("transactions"),
        Column::Number("versions"),
        Column::Number("forgotten"),
        Column::Words("state"),
    ];
    let spare = ["forgotten", "transactions", "versions"];
    output::print(&table::set(&columns, &lines, &spare, output::width()))
}
