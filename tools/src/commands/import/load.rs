//! From files to resources that can be sent: identified, dated, and knowing where they came from.

use std::path::{Path, PathBuf};

use omir_core::cbor;
use omir_core::reference::{Id, Ref, ResourceType};
use omir_core::value::Value;

use crate::cli::{Axes, Format, ImportArgs, Spacing, TrajectoryArgs};
use crate::document;
use crate::error::{Error, Result};
use crate::instant::Instant;
use crate::output;
use crate::parcels::Item;
use crate::trajectory::kitti::KittiFault;
use crate::trajectory::memories::{self, Drive};
use crate::trajectory::{self, Fault, Pose, euroc, kitti, tum};

/// The extension by which a daemon's sealed segment describes itself. It is history, not memory, and
/// is left out.
const SEGMENT: &str = "urn:omird:ext:segment";

/// One resource of a file.
pub(super) struct Resource {
    /// The file, for messages.
    pub(super) file: PathBuf,
    /// Where in the file: a JSON Pointer.
    pub(super) pointer: String,
    /// Its name.
    pub(super) name: Ref,
    /// What is sent.
    pub(super) value: Value,
}

impl Resource {
    /// What its place in the order of sending depends on.
    pub(super) fn item(&self) -> Item {
        let parent = self.value.get("parentId").and_then(Value::as_str);
        Item {
            name: self.name.clone(),
            parent: parent.map(str::to_owned),
            bytes: cbor::to_vec(&self.value).len(),
        }
    }
}

/// Everything in the files named.
pub(super) fn resources(args: &ImportArgs, quiet: bool) -> Result<Vec<Resource>> {
    if args.format == Format::Omir {
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
    let mut all = Vec::new();
    for file in &args.files {
        let found = match args.format {
            Format::Omir => document::resources(file, document::read(file)?)?,
            format => {
                let values = drive(file, format, &args.trajectory, quiet)?;
                let pointers = (0..values.len()).map(|index| format!("/entry/{index}"));
                pointers.zip(values).collect()
            }
        };
        for (pointer, value) in found {
            if !is_segment_manifest(&value) {
                all.push(identified(file, pointer, value)?);
            }
        }
    }
    Ok(all)
}

fn is_segment_manifest(value: &Value) -> bool {
    let url = value.pointer("/extension/0/url").and_then(Value::as_str);
    url == Some(SEGMENT) && value.get("resourceType").and_then(Value::as_str) == Some("Episode")
}

/// Checks what `import` needs beyond what the daemon checks: a name, and a date where the schema wants
/// one. Otherwise the daemon would make them up, and importing again would store everything twice.
fn identified(file: &Path, pointer: String, value: Value) -> Result<Resource> {
    let wrong = |field: &str, problem: &str| {
        let path = format!("{pointer}/{field}");
        Error::Input { message: format!("{}: {path}: {problem}", file.display()), path: Some(path) }
    };
    if value.as_object().is_none() {
        return Err(Error::Input {
            message: format!("{}: {pointer}: a resource is an object", file.display()),
            path: Some(pointer),
        });
    }
    let text = |field: &str| value.get(field).and_then(Value::as_str);
    let kind: ResourceType =
        text("resourceType").and_then(|kind| kind.parse().ok()).ok_or_else(|| {
            wrong("resourceType", "expected MemoryRecord, Entity, Relationship or Episode")
        })?;
    let id = text("id").ok_or_else(|| wrong("id", "missing; an imported resource has its id"))?;
    let id = Id::new(id).map_err(|why| wrong("id", &why.to_string()))?;
    let dated = matches!(kind, ResourceType::MemoryRecord | ResourceType::Episode);
    if dated && text("createdAt").is_none() {
        let problem = format!("missing; an imported {kind} has its time");
        return Err(wrong("createdAt", &problem));
    }
    Ok(Resource { file: file.to_owned(), name: Ref::new(kind, id), pointer, value })
}

/// A trajectory as resources.
fn drive(file: &Path, format: Format, args: &TrajectoryArgs, quiet: bool) -> Result<Vec<Value>> {
    if args.times.is_some() && format != Format::Kitti {
        return Err(Error::Usage("--times is for --format kitti".to_owned()));
    }
    let text = document::read_text(file)?;
    let at = |fault: Fault| in_line(file, &fault);
    let (word, axes, poses) = match format {
        Format::Tum => ("tum", Axes::Ros, tum::parse(&text).map_err(at)?),
        Format::Euroc => ("euroc", Axes::Ros, euroc::parse(&text).map_err(at)?),
        Format::Kitti | Format::Omir => {
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
    let drive = Drive {
        name: &name,
        format: word,
        source: &source,
        frame: args.frame.as_deref().unwrap_or("map"),
        importance: args.importance,
        half_life: args.half_life,
    };
    let remark = format!(
        "{}: {} poses, {} kept as memories of {name}",
        file.display(),
        poses.len(),
        kept.len()
    );
    output::remark(quiet, &remark);
    Ok(memories::resources(&drive, &poses, &moments, &kept))
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
            Command::Import(args) => resources(&args, true),
            _ => panic!("import expected"),
        }
    }

    fn bundle(entry: &str) -> String {
        format!(r#"{{"resourceType":"Bundle","omirVersion":"R1","entry":[{entry}]}}"#)
    }

    #[test]
    fn what_cannot_be_imported_twice_is_refused() {
        for (entry, path) in [
            (r#"{"resourceType":"Entity","name":"n"}"#, "/entry/0/id"),
            (r#"{"resourceType":"Entity","id":"a b","name":"n"}"#, "/entry/0/id"),
            (r#"{"resourceType":"Episode","id":"e","content":"c"}"#, "/entry/0/createdAt"),
            (
                r#"{"resourceType":"Entity","id":"e","name":"n"},{"resourceType":"MemoryRecord","id":"e","content":"c"}"#,
                "/entry/1/createdAt",
            ),
            (r#"{"resourceType":"Agent","id":"e"}"#, "/entry/0/resourceType"),
            ("3", "/entry/0"),
        ] {
            let error = load(&bundle(entry), "omir", &[]).err().unwrap();
            assert_eq!(error.path(), Some(path), "{error}");
            assert_eq!(error.exit_code(), crate::error::USAGE);
        }
        // Relationships and Entities need no date.
        let fine = r#"{"resourceType":"Relationship","id":"r"},{"resourceType":"Entity","id":"e"}"#;
        assert_eq!(load(&bundle(fine), "omir", &[]).unwrap().len(), 2);
    }

    #[test]
    fn a_segments_manifest_stays_behind() {
        let manifest = r#"{"resourceType":"Episode","id":"omird.segment.0000000001","content":"c",
            "createdAt":"2026-01-01T00:00:00Z","extension":[{"url":"urn:omird:ext:segment","valueJson":{}}]}"#;
        let entry = format!(r#"{manifest},{{"resourceType":"Entity","id":"e"}}"#);
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
