//! A daemon with an empty store that answers over HTTP, and its owner.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::Result;
use crate::http::client::{Address, Connection};
use crate::machine::Machine;
use crate::process::{self, Process};

/// A daemon over HTTP. It ends, and its data go, when this is dropped.
pub struct Owned {
    pub daemon: Process,
    /// Where it runs.
    pub machine: Machine,
    /// Its address for who may do everything.
    pub owner: Address,
    host: String,
    /// Dropped last: the daemon writes into it.
    _folder: TempDir,
}

impl Owned {
    /// Starts a daemon whose data lie in a new folder within `data`.
    ///
    /// # Errors
    /// If a process or the disk fails.
    pub fn open(data: &Path) -> Result<Self> {
        let folder = tempfile::tempdir_in(data)?;
        let machine = Machine::ask(folder.path())?;
        let data = folder.path().join("data");
        let endpoint = process::free_endpoint()?;
        let daemon = Process::daemon_with(&data, &endpoint, "127.0.0.1:0", None)?;
        let host = daemon.http().ok_or("the daemon says no address of HTTP")?.to_owned();
        let local = std::fs::read_to_string(data.join("keys/local.token"))?;
        let owner = Address::new(&host, Some(local.trim())).json();
        Ok(Self { daemon, machine, owner, host, _folder: folder })
    }

    /// Makes a token as `/access/v1/tokens` is asked for it, and returns the address of who has it.
    ///
    /// # Errors
    /// If the daemon refuses.
    pub fn client(&self, asked: &Value) -> Result<Address> {
        let (asked, path) = (asked.to_string(), "/access/v1/tokens");
        let mut connection = Connection::open(&self.owner)?;
        let answer = connection.ask("POST", path, Some(asked.as_bytes()))?;
        let answer: Value = serde_json::from_slice(&answer)?;
        let token = answer["token"].as_str().ok_or("there is no token in the answer")?;
        Ok(Address::new(&self.host, Some(token)).json())
    }
}
