//! Requests made into checked changes: decoding, preconditions, and the rule of imports.

pub(crate) mod import_rule;
pub(crate) mod importing;
pub(crate) mod precondition;
pub(crate) mod request;
