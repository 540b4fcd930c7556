//! A sentence model of ONNX: a transformer as `sentence-transformers` exports it, run by `rten` on one thread.
//!
//! | file | holds |
//! |---|---|
//! | `model.onnx`, or `onnx/model.onnx` | the network: `input_ids`, `attention_mask` and perhaps `token_type_ids` in, a vector for each token out, or one as `sentence_embedding` |
//! | `tokenizer.json`, or `vocab.txt` | the tokens (WordPiece), with `[CLS]` and `[SEP]` |
//! | `1_Pooling/config.json` | `pooling_mode_cls_token`, where the vector of the first token counts and not the mean; optional |

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use rten::{Model, NodeId, RunOptions, ThreadPool, Value, ValueOrView};
use rten_tensor::{AsView as _, Layout as _};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::embedder::{Embedder, ModelName};
use crate::folder::{ModelError, TokenFiles, name_of, read, read_optional};
use crate::given::MAX_DIMS;
use crate::wordpiece::WordPiece;

/// Most tokens of a text that count, as most of these models were trained.
const MAX_TOKENS: usize = 256;
/// The places of the network in a folder.
const NETWORKS: [&str; 2] = ["model.onnx", "onnx/model.onnx"];

/// A model in memory.
pub struct OnnxModel {
    model: ModelName,
    network: Model,
    inputs: Inputs,
    output: NodeId,
    tokenizer: WordPiece,
    /// `[CLS]` and `[SEP]`.
    marks: (u32, u32),
    takes_first: bool,
    options: RunOptions,
}

struct Inputs {
    ids: NodeId,
    mask: Option<NodeId>,
    types: Option<NodeId>,
}

#[derive(Deserialize, Default)]
struct Pooling {
    #[serde(default)]
    pooling_mode_cls_token: bool,
}

/// A text that the network makes no vector of.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotEncoded {
    /// The network does not run; the reason is that of its runtime.
    Run(String),
    /// The output is no numbers.
    NoNumbers,
    /// The output has another shape than a vector for the text or for each token.
    Shape(Vec<usize>),
}

impl fmt::Display for NotEncoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(why) => write!(f, "it does not run: {why}"),
            Self::NoNumbers => f.write_str("its output is no numbers"),
            Self::Shape(shape) => {
                write!(f, "its output has the shape {shape:?}, not a vector for each token")
            }
        }
    }
}

impl std::error::Error for NotEncoded {}

impl OnnxModel {
    /// Reads a folder, and makes a first vector, so that a model that does not run is found at the start.
    ///
    /// # Errors
    /// If a file is missing, damaged or of a kind that is not read. The message says which and why.
    pub fn open(dir: &Path) -> Result<Self, ModelError> {
        let found = NETWORKS.into_iter().find(|name| dir.join(name).exists());
        let file = found.unwrap_or(NETWORKS[0]);
        let path = dir.join(file);
        let wrong = |reason: String| ModelError { path: path.clone(), reason };
        let bytes = read(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => wrong(
                "it is not there; the folder of an ONNX model has model.onnx and tokenizer.json or vocab.txt".into(),
            ),
            _ => wrong(error.to_string()),
        })?;
        let tokens = TokenFiles::read(dir)?;
        let pooling = read_optional(dir, "1_Pooling/config.json")?;
        let mut hash = Sha256::new();
        // All that a vector depends on: with another of them all are made again.
        let files = [
            Some(&bytes),
            tokens.tokenizer.as_ref(),
            tokens.vocabulary.as_ref(),
            tokens.config.as_ref(),
            pooling.as_ref(),
        ];
        for file in files {
            let bytes = file.map_or(&[][..], Vec::as_slice);
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        }
        let pooling: Pooling = match &pooling {
            Some(bytes) => serde_json::from_slice(bytes).map_err(|error| ModelError {
                path: dir.join("1_Pooling/config.json"),
                reason: error.to_string(),
            })?,
            None => Pooling::default(),
        };
        let of_tokens =
            |(file, reason): (&str, String)| ModelError { path: dir.join(file), reason };
        let tokenizer = tokens.word_piece().map_err(of_tokens)?;
        let mark = |token: &str| {
            let missing = || of_tokens(("tokenizer.json", format!("it has no token {token}")));
            tokenizer.id_of(token).ok_or_else(missing)
        };
        let marks = (mark("[CLS]")?, mark("[SEP]")?);
        // The reader of others may panic at bytes that are no model.
        let network = catch_unwind(|| Model::load(bytes))
            .map_err(|_| wrong("it is no model of ONNX that can be read".into()))?
            .map_err(|error| wrong(error.to_string()))?;
        let ids = network.find_node("input_ids");
        let ids = ids.ok_or_else(|| wrong("it has no input `input_ids`".into()))?;
        let inputs = Inputs {
            ids,
            mask: network.find_node("attention_mask"),
            types: network.find_node("token_type_ids"),
        };
        let whole = network.find_node("sentence_embedding");
        let output = whole.or_else(|| network.output_ids().first().copied());
        let output = output.ok_or_else(|| wrong("it has no output".into()))?;
        // One thread: a robot has other work for its cores.
        let threads = Some(Arc::new(ThreadPool::with_num_threads(1)));
        let mut model = Self {
            model: ModelName { name: name_of(dir), dims: 0, hash: hash.finalize().into() },
            network,
            inputs,
            output,
            tokenizer,
            marks,
            takes_first: pooling.pooling_mode_cls_token,
            options: RunOptions::default().with_thread_pool(threads),
        };
        let first = model.encode("a memory").map_err(|why| wrong(why.to_string()))?;
        if !(1..=MAX_DIMS).contains(&first.len()) {
            let message =
                format!("its vectors have {} numbers; 1 to {MAX_DIMS} are read", first.len());
            return Err(wrong(message));
        }
        model.model.dims = first.len();
        Ok(model)
    }

    /// Makes the vector of a text, of no certain length.
    ///
    /// # Errors
    /// The network does not run on it, or what comes out is no vector.
    pub fn encode(&self, text: &str) -> Result<Vec<f32>, NotEncoded> {
        let mut tokens = vec![self.marks.0 as i32];
        self.tokenizer.tokens_and_unknown(text, &mut |token| {
            tokens.push(token as i32);
            tokens.len() + 1 < MAX_TOKENS
        });
        tokens.push(self.marks.1 as i32);
        let shape = [1, tokens.len()];
        let of = |numbers: Vec<i32>| {
            Value::from_shape(&shape, numbers).map_err(|error| NotEncoded::Run(error.to_string()))
        };
        let mut inputs: Vec<(NodeId, ValueOrView<'_>)> = Vec::with_capacity(3);
        if let Some(mask) = self.inputs.mask {
            inputs.push((mask, of(vec![1; tokens.len()])?.into()));
        }
        if let Some(types) = self.inputs.types {
            inputs.push((types, of(vec![0; tokens.len()])?.into()));
        }
        inputs.push((self.inputs.ids, of(tokens)?.into()));
        let run = || self.network.run(inputs, &[self.output], Some(self.options.clone()));
        let made = catch_unwind(AssertUnwindSafe(run))
            .map_err(|_| NotEncoded::Run("its network does not fit its inputs".to_owned()))?
            .map_err(|error| NotEncoded::Run(error.to_string()))?;
        let made: Option<Value> = made.into_iter().next();
        let Some(Value::FloatTensor(made)) = made else {
            return Err(NotEncoded::NoNumbers);
        };
        let shape: Vec<usize> = made.shape().to_vec();
        let numbers = made.to_vec();
        match shape[..] {
            [1, _] => Ok(numbers),
            [1, rows, dims] if rows > 0 && dims > 0 => Ok(self.pooled(&numbers, rows, dims)),
            _ => Err(NotEncoded::Shape(shape)),
        }
    }

    fn pooled(&self, numbers: &[f32], rows: usize, dims: usize) -> Vec<f32> {
        if self.takes_first {
            return numbers.iter().take(dims).copied().collect();
        }
        let mut mean = vec![0.0_f32; dims];
        for row in numbers.chunks_exact(dims) {
            mean.iter_mut().zip(row).for_each(|(sum, number)| *sum += number);
        }
        mean.iter_mut().for_each(|sum| *sum /= rows as f32);
        mean
    }
}

impl Embedder for OnnxModel {
    fn model(&self) -> &ModelName {
        &self.model
    }

    fn embed(&self, text: &str, out: &mut [f32]) -> bool {
        let Ok(made) = self.encode(text) else { return false };
        if made.len() != out.len() || !made.iter().all(|number| number.is_finite()) {
            return false;
        }
        out.copy_from_slice(&made);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn models() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models")
    }

    /// Compares vectors with those that `onnxruntime` made of the same texts; gives the least cosine.
    fn compare(dir: &Path, golden: &serde_json::Value) -> f64 {
        let model = OnnxModel::open(dir).unwrap();
        let texts = golden["texts"].as_array().unwrap();
        let vectors = golden["vectors"].as_array().unwrap();
        assert!(texts.len() == vectors.len() && !texts.is_empty());
        let cosine = |(text, vector): (&serde_json::Value, &serde_json::Value)| {
            let ours = model.encode(text.as_str().unwrap()).unwrap();
            let theirs: Vec<f64> =
                vector.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect();
            assert_eq!(ours.len(), theirs.len());
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let ours: Vec<f64> = ours.iter().map(|number| f64::from(*number)).collect();
            dot(&ours, &theirs) / (dot(&ours, &ours) * dot(&theirs, &theirs)).sqrt()
        };
        texts.iter().zip(vectors).map(cosine).fold(1.0, f64::min)
    }

    #[test]
    fn vectors_are_those_of_onnxruntime() {
        let dir = models().join("onnx");
        let golden = std::fs::read(dir.join("golden.json")).unwrap();
        let least = compare(&dir, &serde_json::from_slice(&golden).unwrap());
        assert!(least > 1.0 - 1e-6, "{least}");
        let model = OnnxModel::open(&dir).unwrap();
        let mut out = vec![0.0; model.model().dims];
        assert!(model.embed("", &mut out), "a text without words has its marks");
        assert!(!model.embed("x", &mut out[1..]), "of another size");
        let long = "mug ".repeat(10_000);
        assert!(model.embed(&long, &mut out));
    }

    /// The same with a model that is not in the repository: `MODEL` is its folder, with `golden.json` in it.
    #[test]
    #[ignore = "needs a model"]
    fn vectors_of_a_model_are_those_of_onnxruntime() {
        let dir = PathBuf::from(std::env::var_os("MODEL").expect("MODEL is set"));
        let golden = std::fs::read(dir.join("golden.json")).unwrap();
        let least = compare(&dir, &serde_json::from_slice(&golden).unwrap());
        println!("least cosine {least}");
        assert!(least > 0.99, "{least}");
    }

    #[test]
    fn what_is_no_model_is_refused_by_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let refusal = || OnnxModel::open(dir.path()).err().unwrap().to_string();
        assert!(refusal().contains("model.onnx: it is not there"), "{}", refusal());
        let good = std::fs::read(models().join("onnx/model.onnx")).unwrap();
        std::fs::write(dir.path().join("model.onnx"), &good).unwrap();
        assert!(refusal().contains("tokenizer.json"), "{}", refusal());
        std::fs::write(dir.path().join("vocab.txt"), "[PAD]\n[UNK]\nmug\n").unwrap();
        assert!(refusal().contains("[CLS]"), "{}", refusal());
        std::fs::copy(models().join("onnx/vocab.txt"), dir.path().join("vocab.txt")).unwrap();
        assert!(OnnxModel::open(dir.path()).is_ok());
        // A setting that changes how words are read makes another model.
        let hash_with = |lowers: bool| {
            let config = format!(r#"{{"do_lower_case":{lowers}}}"#);
            std::fs::write(dir.path().join("tokenizer_config.json"), config).unwrap();
            OnnxModel::open(dir.path()).unwrap().model().hash
        };
        assert_ne!(hash_with(true), hash_with(false));
        // No cut and no flipped byte panics.
        for cut in (0..good.len()).step_by(good.len() / 40 + 1) {
            std::fs::write(dir.path().join("model.onnx"), &good[..cut]).unwrap();
            let _ = OnnxModel::open(dir.path());
            let mut flipped = good.clone();
            flipped[cut] ^= 0x55;
            std::fs::write(dir.path().join("model.onnx"), &flipped).unwrap();
            let _ = OnnxModel::open(dir.path());
        }
    }
}
