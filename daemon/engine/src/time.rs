//! Time of the store: the clocks it is made of, dates of unknown quality, and the stamp of a date that was filled in.

pub(crate) mod clock;
pub(crate) mod stamp;
pub(crate) mod timeline;
pub(crate) mod uncertainty;
