//! Index blocks, as they are kept and as they are loaded.

use omird::engine::testing::Catalog;
use omird::store::format::block::{BlockParts, encode};
use omird::store::{Block, FileId, IndexExtractor, IndexKind as Kind};

/// The digest of the segment that is meant.
const DIGEST: [u8; 32] = [0; 32];

/// Reads kinds as they are kept, and kinds whose checksum and packing hold.
pub fn run(bytes: &[u8]) {
    if let Ok(block) = BlockParts::<Catalog>::read(&DIGEST, |_| Some(bytes.to_vec())).into_block() {
        load(&block);
    }
    // The bodies of the four kinds one after the other, each behind its length.
    let mut rest = bytes;
    let mut bodies = Vec::new();
    for kind in Kind::ALL {
        let Some((len, tail)) = rest.split_first() else { return };
        let (body, tail) = tail.split_at(usize::from(*len).min(tail.len()));
        bodies.push((kind, kept(kind, body)));
        rest = tail;
    }
    let of = |kind| bodies.iter().find(|(of, _)| *of == kind).map(|(_, kept)| kept.clone());
    // Rows and words that do not belong together are refused even if the checksums hold.
    let Ok(block) = BlockParts::<Catalog>::read(&DIGEST, of).into_block() else { return };
    for kind in Kind::ALL {
        let again = encode::<Catalog>(&block, kind).expect("what was read can be written");
        let read = BlockParts::<Catalog>::read(&DIGEST, |of| (of == kind).then(|| again.clone()));
        assert!(!read.missing().contains(&kind), "what was written is read: {kind}");
    }
    load(&block);
}

/// A body as it is kept.
fn kept(kind: Kind, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    bytes.push(kind.tag());
    bytes.extend_from_slice(&<Catalog as IndexExtractor>::format(kind).to_le_bytes());
    bytes.extend_from_slice(&DIGEST);
    bytes.extend_from_slice(&lz4_flex::compress_prepend_size(body));
    let crc = crc32fast::hash(&bytes[4..]).to_le_bytes();
    bytes[..4].copy_from_slice(&crc);
    bytes
}

/// Loads the block; a catalog that took it is whole.
fn load(block: &Block<<Catalog as IndexExtractor>::Facts, <Catalog as IndexExtractor>::Words>) {
    let mut catalog = Catalog::loading();
    let base = catalog.load_rows(block, FileId::Segment(1));
    if catalog.text.add_block(base, &block.text).is_ok() {
        catalog.finish_loading(2);
        assert_eq!(catalog.docs().len(), block.rows.len());
    }
}
