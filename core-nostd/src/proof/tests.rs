use std::prelude::v1::*;

use ed25519_dalek::{Signer, SigningKey};
use proptest::prelude::*;

use super::*;
use crate::merkle::{Root, Tree};
use crate::seal::Contents;

const SECRET: [u8; 32] = [7; 32];

fn key() -> PublicKey {
    SigningKey::from_bytes(&SECRET).verifying_key().to_bytes()
}

fn entries(count: usize) -> Vec<Vec<u8>> {
    let text = |n| format!(r#"{{"resourceType":"Entity","id":"cup-{n}","name":"Täßchen {n}"}}"#);
    let value = |n| json::from_slice(text(n).as_bytes(), &Limits::default()).unwrap();
    (0..count).map(|n| cbor::to_vec(&value(n))).collect()
}

fn sealed(root: Option<Root>, last: Option<Hash>) -> Seal {
    let signing = SigningKey::from_bytes(&SECRET);
    let contents = Contents { bytes: 4711, sha256: [1; 32], root };
    let mut seal = Seal {
        segment: 3,
        contents,
        previous: [2; 32],
        last,
        public_key: key(),
        signature: [0; 64],
    };
    seal.signature = signing.sign(&seal.message()).to_bytes();
    seal
}

/// The proof of entry `index` of `count`.
fn proof(index: u64, count: usize) -> Proof {
    let entries = entries(count);
    let mut tree = Tree::with_path_of(index);
    entries.iter().for_each(|entry| tree.push(entry));
    let (root, path) = tree.finish();
    let entry = entries[index as usize].clone();
    Proof { entry, index, path: path.unwrap(), seal: sealed(Some(root), None) }
}

#[test]
fn a_proof_survives_its_document_and_verifies() {
    for (index, count) in [(0, 1), (0, 2), (6, 7), (3, 7), (12, 40)] {
        let proof = proof(index, count);
        let text = proof.to_json().unwrap();
        let read = Proof::from_json(text.as_bytes()).unwrap();
        assert_eq!(read, proof);
        let verified = Verified { segment: 3, index, entries: count as u64 };
        assert_eq!(read.verify(&key()), Ok(verified));
        assert_eq!(read.reference().unwrap().to_string(), format!("Entity/cup-{index}"));
        assert!(text.contains("Täßchen"), "people read what is proved: {text}");
        // People may leave out what is for them.
        let mut value = proof.to_value().unwrap();
        value.as_object_mut().unwrap().remove("resource");
        assert_eq!(Proof::from_value(&value), Ok(proof));
    }
}

#[test]
fn each_fault_has_its_name() {
    let good = proof(2, 5);
    let fault = |proof: &Proof| proof.verify(&key()).unwrap_err();
    let other = SigningKey::from_bytes(&[8; 32]).verifying_key().to_bytes();
    assert_eq!(good.verify(&other), Err(ProofFault::OtherKey { found: key() }));

    let mut seals = Vec::new();
    let changed = |change: &dyn Fn(&mut Seal)| {
        let mut proof = good.clone();
        change(&mut proof.seal);
        proof
    };
    seals.push(changed(&|seal| seal.segment += 1));
    seals.push(changed(&|seal| seal.contents.bytes += 1));
    seals.push(changed(&|seal| seal.contents.sha256[0] ^= 1));
    seals.push(changed(&|seal| seal.contents.root.as_mut().unwrap().entries += 1));
    seals.push(changed(&|seal| seal.contents.root.as_mut().unwrap().hash[31] ^= 1));
    seals.push(changed(&|seal| seal.previous[5] ^= 1));
    seals.push(changed(&|seal| seal.last = Some([2; 32])));
    seals.push(changed(&|seal| seal.signature[63] ^= 1));
    for proof in &seals {
        assert_eq!(fault(proof), ProofFault::BadSignature, "{:?}", proof.seal);
    }
    assert_eq!(fault(&changed(&|seal| seal.contents.root = None)), ProofFault::NoRoot);

    let at = |index| fault(&Proof { index, ..good.clone() });
    assert_eq!(at(3), ProofFault::Path(PathFault::OtherRoot));
    assert_eq!(at(5), ProofFault::Path(PathFault::Outside { index: 5, entries: 5 }));
    let entry = entries(5)[3].clone();
    let swapped = Proof { entry, ..good.clone() };
    assert_eq!(fault(&swapped), ProofFault::Path(PathFault::OtherRoot));
    let short = Proof { path: good.path[1..].to_vec(), ..good };
    let length = PathFault::Length { expected: 3, found: 2 };
    assert_eq!(fault(&short), ProofFault::Path(length));
}

#[test]
fn a_verdict_says_what_is_proved_or_why_nothing_is() {
    let text = proof(2, 5).to_json().unwrap();
    let other = SigningKey::from_bytes(&[8; 32]).verifying_key().to_bytes();
    let good = json::to_string(&report(&judge(text.as_bytes(), &[other, key()])));
    assert!(
        good.starts_with(
            r#"{"valid":true,"ref":"Entity/cup-2","segment":3,"entry":2,"entries":5,"#
        ),
        "{good}"
    );
    for (text, keys, fault) in [
        (&*text, &[][..], "other-key"),
        (&text, &[other], "other-key"),
        (&text.replace("\"index\":2", "\"index\":1"), &[key()], "not-included"),
        ("{}", &[key()], "unreadable"),
    ] {
        let bad = json::to_string(&report(&judge(text.as_bytes(), keys)));
        assert!(bad.starts_with(&format!(r#"{{"valid":false,"fault":"{fault}","#)), "{bad}");
    }
}

/// A node of the tree is no entry: its hash is made in another way.
#[test]
fn a_node_is_not_passed_off_as_an_entry() {
    let good = proof(0, 4);
    let [a, b] = [0, 1].map(|n: usize| merkle::leaf(&entries(4)[n]));
    let entry = [a, b].concat();
    let forged = Proof { entry, path: good.path[1..].to_vec(), ..good };
    assert!(matches!(forged.verify(&key()), Err(ProofFault::Path(_))));
}

#[test]
fn documents_that_are_none_are_refused_with_their_place() {
    let good = proof(2, 5).to_json().unwrap();
    let refused = |from: &str, to: &str| {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from}");
        Proof::from_json(text.as_bytes()).unwrap_err()
    };
    let at = |from: &str, to: &str| match refused(from, to) {
        ProofFault::Unreadable { path, .. } => path,
        other => panic!("{other}"),
    };
    assert_eq!(at("omird-proof-1", "proof"), "/format");
    assert_eq!(at(r#""entry":"#, r#""entri":"#), "/entri");
    assert_eq!(at(r#""index":2"#, r#""index":-2"#), "/entry/index");
    assert_eq!(at(r#""index":2"#, r#""index":2,"more":1"#), "/entry");
    assert_eq!(at(r#""index":2"#, r#""index":2.5"#), "/entry/index");
    assert_eq!(at(r#""path":[""#, r#""path":["0"#), "/path/0");
    assert_eq!(at("omird-signature-3", "omird-signature-9"), "/seal");
    assert_eq!(at(r#""segment":3"#, r#""segment":3,"more":1"#), "/seal");
    assert_eq!(
        refused("omird-proof-1", "omird-proof-2"),
        ProofFault::OtherFormat("omird-proof-2".into())
    );
    assert_eq!(refused("Täßchen", "Tasse"), ProofFault::ResourceDiffers);
    for text in ["", "[]", "{}", "{\"format\":1}", &good[..good.len() / 2]] {
        let fault = Proof::from_json(text.as_bytes()).unwrap_err();
        assert_eq!(fault.name(), "unreadable", "{text}");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(Proof::from_json(deep.as_bytes()).unwrap_err().name(), "unreadable");
}

#[test]
fn the_seal_of_an_older_release_is_told_from_a_bad_one() {
    for last in [None, Some([9; 32])] {
        let proof = Proof { seal: sealed(None, last), ..proof(2, 5) };
        let text = proof.to_json().unwrap();
        assert_eq!(Proof::from_json(text.as_bytes()), Err(ProofFault::NoRoot));
    }
}

/// Every bit of a document: none of them can be turned without being noticed.
#[test]
fn each_turned_bit_is_refused() {
    let text = proof(2, 5).to_json().unwrap().into_bytes();
    for bit in 0..8 * text.len() {
        let mut turned = text.clone();
        turned[bit / 8] ^= 1 << (bit % 8);
        let judged = Proof::from_json(&turned).and_then(|proof| proof.verify(&key()));
        assert!(judged.is_err(), "bit {bit}: {}", String::from_utf8_lossy(&turned));
    }
}

proptest! {
    /// Bytes that are none, and bytes that nearly are.
    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>, at: usize, len in 0usize..40) {
        let _ = Proof::from_json(&bytes);
        let mut text = proof(1, 3).to_json().unwrap().into_bytes();
        let at = at % text.len();
        text.splice(at..(at + len).min(text.len()), bytes);
        if let Ok(read) = Proof::from_json(&text) {
            prop_assert_eq!(Proof::from_json(read.to_json().unwrap().as_bytes()), Ok(read));
        }
    }
}
