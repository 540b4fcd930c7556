//! Sealed segments.
//!
//! A changed segment mostly fails its checksums, so the target also mends them: the checks behind them
//! must hold of themselves.

use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::instant::Timestamp;
use omir_core::value::Value;
use omird::engine::testing::Catalog;
use omird::store::format::manifest::{FoundManifest, Older};
use omird::store::format::{manifest, segment};
use omird::store::{IndexExtractor, decode_resource};

/// Takes a segment apart as it is, and with its checksums mended.
pub fn run(bytes: &[u8]) {
    take_apart(bytes);
    if let Some(mended) = mended(bytes) {
        let layout = take_apart(&mended);
        assert!(layout.is_none_or(|layout| layout.is_manifest_whole));
    }
}

fn take_apart(bytes: &[u8]) -> Option<segment::Layout> {
    let layout = match segment::layout(bytes) {
        Ok(layout) => layout,
        Err(error) => {
            assert!(error.offset <= bytes.len() && !error.message.is_empty(), "{error}");
            assert!(segment::index::<Catalog>(bytes).is_err());
            return None;
        }
    };
    assert_eq!(layout.entries.len(), layout.manifest.entries.len());
    // Entries and copies follow each other; older versions are in the manifest behind them.
    let ranges = layout.entries.iter().map(|(_, range)| range).chain(&layout.copies);
    let mut end = 0;
    for range in ranges {
        assert!(end <= range.start && range.end <= bytes.len());
        assert_eq!(cbor::skip_item(&bytes[range.clone()], &Limits::default()), Ok(range.len()));
        end = range.end;
    }
    for (_, range) in &layout.superseded {
        assert!(end <= range.start && range.end <= bytes.len());
    }
    if let Ok((block, lost)) = segment::index_what_is_whole::<Catalog>(bytes, None) {
        assert!(layout.is_manifest_whole);
        assert_eq!(block.rows.len(), block.text.docs());
        assert_eq!(block.rows.len() + lost.len(), layout.entries.len() + layout.superseded.len());
        assert_eq!(segment::index::<Catalog>(bytes).is_ok(), lost.is_empty());
        for row in &block.rows {
            let (start, len) = (row.offset as usize, row.len as usize);
            let raw = &bytes[start..start + len];
            assert_eq!(crc32fast::hash(raw), row.crc);
            let resource = decode_resource(raw).expect("what was indexed reads");
            assert_eq!(<Catalog as IndexExtractor>::facts(&resource), row.facts);
        }
    }
    Some(layout)
}

/// The same segment with the checksums its bytes have.
fn mended(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut bundle = cbor::from_slice(bytes, &Limits::default()).ok()?;
    let entries = bundle.as_object_mut()?.get_mut("entry")?.as_array_mut()?;
    let (last, others) = entries.split_last_mut()?;
    let encoded = cbor::to_vec(last);
    let FoundManifest { mut manifest, superseded, .. } =
        manifest::read(&encoded, 0..encoded.len())?;
    let recorded: Vec<Value> = others.iter().take(manifest.entries.len()).cloned().collect();
    manifest.crcs = recorded.iter().map(|entry| crc32fast::hash(&cbor::to_vec(entry))).collect();
    let older: Vec<Older<'_>> =
        superseded.into_iter().map(|(stamp, range)| (stamp, &encoded[range])).collect();
    let mut mended = Vec::new();
    manifest.write(&older, Timestamp::EPOCH, &mut mended);
    *last = cbor::from_slice(&mended, &Limits::default()).expect("what is written reads");
    Some(cbor::to_vec(&bundle))
}
