//! Threads that work after calls were answered, each fed by a queue of [`queues`](crate::queues).

pub(crate) mod patterns;
pub(crate) mod vectors;
