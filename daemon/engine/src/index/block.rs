//! The index of one sealed segment, as it is kept.

pub use omird_store::block::*;

use super::facts::Facts;
use super::text::TextBlock;

/// One version in a segment.
pub type Row = omird_store::block::Row<Facts>;

/// The index of one segment.
pub type Block = omird_store::block::Block<Facts, TextBlock>;

#[cfg(test)]
mod tests {
    use omir_core::model::{Entity, Resource};

    use super::*;
    use crate::index::catalog::Catalog;
    use crate::index::doc::Stamp;
    use crate::index::facts::terms_of;

    fn block() -> Block {
        let kettle: Resource = Entity::new("kettle".parse().unwrap(), "Kettle").into();
        let terms = [terms_of(&kettle)];
        let facts = Facts::of(&kettle);
        let stamp = Stamp { seq: 3, ordinal: 0, version: 1, recorded: 5 };
        Block {
            format: FORMAT,
            digest: [7; 32],
            rows: vec![Row { stamp, facts, offset: 1, len: 2, crc: 3 }],
            text: TextBlock::build(terms.iter()),
            tombstones: Vec::new(),
            touches: Vec::new(),
            log: 1,
            replaces: Vec::new(),
            boots: 2,
            mark: None,
            first_seq: 3,
            last_seq: 4,
            last_recorded: 5,
        }
    }

    #[test]
    fn a_block_survives_and_a_damaged_one_is_refused() {
        let bytes = block().to_bytes().unwrap();
        let read = from_bytes::<Catalog>(&bytes).unwrap();
        assert_eq!((read.text, read.last_seq), (block().text, 4));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(from_bytes::<Catalog>(&damaged).is_none(), "byte {at}");
            assert!(from_bytes::<Catalog>(&bytes[..at]).is_none(), "cut at {at}");
        }
    }

    #[test]
    fn words_without_a_row_and_types_there_are_not_are_refused() {
        let mut wordless = block();
        wordless.rows.clear();
        assert!(from_bytes::<Catalog>(&wordless.to_bytes().unwrap()).is_none());
        let mut odd = block();
        odd.rows[0].facts.class.resource_type = 4;
        assert!(from_bytes::<Catalog>(&odd.to_bytes().unwrap()).is_none());
    }

    #[test]
    fn a_stated_size_reserves_nothing() {
        let mut body = u32::MAX.to_le_bytes().to_vec();
        body.extend_from_slice(&[0; 16]);
        let mut bytes = crc32fast::hash(&body).to_le_bytes().to_vec();
        bytes.extend_from_slice(&body);
        assert!(from_bytes::<Catalog>(&bytes).is_none());
    }
}
