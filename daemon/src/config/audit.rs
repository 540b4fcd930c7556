//! `[audit]`: the file that audit lines are written to.

use std::path::PathBuf;

use serde::Deserialize;

use super::{Invalid, quantity, within};
use crate::audit::AuditSettings;

/// `[audit]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuditSection {
    /// The file.
    pub file: Option<PathBuf>,
    /// Bytes after which another file begins.
    #[serde(deserialize_with = "quantity::bytes")]
    pub max_bytes: Option<u64>,
    /// Older files that are kept.
    pub keep: Option<u32>,
}

/// Checks the section and fills in what it leaves out.
pub fn resolve(written: AuditSection) -> Result<AuditSettings, Invalid> {
    let default = AuditSettings::default();
    if let Some(file) = &written.file
        && (!file.is_absolute() || file.file_name().is_none())
    {
        let message =
            format!("{file:?} is no absolute path such as \"/var/log/omird/audit.jsonl\"");
        return Err(Invalid::other("audit.file", message));
    }
    Ok(AuditSettings {
        file: written.file,
        max_bytes: within(
            "audit.max_bytes",
            written.max_bytes,
            default.max_bytes,
            16 << 10..=1 << 30,
        )?,
        keep: within("audit.keep", written.keep, default.keep, 0..=100)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<AuditSettings, Invalid> {
        let file: super::super::file::File = toml::from_str(text).unwrap();
        resolve(file.audit)
    }

    #[test]
    fn a_file_needs_only_its_name() {
        assert_eq!(read(""), Ok(AuditSettings::default()));
        let settings = read("[audit]\nfile = '/var/log/omird/a'\nmax_bytes = '64KiB'\nkeep = 0");
        let file = Some("/var/log/omird/a".into());
        assert_eq!(settings, Ok(AuditSettings { file, max_bytes: 65_536, keep: 0 }));
    }

    #[test]
    fn complaints_name_the_key() {
        for (text, complaint) in [
            ("file = 'audit.jsonl'", "audit.file: \"audit.jsonl\" is no absolute path"),
            ("file = '/'", "audit.file: \"/\" is no absolute path"),
            ("max_bytes = 100", "audit.max_bytes: 100 is not between 16384 and"),
            ("keep = 101", "audit.keep: 101 is not between 0 and 100"),
        ] {
            let error = read(&format!("[audit]\n{text}")).unwrap_err().to_string();
            assert!(error.starts_with(complaint), "{error}");
        }
    }
}
