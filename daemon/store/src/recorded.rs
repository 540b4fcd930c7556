//! Things that are recorded: versions of resources, their ends, and the transactions that made them. No disk here.
//!
//! | module | holds |
//! |---|---|
//! | `transaction` | the payload of one frame of a log: the changes of one request |
//! | `version` | one version of a resource: when it was recorded, and where its bytes lie |
//! | `tombstone` | ends of versions that no other version replaced |
//! | `ref_key` | the hash that stands for a reference in memory |
//! | `mark` | small state of the store: its time, counts of what was written |
//! | `stamps` | when a version was recorded whose stamp lies in the future |
//! | `values` | helpers for the values of log steps and manifests |

pub(crate) mod mark;
pub(crate) mod ref_key;
pub(crate) mod stamps;
pub(crate) mod tombstone;
pub(crate) mod transaction;
pub(crate) mod values;
pub(crate) mod version;
