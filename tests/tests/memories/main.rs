//! What is written and what is answered, whichever way it came.

mod exact_recall;
mod hand_over;
mod merge;
mod preconditions;
mod producers;
mod rebase;
mod recall_sets;
mod rules_rebase;
mod whereabouts;
