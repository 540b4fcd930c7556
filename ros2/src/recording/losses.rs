//! What could not be used of a recording.

use super::bounds::MOST_LOSSES;

/// Something of a file that could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The file.
    pub file: String,
    /// The byte in it.
    pub offset: u64,
    /// What is lost, and why.
    pub what: String,
}

/// The first of them one by one, and how many more there are: a file may be damaged in a million places.
#[derive(Debug, Default)]
pub(super) struct Losses {
    told: Vec<Loss>,
    /// File and byte of the first that is not told.
    untold: Option<(String, u64)>,
    more: u64,
}

impl Losses {
    pub(super) fn add(&mut self, file: &str, offset: u64, what: impl Into<String>) {
        if self.told.len() < MOST_LOSSES {
            self.told.push(Loss { file: file.to_owned(), offset, what: what.into() });
        } else {
            self.more += 1;
            self.untold.get_or_insert_with(|| (file.to_owned(), offset));
        }
    }

    /// All of them, those that are not told one by one in the last.
    pub(super) fn all(&self) -> Vec<Loss> {
        let rest = self.untold.iter().map(|(file, offset)| {
            let what = format!("{} more places that cannot be read, from here on", self.more);
            Loss { file: file.clone(), offset: *offset, what }
        });
        self.told.iter().cloned().chain(rest).collect()
    }
}
