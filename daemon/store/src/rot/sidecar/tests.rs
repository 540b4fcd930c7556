use proptest::prelude::*;

use super::*;

/// Bytes that look like nothing in particular.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_lost_4_kib_of_each_stripe_come_back(
        len in 1usize..700_000, seed in any::<u64>(), at in any::<prop::sample::Index>(),
        lost in 1usize..=BLOCK, fill in prop_oneof![Just(None), any::<u64>().prop_map(Some)],
    ) {
        let whole = noise(len, seed);
        let sidecar = Sidecar::of(7, &whole, vec![1, 2, 3]);
        prop_assert_eq!(sidecar.encode().len() as u64, encoded_len(len as u64, 3));
        let read = Sidecar::decode(&sidecar.encode()).unwrap();
        prop_assert_eq!(&read, &sidecar);
        let mut rotten = whole.clone();
        // In each stripe at the same place, at any alignment.
        for stripe in rotten.chunks_mut(BLOCK * STRIPE) {
            let from = at.index(stripe.len());
            let to = stripe.len().min(from + lost);
            match fill {
                None => stripe[from..to].fill(0),
                Some(seed) => stripe[from..to].copy_from_slice(&noise(to - from, seed)),
            }
        }
        read.mend(&mut rotten).unwrap();
        prop_assert!(rotten == whole);
    }

    #[test]
    fn a_flipped_bit_or_a_wrong_end_come_back(
        len in 1usize..300_000, seed in any::<u64>(), at in any::<prop::sample::Index>(),
        bit in 0..8u8, cut in 0..=BLOCK, more in 0..10_000usize,
    ) {
        let whole = noise(len, seed);
        let sidecar = Sidecar::of(7, &whole, Vec::new());
        let mut flipped = whole.clone();
        flipped[at.index(len)] ^= 1 << bit;
        prop_assert_eq!(sidecar.mend(&mut flipped), Ok(1));
        let mut short = whole[..len.saturating_sub(cut)].to_vec();
        sidecar.mend(&mut short).unwrap();
        let mut long = whole.clone();
        long.extend(noise(more, 3));
        prop_assert_eq!(sidecar.mend(&mut long), Ok(0));
        prop_assert!(flipped == whole && short == whole && long == whole);
    }

    #[test]
    fn a_sidecar_that_lost_a_sector_is_of_use(
        len in BLOCK..700_000, seed in any::<u64>(), at in any::<prop::sample::Index>(),
    ) {
        let whole = noise(len, seed);
        let sidecar = Sidecar::of(7, &whole, vec![9; 100]);
        let mut bytes = sidecar.encode();
        let from = at.index(bytes.len()) / 512 * 512;
        let to = bytes.len().min(from + 512);
        bytes[from..to].fill(0);
        let read = Sidecar::decode(&bytes).unwrap();
        let is_kept = read.witness == sidecar.witness;
        prop_assert!(is_kept || read.witness.is_none());
        prop_assert!(!read.is_as_written(&bytes) || bytes == sidecar.encode());
        prop_assert!(read.damaged_blocks(&whole).is_empty());
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..2000), len in 0usize..10_000,
        at in any::<prop::sample::Index>(),
    ) {
        let _ = Sidecar::decode(&bytes);
        let mut sidecar = Sidecar::of(1, &noise(len, 5), Vec::new()).encode();
        let at = at.index(sidecar.len());
        sidecar[at] ^= 1;
        if let Ok(read) = Sidecar::decode(&sidecar) {
            let _ = read.mend(&mut bytes.clone());
        }
    }
}

#[test]
fn what_is_beyond_mending_is_refused() {
    let whole = noise(300_000, 1);
    let sidecar = Sidecar::of(7, &whole, Vec::new());
    let mut rotten = whole.clone();
    rotten[0] ^= 1;
    rotten[5 * BLOCK] ^= 1;
    assert_eq!(sidecar.mend(&mut rotten), Err(TooDamaged { blocks: 2 }));
    // In two stripes both are mended.
    let mut rotten = whole.clone();
    rotten[0] ^= 1;
    rotten[70 * BLOCK] ^= 1;
    assert_eq!(sidecar.mend(&mut rotten), Ok(2));
    let empty = Sidecar::of(7, &[], Vec::new());
    assert_eq!(Sidecar::decode(&empty.encode()), Ok(empty.clone()));
    assert_eq!(empty.mend(&mut vec![1]), Ok(0));
    assert_eq!(Sidecar::decode(b"omirpar2"), Err(BadSidecar));
}
