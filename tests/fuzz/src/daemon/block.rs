//! Index blocks, as they are kept and as they are loaded.

use omird::index::block::{Block, FORMAT, from_bytes};
use omird::index::catalog::Catalog;
use omird::index::doc::FileId;

/// Reads a block as it is kept, and one whose checksum and packing hold.
pub fn run(bytes: &[u8]) {
    if let Some(block) = from_bytes::<Catalog>(bytes) {
        load(&block);
    }
    let Ok(mut block) = postcard::from_bytes::<Block>(bytes) else { return };
    block.format = FORMAT;
    let kept = block.to_bytes().expect("what was read can be written");
    // Rows and words that do not belong together are refused even if the checksum holds.
    let Some(again) = from_bytes::<Catalog>(&kept) else { return };
    // Floats may be NaN: compared as they are written.
    let plain = |block: &Block| postcard::to_allocvec(block).expect("it was written before");
    assert_eq!(plain(&again), plain(&block));
    load(&again);
}

/// Loads the block; a catalog that took it is whole.
fn load(block: &Block) {
    let mut catalog = Catalog::loading();
    if catalog.load(block, FileId::Segment(1)).is_ok() {
        catalog.finish_loading(2);
        assert_eq!(catalog.docs().len(), block.rows.len());
    }
}
