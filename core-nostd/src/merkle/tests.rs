use proptest::prelude::*;

use super::*;

/// The leaves by which implementations of Certificate Transparency test themselves.
const LEAVES: [&[u8]; 8] = [
    b"",
    b"\x00",
    b"\x10",
    b"\x20\x21",
    b"\x30\x31",
    b"\x40\x41\x42\x43",
    b"\x50\x51\x52\x53\x54\x55\x56\x57",
    b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
];

/// The roots over none of them, one, two and so on.
const ROOTS: [&str; 9] = [
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

/// The inclusion proofs of the same suites (`TestInclusionProof` of certificate-transparency and trillian):
/// index and number of entries, and the path.
const PATHS: [(u64, u64, &[&str]); 6] = [
    (0, 1, &[]),
    (
        0,
        8,
        &[
            "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
            "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
            "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
        ],
    ),
    (
        5,
        8,
        &[
            "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
            "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        ],
    ),
    (2, 3, &["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"]),
    (
        1,
        5,
        &[
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
            "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        ],
    ),
    (4, 5, &["d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"]),
];

fn hash(hex: &str) -> Hash {
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    core::array::from_fn(|at| byte(2 * at))
}

fn path_of(index: u64, entries: &[impl AsRef<[u8]>]) -> (Root, Option<Vec<Hash>>) {
    let mut tree = Tree::with_path_of(index);
    entries.iter().for_each(|entry| tree.push(entry.as_ref()));
    tree.finish()
}

#[test]
fn roots_are_those_of_certificate_transparency() {
    for (count, root) in ROOTS.iter().enumerate() {
        let of = Root::of(LEAVES[..count].iter().copied());
        assert_eq!(of, Root { entries: count as u64, hash: hash(root) });
    }
}

#[test]
fn paths_are_those_of_certificate_transparency() {
    for (index, entries, path) in PATHS {
        let path: Vec<Hash> = path.iter().map(|text| hash(text)).collect();
        let (root, made) = path_of(index, &LEAVES[..entries as usize]);
        assert_eq!(made.as_ref(), Some(&path), "{index} of {entries}");
        assert_eq!(root.includes(leaf(LEAVES[index as usize]), index, &path), Ok(()));
    }
}

/// RFC 9162, 2.1.5: the example with seven entries, of which it says what the paths are made of.
#[test]
fn paths_are_those_of_the_example_in_the_rfc() {
    let [a, b, c, d, e, f, j] = [0, 1, 2, 3, 4, 5, 6].map(|at: usize| leaf(LEAVES[at]));
    let (g, h, i) = (node(&a, &b), node(&c, &d), node(&e, &f));
    let (k, l) = (node(&g, &h), node(&i, &j));
    let of = |index| path_of(index, &LEAVES[..7]).1.unwrap();
    assert_eq!(of(0), [b, h, l]);
    assert_eq!(of(3), [c, g, l]);
    assert_eq!(of(4), [f, j, k]);
    assert_eq!(of(6), [i, k]);
}

/// The definitions of 2.1.1 and 2.1.3.1, word for word.
mod by_definition {
    use super::*;

    pub(super) fn root(entries: &[Vec<u8>]) -> Hash {
        match entries {
            [] => Sha256::digest([]).into(),
            [one] => leaf(one),
            _ => {
                let (left, right) = split(entries);
                node(&root(left), &root(right))
            }
        }
    }

    pub(super) fn path(index: usize, entries: &[Vec<u8>]) -> Vec<Hash> {
        if entries.len() == 1 {
            return Vec::new();
        }
        let (left, right) = split(entries);
        let (mut path, beside) = match index.checked_sub(left.len()) {
            None => (path(index, left), root(right)),
            Some(index) => (path(index, right), root(left)),
        };
        path.push(beside);
        path
    }

    fn split(entries: &[Vec<u8>]) -> (&[Vec<u8>], &[Vec<u8>]) {
        entries.split_at(entries.len().next_power_of_two() / 2)
    }
}

/// Every place of every list of up to seventy entries: the path is the defined one, leads to the root, and leads there
/// from no other place and from no other number of entries.
#[test]
fn every_entry_of_every_size_is_included_at_its_place_alone() {
    let all: Vec<Vec<u8>> = (0..70u8).map(|n| vec![n; usize::from(n % 5)]).collect();
    for size in 1..=all.len() {
        let entries = &all[..size];
        for at in 0..size {
            let (root, path) = path_of(at as u64, entries);
            let path = path.unwrap();
            assert_eq!(root.hash, by_definition::root(entries));
            assert_eq!(path, by_definition::path(at, entries), "{at} of {size}");
            let leaf = leaf(&entries[at]);
            for index in 0..size as u64 + 2 {
                let is_place = index == at as u64;
                assert_eq!(root.includes(leaf, index, &path).is_ok(), is_place, "{at} as {index}");
            }
        }
        assert_eq!(path_of(size as u64, entries).1, None);
    }
}

#[test]
fn each_fault_has_its_name() {
    let (root, path) = path_of(4, &LEAVES);
    let (path, leaf) = (path.unwrap(), leaf(LEAVES[4]));
    let outside = |index| Err(PathFault::Outside { index, entries: 8 });
    assert_eq!(root.includes(leaf, 8, &path), outside(8));
    assert_eq!(root.includes(leaf, u64::MAX, &path), outside(u64::MAX));
    for found in [0, 1, 2] {
        let length = Err(PathFault::Length { expected: 3, found });
        assert_eq!(root.includes(leaf, 4, &path[..found]), length);
    }
    let longer: Vec<Hash> = path.iter().copied().chain([[0; 32]]).collect();
    assert_eq!(root.includes(leaf, 4, &longer), Err(PathFault::Length { expected: 3, found: 4 }));
    assert_eq!(root.includes(leaf, 5, &path), Err(PathFault::OtherRoot));
    let empty = Root::of([]);
    assert_eq!(empty.includes(leaf, 0, &[]), Err(PathFault::Outside { index: 0, entries: 0 }));
}

/// Numbers that no list has do no more than numbers that one has.
#[test]
fn sides_end_for_any_numbers() {
    for (index, entries, count) in [
        (0, 0, 0),
        (0, 1, 0),
        (1, 1, 0),
        (u64::MAX, u64::MAX, 0),
        (0, u64::MAX, 64),
        (u64::MAX - 1, u64::MAX, 63),
        (1 << 63, (1 << 63) + 1, 1),
    ] {
        assert_eq!(sides(index, entries).count(), count, "{index} of {entries}");
    }
}

proptest! {
    #[test]
    fn any_entries_are_as_defined(
        (entries, at) in proptest::collection::vec(any::<Vec<u8>>(), 1..70)
            .prop_flat_map(|entries| (0..entries.len(), Just(entries)).prop_map(|(at, e)| (e, at)))
    ) {
        let (root, path) = path_of(at as u64, &entries);
        prop_assert_eq!(root.hash, by_definition::root(&entries));
        prop_assert_eq!(path.as_ref(), Some(&by_definition::path(at, &entries)));
        prop_assert_eq!(Root::of(entries.iter().map(Vec::as_slice)), root);
        prop_assert_eq!(root.includes(leaf(&entries[at]), at as u64, &path.unwrap()), Ok(()));
    }

    /// One bit of the entry, of the path or of the root.
    #[test]
    fn any_changed_bit_is_refused(size in 1usize..70, at in any::<usize>(), bit in any::<usize>()) {
        let mut entries: Vec<Vec<u8>> = (0..size).map(|n| n.to_be_bytes().to_vec()).collect();
        let at = at % size;
        let (mut root, path) = path_of(at as u64, &entries);
        let mut path = path.unwrap();
        let flip = |bytes: &mut [u8], bit: usize| bytes[bit / 8] ^= 1 << (bit % 8);
        let (of_entry, of_path) = (8 * entries[at].len(), 256 * path.len());
        match bit % (of_entry + of_path + 256) {
            bit if bit < of_entry => flip(&mut entries[at], bit),
            bit if bit < of_entry + of_path => {
                let bit = bit - of_entry;
                flip(&mut path[bit / 256], bit % 256);
            }
            bit => flip(&mut root.hash, bit - of_entry - of_path),
        }
        prop_assert_eq!(root.includes(leaf(&entries[at]), at as u64, &path), Err(PathFault::OtherRoot));
    }
}
