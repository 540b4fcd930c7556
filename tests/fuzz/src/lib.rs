//! Rules of every decoder of omird, on any bytes.
//!
//! Each target is one function over bytes. It asks more than "does not panic": what was accepted is
//! compared with an independent decoder, with a second way to the same answer, or with what it was
//! made from. A target panics if that does not hold.
//!
//! `cargo test` replays the saved corpus and small changes of it (`tests/replay.rs`); the programs in
//! `fuzz_targets/` hand the same functions to libFuzzer. `README.md` tells how to run them for long.

pub mod core;
#[cfg(feature = "daemon")]
pub mod daemon;
#[cfg(feature = "daemon")]
pub mod ros2;
pub mod support;

/// One decoder and what must hold for it.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name: of the program in `fuzz_targets/` and of the folder in `corpus/`.
    pub name: &'static str,
    /// Panics if something does not hold.
    pub run: fn(&[u8]),
}

const fn target(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, run }
}

/// The decoders of the core, text work and embeddings.
pub const CORE: &[Target] = &[
    target("cbor", core::cbor::run),
    target("document", core::document::run),
    target("embedding", core::embedding::run),
    target("instant", core::instant::run),
    target("json", core::json::run),
    target("link", core::link::run),
    target("link_message", core::link_message::run),
    target("manifesto", core::manifesto::run),
    target("number", core::number::run),
    target("pose", core::pose::run),
    target("profile", core::profile::run),
    target("proof", core::proof::run),
    target("reference", core::reference::run),
    target("stream", core::stream::run),
    target("text", core::text::run),
    target("uri", core::uri::run),
    target("value", core::value::run),
];

/// The decoders of the daemon and the tool, those for ROS 2 too.
#[cfg(feature = "daemon")]
pub const DAEMON: &[Target] = &[
    target("block", daemon::block::run),
    target("config", daemon::config::run),
    target("interface", ros2::interface::run),
    target("log", daemon::log::run),
    target("manifest", daemon::manifest::run),
    target("message", ros2::message::run),
    target("parameters", daemon::parameters::run),
    target("recording", ros2::recording::run),
    target("request", daemon::request::run),
    target("segment", daemon::segment::run),
    target("sidecar", daemon::sidecar::run),
    target("signature", daemon::signature::run),
    target("store", daemon::store::run),
    target("time_range", daemon::time_range::run),
    target("token", daemon::token::run),
    target("trajectory", daemon::trajectory::run),
    target("transaction", daemon::transaction::run),
    target("witness", daemon::witness::run),
];
