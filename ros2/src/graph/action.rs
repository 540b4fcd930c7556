//! Action servers: three services and two topics under `<name>/_action/`.

mod goals;
mod server;

pub use goals::{GoalId, Status};
pub use server::{ActionConfig, ActionServer, Ending, Goal, GoalHandler};
