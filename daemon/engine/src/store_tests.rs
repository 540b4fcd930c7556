//! What the store does with folders that a real engine filled.

mod inspect;
mod recovery;
