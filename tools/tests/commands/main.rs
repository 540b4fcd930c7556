//! The program `omir` as people and scripts meet it, command by command.

mod backup;
mod client;
mod convert;
mod fleet;
mod frames;
mod import;
mod linked;
mod mcp;
mod mistakes;
mod recording;
mod remember;
mod restore;
mod serial;
mod token;
mod validate;
