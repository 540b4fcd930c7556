//! How the daemon is on the network. Closed by default: `docs/keys.md`, "Network".

use std::path::PathBuf;

/// Where the daemon listens when nothing is configured.
pub const DEFAULT_LISTEN: &str = "tcp/127.0.0.1:7448";
/// The router it keeps trying to reach when nothing is configured.
pub const DEFAULT_ROUTER: &str = "tcp/127.0.0.1:7447";

/// Bytes of a message beside its payload: key, parameters, attachment.
const ENVELOPE: usize = 1 << 20;

/// The role in a Zenoh network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Listens and connects.
    #[default]
    Peer,
    /// Only connects.
    Client,
    /// Listens, connects, and routes for others.
    Router,
}

impl Mode {
    fn as_str(self) -> &'static str {
        match self {
            Self::Peer => "peer",
            Self::Client => "client",
            Self::Router => "router",
        }
    }
}

/// The network settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// Role.
    pub mode: Mode,
    /// Endpoints to listen on.
    pub listen: Vec<String>,
    /// Endpoints to connect to, and to keep trying.
    pub connect: Vec<String>,
    /// Zenoh's own configuration file, for TLS, users and access control.
    pub file: Option<PathBuf>,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            mode: Mode::Peer,
            listen: vec![DEFAULT_LISTEN.to_owned()],
            connect: vec![DEFAULT_ROUTER.to_owned()],
            file: None,
        }
    }
}

/// What Zenoh says went wrong, without the places in its source that it appends.
pub(super) fn plain(error: &dyn std::fmt::Display) -> String {
    let text = error.to_string();
    text.split(" at /").next().unwrap_or_default().trim().to_owned()
}

/// The protocols this build can listen and connect with.
const PROTOCOLS: &[&str] = if cfg!(feature = "tls") {
    &["tcp", "tls", "unixsock-stream"]
} else {
    &["tcp", "unixsock-stream"]
};

/// Checks that an endpoint is one this build can use.
///
/// # Errors
/// Says what is expected.
pub fn check_endpoint(endpoint: &str) -> Result<(), String> {
    let expected = "expected an endpoint such as tcp/127.0.0.1:7448";
    let (protocol, rest) =
        endpoint.split_once('/').ok_or_else(|| format!("{endpoint:?}: {expected}"))?;
    if !PROTOCOLS.contains(&protocol) {
        return Err(format!("{endpoint:?}: this build knows {}", PROTOCOLS.join(", ")));
    }
    let address = rest.split(['?', '#']).next().unwrap_or_default();
    let has_port = address
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if protocol != "unixsock-stream" && !has_port {
        return Err(format!("{endpoint:?}: {expected}, with a port from 0 to 65535"));
    }
    Ok(())
}

impl Network {
    /// Checks what can be checked without opening anything.
    ///
    /// # Errors
    /// If Zenoh's own file cannot be read, or Zenoh refuses a setting.
    pub fn check(&self) -> Result<(), String> {
        self.to_zenoh(0).map(drop)
    }

    /// As Zenoh's configuration, for messages of up to `most` bytes.
    pub(super) fn to_zenoh(&self, most: usize) -> Result<zenoh::Config, String> {
        let mut config = match &self.file {
            Some(path) => zenoh::Config::from_file(path)
                .map_err(|error| format!("{}: {}", path.display(), plain(&error)))?,
            None => zenoh::Config::default(),
        };
        let mut set = |key: &str, value: String| {
            config
                .insert_json5(key, &value)
                .map_err(|error| format!("Zenoh refuses {key} = {value}: {}", plain(&error)))
        };
        let list = |endpoints: &[String]| {
            serde_json::to_string(endpoints).map_err(|error| error.to_string())
        };
        // What Zenoh's own file says stands, unless it is said again here.
        if self.file.is_none() {
            set("mode", format!("\"{}\"", self.mode.as_str()))?;
            set("scouting/multicast/enabled", "false".to_owned())?;
            set("timestamping/enabled", "true".to_owned())?;
        }
        if self.file.is_none() || !self.listen.is_empty() {
            set("listen/endpoints", list(&self.listen)?)?;
        }
        if self.file.is_none() || !self.connect.is_empty() {
            set("connect/endpoints", list(&self.connect)?)?;
        }
        if self.file.is_none() {
            // Keep trying for ever, without giving up the start: the router may come later.
            set("connect/timeout_ms", "-1".to_owned())?;
            set("connect/exit_on_failure", "false".to_owned())?;
            set(
                "connect/retry",
                "{ period_init_ms: 500, period_max_ms: 4000, period_increase_factor: 2 }"
                    .to_owned(),
            )?;
            // Zenoh puts a message together before anybody looks at it, and by itself allows one gibibyte. A
            // router passes on what is for others, of any size.
            if self.mode != Mode::Router {
                let most = most.saturating_add(ENVELOPE);
                set("transport/link/rx/max_message_size", most.to_string())?;
            }
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zenoh_takes_no_larger_messages_than_requests_may_be() {
        let most = |network: &Network| {
            let config = network.to_zenoh(32 << 20).unwrap();
            config.get_json("transport/link/rx/max_message_size").unwrap()
        };
        assert_eq!(most(&Network::default()), (33_usize << 20).to_string());
        let router = Network { mode: Mode::Router, ..Network::default() };
        assert_eq!(most(&router), (1_usize << 30).to_string(), "it passes on what is for others");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("zenoh.json5");
        std::fs::write(&file, "{ transport: { link: { rx: { max_message_size: 12345 } } } }")
            .unwrap();
        let own = Network { file: Some(file), ..Network::default() };
        assert_eq!(most(&own), "12345", "what Zenoh's own file says stands");
    }
}
