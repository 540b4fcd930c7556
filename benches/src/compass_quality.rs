//! `omird-bench compass-quality`: the quality of stage memory on the sets of `data/compass`, beside the aims of its specification.
//!
//! What is measured is the protocol over a real engine in a temporary folder, asked by JSON-RPC, and the rules of text. The
//! clock is the set's, ids are counted, and nothing is drawn by chance: two runs print the same figures.

mod figure;
mod keeping;
mod names;
mod pairs;
mod patterns;
mod published;
mod recall;
mod rig;
mod set;
mod stages;

use std::path::PathBuf;
use std::sync::Arc;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use omird_embedding::{Embedder, Hashed, StaticModel};
use omird_text::Language;

use crate::Result;
use figure::Figure;
use rig::Bed;

/// Measures the quality of stage memory on labelled sessions.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Folder with the sets
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/data/compass"))]
    sets: PathBuf,
    /// Folder for the data, which is removed in the end
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    data: PathBuf,
    /// Only these parts: stages, keeping, recall, patterns, pairs, names
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// A Model2Vec folder: questions are understood by its vectors too
    #[arg(long, conflicts_with = "hashed")]
    model: Option<PathBuf>,
    /// Questions are understood by hashed vectors too
    #[arg(long)]
    hashed: bool,
    /// Instead of a table: fail if a held-out figure is worse than it was published
    #[arg(long)]
    check: bool,
}

/// Measures and prints.
///
/// # Errors
/// A set cannot be read, or the protocol refuses what it must not.
pub fn run(options: &Options) -> Result<()> {
    let bed = Bed { below: options.data.clone(), embedder: embedder(options)? };
    let held_out = measured(options, &bed, "held_out")?;
    if options.check {
        published::check(&held_out)?;
        println!("{} figures, none worse than published", held_out.len());
        return Ok(());
    }
    let tune = measured(options, &bed, "tune")?;
    println!("{}", table(&held_out, &tune));
    Ok(())
}

fn embedder(options: &Options) -> Result<Option<Arc<dyn Embedder>>> {
    Ok(match &options.model {
        Some(folder) => Some(Arc::new(StaticModel::open(folder, Language::English)?)),
        None if options.hashed => Some(Arc::new(Hashed::new(Language::English))),
        None => None,
    })
}

fn measured(options: &Options, bed: &Bed, split: &str) -> Result<Vec<Figure>> {
    let agents = set::read(&options.sets, split)?;
    let is_wanted =
        |part: &str| options.only.is_empty() || options.only.iter().any(|one| one == part);
    let mut all = Vec::new();
    if is_wanted("stages") {
        all.extend(stages::figures(&agents, bed)?);
    }
    if is_wanted("keeping") {
        all.extend(keeping::figures(&agents, bed)?);
    }
    if is_wanted("recall") {
        all.extend(recall::figures(&agents, bed)?);
    }
    if is_wanted("pairs") {
        all.extend(pairs::figures(&agents, bed)?);
    }
    if is_wanted("patterns") {
        all.extend(patterns::figures(&agents, bed)?);
    }
    if is_wanted("names") {
        all.extend(names::figures(&agents)?);
    }
    Ok(all)
}

fn table(held_out: &[Figure], tune: &[Figure]) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::ASCII_MARKDOWN)
        .set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["", "held out (95 %)", "tune (95 %)", "aim", ""]);
    for (held_out, tune) in held_out.iter().zip(tune) {
        let met = match held_out.aim.is_met(held_out.value()) {
            Some(true) => "met",
            Some(false) => "missed",
            None => "",
        };
        let name = held_out.name.to_owned();
        table.add_row([name, held_out.words(), tune.words(), held_out.aim.words(), met.to_owned()]);
    }
    table.column_iter_mut().skip(1).for_each(|c| c.set_cell_alignment(CellAlignment::Right));
    table
}
