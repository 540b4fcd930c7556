//! Ways to the threads of [`threads`](crate::threads). A call puts into them, so they know neither calls nor threads.

pub(crate) mod patterns;
pub(crate) mod vectors;
