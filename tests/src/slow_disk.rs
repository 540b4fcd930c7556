//! A card whose syncs wait at a gate: as long as it is shut, nothing that is written becomes durable.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use omird::disk::{Disk, DiskFile, Mode};
use omird::store::pass_on;

use crate::cut_disk::CutDisk;

/// The gate. It is open at first.
#[derive(Debug, Default)]
pub struct Gate {
    is_shut: Mutex<bool>,
    opened: Condvar,
    waiting: AtomicUsize,
}

impl Gate {
    /// Lets no sync pass from now on.
    pub fn shut(&self) {
        *self.is_shut.lock().expect("no panic") = true;
    }

    /// Lets all pass.
    pub fn open(&self) {
        *self.is_shut.lock().expect("no panic") = false;
        self.opened.notify_all();
    }

    /// Returns the number of syncs that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    fn pass(&self) {
        let is_shut = self.is_shut.lock().expect("no panic");
        self.waiting.fetch_add(1, Ordering::Relaxed);
        drop(self.opened.wait_while(is_shut, |is_shut| *is_shut).expect("no panic"));
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The card.
#[derive(Clone)]
pub struct SlowDisk {
    card: CutDisk,
    gate: Arc<Gate>,
}

impl SlowDisk {
    /// Returns an empty card behind a gate.
    pub fn behind(gate: &Arc<Gate>) -> Self {
        Self { card: CutDisk::new(), gate: gate.clone() }
    }
}

struct SlowFile {
    file: Arc<dyn DiskFile>,
    gate: Arc<Gate>,
}

impl Disk for SlowDisk {
    pass_on!(card: create_dir list rename remove sync_dir);

    fn open(&self, path: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(SlowFile { file: self.card.open(path, mode)?, gate: self.gate.clone() }))
    }
}

impl DiskFile for SlowFile {
    pass_on!(file: len read_at write_at truncate has_name);

    fn sync(&self) -> io::Result<()> {
        self.gate.pass();
        self.file.sync()
    }
}
