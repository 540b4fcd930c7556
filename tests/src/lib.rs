//! What the end-to-end tests of omird stand on: the real daemon as a process, and plain clients.

pub mod process;
