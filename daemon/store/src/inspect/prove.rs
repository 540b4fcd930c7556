//! Proofs from a folder without a daemon.

use std::fmt;

use omir_core::proof::Proof;
use omir_core::reference::Ref;

use super::cat::CatError;
use super::history::History;
use super::{FileKind, Store};
use crate::prove::{self, ProveError};

/// Why a folder gives no proof of a resource.
#[derive(Debug)]
#[non_exhaustive]
pub enum NoProof {
    /// There is no such resource any more, or there never was.
    Nothing(CatError),
    /// It is acknowledged, and lies in a log that is not sealed yet.
    Unsealed {
        /// The log.
        file: String,
    },
    /// It lies in a segment that was set aside, or that was opened without its folder.
    Unserved {
        /// The segment.
        file: String,
    },
    /// The segment it lies in proves nothing.
    Segment {
        /// The segment.
        file: String,
        /// Why.
        error: ProveError,
    },
}

impl fmt::Display for NoProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing(error) => error.fmt(f),
            Self::Unsealed { file } => write!(
                f,
                "{file}: it is not sealed yet; start the daemon and ask it: `omir prove --seal`"
            ),
            Self::Unserved { file } => {
                write!(f, "{file}: only segments that a data folder serves give proofs")
            }
            Self::Segment { file, error } => write!(f, "{file}: {error}"),
        }
    }
}

impl std::error::Error for NoProof {}

impl Store {
    /// Proves the newest version of a resource.
    ///
    /// # Errors
    /// See [`NoProof`].
    pub fn prove(&self, history: &History, target: &Ref) -> Result<Proof, NoProof> {
        let row = history.version(target, None).map_err(NoProof::Nothing)?;
        let position = &row.version.position;
        let source = &history.files[position.file].source;
        let file = source.path.clone();
        match source.kind {
            FileKind::Log(_) => Err(NoProof::Unsealed { file }),
            FileKind::Segment(_) if source.is_set_aside || !self.is_folder => {
                Err(NoProof::Unserved { file })
            }
            FileKind::Segment(number) => prove::prove(&*self.disk, number, &position.range)
                .map_err(|error| NoProof::Segment { file, error }),
        }
    }
}
