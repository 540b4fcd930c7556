//! The index of one sealed segment, as it is kept.

pub(crate) use omird_store::{DeletionOrigin, EndCause, IndexKind as Kind, Tombstone};

use super::facts::Facts;
use super::text::TextBlock;

/// One version in a segment.
pub(crate) type Row = omird_store::Row<Facts>;

/// The index of one segment.
pub(crate) type Block = omird_store::Block<Facts, TextBlock>;

#[cfg(test)]
mod tests {
    use omir_core::model::{Entity, Resource};
    use omird_store::IndexExtractor;
    use omird_store::format::block::{BlockParts, encode};

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

    /// All kinds of a block, as they are kept.
    fn kept(block: &Block) -> Vec<(Kind, Vec<u8>)> {
        Kind::ALL.map(|kind| (kind, encode::<Catalog>(block, kind).unwrap())).to_vec()
    }

    fn read(kept: &[(Kind, Vec<u8>)]) -> BlockParts<Catalog> {
        let of = |kind| kept.iter().find(|(of, _)| *of == kind).map(|(_, bytes)| bytes.clone());
        BlockParts::read(&[7; 32], of)
    }

    #[test]
    fn a_block_survives_and_what_is_damaged_of_it_is_refused_alone() {
        let kept = kept(&block());
        let whole = read(&kept).into_block().ok().unwrap();
        assert_eq!((&whole.rows, &whole.text), (&block().rows, &block().text));
        assert_eq!(whole.last_seq, 4);
        for (n, (kind, bytes)) in kept.iter().enumerate() {
            for at in 0..bytes.len() {
                let mut damaged = kept.clone();
                damaged[n].1[at] ^= 1;
                assert_eq!(read(&damaged).missing(), [*kind], "byte {at}");
                damaged[n].1.truncate(at);
                assert_eq!(read(&damaged).missing(), [*kind], "cut at {at}");
            }
        }
        let rows = || Some(kept[0].1.clone());
        let of_another = BlockParts::<Catalog>::read(&[8; 32], |_| rows());
        assert_eq!(of_another.missing(), Kind::ALL, "they are of another segment");
        let as_others = BlockParts::<Catalog>::read(&[7; 32], |_| rows());
        assert_eq!(as_others.missing(), Kind::ALL[1..], "rows are no other kind");
    }

    #[test]
    fn parts_that_do_not_belong_together_and_types_there_are_not_are_refused() {
        for kind in Kind::ALL {
            let mut parts = kept(&block());
            let empty = Block { rows: Vec::new(), text: TextBlock::build([].iter()), ..block() };
            for (of, bytes) in &mut parts {
                if *of == kind {
                    *bytes = encode::<Catalog>(&empty, kind).unwrap();
                }
            }
            assert!(read(&parts).into_block().is_err(), "{kind}");
        }
        let mut odd = block();
        odd.rows[0].facts.class.resource_type = 4;
        assert!(read(&kept(&odd)).into_block().is_err());
    }

    #[test]
    fn a_stated_size_reserves_nothing() {
        let mut bytes = vec![0; 4];
        bytes.push(Kind::Words.tag());
        bytes.extend_from_slice(&<Catalog as IndexExtractor>::format(Kind::Words).to_le_bytes());
        bytes.extend_from_slice(&[7; 32]);
        bytes.extend_from_slice(&u32::MAX.to_le_bytes());
        bytes.extend_from_slice(&[0; 16]);
        let crc = crc32fast::hash(&bytes[4..]).to_le_bytes();
        bytes[..4].copy_from_slice(&crc);
        assert_eq!(read(&[(Kind::Words, bytes)]).missing().len(), 4);
    }
}
