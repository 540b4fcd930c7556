//! The golden proof by its key, and everything else by its fault.

use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::manifesto::{Verifier, World};

const SIGNATURE: &str = include_str!("../../../../tests/golden_proofs/manifesto/signature.json");
const WORLD: &str = include_str!("../../../../tests/golden_proofs/manifesto/world.json");
const SIGNER: &str = include_str!("../../../../tests/golden_proofs/manifesto/signer.pub");

fn signer() -> [u8; 32] {
    super::super::proof::unhex(SIGNER.trim()).expect("a key")
}

fn text_of(document: &str) -> String {
    json::to_string(&verdict(document.as_bytes(), &signer()))
}

fn fault_of(document: &[u8], key: &[u8; 32]) -> (String, String) {
    let verdict = verdict(document, key);
    assert_eq!(verdict.get("valid"), Some(&Value::Bool(false)), "{verdict:?}");
    let text = |name| verdict.get(name).and_then(Value::as_str).expect("it is said").to_string();
    (text("fault"), text("message"))
}

#[test]
fn the_golden_proof_is_the_signature_of_its_world_and_holds() {
    let world = json::from_slice(WORLD.as_bytes(), &LIMITS).expect("it is JSON");
    let keys = Keys::signing(core::array::from_fn(|i| i as u8));
    let world = World::from_value(world).expect("a World");
    let proven = Verifier::new(&keys, Method::Signature).prove("w-1", &world);
    let made = proven.proof.expect("a signature");
    assert_eq!(json::to_string(&made.to_value()) + "\n", SIGNATURE);
    assert_eq!(
        text_of(SIGNATURE),
        alloc::format!(
            r#"{{"valid":true,"method":"signature","worldId":"w-1","publicKey":"{}"}}"#,
            SIGNER.trim()
        )
    );
}

#[test]
fn each_bit_of_the_golden_proof_and_of_its_key_counts() {
    let (mut document, mut key) = (SIGNATURE.as_bytes().to_vec(), signer());
    for at in 0..8 * document.len() {
        document[at / 8] ^= 1 << (at % 8);
        fault_of(&document, &key);
        document[at / 8] ^= 1 << (at % 8);
    }
    for at in 0..256 {
        key[at / 8] ^= 1 << (at % 8);
        assert_eq!(fault_of(&document, &key).0, "other-key");
        key[at / 8] ^= 1 << (at % 8);
    }
    for end in 0..document.len() - 1 {
        assert_eq!(fault_of(&document[..end], &key).0, "unreadable", "{end}");
    }
}

#[test]
fn evidence_is_refused_and_says_to_extract_the_proof() {
    let opened = SIGNATURE.trim_end().strip_suffix('}').expect("an object");
    for (member, value) in
        [("verifiedAt", "1"), ("verifiedBy", r#"{"actorId":"a","kind":"agent"}"#)]
    {
        let evidence = alloc::format!(r#"{opened},"{member}":{value}}}"#);
        let (fault, message) = fault_of(evidence.as_bytes(), &signer());
        assert_eq!(fault, "evidence");
        assert!(message.starts_with(&alloc::format!("/{member}: ")), "{message}");
        assert!(message.contains("extract the proof"), "{message}");
        // The proof that is extracted from it holds.
        let value = json::from_slice(evidence.as_bytes(), &LIMITS).expect("it is JSON");
        let proof = Proof::extract(&value).expect("there is one");
        assert_eq!(Keys::verifying().trusting(&signer()).check(&proof), Ok(()));
    }
}

#[test]
fn each_document_that_proves_nothing_has_its_fault() {
    let of = |method: &str, data: &str| {
        alloc::format!(
            r#"{{"method":"{method}","proof":{{"alg":"sha-256","canon":"jcs","worldId":"w",{data}}}}}"#
        )
    };
    let (a, b) = ("a".repeat(64), "b".repeat(64));
    let deep = "[".repeat(100_000);
    let cases = [
        (String::new(), "unreadable", "/"),
        (deep, "unreadable", ""),
        (" ".repeat(MAX_PROOF_BYTES + 1), "unreadable", ""),
        ("[]".into(), "unreadable", "/: an object"),
        ("{}".into(), "unreadable", "/method"),
        (r#"{"method":""}"#.into(), "unreadable", "/method"),
        (r#"{"method":7}"#.into(), "unreadable", "/method"),
        (r#"{"method":"existence","reason":"x"}"#.into(), "unreadable", "/reason"),
        (r#"{"proof":{"method":"existence"}}"#.into(), "unreadable", "/method"),
        (r#"{"method":"none"}"#.into(), "nothing-verified", "/method"),
        (r#"{"method":"custom-x","proof":1}"#.into(), "unknown-method", "\"custom-x\""),
        (r#"{"method":"signature"}"#.into(), "unreadable", "/proof: an object"),
        (r#"{"method":"signature","proof":[]}"#.into(), "unreadable", "/proof: an object"),
        (of("merkle", r#""computedRoot":"a""#), "unreadable", "/proof/computedRoot"),
        (
            of("hash", &alloc::format!(r#""computedHash":"{a}""#)),
            "unreadable",
            "/proof/expectedHash",
        ),
        (
            of("hash", &alloc::format!(r#""computedHash":"{a}","expectedHash":"{b}""#)),
            "digest-differs",
            "/proof/expectedHash",
        ),
        (
            of("hash", &alloc::format!(r#""computedHash":"{a}","expectedHash":"{a}","at":1"#)),
            "unreadable",
            "nothing else",
        ),
        (
            of(
                "merkle",
                &alloc::format!(r#""computedRoot":"{a}","expectedRoot":"{a}","pathProof":[]"#),
            ),
            "unreadable",
            "/proof/pathProof",
        ),
        (
            of(
                "merkle",
                &alloc::format!(
                    r#""computedRoot":"{a}","expectedRoot":"{a}","pathProof":{{"leafHash":"{b}","siblings":[]}}"#
                ),
            ),
            "digest-differs",
            "/proof/pathProof",
        ),
        (SIGNATURE.replace("w-1", "w-2"), "bad-signature", "/proof/signature"),
    ];
    for (document, fault, place) in cases {
        let shown: String = document.chars().take(200).collect();
        let found = fault_of(document.as_bytes(), &signer());
        assert_eq!(found.0, fault, "{shown}: {}", found.1);
        assert!(found.1.contains(place), "{shown}: {}", found.1);
    }
}

#[test]
fn a_method_without_a_key_names_none() {
    assert_eq!(text_of(r#"{"method":"existence"}"#), r#"{"valid":true,"method":"existence"}"#);
    let beside = r#"{"method":"existence","proof":{"worldId":"w-1"}}"#;
    assert_eq!(fault_of(beside.as_bytes(), &signer()).0, "unreadable", "it names a World");
    let digest = "a".repeat(64);
    let hash = alloc::format!(
        r#"{{"method":"hash","proof":{{"alg":"sha-256","canon":"jcs","worldId":"w-1","computedHash":"{digest}","expectedHash":"{digest}"}}}}"#
    );
    assert_eq!(text_of(&hash), r#"{"valid":true,"method":"hash","worldId":"w-1"}"#);
}

/// The longest proof that this crate makes is read: 64 siblings, and a WorldId of which each byte is escaped.
#[test]
fn the_longest_proof_is_within_the_limits() {
    let sibling = alloc::format!(r#"{{"hash":"{}","position":"left"}}"#, "a".repeat(64));
    let siblings = alloc::vec![sibling; 64].join(",");
    let (leaf, id) = ("b".repeat(64), "\\u0061".repeat(512));
    let document = alloc::format!(
        r#"{{"method":"merkle","proof":{{"alg":"sha-256","canon":"jcs","worldId":"{id}","computedRoot":"{leaf}","expectedRoot":"{leaf}","pathProof":{{"leafHash":"{leaf}","siblings":[{siblings}]}}}}}}"#
    );
    assert!(document.len() < MAX_PROOF_BYTES / 4, "{}", document.len());
    assert_eq!(fault_of(document.as_bytes(), &signer()).0, "digest-differs");
}

proptest! {
    /// Whatever was changed in it: it holds if it says the same, and otherwise not.
    #[test]
    fn changed_documents_are_the_same_proof_or_none(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..8),
    ) {
        let mut document: Vec<u8> = SIGNATURE.into();
        for (at, byte) in changes {
            let at = at.index(document.len());
            document[at] = byte;
        }
        let given = read_proof(SIGNATURE.as_bytes());
        let holds = verdict(&document, &signer()).get("valid") == Some(&Value::Bool(true));
        prop_assert_eq!(holds, read_proof(&document) == given);
    }

    #[test]
    fn bytes_of_a_stranger_do_no_harm(document: Vec<u8>, key: [u8; 32]) {
        let verdict = verdict(&document, &key);
        prop_assert_eq!(verdict.get("valid"), Some(&Value::Bool(false)));
    }
}
