//! The device key: made at the first start, kept in `<data>/keys/device.key`, mode 0600.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::signature::{DeviceKey, Seal};
use crate::digest::{hex, unhex};
use crate::disk;
use crate::names::{SEGMENTS, segment_number, signature_path};

/// The folder of the keys.
pub const DIR: &str = "keys";
/// The public half of the device key.
pub(crate) const PUBLIC: &str = "keys/device.pub";
/// Public halves of keys that earlier segments were signed with, as after a restore: one a line.
pub(crate) const FORMER: &str = "keys/former.pub";

/// The public keys in a text, one a line; what is none is left out.
pub(crate) fn public_keys(text: &str) -> impl Iterator<Item = String> + '_ {
    text.lines().filter_map(|line| unhex::<32>(line.trim())).map(|key| hex(&key))
}

/// Loads the device key of a data folder, or makes one. A key that rotted is repaired where one digit is wrong and
/// a public half tells which. Otherwise it is kept beside as `device.key.damaged` and a new one is made: that breaks
/// the chain of signatures and costs no memory. Where the card cannot be written to, the key lives as long as the
/// process.
///
/// # Errors
/// If the key belongs to another user, or the disk fails while one is made.
pub fn device_key(data: &Path, random: impl FnOnce() -> [u8; 32]) -> io::Result<DeviceKey> {
    let folder = data.join(DIR);
    let path = folder.join("device.key");
    let found = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let message = format!("{} cannot be read: {error}", path.display());
            return Err(io::Error::new(error.kind(), message));
        }
        found => found,
    };
    let stated = fs::read(data.join(PUBLIC)).ok();
    let stated = stated.and_then(|text| unhex::<32>(String::from_utf8_lossy(&text).trim()));
    if let Ok(text) = &found
        && let Some(secret) = secret_in(text)
    {
        let key = DeviceKey::from_secret(secret);
        if stated.is_some_and(|stated| hex(&stated) == key.public_hex()) {
            return Ok(key);
        }
    }
    let known = known_keys(data, stated);
    if let Ok(text) = &found {
        if let Some(secret) = secret_in(text) {
            let key = DeviceKey::from_secret(secret);
            let public = key.public_hex();
            if known.is_empty()
                || known.contains(&public)
                || known.iter().any(|k| is_near(k, &public))
            {
                // A cut between the two files of the first start, or a public half that rotted.
                borne(write(&folder, "device.pub", 0o644, &public), "the public half of the key")?;
                return Ok(key);
            }
        }
        if let Some(secret) = corrected(text, &known) {
            let key = DeviceKey::from_secret(secret);
            tracing::warn!(file = %path.display(), "one digit of the device key had rotted; it is repaired");
            borne(write(&folder, "device.key", 0o600, &hex(&secret)), "the device key")?;
            borne(write(&folder, "device.pub", 0o644, &key.public_hex()), "its public half")?;
            return Ok(key);
        }
        if let Some(secret) = secret_in(text) {
            // Sound, and another than before: someone put it there.
            let key = DeviceKey::from_secret(secret);
            tracing::warn!(file = %path.display(), "the device key is another than before");
            borne(retire(data, &known), FORMER)?;
            borne(write(&folder, "device.pub", 0o644, &key.public_hex()), "its public half")?;
            return Ok(key);
        }
    }
    let key = random();
    borne(renew(data, &key, &known, found.err().map(|error| error.kind())), "a new device key")?;
    Ok(DeviceKey::from_secret(key))
}

/// Bears a write that a full or read-only card refuses: such a card is served all the same.
fn borne(written: io::Result<()>, what: &str) -> io::Result<()> {
    match written {
        Err(error) if disk::is_full(&error) || disk::is_read_only(&error) => {
            tracing::warn!(%error, "{what} could not be written");
            Ok(())
        }
        written => written,
    }
}

/// Puts a new key in the place of one that is missing or damaged. After a cut at any step the next start does the
/// rest.
fn renew(
    data: &Path,
    secret: &[u8; 32],
    known: &[String],
    why: Option<io::ErrorKind>,
) -> io::Result<()> {
    let folder = data.join(DIR);
    fs::create_dir_all(&folder)?;
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
    // First of all: once the old key is away, nothing else says what it was.
    retire(data, known)?;
    if why != Some(io::ErrorKind::NotFound) {
        let kept = set_aside(&folder)?;
        File::open(&folder)?.sync_all()?;
        tracing::error!(
            kept,
            "the device key was damaged beyond repair: a new one signs from now on, and the chain of signatures begins \
             again. No memory is lost"
        );
    } else if !known.is_empty() {
        tracing::error!(
            "the device key is missing: a new one signs from now on, and the chain of signatures starts over. No memory \
             is lost"
        );
    }
    write(&folder, "device.key", 0o600, &hex(secret))?;
    write(&folder, "device.pub", 0o644, &DeviceKey::from_secret(*secret).public_hex())?;
    File::open(&folder)?.sync_all()?;
    File::open(data)?.sync_all()
}

/// Renames a damaged key to a name that nothing has; returns that.
fn set_aside(folder: &Path) -> io::Result<String> {
    let names = std::iter::once("device.key.damaged".to_owned())
        .chain((2u32..).map(|n| format!("device.key.{n}.damaged")));
    for name in names {
        let kept = folder.join(&name);
        if fs::symlink_metadata(&kept).is_err() {
            fs::rename(folder.join("device.key"), kept)?;
            return Ok(name);
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Notes keys as former ones. Lines that are none are dropped and told of.
fn retire(data: &Path, keys: &[String]) -> io::Result<()> {
    let text = fs::read(data.join(FORMER)).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mut lines: Vec<String> = public_keys(&text).collect();
    let bad = text.lines().filter(|line| !line.trim().is_empty()).count() - lines.len();
    if bad > 0 {
        tracing::warn!(bad, "{FORMER} has lines that are no public keys");
    }
    let before = lines.len();
    lines.extend(keys.iter().filter(|key| !lines.contains(key)).cloned().collect::<Vec<_>>());
    if lines.len() == before {
        return Ok(());
    }
    write(&data.join(DIR), "former.pub", 0o644, &lines.join("\n"))
}

/// Public halves that this device's key may have: as `device.pub` states it, and as the newest segment was signed
/// with, unless that is a former one.
fn known_keys(data: &Path, stated: Option<[u8; 32]>) -> Vec<String> {
    let mut known: Vec<String> = stated.iter().map(|key| hex(key)).collect();
    let names = fs::read_dir(data.join(SEGMENTS)).into_iter().flatten().flatten();
    let newest = names
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            segment_number(&format!("{}.omirb", name.strip_suffix(".sig")?))
        })
        .max();
    let seal = newest.and_then(|number| fs::read(data.join(signature_path(number))).ok());
    let seal = seal.and_then(|text| Seal::from_json(&text).ok()).filter(Seal::is_authentic);
    let former = fs::read(data.join(FORMER)).unwrap_or_default();
    let former: Vec<String> = public_keys(&String::from_utf8_lossy(&former)).collect();
    if let Some(signer) = seal.map(|seal| hex(&seal.public_key))
        && !known.contains(&signer)
        && !former.contains(&signer)
    {
        known.push(signer);
    }
    known
}

/// The secret in the bytes of a key file; what follows its 64 digits does not matter.
fn secret_in(text: &[u8]) -> Option<[u8; 32]> {
    secret(std::str::from_utf8(text.get(..64)?).ok()?)
}

/// Returns true if two keys differ in one digit: no two do that were ever made.
fn is_near(one: &str, other: &str) -> bool {
    one.bytes().zip(other.bytes()).filter(|(a, b)| a != b).count() <= 1
}

/// The secret with one wrong digit made right, if that gives one of these public keys.
fn corrected(text: &[u8], known: &[String]) -> Option<[u8; 32]> {
    let digits = text.get(..64)?;
    let is_digit = |byte: &u8| byte.is_ascii_hexdigit();
    let bad: Vec<usize> = (0..64).filter(|&at| !is_digit(&digits[at])).collect();
    let places = match bad.as_slice() {
        [] => 0..64,
        [at] => *at..*at + 1,
        _ => return None,
    };
    let mut tried = digits.to_vec();
    for at in places {
        for digit in *b"0123456789abcdef" {
            tried[at] = digit;
            if let Some(secret) = secret_in(&tried)
                && known.contains(&DeviceKey::from_secret(secret).public_hex())
            {
                return Some(secret);
            }
        }
        tried[at] = digits[at];
    }
    None
}

/// The secret of a data folder's device key; none is made.
///
/// # Errors
/// `NotFound` if there is none, `InvalidData` if it is no key.
pub(crate) fn secret_of(data: &Path) -> io::Result<[u8; 32]> {
    let path = data.join("keys").join("device.key");
    secret_in(&fs::read(&path)?).ok_or_else(|| {
        let message = format!(
            "{} is no device key (64 hex digits): the next start of omird repairs it, or makes a new one and keeps this",
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
    fs::rename(temporary, folder.join(name))?;
    File::open(folder)?.sync_all()
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

    fn key_file(dir: &tempfile::TempDir) -> std::path::PathBuf {
        dir.path().join("keys/device.key")
    }

    #[test]
    fn each_wrong_bit_of_a_key_is_made_right() {
        let dir = tempfile::tempdir().unwrap();
        let made = device_key(dir.path(), || [0x5a; 32]).unwrap();
        let whole = fs::read(key_file(&dir)).unwrap();
        for bit in (0..whole.len() * 8).step_by(13) {
            let mut rotten = whole.clone();
            rotten[bit / 8] ^= 1 << (bit % 8);
            fs::write(key_file(&dir), rotten).unwrap();
            let key = device_key(dir.path(), || panic!("bit {bit} can be repaired")).unwrap();
            assert_eq!(key.public_hex(), made.public_hex(), "bit {bit}");
            assert_eq!(secret_of(dir.path()).unwrap(), [0x5a; 32], "bit {bit}");
        }
        assert_eq!(fs::read_dir(dir.path().join(DIR)).unwrap().count(), 2, "nothing is left over");
    }

    #[test]
    fn a_key_beyond_repair_is_kept_and_a_new_one_begun() {
        let dir = tempfile::tempdir().unwrap();
        let first = device_key(dir.path(), || [5; 32]).unwrap().public_hex();
        fs::write(key_file(&dir), "nonsense").unwrap();
        let second = device_key(dir.path(), || [6; 32]).unwrap().public_hex();
        fs::write(key_file(&dir), "").unwrap();
        let third = device_key(dir.path(), || [7; 32]).unwrap().public_hex();
        fs::remove_file(key_file(&dir)).unwrap();
        device_key(dir.path(), || [8; 32]).unwrap();
        let keys = dir.path().join(DIR);
        let text = |name: &str| fs::read_to_string(keys.join(name)).unwrap();
        assert_eq!(text("device.key.damaged"), "nonsense");
        assert_eq!(text("device.key.2.damaged"), "");
        assert_eq!(text("former.pub"), format!("{first}\n{second}\n{third}\n"));
        let again = device_key(dir.path(), || panic!("there is one")).unwrap().public_hex();
        assert_eq!(text("device.pub").trim(), again);
    }

    #[test]
    fn a_rotten_public_half_is_written_again() {
        let dir = tempfile::tempdir().unwrap();
        let made = device_key(dir.path(), || [5; 32]).unwrap();
        let public = made.public_hex();
        let other = if public.starts_with('0') { "1" } else { "0" };
        let misspelt = format!("{other}{}", &public[1..]);
        for rotten in ["", "zz", &public[..60], &misspelt] {
            fs::write(dir.path().join(PUBLIC), rotten).unwrap();
            let key = device_key(dir.path(), || panic!("there is one")).unwrap();
            assert_eq!(key.public_hex(), made.public_hex());
            let public = fs::read_to_string(dir.path().join(PUBLIC)).unwrap();
            assert_eq!(public.trim(), made.public_hex());
            assert!(!dir.path().join(FORMER).exists(), "no key was replaced");
        }
    }
}
