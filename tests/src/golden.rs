//! Output of a program, kept in files: a test compares, and writes them again when it is asked to.
//!
//! `UPDATE_GOLDEN=1 cargo test …` takes what is shown now for right; the difference is read in `git diff`.

use std::fs;
use std::path::Path;

/// Compares `shown` with the file `path`.
///
/// # Panics
/// If they differ, and `UPDATE_GOLDEN` is not set; or the file cannot be written.
#[track_caller]
pub fn check(path: impl AsRef<Path>, shown: &str) {
    let path = path.as_ref();
    let kept = fs::read_to_string(path).unwrap_or_default();
    if kept == shown {
        return;
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let folder = path.parent().expect("a file lies in a folder");
        fs::create_dir_all(folder).expect("the folder can be made");
        fs::write(path, shown).expect("the file can be written");
        return;
    }
    let same = kept.lines().zip(shown.lines()).take_while(|(one, other)| one == other).count();
    panic!(
        "{} differs from line {} on. UPDATE_GOLDEN=1 takes this for right:\n{shown}",
        path.display(),
        same + 1
    );
}
