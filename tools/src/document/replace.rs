//! Writing that leaves either the old file or the whole new one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Lets `write` write what is to stand in the place of `file`: written beside it, synced, renamed, and
/// the folder synced, so that an error, a crash or a full disk leaves the old file or the new one and
/// nothing between.
pub(super) fn replace(
    file: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    if is_device(file) {
        return write(&mut OpenOptions::new().write(true).open(file)?);
    }
    // A symbolic link keeps pointing where it points.
    let target = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let folder = folder_of(&target);
    let mut builder = tempfile::Builder::new();
    builder.prefix(".omir-");
    share(&mut builder);
    let mut temporary = builder.tempfile_in(&folder)?;
    let mut out = BufWriter::new(temporary.as_file_mut());
    write(&mut out)?;
    out.flush()?;
    drop(out);
    if let Ok(old) = fs::metadata(&target) {
        temporary.as_file().set_permissions(old.permissions())?;
    }
    temporary.as_file().sync_all()?;
    temporary.persist(&target).map_err(|why| why.error)?;
    File::open(&folder)?.sync_all()
}

/// A folder on the disk that `file` will lie on, for what is needed on the way there.
pub(super) fn folder_beside(file: &Path) -> PathBuf {
    if super::is_standard(file) || is_device(file) {
        return std::env::temp_dir();
    }
    folder_of(&fs::canonicalize(file).unwrap_or_else(|_| file.to_owned()))
}

/// A device or a pipe is written to, not replaced.
fn is_device(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| !found.is_file())
}

fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// A temporary file is private; ours gets the rights of an ordinary new file, less the umask.
#[cfg(unix)]
fn share(builder: &mut tempfile::Builder<'_, '_>) {
    use std::os::unix::fs::PermissionsExt as _;
    builder.permissions(fs::Permissions::from_mode(0o666));
}

#[cfg(not(unix))]
fn share(_: &mut tempfile::Builder<'_, '_>) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_half_way_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.omir");
        fs::write(&file, "old").unwrap();
        let failed = replace(&file, |out| {
            out.write_all(b"new")?;
            Err(io::Error::other("disk full"))
        });
        assert!(failed.is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        replace(&file, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_folder_is_found_beside_a_bare_name() {
        assert_eq!(folder_beside(Path::new("no-such-file.omir")), Path::new("."));
        assert_eq!(folder_beside(Path::new("-")), std::env::temp_dir());
    }
}
