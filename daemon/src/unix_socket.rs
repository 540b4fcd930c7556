//! The Unix socket in a data folder, on which omird serves HTTP to the person at the machine: its name, and its address.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The name of the socket in the data folder.
pub const NAME: &str = "http.sock";
/// Longest path of a socket (`sun_path` of unix(7), with the zero at its end).
const LONGEST: usize = 107;

/// A path by which the socket in a data folder is bound or connected to, for as long as this lives. The path of a socket is
/// short, that of a folder need not be: then it leads through the folder, which is held open.
#[derive(Debug)]
pub struct Address {
    path: PathBuf,
    _folder: Option<File>,
}

impl Address {
    /// Returns the address of the socket in a data folder.
    ///
    /// # Errors
    /// The path is long, and the folder cannot be opened.
    pub fn of(data: &Path) -> io::Result<Self> {
        let path = data.join(NAME);
        if path.as_os_str().as_bytes().len() <= LONGEST {
            return Ok(Self { path, _folder: None });
        }
        let folder = File::open(data)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{NAME}", folder.as_raw_fd()));
        Ok(Self { path, _folder: Some(folder) })
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn a_socket_is_reached_however_long_the_path_of_its_folder_is() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["short".to_owned(), "long".repeat(40)] {
            let data = dir.path().join(name);
            std::fs::create_dir(&data).unwrap();
            let address = Address::of(&data).unwrap();
            let _listener = UnixListener::bind(address.path()).unwrap();
            assert!(data.join(NAME).exists(), "{address:?}");
            UnixStream::connect(address.path()).unwrap();
        }
    }
}
