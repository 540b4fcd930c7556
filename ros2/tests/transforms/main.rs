//! Transforms against three other ways to know them: a model that searches and multiplies 4 × 4
//! matrices of its own, a robot whose course has a closed form, and numbers computed by SciPy.
//!
//! Invariant 22 of ARCHITECTURE.md.

mod golden;
mod matrix;
mod model;
mod robot;
