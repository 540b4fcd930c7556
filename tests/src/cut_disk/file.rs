//! The card as a disk of the store: folders, names and open files.

use std::io;
use std::sync::Arc;

use omird::disk::{Disk, DiskFile, Mode, Space};
use parking_lot::{Mutex, MutexGuard};

use super::CutDisk;
use super::card::{Card, Fate, failure, no_power, split};
use super::content::{Change, Content};
use super::names::{Names, Node};

impl Disk for CutDisk {
    fn create_dir(&self, dir: &str) -> io::Result<()> {
        let mut card = self.card();
        card.look()?;
        let mut path = String::new();
        for name in dir.split('/') {
            let parent = path.clone();
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(name);
            if !card.names(&parent)?.current().contains_key(name) {
                card.folders.insert(path.clone(), Names::default());
                card.rename_or_so(&parent, |names| names.add(name, Node::Folder))?;
            }
        }
        Ok(())
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let card = self.card();
        card.look()?;
        Ok(card.names(dir)?.current().keys().cloned().collect())
    }

    fn open(&self, path: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let mut card = self.card();
        card.look()?;
        if card.is_read_only && mode != Mode::Read {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        let file = match (card.file(path), mode) {
            (Ok(file), Mode::Read | Mode::Write) => file,
            (Ok(file), Mode::Create) => {
                card.change(file, Change::Truncate(0))?;
                file
            }
            (Err(error), Mode::Create) if error.kind() == io::ErrorKind::NotFound => {
                let (folder, name) = split(path);
                let file = card.files.len();
                card.files.push(Content::default());
                card.rename_or_so(folder, |names| names.add(name, Node::File(file)))?;
                file
            }
            (Err(error), _) => return Err(error),
        };
        Ok(Arc::new(CutFile { card: self.card.clone(), file }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut card = self.card();
        card.look()?;
        let file = card.file(from)?;
        let ((folder, from), (target, to)) = (split(from), split(to));
        assert_eq!(folder, target, "the store renames within a folder only");
        card.rename_or_so(folder, |names| names.rename(from, to, file))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let mut card = self.card();
        card.look()?;
        let file = card.file(path)?;
        let (folder, name) = split(path);
        card.rename_or_so(folder, |names| names.remove(name, file))
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        let mut card = self.card();
        let dir = if dir == "." { "" } else { dir };
        card.names(dir)?;
        match card.begin(true)? {
            Fate::Done => {
                card.names_mut(dir)?.sync();
                Ok(())
            }
            Fate::Fails => Err(failure()),
            Fate::Cut => Err(no_power()),
        }
    }

    fn space(&self) -> io::Result<Space> {
        let card = self.card();
        card.look()?;
        let total = card.capacity.unwrap_or(1 << 40);
        Ok(Space { free: total.saturating_sub(card.used()), total })
    }

    fn mount_generation(&self) -> io::Result<u64> {
        let card = self.card();
        card.look()?;
        Ok(card.returns)
    }
}

struct CutFile {
    card: Arc<Mutex<Card>>,
    file: usize,
}

impl CutFile {
    fn card(&self) -> MutexGuard<'_, Card> {
        self.card.lock()
    }
}

impl DiskFile for CutFile {
    fn len(&self) -> io::Result<u64> {
        let card = self.card();
        card.reach(self.file)?;
        Ok(card.files[self.file].bytes().len() as u64)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let card = self.card();
        card.reach(self.file)?;
        if card.is_blind || card.unreadable.contains(&self.file) {
            return Err(failure());
        }
        let end = offset.saturating_add(buf.len() as u64);
        if card.holes.iter().any(|(f, h)| *f == self.file && offset < h.end && h.start < end) {
            return Err(failure());
        }
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let found = card.files[self.file].bytes().get(start..start.saturating_add(buf.len()));
        buf.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let mut card = self.card();
        card.reach(self.file)?;
        card.change(self.file, Change::Write { at: offset, bytes: buf.to_vec() })
    }

    fn sync(&self) -> io::Result<()> {
        let mut card = self.card();
        card.reach(self.file)?;
        match card.begin(true)? {
            Fate::Done => {
                card.files[self.file].sync();
                Ok(())
            }
            Fate::Fails => {
                card.files[self.file].fail_sync();
                Err(failure())
            }
            Fate::Cut => Err(no_power()),
        }
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let mut card = self.card();
        card.reach(self.file)?;
        card.change(self.file, Change::Truncate(len))
    }

    fn has_name(&self) -> io::Result<bool> {
        let card = self.card();
        card.reach(self.file)?;
        let mut names = card.folders.values().flat_map(|names| names.current().values());
        Ok(names.any(|node| *node == Node::File(self.file)))
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.truncate(len)
    }
}
