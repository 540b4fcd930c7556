//! Vectors by a server of models: the request in the form of OpenAI's embeddings, what comes back, and the extension
//! `urn:omird:ext:embedding` in which a memory states its vector.
//!
//! A vector that is made here says in `textHash` which text it was made of. So it is told apart from those of clients, and from
//! one of a text that has changed since.

use std::fmt;

use omir_core::decode::{DecodeError, Limits};
use omir_core::hex;
use omir_core::json;
use omir_core::model::{Extension, MemoryRecord};
use omir_core::value::{Map, Value};
use omird_embedding::{EMBEDDING_URL, Given, MAX_DIMS, Vector};
use omird_text::{Counter, TokenCounter};
use sha2::{Digest, Sha256};

use crate::model::server::{Request, believed};
use crate::settings::Settings;

/// Most texts of one request.
pub(crate) const MOST_TEXTS: usize = 32;
/// Questions under way at a time, and threads that wait for them.
pub(crate) const MOST_QUESTIONS: usize = 4;
/// Bytes of a text that count. Models take 8,192 tokens, and no text has more tokens than bytes.
const MOST_BYTES: usize = 8191;
/// The member that says which text a vector was made of.
pub(crate) const TEXT_HASH: &str = "textHash";

/// Returns the hash of a text.
pub(crate) fn hash_of(text: &str) -> String {
    hex::encode(&Sha256::digest(text.as_bytes())[..16])
}

/// Returns the beginning of a text that is sent.
fn beginning(text: &str) -> &str {
    let end = (0..=MOST_BYTES.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text.get(..end.unwrap_or_default()).unwrap_or_default()
}

/// The model that makes vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Maker {
    /// Its name.
    pub(crate) model: String,
    /// Numbers of a vector, if the configuration states them.
    pub(crate) dims: Option<usize>,
}

impl Maker {
    /// Returns the model of the settings, if they name one.
    pub(crate) fn of(settings: &Settings) -> Option<Self> {
        let model = settings.embedding_model.clone()?;
        Some(Self { model, dims: settings.embedding_dimensions })
    }

    /// Returns the name of a text's vector by this model.
    pub(crate) fn key(&self, hash: &str) -> String {
        format!("{hash} {} {}", self.dims.unwrap_or(0), self.model)
    }

    /// Writes the extension of a vector.
    pub(crate) fn stated(&self, vector: Vector, hash: &str) -> Extension {
        let mut extension = Given { model: self.model.clone(), vector }.to_extension();
        if let Some(Value::Object(members)) = &mut extension.value_json {
            members.insert(TEXT_HASH, hash);
        }
        extension
    }

    /// Returns true if a vector is one of this model.
    pub(crate) fn made(&self, note: &Note) -> bool {
        note.model == self.model && self.dims.is_none_or(|dims| dims as u64 == note.dims)
    }

    /// Returns true if a record has a vector of this model. One that says of which text it was made is of that text alone.
    pub(crate) fn has_made(&self, record: &MemoryRecord) -> bool {
        let stated = record.extension.iter().flatten().filter(|one| one.url == EMBEDDING_URL);
        let mut notes = stated.filter_map(|one| Note::of(one.value_json.as_ref()?));
        notes.any(|note| self.made(&note) && note.is_of(&record.content))
    }
}

/// The model, the size and the text of a vector that a memory states, without its numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) model: String,
    pub(crate) dims: u64,
    /// Vectors that clients made state none.
    pub(crate) hash: Option<String>,
}

impl Note {
    /// Reads the value of the extension.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        let model = value.get("model")?.as_str()?.to_owned();
        let hash = value.get(TEXT_HASH).and_then(Value::as_str).map(str::to_owned);
        Some(Self { model, dims: value.get("dims")?.as_u64()?, hash })
    }

    /// Returns true if it may be of this text.
    pub(crate) fn is_of(&self, text: &str) -> bool {
        self.hash.as_ref().is_none_or(|hash| *hash == hash_of(text))
    }
}

/// Returns true if an extension is a vector that was made here, and not by a client.
pub(crate) fn is_own(extension: &Extension) -> bool {
    extension.url == EMBEDDING_URL
        && extension.value_json.as_ref().is_some_and(|value| value.get(TEXT_HASH).is_some())
}

/// A request for the vectors of some texts.
#[derive(Debug, Clone)]
pub(crate) struct Texts {
    body: Vec<u8>,
    /// Texts that were sent.
    count: usize,
    /// Numbers that a vector must have, if the configuration states them.
    dims: Option<usize>,
    /// Tokens of the texts by our own count.
    sent: usize,
}

/// An answer that holds no vectors.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Unusable {
    NoJson(DecodeError),
    NoList,
    /// Vectors that came, and texts that were sent.
    Other(usize, usize),
    /// A place in the list that stands twice, or is none.
    NoPlace(u64),
    /// The vector at this place has no numbers, too many, or no direction.
    NoVector(usize),
    /// Numbers that came, and those that were expected.
    Dims(usize, usize),
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoJson(error) => write!(f, "no JSON: {error}"),
            Self::NoList => f.write_str("no list at /data"),
            Self::Other(came, sent) => write!(f, "{came} vectors of {sent} texts"),
            Self::NoPlace(index) => write!(f, "the index {index} stands twice, or is of no text"),
            Self::NoVector(at) => {
                write!(f, "no vector at /data/{at}/embedding: 1 to {MAX_DIMS} numbers, not all 0")
            }
            Self::Dims(came, expected) => {
                write!(f, "vectors of {came} numbers where {expected} were expected")
            }
        }
    }
}

impl Texts {
    /// Asks for the vectors of texts. `None` if the settings name no model.
    pub(crate) fn of(settings: &Settings, texts: &[&str]) -> Option<Self> {
        let model = settings.embedding_model.as_deref()?;
        let texts: Vec<&str> = texts.iter().copied().map(beginning).collect();
        // Reads high for all vocabularies.
        let sent = texts.iter().map(|text| Counter::Approx1.count(text)).sum();
        let mut map = Map::new();
        map.insert("model", model);
        map.insert("input", texts.iter().map(|text| Value::from(*text)).collect::<Value>());
        if let Some(dims) = settings.embedding_dimensions {
            map.insert("dimensions", dims);
        }
        let body = json::to_string(&Value::Object(map)).into_bytes();
        Some(Self { body, count: texts.len(), dims: settings.embedding_dimensions, sent })
    }
}

impl Request for Texts {
    type Content = Vec<Vector>;
    type Unusable = Unusable;
    const PATH: &'static str = "/embeddings";
    // Vectors come in one form, whatever the texts are.
    const RESTS_IF_UNUSABLE: bool = true;

    fn body(&self) -> &[u8] {
        &self.body
    }

    fn most(&self) -> (u64, u64) {
        (self.body.len() as u64, 0)
    }

    fn price(settings: &Settings, (sent, _): (u64, u64)) -> u64 {
        (sent as f64 * settings.usd_per_million_embedded).ceil() as u64
    }

    /// Reads as many vectors as texts were sent, in their order and all of one size.
    fn read(&self, body: &[u8]) -> Result<(Vec<Vector>, (u64, u64)), Unusable> {
        let most = MOST_TEXTS * (MAX_DIMS + 8);
        let limits = Limits { max_bytes: usize::MAX, max_depth: 32, max_items: most };
        let value = json::from_slice(body, &limits).map_err(Unusable::NoJson)?;
        let list = value.pointer("/data").and_then(Value::as_array).ok_or(Unusable::NoList)?;
        if list.len() != self.count {
            return Err(Unusable::Other(list.len(), self.count));
        }
        let mut vectors: Vec<Option<Vector>> = vec![None; self.count];
        let mut expected = self.dims;
        for (at, one) in list.iter().enumerate() {
            let index = one.get("index").and_then(Value::as_u64).unwrap_or(at as u64);
            let place = usize::try_from(index).ok().and_then(|place| vectors.get_mut(place));
            let place = place.filter(|place| place.is_none()).ok_or(Unusable::NoPlace(index))?;
            let vector = vector(one).ok_or(Unusable::NoVector(at))?;
            let dims = vector.values.len();
            match expected {
                Some(expected) if expected != dims => return Err(Unusable::Dims(dims, expected)),
                _ => expected = Some(dims),
            }
            *place = Some(vector);
        }
        let reported = value.pointer("/usage/prompt_tokens").and_then(Value::as_u64);
        let tokens = (believed(reported, self.sent, self.most().0), 0);
        Ok((vectors.into_iter().flatten().collect(), tokens))
    }
}

fn vector(one: &Value) -> Option<Vector> {
    let numbers = one.get("embedding").and_then(Value::as_array)?;
    if numbers.is_empty() || numbers.len() > MAX_DIMS {
        return None;
    }
    let numbers: Option<Vec<f32>> =
        numbers.iter().map(|number| number.as_f64().map(|number| number as f32)).collect();
    Vector::of(&numbers?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(dims: Option<usize>) -> Settings {
        Settings {
            embedding_model: Some("text-embedding-3-small".to_owned()),
            embedding_dimensions: dims,
            ..Settings::default()
        }
    }

    #[test]
    fn vectors_are_read_in_the_order_of_their_texts() {
        let texts = Texts::of(&settings(None), &["a cup", "a mug"]).unwrap();
        let sent = json::from_slice(texts.body(), &Limits::default()).unwrap();
        assert_eq!(sent.pointer("/input/1").and_then(Value::as_str), Some("a mug"));
        assert!(sent.get("dimensions").is_none(), "many servers know no such member");
        let answer = br#"{"data":[{"index":1,"embedding":[0,-1]},{"index":0,"embedding":[1,0]}],"usage":{"prompt_tokens":5}}"#;
        let (vectors, tokens) = texts.read(answer).unwrap();
        assert_eq!((&*vectors[0].values, &*vectors[1].values), (&[127, 0][..], &[0, -127][..]));
        assert_eq!(tokens, (5, 0));
        assert_eq!(Texts::price(&settings(None), (1_000_000, 0)), 20_000);
        assert_eq!(Texts::price(&settings(None), (1, 0)), 1, "rounded up");
    }

    #[test]
    fn what_is_no_vector_for_each_text_is_refused() {
        let settings = settings(Some(2));
        let texts = Texts::of(&settings, &["a cup", "a mug"]).unwrap();
        let sent = json::from_slice(texts.body(), &Limits::default()).unwrap();
        assert_eq!(sent.get("dimensions").and_then(Value::as_u64), Some(2));
        let one = r#"{"embedding":[1,0]}"#;
        for (data, expected) in [
            ("7", Unusable::NoList),
            (&format!("[{one}]"), Unusable::Other(1, 2)),
            (
                r#"[{"index":0,"embedding":[1,0]},{"index":0,"embedding":[1,0]}]"#,
                Unusable::NoPlace(0),
            ),
            (&format!(r#"[{one},{{"index":9,"embedding":[1,0]}}]"#), Unusable::NoPlace(9)),
            (&format!(r#"[{one},{{"embedding":[0,0]}}]"#), Unusable::NoVector(1)),
            (&format!(r#"[{one},{{"embedding":["1","0"]}}]"#), Unusable::NoVector(1)),
            (&format!(r#"[{one},{{"embedding":[]}}]"#), Unusable::NoVector(1)),
            (&format!(r#"[{one},{{"embedding":[1,0,0]}}]"#), Unusable::Dims(3, 2)),
        ] {
            let answer = format!(r#"{{"data":{data}}}"#);
            assert_eq!(texts.read(answer.as_bytes()).unwrap_err(), expected, "{data}");
        }
        assert!(matches!(texts.read(b"<html>"), Err(Unusable::NoJson(_))));
        assert!(Texts::of(&Settings::default(), &["a cup"]).is_none());
    }

    #[test]
    fn a_long_text_is_cut_between_letters() {
        let long = "ü".repeat(5000);
        assert_eq!(beginning(&long).len(), 8190);
        assert_eq!(beginning("cup"), "cup");
    }

    #[test]
    fn a_vector_says_what_it_was_made_of() {
        let vector = Vector::of(&[1.0, -2.0]).unwrap();
        let maker = Maker { model: "m".to_owned(), dims: None };
        let extension = maker.stated(vector.clone(), &hash_of("a cup"));
        assert!(is_own(&extension));
        let value = extension.value_json.as_ref().unwrap();
        assert_eq!(value.get(TEXT_HASH).and_then(Value::as_str).unwrap().len(), 32);
        let given = Given::from_extension(&extension).unwrap();
        assert_eq!((given.model.as_str(), given.vector), ("m", vector));
        let note = Note::of(value).unwrap();
        assert!(maker.made(&note) && note.is_of("a cup") && !note.is_of("a mug"));
        assert!(!Maker { dims: Some(3), ..maker }.made(&note));
    }
}
