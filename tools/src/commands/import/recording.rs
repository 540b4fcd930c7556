//! `omir import` of a recording of ROS 2, by rules, to memories.
//!
//! What knows of recordings is `omir_ros2::recording`; here files are opened, what comes out is sent or
//! written, and people are told.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use omir_core::stream::Event;
use omir_core::value::{Map, Value};
use omir_ros2::recording::{
    Advance, At, Folder, Import, ImportError, Input, Kind, Loss, Report, TopicReport, by_type,
    configured, is_recording,
};
use omir_ros2::rules::{Pattern, Ros2};

use super::load;
use super::send::Shipment;
use super::tally::Tally;
use crate::cli::{Format, Globals, ImportArgs};
use crate::client::Client;
use crate::document;
use crate::error::{Error, Result, told};
use crate::output::{self, object};
use crate::progress;
use crate::table::{self, Column};

/// Messages between two looks at the bar.
const STEP: usize = 1000;
/// Names in a remark.
const NAMED: usize = 8;

pub(super) fn run(globals: &Globals, args: &ImportArgs) -> Result<()> {
    if let Some(option) = args.trajectory.given() {
        return Err(Error::Usage(format!("{option} is for trajectories, not for recordings")));
    }
    let ros2 = rules(args)?;
    let topics = args.recording.topics.iter().map(Pattern::new).collect();
    let found = args.files.iter().map(|path| in_folder(path)).collect::<Result<Vec<_>>>()?;
    let (files, missing): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    let files = files.concat().iter().map(|path| open(path)).collect::<Result<Vec<_>>>()?;
    let mut import = Import::new(files, &ros2, topics).map_err(|why| match why {
        ImportError::File(why) => Error::Input { message: why.to_string(), path: None },
        ImportError::Rules(why) => Error::Usage(why),
    })?;
    let mut sink = Sink::new(globals, args)?;
    let bar = progress::bytes(globals, Some(import.size()), "reading");
    let sent = pour(&mut import, &mut sink, &bar);
    bar.finish_and_clear();
    let mut report = import.report();
    report.losses.splice(0..0, missing.concat());
    let finished = sent.and_then(|()| sink.finish(globals));
    let printed = tell(globals, args, &report, &sink);
    let outcome = match finished {
        // Of a batch that was not sent to its end some requests are answered as well.
        Err(error) if sink.tally.acknowledged() > 0 => Err(Error::Partial(format!(
            "{} resources are acknowledged and the rest is not; importing again completes it. The \
             cause: {error}",
            sink.tally.acknowledged()
        ))),
        // Unreadable messages matter more than output that the reader closed.
        Err(error @ Error::Output(_)) if error.exit_code() == 0 => lost(&report).and(Err(error)),
        Err(error) => Err(error),
        Ok(()) => lost(&report),
    };
    told(printed, outcome)
}

fn rules(args: &ImportArgs) -> Result<Ros2> {
    match &args.recording.rules {
        Some(path) => {
            configured(&document::read_text(path)?).map_err(|why| Error::input(path, why))
        }
        None => Ok(by_type()),
    }
}

/// A file, or all recordings in the folder that rosbag2 made; and what its metadata tells of and is not there.
fn in_folder(path: &Path) -> Result<(Vec<PathBuf>, Vec<Loss>)> {
    if !path.is_dir() {
        return Ok((vec![path.to_owned()], Vec::new()));
    }
    let Folder { files, missing } = Folder::list(path).map_err(|why| Error::input(path, why))?;
    if files.is_empty() {
        let why = "there is no recording in this folder (.mcap, .db3, or one of these with .zstd)";
        return Err(Error::input(path, why));
    }
    let lost = missing.into_iter().map(|name| Loss {
        file: path.join(name).display().to_string(),
        at: At::File,
        what: "metadata.yaml tells of this file, and it is not there".to_owned(),
    });
    Ok((files, lost.collect()))
}

fn open(path: &Path) -> Result<Input> {
    Input::open(path).map_err(|why| Error::input(path, why))
}

/// Decides about a file by its format: a recording is known by its bytes, by its name, or as a folder.
pub(super) fn with_format(args: &ImportArgs) -> Result<ImportArgs> {
    let mut args = args.clone();
    if args.format.is_some() {
        return Ok(args);
    }
    let (recordings, others): (Vec<&PathBuf>, Vec<&PathBuf>) =
        args.files.iter().partition(|path| looks_like_one(path));
    args.format = match (recordings.first(), others.first()) {
        (Some(recording), Some(other)) => {
            return Err(Error::Usage(format!(
                "{} is a recording and {} is none: import them with commands of their own",
                recording.display(),
                other.display()
            )));
        }
        (Some(_), None) => Some(Format::Mcap),
        (None, _) => None,
    };
    Ok(args)
}

fn looks_like_one(path: &Path) -> bool {
    if document::is_standard(path) {
        return false;
    }
    let mut first = Vec::new();
    let read = File::open(path).and_then(|file| file.take(16).read_to_end(&mut first));
    let by_bytes = match Kind::of(&first) {
        // Packed bytes do not tell a recording from other documents.
        Some(Kind::Zstd | Kind::Gzip) | None => false,
        Some(Kind::Mcap | Kind::Sqlite | Kind::Bag) => read.is_ok(),
    };
    by_bytes || path.is_dir() || is_recording(path)
}

fn pour(import: &mut Import, sink: &mut Sink<'_>, bar: &ProgressBar) -> Result<()> {
    loop {
        match import.advance(STEP) {
            Advance::Reading => {}
            Advance::Batch(resources) => sink.take(resources, bar)?,
            Advance::Done => return Ok(()),
        }
        bar.set_position(import.position());
    }
}

/// The destination of the resources.
struct Sink<'a> {
    to: To<'a>,
    tally: Tally,
    /// Resources that the recording gave so far.
    count: usize,
}

enum To<'a> {
    Daemon(Box<Shipment<'a>>),
    Document(PathBuf, Option<Box<document::Writer>>),
    Nowhere,
}

impl<'a> Sink<'a> {
    fn new(globals: &'a Globals, args: &ImportArgs) -> Result<Self> {
        let to = match &args.output {
            Some(file) => {
                let encoding = document::encoding_for_output(file)?;
                let mut writer = document::Writer::new(file, encoding, true);
                writer.part(Event::Member("resourceType".to_owned(), "Bundle".into()))?;
                writer.part(Event::Member("omirVersion".to_owned(), "R1".into()))?;
                writer.part(Event::Entries)?;
                To::Document(file.clone(), Some(Box::new(writer)))
            }
            None if args.dry_run => To::Nowhere,
            None => {
                let client = Client::open(globals)?;
                let robot = client.robot(globals.robot.as_deref())?;
                To::Daemon(Box::new(Shipment::new(globals, args, client, robot)))
            }
        };
        Ok(Self { to, tally: Tally::default(), count: 0 })
    }

    fn is_sending(&self) -> bool {
        matches!(self.to, To::Daemon(_))
    }

    fn take(&mut self, resources: Vec<Value>, bar: &ProgressBar) -> Result<()> {
        self.count += resources.len();
        match &mut self.to {
            To::Nowhere => {}
            To::Document(_, Some(writer)) => {
                for resource in resources {
                    writer.part(Event::Entry(resource))?;
                }
            }
            To::Document(_, None) => {}
            To::Daemon(shipment) => {
                let file = load::made(resources)?;
                shipment.send_parts(&file, bar, &mut self.tally)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, globals: &Globals) -> Result<()> {
        if let To::Document(file, writer) = &mut self.to
            && let Some(writer) = writer.take()
        {
            writer.finish()?;
            let remark = format!("{} resources written to {}", self.count, file.display());
            output::remark(globals.quiet || globals.json, &remark);
        }
        Ok(())
    }

    /// Outcome of the resources.
    fn to_text(&self) -> String {
        match &self.to {
            To::Daemon(_) => self.tally.to_text(),
            To::Document(..) => format!("{} resources", self.count),
            To::Nowhere => format!("{} resources would be sent", self.count),
        }
    }
}

fn tell(globals: &Globals, args: &ImportArgs, report: &Report, sink: &Sink<'_>) -> io::Result<()> {
    let to_stdout = args.output.as_deref().is_some_and(document::is_standard);
    if globals.json {
        return if to_stdout { Ok(()) } else { output::print_json(&to_json(args, report, sink)) };
    }
    let shown = |topic: &&TopicReport| topic.is_used || topic.unusable.is_some();
    let rows: Vec<Vec<String>> = report.topics.iter().filter(shown).map(row).collect();
    let columns = [
        Column::Words("topic"),
        Column::Number("read"),
        Column::Number("kept"),
        Column::Number("merged"),
        Column::Number("dropped"),
        Column::Text("why"),
    ];
    let text = format!("{}\n{}", table::render(&columns, &rows), sink.to_text());
    let printed = if to_stdout {
        output::remark(globals.quiet, &text);
        Ok(())
    } else {
        output::print(&text)
    };
    remarks(globals.quiet, report);
    printed
}

fn row(topic: &TopicReport) -> Vec<String> {
    let counters = &topic.counters;
    let dropped: u64 = counters.dropped.values().sum();
    let reasons = counters.dropped.iter().map(|(why, count)| (*count, why.as_str()));
    let others = [
        (counters.malformed, "malformed"),
        (counters.unplaced, "kept without a place in the fixed frame"),
    ];
    let reasons = reasons.chain(others.into_iter().filter(|(count, _)| *count > 0));
    let mut why: Vec<String> = reasons.map(|(count, why)| format!("{count} {why}")).collect();
    if topic.is_used && counters.received == 0 && topic.messages > 0 {
        why.push("transforms".to_owned());
    }
    vec![
        topic.topic.clone(),
        topic.messages.to_string(),
        counters.kept.to_string(),
        (counters.merged + counters.updated).to_string(),
        dropped.to_string(),
        topic.unusable.clone().unwrap_or_else(|| why.join(", ")),
    ]
}

fn remarks(quiet: bool, report: &Report) {
    let say = |text: &str| output::remark(quiet, text);
    let unused: Vec<&str> = report
        .topics
        .iter()
        .filter(|topic| !topic.is_used && topic.unusable.is_none())
        .map(|topic| topic.topic.as_str())
        .collect();
    if !unused.is_empty() {
        let more = unused.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let named = unused.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        say(&format!("no rule is for {named}{more}; --rules FILE says what is to be kept of them"));
    }
    for topic in &report.topics {
        let told = topic.malformed.len() as u64;
        for malformed in &topic.malformed {
            say(&format!("{} at {}: {}", topic.topic, malformed.log_time, malformed.why));
        }
        if topic.counters.malformed > told {
            say(&format!(
                "{}: {} more are malformed",
                topic.topic,
                topic.counters.malformed - told
            ));
        }
    }
    for (why, count) in report.transforms_refused.iter().take(NAMED) {
        say(&format!("{count} transforms refused: {why}"));
    }
    for misfit in &report.misfits {
        say(&format!("a rule does not fit: {misfit}"));
    }
    if report.disordered > 0 {
        say(&format!("{} messages were looked at later than recorded", report.disordered));
    }
    if report.untold > 0 {
        say(&format!(
            "{} sights of things are not counted in their memories, which were sent before",
            report.untold
        ));
    }
}

fn to_json(args: &ImportArgs, report: &Report, sink: &Sink<'_>) -> Value {
    let topics = report.topics.iter().map(|topic| {
        let malformed = topic.malformed.iter().map(|one| {
            object([("logTime", one.log_time.to_string().into()), ("why", one.why.as_str().into())])
        });
        object([
            ("topic", topic.topic.as_str().into()),
            ("type", topic.type_name.as_str().into()),
            ("messages", topic.messages.into()),
            ("used", topic.is_used.into()),
            ("unusable", topic.unusable.as_deref().into()),
            ("counters", topic.counters.to_value()),
            ("malformed", malformed.collect()),
        ])
    });
    let losses = report.losses.iter().map(|loss| {
        let at = match loss.at {
            At::File => (None, None),
            At::Byte(byte) => (Some(byte), None),
            At::Row(row) => (None, Some(row)),
        };
        object([
            ("file", loss.file.as_str().into()),
            ("offset", at.0.into()),
            ("row", at.1.into()),
            ("what", loss.what.as_str().into()),
        ])
    });
    let refused: Map =
        report.transforms_refused.iter().map(|(why, count)| (why.as_str(), *count)).collect();
    let files = args.files.iter().map(|file| Value::from(file.display().to_string()));
    object([
        ("files", files.collect()),
        ("resources", sink.count.into()),
        ("stored", if sink.is_sending() { sink.tally.counts() } else { Value::Null }),
        ("topics", topics.collect()),
        ("losses", losses.collect()),
        ("transformsRefused", refused.into()),
        ("disordered", report.disordered.into()),
        ("untold", report.untold.into()),
        ("misfits", report.misfits.iter().map(|one| Value::from(one.as_str())).collect()),
    ])
}

/// Exit code 3 if a file was not whole.
fn lost(report: &Report) -> Result<()> {
    let told: Vec<String> = report.losses.iter().take(NAMED).map(ToString::to_string).collect();
    if told.is_empty() {
        return Ok(());
    }
    let more = match report.losses.len().saturating_sub(told.len()) {
        0 => String::new(),
        more => format!("\n  and {more} more"),
    };
    Err(Error::Partial(format!(
        "what can be read is used, and this cannot:\n  {}{more}",
        told.join("\n  ")
    )))
}

/// Options that do not belong to this format.
pub(super) fn check(args: &ImportArgs) -> Result<()> {
    if args.format() == Format::Mcap {
        return Ok(());
    }
    match args.recording.given() {
        Some(option) => Err(Error::Usage(format!("{option} is for recordings (.mcap, .db3)"))),
        None if args.output.is_some() && !args.dry_run => {
            Err(Error::Usage("-o is for --dry-run, and for recordings".to_owned()))
        }
        None => Ok(()),
    }
}
