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
use crate::disk::Mode;
use crate::index::Index;
use crate::{healing, segment, wal, witness};

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
            let testimony = witness::load(self.disk, number);
            // One that held nothing, as after a failed sync, may be gone without its witness.
            let is_lost = number > self.last_log && testimony.end > wal::FILE_HEADER as u64;
            let is_set_aside = has(format!("{number:010}.wal.damaged"));
            if is_lost && !is_set_aside {
                self.stand_in(&wal::path(number))?;
            }
            if is_set_aside || is_lost {
                self.last_seq = self.last_seq.max(testimony.last_seq);
                self.has_lost_unknown = true;
                self.facts.extend(testimony.facts);
            } else {
                borne(witness::remove(self.disk, number))?;
            }
        }
        for name in self.disk.list(segment::DIR)? {
            // Set aside, or not to be had: what it held is told by its sidecar.
            if let Some(number) = name.strip_suffix(".damaged").and_then(segment::number_of) {
                self.facts.extend(healing::facts_of(self.disk, number));
                self.has_lost_unknown = true;
            }
        }
        let learned = self.catalog.learn(&std::mem::take(&mut self.facts));
        if self.has_lost_unknown {
            self.catalog.lose_unknown();
        }
        if learned.lost > 0 {
            let lost = learned.lost;
            let message = format!(
                "the newest version of {lost} memories is lost; they are not served until they are remembered again"
            );
            self.report(wal::DIR, message);
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
    fn stand_in(&mut self, path: &str) -> io::Result<()> {
        let stand_in = format!("{path}.damaged");
        let made = self.disk.open(&stand_in, Mode::Create);
        let stands = borne(made.and_then(|_| self.disk.sync_dir(wal::DIR)))?;
        let kept = if stands { format!("; {stand_in} stands for it") } else { String::new() };
        self.report(
            path,
            format!(
                "is missing, and its witness tells that memories were in it: they are lost{kept}"
            ),
        );
        Ok(())
    }
}
