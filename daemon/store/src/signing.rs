//! Signing: the key of the device, and the seals of segments that it signs.
//!
//! A seal is a signature file beside a segment. Logs are made into segments elsewhere (`store/upkeep/sealer.rs`).
//!
//! | module | holds |
//! |---|---|
//! | `device_key` | the key of the device, made at the first start |
//! | `signature` | signing segments with that key, and keys derived from it |
//! | `seal_file` | reading the seals of segments from the card |

pub(crate) mod device_key;
pub(crate) mod seal_file;
pub(crate) mod signature;
