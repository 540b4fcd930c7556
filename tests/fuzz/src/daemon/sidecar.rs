//! Sidecars of segments: what is read is written the same, and any 4 KiB in a row are restored, also by a sidecar that
//! has lost a byte itself.

use omird::store::format::sidecar::{BLOCK, Sidecar};
use omird::store::format::signature::digest;

use crate::support::Choices;

/// Blocks that one parity block stands for.
const STRIPE: usize = 64 * BLOCK;

/// Reads a sidecar as it is, and one that was made and then hurt together with its segment.
pub fn run(bytes: &[u8]) {
    if let Ok(read) = Sidecar::decode(bytes) {
        let written = read.encode();
        assert!(!read.is_as_written(bytes) || written == bytes);
        let mut segment = bytes.to_vec();
        if read.mend(&mut segment).is_ok() {
            assert_eq!(digest(&segment), read.sha256);
        }
    }
    let mut choices = Choices::new(bytes);
    let len = usize::from(choices.byte()) << 12 | usize::from(choices.byte()) << 4 | 1;
    let (at, lost) = (choices.word() as usize % len, choices.word() as usize % (BLOCK + 1));
    let flip = choices.word() as usize;
    let pattern = choices.rest();
    let repeated = if pattern.is_empty() { &[7] } else { pattern };
    let mut whole = repeated.repeat(len.div_ceil(repeated.len()));
    whole.truncate(len);
    // Neighbouring blocks differ.
    whole.iter_mut().step_by(256).enumerate().for_each(|(n, byte)| *byte ^= n as u8);
    let made = Sidecar::of(3, &whole, pattern.to_vec());
    let mut file = made.encode();
    assert!(made.is_as_written(&file));
    assert_eq!(Sidecar::decode(&file).as_ref(), Ok(&made));

    let mut hurt = whole.clone();
    // Within one stripe.
    let end = len.min(at + lost).min((at / STRIPE + 1) * STRIPE);
    hurt[at..end].iter_mut().for_each(|byte| *byte = !*byte);
    let mut restored = hurt.clone();
    made.mend(&mut restored).expect("no more than 4 KiB of a stripe are lost");
    assert_eq!(restored, whole);

    let place = flip % file.len();
    file[place] ^= 1 << (flip >> 32 & 7);
    let damaged = Sidecar::decode(&file).expect("one of its heads is whole");
    assert!(!damaged.is_as_written(&file));
    assert_eq!(damaged.sha256, made.sha256);
    assert!(damaged.witness.is_none() || damaged.witness == made.witness);
    if damaged.mend(&mut hurt).is_ok() {
        assert_eq!(hurt, whole);
    }
}
