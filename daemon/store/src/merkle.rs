//! The root of a Merkle tree over a list of entries, as RFC 9162 (Certificate Transparency 2.0), 2.1.1, defines it:
//! with it one entry can be shown to be in a segment without showing the others.
//!
//! The hash of a leaf is SHA-256 of `00 ‖ entry`; that of a node `01 ‖ left ‖ right`, where the left side has the
//! largest power of two of leaves that is less than all of them.

use sha2::{Digest as _, Sha256};

use crate::digest::Digest;

/// How many entries there are, and the root over them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Root {
    /// Number of entries.
    pub entries: u64,
    /// The root.
    pub hash: Digest,
}

impl Root {
    /// The root over entries.
    pub fn of<'e>(entries: impl IntoIterator<Item = &'e [u8]>) -> Self {
        let mut count = 0u64;
        // Roots of full trees, each smaller than the one before it: the binary digits of `count`.
        let mut full: Vec<Digest> = Vec::new();
        for entry in entries {
            let mut hash = leaf(entry);
            // As many trees are full now as the number has ones at its end.
            for _ in 0..count.trailing_ones() {
                let left = full.pop().unwrap_or_default();
                hash = node(&left, &hash);
            }
            full.push(hash);
            count += 1;
        }
        let joined = full.into_iter().rev().reduce(|right, left| node(&left, &right));
        Self { entries: count, hash: joined.unwrap_or_else(|| Sha256::digest([]).into()) }
    }
}

fn leaf(entry: &[u8]) -> Digest {
    Sha256::new().chain_update([0]).chain_update(entry).finalize().into()
}

fn node(left: &Digest, right: &Digest) -> Digest {
    Sha256::new().chain_update([1]).chain_update(left).chain_update(right).finalize().into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::digest::hex;

    /// The leaves and roots by which implementations of Certificate Transparency test themselves.
    #[test]
    fn roots_are_those_of_certificate_transparency() {
        let leaves: [&[u8]; 8] = [
            b"",
            b"\x00",
            b"\x10",
            b"\x20\x21",
            b"\x30\x31",
            b"\x40\x41\x42\x43",
            b"\x50\x51\x52\x53\x54\x55\x56\x57",
            b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
        ];
        let roots = [
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
            "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
            "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
            "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
            "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
        ];
        for (count, root) in roots.iter().enumerate() {
            let of = Root::of(leaves[..count].iter().copied());
            assert_eq!((of.entries, hex(&of.hash).as_str()), (count as u64, *root));
        }
    }

    /// The definition, word for word.
    fn by_definition(entries: &[Vec<u8>]) -> Digest {
        match entries {
            [] => Sha256::digest([]).into(),
            [one] => leaf(one),
            _ => {
                let (left, right) = entries.split_at(entries.len().next_power_of_two() / 2);
                node(&by_definition(left), &by_definition(right))
            }
        }
    }

    proptest! {
        #[test]
        fn any_number_of_entries_is_as_defined(entries in proptest::collection::vec(any::<Vec<u8>>(), 0..70)) {
            let root = Root::of(entries.iter().map(Vec::as_slice));
            prop_assert_eq!(root.hash, by_definition(&entries));
        }
    }
}
