//! A file that never grows beyond its bound: when it is full it becomes `FILE.1`, that one `FILE.2`, and the last one goes.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time after a failure until the disk is asked again.
const RETRY: Duration = Duration::from_secs(5);
/// Read and written by its owner alone.
const MODE: u32 = 0o600;

/// Lines that were not written, and why.
#[derive(Debug)]
pub(super) struct WriteError {
    file: PathBuf,
    error: io::Error,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.error)
    }
}

/// The file, and the older ones beside it.
pub(super) struct Rotating {
    path: PathBuf,
    max_bytes: u64,
    keep: u32,
    open: Option<Open>,
    failed: Option<Instant>,
}

struct Open {
    file: File,
    bytes: u64,
    /// Device and inode.
    identity: (u64, u64),
}

impl Rotating {
    pub(super) fn new(path: &Path, max_bytes: u64, keep: u32) -> Self {
        Self { path: path.to_owned(), max_bytes, keep, open: None, failed: None }
    }

    /// Makes the folder, and opens the file. Later the folder is not made again: a card that was pulled out has left an
    /// empty mount point.
    pub(super) fn prepare(&mut self) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        self.open = Some(Open::at(&self.path)?);
        Ok(())
    }

    /// Appends lines.
    pub(super) fn append(&mut self, lines: &[u8]) -> Result<(), WriteError> {
        if self.failed.is_some_and(|failed| failed.elapsed() < RETRY) {
            let error = io::Error::other("it could not be written a moment ago");
            return Err(self.fault(error));
        }
        if self.open.as_ref().is_some_and(|open| !open.is_at(&self.path)) {
            // Another program moved it away, as logrotate does, or deleted it.
            self.open = None;
        }
        match self.try_append(lines) {
            Ok(()) => {
                self.failed = None;
                Ok(())
            }
            Err(error) => {
                self.failed = Some(Instant::now());
                // A part of a line may be there: it is ended where the file is opened again.
                self.open = None;
                Err(self.fault(error))
            }
        }
    }

    fn fault(&self, error: io::Error) -> WriteError {
        WriteError { file: self.path.clone(), error }
    }

    fn try_append(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut rest = lines;
        while !rest.is_empty() {
            let open = match &mut self.open {
                Some(open) => open,
                None => self.open.insert(Open::at(&self.path)?),
            };
            let room = usize::try_from(self.max_bytes.saturating_sub(open.bytes));
            // As many whole lines as fit; a line that is longer than a file has one of its own.
            let end = last_line(&rest[..rest.len().min(room.unwrap_or(usize::MAX))]);
            if end == 0 && open.bytes > 0 {
                self.rotate()?;
                continue;
            }
            let end = if end == 0 { first_line(rest) } else { end };
            let (now, later) = rest.split_at(end);
            open.file.write_all(now)?;
            open.bytes += now.len() as u64;
            rest = later;
        }
        Ok(())
    }

    /// Begins another file. Nothing is written until that is done, so that the bound holds.
    fn rotate(&mut self) -> io::Result<()> {
        self.open = None;
        if self.keep == 0 {
            return fs::remove_file(&self.path);
        }
        for n in (1..self.keep).rev() {
            moved(&self.numbered(n), &self.numbered(n + 1))?;
        }
        moved(&self.path, &self.numbered(1))
    }

    fn numbered(&self, n: u32) -> PathBuf {
        let mut name = OsString::from(&self.path);
        name.push(format!(".{n}"));
        name.into()
    }
}

/// Returns the end of the last whole line; 0 if there is none.
fn last_line(text: &[u8]) -> usize {
    text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1)
}

fn first_line(text: &[u8]) -> usize {
    text.iter().position(|&byte| byte == b'\n').map_or(text.len(), |at| at + 1)
}

fn identity(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

fn moved(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

impl Open {
    fn at(path: &Path) -> io::Result<Self> {
        // A pipe would wait for a reader. A link may lead to a file that is not omird's to close to others.
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
        let flags = flags.bits().cast_signed();
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(MODE).custom_flags(flags);
        let file = options.open(path)?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        if found.permissions().mode() & 0o777 != MODE {
            file.set_permissions(Permissions::from_mode(MODE))?;
        }
        let mut open = Self { bytes: found.len(), identity: identity(&found), file };
        open.end_the_last_line()?;
        Ok(open)
    }

    /// Returns true if it is what lies at the path; also if the disk does not tell.
    fn is_at(&self, path: &Path) -> bool {
        match fs::symlink_metadata(path) {
            Ok(found) => identity(&found) == self.identity,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    /// Ends a line that a full disk or a cut has left.
    fn end_the_last_line(&mut self) -> io::Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        let mut last = [0];
        self.file.seek(SeekFrom::End(-1))?;
        self.file.read_exact(&mut last)?;
        if last != *b"\n" {
            self.file.write_all(b"\n")?;
            self.bytes += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(path: &Path) -> String {
        fs::read_to_string(path).unwrap_or_default()
    }

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/audit.jsonl");
        (folder, path)
    }

    #[test]
    fn only_its_owner_reads_it_and_a_torn_line_is_ended() {
        let (_folder, path) = folder();
        let mut file = Rotating::new(&path, 1000, 1);
        file.prepare().unwrap();
        file.append(b"one\n").unwrap();
        fs::write(&path, "one\ntw").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let mut again = Rotating::new(&path, 1000, 1);
        again.append(b"three\n").unwrap();
        assert_eq!(read(&path), "one\ntw\nthree\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, MODE);
    }

    #[test]
    fn a_disk_that_refuses_is_asked_again_later() {
        let (folder, path) = folder();
        let mut file = Rotating::new(&path, 1000, 1);
        // There is no folder, as where a card was pulled out, and none is made.
        let fault = file.append(b"one\n").unwrap_err();
        assert!(fault.to_string().contains("audit.jsonl"), "{fault}");
        fs::create_dir(folder.path().join("logs")).unwrap();
        file.append(b"two\n").unwrap_err();
        file.failed = file.failed.and_then(|failed| failed.checked_sub(RETRY));
        file.append(b"three\n").unwrap();
        assert_eq!(read(&path), "three\n");
    }

    #[test]
    fn a_file_that_is_moved_away_or_removed_is_begun_anew() {
        let (folder, path) = folder();
        let mut file = Rotating::new(&path, 1000, 1);
        file.prepare().unwrap();
        file.append(b"one\n").unwrap();
        // As logrotate does it, with `create`.
        let aside = folder.path().join("aside");
        fs::rename(&path, &aside).unwrap();
        fs::write(&path, "").unwrap();
        file.append(b"two\n").unwrap();
        assert_eq!(read(&path), "two\n");
        fs::remove_file(&path).unwrap();
        file.append(b"three\n").unwrap();
        assert_eq!(read(&path), "three\n");
        assert_eq!(read(&aside), "one\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, MODE);
        // A folder that is gone is told, and none is made.
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
        file.append(b"four\n").unwrap_err();
    }

    #[test]
    fn a_pipe_is_refused_at_once() {
        let (folder, path) = folder();
        fs::create_dir(folder.path().join("logs")).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &path, fifo, mode, 0).unwrap();
        Rotating::new(&path, 1000, 1).append(b"one\n").unwrap_err();
    }

    proptest! {
        /// The last lines are there, in order, in files that are no larger than they may be, and no more files than that.
        #[test]
        fn the_last_lines_stay_and_the_bound_holds(
            lengths in proptest::collection::vec(1_usize..40, 1..80),
            at_once in 1_usize..7,
            max_bytes in 40_u64..200,
            keep in 0_u32..4,
        ) {
            let (_folder, path) = folder();
            let mut file = Rotating::new(&path, max_bytes, keep);
            file.prepare().unwrap();
            let lines: Vec<String> =
                lengths.iter().enumerate().map(|(n, &length)| format!("{n:>length$}\n")).collect();
            for some in lines.chunks(at_once) {
                file.append(some.concat().as_bytes()).unwrap();
            }
            let mut all = String::new();
            for n in (1..=keep).rev() {
                all += &read(&file.numbered(n));
            }
            all += &read(&path);
            prop_assert!(lines.concat().ends_with(&all));
            prop_assert!(all.ends_with(lines.last().unwrap()));
            let sizes = |n| fs::metadata(file.numbered(n)).map_or(0, |found| found.len());
            prop_assert!((1..=keep).all(|n| sizes(n) <= max_bytes));
            prop_assert!(fs::metadata(&path).unwrap().len() <= max_bytes);
            prop_assert!(!file.numbered(keep + 1).exists() || keep == 0);
            // A file goes only when it is full.
            let total: usize = lines.iter().map(String::len).sum();
            if total as u64 <= max_bytes {
                prop_assert_eq!(all, lines.concat());
            }
        }
    }
}
