//! `omir robots`: whose memory is heard.

use omir_core::value::{Map, Value};

use super::status;
use crate::cli::Globals;
use crate::client::Client;
use crate::error::Result;
use crate::selector::Parameters;
use crate::table::{self, Column};
use crate::{instant, output};

pub(super) fn run(globals: &Globals) -> Result<()> {
    let client = Client::open(globals)?;
    let mut alive = client.robots()?;
    alive.retain(|robot| globals.robot.as_ref().is_none_or(|named| named == robot));
    let replies = client.ask_fleet(alive.clone(), "status", &Parameters::new());
    // A robot that does not answer is listed all the same. Only a fleet without any robot is an error.
    let answers = match replies {
        Ok(replies) => replies.answers,
        Err(error) if alive.is_empty() => return Err(error),
        Err(_) => Default::default(),
    };
    let robots: Vec<(String, Option<Value>)> = alive
        .into_iter()
        .map(|robot| {
            let status = answers.get(&robot).and_then(|reply| reply.value().ok());
            (robot, status)
        })
        .collect();
    if globals.json {
        for (robot, status) in &robots {
            output::print_json_line(&to_json(robot, status.as_ref()))?;
        }
        return Ok(());
    }
    let rows: Vec<Vec<String>> =
        robots.iter().map(|(robot, status)| row(robot, status.as_ref())).collect();
    Ok(output::print(&table::render(&COLUMNS, &rows))?)
}

const COLUMNS: [Column; 5] = [
    Column::Text("robot"),
    Column::Number("memories"),
    Column::Words("card"),
    Column::Words("running for"),
    Column::Words("omird"),
];

fn text<'a>(status: &'a Value, path: &str) -> Option<&'a str> {
    status.pointer(path).and_then(Value::as_str)
}

/// Of every type together.
fn memories(status: &Value) -> Option<u64> {
    let types = status.pointer("/counts/types")?.as_object()?;
    Some(types.iter().filter_map(|(_, count)| count.as_u64()).sum())
}

fn row(robot: &str, status: Option<&Value>) -> Vec<String> {
    let Some(status) = status else {
        return vec![
            robot.to_owned(),
            String::new(),
            "no answer".to_owned(),
            String::new(),
            String::new(),
        ];
    };
    let uptime = status.get("uptimeSeconds").and_then(Value::as_u64);
    vec![
        robot.to_owned(),
        memories(status).map_or_else(String::new, |count| count.to_string()),
        match status::is_closed(status) {
            true => "needs a token".to_owned(),
            false => text(status, "/disk/state").unwrap_or_default().to_owned(),
        },
        uptime.map_or_else(String::new, |seconds| instant::span(seconds.into())),
        text(status, "/version").unwrap_or_default().to_owned(),
    ]
}

fn to_json(robot: &str, status: Option<&Value>) -> Value {
    let mut members = Map::new();
    members.insert("robot", robot);
    members.insert("answers", status.is_some());
    members.insert("memories", status.and_then(memories));
    members.insert("card", status.and_then(|status| text(status, "/disk/state")));
    members
        .insert("uptimeSeconds", status.and_then(|status| status.get("uptimeSeconds")?.as_u64()));
    members.insert("version", status.and_then(|status| text(status, "/version")));
    Value::Object(members)
}
