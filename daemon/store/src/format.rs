//! The bytes of each file, as `docs/format.md` specifies them: for tests and tools that check, damage or build files.
//! The daemon needs none of this.

/// Blocks of the kept index.
pub mod block {
    pub use crate::kept_index::block_codec::{BlockParts, encode};
}

/// The folder of the keys.
pub mod keys {
    pub use crate::signing::device_key::DIR;
}

/// The last entry of a segment.
pub mod manifest {
    pub use crate::segment::manifest::{FoundManifest, Older, URL, read};
}

/// Sealed segments.
pub mod segment {
    pub use crate::kept_index::index_extractor::Names;
    pub use crate::segment::{
        DIR, Draft, EarlierResource, Layout, contents, index, index_what_is_whole, layout,
        number_of, path, sidecar_path, signature_path,
    };
}

/// Sidecars, which mend segments.
pub mod sidecar {
    pub use crate::rot::sidecar::{BLOCK, Sidecar};
}

/// Seals of segments.
pub mod signature {
    pub use crate::digest::{Digest, digest};
    pub use crate::signing::signature::{Contents, Seal, SealFault, chain_breaks};
    pub use omir_core::merkle::Root;
}

/// Logs.
pub mod wal {
    pub use crate::log::wal::{
        Contents, DIR, Damage, FILE_HEADER, FRAME_HEADER, number_of, path, read, stored_number,
    };
}

/// Second copies of facts.
pub mod witness {
    pub use crate::log::witness::{decode, encode, number_of, read};
}
