//! `omir demo`: the whole of omird in half a minute, with nothing installed.
//!
//! It starts a real daemon (this very program, run again) on a data folder of its own, drives a
//! robot through a small world, kills the daemon with SIGKILL in the middle of the drive, starts it
//! again, and shows what is still there. Every number it prints is measured in that run.

mod daemon;
mod world;

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::{Duration, Instant as Stopwatch};

use omir_core::decode::Limits;
use omir_core::json;
use omir_core::number::Number;
use omir_core::spatial::SPATIAL_POSE_URL;
use omir_core::validate::{Level, Severity, validate_bundle};
use omir_core::value::Value;

use self::daemon::Daemon;
use self::world::{Pose, THINGS, Thing, drive, noted, room};
use super::view;
use crate::cli::{DemoArgs, Globals};
use crate::client::{Client, Payload};
use crate::document;
use crate::error::{Error, Result};
use crate::output::{self, object};
use crate::selector::Parameters;
use crate::table::{self, Column};

const ROBOT: &str = "demo";
/// The share of the drive after which the power is pulled.
const CUT_AT: f64 = 0.6;

pub(super) use self::daemon::run as run_daemon;

/// Acknowledged memories: reference and content.
type Journal = BTreeMap<String, String>;

pub(super) fn run(globals: &Globals, args: &DemoArgs) -> Result<()> {
    let folder = match &args.into {
        Some(folder) => folder.clone(),
        None => fresh_folder()?,
    };
    let data = folder.join("data");
    let story = Story { json: globals.json };
    let began = Stopwatch::now();

    story.title("A robot wakes up")?;
    let mut daemon = Daemon::start(&data, ROBOT)?;
    story.line(&format!(
        "omird serves on {}, its memory is in {}",
        daemon.endpoint,
        data.display()
    ))?;

    story.title("It drives through four rooms and remembers what it sees")?;
    let poses = drive();
    let cut = (poses.len() as f64 * CUT_AT) as usize;
    let mut journal = Journal::new();
    let client = daemon.client(globals)?;
    remember_world(&client, &mut journal)?;
    let driving = Stopwatch::now();
    for step in 0..cut {
        look_around(&client, &poses, step, &mut journal)?;
    }
    let rate = journal.len() as f64 / driving.elapsed().as_secs_f64();
    story.line(&format!(
        "{} memories acknowledged, each one safe on the disk before the answer ({rate:.0} a second)",
        journal.len()
    ))?;

    story.title("In the middle of the drive, the battery is pulled")?;
    let pid = daemon.pid();
    let killer = daemon.kill_soon(Duration::from_millis(40));
    let mut refused = 0u32;
    for step in cut..poses.len() {
        if look_around(&client, &poses, step, &mut journal).is_err() {
            refused += 1;
            break;
        }
    }
    killer.join().map_err(|_| Error::Partial("the daemon could not be killed".to_owned()))?;
    drop(client);
    story.line(&format!(
        "SIGKILL to process {pid}; {} memories had been acknowledged by then{}",
        journal.len(),
        if refused > 0 { ", one was still on its way" } else { "" }
    ))?;

    story.title("It boots")?;
    let booting = Stopwatch::now();
    daemon = Daemon::start(&data, ROBOT)?;
    let client = daemon.client(globals)?;
    let booted = booting.elapsed();
    let (there, missing) = check(&client, &journal)?;
    story.line(&format!(
        "up after {} ms; {there} of {} acknowledged memories are there, {} lost",
        booted.as_millis(),
        journal.len(),
        missing.len()
    ))?;
    for step in cut..poses.len() {
        look_around(&client, &poses, step, &mut journal)?;
    }
    story.line(&format!("the drive goes on; {} memories now", journal.len()))?;

    story.title("What did I see within two metres of the charging dock?")?;
    let mut near = Parameters::new();
    near.push("near", "0.4,0.3");
    near.push("radius", "2");
    near.push("minImportance", "0.2");
    near.push("limit", "4");
    near.push("touch", "false");
    story.hits(&client.ask(ROBOT, "recall", &near, None)?.value()?)?;

    story.title("What was on the floor that I must not drive over?")?;
    let mut words = Parameters::new();
    words.push("q", "wet spill or loose cable on the floor");
    words.push("type", "MemoryRecord");
    words.push("limit", "4");
    words.push("touch", "false");
    story.hits(&client.ask(ROBOT, "recall", &words, None)?.value()?)?;

    story.title("And how it forgets, if it never thinks of them again")?;
    let forgetting = forgetting(&client)?;
    story.table(&forgetting)?;

    story.title("All of it, in an open format")?;
    let file = folder.join("memories.omir");
    let resources = export(&client, &file)?;
    daemon.stop()?;
    story.line(&format!(
        "{resources} resources in {} (valid OMIR R1), {} of memory on the disk",
        file.display(),
        table::bytes(folder_bytes(&data))
    ))?;
    story.line(&format!(
        "everything is kept in {} for you to look at; the whole took {:.1} s",
        folder.display(),
        began.elapsed().as_secs_f64()
    ))?;
    if story.json {
        output::print_json(&object([
            ("acknowledged", Value::Number(Number::from(journal.len() as u64))),
            ("thereAfterPowerCut", Value::Number(Number::from(there))),
            ("lost", Value::Number(Number::from(missing.len() as u64))),
            ("bootMillis", Value::Number(Number::from(booted.as_millis() as u64))),
            ("exported", file.display().to_string().into()),
            ("folder", folder.display().to_string().into()),
        ]))?;
    }
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Error::Partial(format!("lost: {}", missing.join(", "))))
    }
}

fn fresh_folder() -> Result<PathBuf> {
    tempfile::Builder::new()
        .prefix("omir-demo-")
        .tempdir()
        .map(tempfile::TempDir::keep)
        .map_err(Error::from)
}

fn float(n: f64) -> Value {
    Number::from_f64(n).map_or(Value::Null, Value::Number)
}

fn extension_pose(position: [f64; 3], yaw: f64) -> Value {
    let orientation = [0.0, 0.0, (yaw / 2.0).sin(), (yaw / 2.0).cos()];
    object([
        ("url", SPATIAL_POSE_URL.into()),
        (
            "valueJson",
            object([
                ("frame", "map".into()),
                ("position", Value::Array(position.iter().map(|&n| float(n)).collect())),
                ("orientation", Value::Array(orientation.iter().map(|&n| float(n)).collect())),
            ]),
        ),
    ])
}

/// One durable write: returns when the daemon has acknowledged it.
fn remember(client: &Client, resources: Vec<Value>, journal: &mut Journal) -> Result<()> {
    let noted: Vec<(String, String)> =
        resources.iter().map(|resource| (view::name(resource), view::words(resource))).collect();
    let payload = json::to_string(&Value::Array(resources)).into_bytes();
    client.ask(ROBOT, "remember", &Parameters::new(), Some(&Payload::Json(payload)))?;
    journal.extend(noted);
    Ok(())
}

fn remember_world(client: &Client, journal: &mut Journal) -> Result<()> {
    let entities = THINGS
        .iter()
        .map(|thing| {
            object([
                ("resourceType", "Entity".into()),
                ("id", thing.id.into()),
                ("name", thing.name.into()),
                ("labels", Value::Array(vec!["other".into()])),
                ("salience", float(thing.importance)),
            ])
        })
        .collect();
    remember(client, entities, journal)
}

fn look_around(client: &Client, poses: &[Pose], step: usize, journal: &mut Journal) -> Result<()> {
    let now = crate::instant::Instant::now().to_string();
    let pose = &poses[step];
    let mut resources = vec![passage(step, pose, &now)];
    resources.extend(noted(poses, step).map(|thing| sight(step, pose, thing, &now)));
    remember(client, resources, journal)
}

/// The robot's path: soon forgotten.
fn passage(step: usize, pose: &Pose, now: &str) -> Value {
    let [x, y] = pose.at;
    object([
        ("resourceType", "MemoryRecord".into()),
        ("id", format!("passage-{step:04}").into()),
        ("content", format!("drove through the {}", room(pose)).into()),
        ("createdAt", now.into()),
        ("eventTime", now.into()),
        ("experienceType", "observation".into()),
        ("importance", float(0.1)),
        ("decay", object([("halfLifeHours", float(6.0)), ("lastAccess", now.into())])),
        ("extension", Value::Array(vec![extension_pose([x, y, 0.0], pose.yaw)])),
    ])
}

fn sight(step: usize, pose: &Pose, thing: &Thing, now: &str) -> Value {
    let [x, y, z] = thing.at;
    let away = (x - pose.at[0]).hypot(y - pose.at[1]);
    let bearing = (y - pose.at[1]).atan2(x - pose.at[0]) - pose.yaw;
    let side = if bearing.sin() >= 0.0 { "left" } else { "right" };
    object([
        ("resourceType", "MemoryRecord".into()),
        ("id", format!("sight-{step:04}-{}", thing.id).into()),
        (
            "content",
            format!("saw the {} in the {}, {away:.1} m to my {side}", thing.name, thing.room)
                .into(),
        ),
        ("createdAt", now.into()),
        ("eventTime", now.into()),
        ("experienceType", "observation".into()),
        ("importance", float(thing.importance)),
        ("decay", object([("halfLifeHours", float(thing.half_life)), ("lastAccess", now.into())])),
        (
            "entityRefs",
            Value::Array(vec![object([("ref", format!("Entity/{}", thing.id).into())])]),
        ),
        ("extension", Value::Array(vec![extension_pose([x, y, z], pose.yaw)])),
    ])
}

/// Reads every acknowledged memory back and compares it.
fn check(client: &Client, journal: &Journal) -> Result<(u64, Vec<String>)> {
    let mut there = 0;
    let mut missing = Vec::new();
    for (reference, words) in journal {
        let found = client.fetch(ROBOT, &format!("memory/{reference}"))?;
        let same = match found {
            Some(reply) => view::words(&reply.value()?) == *words,
            None => false,
        };
        if same {
            there += 1;
        } else {
            missing.push(reference.clone());
        }
    }
    Ok((there, missing))
}

/// Retrievability of a few memories over the weeks to come, as the daemon works it out: `asOf` may
/// lie in the future.
fn forgetting(client: &Client) -> Result<Vec<Vec<String>>> {
    const WEEKS: [i128; 6] = [0, 1, 2, 4, 8, 26];
    let now = crate::instant::Instant::now();
    let mut rows = Vec::new();
    for (what, entity) in [
        ("wet spill", "spill"),
        ("red mug", "red-mug"),
        ("thirsty plant", "plant"),
        ("charging dock", "charging-dock"),
        ("stairs, anchored", "stairs"),
    ] {
        if entity == "stairs" {
            anchor_one(client, entity)?;
        }
        let mut row = vec![what.to_owned()];
        for weeks in WEEKS {
            let then = now.plus(weeks * 7 * 24 * 3_600 * 1_000_000_000 + 1_000_000_000);
            let mut ask = Parameters::new();
            ask.push("entity", &format!("Entity/{entity}"));
            ask.push("type", "MemoryRecord");
            ask.push("limit", "1");
            ask.push_some("asOf", then.map(|then| then.to_string()));
            let reply = client.ask(ROBOT, "recall", &ask, None)?.value()?;
            row.push(view::number(reply.pointer("/hits/0/retrievability"), 2));
        }
        rows.push(row);
    }
    Ok(rows)
}

fn anchor_one(client: &Client, entity: &str) -> Result<()> {
    let mut ask = Parameters::new();
    ask.push("entity", &format!("Entity/{entity}"));
    ask.push("type", "MemoryRecord");
    ask.push("limit", "1");
    ask.push("touch", "false");
    let reply = client.ask(ROBOT, "recall", &ask, None)?.value()?;
    if let Some(hit) = reply.pointer("/hits/0/resource") {
        let mut anchor = Parameters::new();
        anchor.push("ref", &view::name(hit));
        client.ask(ROBOT, "anchor", &anchor, None)?;
    }
    Ok(())
}

fn export(client: &Client, file: &std::path::Path) -> Result<usize> {
    let reply = client.ask(ROBOT, "export", &Parameters::new(), None)?;
    let bundle = json::from_slice(&reply.body, &Limits::default())
        .map_err(|error| Error::Partial(format!("the export is unreadable: {error}")))?;
    let faults = validate_bundle(&bundle, Level::Core);
    if let Some(fault) = faults.iter().find(|fault| fault.severity() == Severity::Error) {
        return Err(Error::Partial(format!("the export is not conformant: {}", fault.message)));
    }
    document::write(file, &bundle)?;
    Ok(bundle.get("entry").and_then(Value::as_array).map_or(0, <[Value]>::len))
}

fn folder_bytes(folder: &std::path::Path) -> u64 {
    omird::store::folder_size(folder)
}

/// Tells the story as it happens; silent with `--json`, which prints one object at the end.
struct Story {
    json: bool,
}

impl Story {
    fn title(&self, text: &str) -> Result<()> {
        if self.json {
            return Ok(());
        }
        let text = if std::io::stdout().is_terminal() {
            format!("\n\u{1b}[1m{text}\u{1b}[0m")
        } else {
            format!("\n{text}")
        };
        Ok(output::print(&text)?)
    }

    fn line(&self, text: &str) -> Result<()> {
        if self.json { Ok(()) } else { Ok(output::print(&format!("  {text}"))?) }
    }

    fn indented(&self, text: &str) -> Result<()> {
        text.lines().try_for_each(|line| self.line(line))
    }

    fn hits(&self, reply: &Value) -> Result<()> {
        let hits = reply.get("hits").and_then(Value::as_array).unwrap_or_default();
        let rows: Vec<Vec<String>> = hits
            .iter()
            .map(|hit| {
                vec![
                    view::number(hit.get("score"), 2),
                    view::number(hit.get("distance"), 2),
                    hit.get("resource").map(view::words).unwrap_or_default(),
                ]
            })
            .collect();
        let columns = [Column::Number("score"), Column::Number("metres"), Column::Text("memory")];
        self.indented(&table::render(&columns, &rows))?;
        let total = reply.get("total").and_then(Value::as_u64).unwrap_or(0);
        let micros = reply.get("tookMicros").and_then(Value::as_u64).unwrap_or(0);
        self.line(&format!("{} of {total} matches, found in {micros} µs", rows.len()))
    }

    fn table(&self, rows: &[Vec<String>]) -> Result<()> {
        let columns = [
            Column::Words("retrievability of"),
            Column::Number("now"),
            Column::Number("1 week"),
            Column::Number("2 weeks"),
            Column::Number("4 weeks"),
            Column::Number("8 weeks"),
            Column::Number("½ year"),
        ];
        self.indented(&table::render(&columns, rows))
    }
}
