//! The settings of the network. Closed by default: `docs/keys.md`, "Network".

use std::path::PathBuf;

use super::error::{EndpointError, EndpointFault, NetworkError};
use super::listeners::Rules;

/// Default endpoint to listen on.
pub const DEFAULT_LISTEN: &str = "tcp/127.0.0.1:7448";
/// The router it keeps trying to reach when nothing is configured.
pub const DEFAULT_ROUTER: &str = "tcp/127.0.0.1:7447";

/// Zenoh's names for where it listens, and what it connects to.
const LISTEN: &str = "listen/endpoints";
const CONNECT: &str = "connect/endpoints";
/// Zenoh's name for its access rules.
const RULES: &str = "access_control";
/// The way it keeps trying to connect.
const RETRY: &str = "{ period_init_ms: 500, period_max_ms: 4000, period_increase_factor: 2 }";

/// Bytes of a message beside its payload: key, parameters, attachment.
const ENVELOPE: usize = 1 << 20;
/// Messages so many times as large as allowed are heard out, to be refused in words. Zenoh drops larger ones without a
/// word.
const HEARD_OUT: usize = 3;

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

/// The network settings. What is not named is what Zenoh's own file says, and what that does not say is closed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Network {
    /// Role; a peer.
    pub mode: Option<Mode>,
    /// Endpoints to listen on: [`DEFAULT_LISTEN`], or none where others are named to connect to.
    pub listen: Option<Vec<String>>,
    /// Endpoints to connect to, and to keep trying: [`DEFAULT_ROUTER`], or none where others are named to listen on.
    pub connect: Option<Vec<String>>,
    /// Zenoh's own configuration file, for TLS, users and access control.
    pub file: Option<PathBuf>,
    /// The rules under `access.require`, where Zenoh's file has none. A router passes on what others say to each other,
    /// and a client hears its router alone, so neither has them.
    pub rules: Option<Rules>,
}

/// Returns an error of Zenoh in one line: without the places in its source that it appends, the types that it shows,
/// and the drawing of a file's line.
pub fn plain(error: &dyn std::fmt::Display) -> String {
    let text = error.to_string();
    let text = text.split(" at /").next().unwrap_or_default().trim();
    if let Some((_, rest)) = text.split_once("msg: \"")
        && let Some((message, place)) = rest.split_once("\", location: ")
    {
        let numbers = place.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
        return match numbers.collect::<Vec<_>>().as_slice() {
            [line, column, ..] => format!("line {line}, column {column}: {message}"),
            _ => message.to_owned(),
        };
    }
    if let Some((place, fault)) = text.strip_prefix("--> ").and_then(|text| text.split_once('\n'))
        && let Some((line, column)) = place.trim().split_once(':')
        && let Some((_, fault)) = fault.split_once("= ")
    {
        return format!("line {line}, column {column}: {}", fault.trim());
    }
    text.to_owned()
}

/// The protocols this build can listen and connect with.
pub(super) const PROTOCOLS: &[&str] = if cfg!(feature = "tls") {
    &["tcp", "tls", "unixsock-stream"]
} else {
    &["tcp", "unixsock-stream"]
};

/// Checks that an endpoint is one this build can use.
///
/// # Errors
/// The part of it that is wrong.
pub fn check_endpoint(endpoint: &str) -> Result<(), EndpointError> {
    let wrong = |fault| EndpointError { endpoint: endpoint.to_owned(), fault };
    let (protocol, rest) = endpoint.split_once('/').ok_or_else(|| wrong(EndpointFault::Form))?;
    if !PROTOCOLS.contains(&protocol) {
        return Err(wrong(EndpointFault::Protocol));
    }
    let address = rest.split(['?', '#']).next().unwrap_or_default();
    let has_port = address
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if protocol != "unixsock-stream" && !has_port {
        return Err(wrong(EndpointFault::Port));
    }
    Ok(())
}

impl Network {
    /// Checks what can be checked without opening anything.
    ///
    /// # Errors
    /// If Zenoh's own file cannot be read, or Zenoh refuses a setting.
    pub fn check(&self) -> Result<(), NetworkError> {
        self.to_zenoh(0).map(drop)
    }

    /// As Zenoh's configuration, for payloads of up to `most` bytes.
    pub(super) fn to_zenoh(&self, most: usize) -> Result<zenoh::Config, NetworkError> {
        let mut config = match &self.file {
            Some(path) => zenoh::Config::from_file(path).map_err(|error| NetworkError::File {
                file: path.clone(),
                reason: plain(&error),
            })?,
            None => zenoh::Config::default(),
        };
        // Zenoh's own defaults are open to every program that reaches the machine: what its file leaves at them is said
        // here.
        let open = zenoh::Config::default();
        let is_stated = |config: &zenoh::Config, key: &str| {
            config.get_json(key).ok() != open.get_json(key).ok()
        };
        let set = |config: &mut zenoh::Config, key: &'static str, value: &str| {
            config.insert_json5(key, value).map_err(|error| {
                let (value, reason) = (value.to_owned(), plain(&error));
                NetworkError::Setting { key, value, reason }
            })
        };
        match self.mode {
            Some(mode) => set(&mut config, "mode", &format!("\"{}\"", mode.as_str()))?,
            None if is_stated(&config, "mode") => {}
            None => set(&mut config, "mode", "\"peer\"")?,
        }
        let is_client = config.get_json("mode").is_ok_and(|mode| mode == "\"client\"");
        let endpoints =
            [(LISTEN, &self.listen, DEFAULT_LISTEN), (CONNECT, &self.connect, DEFAULT_ROUTER)];
        // With any named, only what is named is used.
        let is_any_named =
            endpoints.iter().any(|(key, named, _)| named.is_some() || is_stated(&config, key));
        for (key, named, default) in endpoints {
            let list = match named {
                Some(named) => named.clone(),
                None if is_stated(&config, key) => continue,
                None if is_any_named || (is_client && key == LISTEN) => Vec::new(),
                None => vec![default.to_owned()],
            };
            set(&mut config, key, &serde_json::Value::from(list).to_string())?;
        }
        // Zenoh puts a message together before anybody looks at it, and by itself allows one gibibyte. A router
        // passes on what is for others, of any size.
        let is_router = config.get_json("mode").is_ok_and(|mode| mode == "\"router\"");
        let heard = most.saturating_mul(HEARD_OUT).saturating_add(ENVELOPE);
        let most = (!is_router).then(|| heard.to_string());
        // Keep trying for ever, without giving up the start: the router may come later. A client does nothing without
        // it, and Zenoh would not come back from opening it.
        let patient = |value| (!is_client).then_some(value);
        let rules = self.rules.as_ref().filter(|_| !is_router && !is_client);
        let control = rules.map(|rules| rules.control.to_string());
        let closed = [
            (RULES, control.as_deref()),
            ("scouting/gossip/target", rules.map(|rules| rules.told)),
            ("scouting/multicast/enabled", Some("false")),
            ("timestamping/enabled", Some("true")),
            ("connect/timeout_ms", patient("-1")),
            ("connect/exit_on_failure", patient("false")),
            ("connect/retry", Some(RETRY)),
            ("transport/link/rx/max_message_size", most.as_deref()),
        ];
        for (key, value) in closed {
            if let Some(value) = value
                && !is_stated(&config, key)
            {
                set(&mut config, key, value)?;
            }
        }
        Ok(config)
    }

    /// Returns the reason why the rules under `access.require` are not those of omird, if they are not.
    pub fn has_other_rules(&self) -> Option<&'static str> {
        let rules = self.rules.as_ref()?;
        let taken = |network: &Self| network.to_zenoh(0).ok()?.get_json(RULES).ok();
        if let Some(file) = &self.file
            && taken(&Self { file: Some(file.clone()), ..Self::default() })
                != taken(&Self::default())
        {
            return Some("Zenoh's own file has others");
        }
        let is_ours = taken(self)
            .and_then(|taken| serde_json::from_str::<serde_json::Value>(&taken).ok())
            .is_some_and(|taken| {
                taken["default_permission"] == rules.control["default_permission"]
            });
        (!is_ours).then_some("a router, or a client of one, has none of its own")
    }

    /// The endpoints it comes to listen on.
    ///
    /// # Errors
    /// As [`Network::check`].
    pub fn listening(&self) -> Result<Vec<String>, NetworkError> {
        self.to_zenoh(0).map(|config| endpoints(&config, LISTEN))
    }

    /// Returns true if it connects to no other, so that it hears only programs that connect to it.
    pub fn reaches_nobody(&self) -> bool {
        self.to_zenoh(0).is_ok_and(|config| endpoints(&config, CONNECT).is_empty())
    }
}

/// Endpoints as a configuration has them: a list for each role, or one for all.
fn endpoints(config: &zenoh::Config, key: &str) -> Vec<String> {
    let json = |key| {
        let text = config.get_json(key).unwrap_or_default();
        serde_json::from_str::<serde_json::Value>(&text).unwrap_or_default()
    };
    let listed = json(key);
    let mode = json("mode");
    let listed = mode.as_str().and_then(|mode| listed.get(mode)).unwrap_or(&listed);
    let texts = listed.as_array().into_iter().flatten().filter_map(serde_json::Value::as_str);
    texts.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
