//! Second copies of facts in damaged or missing files, taken into the catalog once all that can be read is
//! in it.
//!
//! A log that is damaged is set aside once what is left of it is sealed, and its witness stays beside it for as
//! long as the damaged file lies there: at each start it tells again what was lost with it. Whoever removes
//! both says that it is not missed any more. A log that is missing gets an empty file in its place.
//!
//! Invariant 10 of ARCHITECTURE.md.

use std::io;

use super::{Recovery, borne};
use crate::disk;
use crate::index::Index;
use crate::log::{wal, witness};
use crate::rot::segment_repair;
use crate::segment::{self, salvage};

impl<I: Index> Recovery<'_, I> {
    /// Hears the witnesses of logs that are gone or set aside, and takes in what all of them say.
    pub(super) fn hear_witnesses(&mut self) -> io::Result<()> {
        let names = self.disk.list(wal::DIR)?;
        let has = |name: String| names.contains(&name);
        for number in names.iter().filter_map(|name| witness::number_of(name)) {
            if has(format!("{number:010}.wal")) {
                continue;
            }
            // A log that was sealed is removed before its witness; one that is newer was lost.
            let contents = witness::load(self.disk, number);
            // One that held nothing, as after a failed sync, may be gone without its witness.
            let is_lost = number > self.last_log && contents.end > wal::FILE_HEADER as u64;
            let is_set_aside = has(format!("{number:010}.wal.damaged"));
            if is_lost && !is_set_aside {
                self.stand_in(number)?;
            }
            if is_set_aside || is_lost {
                self.last_seq = self.last_seq.max(contents.last_seq);
                self.lossy.insert(format!("{}.damaged", wal::path(number)));
                self.facts.extend(contents.facts);
            } else {
                borne(witness::remove(self.disk, number))?;
            }
        }
        // Set aside, or not to be had: what is left of its bytes names first versions, which have no second copy.
        for name in self.disk.list(wal::DIR)? {
            if let Some(number) = name.strip_suffix(".damaged").and_then(wal::number_of) {
                let path = format!("{}.damaged", wal::path(number));
                let bytes =
                    disk::read_around(self.disk, &path).map_or_else(|_| Vec::new(), |read| read.0);
                let durable = witness::load(self.disk, number).end;
                let durable = usize::try_from(durable).unwrap_or(usize::MAX);
                match wal::read_known(&bytes, number, durable) {
                    // The whole frames in it were sealed.
                    Ok(contents) => contents.damage.iter().for_each(|lost| {
                        self.names.extend(salvage::keys_in(&bytes[lost.at..lost.at + lost.len]));
                    }),
                    Err(_) => self.names.extend(salvage::keys_in(&bytes)),
                }
                self.lossy.insert(path);
            }
        }
        for name in self.disk.list(segment::DIR)? {
            // Its sidecar tells its contents as well.
            if let Some(number) = name.strip_suffix(".damaged").and_then(segment::number_of) {
                let path = format!("{}/{name}", segment::DIR);
                self.facts.extend(segment_repair::facts_of(self.disk, number).unwrap_or_default());
                if let Ok((bytes, _)) = disk::read_around(self.disk, &path) {
                    self.names.extend(salvage::keys_set_aside(&bytes));
                }
                self.lossy.insert(path);
            }
        }
        let learned = self.catalog.learn(&std::mem::take(&mut self.facts));
        let lost = learned.lost + self.catalog.lose(&std::mem::take(&mut self.names));
        if !self.lossy.is_empty() {
            self.catalog.lose_unknown();
        }
        // Never a file that is whole: whoever reads it looks there.
        if let Some(file) = self.lossy.first().cloned().filter(|_| lost > 0) {
            let files = self.lossy.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            let message = format!(
                "the newest version of {lost} memories is lost ({files}); they are not served until they are remembered again"
            );
            self.report(&file, message);
        }
        if learned.forgotten > 0 {
            tracing::warn!(
                forgotten = learned.forgotten,
                "tombstones were lost, and their second copies keep what they ended forgotten"
            );
        }
        Ok(())
    }

    /// Puts an empty damaged file in the place of a log that is missing, so that later starts know of it too, whatever is
    /// sealed in between.
    fn stand_in(&mut self, number: u64) -> io::Result<()> {
        let path = wal::path(number);
        let made = wal::stand_in(self.disk, number).map(drop);
        let kept =
            if borne(made)? { format!("; {path}.damaged stands for it") } else { String::new() };
        self.report(
            &path,
            format!(
                "is missing, and its witness tells that memories were in it: they are lost{kept}"
            ),
        );
        Ok(())
    }
}
