//! The OMIR R1 memory model, without `std`.
//!
//! Everything the daemon, the command-line tool and a microcontroller agree on: what a resource is,
//! how it is written as JSON and as CBOR, when a document conforms, where a memory lies in space and
//! how it is forgotten. No clock, disk, network or randomness: times are handed in, bytes are handed
//! over. Depend on this crate to read or write OMIR; depend on the daemon to store it.
//!
//! Without features only the numeric modules remain (instants on the time line, geometry, forgetting).
//! With `fixed` come records for machines without an allocator: their CBOR, and a ring of them in flash;
//! with `link` the serial link, with `merkle` paths that show an entry to be in a list. With `alloc` come the dynamic
//! [`value`], the typed [`model`], both encodings and the validator; with `jcs` the canonical form of JSON, with
//! `proof` seals of segments and proofs of memories; `std`, on by default, adds the float routines of the dependencies
//! and [`quantity`].
//!
//! ```
//! # #[cfg(feature = "alloc")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use omir_core::decode::Limits;
//! use omir_core::model::{Entity, Resource};
//! use omir_core::{cbor, json};
//!
//! let kettle: Resource = Entity::new("kettle".parse()?, "Kettle").into();
//! let bytes = cbor::to_vec(&kettle.to_value());
//!
//! let value = cbor::from_slice(&bytes, &Limits::default())?;
//! assert_eq!(
//!     json::to_string(&kettle.to_value()),
//!     r#"{"resourceType":"Entity","id":"kettle","name":"Kettle"}"#
//! );
//! let faults = Resource::from_value(json::from_slice(br#"{"resourceType":"Entity"}"#, &Limits::default())?);
//! assert_eq!(faults.unwrap_err()[0].to_string(), "E120 /: \"id\" is missing; it is required here");
//! assert_eq!(Resource::from_value(value).as_ref(), Ok(&kettle));
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "alloc"))]
//! # fn main() {}
//! ```

#![cfg_attr(not(test), no_std)]

#[cfg(feature = "alloc")]
extern crate alloc;

pub mod bond;
pub mod code;
pub mod confidence;
pub mod event;
pub mod forgetting;
pub mod geo;
pub mod instant;
pub mod need;
pub mod operation;
pub mod space;
pub mod tier;
pub mod vocabulary;

#[cfg(any(feature = "alloc", feature = "fixed"))]
mod cbor_head;
#[cfg(any(feature = "alloc", feature = "fixed"))]
pub mod reference;

#[cfg(any(feature = "fixed", feature = "link"))]
pub mod crc;
#[cfg(feature = "link")]
pub mod link;

#[cfg(feature = "manifesto")]
pub mod manifesto;
#[cfg(feature = "merkle")]
pub mod merkle;

#[cfg(feature = "alloc")]
pub mod cbor;
#[cfg(feature = "alloc")]
pub mod decode;
#[cfg(feature = "alloc")]
pub mod extension;
#[cfg(feature = "fixed")]
pub mod fixed;
#[cfg(feature = "alloc")]
pub mod hex;
#[cfg(feature = "jcs")]
pub mod jcs;
#[cfg(feature = "alloc")]
pub mod json;
#[cfg(feature = "alloc")]
pub mod json_schema;
#[cfg(feature = "alloc")]
pub mod model;
#[cfg(feature = "alloc")]
pub mod number;
#[cfg(feature = "alloc")]
pub mod pointer;
#[cfg(feature = "alloc")]
pub mod profile;
#[cfg(feature = "proof")]
pub mod proof;
#[cfg(feature = "std")]
pub mod quantity;
#[cfg(feature = "proof")]
pub mod seal;
#[cfg(feature = "alloc")]
pub mod spatial;
#[cfg(feature = "alloc")]
pub mod stream;
#[cfg(feature = "alloc")]
pub mod validate;
#[cfg(feature = "alloc")]
pub mod value;
#[cfg(feature = "alloc")]
pub mod words;
