//! Targets that need no daemon.

pub mod cbor;
pub mod document;
pub mod embedding;
pub mod instant;
pub mod json;
pub mod link;
pub mod link_message;
pub mod manifesto;
pub mod number;
pub mod pose;
pub mod profile;
pub mod proof;
pub mod reference;
pub mod stream;
pub mod text;
pub mod uri;
pub mod value;
