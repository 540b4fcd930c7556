//! From files to resources that can be sent: identified, dated, and knowing where they came from.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use omir_core::cbor;
use omir_core::reference::{Id, Ref, ResourceType};
use omir_core::value::Value;
use omird::store::is_manifest;

use super::check::{self, BundleReferences};
use crate::batches::Item;
use crate::cli::{Axes, Format, ImportArgs, Spacing, TrajectoryArgs};
use crate::document;
use crate::error::{Error, Result};
use crate::instant::Instant;
use crate::output;
use crate::trajectory::kitti::KittiFault;
use crate::trajectory::memories::{self, Drive};
use crate::trajectory::{self, Fault, Pose, euroc, kitti, tum};

/// Bytes of a request beside its resources, and a few to spare.
const ENVELOPE: usize = 48;

/// A file that can be imported.
pub(in crate::commands) struct File {
    /// Its name, for messages.
    pub(super) path: PathBuf,
    /// Its contents, in their order.
    pub(in crate::commands) resources: Vec<Resource>,
    /// Number of those that have the name of an earlier one.
    pub(super) repeated: usize,
}

impl File {
    /// Bytes of a request that holds all of it.
    pub(super) fn request_bytes(&self) -> usize {
        self.resources.iter().map(|resource| resource.bytes).sum::<usize>() + ENVELOPE
    }
}

/// A file that was read and found right.
pub(super) enum Loaded {
    /// Its resources are in it.
    Document(File),
    /// They are made of it, once it is known in which frame it lies.
    Drive(PathBuf, Track),
}

impl Loaded {
    /// The resources to be sent. `frame` is that of a trajectory.
    pub(super) fn in_frame(self, frame: &str) -> Result<File> {
        match self {
            Self::Document(file) => Ok(file),
            Self::Drive(path, track) => {
                let values = track.resources(frame).into_iter();
                file(&path, pointed(values))
            }
        }
    }
}

/// A trajectory as it was read, with what its memories are made of beside their frame.
pub(super) struct Track {
    name: String,
    format: &'static str,
    source: String,
    poses: Vec<Pose>,
    moments: Vec<Instant>,
    kept: Vec<usize>,
    importance: Option<f64>,
    half_life: Option<f64>,
}

impl Track {
    fn resources(&self, frame: &str) -> Vec<Value> {
        let drive = Drive {
            name: &self.name,
            format: self.format,
            source: &self.source,
            frame,
            importance: self.importance,
            half_life: self.half_life,
        };
        memories::resources(&drive, &self.poses, &self.moments, &self.kept)
    }
}

/// One resource of a file.
pub(in crate::commands) struct Resource {
    /// The place in the file: a JSON Pointer.
    pub(in crate::commands) pointer: String,
    /// Its name.
    pub(super) name: Ref,
    /// The resource.
    pub(in crate::commands) value: Value,
    /// Its size when it is sent.
    pub(in crate::commands) bytes: usize,
}

impl Resource {
    /// The key of its place in the order of sending.
    pub(in crate::commands) fn item(&self) -> Item {
        let parent = self.value.get("parentId").and_then(Value::as_str);
        Item { name: self.name.clone(), parent: parent.map(str::to_owned), bytes: self.bytes }
    }
}

/// The files named, checked as far as that can be done without a daemon.
pub(super) fn files(args: &ImportArgs, quiet: bool) -> Result<Vec<Loaded>> {
    if args.format() == Format::Omir {
        if let Some(option) = args.trajectory.given() {
            return Err(Error::Usage(format!(
                "{option} is for trajectories; say which with --format tum, kitti or euroc"
            )));
        }
    } else if args.files.len() > 1
        && (args.trajectory.name.is_some() || args.trajectory.times.is_some())
    {
        return Err(Error::Usage(
            "--name and --times belong to one file; import the others with commands of their own"
                .to_owned(),
        ));
    }
    args.files.iter().map(|file| one(file, args, quiet)).collect()
}

fn one(path: &Path, args: &ImportArgs, quiet: bool) -> Result<Loaded> {
    match args.format() {
        Format::Omir => read(path, BundleReferences::Within).map(Loaded::Document),
        format => {
            let track = track(path, format, &args.trajectory, quiet)?;
            Ok(Loaded::Drive(path.to_owned(), track))
        }
    }
}

/// Reads a document that can be sent again: it conforms, so each of its resources has a name, and a date where one is
/// needed.
///
/// # Errors
/// [`Error::Input`] with what is wrong or missing.
pub(in crate::commands) fn read(path: &Path, references: BundleReferences) -> Result<File> {
    let document = document::read(path)?;
    check::conforms(path, &document, references)?;
    file(path, document::resources(path, document)?)
}

/// Resources that are a file, each behind its pointer.
fn file(path: &Path, found: impl IntoIterator<Item = (String, Value)>) -> Result<File> {
    let mut resources = Vec::new();
    let mut scratch = Vec::new();
    for (pointer, value) in found {
        // How a daemon's sealed segment describes itself is history, not memory.
        if !is_manifest(&value) {
            resources.push(named(path, pointer, value, &mut scratch)?);
        }
    }
    let names: HashSet<&Ref> = resources.iter().map(|resource| &resource.name).collect();
    let repeated = resources.len() - names.len();
    Ok(File { path: path.to_owned(), resources, repeated })
}

/// Resources that were made here, each with its name.
pub(super) fn made(values: Vec<Value>) -> Result<File> {
    let mut scratch = Vec::new();
    let path = PathBuf::from("the recording");
    let named =
        pointed(values.into_iter()).map(|(at, value)| named(&path, at, value, &mut scratch));
    let resources = named.collect::<Result<Vec<_>>>()?;
    Ok(File { path, resources, repeated: 0 })
}

/// Each with the pointer that it has in a Bundle of them.
fn pointed(values: impl Iterator<Item = Value>) -> impl Iterator<Item = (String, Value)> {
    values.enumerate().map(|(index, value)| (format!("/entry/{index}"), value))
}

/// Gives a resource of a checked document its name. The check has seen to it that there is one, and a
/// date where the schema wants it; otherwise the daemon would make them up, and importing again would
/// store everything twice.
fn named(file: &Path, pointer: String, value: Value, scratch: &mut Vec<u8>) -> Result<Resource> {
    let text = |field: &str| value.get(field).and_then(Value::as_str);
    let kind = text("resourceType").and_then(|kind| kind.parse::<ResourceType>().ok());
    let id = text("id").and_then(|id| Id::new(id).ok());
    let Some((kind, id)) = kind.zip(id) else {
        let message = format!("{}: {pointer}: a resource without type and id", file.display());
        return Err(Error::Input { message, path: Some(pointer) });
    };
    scratch.clear();
    cbor::write(&value, scratch);
    Ok(Resource { name: Ref::new(kind, id), pointer, value, bytes: scratch.len() })
}

/// Reads a trajectory.
fn track(file: &Path, format: Format, args: &TrajectoryArgs, quiet: bool) -> Result<Track> {
    if args.times.is_some() && format != Format::Kitti {
        return Err(Error::Usage("--times is for --format kitti".to_owned()));
    }
    let text = document::read_text(file)?;
    let at = |fault: Fault| in_line(file, &fault);
    let (word, axes, poses) = match format {
        Format::Tum => ("tum", Axes::Ros, tum::parse(&text).map_err(at)?),
        Format::Euroc => ("euroc", Axes::Ros, euroc::parse(&text).map_err(at)?),
        Format::Kitti | Format::Omir | Format::Mcap => {
            ("kitti", Axes::Optical, kitti_poses(file, &text, args, quiet)?)
        }
    };
    let poses = trajectory::to_ros(args.axes.unwrap_or(axes), poses);
    // The day on which KITTI's odometry sequence 00 was recorded.
    let kitti_day: Option<Instant> = "2011-10-03T00:00:00Z".parse().ok();
    let default_start = kitti_day.filter(|_| format == Format::Kitti);
    let moments = trajectory::moments(&poses, args.start, default_start).map_err(at)?;
    let Spacing(spacing) = args.spacing.unwrap_or(Spacing(1.0));
    let kept = trajectory::select(&poses, spacing, args.every);
    let source = file.file_name().unwrap_or_default().to_string_lossy();
    let name = args.name.clone().unwrap_or_else(|| name_of(file));
    let remark = format!(
        "{}: {} poses, {} kept as memories of {name}",
        file.display(),
        poses.len(),
        kept.len()
    );
    output::remark(quiet, &remark);
    Ok(Track {
        name,
        format: word,
        source: source.into_owned(),
        poses,
        moments,
        kept,
        importance: args.importance,
        half_life: args.half_life,
    })
}

fn kitti_poses(file: &Path, text: &str, args: &TrajectoryArgs, quiet: bool) -> Result<Vec<Pose>> {
    let times = args.times.as_deref().map(document::read_text).transpose()?;
    if times.is_none() {
        output::remark(quiet, "no --times: taking ten poses a second");
    }
    kitti::parse(text, times.as_deref()).map_err(|fault| match fault {
        KittiFault::Poses(fault) => in_line(file, &fault),
        KittiFault::Times(fault) => in_line(args.times.as_deref().unwrap_or(file), &fault),
    })
}

/// `file:line: what`, as compilers say it.
fn in_line(file: &Path, fault: &Fault) -> Error {
    Error::Input { message: format!("{}:{fault}", file.display()), path: None }
}

/// The file's name without its ending, with what no id may hold replaced.
fn name_of(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name: String = stem
        .chars()
        .take(100)
        .map(|c| match c {
            'A'..='Z' | 'a'..='z' | '0'..='9' | '.' | '_' | ':' | '-' => c,
            _ => '-',
        })
        .collect();
    if name.is_empty() { "drive".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser as _;

    fn load(text: &str, ending: &str, line: &[&str]) -> Result<Vec<Resource>> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(format!("my drive.{ending}"));
        std::fs::write(&file, text).unwrap();
        let words = ["omir", "import"].iter().chain(line).copied();
        let words = words.chain([file.to_str().unwrap()]);
        match Cli::try_parse_from(words).unwrap().command {
            Command::Import(args) => {
                let files = files(&args, true)?.into_iter().map(|file| file.in_frame("map"));
                let files = files.collect::<Result<Vec<File>>>()?;
                Ok(files.into_iter().flat_map(|file| file.resources).collect())
            }
            _ => panic!("import expected"),
        }
    }

    fn bundle(entry: &str) -> String {
        format!(r#"{{"resourceType":"Bundle","omirVersion":"R1","entry":[{entry}]}}"#)
    }

    #[test]
    fn what_cannot_be_imported_twice_is_refused() {
        for (entry, path) in [
            (r#"{"resourceType":"Entity","name":"n"}"#, "/entry/0"),
            (r#"{"resourceType":"Entity","id":"a b","name":"n"}"#, "/entry/0/id"),
            (r#"{"resourceType":"Episode","id":"e","content":"c"}"#, "/entry/0"),
            (
                r#"{"resourceType":"Entity","id":"e","name":"n"},{"resourceType":"MemoryRecord","id":"e","content":"c"}"#,
                "/entry/1",
            ),
            (r#"{"resourceType":"Agent","id":"e"}"#, "/entry/0/resourceType"),
            ("3", "/entry/0"),
        ] {
            let error = load(&bundle(entry), "omir", &[]).err().unwrap();
            assert_eq!(error.path(), Some(path), "{error}");
            assert_eq!(error.exit_code(), crate::error::USAGE);
        }
        // Relationships and Entities need no date.
        let fine = r#"{"resourceType":"Entity","id":"e","name":"n"},{"resourceType":"Relationship",
            "id":"r","from":{"ref":"Entity/e"},"relationType":"is","to":{"ref":"Entity/e"}}"#;
        assert_eq!(load(&bundle(fine), "omir", &[]).unwrap().len(), 2);
    }

    #[test]
    fn a_segments_manifest_stays_behind() {
        let manifest = r#"{"resourceType":"Episode","id":"omird.segment.0000000001","content":"c",
            "createdAt":"2026-01-01T00:00:00Z","extension":[{"url":"urn:omird:ext:segment","valueJson":{"format":1}}]}"#;
        let entry = format!(r#"{manifest},{{"resourceType":"Entity","id":"e","name":"n"}}"#);
        let loaded = load(&bundle(&entry), "omir", &[]).unwrap();
        assert_eq!(loaded.len(), 1);
        assert_eq!(loaded[0].pointer, "/entry/1");
    }

    #[test]
    fn a_drive_takes_its_name_from_the_file() {
        let text = "1311868163.0 0 0 0 0 0 0 1\n1311868164.0 5 0 0 0 0 0 1\n";
        let loaded = load(text, "txt", &["--format", "tum"]).unwrap();
        let names: Vec<String> = loaded.iter().map(|one| one.name.to_string()).collect();
        assert_eq!(
            names,
            ["Episode/my-drive", "MemoryRecord/my-drive-000000", "MemoryRecord/my-drive-000001"]
        );
    }

    #[test]
    fn faults_stand_behind_file_and_line() {
        let text = "1311868163.0 0 0 0 0 0 0 1\n1311868164.0 5 0 0 0 0 0\n";
        let error = load(text, "txt", &["--format", "tum"]).err().unwrap();
        assert!(error.to_string().contains("my drive.txt:2: 7 values found"), "{error}");
        let error = load("0 0 0 0 0 0 0 1\n", "txt", &["--format", "tum"]).err().unwrap();
        assert!(error.to_string().contains(":1: "), "{error}");
        assert!(error.to_string().contains("--start"), "{error}");
    }

    #[test]
    fn options_that_do_nothing_are_refused() {
        let empty = bundle("");
        assert!(load(&empty, "omir", &["--spacing", "2"]).is_err());
        let text = "1311868163.0 0 0 0 0 0 0 1\n";
        assert!(load(text, "txt", &["--format", "tum", "--times", "t"]).is_err());
    }
}
