//! Vectors equal those of the Python library `model2vec`: `tests/models/make.py` wrote the models and the golden vectors.

use std::path::{Path, PathBuf};

use omird_embedding::{Embedder, StaticModel};
use omird_text::Language;
use serde_json::Value;

/// The largest difference of a number. Floats are added in another order there.
const CLOSE: f32 = 1e-4;

fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models")
}

/// Compares each vector of a golden file with ours; gives the largest difference.
fn compare(dir: &Path, texts: &Value, vectors: &Value) -> f32 {
    let model = StaticModel::open(dir, Language::English).unwrap();
    let mut out = vec![0.0; model.model().dims];
    let mut largest = 0.0_f32;
    let (texts, vectors) = (texts.as_array().unwrap(), vectors.as_array().unwrap());
    assert_eq!(texts.len(), vectors.len());
    for (text, vector) in texts.iter().zip(vectors) {
        let text = text.as_str().unwrap();
        let is_known = model.encode(text, &mut out);
        let vector: Vec<f32> =
            vector.as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect();
        assert_eq!(vector.len(), out.len());
        assert_eq!(is_known, vector.iter().any(|x| *x != 0.0), "{text:?}");
        for (ours, theirs) in out.iter().zip(&vector) {
            let difference = (ours - theirs).abs();
            assert!(difference < CLOSE, "{text:?}: {out:?}, not {vector:?}");
            largest = largest.max(difference);
        }
    }
    largest
}

#[test]
fn vectors_are_those_of_the_python_library() {
    let golden = std::fs::read(models().join("golden.json")).unwrap();
    let golden: Value = serde_json::from_slice(&golden).unwrap();
    for (name, vectors) in golden["vectors"].as_object().unwrap() {
        let largest = compare(&models().join(name), &golden["texts"], vectors);
        println!("{name}: differs by {largest:e} at most");
    }
}

/// The same with a model that is not in the repository: `MODEL` is its folder, and `GOLDEN` a file as the one here, with one
/// list of vectors under `model`.
#[test]
#[ignore = "needs a model"]
fn vectors_of_a_model_are_those_of_the_python_library() {
    let of = |name: &str| std::env::var_os(name).unwrap_or_else(|| panic!("{name} is not set"));
    let golden: Value = serde_json::from_slice(&std::fs::read(of("GOLDEN")).unwrap()).unwrap();
    let largest = compare(of("MODEL").as_ref(), &golden["texts"], &golden["vectors"]["model"]);
    println!("differs by {largest:e} at most");
}

#[test]
fn a_folder_that_is_no_model_is_refused_by_file_and_reason() {
    let dir = tempfile::tempdir().unwrap();
    let refusal = || StaticModel::open(dir.path(), Language::English).err().unwrap().to_string();
    assert!(refusal().contains("model.safetensors: it is not there"), "{}", refusal());
    let tiny = models().join("tiny");
    let copy = |name: &str| std::fs::copy(tiny.join(name), dir.path().join(name)).unwrap();
    copy("model.safetensors");
    assert!(refusal().contains("tokenizer.json: it is not there"), "{}", refusal());
    copy("tokenizer.json");
    StaticModel::open(dir.path(), Language::English).unwrap();
    std::fs::write(dir.path().join("config.json"), "{").unwrap();
    assert!(refusal().contains("config.json: "), "{}", refusal());
    copy("config.json");
    let whole = std::fs::read(dir.path().join("model.safetensors")).unwrap();
    std::fs::write(dir.path().join("model.safetensors"), &whole[..whole.len() - 1]).unwrap();
    assert!(refusal().contains("cut"), "{}", refusal());
    // A table of fewer rows than the tokenizer has tokens.
    let golden = models().join("mapped/model.safetensors");
    std::fs::copy(golden, dir.path().join("model.safetensors")).unwrap();
    StaticModel::open(dir.path(), Language::English).unwrap();
}

#[test]
fn the_name_is_of_the_folder_and_the_hash_of_its_files() {
    let open = |name: &str| StaticModel::open(&models().join(name), Language::English).unwrap();
    let (tiny, mapped) = (open("tiny"), open("mapped"));
    assert_eq!((tiny.model().name.as_str(), tiny.model().dims), ("tiny", 16));
    assert_ne!(tiny.model().hash, mapped.model().hash);
    assert_eq!(open("tiny").model(), tiny.model());
    let german = StaticModel::open(&models().join("tiny"), Language::German).unwrap();
    assert_ne!(german.model().hash, tiny.model().hash, "other stop words give other vectors");
}

#[test]
fn stop_words_count_only_where_there_is_nothing_else() {
    let tiny = StaticModel::open(&models().join("tiny"), Language::English).unwrap();
    let embed = |text: &str| {
        let mut out = vec![0.0; 16];
        assert!(tiny.embed(text, &mut out), "{text}");
        out
    };
    assert_eq!(embed("where is the mug"), embed("mug"));
    assert_ne!(embed("where"), embed("the"));
    assert!(!tiny.embed("", &mut [0.0; 16]));
    assert!(!tiny.embed("mug", &mut [0.0; 15]), "of another size");
}

#[test]
fn a_word_has_the_direction_of_its_text() {
    let tiny = StaticModel::open(&models().join("tiny"), Language::English).unwrap();
    let mut out = vec![0.0; 16];
    assert!(tiny.word("mug", &mut out));
    let length = out.iter().map(|number| number * number).sum::<f32>().sqrt();
    let mut text = vec![0.0; 16];
    assert!(tiny.embed("mug", &mut text));
    for (word, text) in out.iter().zip(&text) {
        assert!((word / length - text).abs() < 1e-5, "the direction of the text");
    }
    for nothing in ["where", "2026", "m7", ""] {
        assert!(!tiny.word(nothing, &mut out), "{nothing:?}");
    }
    assert!(!tiny.word("mug", &mut [0.0; 3]));
    let vector = omird_embedding::Vector::of(&text).unwrap();
    let usual = tiny.usual(&vector).unwrap();
    assert!(usual.deviation > 0.0 && usual.mean.abs() < 0.5, "{usual:?}");
    assert_eq!(tiny.usual(&omird_embedding::Vector::of(&[1.0]).unwrap()), None);
}
