//! Whose signatures a backup accepts: the keys the robot had when the backup was begun. Another one
//! that turns up later is accepted only on purpose.

use std::collections::BTreeSet;
use std::io;

use crate::disk::{self, Disk};
use crate::signing::device_key;

/// The public keys that are accepted, in hex.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pins {
    /// The one the robot signs with.
    pub current: Option<String>,
    /// Those it, or a robot whose memories it goes on with, signed with before.
    pub former: BTreeSet<String>,
}

impl Pins {
    /// Reads the keys that a folder notes: `keys/device.pub` and [`device_key::FORMER`].
    ///
    /// # Errors
    /// What the disk says.
    pub fn read(disk: &dyn Disk) -> io::Result<Self> {
        let text = |path: &str| match disk::read(disk, path) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(error),
        };
        Ok(Self {
            current: device_key::public_keys(&text(device_key::PUBLIC)?).next(),
            former: device_key::public_keys(&text(device_key::FORMER)?).collect(),
        })
    }

    /// Notes them in a folder. Durable on return.
    pub(super) fn write(&self, disk: &dyn Disk) -> io::Result<()> {
        disk.create_dir(device_key::DIR)?;
        let lines = |keys: &mut dyn Iterator<Item = &String>| {
            keys.map(|key| format!("{key}\n")).collect::<String>()
        };
        // The former ones first: a cut between the two may leave a key noted twice, but none out.
        if !self.former.is_empty() {
            disk::replace(disk, device_key::FORMER, lines(&mut self.former.iter()).as_bytes())?;
        }
        if self.current.is_some() {
            disk::replace(disk, device_key::PUBLIC, lines(&mut self.current.iter()).as_bytes())?;
        }
        disk.sync_dir(device_key::DIR)?;
        disk.sync_dir(".")
    }

    /// Returns true if none is noted.
    pub fn is_empty(&self) -> bool {
        self.current.is_none() && self.former.is_empty()
    }

    /// Returns true if this key's signatures are accepted.
    pub fn accepts(&self, key: &str) -> bool {
        self.current.as_deref() == Some(key) || self.former.contains(key)
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &String> {
        self.former.iter().chain(&self.current)
    }

    /// The same with `current` as the one that is signed with, and `others` accepted as well.
    pub(super) fn with(&self, current: &str, others: impl IntoIterator<Item = String>) -> Self {
        let mut former: BTreeSet<String> = self.all().cloned().chain(others).collect();
        former.remove(current);
        Self { current: Some(current.to_owned()), former }
    }
}
