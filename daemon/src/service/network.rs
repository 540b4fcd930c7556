//! How the daemon is on the network. Closed by default: `docs/keys.md`, "Network".

use std::fmt;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::PathBuf;

/// Where the daemon listens when nothing is configured.
pub const DEFAULT_LISTEN: &str = "tcp/127.0.0.1:7448";
/// The router it keeps trying to reach when nothing is configured.
pub const DEFAULT_ROUTER: &str = "tcp/127.0.0.1:7447";

/// Zenoh's names for where it listens, and whom it connects to.
const LISTEN: &str = "listen/endpoints";
const CONNECT: &str = "connect/endpoints";
/// How it keeps trying to connect.
const RETRY: &str = "{ period_init_ms: 500, period_max_ms: 4000, period_increase_factor: 2 }";

/// Bytes of a message beside its payload: key, parameters, attachment.
const ENVELOPE: usize = 1 << 20;
/// How many times as large a message as may be is heard out, to be refused in words. Zenoh drops what is larger, and
/// nobody is told.
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
}

/// What Zenoh says went wrong, in one line: without the places in its source that it appends, the types that it shows,
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

/// Why the network is not open, and what to do.
#[derive(Debug)]
pub(super) enum NotOpened {
    /// An endpoint cannot be listened on.
    Endpoint {
        /// Which.
        endpoint: String,
        /// What the machine says about it.
        kind: ErrorKind,
    },
    /// Anything else, as Zenoh says it.
    Other(String),
}

impl NotOpened {
    /// Finds out why, where Zenoh could not open `listening` and says `said`. Zenoh has its reasons as text alone, so the
    /// machine is asked once more for the endpoint that the text names.
    pub(super) fn find(listening: &[String], said: String) -> Self {
        let refused = listening.iter().find_map(|endpoint| {
            let address = address(endpoint).filter(|address| said.contains(address))?;
            let kind = TcpListener::bind(address).err()?.kind();
            Some((endpoint.clone(), kind))
        });
        match refused {
            Some((endpoint, kind)) => Self::Endpoint { endpoint, kind },
            None => Self::Other(said),
        }
    }
}

/// The address of an endpoint over TCP.
fn address(endpoint: &str) -> Option<&str> {
    let (protocol, rest) = endpoint.split_once('/')?;
    matches!(protocol, "tcp" | "tls").then(|| rest.split(['?', '#']).next().unwrap_or_default())
}

impl fmt::Display for NotOpened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listen = "--listen, or listen in [network]";
        match self {
            Self::Endpoint { endpoint, kind: ErrorKind::AddrInUse } => write!(
                f,
                "{endpoint} is taken: another program listens there. Is it another omird, perhaps the service (systemctl \
                 status omird)? Stop it, or name a free endpoint with {listen}"
            ),
            Self::Endpoint { endpoint, kind: ErrorKind::AddrNotAvailable } => write!(
                f,
                "{endpoint}: this machine has no such address now (`ip address` shows those it has; tcp/0.0.0.0 is all of \
                 them); name another with {listen}"
            ),
            Self::Endpoint { endpoint, kind: ErrorKind::PermissionDenied } => write!(
                f,
                "{endpoint}: omird may not listen there, as on a port below 1024; name another with {listen}"
            ),
            Self::Endpoint { endpoint, kind } => {
                write!(f, "the network could not be opened: {endpoint}: {kind}")
            }
            Self::Other(said) => write!(f, "the network could not be opened: {said}"),
        }
    }
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

    /// As Zenoh's configuration, for payloads of up to `most` bytes.
    pub(super) fn to_zenoh(&self, most: usize) -> Result<zenoh::Config, String> {
        let mut config = match &self.file {
            Some(path) => zenoh::Config::from_file(path)
                .map_err(|error| format!("{}: {}", path.display(), plain(&error)))?,
            None => zenoh::Config::default(),
        };
        // Zenoh's own defaults are open to everybody who reaches the machine: what its file leaves at them is said here.
        let open = zenoh::Config::default();
        let is_stated = |config: &zenoh::Config, key: &str| {
            config.get_json(key).ok() != open.get_json(key).ok()
        };
        let set = |config: &mut zenoh::Config, key: &str, value: &str| {
            config
                .insert_json5(key, value)
                .map_err(|error| format!("Zenoh refuses {key} = {value}: {}", plain(&error)))
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
            let list = serde_json::to_string(&list).map_err(|error| error.to_string())?;
            set(&mut config, key, &list)?;
        }
        // Zenoh puts a message together before anybody looks at it, and by itself allows one gibibyte. A router
        // passes on what is for others, of any size.
        let is_router = config.get_json("mode").is_ok_and(|mode| mode == "\"router\"");
        let heard = most.saturating_mul(HEARD_OUT).saturating_add(ENVELOPE);
        let most = (!is_router).then(|| heard.to_string());
        // Keep trying for ever, without giving up the start: the router may come later. A client is nobody without it,
        // and Zenoh would not come back from opening it.
        let patient = |value| (!is_client).then_some(value);
        let closed = [
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

    /// The endpoints it comes to listen on.
    ///
    /// # Errors
    /// As [`Network::check`].
    pub fn listening(&self) -> Result<Vec<String>, String> {
        self.to_zenoh(0).map(|config| endpoints(&config, LISTEN))
    }

    /// Whether it connects to nobody, so that it hears only who connects to it.
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
mod tests {
    use super::*;

    fn with_file(text: &str, network: Network) -> (tempfile::TempDir, Network) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("zenoh.json5");
        std::fs::write(&file, text).unwrap();
        (folder, Network { file: Some(file), ..network })
    }

    #[test]
    fn why_nothing_is_listened_on_is_said_with_the_endpoint() {
        let find = |endpoint: &str| {
            let said = format!("Can not create a new TCP listener bound to {endpoint}: what");
            NotOpened::find(&["unixsock-stream//tmp/x".to_owned(), endpoint.to_owned()], said)
        };
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = format!("tcp/{}", other.local_addr().unwrap());
        let said = find(&format!("{taken}?so_sndbuf=1000")).to_string();
        assert!(
            said.starts_with(&format!("{taken}?so_sndbuf=1000 is taken: another program")),
            "{said}"
        );
        // Of a network for documentation (RFC 5737).
        let said = find("tcp/192.0.2.1:7448").to_string();
        assert!(said.starts_with("tcp/192.0.2.1:7448: this machine has no such address"), "{said}");
        let endpoint = "tcp/127.0.0.1:7448".to_owned();
        let low = NotOpened::Endpoint { endpoint, kind: ErrorKind::PermissionDenied }.to_string();
        assert!(low.starts_with("tcp/127.0.0.1:7448: omird may not listen there"), "{low}");
        drop(other);
        let said = find(&taken).to_string();
        assert!(said.starts_with("the network could not be opened: Can not create"), "{said}");
    }

    fn get(network: &Network, key: &str) -> String {
        network.to_zenoh(32 << 20).unwrap().get_json(key).unwrap()
    }

    #[test]
    fn what_zenoh_says_is_one_line_without_its_insides() {
        for (text, expected) in [
            (
                "No such file (os error 2) at /build/registry/src/lib.rs:1.",
                "No such file (os error 2)",
            ),
            (
                "JSON error: Message { msg: \"unknown field `conect`\", location: Some(Location { line: 1, column: 17 }) } at /x.rs:1.",
                "line 1, column 17: unknown field `conect`",
            ),
            ("Json5Err(Message { msg: \"no\", location: None })", "no"),
            (
                " --> 2:1\n  |\n2 | \n  | ^---\n  |\n  = expected a value at /x.rs:1.",
                "line 2, column 1: expected a value",
            ),
            ("Unable to connect to any of [tcp/a:1]! ", "Unable to connect to any of [tcp/a:1]!"),
        ] {
            assert_eq!(plain(&text), expected);
        }
    }

    #[test]
    fn zenoh_takes_larger_messages_than_requests_may_be_and_not_any() {
        let most = |network: &Network| get(network, "transport/link/rx/max_message_size");
        assert_eq!(most(&Network::default()), (97_usize << 20).to_string());
        let router = Network { mode: Some(Mode::Router), ..Network::default() };
        assert_eq!(most(&router), (1_usize << 30).to_string(), "it passes on what is for others");
        let text = "{ transport: { link: { rx: { max_message_size: 12345 } } } }";
        let (_folder, own) = with_file(text, Network::default());
        assert_eq!(most(&own), "12345", "what Zenoh's own file says stands");
        let (_folder, router) = with_file("{ mode: 'router' }", Network::default());
        assert_eq!(most(&router), (1_usize << 30).to_string());
    }

    /// Somebody adds users, and must not let everybody in by that.
    #[test]
    fn a_zenoh_file_about_something_else_opens_nothing() {
        let (_folder, network) = with_file(
            "{ transport: { auth: { usrpwd: { user: 'r', password: 'p' } } } }",
            Network::default(),
        );
        let closed = Network::default();
        for key in [
            "mode",
            LISTEN,
            CONNECT,
            "scouting/multicast/enabled",
            "timestamping/enabled",
            "connect/timeout_ms",
            "connect/exit_on_failure",
            "connect/retry",
        ] {
            assert_eq!(get(&network, key), get(&closed, key), "{key}");
        }
        assert_eq!(get(&network, "scouting/multicast/enabled"), "false");
        assert_eq!(network.listening().unwrap(), [DEFAULT_LISTEN]);
        assert_eq!(get(&closed, CONNECT), format!("[\"{DEFAULT_ROUTER}\"]"));
        assert_eq!(get(&closed, "mode"), "\"peer\"");
    }

    #[test]
    fn a_zenoh_file_says_what_is_not_said_here() {
        let text = "{ mode: 'router', listen: { endpoints: { router: ['tcp/127.0.0.1:1'], peer: [] } }, \
                    scouting: { multicast: { enabled: true } } }";
        let (_folder, network) = with_file(text, Network::default());
        assert_eq!(network.listening().unwrap(), ["tcp/127.0.0.1:1"]);
        assert_eq!(get(&network, "mode"), "\"router\"");
        assert_eq!(get(&network, CONNECT), "[]", "only what is named is used");
        assert_eq!(get(&network, "scouting/multicast/enabled"), "true");
        let listen = Some(vec!["tcp/127.0.0.1:2".to_owned()]);
        let ours = Network { mode: Some(Mode::Peer), listen, ..Network::default() };
        let (_folder, network) = with_file(text, ours);
        assert_eq!(network.listening().unwrap(), ["tcp/127.0.0.1:2"]);
        assert_eq!(get(&network, "mode"), "\"peer\"");
    }

    /// It would wait for its router for ever, before it serves or hears a signal.
    #[test]
    fn a_client_gives_up_its_start() {
        let zenohs = zenoh::Config::default();
        let (_folder, of_file) = with_file("{ mode: 'client' }", Network::default());
        for client in [of_file, Network { mode: Some(Mode::Client), ..Network::default() }] {
            for key in ["connect/timeout_ms", "connect/exit_on_failure"] {
                assert_eq!(get(&client, key), zenohs.get_json(key).unwrap(), "{key}");
            }
            assert_eq!(client.listening().unwrap(), [""; 0], "it only connects");
        }
    }

    #[test]
    fn only_what_is_named_is_used() {
        let connect = Some(vec!["tcp/10.0.0.1:7447".to_owned()]);
        let network = Network { connect, ..Network::default() };
        assert_eq!(network.listening().unwrap(), [""; 0]);
        assert!(!network.reaches_nobody() && !Network::default().reaches_nobody());
        let listen = Some(vec!["tcp/0.0.0.0:7448".to_owned()]);
        assert!(Network { listen, ..Network::default() }.reaches_nobody());
        assert_eq!(get(&network, CONNECT), r#"["tcp/10.0.0.1:7447"]"#);
    }
}
