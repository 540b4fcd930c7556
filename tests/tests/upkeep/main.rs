//! Sealing, compaction, backups and folders of other releases: what is rewritten says what it said before.

mod backup;
mod compaction;
mod forgotten_names;
mod golden_folders;
mod many_segments;
mod proofs;
mod purging;
mod sealing;
mod snapshot;
mod upgrade;
