//! Clocks that are wrong, and what time does to memories.

mod clock;
mod forgetting;
mod peer_clock;
mod years;
