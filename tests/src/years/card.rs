//! A flash card on a real folder: it counts what is written, by cause, and its power can be cut.
//!
//! What was written before a cut stays, synced or not; `cut_disk` is stricter, and slower.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use omird::disk::{Disk, DiskFile, Folder, Mode};

/// The reason for a write to the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Memories, changes of memories, and their tombstones, to the log.
    Memories,
    /// That the daemon started, to the log.
    Boots,
    /// Writes the time to the log.
    Marks,
    /// Access states, to the log.
    Accesses,
    /// Writes the changes of a sweep to the log.
    Sweeps,
    /// Memories redated because the clock was set, to the log.
    Clock,
    /// Segments and signatures made from logs.
    Sealing,
    /// Segments and signatures made from segments.
    Compaction,
    /// Everything else: beginning a log, for example.
    Other,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Cause; 9] = [
        Cause::Memories,
        Cause::Boots,
        Cause::Marks,
        Cause::Accesses,
        Cause::Sweeps,
        Cause::Clock,
        Cause::Sealing,
        Cause::Compaction,
        Cause::Other,
    ];

    /// Its name in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Memories => "memories",
            Self::Boots => "boots",
            Self::Marks => "marks",
            Self::Accesses => "accesses",
            Self::Sweeps => "sweeps",
            Self::Clock => "clock",
            Self::Sealing => "sealing",
            Self::Compaction => "compaction",
            Self::Other => "other",
        }
    }
}

#[derive(Debug, Default)]
struct State {
    is_off: AtomicBool,
    /// The current purpose, as a position in [`Cause::ALL`].
    doing: AtomicUsize,
    written: [AtomicU64; Cause::ALL.len()],
}

impl State {
    fn powered(&self) -> io::Result<()> {
        if self.is_off.load(Ordering::Acquire) {
            return Err(io::Error::other("the power is off"));
        }
        Ok(())
    }

    fn cause(&self, path: &str) -> Cause {
        let doing = Cause::ALL[self.doing.load(Ordering::Acquire)];
        let is_segment = path.starts_with("segments/");
        let is_log = path.starts_with("wal/");
        match doing {
            Cause::Compaction if is_segment => Cause::Compaction,
            _ if is_segment => Cause::Sealing,
            Cause::Compaction => Cause::Other,
            _ if is_log => doing,
            _ => Cause::Other,
        }
    }
}

/// The card. Cloning gives another handle.
#[derive(Clone)]
pub struct Card {
    folder: Arc<Folder>,
    state: Arc<State>,
}

impl Card {
    /// A card in this folder.
    pub fn new(folder: Folder) -> Self {
        Self { folder: Arc::new(folder), state: Arc::default() }
    }

    /// Says what is being done from now on.
    pub fn doing(&self, cause: Cause) {
        let at = Cause::ALL.iter().position(|&other| other == cause).unwrap_or_default();
        self.state.doing.store(at, Ordering::Release);
    }

    /// Takes the power away: nothing is written or read any more.
    pub fn cut(&self) {
        self.state.is_off.store(true, Ordering::Release);
    }

    /// Gives the power back.
    pub fn power(&self) {
        self.state.is_off.store(false, Ordering::Release);
    }

    /// Bytes written for each of [`Cause::ALL`].
    pub fn written(&self) -> [u64; Cause::ALL.len()] {
        std::array::from_fn(|at| self.state.written[at].load(Ordering::Acquire))
    }

    /// Bytes written in all.
    pub fn all_written(&self) -> u64 {
        self.written().iter().sum()
    }
}

impl Disk for Card {
    fn create_dir(&self, dir: &str) -> io::Result<()> {
        self.state.powered()?;
        self.folder.create_dir(dir)
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.state.powered()?;
        self.folder.list(dir)
    }

    fn open(&self, path: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        self.state.powered()?;
        let inner = self.folder.open(path, mode)?;
        Ok(Arc::new(CardFile { inner, path: path.to_owned(), state: self.state.clone() }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.state.powered()?;
        self.folder.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.state.powered()?;
        self.folder.remove(path)
    }

    fn sync_dir(&self, _: &str) -> io::Result<()> {
        // Nothing unsynced is lost here, so that a year need not wait for a disk.
        self.state.powered()
    }
}

struct CardFile {
    inner: Arc<dyn DiskFile>,
    path: String,
    state: Arc<State>,
}

impl DiskFile for CardFile {
    fn len(&self) -> io::Result<u64> {
        self.state.powered()?;
        self.inner.len()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.state.powered()?;
        self.inner.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.state.powered()?;
        self.inner.write_at(buf, offset)?;
        let cause = self.state.cause(&self.path);
        let at = Cause::ALL.iter().position(|&other| other == cause).unwrap_or_default();
        self.state.written[at].fetch_add(buf.len() as u64, Ordering::AcqRel);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.state.powered()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.state.powered()?;
        self.inner.truncate(len)
    }

    fn has_name(&self) -> io::Result<bool> {
        self.state.powered()?;
        self.inner.has_name()
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.state.powered()?;
        self.inner.allocate(len)
    }
}
