//! A disk that keeps few files open for reading, however many there are: a store may have thousands
//! of segments, and a process usually gets 1024 descriptors.
//!
//! A file that was opened for reading is closed when others are read, and opened again by its path
//! when it is. [`Disk::remove`] promises that open handles keep reading, so a file is opened once more
//! before its name goes or gets another file, and then stays open until its last reader lets go.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};

use super::{Disk, DiskFile, Mode};
use crate::pass_on;

/// Opens files for reading when they are read; everything else it passes on.
pub struct Pooled {
    inner: Arc<dyn Disk>,
    /// By path, what may still be held of the files that have these names now.
    files: Mutex<HashMap<String, Weak<PooledFile>>>,
    pool: Arc<Pool>,
}

/// The files that are open.
struct Pool {
    limit: usize,
    /// Rises with every read.
    clock: AtomicU64,
    open: Mutex<Vec<Weak<PooledFile>>>,
}

struct PooledFile {
    disk: Arc<dyn Disk>,
    pool: Arc<Pool>,
    path: String,
    /// When it was last read, by the clock of the pool.
    used: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    file: Option<Arc<dyn DiskFile>>,
    /// True if its path no longer leads to it, so that it can not be opened again.
    is_pinned: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

impl Pooled {
    /// Wraps a disk. At most `limit` files are open for reading, besides one for each thread that
    /// reads at the moment and those whose names are gone.
    pub fn new(inner: Arc<dyn Disk>, limit: usize) -> Self {
        let pool = Pool { limit, clock: AtomicU64::new(0), open: Mutex::default() };
        Self { inner, files: Mutex::default(), pool: Arc::new(pool) }
    }

    /// Takes leave of a name whose file is about to lose it.
    fn release(&self, files: &mut HashMap<String, Weak<PooledFile>>, path: &str) -> io::Result<()> {
        if let Some(file) = files.get(path).and_then(Weak::upgrade) {
            match file.pin() {
                // Whatever is done with a name that is not there fails by itself.
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        files.remove(path);
        Ok(())
    }
}

impl Disk for Pooled {
    pass_on!(inner: create_dir list sync_dir space mount_generation);

    fn open(&self, path: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        if mode != Mode::Read {
            return self.inner.open(path, mode);
        }
        let file = {
            let mut files = lock(&self.files);
            let known = files.get(path).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let file = Arc::new(PooledFile {
                    disk: self.inner.clone(),
                    pool: self.pool.clone(),
                    path: path.to_owned(),
                    used: AtomicU64::new(0),
                    state: Mutex::default(),
                });
                files.insert(path.to_owned(), Arc::downgrade(&file));
                file
            })
        };
        // Now, so that whoever opens it hears what is wrong with it.
        file.opened()?;
        Ok(Arc::new(Reader(file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = lock(&self.files);
        self.release(&mut files, from)?;
        self.release(&mut files, to)?;
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let mut files = lock(&self.files);
        self.release(&mut files, path)?;
        self.inner.remove(path)
    }
}

impl Pool {
    /// Takes in a file that was just opened, and closes the one that was not read for longest if
    /// there are too many.
    fn admit(&self, file: &Arc<PooledFile>) {
        let oldest = {
            let mut open = lock(&self.open);
            open.retain(|file| file.strong_count() > 0);
            open.push(Arc::downgrade(file));
            if open.len() <= self.limit {
                return;
            }
            let held = open.iter().enumerate().filter_map(|(at, file)| Some((at, file.upgrade()?)));
            let oldest = held.min_by_key(|(_, file)| file.used.load(Ordering::Relaxed));
            oldest.map(|(at, file)| {
                open.swap_remove(at);
                file
            })
        };
        if let Some(oldest) = oldest {
            oldest.close();
        }
    }
}

impl PooledFile {
    /// The open file.
    fn opened(self: &Arc<Self>) -> io::Result<Arc<dyn DiskFile>> {
        self.used.store(self.pool.clock.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        let file = {
            let mut state = lock(&self.state);
            if let Some(file) = &state.file {
                return Ok(file.clone());
            }
            let file = self.disk.open(&self.path, Mode::Read)?;
            state.file = Some(file.clone());
            file
        };
        // Not under the lock of one file: this closes another one.
        self.pool.admit(self);
        Ok(file)
    }

    /// Closes it, once those who read at the moment are done.
    fn close(&self) {
        let mut state = lock(&self.state);
        if !state.is_pinned {
            state.file = None;
        }
    }

    /// Keeps it open from now on.
    fn pin(&self) -> io::Result<()> {
        let mut state = lock(&self.state);
        if state.file.is_none() {
            state.file = Some(self.disk.open(&self.path, Mode::Read)?);
        }
        state.is_pinned = true;
        Ok(())
    }
}

/// A handle of a reader.
struct Reader(Arc<PooledFile>);

impl DiskFile for Reader {
    fn len(&self) -> io::Result<u64> {
        self.0.opened()?.len()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.opened()?.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.0.opened()?.write_at(buf, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.opened()?.sync()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.opened()?.truncate(len)
    }

    fn has_name(&self) -> io::Result<bool> {
        self.0.opened()?.has_name()
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.0.opened()?.allocate(len)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::disk::{Folder, read, replace};

    /// Counts the files that are open for reading.
    struct Counting {
        folder: Folder,
        open: Arc<AtomicUsize>,
    }

    struct CountingFile {
        file: Arc<dyn DiskFile>,
        open: Arc<AtomicUsize>,
    }

    impl Drop for CountingFile {
        fn drop(&mut self) {
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
    }

    impl DiskFile for CountingFile {
        pass_on!(file: len read_at write_at sync truncate);
    }

    impl Disk for Counting {
        pass_on!(folder: create_dir list rename remove sync_dir);

        fn open(&self, path: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
            let file = self.folder.open(path, mode)?;
            self.open.fetch_add(1, Ordering::Relaxed);
            Ok(Arc::new(CountingFile { file, open: self.open.clone() }))
        }
    }

    const LIMIT: usize = 3;

    struct Rig {
        disk: Pooled,
        open: Arc<AtomicUsize>,
        _folder: tempfile::TempDir,
    }

    fn rig() -> Rig {
        let folder = tempfile::tempdir().unwrap();
        let open = Arc::new(AtomicUsize::new(0));
        let inner = Counting { folder: Folder::new(folder.path()), open: open.clone() };
        Rig { disk: Pooled::new(Arc::new(inner), LIMIT), open, _folder: folder }
    }

    impl Rig {
        /// So many files, each holding its number, and a handle of each.
        fn files(&self, count: u8) -> Vec<Arc<dyn DiskFile>> {
            let file = |n: u8| {
                replace(&self.disk, &n.to_string(), &[n]).unwrap();
                self.disk.open(&n.to_string(), Mode::Read).unwrap()
            };
            (0..count).map(file).collect()
        }

        fn open(&self) -> usize {
            self.open.load(Ordering::Relaxed)
        }
    }

    fn byte(file: &Arc<dyn DiskFile>) -> u8 {
        let mut byte = [0];
        file.read_at(&mut byte, 0).unwrap();
        byte[0]
    }

    #[test]
    fn few_files_are_open_and_all_can_be_read() {
        let rig = rig();
        let files = rig.files(20);
        for _ in 0..2 {
            for (n, file) in files.iter().enumerate() {
                assert_eq!(usize::from(byte(file)), n);
                assert!(rig.open() <= LIMIT, "{} are open", rig.open());
            }
        }
        drop(files);
        assert_eq!(rig.open(), 0, "none is kept for nobody");
    }

    #[test]
    fn what_is_read_often_stays_open() {
        let rig = rig();
        let files = rig.files(10);
        byte(&files[0]);
        for n in 1..10 {
            byte(&files[n]);
            byte(&files[0]);
        }
        rig.disk.inner.remove("0").unwrap();
        assert_eq!(byte(&files[0]), 0);
    }

    #[test]
    fn a_removed_file_is_read_by_who_holds_it() {
        let rig = rig();
        let files = rig.files(10);
        for n in 0..10 {
            rig.disk.remove(&n.to_string()).unwrap();
        }
        for _ in 0..2 {
            assert!((0..10).all(|n| byte(&files[usize::from(n)]) == n));
        }
        assert!(rig.disk.open("3", Mode::Read).is_err());
        assert!(rig.disk.remove("3").is_err());
        drop(files);
        assert_eq!(rig.open(), 0);
    }

    #[test]
    fn a_replaced_file_is_not_taken_for_the_new_one() {
        let rig = rig();
        let files = rig.files(10);
        replace(&rig.disk, "1", b"new").unwrap();
        rig.disk.rename("2", "moved").unwrap();
        replace(&rig.disk, "2", b"other").unwrap();
        for n in 0..10 {
            assert_eq!(byte(&files[usize::from(n)]), n);
        }
        assert_eq!(read(&rig.disk, "1").unwrap(), b"new");
        assert_eq!(read(&rig.disk, "2").unwrap(), b"other");
        assert_eq!(read(&rig.disk, "moved").unwrap(), [2]);
    }

    #[test]
    fn threads_share_it_while_files_come_and_go() {
        let rig = rig();
        let files = rig.files(12);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let files = &files;
                scope.spawn(move || {
                    for n in 0..2_000 {
                        let at = (n * (2 * thread + 1)) % files.len();
                        assert_eq!(usize::from(byte(&files[at])), at);
                    }
                });
            }
            for n in 0..6 {
                rig.disk.remove(&n.to_string()).unwrap();
                replace(&rig.disk, &n.to_string(), b"new").unwrap();
            }
        });
        // Those whose names went to new files stay open for who holds them.
        assert!(rig.open() <= LIMIT + 6, "{} are open", rig.open());
    }
}
