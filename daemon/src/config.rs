//! From what was written to what was resolved: checked, defaults filled in, every complaint
//! naming its key.

mod access;
mod audit;
mod clock;
mod compass;
mod embedding;
mod experience;
pub mod file;
mod flash;
mod forgetting;
#[cfg(feature = "http")]
mod http;
mod invalid;
mod limits;
mod manifesto;
mod mistake;
mod network;
mod quantity;
mod recall;
pub mod reload;
#[cfg(feature = "ros2")]
mod ros2;
#[cfg(feature = "serial")]
mod serial;
mod store;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use omird_access::AccessSettings;

pub use self::embedding::Embedding;
use self::file::File;
pub use self::invalid::{ConfigError, Fault, Invalid, Origin};
use crate::audit::AuditSettings;
use crate::engine::{Settings, Source};
#[cfg(feature = "http")]
use crate::models::ModelServer;
use crate::protocols::compass::CompassSettings;
use crate::protocols::experience::ExperienceSettings;
use crate::protocols::manifesto::ManifestoSettings;
use crate::zenoh::Network;

/// Default filter of the log.
pub const DEFAULT_LOG: &str = "info";
/// The first part of every key when none is configured.
pub const DEFAULT_PREFIX: &str = "omir";

/// The checked configuration of a daemon.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Name of the robot: `[A-Za-z0-9._-]{1,64}`.
    pub robot: String,
    /// First part of every key.
    pub prefix: String,
    /// Data folder.
    pub data: PathBuf,
    /// Filter of the log, in the form of `RUST_LOG`.
    pub log: String,
    /// Network.
    pub network: Network,
    /// Source of the time.
    pub source: Source,
    /// While this file is there, the system's clock is synchronised.
    pub synchronised_file: PathBuf,
    /// Engine.
    pub settings: Settings,
    /// Tokens, JWTs and their bounds.
    pub access: AccessSettings,
    /// Threads that read for queries.
    pub readers: usize,
    /// The file of audit lines.
    pub audit: AuditSettings,
    /// Experience and hints.
    pub experience: ExperienceSettings,
    /// What makes vectors.
    pub embedding: Embedding,
    /// Manifesto Memory.
    pub manifesto: ManifestoSettings,
    /// COMPASS.
    pub compass: CompassSettings,
    /// The server of models that COMPASS asks.
    #[cfg(feature = "http")]
    pub compass_model: Option<ModelServer>,
    /// The node in the ROS 2 graph, if there is to be one.
    #[cfg(feature = "ros2")]
    pub ros2: Option<omir_ros2::rules::Ros2>,
    /// HTTP.
    #[cfg(feature = "http")]
    pub http: crate::http::Settings,
    /// Serial ports to be served.
    #[cfg(feature = "serial")]
    pub serial: Vec<crate::serial::Port>,
}

/// Reads a configuration file: what it says, and the keys as they are written.
///
/// # Errors
/// If it cannot be read or is no TOML, or has an unknown key; the message has line and key.
pub fn read(path: &Path) -> Result<(File, toml::Table), ConfigError> {
    let complain = |message: String| ConfigError {
        origin: Origin::File(path.to_owned()),
        invalid: Invalid::of_all(message),
    };
    let text = mistake::text_of(path).map_err(|error| complain(error.to_string()))?;
    let in_words = |error: toml::de::Error| complain(mistake::in_words(&text, &error));
    Ok((toml::from_str(&text).map_err(in_words)?, toml::from_str(&text).map_err(in_words)?))
}

/// Checks a configuration and fills in what it leaves out.
///
/// # Errors
/// Names the key and says what is allowed.
pub fn resolve(written: File, host: &Host) -> Result<Config, Invalid> {
    let robot = match written.robot {
        Some(robot) => checked_name("robot", robot)?,
        None => host.robot(),
    };
    let prefix = match written.prefix {
        Some(prefix) => checked_prefix(prefix)?,
        None => DEFAULT_PREFIX.to_owned(),
    };
    let of_store = store::resolve(&written.store, Settings::default())?;
    let (embedding, fusion) = embedding::resolve(&written.embedding)?;
    let limits = limits::resolve(&written.limits)?;
    let flash = flash::resolve(&written.flash)?;
    let forgetting = forgetting::resolve(&written.forgetting)?;
    let language = recall::resolve(&written.recall)?;
    let (source, synchronised_file) = clock::resolve(written.clock)?;
    let network = network::resolve(written.network)?;
    let data = match written.data {
        Some(data) if data.as_os_str().is_empty() => {
            let message = "an empty path is no folder; leave the key out";
            return Err(Invalid::other("data", message));
        }
        Some(data) => data,
        None => host.data(),
    };
    let log = written.log.unwrap_or_else(|| DEFAULT_LOG.to_owned());
    crate::logs::parse(&log).map_err(|message| Invalid::other("log", message))?;
    #[cfg(feature = "ros2")]
    let ros2 = ros2::resolve(written.ros2.as_ref(), host, source)?;
    #[cfg(feature = "ros2")]
    let (graph, robot_frame, fixed_frame) = match &ros2 {
        Some(ros2) => {
            (ros2.scopes.as_deref(), Some(ros2.robot_frame.as_str()), Some(&ros2.fixed_frame))
        }
        None => (None, None, None),
    };
    #[cfg(not(feature = "ros2"))]
    let (graph, robot_frame, fixed_frame) = (None, None, None::<&String>);
    let access = access::resolve(&written.access, graph)?;
    #[cfg(feature = "http")]
    let http = http::resolve(&written.http)?;
    #[cfg(feature = "serial")]
    let serial = serial::resolve(&written.serial)?;
    let audit = audit::resolve(written.audit)?;
    let experience = experience::resolve(&written.experience, robot_frame)?;
    let manifesto = manifesto::resolve(&written.manifesto);
    let compass = compass::resolve(&written.compass, robot_frame)?;
    #[cfg(feature = "http")]
    let compass_model = written.compass.model.as_ref().map(compass::server).transpose()?;
    #[cfg(not(feature = "http"))]
    if written.compass.model.is_some() {
        return Err(Invalid::other("compass.model", "this build has no HTTP, and so no way there"));
    }
    let settings = Settings {
        limits: limits.requests,
        queue_requests: limits.queue_requests,
        queue_bytes: limits.queue_bytes,
        flash,
        fusion,
        forgetting,
        read_only: written.access.read_only.unwrap_or(of_store.read_only),
        // Recalls use the frame into which the rules put their memories.
        fixed_frame: fixed_frame.cloned().unwrap_or(of_store.fixed_frame),
        language,
        ..of_store
    };
    Ok(Config {
        robot,
        prefix,
        data,
        log,
        network,
        source,
        synchronised_file,
        settings,
        access,
        readers: limits.readers,
        audit,
        experience,
        embedding,
        manifesto,
        compass,
        #[cfg(feature = "http")]
        compass_model,
        #[cfg(feature = "ros2")]
        ros2,
        #[cfg(feature = "http")]
        http,
        #[cfg(feature = "serial")]
        serial,
    })
}

fn checked_name(key: &str, name: String) -> Result<String, Invalid> {
    if matches!(name.as_str(), "." | "..") {
        return Err(Invalid::other(key, format!("{name:?} is a folder's way up, and no name")));
    }
    let is_good = (1..=64).contains(&name.len()) && name.bytes().all(is_name_byte);
    if is_good {
        Ok(name)
    } else {
        let message = format!("{name:?} is not 1 to 64 of the letters A-Z a-z 0-9 . _ -");
        Err(Invalid::other(key, message))
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

fn checked_prefix(prefix: String) -> Result<String, Invalid> {
    if !prefix.is_empty()
        && prefix.split('/').all(|part| !part.is_empty() && part.bytes().all(is_name_byte))
    {
        Ok(prefix)
    } else {
        let message = format!("{prefix:?} is no key such as \"omir\" or \"fleet/omir\"");
        Err(Invalid::other("prefix", message))
    }
}

fn within<T: PartialOrd + fmt::Display + Copy>(
    key: &str,
    asked: Option<T>,
    default: T,
    range: std::ops::RangeInclusive<T>,
) -> Result<T, Invalid> {
    match asked {
        None => Ok(default),
        Some(value) if range.contains(&value) => Ok(value),
        Some(value) => Err(Invalid::out_of_range(key, value, [*range.start(), *range.end()])),
    }
}

fn seconds(key: &str, asked: Option<u64>, default: Duration) -> Result<Duration, Invalid> {
    let seconds = within(key, asked, default.as_secs(), 1..=31_536_000)?;
    Ok(Duration::from_secs(seconds))
}

/// Facts of the machine, for keys that the configuration leaves out.
#[derive(Debug, Clone, Default)]
pub struct Host {
    /// Its name.
    pub name: Option<String>,
    /// The user id that the daemon runs as.
    pub uid: Option<String>,
    /// True if the daemon runs as root.
    pub is_root: bool,
    /// `$STATE_DIRECTORY`, where a service manager says that a service keeps its state (systemd.exec(5)).
    pub state_directory: Option<PathBuf>,
    /// `$XDG_STATE_HOME`.
    pub state_home: Option<PathBuf>,
    /// `$HOME`.
    pub home: Option<PathBuf>,
    /// `$ROS_DOMAIN_ID`, as ROS 2 nodes take it.
    pub ros_domain_id: Option<String>,
}

impl Host {
    /// Asks the machine.
    pub fn ask() -> Self {
        let set = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        let uid = uid.and_then(|ids| ids.split_whitespace().nth(1)).map(str::to_owned);
        Self {
            name: std::fs::read_to_string("/etc/hostname").ok(),
            is_root: uid.as_deref() == Some("0"),
            uid,
            state_directory: set("STATE_DIRECTORY"),
            state_home: set("XDG_STATE_HOME"),
            home: set("HOME"),
            ros_domain_id: std::env::var("ROS_DOMAIN_ID").ok().filter(|id| !id.is_empty()),
        }
    }

    /// The host's name as a robot's name, or `robot`.
    fn robot(&self) -> String {
        let name: String = self
            .name
            .as_deref()
            .unwrap_or_default()
            .trim()
            .chars()
            .filter(|c| u8::try_from(*c).is_ok_and(is_name_byte))
            .take(64)
            .collect();
        if matches!(name.as_str(), "" | "." | "..") { "robot".to_owned() } else { name }
    }

    /// Returns the folder that the service manager names, else `/var/lib/omird` for root, else the state folder of
    /// the user.
    pub fn data(&self) -> PathBuf {
        if let Some(folder) = &self.state_directory {
            return folder.clone();
        }
        if self.is_root {
            return PathBuf::from("/var/lib/omird");
        }
        self.state_home
            .clone()
            .or_else(|| Some(self.home.as_ref()?.join(".local/state")))
            .map_or_else(|| PathBuf::from("omird-data"), |state| state.join("omird"))
    }
}

#[cfg(test)]
mod tests;
