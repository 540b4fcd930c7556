//! The room that a segment takes on the card, with all that lies beside it.

use crate::disk::{BLOCK, room_of};
use crate::rot::sidecar;

/// A fact of a sidecar takes about so many bytes, for each so many of a segment: an estimate, high for all but
/// segments of tombstones.
const FACTS: u64 = 32;

/// The room that a segment of so many bytes takes, with its sidecar and its signature.
pub fn segment_room(bytes: u64) -> u64 {
    let sidecar = sidecar::encoded_len(bytes, bytes / FACTS);
    room_of(bytes).saturating_add(room_of(sidecar)).saturating_add(BLOCK)
}

/// The largest segment that fits into so much room.
pub fn largest_segment_in(room: u64) -> u64 {
    let (mut fits, mut too_large) = (0, room.saturating_add(1));
    while too_large - fits > 1 {
        let half = fits + (too_large - fits) / 2;
        if segment_room(half) <= room { fits = half } else { too_large = half }
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_segment_fits_and_no_larger_one() {
        for room in [0, 1, BLOCK, 5 * BLOCK, 1 << 17, (1 << 23) + 77] {
            let most = largest_segment_in(room);
            assert!(most == 0 || segment_room(most) <= room, "{room}: {most}");
            assert!(segment_room(most + 1) > room, "{room}: {most}");
        }
    }
}
