//! The 39 items of the checklist, with its numbers.
//!
//! What the draft leaves open is asked in the form of docs/akashik.md. An endpoint that refuses that form is undecided there, unless it
//! says that it does not offer the operation.

mod level0;
mod level1;
mod level2;
mod level3;

use super::probe::{Checked, Probe};

/// An item.
pub(super) struct Item {
    pub(super) number: &'static str,
    pub(super) level: u8,
    pub(super) title: &'static str,
    pub(super) check: fn(&mut Probe) -> Checked,
}

macro_rules! items {
    ($($number:literal $level:literal $check:path => $title:literal;)+) => {
        pub(super) static ITEMS: &[Item] =
            &[$(Item { number: $number, level: $level, title: $title, check: $check }),+];
    };
}

items! {
    "L0-1" 0 level0::register => "REGISTER with id and role";
    "L0-2" 0 level0::record => "RECORD in draft and committed";
    "L0-3" 0 level0::intent => "intent.purpose present and not empty, on drafts too";
    "L0-4" 0 level0::missing_intent => "absent intent is MISSING_INTENT";
    "L0-5" 0 level0::generated => "id, epoch, source and status are generated";
    "L0-6" 0 level0::attune => "ATTUNE with role and max_units";
    "L0-7" 0 level0::sorted => "results scored and sorted";
    "L0-8" 0 level0::own => "the caller's own units left out";
    "L0-9" 0 level0::replaced => "retracted and superseded units left out";
    "L0-10" 0 level0::reasons => "relevance_score and relevance_reason on each result";
    "L0-11" 0 level0::envelope => "the standard envelope";
    "L1-1" 1 level1::durable => "units survive a restart";
    "L1-2" 1 level1::log => "an append-only log of operations";
    "L1-3" 1 level1::clock => "a Lamport clock";
    "L1-4" 1 level1::confidence => "confidence required on committed RECORD";
    "L1-5" 1 level1::deregister => "DEREGISTER";
    "L1-6" 1 level1::detect_list => "DETECT list";
    "L1-7" 1 level1::contradicts => "a Conflict for each contradicts relation";
    "L1-8" 1 level1::since => "ATTUNE since_epoch";
    "L1-9" 1 level1::unresolved => "unresolved conflicts in ATTUNE";
    "L1-10" 1 level1::capabilities => "REGISTER returns field_capabilities";
    "L2-1" 2 level2::meaning => "embeddings of content";
    "L2-2" 2 level2::meaning => "semantic scoring in ATTUNE";
    "L2-3" 2 level2::scope => "the extended scope";
    "L2-4" 2 level2::budget => "a budget of tokens";
    "L2-5" 2 level2::detect => "DETECT check, scan and list, and one automatic method";
    "L2-6" 2 level2::merge => "MERGE by three strategies";
    "L2-7" 2 level2::push => "SUBSCRIBE with push";
    "L2-8" 2 level2::handoff => "HANDOFF with a context package";
    "L2-9" 2 level2::replay => "REPLAY at three depths";
    "L2-10" 2 level2::archive => "COMPACT archive";
    "L3-1" 3 level3::coordination => "COORDINATE and SESSION";
    "L3-2" 3 level3::tasks => "the task state machine";
    "L3-3" 3 level3::strategies => "MERGE by seven strategies";
    "L3-4" 3 level3::authenticated => "agents are authenticated";
    "L3-5" 3 level3::authority => "the authority hierarchy";
    "L3-6" 3 level3::visibility => "session scoping and role filtering";
    "L3-7" 3 level3::compact => "COMPACT archive, summarize and purge";
    "L3-8" 3 level3::transports => "two transport bindings";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checklist_has_39_items() {
        let of = |level: u8| ITEMS.iter().filter(|item| item.level == level).count();
        assert_eq!([of(0), of(1), of(2), of(3)], [11, 10, 10, 8]);
        for (at, item) in ITEMS.iter().enumerate() {
            assert!(item.number.starts_with(&format!("L{}-", item.level)));
            assert!(ITEMS[..at].iter().all(|other| other.number != item.number));
        }
    }
}
