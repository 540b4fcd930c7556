//! What measurements of recall share: the backends to compare, an engine that is filled, and means with their intervals.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use omird::engine::testing::ByHand;
use omird::engine::{Encoding, Engine, Fusion, Settings};
use omird_embedding::{Embedder, Hashed, StaticModel};
use omird_tests::random::Random;
use omird_text::Language;
use serde_json::Value;

use crate::Result;
use crate::measure::local;

/// Resources of one request while the store is filled.
const BATCH: usize = 1000;
/// Samples of a bootstrap.
const SAMPLES: usize = 2000;

/// What ranks: backends, and the numbers of the fusion.
#[derive(Debug, clap::Args)]
pub struct Ranking {
    /// A Model2Vec folder, for the rows of a static model
    #[arg(long)]
    model: Option<PathBuf>,
    /// The weight of words beside meaning
    #[arg(long)]
    words: Option<f64>,
    /// The share that a neighbour in time has
    #[arg(long)]
    neighbours: Option<f64>,
    /// The least cosine of a match by meaning
    #[arg(long)]
    min_cosine: Option<f64>,
    /// One backend alone: words, hashed or static
    #[arg(long)]
    only: Option<String>,
}

/// A name for the table, and what makes the vectors.
pub type Backend = (&'static str, Option<Arc<dyn Embedder>>);

impl Ranking {
    /// The embedders to compare.
    pub fn backends(&self) -> Result<Vec<Backend>> {
        let mut all: Vec<Backend> =
            vec![("words", None), ("hashed", Some(Arc::new(Hashed::new(Language::English))))];
        if let Some(dir) = &self.model {
            all.push(("static", Some(Arc::new(StaticModel::open(dir, Language::English)?))));
        }
        all.retain(|(name, _)| self.only.as_deref().is_none_or(|only| only == *name));
        Ok(all)
    }

    /// Opens an empty engine in a folder, with the numbers that were asked for.
    pub fn engine(&self, data: &Path, embedder: Option<Arc<dyn Embedder>>) -> Result<Engine> {
        let default = Fusion::default();
        let fusion = Fusion {
            words: self.words.unwrap_or(default.words),
            neighbours: self.neighbours.unwrap_or(default.neighbours),
            min_cosine: self.min_cosine.unwrap_or(default.min_cosine),
        };
        let engine = local::open_with(data, Settings { fusion, ..Settings::default() })?;
        engine.embed_with(embedder);
        Ok(engine)
    }
}

/// Stores resources, a thousand a request.
pub fn store(engine: &Engine, resources: &[Value]) -> Result<()> {
    for batch in resources.chunks(BATCH) {
        let payload = serde_json::to_vec(batch)?;
        let change = engine.prepare(&payload, Encoding::Json, None).map_err(|e| format!("{e}"))?;
        engine.execute(change).map_err(|e| format!("{e}"))?;
    }
    Ok(())
}

/// Waits until each memory has its vector.
pub fn wait_for_vectors(engine: &Engine, makes: bool) -> Result<()> {
    let began = Instant::now();
    // The embedding thread may not have looked at the last memory yet.
    std::thread::sleep(Duration::from_millis(300));
    while makes && engine.unembedded() > 0 {
        if began.elapsed() > Duration::from_secs(600) {
            return Err("vectors are not made".into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    // Words of the store get theirs after memories, and `pending` does not count them.
    if makes {
        std::thread::sleep(Duration::from_millis(500));
    }
    Ok(())
}

/// Returns the mean; 0 of nothing.
pub fn mean_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Mean and 95 % interval by a bootstrap, seeded.
pub fn interval(values: &[f64]) -> (f64, f64, f64) {
    let mut random = Random::new(1);
    let mut means: Vec<f64> = (0..SAMPLES)
        .map(|_| {
            let draw = |_| values[(random.bits() % values.len().max(1) as u64) as usize];
            if values.is_empty() {
                0.0
            } else {
                (0..values.len()).map(draw).sum::<f64>() / values.len() as f64
            }
        })
        .collect();
    means.sort_by(f64::total_cmp);
    (mean_of(values), means[SAMPLES * 25 / 1000], means[SAMPLES * 975 / 1000])
}
