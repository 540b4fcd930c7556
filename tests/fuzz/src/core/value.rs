//! Values made of choices: every kind of number, text and container goes through both encodings.

use crate::support::{Choices, survives_both_encodings};

/// Makes a value of `bytes` and takes it through both encodings.
pub fn run(bytes: &[u8]) {
    survives_both_encodings(&Choices::new(bytes).value(6));
}
