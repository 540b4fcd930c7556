//! `[embedding]`: what makes vectors, and how meaning is weighed beside words.

use std::path::PathBuf;
use std::sync::Arc;

use omird_embedding::{Embedder, Hashed, ModelError, StaticModel};
use omird_text::Language;
use serde::Deserialize;

use super::{Invalid, within};
use crate::engine::Fusion;

/// The backends, by their names.
const BACKENDS: [&str; 4] = ["none", "hashed", "static", "onnx"];

/// What makes vectors of what is stored and asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Embedding {
    /// Nothing: words alone are compared, and vectors that clients state.
    #[default]
    None,
    /// The embedding without a model.
    Hashed,
    /// A static model.
    Static {
        /// Its folder.
        model: PathBuf,
    },
    /// A sentence model of ONNX.
    #[cfg(feature = "onnx")]
    Onnx {
        /// Its folder.
        model: PathBuf,
    },
}

impl Embedding {
    /// Opens it for texts of a language, whose stop words count for nothing: reads the model, if there is one.
    ///
    /// # Errors
    /// If the model cannot be read; the message names the file.
    pub fn open(&self, language: Language) -> Result<Option<Arc<dyn Embedder>>, ModelError> {
        Ok(match self {
            Self::None => None,
            Self::Hashed => Some(Arc::new(Hashed::new(language))),
            Self::Static { model } => Some(Arc::new(StaticModel::open(model, language)?)),
            #[cfg(feature = "onnx")]
            Self::Onnx { model } => Some(Arc::new(omird_embedding::OnnxModel::open(model)?)),
        })
    }
}

/// `[embedding]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EmbeddingSection {
    /// Backend that makes vectors: `none`, `hashed`, `static` or `onnx`.
    pub backend: Option<String>,
    /// The folder of a model.
    pub model: Option<PathBuf>,
    /// The weight of words beside meaning.
    pub words: Option<f64>,
    /// The share that a neighbour in time has.
    pub neighbours: Option<f64>,
    /// The least cosine of a match by meaning.
    pub min_cosine: Option<f64>,
}

/// Checks the section and fills in what it leaves out.
pub fn resolve(written: &EmbeddingSection) -> Result<(Embedding, Fusion), Invalid> {
    let default = Fusion::default();
    let backend = written.backend.as_deref().unwrap_or("none");
    let embedding = match (backend, &written.model) {
        ("none", None) => Embedding::None,
        ("hashed", None) => Embedding::Hashed,
        ("onnx", _) if cfg!(not(feature = "onnx")) => {
            let message = "\"onnx\" needs a build with the feature `onnx`, which this one is without; \
                           `static` needs no runtime";
            return Err(Invalid::other("embedding.backend", message));
        }
        ("static" | "onnx", Some(model)) if !model.is_absolute() => {
            let message = format!("{:?} is no absolute path", model.display());
            return Err(Invalid::other("embedding.model", message));
        }
        ("static", Some(model)) => Embedding::Static { model: model.clone() },
        #[cfg(feature = "onnx")]
        ("onnx", Some(model)) => Embedding::Onnx { model: model.clone() },
        ("static", None) => {
            let message = "is missing: `static` needs the folder of a Model2Vec model";
            return Err(Invalid::other("embedding.model", message));
        }
        #[cfg(feature = "onnx")]
        ("onnx", None) => {
            let message = "is missing: `onnx` needs the folder of a sentence model";
            return Err(Invalid::other("embedding.model", message));
        }
        (backend, Some(_)) if BACKENDS.contains(&backend) => {
            let message = format!("names a model, and the backend {backend:?} has none");
            return Err(Invalid::other("embedding.model", message));
        }
        (other, _) => return Err(Invalid::none_of("embedding.backend", other, &BACKENDS)),
    };
    let fusion = Fusion {
        words: within("embedding.words", written.words, default.words, 0.0..=1.0)?,
        neighbours: within(
            "embedding.neighbours",
            written.neighbours,
            default.neighbours,
            0.0..=1.0,
        )?,
        min_cosine: within(
            "embedding.min_cosine",
            written.min_cosine,
            default.min_cosine,
            -1.0..=1.0,
        )?,
    };
    Ok((embedding, fusion))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Embedding, Fusion), Invalid> {
        let file: super::super::file::File = toml::from_str(text).unwrap();
        resolve(&file.embedding)
    }

    #[test]
    fn everything_has_a_default_and_can_be_stated() {
        assert_eq!(read(""), Ok((Embedding::None, Fusion::default())));
        let stated = "[embedding]\nbackend = 'static'\nmodel = '/models/potion'\n\
                      words = 0.5\nneighbours = 0\nmin_cosine = -0.5";
        let embedding = Embedding::Static { model: "/models/potion".into() };
        let fusion = Fusion { words: 0.5, neighbours: 0.0, min_cosine: -0.5 };
        assert_eq!(read(stated), Ok((embedding, fusion)));
        assert_eq!(read("[embedding]\nbackend = 'hashed'").unwrap().0, Embedding::Hashed);
    }

    #[test]
    fn a_model_of_onnx_needs_its_feature() {
        let read = read("[embedding]\nbackend = 'onnx'\nmodel = '/m'");
        match cfg!(feature = "onnx") {
            true => assert!(read.is_ok(), "{read:?}"),
            false => assert!(read.unwrap_err().to_string().contains("feature `onnx`")),
        }
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_key() {
        for (text, named) in [
            ("backend = 'bert'", "embedding.backend"),
            ("backend = 'static'", "embedding.model"),
            ("backend = 'static'\nmodel = 'm'", "absolute"),
            ("backend = 'hashed'\nmodel = '/m'", "embedding.model"),
            ("model = '/m'", "embedding.model"),
            ("words = 1.5", "embedding.words"),
            ("neighbours = -1", "embedding.neighbours"),
            ("min_cosine = 2", "embedding.min_cosine"),
        ] {
            let error = read(&format!("[embedding]\n{text}")).unwrap_err().to_string();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
