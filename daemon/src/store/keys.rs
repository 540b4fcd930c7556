//! The device key: made at the first start, kept in `<data>/keys/device.key`, mode 0600.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::signature::{DeviceKey, hex, unhex};

/// The folder of the keys.
pub const DIR: &str = "keys";
/// The public half of the device key.
pub const PUBLIC: &str = "keys/device.pub";
/// Public halves of keys that earlier segments were signed with, as after a restore: one a line.
pub const FORMER: &str = "keys/former.pub";

/// The public keys in a text, one a line; what is none is left out.
pub fn public_keys(text: &str) -> impl Iterator<Item = String> + '_ {
    text.lines().filter_map(|line| unhex::<32>(line.trim())).map(|key| hex(&key))
}

/// Loads the device key of a data folder, or makes one.
///
/// # Errors
/// If the key cannot be read or written, or is no key. A key is never replaced by itself: the
/// signatures of everything sealed so far hang on it.
pub fn device_key(data: &Path, random: impl FnOnce() -> [u8; 32]) -> io::Result<DeviceKey> {
    match secret_of(data) {
        Ok(secret) => {
            let key = DeviceKey::from_secret(secret);
            let folder = data.join("keys");
            // A cut between the two files of the first start; on a read-only card it stays so.
            if !folder.join("device.pub").exists()
                && let Err(error) = write(&folder, "device.pub", 0o644, &key.public_hex())
            {
                tracing::warn!(%error, "the public half of the device key could not be written");
            }
            Ok(key)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = data.join("keys");
            fs::create_dir_all(&folder)?;
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
            let secret = random();
            let key = DeviceKey::from_secret(secret);
            write(&folder, "device.key", 0o600, &hex(&secret))?;
            write(&folder, "device.pub", 0o644, &key.public_hex())?;
            File::open(&folder)?.sync_all()?;
            File::open(data)?.sync_all()?;
            Ok(key)
        }
        Err(error) => Err(error),
    }
}

/// The secret of a data folder's device key; none is made.
///
/// # Errors
/// `NotFound` if there is none, `InvalidData` if it is no key.
pub fn secret_of(data: &Path) -> io::Result<[u8; 32]> {
    let path = data.join("keys").join("device.key");
    let text = fs::read(&path)?;
    std::str::from_utf8(&text).ok().and_then(|text| secret(text.trim())).ok_or_else(|| {
        let message = format!(
            "{} is no device key (64 hex digits); restore it from a backup, or move it away to \
             begin a new chain of signatures",
            path.display()
        );
        io::Error::new(io::ErrorKind::InvalidData, message)
    })
}

fn write(folder: &Path, name: &str, mode: u32, text: &str) -> io::Result<()> {
    let temporary = folder.join(format!("{name}.tmp"));
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&temporary)?;
    writeln!(file, "{text}")?;
    file.sync_all()?;
    fs::rename(temporary, folder.join(name))
}

fn secret(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    let mut secret = [0; 32];
    for (byte, pair) in secret.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let made = device_key(dir.path(), || [5; 32]).unwrap();
        let again = device_key(dir.path(), || panic!("there is one already")).unwrap();
        assert_eq!(made.public_hex(), again.public_hex());
        let mode = fs::metadata(dir.path().join("keys/device.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_damaged_key_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        device_key(dir.path(), || [5; 32]).unwrap();
        fs::write(dir.path().join("keys/device.key"), "nonsense").unwrap();
        assert!(device_key(dir.path(), || [6; 32]).is_err());
    }
}
