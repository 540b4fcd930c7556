//! The open files that versions lie in, who mends what the card has lost of them, and who finds what was moved.

use std::collections::HashMap;
use std::sync::Arc;

use crate::disk::DiskFile;
use crate::recorded::version::{DocId, FileId, Location};

/// The transactions that a segment covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeqRange {
    /// The first.
    pub first_seq: u64,
    /// The last.
    pub last_seq: u64,
}

/// Mends what the card has lost of a file, in memory.
pub trait Mend: Send + Sync {
    /// The file's bytes with all mended that can be; `None` if nothing can. What is still damaged does not pass
    /// its checksum.
    fn mended(&self, file: FileId) -> Option<Arc<[u8]>>;
}

/// Tells where a version lies by now.
pub trait Locate: Send + Sync {
    /// Its position, and the file there; `None` if nobody can tell.
    fn locate(&self, id: DocId) -> Option<(Location, Arc<dyn DiskFile>)>;
}

/// The logs and segments that are served. An index holds it, so that a version and the file it lies in change under
/// one lock.
#[derive(Default)]
pub struct Files {
    files: HashMap<FileId, Arc<dyn DiskFile>>,
    spans: HashMap<FileId, SeqRange>,
    /// Mends what cannot be read.
    mender: Option<Arc<dyn Mend>>,
    /// Finds what was moved under a reader.
    locator: Option<Arc<dyn Locate>>,
}

impl Files {
    /// Makes a log's bytes reachable.
    pub fn add_log(&mut self, id: FileId, file: Arc<dyn DiskFile>) {
        self.files.insert(id, file);
    }

    /// Makes a segment's bytes reachable; it covers the transactions of `span`.
    pub(crate) fn add_segment(&mut self, id: FileId, file: Arc<dyn DiskFile>, span: SeqRange) {
        self.files.insert(id, file);
        self.spans.insert(id, span);
    }

    /// Names the mender of what cannot be read. Nothing is mended without it.
    pub fn mended_by(&mut self, mender: Arc<dyn Mend>) {
        self.mender = Some(mender);
    }

    /// Returns the mender, if one was named.
    pub fn mender(&self) -> Option<Arc<dyn Mend>> {
        self.mender.clone()
    }

    /// Names the index that these are the files of: who reads a version that is moved meanwhile finds it again.
    pub fn located_by(&mut self, locator: Arc<dyn Locate>) {
        self.locator = Some(locator);
    }

    /// Returns the locator, if one was named.
    pub(crate) fn locator(&self) -> Option<Arc<dyn Locate>> {
        self.locator.clone()
    }

    /// Forgets a file that no version lies in any more. Readers that hold it keep it open.
    pub(crate) fn drop_file(&mut self, id: FileId) {
        self.files.remove(&id);
        self.spans.remove(&id);
    }

    /// The segments that are served, in the order of their transactions.
    pub fn segments(&self) -> Vec<(u64, SeqRange, Arc<dyn DiskFile>)> {
        let mut segments: Vec<_> = self
            .spans
            .iter()
            .filter_map(|(id, span)| match id {
                FileId::Segment(number) => {
                    Some((u64::from(*number), *span, self.files.get(id)?.clone()))
                }
                FileId::Log(_) => None,
            })
            .collect();
        segments.sort_by_key(|(number, span, _)| (span.first_seq, *number));
        segments
    }

    /// The file a version lies in.
    pub fn file(&self, id: FileId) -> Option<Arc<dyn DiskFile>> {
        self.files.get(&id).cloned()
    }
}
