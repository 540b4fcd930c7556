//! A disk whose syncs take long, as those of a memory card do.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use omird::disk::{Disk, DiskFile, Folder, Mode};
use omird::store::pass_on;

/// A folder whose files take `sync` longer to become durable.
pub struct SlowDisk {
    /// The real one.
    pub inner: Folder,
    /// Delay of each call.
    pub sync: Duration,
}

impl Disk for SlowDisk {
    pass_on!(inner: create_dir list rename remove sync_dir);

    fn open(&self, path: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(SlowFile { inner: self.inner.open(path, mode)?, sync: self.sync }))
    }
}

struct SlowFile {
    inner: Arc<dyn DiskFile>,
    sync: Duration,
}

impl DiskFile for SlowFile {
    pass_on!(inner: len read_at write_at truncate has_name allocate);

    fn sync(&self) -> io::Result<()> {
        std::thread::sleep(self.sync);
        self.inner.sync()
    }
}
