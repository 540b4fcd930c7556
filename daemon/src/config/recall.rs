//! `[recall]`: recall by words.

use serde::Deserialize;

use super::Invalid;
use crate::engine::Language;

/// `[recall]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecallSection {
    /// The language of words, by its code of ISO 639-1.
    pub language: Option<String>,
}

/// Returns the language of words.
pub fn resolve(written: &RecallSection) -> Result<Language, Invalid> {
    let code = written.language.as_deref();
    let read = code.map_or(Ok(Language::default()), str::parse);
    read.map_err(|why| {
        let code = code.unwrap_or_default();
        Invalid::other("recall.language", format!("{code:?}: {why}"))
    })
}
