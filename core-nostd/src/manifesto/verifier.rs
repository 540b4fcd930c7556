//! Proving that a World is the one a memory points to. `verdict` verifies such a proof without the World.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use ed25519_dalek::{Signer as _, SigningKey, VerifyingKey};

use super::proof::{Path, Proof, begin, hex, unhex};
use super::world::World;
use crate::merkle::Hash;
use crate::value::{Map, Value};

/// The beginning of each signed message. It keeps these signatures apart from all others of the same key.
const SIGNED: &[u8] = b"omird manifesto proof 1\n";

/// A method of verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Nothing is verified, and nothing is valid.
    None,
    /// The World is there. That proves nothing to a verifier that cannot look.
    Existence,
    /// The World has the hash that it states.
    Hash,
    /// The World has the root that it states.
    Merkle,
    /// The World is signed.
    Signature,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::None, Self::Existence, Self::Hash, Self::Merkle, Self::Signature];

    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Existence => "existence",
            Self::Hash => "hash",
            Self::Merkle => "merkle",
            Self::Signature => "signature",
        }
    }

    /// Returns the method of that name. Others are allowed, and verify nothing.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str() == name)
    }
}

/// The keys of a verifier: constants of it. Ed25519 signatures need no randomness.
#[derive(Clone, Default)]
pub struct Keys {
    signing: Option<SigningKey>,
    pub(super) trusted: Vec<VerifyingKey>,
}

impl Keys {
    /// Returns keys that only verify, and trust no signer yet.
    pub const fn verifying() -> Self {
        Self { signing: None, trusted: Vec::new() }
    }

    /// Returns keys that sign with this secret, and trust it.
    pub fn signing(secret: [u8; 32]) -> Self {
        let signing = SigningKey::from_bytes(&secret);
        Self { trusted: [signing.verifying_key()].into(), signing: Some(signing) }
    }

    /// Trusts one more public key. Bytes that are no key are passed over.
    #[must_use]
    pub fn trusting(mut self, public_key: &[u8; 32]) -> Self {
        if let Ok(key) = VerifyingKey::from_bytes(public_key)
            && !self.trusted.contains(&key)
        {
            self.trusted.push(key);
        }
        self
    }

    /// Trusts one more public key, in hexadecimal. A text that is none is passed over.
    #[must_use]
    pub fn trusting_hex(self, public_key: &str) -> Self {
        match unhex(public_key) {
            Some(key) => self.trusting(&key),
            None => self,
        }
    }

    /// Returns the trusted public keys in hexadecimal, each with true if it signs.
    pub fn public_keys(&self) -> impl Iterator<Item = (String, bool)> + '_ {
        let own = self.signing.as_ref().map(SigningKey::verifying_key);
        self.trusted.iter().map(move |key| (hex(key.as_bytes()), Some(*key) == own))
    }
}

impl core::fmt::Debug for Keys {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.public_keys()).finish()
    }
}

/// The result of proving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProveResult {
    /// True if the proof succeeded.
    pub valid: bool,
    /// The proof; of a failed one only what tells why.
    pub proof: Option<Proof>,
    /// The reason of a failure, for people.
    pub error: Option<String>,
}

impl ProveResult {
    fn failed(proof: Option<Proof>, error: impl Into<String>) -> Self {
        Self { valid: false, proof, error: Some(error.into()) }
    }

    /// Returns the JSON of it.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("valid", self.valid);
        if let Some(proof) = &self.proof {
            map.insert("proof", proof.to_value());
        }
        if let Some(error) = &self.error {
            map.insert("error", error.as_str());
        }
        Value::Object(map)
    }
}

/// A verifier: keys and a method. It is made of constants and holds no state.
#[derive(Clone, Copy, Debug)]
pub struct Verifier<'k> {
    keys: &'k Keys,
    method: Method,
    member: Option<&'k str>,
}

impl<'k> Verifier<'k> {
    /// Returns the verifier of a method.
    pub fn new(keys: &'k Keys, method: Method) -> Self {
        Self { keys, method, member: None }
    }

    /// Returns one that adds the path of a member to a proof by `merkle`.
    #[must_use]
    pub fn with_path_of(self, member: &'k str) -> Self {
        Self { member: Some(member), ..self }
    }

    /// Proves that a World is the one that `world_id` names.
    pub fn prove(&self, world_id: &str, world: &World) -> ProveResult {
        if world.id() != world_id {
            let error =
                format!("the World is {:?}, and the memory points to {world_id:?}", world.id());
            return ProveResult::failed(None, error);
        }
        match self.method {
            Method::None => ProveResult::failed(None, "the method `none` verifies nothing"),
            Method::Existence => proven(Method::Existence, None),
            Method::Hash => {
                let mut map = begin("sha-256", world_id);
                let stated =
                    compare(&mut map, ["computedHash", "expectedHash"], world, "contentHash");
                anchored(Method::Hash, map, stated)
            }
            Method::Merkle => self.prove_merkle(world),
            Method::Signature => self.prove_signature(world),
        }
    }

    fn prove_merkle(&self, world: &World) -> ProveResult {
        let mut map = begin("sha-256", world.id());
        let stated = compare(&mut map, ["computedRoot", "expectedRoot"], world, "merkleRoot");
        if let Some(member) = self.member {
            let Some((leaf, siblings)) = world.path(member) else {
                return ProveResult::failed(None, format!("the World has no member {member:?}"));
            };
            map.insert("pathProof", Path { leaf, siblings }.to_value());
        }
        anchored(Method::Merkle, map, stated)
    }

    fn prove_signature(&self, world: &World) -> ProveResult {
        let Some(key) = &self.keys.signing else {
            return ProveResult::failed(None, "there is no key to sign with");
        };
        // A signature holds by itself: there is none over a World that contradicts itself.
        let mut ignored = Map::new();
        for name in ["contentHash", "merkleRoot"] {
            if let Err(Some(error)) = compare(&mut ignored, ["", ""], world, name) {
                return ProveResult::failed(None, error);
            }
        }
        let hash = world.hash();
        let mut map = begin("ed25519", world.id());
        map.insert("hash", hex(&hash));
        map.insert("publicKey", hex(key.verifying_key().as_bytes()));
        map.insert("signature", hex(&key.sign(&signed(world.id(), &hash)).to_bytes()));
        proven(Method::Signature, Some(map))
    }

    /// Returns true if a proof holds: [`Keys::verify`].
    pub fn verify_proof(&self, proof: &Proof) -> bool {
        self.keys.verify(proof)
    }
}

fn proven(method: Method, map: Option<Map>) -> ProveResult {
    let proof = Proof { method: method.as_str().into(), proof: map.map(Value::Object) };
    ProveResult { valid: true, proof: Some(proof), error: None }
}

/// Ends a proof by a digest that the World states itself: without one it proves nothing.
fn anchored(method: Method, map: Map, stated: Result<(), Option<String>>) -> ProveResult {
    let result = proven(method, Some(map));
    match stated {
        Ok(()) => result,
        Err(error) => {
            let none = || "the World states no digest to compare with".into();
            ProveResult::failed(result.proof, error.unwrap_or_else(none))
        }
    }
}

/// Notes the digest of a World and the one that it states, and compares them.
///
/// # Errors
/// They differ; `None` if it states none.
fn compare(
    map: &mut Map,
    names: [&str; 2],
    world: &World,
    stated: &str,
) -> Result<(), Option<String>> {
    let computed = hex(&match stated {
        "contentHash" => world.hash(),
        _ => world.root(),
    });
    let found = world.stated(stated);
    let is_same = found.and_then(Value::as_str) == Some(&computed);
    map.insert(names[0], computed);
    if let Some(text) = found.and_then(Value::as_str) {
        map.insert(names[1], text);
    }
    match found {
        None => Err(None),
        Some(_) if is_same => Ok(()),
        Some(_) => Err(Some(format!("`metadata.{stated}` is not the digest of this World"))),
    }
}

/// Returns the bytes that are signed: the prefix, the WorldId behind its length, the hash.
pub(super) fn signed(world_id: &str, hash: &Hash) -> Vec<u8> {
    let len = u32::try_from(world_id.len()).unwrap_or(u32::MAX);
    [SIGNED, &len.to_be_bytes(), world_id.as_bytes(), hash].concat()
}
