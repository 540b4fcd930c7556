//! Signature files: what is read is written the same, and nothing is authentic but what was signed.

use omird::store::DeviceKey;
use omird::store::format::signature::{Contents, Root, Seal, SealFault, digest};

use crate::support::Choices;

const SECRET: [u8; 32] = [7; 32];

/// Reads a signature file as it is, and one we signed and then changed.
pub fn run(bytes: &[u8]) {
    if let Ok(seal) = Seal::from_json(bytes) {
        assert_eq!(Seal::from_json(seal.to_json().as_bytes()).as_ref(), Ok(&seal));
        assert!(seal.verify(bytes, &seal.previous).is_err());
    }
    let root = Some(Root::of([&b"entry"[..]]));
    let contents = Contents { bytes: 5, sha256: digest(b"bytes"), root };
    let signed = DeviceKey::from_secret(SECRET).sign(3, &contents, digest(b"before"), None);
    assert_eq!(signed.verify(b"bytes", &digest(b"before")), Ok(()));
    assert_eq!(signed.verify(b"bytes", &digest(b"others")), Err(SealFault::ChainBroken));
    let mut text = signed.to_json().into_bytes();
    let mut choices = Choices::new(bytes);
    while !choices.is_empty() {
        let at = usize::from(choices.byte()) << 8 | usize::from(choices.byte());
        let len = text.len();
        text[at % len] ^= choices.byte();
    }
    if let Ok(changed) = Seal::from_json(&text)
        && changed != signed
    {
        assert!(!changed.is_authentic(), "{}", changed.to_json());
        assert!(changed.verify(b"bytes", &digest(b"before")).is_err());
    }
}
