//! The work on one request, as the transport lets it go on.

/// The pace of the work on a request, and whether it is still worth doing.
pub trait Pacer {
    /// Returns true while somebody wants to know.
    fn is_wanted(&self) -> bool;

    /// Rests for the work that was done.
    fn rest(&mut self);

    /// The same, where it is worth it.
    fn rest_if_due(&mut self);
}

/// Nobody wants to know any more.
#[derive(Debug)]
pub struct Cancelled;
