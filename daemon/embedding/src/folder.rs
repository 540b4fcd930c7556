//! A model's folder: its files, its name, and its tokenizer.

use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::wordpiece::WordPiece;

/// Largest file of a model that is read.
const MAX_FILE: u64 = 2 << 30;
/// A model that cannot be used: which file, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelError {
    /// The file or folder.
    pub path: PathBuf,
    /// The reason.
    pub reason: String,
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason)
    }
}

impl std::error::Error for ModelError {}

#[derive(Deserialize)]
struct TokenizerConfig {
    #[serde(default = "lowers")]
    do_lower_case: bool,
}

fn lowers() -> bool {
    true
}

/// The files that tell of tokens; `None` for one that is not there.
#[derive(Debug, Clone, Default)]
pub(crate) struct TokenFiles {
    pub(crate) tokenizer: Option<Vec<u8>>,
    pub(crate) vocabulary: Option<Vec<u8>>,
    pub(crate) config: Option<Vec<u8>>,
}

impl TokenFiles {
    /// Reads those of a folder.
    ///
    /// # Errors
    /// One is there and cannot be read.
    pub(crate) fn read(dir: &Path) -> Result<Self, ModelError> {
        Ok(Self {
            tokenizer: read_optional(dir, "tokenizer.json")?,
            vocabulary: read_optional(dir, "vocab.txt")?,
            config: read_optional(dir, "tokenizer_config.json")?,
        })
    }

    /// The tokenizer that they describe.
    ///
    /// # Errors
    /// The file, and what is wrong with it.
    pub(crate) fn word_piece(&self) -> Result<WordPiece, (&'static str, String)> {
        Ok(match (&self.tokenizer, &self.vocabulary) {
            (Some(bytes), _) => {
                WordPiece::from_json(bytes).map_err(|error| ("tokenizer.json", error.0))?
            }
            (None, Some(bytes)) => {
                let lowers = self.config.as_deref().map(serde_json::from_slice);
                let lowers: TokenizerConfig = lowers
                    .transpose()
                    .map_err(|error| ("tokenizer_config.json", error.to_string()))?
                    .unwrap_or(TokenizerConfig { do_lower_case: true });
                WordPiece::from_vocabulary(bytes, lowers.do_lower_case)
                    .map_err(|error| ("vocab.txt", error.0))?
            }
            (None, None) => {
                return Err(("tokenizer.json", "it is not there, and no vocab.txt either".into()));
            }
        })
    }
}

/// Reads a file of a folder; `None` if it is not there.
///
/// # Errors
/// It is there and cannot be read.
pub(crate) fn read_optional(dir: &Path, name: &str) -> Result<Option<Vec<u8>>, ModelError> {
    match read(&dir.join(name)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ModelError { path: dir.join(name), reason: error.to_string() }),
    }
}

/// The name of the model in a folder: that of the folder, as clients may state it.
pub(crate) fn name_of(dir: &Path) -> String {
    let named = dir.canonicalize().ok();
    let named = named.as_deref().unwrap_or(dir).file_name().map(|name| name.to_string_lossy());
    named.map_or_else(|| "model".to_owned(), |name| plain_name(&name))
}

/// Reads a file that is no larger than [`MAX_FILE`].
pub(crate) fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    if length > MAX_FILE {
        return Err(std::io::Error::other(format!("{length} bytes are more than {MAX_FILE}")));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    file.take(MAX_FILE).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The name of a model as clients may state it: what they may not is an underscore.
pub(crate) fn plain_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-/".contains(c) { c } else { '_' };
    let name: String = name.chars().take(128).map(plain).collect();
    if name.is_empty() { "model".to_owned() } else { name }
}
