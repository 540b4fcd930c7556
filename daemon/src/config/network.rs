//! `[network]`: how Zenoh meets others.

use std::path::PathBuf;

use serde::Deserialize;

use super::Invalid;
use crate::zenoh::{Mode, Network, check_endpoint};

/// `[network]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkSection {
    /// `peer`, `client` or `router`.
    pub mode: Option<Mode>,
    /// Endpoints to listen on.
    pub listen: Option<Vec<String>>,
    /// Endpoints to connect to.
    pub connect: Option<Vec<String>>,
    /// Zenoh's own file.
    pub zenoh_config: Option<PathBuf>,
}

/// Checks the section. What it leaves out is left to Zenoh's own file.
pub fn resolve(written: NetworkSection) -> Result<Network, Invalid> {
    for (key, endpoints) in
        [("network.listen", &written.listen), ("network.connect", &written.connect)]
    {
        for endpoint in endpoints.iter().flatten() {
            check_endpoint(endpoint).map_err(|message| Invalid::other(key, message))?;
        }
    }
    let leads_nowhere = written.connect.as_ref().is_some_and(Vec::is_empty);
    if written.mode == Some(Mode::Client) && leads_nowhere && written.zenoh_config.is_none() {
        let message = "a client needs the endpoint of a router: [\"tcp/127.0.0.1:7447\"], or leave the key out";
        return Err(Invalid::other("network.connect", message));
    }
    Ok(Network {
        mode: written.mode,
        listen: written.listen,
        connect: written.connect,
        file: written.zenoh_config,
        rules: None,
    })
}
