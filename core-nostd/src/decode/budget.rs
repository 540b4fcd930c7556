//! The budget of one document while it is decoded.

use alloc::format;

use super::{DEPTH_CEILING, DecodeError, DecodeErrorKind, Limits};

/// Counts values and depth while a decoder descends.
#[derive(Clone, Debug)]
pub struct Budget {
    items: usize,
    max_items: usize,
    max_depth: usize,
}

impl Budget {
    pub fn new(limits: &Limits) -> Self {
        Self {
            items: 0,
            max_items: limits.max_items,
            max_depth: limits.max_depth.min(DEPTH_CEILING),
        }
    }

    /// Counts one value that starts at `offset`.
    pub fn take(&mut self, offset: usize) -> Result<(), DecodeError> {
        if self.items >= self.max_items {
            return Err(DecodeError::new(
                offset,
                DecodeErrorKind::TooLarge,
                format!(
                    "more than {} values; split the document into smaller ones",
                    self.max_items
                ),
            ));
        }
        self.items += 1;
        Ok(())
    }

    /// Refuses a container at `offset` that would lie `depth` containers deep.
    pub fn check_depth(&self, offset: usize, depth: usize) -> Result<(), DecodeError> {
        if depth > self.max_depth {
            return Err(DecodeError::new(
                offset,
                DecodeErrorKind::Depth,
                format!("nested more than {} levels deep; flatten the value", self.max_depth),
            ));
        }
        Ok(())
    }
}
