//! CBOR (RFC 8949) to values and back.
//!
//! A value has one CBOR form, the deterministic one of RFC 8949 §4.2.1, so equal bytes mean equal
//! memories and a signature can be checked after a detour over JSON. Reading accepts more: whatever
//! well-formed CBOR denotes a JSON value. Numbers beyond CBOR's own kinds travel as bignums (tags 2
//! and 3) and decimal fractions (tag 4).

mod events;
mod header;
mod read;
mod scan;
mod write;

pub use events::Events;
pub use read::{from_slice, read_item};
pub use scan::{
    MapEntry, MapSlot, array_items, map_entries, map_slot, read_array_header, skip_item,
};
pub use write::{to_vec, write, write_array_header, write_map_header};

/// Tags this crate gives a meaning to; all others are refused.
mod tag {
    pub(super) const POSITIVE_BIGNUM: u64 = 2;
    pub(super) const NEGATIVE_BIGNUM: u64 = 3;
    pub(super) const DECIMAL_FRACTION: u64 = 4;
    /// "This is CBOR": a mark without meaning at the front of a file.
    pub(super) const SELF_DESCRIBED: u64 = 55_799;
}

#[cfg(test)]
mod tests;
