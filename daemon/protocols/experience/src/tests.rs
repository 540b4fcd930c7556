//! The protocol over a real engine on a temporary folder.

mod bounds;
mod hints;
mod privacy;
mod records;
mod schemas;
