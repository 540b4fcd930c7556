//! The files of a recording: what they hold, by their first bytes, and which of a folder belong to it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The source of a recording.
pub trait Source: Read + Seek {}

impl<S: Read + Seek> Source for S {}

/// A file of a recording.
pub struct Input {
    pub(super) name: String,
    pub(super) source: Box<dyn Source>,
    /// Its path; SQLite reads files, and no other sources.
    pub(super) path: Option<PathBuf>,
}

impl Input {
    /// Bytes from anywhere, under a name for messages.
    pub fn new(name: impl Into<String>, source: Box<dyn Source>) -> Self {
        Self { name: name.into(), source, path: None }
    }

    /// A file on the disk.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let source = Box::new(File::open(path)?);
        Ok(Self { name: path.display().to_string(), source, path: Some(path.to_owned()) })
    }
}

/// Contents of a file, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// MCAP, by rosbag2, Foxglove or others.
    Mcap,
    /// The SQLite storage of rosbag2, `.db3`.
    Sqlite,
    /// A bag of ROS 1, version 2.0.
    Bag,
    /// A file compressed as a whole with zstd.
    Zstd,
    /// A file compressed as a whole with gzip.
    Gzip,
}

const MAGICS: [(&[u8], Kind); 5] = [
    (mcap::MAGIC, Kind::Mcap),
    (b"SQLite format 3\0", Kind::Sqlite),
    (b"#ROSBAG V", Kind::Bag),
    (&ZSTD, Kind::Zstd),
    (&[0x1f, 0x8b, 0x08], Kind::Gzip),
];

/// First bytes of everything that is compressed with zstd.
pub(super) const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

impl Kind {
    /// Returns the format that begins with these bytes.
    pub fn of(first: &[u8]) -> Option<Self> {
        MAGICS.iter().find(|(magic, _)| first.starts_with(magic)).map(|(_, kind)| *kind)
    }

    /// Returns the format of a source, from its current position.
    pub(super) fn sniff(mut source: &mut dyn Source) -> io::Result<Option<Self>> {
        source.seek(SeekFrom::Start(0))?;
        let mut first = Vec::new();
        (&mut source).take(16).read_to_end(&mut first)?;
        source.seek(SeekFrom::Start(0))?;
        Ok(Self::of(&first))
    }
}

/// Endings of recordings, and those of a compressed one behind them.
const ENDINGS: [&str; 3] = ["mcap", "db3", "bag"];
const COMPRESSED: [&str; 3] = ["zstd", "zst", "gz"];

/// Returns true if a file is a recording by its name: `x.mcap`, `x.db3`, `x.bag`, or one of these compressed as a
/// whole.
pub fn is_recording(path: &Path) -> bool {
    let ending = |path: &Path| Some(path.extension()?.to_str()?.to_ascii_lowercase());
    let Some(last) = ending(path) else { return false };
    if COMPRESSED.contains(&last.as_str()) {
        return ending(&path.with_extension("")).is_some_and(|one| ENDINGS.contains(&one.as_str()));
    }
    ENDINGS.contains(&last.as_str())
}

/// The recordings in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folder {
    /// Their paths, by name. Of a file and the same one compressed it is the first.
    pub files: Vec<PathBuf>,
    /// Names of files that `metadata.yaml` tells of and that are not there.
    pub missing: Vec<String>,
}

impl Folder {
    /// Looks what is in it. The files count, and not what `metadata.yaml` tells of them: a recording that was cut
    /// short has none.
    ///
    /// # Errors
    /// If it cannot be listed.
    pub fn list(path: &Path) -> io::Result<Self> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(path)? {
            let file = entry?.path();
            if is_recording(&file) {
                files.push(file);
            }
        }
        files.sort();
        let all = files.clone();
        // rosbag2 leaves the unpacked file beside the packed one when it played it.
        let is_packed = |file: &Path| all.iter().any(|other| *other == file.with_extension(""));
        files.retain(|file| !is_packed(file));
        let metadata = std::fs::read_to_string(path.join("metadata.yaml")).unwrap_or_default();
        let missing = named(&metadata).filter(|name| {
            let file = path.join(name);
            !all.iter().any(|there| *there == file || there.with_extension("") == file)
        });
        let missing = missing.map(str::to_owned).collect();
        Ok(Self { files, missing })
    }
}

/// The files that a `metadata.yaml` names: the list `relative_file_paths`.
fn named(yaml: &str) -> impl Iterator<Item = &str> {
    let mut lines = yaml.lines().skip_while(|line| line.trim() != "relative_file_paths:");
    lines.next();
    lines.map_while(|line| line.trim().strip_prefix("- ")).map(|name| {
        let name = name.trim();
        name.trim_matches(['"', '\''])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_known_by_its_name_and_by_its_bytes() {
        for name in ["a.mcap", "A.DB3", "x/a.bag", "a.mcap.zstd", "a.db3.zst", "a.bag.gz"] {
            assert!(is_recording(Path::new(name)), "{name}");
        }
        for name in ["a.omir", "mcap", "a.zstd", "a.omirb.gz", "a.txt", ""] {
            assert!(!is_recording(Path::new(name)), "{name}");
        }
        assert_eq!(Kind::of(b"#ROSBAG V2.0\n"), Some(Kind::Bag));
        assert_eq!(Kind::of(b"\x28\xb5\x2f\xfd...."), Some(Kind::Zstd));
        assert_eq!(Kind::of(b"SQLite"), None);
    }

    #[test]
    fn a_folder_tells_what_is_missing_and_takes_nothing_twice() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["d_0.db3", "d_0.db3.zstd", "d_1.db3.zstd", "notes.txt"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let yaml = "rosbag2_bagfile_information:\n  version: 5\n  relative_file_paths:\n    - d_0.db3\n    \
                    - d_1.db3.zstd\n    - \"d_2.db3.zstd\"\n  files:\n    - path: d_0.db3\n";
        std::fs::write(folder.path().join("metadata.yaml"), yaml).unwrap();
        let found = Folder::list(folder.path()).unwrap();
        let names: Vec<_> = found.files.iter().map(|file| file.file_name().unwrap()).collect();
        assert_eq!(names, ["d_0.db3", "d_1.db3.zstd"]);
        assert_eq!(found.missing, ["d_2.db3.zstd"]);
    }
}
