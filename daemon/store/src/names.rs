//! Names of the files in a data folder.

/// The folder of the segments.
pub const SEGMENTS: &str = "segments";

/// The folder of the logs.
pub const LOGS: &str = "wal";

/// Folders whose files hold memories.
pub const MEMORY_DIRS: [&str; 2] = [SEGMENTS, LOGS];

/// The path of a segment.
pub fn segment_path(number: u64) -> String {
    format!("{SEGMENTS}/{number:010}.omirb")
}

/// The path of a segment's signature.
pub fn signature_path(number: u64) -> String {
    format!("{SEGMENTS}/{number:010}.sig")
}

/// The path of the sidecar that mends a segment.
pub fn sidecar_path(number: u64) -> String {
    format!("{SEGMENTS}/{number:010}.par")
}

/// The path of a log.
pub fn log_path(number: u64) -> String {
    format!("{LOGS}/{number:010}.wal")
}

/// The number in a segment's file name.
pub fn segment_number(name: &str) -> Option<u64> {
    number(name.strip_suffix(".omirb")?)
}

/// The number in a log's file name.
pub fn log_number(name: &str) -> Option<u64> {
    number(name.strip_suffix(".wal")?)
}

fn number(digits: &str) -> Option<u64> {
    let number: u64 = (digits.len() == 10).then(|| digits.parse().ok()).flatten()?;
    // The catalog numbers files with 32 bits. A name beyond that is none of ours.
    (number < u64::from(u32::MAX)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_beyond_the_numbers_of_files_is_none_of_ours() {
        assert_eq!(log_number("0000000007.wal"), Some(7));
        assert_eq!(log_number("9999999999.wal"), None);
        assert_eq!(log_number("4294967295.wal"), None);
    }
}
