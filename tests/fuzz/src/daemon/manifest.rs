//! The manifest of a segment, in the Episode that carries it.

use omir_core::cbor;
use omir_core::instant::Timestamp;
use omird::store::format::manifest::{self, FoundManifest, Older};

use crate::support::decode;

/// Reads an Episode, as it came and in its deterministic encoding.
pub fn run(bytes: &[u8]) {
    read(bytes);
    if let Ok(episode) = decode(bytes) {
        read(&cbor::to_vec(&episode));
    }
}

/// The manifest that an Episode carries survives being written again, with the older versions in it.
fn read(bytes: &[u8]) {
    let Some(found) = manifest::read(bytes, 0..bytes.len()) else { return };
    let older = older(bytes, &found);
    let mut written = Vec::new();
    found.manifest.write(&older, Timestamp::EPOCH, &mut written);
    let again = manifest::read(&written, 0..written.len()).expect("what is written reads");
    assert!(again.is_whole);
    assert_eq!(again.manifest, found.manifest);
    assert_eq!(self::older(&written, &again), older);
}

fn older<'a>(bytes: &'a [u8], found: &FoundManifest) -> Vec<Older<'a>> {
    found.superseded.iter().map(|(stamp, range)| (*stamp, &bytes[range.clone()])).collect()
}
