//! Witnesses of logs, and lists of facts: what is read is written the same, and damage to one record costs no other.

use omird::store::format::witness::{decode, encode, read};

/// Reads bytes as the witness of a log, and as a list of facts.
pub fn run(bytes: &[u8]) {
    if let Some(facts) = decode(bytes) {
        assert_eq!(decode(&encode(&facts)).as_ref(), Some(&facts));
    }
    let log = u64::from(bytes.get(8).copied().unwrap_or(0));
    let found = read(bytes, log);
    let newest = found.facts.iter().map(|fact| fact.stamp.seq).max();
    assert!(found.last_seq >= newest.unwrap_or(0));
    if found.is_whole {
        assert_eq!(found.len, bytes.len() as u64);
        // A witness cut short by a power cut says less, and nothing else.
        let cut = read(&bytes[..bytes.len() - bytes.len() / 3], log);
        assert!(cut.end <= found.end && found.facts.starts_with(&cut.facts));
    }
}
