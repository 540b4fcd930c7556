//! `omird-bench meaning`: what vectors cost, beside words alone and beside a bare round trip.
//!
//! The model is a folder as `model2vec` writes it. Without `--model` it is made here: 64 random numbers for each word of the
//! vocabulary. Such vectors know no synonyms, and they take the same time and the same room as others of their size.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use omird::engine::testing::ByHand;
use omird::engine::{Engine, Query};
use omird_embedding::{Embedder, StaticModel, Vector};
use omird_tests::random::Random;
use serde_json::json;

use crate::echo::echo_key;
use crate::machine::{self, Machine};
use crate::measure::{key, local, store};
use crate::process::{Process, free_endpoint};
use crate::questions::{Kind, Question, questions};
use crate::records::Records;
use crate::report::{Aim, Report, Row, Unit};
use crate::samples::Samples;
use crate::wire::Wire;
use crate::{Result, path};

/// Questions that are asked of one side before it is the other's turn.
const BATCH: usize = 20;
/// Different questions of a kind.
const QUESTIONS: usize = 500;
/// Numbers of a vector that is made here.
const DIMS: usize = 64;
/// Longest time for all vectors to be made.
const PATIENCE: Duration = Duration::from_secs(900);
/// The kinds of questions that have words and nothing else.
const KINDS: [Kind; 2] = [Kind::Words, Kind::Sentence];

/// Measures what vectors cost.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Folder for the data, which is removed in the end
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    data: PathBuf,
    /// Records in the store, one run for each
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [10_000, 100_000])]
    sizes: Vec<u64>,
    /// A model's folder; without it a model of 64 numbers is made
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// Questions of each kind
    #[arg(long, default_value_t = 500)]
    count: usize,
    /// Another seed gives other records and questions
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Measures and prints.
///
/// # Errors
/// If a process, the disk or the network fails, or a request is refused.
pub fn run(options: &Options) -> Result<()> {
    let folder = tempfile::tempdir_in(&options.data)?;
    let machine = Machine::ask(folder.path())?;
    let model = match &options.model {
        Some(model) => model.clone(),
        None => write_model(&folder.path().join("made-here"), options.seed)?,
    };
    let embedder = std::sync::Arc::new(StaticModel::open(&model, omird_text::Language::English)?);
    let endpoint = free_endpoint()?;
    let _echo = Process::echo(&folder.path().join("appended"), &endpoint)?;
    let floor = Wire::open(&endpoint)?;
    let mut report = Report::new();
    for &size in &options.sizes {
        let data = folder.path().join(format!("store-{size}"));
        report.section(format!("{size} records, {} numbers", embedder.model().dims));
        over_network(&mut report, options, &model, &data, &floor, size)?;
        in_process(&mut report, options, &embedder, &data, size)?;
    }
    report.row(sentence_row(&*embedder, options));
    println!("{machine} and {:.1} at the end\n{}", machine::load(), report.table());
    Ok(())
}

/// Writes a model with a random vector for each word.
fn write_model(dir: &Path, seed: u64) -> Result<PathBuf> {
    std::fs::create_dir_all(dir)?;
    let words = crate::words::Words::new();
    let mut vocabulary = String::from("[PAD]\n[UNK]\n");
    let mut random = Random::new(seed);
    let mut table = Vec::new();
    let mut rows = 2;
    table.resize(2 * DIMS * size_of::<f32>(), 0);
    for rank in 0..words.len() {
        vocabulary.push_str(&words.text(&[rank]));
        vocabulary.push('\n');
        for _ in 0..DIMS {
            table.extend_from_slice(&(random.normal() as f32).to_le_bytes());
        }
        rows += 1;
    }
    let header = json!({"embeddings": {
        "dtype": "F32", "shape": [rows, DIMS], "data_offsets": [0, table.len()]
    }});
    let header = header.to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.extend_from_slice(&table);
    std::fs::write(dir.join("model.safetensors"), file)?;
    std::fs::write(dir.join("vocab.txt"), vocabulary)?;
    std::fs::write(dir.join("config.json"), r#"{"normalize": true}"#)?;
    Ok(dir.to_owned())
}

fn over_network(
    report: &mut Report,
    options: &Options,
    model: &Path,
    data: &Path,
    floor: &Wire,
    size: u64,
) -> Result<()> {
    let config = data.with_extension("toml");
    let section = format!("[embedding]\nbackend = \"static\"\nmodel = {:?}\n", model.display());
    std::fs::write(&config, section)?;
    let endpoint = free_endpoint()?;
    let process = Process::daemon_with(data, &endpoint, "off", Some(&config))?;
    let daemon = Wire::open(&endpoint)?;
    let mut records = Records::new(options.seed, path::Path::walk());
    let began = Instant::now();
    store::fill(&daemon, &mut records, size)?;
    let embedding = embedded(&daemon)?;
    let took = began.elapsed();
    report.row(
        Row::number("filling until all vectors are there", Unit::PerSecond, per(size, took))
            .note(format!("{} a request; asked for: 5000", store::CHUNK)),
    );
    let of = |member: &str| embedding[member].as_f64().unwrap_or(f64::NAN);
    let space = &embedding["models"][0];
    let vectors = space["vectors"].as_f64().unwrap_or(f64::NAN);
    let memory = space["memoryBytes"].as_f64().unwrap_or(f64::NAN);
    report.row(
        Row::number("disk for a vector", Unit::Bytes, of("bytes") / vectors).aim(Aim::Below(80.5)),
    );
    report.row(
        Row::number("memory for a vector", Unit::Bytes, memory / vectors)
            .note("aim 72, of full blocks"),
    );
    for kind in KINDS {
        let asked = questions(kind, QUESTIONS, &records, options.seed);
        let (mut recall, mut bare) = (Samples::default(), Samples::default());
        let mut turn = asked.chunks(BATCH).cycle();
        while recall.len() < options.count {
            let batch = turn.next().unwrap_or_default();
            let mut bytes = Vec::new();
            for question in batch {
                let selector = format!("{}?{}", key("recall"), question.parameters);
                bytes.push(recall.time(|| daemon.ask(&selector, None))?.len());
            }
            for (question, bytes) in batch.iter().zip(bytes) {
                let selector = format!("{}?{}", echo_key(bytes), question.parameters);
                bare.time(|| floor.ask(&selector, None))?;
            }
        }
        report.row(
            Row::over(format!("{} and meaning, Zenoh", kind.name()), &recall, &bare, BATCH)
                .aim(Aim::Below(3e-3)),
        );
    }
    drop(daemon);
    process.stop()?;
    Ok(())
}

/// Waits until all vectors are made; what status says of them.
fn embedded(daemon: &Wire) -> Result<serde_json::Value> {
    let began = Instant::now();
    loop {
        let status: serde_json::Value = serde_json::from_slice(&daemon.ask(&key("status"), None)?)?;
        let embedding = &status["embedding"];
        if embedding["pending"] == 0 && embedding["models"][0]["vectors"].as_u64() > Some(0) {
            return Ok(embedding.clone());
        }
        if began.elapsed() > PATIENCE {
            return Err(format!("vectors are not made: {embedding}").into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn in_process(
    report: &mut Report,
    options: &Options,
    embedder: &std::sync::Arc<StaticModel>,
    data: &Path,
    size: u64,
) -> Result<()> {
    let (engine, _) = local::open(data)?;
    engine.embed_with(Some(embedder.clone()));
    // Some of the same records again: their traits are what questions are about.
    let mut records = Records::new(options.seed, path::Path::walk());
    for _ in 0..size.min(20_000) {
        records.next();
    }
    wait_for_vectors(&engine, &records, options)?;
    for kind in KINDS {
        let asked = questions(kind, QUESTIONS, &records, options.seed);
        let (mut with, mut without) = (Samples::default(), Samples::default());
        let (mut matches, mut turn) = (0, asked.chunks(BATCH).cycle());
        while with.len() < options.count {
            let batch = turn.next().unwrap_or_default();
            for question in batch {
                matches += ask(&engine, question, true, &mut with)?;
            }
            for question in batch {
                ask(&engine, question, false, &mut without)?;
            }
        }
        let mean = matches / with.len().max(1) as u64;
        report.row(
            Row::over(format!("{} and meaning, in process", kind.name()), &with, &without, BATCH)
                .note(format!("beside words alone; {mean} matches")),
        );
    }
    engine.stop();
    Ok(())
}

/// Waits until kept vectors are read in and missing ones are made: until nothing is pending and a question has had the same
/// number of matches for a second.
fn wait_for_vectors(engine: &Engine, records: &Records, options: &Options) -> Result<()> {
    let [question] = &questions(Kind::Words, 1, records, options.seed)[..] else { return Ok(()) };
    let query = Query { by_meaning: true, touch: false, ..question.query.clone() };
    let began = Instant::now();
    let (mut before, mut looks) = (0, 0);
    while looks < 10 {
        if began.elapsed() > PATIENCE {
            return Err("the vectors are not there".into());
        }
        std::thread::sleep(Duration::from_millis(100));
        let total = engine.recall(&query).map_err(|error| error.message)?.total;
        looks = if total == before && engine.unembedded() == 0 { looks + 1 } else { 0 };
        before = total;
    }
    Ok(())
}

fn ask(
    engine: &Engine,
    question: &Question,
    by_meaning: bool,
    samples: &mut Samples,
) -> Result<u64> {
    let query = Query { by_meaning, ..question.query.clone() };
    Ok(samples.time(|| engine.recall(&query)).map_err(|error| error.message)?.total)
}

/// The time to embed a sentence.
fn sentence_row(embedder: &dyn Embedder, options: &Options) -> Row {
    let mut records = Records::new(options.seed, path::Path::walk());
    (0..1000).for_each(|_| drop(records.next()));
    let mut samples = Samples::default();
    let mut numbers = vec![0.0; embedder.model().dims];
    for traits in &records.traits {
        let text = records.words.text(&traits.words);
        samples.time(|| embedder.embed(&text, &mut numbers).then(|| Vector::of(&numbers)));
    }
    Row::times("embedding of 8 to 20 words", &samples).aim(Aim::Below(3e-4))
}

fn per(count: u64, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}
