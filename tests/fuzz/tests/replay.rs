//! The saved corpus and small changes of it, without libFuzzer: the same on every run and every
//! machine.
//!
//! Invariants 9 and 24 of ARCHITECTURE.md.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};

use omird_fuzz::{CORE, Target};

/// Changed inputs for each saved one.
const CHANGES: usize = 60;
/// An input is changed at so many places at most.
const MOST_PLACES: usize = 4;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Names in a folder, sorted.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn targets() -> Vec<Target> {
    #[cfg(feature = "daemon")]
    return [CORE, omird_fuzz::DAEMON].concat();
    #[cfg(not(feature = "daemon"))]
    return CORE.to_vec();
}

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.bits() % end.max(1) as u64) as usize
    }
}

/// `input` with bytes replaced, flipped, left out, repeated, or taken from `other`.
fn changed(input: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=random.below(MOST_PLACES) {
        let at = random.below(bytes.len() + 1);
        let end = (at + random.below(9)).min(bytes.len());
        match random.below(6) {
            0 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = random.bits() as u8),
            1 => {
                let bit = 1 << random.below(8);
                bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= bit);
            }
            2 => drop(bytes.drain(at..end)),
            3 => {
                let repeated = bytes[at..end].to_vec();
                bytes.splice(at..at, repeated);
            }
            4 => {
                let from = random.below(other.len() + 1);
                let to = (from + random.below(64)).min(other.len());
                bytes.splice(at..end, other[from..to].iter().copied());
            }
            _ => bytes.truncate(at),
        }
    }
    bytes
}

fn check(target: &Target, input: &[u8], origin: &str) {
    let run = panic::catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    if run.is_err() {
        let shown: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
        panic!("{} does not hold for {origin}, in hexadecimal {shown}", target.name);
    }
}

fn replay(name: &str) {
    let target = targets().into_iter().find(|target| target.name == name).expect("a known target");
    let corpus = folder("corpus").join(name);
    // The golden files are worth a try in every target.
    let mut saved: Vec<(String, Vec<u8>)> = Vec::new();
    for folder in [&corpus, &folder("../../core-nostd/tests/data")] {
        for file in names(folder) {
            let path = folder.join(&file);
            if path.is_file() {
                saved.push((file, fs::read(path).unwrap()));
            }
        }
    }
    check(&target, &[], "no bytes at all");
    let mut random = Random(0);
    for (file, input) in &saved {
        check(&target, input, file);
        for number in 0..CHANGES {
            let (_, other) = &saved[random.below(saved.len())];
            let input = changed(input, other, &mut random);
            check(&target, &input, &format!("change {number} of {file}"));
        }
    }
}

macro_rules! replays {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                replay(stringify!($name));
            }
        )*

        const REPLAYED: &[&str] = &[$(stringify!($name)),*];
    };
}

#[cfg(not(feature = "daemon"))]
replays! { cbor document embedding instant json link link_message manifesto number pose profile proof reference stream text uri value }

#[cfg(feature = "daemon")]
replays! {
    cbor document embedding instant json link link_message manifesto number pose profile proof reference stream text uri value
    block config interface log manifest message parameters recording request segment sidecar
    signature store time_range token trajectory transaction witness
}

#[test]
fn every_target_is_replayed_and_has_a_program_and_a_corpus() {
    let known: BTreeSet<String> = targets().iter().map(|target| target.name.to_owned()).collect();
    assert_eq!(known, REPLAYED.iter().map(|name| (*name).to_owned()).collect());
    let programs = names(&folder("fuzz_targets"));
    let corpora = names(&folder("corpus"));
    for name in &known {
        assert!(programs.contains(&format!("{name}.rs")), "fuzz_targets/{name}.rs");
        assert!(corpora.contains(name), "corpus/{name}");
    }
    if cfg!(feature = "daemon") {
        assert_eq!((programs.len(), corpora.len()), (known.len(), known.len()));
    }
}
