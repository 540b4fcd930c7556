//! One mutation: a bit that flips, or a sector that is lost.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::random::Random;

/// The kind of mutation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One bit flips.
    Flip,
    /// A sector of 512 or 4096 bytes is lost: zeros, ones, garbage, or bytes of another place.
    Sector,
}

/// The purpose of a file in a data folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Segments.
    Segments,
    /// Parity of segments.
    Sidecars,
    /// Signatures of segments.
    Signatures,
    /// Logs.
    Logs,
    /// The second copy of the facts in a log.
    Witnesses,
    /// The kept index.
    Index,
    /// The device key, its public half, and former ones.
    Keys,
    /// Lock, reserve, and whatever else there is.
    Others,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Segments,
        Self::Sidecars,
        Self::Signatures,
        Self::Logs,
        Self::Witnesses,
        Self::Index,
        Self::Keys,
        Self::Others,
    ];

    /// Its name, in tables and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Segments => "segments",
            Self::Sidecars => "sidecars",
            Self::Signatures => "signatures",
            Self::Logs => "logs",
            Self::Witnesses => "witnesses",
            Self::Index => "index",
            Self::Keys => "keys",
            Self::Others => "others",
        }
    }

    /// The class of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == name)
    }

    /// Chance of a hit, of 100. Memories are hit more than their share of files.
    fn weight(self) -> usize {
        match self {
            Self::Segments => 45,
            Self::Sidecars | Self::Witnesses | Self::Index => 8,
            Self::Signatures => 6,
            Self::Logs => 17,
            Self::Keys => 5,
            Self::Others => 3,
        }
    }

    fn of(path: &Path) -> Self {
        let text = path.to_string_lossy();
        match (text.split('/').next(), path.extension().and_then(|end| end.to_str())) {
            (Some("segments"), Some("omirb")) => Self::Segments,
            (Some("segments"), Some("par")) => Self::Sidecars,
            (Some("segments"), Some("sig")) => Self::Signatures,
            (Some("wal"), Some("wal")) => Self::Logs,
            (Some("wal"), _) => Self::Witnesses,
            (Some("index"), _) => Self::Index,
            (Some("keys"), _) => Self::Keys,
            _ => Self::Others,
        }
    }
}

/// Damage done to a folder.
#[derive(Debug, Clone)]
pub struct Wound {
    /// The purpose of the file.
    pub class: Class,
    /// The file.
    pub path: PathBuf,
    /// Its contents before.
    pub before: Vec<u8>,
    /// In words.
    pub what: String,
}

fn files(folder: &Path, below: &Path, found: &mut Vec<(Class, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(folder.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            files(folder, &path, found)?;
        } else if entry.metadata()?.len() > 0 {
            found.push((Class::of(&path), path));
        }
    }
    Ok(())
}

/// Hurts one file of a folder, if there is one of these classes; a class without files is not hit.
///
/// # Errors
/// Whatever the disk says.
pub fn hurt(
    folder: &Path,
    kind: Kind,
    classes: &[Class],
    random: &mut Random,
) -> io::Result<Option<Wound>> {
    let mut found = Vec::new();
    files(folder, Path::new(""), &mut found)?;
    found.retain(|(class, _)| classes.contains(class));
    found.sort();
    let mut present: Vec<Class> = found.iter().map(|(class, _)| *class).collect();
    present.dedup();
    let total: usize = present.iter().map(|class| class.weight()).sum();
    if total == 0 {
        return Ok(None);
    }
    let mut draw = random.below(total);
    let class = present.into_iter().find(|class| {
        let is_it = draw < class.weight();
        draw = draw.saturating_sub(class.weight());
        is_it
    });
    let Some(class) = class else { return Ok(None) };
    // By bytes, within its class: where there is more, more rots.
    let of_class: Vec<&PathBuf> =
        found.iter().filter(|(of, _)| *of == class).map(|(_, path)| path).collect();
    let lengths = of_class.iter().map(|path| Ok(fs::metadata(folder.join(path))?.len() as usize));
    let lengths = lengths.collect::<io::Result<Vec<usize>>>()?;
    let mut at = random.below(lengths.iter().sum());
    let mut chosen = 0;
    while at >= lengths[chosen] {
        at -= lengths[chosen];
        chosen += 1;
    }
    let path = of_class[chosen].clone();
    let before = fs::read(folder.join(&path))?;
    let mut bytes = before.clone();
    let what = match kind {
        Kind::Flip => {
            let bit = random.below(8);
            bytes[at] ^= 1 << bit;
            format!("bit {bit} of byte {at}")
        }
        Kind::Sector => {
            let size = *random.pick(&[512, 4096]);
            let from = at / size * size;
            let to = (from + size).min(bytes.len());
            let filling = random.below(4);
            let elsewhere = random.below(before.len());
            for place in from..to {
                bytes[place] = match filling {
                    0 => 0,
                    1 => 0xff,
                    2 => random.bits() as u8,
                    _ => before[(elsewhere + place - from) % before.len()],
                };
            }
            let filling = ["zeros", "ones", "garbage", "other bytes"][filling];
            format!("bytes {from} to {to}: {filling}")
        }
    };
    if bytes == before {
        return Ok(None);
    }
    // As the card does it: no other file, no other time of change that anybody could go by.
    fs::write(folder.join(&path), &bytes)?;
    Ok(Some(Wound { class, path, before, what }))
}
