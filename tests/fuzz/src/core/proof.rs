//! Proofs of memories: what is read is written the same, and nothing holds but what was signed.

use omir_core::proof::{Proof, judge};

use crate::support::Choices;

/// A proof that an earlier build gave away.
const GIVEN: &[u8] = include_bytes!("../../../golden_proofs/compacted.json");

/// Reads a document as it is, and one that was given away and then changed.
pub fn run(bytes: &[u8]) {
    if let Ok(proof) = Proof::from_json(bytes) {
        let text = proof.to_json().expect("it was read with its resource");
        assert_eq!(Proof::from_json(text.as_bytes()), Ok(proof));
    }
    let given = Proof::from_json(GIVEN).expect("it is a proof");
    let key = given.seal.public_key;
    let mut text = GIVEN.to_vec();
    let mut choices = Choices::new(bytes);
    while !choices.is_empty() {
        let at = usize::from(choices.byte()) << 8 | usize::from(choices.byte());
        let len = text.len();
        text[at % len] ^= choices.byte();
    }
    // White space may change.
    if let Ok((proof, _)) = judge(&text, &[key]) {
        assert_eq!(proof, given, "{}", String::from_utf8_lossy(&text));
    }
}
