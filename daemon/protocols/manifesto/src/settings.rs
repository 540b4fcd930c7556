//! Settings of the protocol.

/// `[manifesto]`, resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManifestoSettings {
    /// Verified memories come before others in a selection.
    pub prefer_verified: bool,
}

impl Default for ManifestoSettings {
    fn default() -> Self {
        Self { prefer_verified: true }
    }
}
