//! The store on folders that a real engine filled.

mod explained;
mod inspect;
mod lost_names;
mod moved;
mod nameless;
mod recovery;
