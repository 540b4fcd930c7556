//! The tools of MCP, through the SDK's own client: what each does, what is refused, pages, progress and cancellation.

mod http;
mod pages;
mod refusals;
mod rig;
mod tools;
mod waiting;
mod whereabouts;
