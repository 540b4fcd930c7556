//! The real disk: a folder of the operating system's file system.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::{Disk, DiskFile, FolderGone, Mode, Space};

/// Tells how often the folder came back, as [`Disk::mount_generation`].
pub type MountGeneration = Arc<dyn Fn() -> io::Result<u64> + Send + Sync>;

/// A data folder on the operating system's file system.
#[derive(Clone)]
pub struct Folder {
    root: PathBuf,
    mount_generation: Option<MountGeneration>,
}

impl Folder {
    /// The folder at `root`, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), mount_generation: None }
    }

    /// The folder at `root`, as long as `mount_generation` says that it still is the one that was opened:
    /// a card that is not there leaves an empty folder behind, on another disk.
    pub fn watched(root: impl Into<PathBuf>, mount_generation: MountGeneration) -> Self {
        Self { root: root.into(), mount_generation: Some(mount_generation) }
    }

    /// The path of the folder.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

impl Disk for Folder {
    fn create_dir(&self, dir: &str) -> io::Result<()> {
        self.mount_generation()?;
        // Whatever the umask: what a robot saw is not for everybody on the machine.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(self.root.join(dir))
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        fs::read_dir(self.root.join(dir))?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }

    fn open(&self, path: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let path = self.root.join(path);
        let file = match mode {
            Mode::Read => File::open(&path)?,
            Mode::Write => {
                self.mount_generation()?;
                OpenOptions::new().read(true).write(true).custom_flags(no_link()).open(&path)?
            }
            Mode::Create => {
                let before = self.mount_generation()?;
                let file = OpenOptions::new()
                    .read(true)
                    .write(true)
                    .create(true)
                    .truncate(true)
                    .mode(0o600)
                    .custom_flags(no_link())
                    .open(&path)?;
                // The card may have gone in between; then nothing is written to what was made.
                if self.mount_generation()? != before {
                    return Err(FolderGone("the data folder came back just now".to_owned()).into());
                }
                file
            }
        };
        Ok(Arc::new(FolderFile { file, path }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.mount_generation()?;
        fs::rename(self.root.join(from), self.root.join(to))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.mount_generation()?;
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

    fn mount_generation(&self) -> io::Result<u64> {
        self.mount_generation.as_ref().map_or(Ok(0), |mount_generation| mount_generation())
    }
}

/// Nothing is written through a symbolic link that somebody put into the folder: it may lead anywhere.
pub(crate) fn no_link() -> i32 {
    rustix::fs::OFlags::NOFOLLOW.bits() as i32
}

struct FolderFile {
    file: File,
    /// The path that it was opened under.
    path: PathBuf,
}

impl DiskFile for FolderFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(buf, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn has_name(&self) -> io::Result<bool> {
        let own = self.file.metadata()?;
        match fs::symlink_metadata(&self.path) {
            Ok(named) => {
                let number = |file: &Metadata| (file.dev(), file.ino());
                // Some file systems give a file another number at each look, as those of FUSE may.
                let traits = |file: &Metadata| (file.len(), file.mtime(), file.mtime_nsec());
                let is_alike = own.nlink() > 0 && traits(&named) == traits(&own);
                Ok(number(&named) == number(&own) || is_alike)
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        loop {
            match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, len) {
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                    return super::write_zeros(self, len);
                }
                allocated => return Ok(allocated?),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_made_is_the_owners_alone_and_no_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(dir.path().join("data"));
        folder.create_dir("wal/old").unwrap();
        folder.open("wal/log", Mode::Create).unwrap();
        let mode = |path: &str| {
            fs::metadata(folder.root().join(path)).unwrap().permissions().mode() & 0o777
        };
        assert_eq!(
            (mode(""), mode("wal"), mode("wal/old"), mode("wal/log")),
            (0o700, 0o700, 0o700, 0o600)
        );

        let outside = dir.path().join("outside");
        fs::write(&outside, "mine").unwrap();
        std::os::unix::fs::symlink(&outside, folder.root().join("wal/link")).unwrap();
        assert!(folder.open("wal/link", Mode::Create).is_err());
        assert!(folder.open("wal/link", Mode::Write).is_err());
        assert_eq!(fs::read_to_string(&outside).unwrap(), "mine");
    }

    #[test]
    fn a_file_that_was_deleted_moved_or_replaced_has_lost_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(dir.path());
        let at = |name: &str| folder.root().join(name);
        let file = folder.open("log", Mode::Create).unwrap();
        assert!(file.has_name().unwrap());
        fs::rename(at("log"), at("moved")).unwrap();
        assert!(!file.has_name().unwrap());
        fs::write(at("log"), "another").unwrap();
        assert!(!file.has_name().unwrap());
        fs::rename(at("moved"), at("log")).unwrap();
        assert!(file.has_name().unwrap());
        fs::remove_file(at("log")).unwrap();
        assert!(!file.has_name().unwrap());
    }
}
