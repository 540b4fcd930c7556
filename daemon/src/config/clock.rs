//! `[clock]`: where the time comes from.

use std::path::PathBuf;

use serde::Deserialize;

use super::Invalid;
use crate::engine::{SYNCHRONISED_FILE, Source};

/// `[clock]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClockSection {
    /// `system` or `simulated`.
    pub source: Option<String>,
    /// While this file is there, the system's clock is synchronised.
    pub synchronised_file: Option<PathBuf>,
}

/// Checks the section. Returns the source of the time, and the file that says that the system's clock is synchronised.
pub fn resolve(written: ClockSection) -> Result<(Source, PathBuf), Invalid> {
    let source = match written.source.as_deref() {
        None | Some("system") => Source::System,
        Some("simulated") => Source::Simulated,
        Some(other) => {
            return Err(Invalid::none_of("clock.source", other, &["system", "simulated"]));
        }
    };
    let file = written.synchronised_file.unwrap_or_else(|| SYNCHRONISED_FILE.into());
    if !file.is_absolute() {
        let message = format!("{:?} is no absolute path", file.display());
        return Err(Invalid::other("clock.synchronised_file", message));
    }
    Ok((source, file))
}
