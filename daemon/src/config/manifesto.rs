//! `[manifesto]`: Manifesto Memory.

use serde::Deserialize;

use crate::protocols::manifesto::ManifestoSettings;

/// `[manifesto]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ManifestoSection {
    /// Verified memories come first in a selection.
    pub prefer_verified: Option<bool>,
}

/// Fills in what the section leaves out.
pub fn resolve(written: &ManifestoSection) -> ManifestoSettings {
    let default = ManifestoSettings::default();
    ManifestoSettings {
        prefer_verified: written.prefer_verified.unwrap_or(default.prefer_verified),
    }
}
