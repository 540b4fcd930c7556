//! Static models, vectors of clients, and texts made into vectors, beside the bounds of a vector.

use omir_core::decode::Limits;
use omir_core::model::Extension;
use omird_embedding::{EMBEDDING_URL, Embedder, Given, StaticModel, Vector, parse_vector};

/// Reads `length:u16 tokenizer length:u16 text table` as a model and a text, and all of it as a client's vector.
pub fn run(bytes: &[u8]) {
    if let Ok(value) = omir_core::json::from_slice(bytes, &Limits::default())
        && let Ok(given) = Given::from_extension(&Extension::json(EMBEDDING_URL, value))
    {
        holds(&given.vector);
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(vector) = parse_vector(text)
    {
        holds(&vector);
    }
    let Some((tokenizer, rest)) = part(bytes) else { return };
    let Some((text, table)) = part(rest) else { return };
    let Ok(model) = StaticModel::from_bytes("fuzz", table, tokenizer, b"{\"normalize\":true}")
    else {
        return;
    };
    let dims = model.model().dims;
    let text = String::from_utf8_lossy(text);
    let (mut one, mut two) = (vec![0.0; dims], vec![1.0; dims]);
    let made = model.embed(&text, &mut one);
    assert_eq!(made, model.embed(&text, &mut two), "what was in the buffer counts");
    if made {
        assert_eq!(one, two);
        let length: f64 = one.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
        assert!(length < 1.01, "normalised, or without direction: {length}");
        if let Some(vector) = Vector::of(&one) {
            holds(&vector);
        }
    }
}

fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u16::from_le_bytes(*length).into())
}

/// A vector is of length 1, and like itself.
fn holds(vector: &Vector) {
    assert!(vector.values.iter().all(|value| *value != i8::MIN));
    assert!((vector.cosine(vector) - 1.0).abs() < 1e-4, "{vector:?}");
}
