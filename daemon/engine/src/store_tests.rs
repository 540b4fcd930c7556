//! The store on folders that a real engine filled.

mod inspect;
mod moved;
mod recovery;
