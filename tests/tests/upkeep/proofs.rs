//! Proofs of memories: what was proved once stays proved, through compactions and power cuts, and a proof is made of the
//! bytes that were signed or not at all. The proofs in `tests/golden_proofs` were given away by earlier builds.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use omir_core::hex;
use omir_core::proof::{Proof, ProofFault, PublicKey, judge};
use omir_core::reference::Ref;
use omird::engine::testing::ByHand;
use omird::engine::{Change, Clock as _, Code, CompactionScope, Encoding, Settings, SystemClock};
use omird::store::format::segment;
use omird::store::inspect::{NoProof, Store};
use omird_tests::cut_disk::{CutDisk, EVERYTHING, ONLY_SYNCED};
use omird_tests::golden_folder::{self, Golden, asked_at, clock_at, lives};
use omird_tests::life::reference;
use omird_tests::session::{Session, TestClock};

fn remember(session: &Session, id: &str, words: &str) {
    try_to_remember(session, id, words).expect("a good disk");
}

fn try_to_remember(session: &Session, id: &str, words: &str) -> io::Result<()> {
    let json = format!(
        r#"{{"resourceType":"MemoryRecord","id":"{id}","content":"{words}","createdAt":"2026-05-31T08:00:00Z"}}"#
    );
    let change = session.prepare(json.as_bytes(), Encoding::Json, None).expect("it is valid");
    session.execute(change).map(drop).map_err(io::Error::other)
}

fn seal(session: &Session) {
    session.seal_now(Duration::from_secs(60)).expect("a good disk");
}

fn key(session: &Session) -> PublicKey {
    hex::decode(session.identity()).expect("a public key")
}

/// Proves it, sends the proof around the world, and verifies it there.
fn proved(session: &Session, target: &Ref) -> String {
    let proof = session.prove(target).unwrap_or_else(|error| panic!("{target}: {error}"));
    let text = proof.to_json().expect("it is a resource");
    holds(&text, key(session), target);
    text
}

fn holds(text: &str, key: PublicKey, target: &Ref) {
    let (proof, _) = judge(text.as_bytes(), &[key]).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(proof.reference().as_ref(), Some(target));
}

fn segment_of(proof: &str) -> u64 {
    Proof::from_json(proof.as_bytes()).expect("a proof").seal.segment
}

#[test]
fn what_is_not_sealed_is_not_proved_and_says_what_to_do() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).expect("it opens");
    let target = reference("MemoryRecord/door");
    let error = session.prove(&target).expect_err("it is not there");
    assert_eq!((error.code, &*error.path), (Code::NotFound, "/ref"));
    remember(&session, "door", "sticks");
    let error = session.prove(&target).expect_err("it is in the log");
    assert_eq!(error.code, Code::Conflict);
    assert!(error.message.contains("omir prove --seal"), "{error}");
    seal(&session);
    let first = proved(&session, &target);

    // A newer version in the log: the older one is not offered in its place, and its proof still holds.
    remember(&session, "door", "is mended");
    assert_eq!(session.prove(&target).expect_err("the newest is in the log").code, Code::Conflict);
    holds(&first, key(&session), &target);
    seal(&session);
    let second = proved(&session, &target);
    assert!(second.contains("is mended") && segment_of(&second) != segment_of(&first));

    session.execute(Change::Forget(vec![target.clone()])).expect("a good disk");
    assert_eq!(session.prove(&target).expect_err("it is forgotten").code, Code::NotFound);
    holds(&second, key(&session), &target);
}

/// Each memory of several segments, before and after they became one.
#[test]
fn a_proof_outlives_the_compaction_of_its_segment() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).expect("it opens");
    let targets: Vec<Ref> = (0..21).map(|n| reference(&format!("MemoryRecord/m{n}"))).collect();
    for (n, target) in targets.iter().enumerate() {
        remember(&session, target.id.as_str(), &format!("memory {n} of many"));
        if n % 7 == 6 {
            seal(&session);
        }
    }
    let before: Vec<String> = targets.iter().map(|target| proved(&session, target)).collect();
    let forgotten = targets[3].clone();
    session.execute(Change::Forget(vec![forgotten.clone()])).expect("a good disk");
    seal(&session);
    clock.advance(Duration::from_secs(60));
    session.compact(CompactionScope::All).expect("a good disk");
    for (target, before) in targets.iter().zip(&before) {
        holds(before, key(&session), target);
        if *target == forgotten {
            assert_eq!(session.prove(target).expect_err("it is gone").code, Code::NotFound);
            continue;
        }
        let after = proved(&session, target);
        assert_ne!(segment_of(before), segment_of(&after), "{target}");
        let entry = |text: &str| Proof::from_json(text.as_bytes()).expect("a proof").entry;
        assert_eq!(entry(before), entry(&after), "{target}: sealed as it was");
    }
    drop(session);
    let session = Session::open(&disk, &clock).expect("it opens");
    assert_eq!(proved(&session, &targets[20]), proved(&session, &targets[20]));
}

/// Whatever is left of a card after a cut, the proof given before holds, and a new one is right or refused.
#[test]
fn a_proof_outlives_power_cuts() {
    let target = reference("MemoryRecord/door");
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).expect("it opens");
    remember(&session, "door", "sticks");
    seal(&session);
    let given = proved(&session, &target);
    let key = key(&session);
    drop(session);
    let (mut proofs, mut cuts) = (0, 0);
    for cut in (1..).step_by(3) {
        let disk = disk.survivors(EVERYTHING);
        disk.cut_at(cut);
        let ended = Session::open(&disk, &clock).and_then(|session| {
            try_to_remember(&session, "hall", "is dark")?;
            session.seal_now(Duration::from_secs(60)).map_err(io::Error::other)?;
            session.compact(CompactionScope::All).map(drop).map_err(io::Error::other)
        });
        let is_whole = ended.is_ok() && !disk.is_off();
        for seed in [ONLY_SYNCED, EVERYTHING, cut] {
            let disk = disk.survivors(seed);
            let session = Session::open(&disk, &clock).expect("it opens");
            let proof = proved(&session, &target);
            holds(&given, key, &target);
            proofs += usize::from(proof != given);
            cuts += 1;
        }
        if is_whole {
            break;
        }
    }
    assert!(proofs > 0 && cuts > 3, "{proofs} new proofs after {cuts} cuts");
}

/// A segment with rot in it proves what its sidecar restores, and nothing if that is lost.
#[test]
fn rot_is_restored_or_nothing_is_proved() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).expect("it opens");
    let target = reference("MemoryRecord/door");
    remember(&session, "door", "sticks");
    remember(&session, "hall", "is dark");
    seal(&session);
    let sound = proved(&session, &target);
    let number = segment_of(&sound);
    let mut whole = 0;
    disk.rot(&segment::path(number), |bytes| {
        whole = bytes[40];
        bytes[40] ^= 4;
    });
    assert_eq!(proved(&session, &target), sound);
    disk.rot(&segment::sidecar_path(number), |bytes| bytes.clear());
    // The daemon may have written the segment back meanwhile, or be about to: it is damaged until that is over.
    let error = (0..100).find_map(|_| {
        disk.rot(&segment::path(number), |bytes| bytes[40] = whole ^ 4);
        session.prove(&target).err()
    });
    let error = error.expect("nobody knows what was signed");
    assert_eq!(error.code, Code::Internal, "{error}");
    assert!(error.message.contains("damaged"), "{error}");
    disk.rot(&segment::path(number), |bytes| bytes[40] = whole);
    disk.rot(&segment::signature_path(number), |bytes| bytes[90] ^= 1);
    assert_eq!(session.prove(&target).expect_err("no seal").code, Code::Internal);
}

fn golden(set: &str, name: &str) -> (tempfile::TempDir, Golden) {
    let folder = tempfile::tempdir().expect("a folder");
    let golden = Golden { set: set.to_owned(), name: name.to_owned() };
    golden.unpack(folder.path()).expect("it is unpacked");
    (folder, golden)
}

/// Of a folder without a daemon.
fn of_folder(data: &Path, target: &Ref) -> Result<Proof, NoProof> {
    let store = Store::open(data, SystemClock::default().now()).expect("a data folder");
    let history = store.history(&mut |_| {}).expect("it is read");
    store.prove(&history, target)
}

#[test]
fn golden_proofs_hold_and_are_made_again_to_the_byte() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden_proofs");
    let key = fs::read_to_string(folder.join("device.pub")).expect("the key");
    let key = hex::decode(key.trim()).expect("a public key");
    for (name, target) in
        [("segments", "MemoryRecord/unicode"), ("compacted", "MemoryRecord/first")]
    {
        let kept = fs::read_to_string(folder.join(format!("{name}.json"))).expect("the proof");
        holds(&kept, key, &reference(target));
        let (data, _) = golden("03-fewer-facts", name);
        let made = of_folder(data.path(), &reference(target)).expect("it is sealed");
        assert_eq!(Proof::from_json(kept.as_bytes()), Ok(made), "{name}");
        for at in 0..kept.len() {
            let mut turned = kept.clone().into_bytes();
            turned[at] ^= 1 << (at % 8);
            assert!(judge(&turned, &[key]).is_err(), "{name}: byte {at}");
        }
    }
}

/// A folder without a daemon says the same as the daemon would, and why there is no proof.
#[test]
fn a_folder_proves_what_it_has_sealed() {
    let (data, _) = golden("03-fewer-facts", "log");
    let proof = of_folder(data.path(), &reference("MemoryRecord/first")).expect("it is sealed");
    assert!(proof.verify(&proof.seal.public_key).is_ok());
    let refused = |target: &str| of_folder(data.path(), &reference(target)).expect_err(target);
    assert!(matches!(refused("MemoryRecord/watch-1"), NoProof::Unsealed { .. }));
    assert!(matches!(refused("MemoryRecord/none"), NoProof::Nothing(_)));
}

/// Seals of older releases sign no root: that is said, and a compaction makes one that does.
#[test]
fn a_segment_of_an_older_release_is_proved_once_it_is_compacted() {
    let (data, kept) = golden("01-plain", "segments");
    let target = reference("MemoryRecord/first");
    let none = of_folder(data.path(), &target).expect_err("there is no root");
    assert!(none.to_string().contains("omir compact --all"), "{none}");
    let answers = fs::read_to_string(kept.answers()).expect("the answers");
    let clock = clock_at(asked_at(&answers));
    let session = golden_folder::open(data.path(), &clock, lives::settings()).expect("it opens");
    let error = session.prove(&target).expect_err("there is no root");
    assert_eq!(error.code, Code::Conflict);
    assert!(error.message.contains("omir compact --all"), "{error}");
    session.compact(CompactionScope::All).expect("a good disk");
    proved(&session, &target);
}

/// What the seal with a root costs, beside one without: less than a hundredth of an ordinary segment, and nothing in it.
#[test]
fn the_root_takes_less_than_a_hundredth_of_a_segment() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    // Those of a robot; of a test, segments are tiny.
    let (card, settings) = (Arc::new(disk.clone()), Settings::default());
    let session = Session::open_with(card, &clock, settings, None).expect("it opens");
    for n in 0..200 {
        remember(&session, &format!("m{n}"), &format!("door {n} of the long corridor sticks"));
    }
    seal(&session);
    let proof = session.prove(&reference("MemoryRecord/m7")).expect("it is sealed");
    let mut plain = proof.seal.clone();
    plain.contents.root = None;
    let more = proof.seal.to_json().len() - plain.to_json().len();
    let (bytes, number) = (proof.seal.contents.bytes, proof.seal.segment);
    assert_eq!(disk.bytes(&segment::path(number)).len() as u64, bytes);
    println!("{more} bytes more in the signature of a segment of {bytes}");
    assert!(more as u64 * 100 < bytes, "{more} of {bytes}");
    assert_eq!(proof.verify(&[0; 32]), Err(ProofFault::OtherKey { found: key(&session) }));
}
