//! The protocol over a real engine on a temporary folder.

mod hints;
mod privacy;
mod records;
mod schemas;
