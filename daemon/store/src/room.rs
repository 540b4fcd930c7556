//! How much room a file takes, and how much a segment does with all that lies beside it.
//!
//! A card gives out whole blocks, so small files take more than their bytes: on a card of a few MiB that decides
//! what fits.

use super::sidecar;

/// File systems give out space in blocks of so many bytes, mostly.
pub const BLOCK: u64 = 4096;

/// A fact of a sidecar takes about so many bytes, for each so many of a segment: an estimate, high for all but
/// segments of tombstones.
const FACTS: u64 = 32;

/// The room that a file of so many bytes takes.
pub fn of_file(bytes: u64) -> u64 {
    bytes.next_multiple_of(BLOCK)
}

/// The room that a segment of so many bytes takes, with its sidecar and its signature.
pub fn of_segment(bytes: u64) -> u64 {
    let sidecar = sidecar::encoded_len(bytes, bytes / FACTS);
    of_file(bytes).saturating_add(of_file(sidecar)).saturating_add(BLOCK)
}

/// The largest segment that fits into so much room.
pub fn largest_in(room: u64) -> u64 {
    let (mut fits, mut too_large) = (0, room.saturating_add(1));
    while too_large - fits > 1 {
        let half = fits + (too_large - fits) / 2;
        if of_segment(half) <= room { fits = half } else { too_large = half }
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_segment_fits_and_no_larger_one() {
        for room in [0, 1, BLOCK, 5 * BLOCK, 1 << 17, (1 << 23) + 77] {
            let most = largest_in(room);
            assert!(most == 0 || of_segment(most) <= room, "{room}: {most}");
            assert!(of_segment(most + 1) > room, "{room}: {most}");
        }
    }
}
