//! Everything that is wrong with a store, by name.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;

use super::finding::{Finding, Kind, Severity, Verdict};
use super::history::{FileRow, History, State};
use super::{FileKind, Progress, SET_ASIDE, Source, Store, assembly};
use crate::backup::{INFO, Info};
use crate::digest::{Digest, hex};
use crate::log::{wal, witness};
use crate::segment;
use crate::signing::device_key;
use crate::signing::signature::{Contents, DeviceKey, Seal};

/// The outcome of a check.
#[derive(Debug, Clone)]
pub struct Report {
    /// Everything that can be read.
    pub history: History,
    /// Everything that was found, in the order of files and bytes.
    pub findings: Vec<Finding>,
    /// Live resources.
    pub live: u64,
    /// Versions, live and not.
    pub versions: u64,
    /// Tombstones.
    pub tombstones: u64,
}

impl Report {
    /// The verdict on the findings.
    pub fn verdict(&self) -> Verdict {
        Verdict::of(&self.findings)
    }
}

/// Checks a store: every file, every signature, and that nothing lacks between them.
///
/// # Errors
/// If a file may not be read at all (permission). What is damaged is no error but a finding.
pub fn check(store: &Store, progress: &mut dyn FnMut(Progress)) -> io::Result<Report> {
    let mut history = assembly::read(store, true, progress)?;
    let mut findings = std::mem::take(&mut history.findings);
    check_signatures(store, &history, &mut findings);
    if store.is_folder {
        match backup_of(store).or_else(|| restored(store)) {
            Some(finding) => findings.push(finding),
            None => {
                check_key(store, &mut findings);
                check_lacking(store, &mut findings);
            }
        }
        check_strangers(store, &mut findings)?;
    }
    findings.sort_by(|a, b| {
        (&a.file, a.offset, a.kind, &a.pointer).cmp(&(&b.file, b.offset, b.kind, &b.pointer))
    });
    let live = history.rows().iter().filter(|row| row.state == State::Live).count() as u64;
    let (versions, tombstones, _) = history.counts();
    Ok(Report { history, findings, live, versions, tombstones })
}

/// That the folder is a backup, which has neither secret key nor log nor index.
fn backup_of(store: &Store) -> Option<Finding> {
    if !store.root.join(INFO).exists() {
        return None;
    }
    let message = match Info::read(&*store.disk) {
        Ok(Some(Info { robot, finished: Some(at), last_seq, .. })) => {
            format!("this is a backup of {robot} of {at}, up to transaction {last_seq}")
        }
        Ok(Some(Info { robot, finished: None, .. })) => {
            format!("this is a backup of {robot} whose first run has not ended; run it again")
        }
        Ok(None) | Err(_) => "this is a backup, and this file cannot be read".to_owned(),
    };
    Some(Finding::new(Kind::Backup, INFO, message))
}

/// That the folder was restored, and no daemon has had it yet: it has no secret key and no log.
fn restored(store: &Store) -> Option<Finding> {
    let has = |path: &str| store.root.join(path).exists();
    if !has(device_key::FORMER) || has("keys/device.key") || has(wal::DIR) {
        return None;
    }
    let message = "restored from a backup and not started yet; the first start makes a device key and \
                   goes on with the chain of signatures";
    Some(Finding::new(Kind::Restored, device_key::FORMER, message))
}

/// The public half of the device key as the folder states it.
fn public_key(store: &Store) -> Option<String> {
    let text = fs::read_to_string(store.root.join("keys/device.pub")).ok()?;
    Some(text.trim().to_owned())
}

fn check_signatures(store: &Store, history: &History, findings: &mut Vec<Finding>) {
    let public = store.is_folder.then(|| public_key(store)).flatten();
    let former = fs::read(store.root.join(device_key::FORMER)).unwrap_or_default();
    let former = String::from_utf8_lossy(&former);
    let former: HashSet<String> = match store.is_folder {
        true => device_key::public_keys(&former).collect(),
        false => HashSet::new(),
    };
    let mut segments: Vec<(u64, &FileRow)> = history
        .files
        .iter()
        .filter_map(|row| match row.source.kind {
            FileKind::Segment(number) => Some((number, row)),
            FileKind::Log(_) => None,
        })
        .collect();
    sort_by_transactions(&mut segments);
    let mut before: Vec<Digest> = vec![Digest::default()];
    let mut signed_by: Option<String> = None;
    let mut next = (1, 1);
    for (number, row) in segments {
        // A start removes it: of a compaction that was cut short only one side counts.
        if !row.is_needed && (!row.replaces.is_empty() || is_replaced(history, number)) {
            continue;
        }
        let path = &row.source.path;
        let begins = row.transactions.map(|(first, _)| first);
        let is_adjacent = number == next.0 || begins == Some(next.1);
        let ends = row.transactions.map_or(u64::MAX, |(_, last)| last);
        next = (number.saturating_add(1), ends.saturating_add(1));
        // A file whose contents are held elsewhere will be sealed again; one that was set aside is judged as such.
        let is_judged = row.is_needed && !row.source.is_set_aside;
        let add = |findings: &mut Vec<Finding>, kind: Kind, message: &str| {
            if is_judged {
                findings.push(Finding::new(kind, path, message));
            }
        };
        match &row.seal {
            None if row.seal_is_unreadable => {
                add(findings, Kind::SignatureUnreadable, "its signature file is unreadable");
            }
            None => add(findings, Kind::SignatureMissing, "it has no signature"),
            Some(seal) => {
                let segment = number;
                let number = store.is_folder.then_some(number);
                if let Some((kind, message)) = judge(seal, row, number, public.as_deref()) {
                    // That an unreadable segment is not what was signed goes without saying.
                    if row.is_readable || kind != Kind::DigestDiffers {
                        add(findings, kind, message);
                    }
                }
                let signer = hex(&seal.public_key);
                if seal.is_authentic() && former.contains(&signer) {
                    let message = "it was signed by a former key, noted in keys/former.pub";
                    add(findings, Kind::FormerKey, message);
                } else if seal.is_authentic() && public.as_ref().is_some_and(|own| *own != signer) {
                    let message = "it was signed by another key than keys/device.pub";
                    add(findings, Kind::ForeignKey, message);
                }
                if seal.is_authentic() {
                    if signed_by.as_ref().is_some_and(|before| *before != signer) {
                        let message = format!("a new device key begins with segment {segment}");
                        add(findings, Kind::KeyChanged, &message);
                    }
                    signed_by = Some(signer);
                }
                let follows = before.contains(&seal.previous);
                if store.is_folder && is_adjacent && seal.is_authentic() && !follows {
                    let message = "it was not signed as the successor of the segment before it";
                    add(findings, Kind::ChainBroken, message);
                }
            }
        }
        // A segment follows the one before it as that was signed, or, where a start had to do
        // without that one, the last one that could be read.
        if row.is_readable && !row.source.is_set_aside {
            before = vec![row.digest];
        }
        before.extend(row.seal.as_ref().map(Seal::link));
    }
}

/// By their first transactions: a compacted segment has a higher number than what comes after it. One
/// of which they are not known stays behind the one its number follows.
fn sort_by_transactions(segments: &mut Vec<(u64, &FileRow)>) {
    let mut begins = 0;
    let mut keyed: Vec<(u64, (u64, &FileRow))> = Vec::with_capacity(segments.len());
    for segment in segments.drain(..) {
        begins = segment.1.transactions.map_or(begins, |(first, _)| first);
        keyed.push((begins, segment));
    }
    keyed.sort_by_key(|(begins, _)| *begins);
    segments.extend(keyed.into_iter().map(|(_, segment)| segment));
}

/// Returns true if a compacted segment took its place.
fn is_replaced(history: &History, number: u64) -> bool {
    history.files.iter().any(|row| row.is_needed && row.replaces.contains(&number))
}

/// Decides whether a seal is right about its segment, and if not, which of the two changed.
fn judge(
    seal: &Seal,
    row: &FileRow,
    number: Option<u64>,
    public: Option<&str>,
) -> Option<(Kind, &'static str)> {
    if number.is_some_and(|number| number != seal.segment) {
        return Some((Kind::SignatureBad, "its signature file is that of another segment"));
    }
    let is_of_these_bytes = seal.contents.sha256 == row.digest && seal.contents.bytes == row.bytes;
    if seal.is_authentic() {
        let message = "its bytes are not the ones that were signed";
        return (!is_of_these_bytes).then_some((Kind::DigestDiffers, message));
    }
    let bad = (Kind::SignatureBad, "its signature does not verify");
    if is_of_these_bytes {
        return Some(bad);
    }
    // If the signature holds for the bytes as they are, it is the file beside them that changed.
    let contents = Contents { sha256: row.digest, bytes: row.bytes, ..seal.contents };
    let mut restored = Seal { contents, ..seal.clone() };
    if !restored.is_authentic()
        && let Some(public) = public.and_then(crate::digest::unhex)
    {
        restored.public_key = public;
    }
    let message = "neither its bytes nor its signature are what was written";
    Some(if restored.is_authentic() { bad } else { (Kind::DigestDiffers, message) })
}

fn check_key(store: &Store, findings: &mut Vec<Finding>) {
    const PATH: &str = "keys/device.key";
    let mut add = |kind, message: String| findings.push(Finding::new(kind, PATH, message));
    match device_key::secret_of(&store.root) {
        Ok(secret) => {
            let own = DeviceKey::from_secret(secret).public_hex();
            match public_key(store) {
                Some(public) if public == own => {}
                Some(_) => {
                    add(Kind::KeyMismatch, "keys/device.pub is not its public half".to_owned());
                }
                None => add(Kind::KeyMismatch, "keys/device.pub is missing".to_owned()),
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let message = "the device key is missing; a start makes a new one and begins another \
                           chain of signatures";
            add(Kind::KeyMissing, message.to_owned());
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let message = "not looked at: it belongs to another user".to_owned();
            let finding = Finding::new(Kind::KeyUnreadable, PATH, message);
            findings.push(finding.with_severity(Severity::Info));
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            let message = "it is no device key (64 hex digits); the next start repairs it, or makes a new one and keeps this";
            add(Kind::KeyUnreadable, message.to_owned());
        }
        Err(error) => add(Kind::KeyUnreadable, format!("it cannot be read: {error}")),
    }
}

/// Files in the folders of the store that are neither segment nor log.
fn check_strangers(store: &Store, findings: &mut Vec<Finding>) -> io::Result<()> {
    for dir in [segment::DIR, wal::DIR, "keys"] {
        let names = store.names(dir)?;
        let numbers: HashMap<String, ()> = store
            .sources
            .iter()
            .filter_map(|source| store.signature_path(source))
            .map(|path| (path, ()))
            .collect();
        for name in names {
            let path = format!("{dir}/{name}");
            let is_key = dir == "keys"
                && ["device.key", "device.pub", "former.pub"].contains(&name.as_str());
            let sidecar = path.strip_suffix(".par").map(|stem| format!("{stem}.sig"));
            let is_witness = dir == wal::DIR
                && witness::number_of(&name).is_some_and(|number| {
                    store.sources.iter().any(|source| source.kind == FileKind::Log(number))
                });
            let is_known = is_witness
                || sidecar.is_some_and(|path| numbers.contains_key(&path))
                || Source::of(dir, &name).is_some_and(|_| dir != "keys")
                || numbers.contains_key(&path)
                || is_key;
            if is_known {
                continue;
            }
            let plain = name.strip_suffix(SET_ASIDE).unwrap_or(&name);
            let (kind, message) = if name.ends_with(".tmp") {
                (Kind::Temporary, "was being written when the power went; it means nothing")
            } else if dir == segment::DIR && plain.ends_with(".par") {
                (Kind::LeftoverSignature, "a sidecar without its segment")
            } else if dir == wal::DIR && plain.ends_with(".facts") {
                (
                    Kind::LeftoverWitness,
                    "a witness without its log: the next start hears it if the log was lost, or else removes it",
                )
            } else if dir == segment::DIR && plain.ends_with(".sig") {
                (Kind::LeftoverSignature, "a signature without its segment")
            } else if name != plain {
                (
                    Kind::SetAside,
                    "set aside as damaged; nothing else needs it, and it may be moved away",
                )
            } else {
                (Kind::Stranger, "does not belong here and is ignored")
            };
            let finding = Finding::new(kind, &path, message);
            findings.push(match kind {
                Kind::SetAside => finding.with_severity(Severity::Info),
                _ => finding,
            });
        }
    }
    Ok(())
}

/// Files that a daemon always leaves behind.
fn check_lacking(store: &Store, findings: &mut Vec<Finding>) {
    let has = |kind: fn(&FileKind) -> bool| store.sources.iter().any(|s| kind(&s.kind));
    let is_log = |kind: &FileKind| matches!(kind, FileKind::Log(_));
    if !has(is_log) && has(|kind| matches!(kind, FileKind::Segment(_))) {
        let message = "there is no log, though a daemon always leaves one behind; what was \
                       acknowledged and not yet sealed, if anything, is lost";
        findings.push(Finding::new(Kind::LogMissing, wal::DIR, message));
    }
    if !store.root.join("index").exists() {
        let message = "there is no index; the next start of the daemon rebuilds it";
        findings.push(Finding::new(Kind::IndexMissing, "index", message));
    }
}
