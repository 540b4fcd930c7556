//! `<data>/keys/tokens.json`: what is kept of each token. Read whole, written whole and atomically.

use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt as _, MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use omir_core::hex;
use omir_core::value::Value;
use omird_router::Caller;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::grant::{Grant, InvalidGrant, instant};
use crate::secret::{Digest, Secret};

/// The folder of a data folder that has the keys.
const FOLDER: &str = "keys";
const TOKENS: &str = "tokens.json";
/// The token of the person at the machine.
pub const LOCAL: &str = "local.token";
/// The form of the file that this build writes and reads.
const FORMAT: u32 = 1;
/// Bytes of the file; a longer one is none of ours.
const MOST_BYTES: u64 = 1 << 20;
/// Tokens in it.
const MOST_TOKENS: usize = 1000;
/// Longest wait for another process that changes it.
const PATIENCE: Duration = Duration::from_secs(5);

/// A token as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The rights it grants.
    pub grant: Grant,
    /// SHA-256 of the token, in hexadecimal digits.
    sha256: String,
    /// The time it was made, in seconds since 1970; `None` if no clock could be trusted then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<i64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    format: u32,
    tokens: Vec<Record>,
}

impl Record {
    /// Returns the token as it is listed: what it grants, and when it was made. Its digest is not shown.
    pub fn to_value(&self) -> Value {
        let mut members = self.grant.to_map();
        members.insert("created", instant(self.created));
        Value::Object(members)
    }

    /// Returns the SHA-256 of the token.
    pub(crate) fn digest(&self) -> Option<Digest> {
        hex::decode(&self.sha256)
    }
}

/// The digest of a token that was revoked where it stands.
const BLOTTED: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The tokens of a data folder. Any number of processes may use it at once.
#[derive(Debug, Clone)]
pub struct TokenStore {
    folder: PathBuf,
}

/// The reason why a token is not added or revoked, or why none is known.
#[derive(Debug)]
pub enum TokenError {
    /// The folder is no data folder.
    NoDataFolder(PathBuf),
    /// The grant is one that no token may have.
    Invalid(InvalidGrant),
    /// There is one of that name.
    Exists(String),
    /// There is none of that name.
    NotFound(String),
    /// There are as many as the file holds.
    TooMany,
    /// The file of tokens cannot be read, so that no token is taken.
    Unreadable(PathBuf, Unreadable),
    /// Another process has been changing the tokens for seconds.
    Held,
    /// The disk refuses.
    Disk(io::Error),
}

/// The reason why the file of tokens cannot be read.
#[derive(Debug)]
pub enum Unreadable {
    /// The disk, or its rights.
    Disk(io::Error),
    /// It is no file.
    NoFile,
    /// It is longer than any that this build writes.
    TooLong,
    /// It has another form.
    Form(serde_json::Error),
    /// A newer omird wrote it.
    Newer(u32),
    /// A token in it is one that no token may be.
    Token(String, InvalidGrant),
    /// Two tokens in it have this name.
    Twice(String),
    /// A digest in it is none.
    NoDigest(String),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(error) => error.fmt(f),
            Self::NoFile => f.write_str("it is no regular file"),
            Self::TooLong => write!(f, "it is longer than {MOST_BYTES} bytes"),
            Self::Form(error) => error.fmt(f),
            Self::Newer(format) => {
                write!(
                    f,
                    "it has format {format}, which a newer omird wrote; this one knows {FORMAT}"
                )
            }
            Self::Token(name, why) => write!(f, "token {name:?}: {why}"),
            Self::Twice(name) => write!(f, "token {name:?} is there twice"),
            Self::NoDigest(name) => {
                write!(f, "token {name:?}: sha256 is not 64 hexadecimal digits")
            }
        }
    }
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDataFolder(folder) => write!(
                f,
                "{} is no data folder: omird makes one when it starts with --data",
                folder.display()
            ),
            Self::Invalid(why) => why.fmt(f),
            Self::Exists(name) => write!(
                f,
                "there is a token {name:?}: revoke it first (omir token revoke {name}), or take another name"
            ),
            Self::NotFound(name) => {
                write!(f, "there is no token {name:?}; `omir token list` names them")
            }
            Self::TooMany => write!(
                f,
                "there are {MOST_TOKENS} tokens, or as many as the file holds: revoke some, or use JWTs"
            ),
            Self::Unreadable(file, why) => write!(
                f,
                "{} cannot be read, and none of its tokens is taken: {why}. Mend it, or move it away and make the tokens \
                 again",
                file.display()
            ),
            Self::Held => f.write_str("another process is changing the tokens; try again"),
            Self::Disk(error) => write!(f, "the tokens cannot be written: {error}"),
        }
    }
}

impl std::error::Error for TokenError {}
impl std::error::Error for Unreadable {}

impl From<io::Error> for TokenError {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

/// Facts that tell one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp(u64, u64, u64, [i64; 4]);

impl TokenStore {
    /// Returns the tokens of a data folder.
    pub fn of(data: &Path) -> Self {
        Self { folder: data.join(FOLDER) }
    }

    fn file(&self) -> PathBuf {
        self.folder.join(TOKENS)
    }

    /// Returns the path of the token of the person at the machine.
    pub fn local(&self) -> PathBuf {
        self.folder.join(LOCAL)
    }

    /// Returns true if the folder of the keys is not there at all, as on a card that was pulled out.
    pub(crate) fn is_away(&self) -> bool {
        let away = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
        fs::metadata(&self.folder).is_err_and(|error| away.contains(&error.kind()))
    }

    /// Returns the tokens as they are kept.
    ///
    /// # Errors
    /// `Unreadable`. A folder without the file has none.
    pub fn list(&self) -> Result<Vec<Record>, TokenError> {
        let file = self.file();
        match read(&file) {
            Ok(Some(bytes)) => {
                let mut tokens = parse(&bytes).map_err(|why| TokenError::Unreadable(file, why))?;
                tokens.retain(|token| token.sha256 != BLOTTED);
                Ok(tokens)
            }
            Ok(None) => Ok(Vec::new()),
            Err(why) => Err(TokenError::Unreadable(file, why)),
        }
    }

    /// Adds a token made of `random`, which is durable on return. The caller has checked the grant against the scopes of its
    /// build ([`Grant::check_new`]).
    ///
    /// # Errors
    /// See [`TokenError`].
    pub fn add(
        &self,
        grant: Grant,
        random: [u8; 32],
        created: Option<i64>,
    ) -> Result<Secret, TokenError> {
        grant.check().map_err(TokenError::Invalid)?;
        let secret = Secret::of(random);
        self.change(|tokens| {
            if tokens.iter().any(|token| token.grant.name == grant.name) {
                return Err(TokenError::Exists(grant.name));
            }
            if tokens.len() >= MOST_TOKENS {
                return Err(TokenError::TooMany);
            }
            let sha256 = hex::encode(&secret.digest());
            tokens.push(Record { grant, sha256, created });
            Ok(())
        })?;
        Ok(secret)
    }

    /// Revokes the token of that name, durably on return. That of the person at the machine is made again when omird starts
    /// the next time.
    ///
    /// # Errors
    /// See [`TokenError`].
    pub fn revoke(&self, name: &str) -> Result<(), TokenError> {
        let not_found = || TokenError::NotFound(name.to_owned());
        if name == Caller::LOCAL {
            let _lock = self.lock()?;
            return match fs::remove_file(self.local()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Err(not_found()),
                removed => Ok(removed.and_then(|()| File::open(&self.folder)?.sync_all())?),
            };
        }
        let removed = self.change(|tokens| {
            let at = tokens.iter().position(|token| token.grant.name == name);
            tokens.remove(at.ok_or_else(not_found)?);
            Ok(())
        });
        match removed {
            Err(TokenError::Disk(error)) if is_full(&error) => self.blot_out(name),
            removed => removed,
        }
    }

    /// Overwrites the digest of a token where it stands, so that it is none any more: a full disk has no room for another
    /// file, and a token that was stolen must end all the same. The next change leaves it out.
    pub(crate) fn blot_out(&self, name: &str) -> Result<(), TokenError> {
        let _lock = self.lock()?;
        let tokens = self.list()?;
        let token = tokens.iter().find(|token| token.grant.name == name);
        let token = token.ok_or_else(|| TokenError::NotFound(name.to_owned()))?;
        let bytes = read(&self.file()).map_err(|why| TokenError::Unreadable(self.file(), why))?;
        let text = bytes.unwrap_or_default();
        let digest = token.sha256.as_bytes();
        let at = text.windows(digest.len()).position(|part| part == digest);
        let at = at.ok_or_else(|| TokenError::NotFound(name.to_owned()))?;
        let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
        let file = OpenOptions::new().write(true).custom_flags(flags).open(self.file())?;
        // Each digit is right by itself: a cut in between leaves a file that can be read.
        file.write_all_at(BLOTTED.as_bytes(), at as u64)?;
        Ok(file.sync_all()?)
    }

    /// Returns the token of the person at the machine, if there is one.
    pub(crate) fn local_secret(&self) -> io::Result<Option<Secret>> {
        let bytes = match read(&self.local()) {
            Ok(bytes) => bytes,
            Err(Unreadable::Disk(error)) => return Err(error),
            Err(why) => return Err(io::Error::new(io::ErrorKind::InvalidData, why)),
        };
        let text = bytes.as_deref().map(String::from_utf8_lossy);
        Ok(text.and_then(|text| Secret::parse(text.trim())))
    }

    /// Makes the token of the person at the machine, unless there is one.
    pub(crate) fn make_local(&self, random: impl FnOnce() -> [u8; 32]) -> io::Result<()> {
        if self.local_secret()?.is_some() {
            return Ok(());
        }
        let text = format!("{}\n", Secret::of(random()).as_str());
        self.write(LOCAL, text.as_bytes())
    }

    /// Returns what tells the present state of both files from another.
    pub(crate) fn stamps(&self) -> [Option<Stamp>; 2] {
        let stamp = |found: Metadata| {
            let times = [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()];
            Stamp(found.dev(), found.ino(), found.size(), times)
        };
        [self.file(), self.local()].map(|file| fs::symlink_metadata(file).ok().map(stamp))
    }

    /// Changes the tokens, one process after the other.
    fn change(
        &self,
        change: impl FnOnce(&mut Vec<Record>) -> Result<(), TokenError>,
    ) -> Result<(), TokenError> {
        let _lock = self.lock()?;
        let mut tokens = self.list()?;
        change(&mut tokens)?;
        let contents = Contents { format: FORMAT, tokens };
        let mut bytes = serde_json::to_vec_pretty(&contents).map_err(io::Error::from)?;
        bytes.push(b'\n');
        if bytes.len() as u64 > MOST_BYTES {
            return Err(TokenError::TooMany);
        }
        Ok(self.write(TOKENS, &bytes)?)
    }

    /// Locks the folder itself: a file of its own would belong to the user that came first, and be closed to the
    /// others.
    fn lock(&self) -> Result<File, TokenError> {
        let no_folder = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                let data = self.folder.parent().unwrap_or(&self.folder);
                TokenError::NoDataFolder(data.to_owned())
            }
            _ => TokenError::Disk(error),
        };
        let folder = File::open(&self.folder).map_err(no_folder)?;
        let began = Instant::now();
        loop {
            match folder.try_lock() {
                Ok(()) => return Ok(folder),
                Err(TryLockError::Error(error)) => return Err(error.into()),
                Err(TryLockError::WouldBlock) if began.elapsed() > PATIENCE => {
                    return Err(TokenError::Held);
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// Puts a file in the place of another, durably, for the owner of the folder alone: root may add tokens to a folder
    /// that omird reads as another user.
    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let temporary = self.folder.join(format!("{name}.tmp"));
        // Left over from a cut: it may be a link, or open to others.
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        let (folder, made) = (fs::metadata(&self.folder)?, file.metadata()?);
        if folder.uid() != made.uid() {
            fchown(&file, Some(folder.uid()), Some(folder.gid()))?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(temporary, self.folder.join(name))?;
        File::open(&self.folder)?.sync_all()
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Returns the bytes of a file, or `None` if there is none. No link is followed, and no pipe is waited for.
fn read(file: &Path) -> Result<Option<Vec<u8>>, Unreadable> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let opened = match OpenOptions::new().read(true).custom_flags(flags).open(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(Unreadable::Disk)?,
    };
    if !opened.metadata().map_err(Unreadable::Disk)?.is_file() {
        return Err(Unreadable::NoFile);
    }
    let mut bytes = Vec::new();
    opened.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(Unreadable::Disk)?;
    if bytes.len() as u64 > MOST_BYTES { Err(Unreadable::TooLong) } else { Ok(Some(bytes)) }
}

/// Reads the contents of the file of tokens.
///
/// # Errors
/// Says what is wrong with them. No bytes make it panic.
pub fn parse(bytes: &[u8]) -> Result<Vec<Record>, Unreadable> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let contents: Contents = match serde_json::from_slice(bytes) {
        Ok(contents) => contents,
        // Of a newer form the reason is the form.
        Err(error) => match serde_json::from_slice::<Format>(bytes) {
            Ok(Format { format }) if format > FORMAT => return Err(Unreadable::Newer(format)),
            _ => return Err(Unreadable::Form(error)),
        },
    };
    if contents.format != FORMAT {
        return Err(Unreadable::Newer(contents.format));
    }
    let mut names = std::collections::HashSet::new();
    for token in &contents.tokens {
        let name = &token.grant.name;
        token.grant.check().map_err(|why| Unreadable::Token(name.clone(), why))?;
        if token.digest().is_none() {
            return Err(Unreadable::NoDigest(name.clone()));
        }
        if !names.insert(name) {
            return Err(Unreadable::Twice(name.clone()));
        }
    }
    Ok(contents.tokens)
}
