//! Parts of a recording that could not be used.

use std::fmt;

use super::bounds::MOST_LOSSES;

/// Something of a file that could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The file.
    pub file: String,
    /// The position in it.
    pub at: At,
    /// The loss, and its reason.
    pub what: String,
}

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The file as a whole.
    File,
    /// A byte.
    Byte(u64),
    /// A row of the table `messages`.
    Row(i64),
}

impl From<u64> for At {
    fn from(byte: u64) -> Self {
        Self::Byte(byte)
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, at, what } = self;
        match at {
            At::File => write!(f, "{file}: {what}"),
            At::Byte(byte) => write!(f, "{file} at byte {byte}: {what}"),
            At::Row(row) => write!(f, "{file}, table messages, row {row}: {what}"),
        }
    }
}

/// The first of them one by one, and how many more there are: a file may be damaged in a million places.
#[derive(Debug, Default)]
pub(super) struct Losses {
    told: Vec<Loss>,
    /// File and place of the first that is not told.
    untold: Option<(String, At)>,
    more: u64,
}

impl Losses {
    pub(super) fn add(&mut self, file: &str, at: impl Into<At>, what: impl Into<String>) {
        let at = at.into();
        if self.told.len() < MOST_LOSSES {
            self.told.push(Loss { file: file.to_owned(), at, what: what.into() });
        } else {
            self.more += 1;
            self.untold.get_or_insert_with(|| (file.to_owned(), at));
        }
    }

    /// All of them, those that are not told one by one in the last.
    pub(super) fn all(&self) -> Vec<Loss> {
        let rest = self.untold.iter().map(|(file, at)| {
            let what = format!("{} more places that cannot be read, from here on", self.more);
            Loss { file: file.clone(), at: *at, what }
        });
        self.told.iter().cloned().chain(rest).collect()
    }
}
