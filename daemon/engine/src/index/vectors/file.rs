//! The bytes of a file of vectors: a header that names the model, and blocks of rows, each under a checksum.
//!
//! | bytes | of the header |
//! |---|---|
//! | 8 | `OMIRVEC1` |
//! | u32 | CRC-32 of the rest of the header |
//! | u8 | 1 if clients stated the vectors |
//! | 32 | SHA-256 of what decides a vector, zeros if nothing but the name does |
//! | u16 | numbers in a row |
//! | u16, text | length of the model's name, and the name |
//!
//! A block is `crc:u32 rows:u32`, the CRC-32 over all that follows it, then for each row `id:u64 scale:f32` and its numbers, a byte
//! each. All is little-endian. What follows a damaged or cut block is not read: it costs no more than to make the vectors again.

use omird_embedding::{MAX_DIMS, ModelName, Vector};

use super::vector_space::BLOCK_ROWS;
use crate::index::doc::Doc;

const MAGIC: &[u8; 8] = b"OMIRVEC1";
/// Bytes before the name of the model.
const FIXED: usize = 8 + 4 + 1 + 32 + 2 + 2;
/// Bytes of a block before its rows.
const BLOCK_HEAD: usize = 8;
/// Bytes of a row beside its numbers.
const ROW_HEAD: usize = 12;

/// The number by which a file names a version: the same after every start, wherever the version lies. It tells
/// versions of two histories apart, as time is part of it.
pub(crate) fn stable_id(doc: &Doc) -> u64 {
    // The finisher of SplitMix64.
    let mix = |x: u64| {
        let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    let recorded = doc.recorded.cast_unsigned().wrapping_add(0x9e37_79b9_7f4a_7c15);
    mix(doc.key.prefix().to_bits() ^ mix(doc.seq ^ mix(recorded)))
}

/// The header of a file.
pub(crate) fn header(model: &ModelName, is_given: bool) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend([0; 4]);
    bytes.push(is_given.into());
    bytes.extend(model.hash);
    bytes.extend(u16::try_from(model.dims).unwrap_or(0).to_le_bytes());
    bytes.extend(u16::try_from(model.name.len()).unwrap_or(0).to_le_bytes());
    bytes.extend(model.name.as_bytes());
    let crc = crc32fast::hash(&bytes[12..]).to_le_bytes();
    bytes[8..12].copy_from_slice(&crc);
    bytes
}

/// A block of rows.
pub(crate) fn block<'a>(rows: impl Iterator<Item = (u64, f32, &'a [i8])>) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK_HEAD];
    let mut count = 0_u32;
    for (id, scale, values) in rows {
        bytes.extend(id.to_le_bytes());
        bytes.extend(scale.to_le_bytes());
        bytes.extend(values.iter().map(|value| value.cast_unsigned()));
        count += 1;
    }
    bytes[4..8].copy_from_slice(&count.to_le_bytes());
    let crc = crc32fast::hash(&bytes[4..]).to_le_bytes();
    bytes[..4].copy_from_slice(&crc);
    bytes
}

/// A version's number, and its vector.
pub(crate) type StoredRow = (u64, Vector);

/// A file that was read.
#[derive(Debug, PartialEq)]
pub(crate) struct Contents {
    pub(crate) model: ModelName,
    pub(crate) is_given: bool,
    pub(crate) rows: Vec<StoredRow>,
    /// Bytes up to the end of the last whole block.
    pub(crate) whole: usize,
}

/// Reads a file as far as it is whole; `None` if not even its header is.
pub(crate) fn read(bytes: &[u8]) -> Option<Contents> {
    let (fixed, rest) = bytes.split_at_checked(FIXED)?;
    let u16_at = |at: usize| Some(u16::from_le_bytes(*fixed.get(at..)?.first_chunk()?));
    let dims = usize::from(u16_at(45)?);
    let (name, mut rest) = rest.split_at_checked(u16_at(47)?.into())?;
    let header = bytes.get(12..FIXED + name.len())?;
    let crc = crc32fast::hash(header).to_le_bytes();
    let is_sound = fixed.starts_with(MAGIC)
        && fixed.get(8..12) == Some(&crc[..])
        && (1..=MAX_DIMS).contains(&dims);
    if !is_sound {
        return None;
    }
    let name = std::str::from_utf8(name).ok()?.to_owned();
    let hash = *fixed.get(13..)?.first_chunk()?;
    let is_given = fixed.get(12) == Some(&1);
    let mut rows = Vec::new();
    while let Some((block, after)) = split_block(rest, dims) {
        rows.extend(block);
        rest = after;
    }
    let whole = bytes.len() - rest.len();
    Some(Contents { model: ModelName { name, dims, hash }, is_given, rows, whole })
}

/// The rows of the first block and what follows it; `None` if there is no whole one.
fn split_block(bytes: &[u8], dims: usize) -> Option<(Vec<StoredRow>, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<BLOCK_HEAD>()?;
    let (crc, count) = head.split_first_chunk::<4>()?;
    let count = u32::from_le_bytes(*count.first_chunk()?) as usize;
    if count == 0 || count > BLOCK_ROWS {
        return None;
    }
    let (rows, after) = rest.split_at_checked(count * (ROW_HEAD + dims))?;
    if crc32fast::hash(&bytes[4..bytes.len() - after.len()]).to_le_bytes() != *crc {
        return None;
    }
    let row = |row: &[u8]| {
        let (id, rest) = row.split_first_chunk()?;
        let (scale, values) = rest.split_first_chunk()?;
        let scale = f32::from_le_bytes(*scale);
        let values: Box<[i8]> = values.iter().map(|byte| byte.cast_signed()).collect();
        let is_sound = scale.is_finite() && scale > 0.0 && !values.contains(&i8::MIN);
        is_sound.then(|| (u64::from_le_bytes(*id), Vector { scale, values }))
    };
    let rows = rows.chunks_exact(ROW_HEAD + dims).map(row).collect::<Option<_>>()?;
    Some((rows, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> (Vec<u8>, usize) {
        let model = ModelName { name: "tiny".into(), dims: 3, hash: [7; 32] };
        let mut bytes = header(&model, true);
        let head = bytes.len();
        bytes.extend(block([(1, 0.5, &[1_i8, 2, 3][..]), (2, 0.25, &[-127, 0, 127])].into_iter()));
        bytes.extend(block([(3, 1.0, &[1_i8, 0, 0][..])].into_iter()));
        (bytes, head)
    }

    #[test]
    fn a_file_is_read_as_it_was_written_and_no_further_than_it_is_whole() {
        let (bytes, head) = file();
        let whole = read(&bytes).unwrap();
        assert_eq!(
            (whole.model.name.as_str(), whole.model.dims, whole.is_given),
            ("tiny", 3, true)
        );
        assert_eq!((whole.rows.len(), whole.whole), (3, bytes.len()));
        assert_eq!(whole.rows[1], (2, Vector { scale: 0.25, values: [-127, 0, 127].into() }));
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 4;
            let rows = read(&flipped).map(|read| read.rows);
            match rows {
                None => assert!(at < head, "byte {at}"),
                Some(rows) => {
                    assert!(at >= head && rows.len() < 3, "byte {at}: {rows:?}");
                    assert_eq!(rows[..], whole.rows[..rows.len()], "byte {at}");
                }
            }
            let cut = read(&bytes[..at]);
            assert!(cut.is_none_or(|cut| cut.rows.len() < 3 && cut.whole <= at), "cut at {at}");
        }
    }

    #[test]
    fn stated_sizes_reserve_nothing() {
        let (bytes, head) = file();
        let mut huge = bytes[..head].to_vec();
        huge.extend([0; 4]);
        huge.extend(u32::MAX.to_le_bytes());
        assert_eq!(read(&huge).unwrap().rows, []);
    }
}
