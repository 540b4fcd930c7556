//! The real disk: a folder of the operating system's file system.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Disk, DiskFile, Gone, Mode, Space};

/// Tells how often the folder came back, as [`Disk::mounting`].
pub type Mounting = Arc<dyn Fn() -> io::Result<u64> + Send + Sync>;

/// A data folder on the operating system's file system.
#[derive(Clone)]
pub struct Folder {
    root: PathBuf,
    mounting: Option<Mounting>,
}

impl Folder {
    /// The folder at `root`, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), mounting: None }
    }

    /// The folder at `root`, as long as `mounting` says that it still is the one that was opened:
    /// a card that is not there leaves an empty folder behind, on another disk.
    pub fn watched(root: impl Into<PathBuf>, mounting: Mounting) -> Self {
        Self { root: root.into(), mounting: Some(mounting) }
    }

    /// Where the folder is.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

impl Disk for Folder {
    fn create_dir(&self, dir: &str) -> io::Result<()> {
        self.mounting()?;
        fs::create_dir_all(self.root.join(dir))
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        fs::read_dir(self.root.join(dir))?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }

    fn open(&self, path: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let path = self.root.join(path);
        let file = match mode {
            Mode::Read => File::open(path)?,
            Mode::Write => {
                self.mounting()?;
                OpenOptions::new().read(true).write(true).open(path)?
            }
            Mode::Create => {
                let before = self.mounting()?;
                let file = OpenOptions::new()
                    .read(true)
                    .write(true)
                    .create(true)
                    .truncate(true)
                    .open(path)?;
                // The card may have gone in between; then nothing is written to what was made.
                if self.mounting()? != before {
                    return Err(Gone("the data folder came back just now".to_owned()).into());
                }
                file
            }
        };
        Ok(Arc::new(FolderFile(file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.mounting()?;
        fs::rename(self.root.join(from), self.root.join(to))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.mounting()?;
        fs::remove_file(self.root.join(path))
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        File::open(self.root.join(dir))?.sync_all()
    }

    fn space(&self) -> io::Result<Space> {
        let found = rustix::fs::statvfs(&self.root)?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Ok(Space { free: bytes(found.f_bavail), total: bytes(found.f_blocks) })
    }

    fn mounting(&self) -> io::Result<u64> {
        self.mounting.as_ref().map_or(Ok(0), |mounting| mounting())
    }
}

struct FolderFile(File);

impl DiskFile for FolderFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(buf, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
}
