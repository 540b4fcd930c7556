//! A static model: a folder as the library `model2vec` writes it. The vector of a text is the mean of the vectors of its tokens.
//!
//! | file | holds |
//! |---|---|
//! | `model.safetensors` | `embeddings` (or `embedding.weight`), a row of F32, F16, BF16 or I8 for each token; `weights`, a factor for each token, and `mapping`, the row of each token, are optional |
//! | `tokenizer.json`, or `vocab.txt` | the tokens |
//! | `config.json` | `normalize`; optional |
//!
//! The table stays in memory as it lies in the file.

use std::collections::BTreeMap;
use std::path::Path;

use omird_text::{Language, is_stop_word, words};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::embedder::{Embedder, ModelName};
use crate::folder::{ModelError, TokenFiles, name_of, plain_name, read, read_optional};
use crate::given::MAX_DIMS;
use crate::safetensors::{Tensor, tensors};
use crate::usual::{Sample, Usual};
use crate::vector::Vector;
use crate::wordpiece::WordPiece;

/// Most tokens of a text that count, as in the library.
const MAX_TOKENS: usize = 512;

/// A model in memory.
pub struct StaticModel {
    model: ModelName,
    /// The bytes of `model.safetensors`.
    table: Vec<u8>,
    embeddings: Tensor,
    /// The row and the factor of each token; `None` if each token has its own row and counts once.
    rows: Option<Vec<(u32, f32)>>,
    tokenizer: WordPiece,
    normalize: bool,
    /// Characters of a text that are looked at.
    most_chars: usize,
    /// The language whose stop words are left out.
    language: Language,
    /// Rows that tell which cosines are usual.
    sample: Sample,
}

#[derive(Deserialize, Default)]
struct Config {
    #[serde(default)]
    normalize: bool,
}

/// The bytes of a model's files; `None` for one that is not there.
#[derive(Debug, Clone, Default)]
struct Files {
    table: Vec<u8>,
    tokens: TokenFiles,
    config: Option<Vec<u8>>,
}

impl StaticModel {
    /// Reads a folder, for texts of a language.
    ///
    /// # Errors
    /// If a file is missing, damaged or of a kind that is not read. The message says which and why.
    pub fn open(dir: &Path, language: Language) -> Result<Self, ModelError> {
        let table_path = dir.join("model.safetensors");
        let table = read(&table_path).map_err(|error| {
            let reason = match error.kind() {
                std::io::ErrorKind::NotFound => {
                    "it is not there; a Model2Vec folder has model.safetensors, tokenizer.json and config.json".to_owned()
                }
                _ => error.to_string(),
            };
            ModelError { path: table_path.clone(), reason }
        })?;
        let files = Files {
            table,
            tokens: TokenFiles::read(dir)?,
            config: read_optional(dir, "config.json")?,
        };
        Self::of(name_of(dir), files, language)
            .map_err(|(file, reason)| ModelError { path: dir.join(file), reason })
    }

    /// A model made of the bytes of its files, for tests and fuzzing.
    ///
    /// # Errors
    /// As [`StaticModel::open`].
    pub fn from_bytes(
        name: &str,
        table: &[u8],
        tokenizer: &[u8],
        config: &[u8],
    ) -> Result<Self, ModelError> {
        let files = Files {
            table: table.to_vec(),
            tokens: TokenFiles { tokenizer: Some(tokenizer.to_vec()), ..TokenFiles::default() },
            config: Some(config.to_vec()),
        };
        Self::of(plain_name(name), files, Language::English)
            .map_err(|(file, reason)| ModelError { path: file.into(), reason })
    }

    fn of(name: String, files: Files, language: Language) -> Result<Self, (&'static str, String)> {
        const TABLE: &str = "model.safetensors";
        let mut hash = Sha256::new();
        hash.update(language.code());
        let all = [
            Some(&files.table),
            files.tokens.tokenizer.as_ref(),
            files.tokens.vocabulary.as_ref(),
            files.config.as_ref(),
            files.tokens.config.as_ref(),
        ];
        for file in all {
            let bytes = file.map_or(&[][..], Vec::as_slice);
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        }
        let config: Config = match &files.config {
            Some(bytes) => {
                serde_json::from_slice(bytes).map_err(|error| ("config.json", error.to_string()))?
            }
            None => Config::default(),
        };
        let tokenizer = files.tokens.word_piece()?;
        let mut found: BTreeMap<String, Tensor> =
            tensors(&files.table).map_err(|error| (TABLE, error.to_string()))?;
        let embeddings = found
            .remove("embeddings")
            .or_else(|| found.remove("embedding.weight"))
            .ok_or((TABLE, "it has no tensor \"embeddings\" of a type that is read".to_owned()))?;
        let [rows, dims] = embeddings.shape[..] else {
            let shape = &embeddings.shape;
            return Err((TABLE, format!("its table has the shape {shape:?}, not rows of numbers")));
        };
        if !(1..=MAX_DIMS).contains(&dims) {
            return Err((TABLE, format!("its rows have {dims} numbers; 1 to {MAX_DIMS} are read")));
        }
        let mut numbers = vec![0.0_f32; dims];
        let tells = |row: usize| {
            numbers.fill(0.0);
            embeddings.add_row(&files.table, row, 1.0, &mut numbers)
                && numbers.iter().all(|number| number.is_finite())
                && numbers.iter().any(|number| *number != 0.0)
        };
        if !(0..rows).any(tells) {
            let message = "no row of its table has a direction: all numbers are 0, or not finite";
            return Err((TABLE, message.to_owned()));
        }
        let tokens = tokenizer.largest() as usize + 1;
        // A tokenizer that names a token far away would otherwise make a list of that size.
        let stated =
            found.get("mapping").map_or(rows, |mapping| mapping.shape.iter().product::<usize>());
        if tokens > stated {
            let message =
                format!("the tokenizer has {tokens} tokens, and the table {stated} of them");
            return Err((TABLE, message));
        }
        let number = |name: &str, token: usize| match found.get(name) {
            Some(tensor) => tensor.float(&files.table, token).map(Some),
            None => Some(None),
        };
        let is_plain = !found.contains_key("mapping") && !found.contains_key("weights");
        let mapped = (!is_plain).then(|| {
            (0..tokens)
                .map(|token| {
                    let row = number("mapping", token)?.unwrap_or(token as f64);
                    let weight = number("weights", token)?.unwrap_or(1.0) as f32;
                    let is_there = row >= 0.0 && row < rows as f64 && row.fract() == 0.0;
                    (is_there && weight.is_finite()).then_some((row as u32, weight))
                })
                .collect::<Option<Vec<_>>>()
                .ok_or((TABLE, "its `mapping` or `weights` does not fit its table".to_owned()))
        });
        let sample =
            Sample::of(rows, dims, |row, out| embeddings.add_row(&files.table, row, 1.0, out));
        let rows = mapped.transpose()?;
        let most_chars = MAX_TOKENS.saturating_mul(tokenizer.median_length());
        let model = ModelName { name, dims, hash: hash.finalize().into() };
        let normalize = config.normalize;
        Ok(Self {
            model,
            table: files.table,
            embeddings,
            rows,
            tokenizer,
            normalize,
            most_chars,
            language,
            sample,
        })
    }

    /// Fills `out` with the vector of a text, as the library's `encode` does. Returns false if the text has no token that
    /// the model knows: then it is all zeros.
    pub fn encode(&self, text: &str, out: &mut [f32]) -> bool {
        if !self.mean(text, out) {
            return false;
        }
        if self.normalize {
            let length = (length_of(out) + 1e-32) as f32;
            out.iter_mut().for_each(|number| *number /= length);
        }
        true
    }

    /// Fills `out` with the mean of the vectors of a text's tokens. Returns false if there are none: then it is all zeros.
    fn mean(&self, text: &str, out: &mut [f32]) -> bool {
        out.fill(0.0);
        if out.len() != self.model.dims {
            return false;
        }
        let end = text.char_indices().nth(self.most_chars).map_or(text.len(), |(at, _)| at);
        let mut count = 0usize;
        self.tokenizer.tokens(&text[..end], &mut |token| {
            let token = token as usize;
            let (row, weight) = match &self.rows {
                Some(rows) => {
                    let Some((row, weight)) = rows.get(token) else { return true };
                    (*row as usize, *weight)
                }
                None => (token, 1.0),
            };
            if self.embeddings.add_row(&self.table, row, weight, out) {
                count += 1;
            }
            count < MAX_TOKENS
        });
        if count == 0 {
            return false;
        }
        out.iter_mut().for_each(|number| *number /= count as f32);
        true
    }
}

/// The length of a vector.
fn length_of(numbers: &[f32]) -> f64 {
    numbers.iter().map(|number| f64::from(*number) * f64::from(*number)).sum::<f64>().sqrt()
}

impl Embedder for StaticModel {
    fn model(&self) -> &ModelName {
        &self.model
    }

    /// Stop words are left out, unless there is nothing else: the mean of few tokens says more than that of many
    /// (`docs/recall.md`, "Measured").
    fn embed(&self, text: &str, out: &mut [f32]) -> bool {
        let mut telling = String::with_capacity(text.len());
        words(text, |word| {
            if !is_stop_word(self.language, word) {
                telling.push_str(word);
                telling.push(' ');
            }
        });
        let text = if telling.is_empty() { text } else { &telling };
        self.encode(text, out) && out.iter().all(|number| number.is_finite())
    }

    /// Words with digits are names and readings, which mean nothing but themselves.
    fn word(&self, word: &str, out: &mut [f32]) -> bool {
        let is_name = word.contains(|c: char| c.is_numeric());
        if is_name || is_stop_word(self.language, word) || !self.mean(word, out) {
            return false;
        }
        let length = length_of(out);
        length.is_finite() && length > 0.0
    }

    fn usual(&self, vector: &Vector) -> Option<Usual> {
        (vector.values.len() == self.model.dims).then(|| self.sample.usual(vector)).flatten()
    }
}
