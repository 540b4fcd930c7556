//! Judges if the segments of a backup make one unbroken history. Pure.

use std::cmp::Reverse;

use super::Fault;
use super::pins::Pins;
use super::stored_segment::StoredSegment;
use crate::digest::hex;
use crate::segment;
use crate::signing::signature::chain_breaks;

/// The judgement on the segments of a backup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgement {
    /// The segments that make the history, in its order.
    pub order: Vec<u64>,
    /// Those whose transactions are all in one of the others: what a compaction replaced.
    pub covered: Vec<u64>,
    /// Those that are not what one of the robot's keys signed, and why.
    pub unsound: Vec<(u64, Fault)>,
    /// Breaks in the chain of signatures.
    pub breaks: Vec<Fault>,
    /// The last transaction.
    pub last_seq: u64,
}

impl Judgement {
    /// Everything that is wrong. Where a segment is unsound the chain breaks behind it, which goes
    /// without saying.
    pub fn faults(&self) -> Vec<Fault> {
        match self.unsound.is_empty() {
            true => self.breaks.clone(),
            false => self.unsound.iter().map(|(_, fault)| fault.clone()).collect(),
        }
    }
}

/// Judges segments by the keys that are accepted.
pub fn judge<'a>(held: impl IntoIterator<Item = &'a StoredSegment>, pins: &Pins) -> Judgement {
    let mut judgement = Judgement::default();
    let mut sound = Vec::new();
    for held in held {
        let fault = match (&held.state, &held.seal) {
            (Ok(span), Some(seal)) if pins.accepts(&hex(&seal.public_key)) => {
                sound.push((*span, held.segment, seal));
                continue;
            }
            (Err(fault), _) => fault.to_string(),
            (Ok(_), seal) => {
                let key = seal.as_ref().map(|seal| hex(&seal.public_key)).unwrap_or_default();
                format!("it was signed by the key {key}, which is none of this robot's")
            }
        };
        let fault = Fault { file: segment::path(held.segment), message: fault };
        judgement.unsound.push((held.segment, fault));
    }
    // A segment comes before those that it covers; of two that cover the same the later one counts.
    sound.sort_by_key(|(span, number, _)| (span.first_seq, Reverse((span.last_seq, *number))));
    let mut chain = Vec::new();
    for (span, number, seal) in sound {
        if span.last_seq <= judgement.last_seq && !judgement.order.is_empty() {
            judgement.covered.push(number);
            continue;
        }
        judgement.last_seq = span.last_seq;
        judgement.order.push(number);
        chain.push(seal);
    }
    for position in chain_breaks(chain) {
        let number = judgement.order[position];
        let message = match position.checked_sub(1).map(|before| judgement.order[before]) {
            None => "it is not the first of the history: what came before is missing".to_owned(),
            Some(before) => format!(
                "it was not signed as the successor of segment {before}: a segment between them is \
                 missing, or one of the two is of another history"
            ),
        };
        judgement.breaks.push(Fault { file: segment::path(number), message });
    }
    judgement
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;
    use crate::files::SeqRange;
    use crate::signing::signature::{Contents, DeviceKey, Seal};

    fn key() -> DeviceKey {
        DeviceKey::from_secret([7; 32])
    }

    fn pins() -> Pins {
        Pins::default().with(&key().public_hex(), [])
    }

    fn contents(sha256: Digest) -> Contents {
        Contents { bytes: 5, sha256, root: None }
    }

    fn held(seal: Seal, first_seq: u64, last_seq: u64) -> StoredSegment {
        let state = Ok(SeqRange { first_seq, last_seq });
        StoredSegment { segment: seal.segment, bytes: seal.contents.bytes, seal: Some(seal), state }
    }

    /// Five segments of two transactions each.
    fn history() -> Vec<StoredSegment> {
        let mut previous = Digest::default();
        let seals = (1..=5u8).map(|n| {
            let seal = key().sign(u64::from(n), &contents([n; 32]), previous, None);
            previous = seal.link();
            held(seal, 2 * u64::from(n) - 1, 2 * u64::from(n))
        });
        seals.collect()
    }

    fn compacted(run: &[StoredSegment], number: u64) -> StoredSegment {
        let (first, last) = (&run[0], &run[run.len() - 1]);
        let (from, to) = (first.seal.as_ref().unwrap(), last.seal.as_ref().unwrap());
        let digest = [u8::try_from(number).unwrap(); 32];
        let seal = key().sign(number, &contents(digest), from.previous, Some(to.link()));
        held(seal, first.span().unwrap().first_seq, last.span().unwrap().last_seq)
    }

    #[test]
    fn a_whole_history_has_no_fault_whatever_was_compacted() {
        let history = history();
        let judgement = judge(&history, &pins());
        assert_eq!((judgement.order.as_slice(), judgement.last_seq), (&[1, 2, 3, 4, 5][..], 10));
        assert_eq!(judgement.faults(), []);

        // Both generations lie there after a run that was cut short.
        let mut both = history.clone();
        both.push(compacted(&history[1..4], 6));
        let again = compacted(&[both[5].clone()], 7);
        both.push(again);
        let judgement = judge(&both, &pins());
        assert_eq!(judgement.order, [1, 7, 5]);
        assert_eq!(judgement.covered, [6, 2, 3, 4]);
        assert_eq!(judgement.faults(), []);
    }

    #[test]
    fn what_is_missing_or_moved_is_named() {
        for lacking in 0..4 {
            let mut history = history();
            history.remove(lacking);
            let judgement = judge(&history, &pins());
            let files: Vec<String> = judgement.faults().into_iter().map(|f| f.file).collect();
            assert_eq!(files, [segment::path(lacking as u64 + 2)]);
        }
        let mut swapped = history();
        let span = swapped[1].state.clone();
        swapped[1].state = swapped[2].state.clone();
        swapped[2].state = span;
        assert_eq!(judge(&swapped, &pins()).faults().len(), 3);
    }

    #[test]
    fn a_strangers_signature_does_not_count_until_it_is_accepted() {
        let mut history = history();
        let last = history[3].seal.as_ref().unwrap().link();
        let stranger = DeviceKey::from_secret([8; 32]);
        history[4] = held(stranger.sign(5, &contents([5; 32]), last, None), 9, 10);
        let faults = judge(&history, &pins()).faults();
        assert_eq!(faults.len(), 1);
        assert!(faults[0].message.contains(&stranger.public_hex()), "{}", faults[0]);
        let both = pins().with(&stranger.public_hex(), []);
        assert_eq!(judge(&history, &both).faults(), []);
    }
}
