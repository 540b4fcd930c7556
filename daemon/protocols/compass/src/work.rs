//! The methods: what each does with the store.

pub(crate) mod ace;
pub(crate) mod compression;
pub(crate) mod context;
pub(crate) mod criticality;
pub(crate) mod detection;
pub(crate) mod errors;
pub(crate) mod memify;
pub(crate) mod modelled;
pub(crate) mod patterns;
pub(crate) mod prune;
pub(crate) mod retrieve;
pub(crate) mod shown;
pub(crate) mod stages;
pub(crate) mod store;
pub(crate) mod tasks;
pub(crate) mod understood;
pub(crate) mod update;
