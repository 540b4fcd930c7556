//! The work on one request, as the transport lets it go on.

/// The pace of the work on a request, and whether it is still worth doing.
pub trait Pacer {
    /// Returns true while the client waits for the answer.
    fn is_wanted(&self) -> bool;

    /// Rests for the work that was done.
    fn rest(&mut self);

    /// The same, where it is worth it.
    fn rest_if_due(&mut self);
}

/// The client waits no longer: it is gone, or has cancelled the request.
#[derive(Debug)]
pub struct Cancelled;
