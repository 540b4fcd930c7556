//! The manifest of a segment, in the Episode that carries it.

use omir_core::instant::Timestamp;
use omird::store::manifest::{self, Manifest};

use crate::support::decode;

/// Reads an Episode; the manifest it carries survives being written again.
pub fn run(bytes: &[u8]) {
    let Ok(episode) = decode(bytes) else { return };
    let Some(manifest) = Manifest::from_value(&episode) else {
        return;
    };
    let written = manifest.to_value(Timestamp::EPOCH);
    assert!(manifest::is_manifest(&written) && manifest::is_whole(&written));
    assert_eq!(Manifest::from_value(&written), Some(manifest));
}
