//! Protocols over the engine, across power cuts.

mod akashik;
mod experience;
mod manifesto;
