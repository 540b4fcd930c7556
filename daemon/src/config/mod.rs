//! From what was written to what was resolved: checked, defaults filled in, every complaint
//! naming its key.

pub mod file;
mod flash;
mod forgetting;
mod invalid;
mod limits;
mod mistake;
mod quantity;
pub mod reload;
#[cfg(feature = "serial")]
mod serial;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::file::File;
pub use self::invalid::{ConfigError, Fault, Invalid, Origin};
use crate::clock::{SYNCHRONISED_FILE, Source};
use crate::engine::settings::{Durability, Settings};
use crate::service::{Network, check_endpoint};

/// How often the log is synced with `durability = "interval"` when it does not say.
pub const DEFAULT_SYNC_INTERVAL: Duration = Duration::from_millis(1000);
/// What is logged when nothing is configured.
pub const DEFAULT_LOG: &str = "info";
/// The first part of every key when none is configured.
pub const DEFAULT_PREFIX: &str = "omir";

/// What the daemon runs with.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Name of the robot: `[A-Za-z0-9._-]{1,64}`.
    pub robot: String,
    /// First part of every key.
    pub prefix: String,
    /// Data folder.
    pub data: PathBuf,
    /// What is logged, as `RUST_LOG` says it.
    pub log: String,
    /// Network.
    pub network: Network,
    /// Where the time comes from.
    pub source: Source,
    /// While this file is there, the system's clock is synchronised.
    pub synchronised_file: PathBuf,
    /// Engine.
    pub settings: Settings,
    /// Threads that read for queries.
    pub readers: usize,
    /// The node in the ROS 2 graph, if there is to be one.
    #[cfg(feature = "ros2")]
    pub ros2: Option<omir_ros2::rules::Ros2>,
    /// Serial ports to be served.
    #[cfg(feature = "serial")]
    pub serial: Vec<crate::serial::Port>,
}

/// Reads a configuration file: what it says, and the keys as they are written.
///
/// # Errors
/// If it cannot be read or is no TOML, or has a key nobody knows; the message has line and key.
pub fn read(path: &Path) -> Result<(File, toml::Table), ConfigError> {
    let complain = |message: String| ConfigError {
        origin: Origin::File(path.to_owned()),
        invalid: Invalid::of_all(message),
    };
    let text = mistake::text_of(path).map_err(complain)?;
    let in_words = |error: toml::de::Error| complain(mistake::in_words(&text, &error));
    Ok((toml::from_str(&text).map_err(in_words)?, toml::from_str(&text).map_err(in_words)?))
}

/// Checks a configuration and fills in what it leaves out.
///
/// # Errors
/// Names the key and says what is allowed.
pub fn resolve(written: File, host: &Host) -> Result<Config, Invalid> {
    let defaults = Settings::default();
    let robot = match written.robot {
        Some(robot) => checked_name("robot", robot)?,
        None => host.robot(),
    };
    let prefix = match written.prefix {
        Some(prefix) => checked_prefix(prefix)?,
        None => DEFAULT_PREFIX.to_owned(),
    };
    let store = written.store;
    let interval = match store.sync_interval_ms {
        None => DEFAULT_SYNC_INTERVAL,
        Some(0) => return Err(Invalid::other("store.sync_interval_ms", "must be at least 1")),
        Some(millis) => Duration::from_millis(millis),
    };
    let durability = match store.durability.as_deref() {
        None | Some("sync") => Durability::Sync,
        Some("interval") => Durability::Interval(interval),
        Some("none") => Durability::None,
        Some(other) => {
            return Err(Invalid::none_of("store.durability", other, &["sync", "interval", "none"]));
        }
    };
    let asked = written.limits;
    #[cfg_attr(
        not(feature = "ros2"),
        expect(unused_mut, reason = "a section of ROS 2 names the frame")
    )]
    let mut settings = Settings {
        durability,
        limits: limits::resolve(&asked)?,
        queue_requests: within(
            "limits.queue_requests",
            asked.queue_requests,
            defaults.queue_requests,
            1..=1_000_000,
        )?,
        queue_bytes: within(
            "limits.queue_bytes",
            asked.queue_bytes,
            defaults.queue_bytes,
            1 << 16..=1 << 30,
        )?,
        segment_bytes: within(
            "store.segment_bytes",
            store.segment_bytes,
            defaults.segment_bytes,
            4 << 10..=1 << 30,
        )?,
        seal_after: seconds("store.seal_after_s", store.seal_after_s, defaults.seal_after)?,
        touch_interval: seconds(
            "store.touch_interval_s",
            store.touch_interval_s,
            defaults.touch_interval,
        )?,
        mark_interval: seconds(
            "store.mark_interval_s",
            store.mark_interval_s,
            defaults.mark_interval,
        )?,
        // 0: what is superseded may go at once.
        keep_history: Duration::from_secs(within(
            "store.keep_history_s",
            store.keep_history_s,
            defaults.keep_history.as_secs(),
            0..=3_153_600_000,
        )?),
        scrub_every: match within("store.scrub_days", store.scrub_days, 30, 0..=3650)? {
            0 => None,
            days => Some(Duration::from_secs(days * 86_400)),
        },
        index_from_bytes: defaults.index_from_bytes,
        purge_after: seconds("store.purge_after_s", store.purge_after_s, defaults.purge_after)?,
        segment_max_bytes: within(
            "store.segment_max_bytes",
            store.segment_max_bytes,
            defaults.segment_max_bytes,
            64 << 10..=1 << 30,
        )?,
        flash: flash::resolve(&written.flash)?,
        forgetting: forgetting::resolve(&written.forgetting)?,
        read_only: written.access.read_only.unwrap_or(defaults.read_only),
        fixed_frame: defaults.fixed_frame,
    };
    let source = match written.clock.source.as_deref() {
        None | Some("system") => Source::System,
        Some("simulated") => Source::Simulated,
        Some(other) => {
            return Err(Invalid::none_of("clock.source", other, &["system", "simulated"]));
        }
    };
    let synchronised_file =
        written.clock.synchronised_file.unwrap_or_else(|| SYNCHRONISED_FILE.into());
    if !synchronised_file.is_absolute() {
        let found = synchronised_file.display();
        return Err(Invalid::other(
            "clock.synchronised_file",
            format!("{found:?} is no absolute path"),
        ));
    }
    let network = written.network;
    for (key, endpoints) in
        [("network.listen", &network.listen), ("network.connect", &network.connect)]
    {
        for endpoint in endpoints.iter().flatten() {
            check_endpoint(endpoint).map_err(|message| Invalid::other(key, message))?;
        }
    }
    let network = Network {
        mode: network.mode,
        listen: network.listen,
        connect: network.connect,
        file: network.zenoh_config,
    };
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
    let readers = within("limits.readers", asked.readers, 2, 1..=64)?;
    #[cfg(feature = "ros2")]
    let ros2 = match written.ros2 {
        None => None,
        Some(section) => Some(ros2(&section, host, source)?).filter(|ros2| ros2.enabled),
    };
    // Where the rules put what they keep is where it is looked for.
    #[cfg(feature = "ros2")]
    if let Some(ros2) = &ros2 {
        settings.fixed_frame.clone_from(&ros2.fixed_frame);
    }
    #[cfg(feature = "serial")]
    let serial = serial::resolve(&written.serial)?;
    Ok(Config {
        robot,
        prefix,
        data,
        log,
        network,
        source,
        synchronised_file,
        settings,
        readers,
        #[cfg(feature = "ros2")]
        ros2,
        #[cfg(feature = "serial")]
        serial,
    })
}

#[cfg(feature = "ros2")]
fn ros2(
    section: &omir_ros2::rules::Ros2Section,
    host: &Host,
    source: Source,
) -> Result<omir_ros2::rules::Ros2, Invalid> {
    let ros2 = section.resolve_in(host.ros_domain_id.as_deref()).map_err(Invalid::of_all)?;
    if ros2.use_sim_time && source != Source::Simulated {
        let message = "the time can only come from /clock with \
                       clock.source = \"simulated\"";
        return Err(Invalid::other("ros2.use_sim_time", message));
    }
    Ok(ros2)
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

/// What the machine says, where the configuration says nothing.
#[derive(Debug, Clone, Default)]
pub struct Host {
    /// Its name.
    pub name: Option<String>,
    /// Who the daemon runs as.
    pub uid: Option<String>,
    /// Whether the daemon runs as root.
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

    /// What the service manager says, `/var/lib/omird` for root, the state folder for a person.
    fn data(&self) -> PathBuf {
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
mod tests {
    use super::*;
    use crate::service::{DEFAULT_LISTEN, DEFAULT_ROUTER, Mode};

    fn host() -> Host {
        Host { name: Some("rover 7!\n".into()), home: Some("/home/r".into()), ..Host::default() }
    }

    const SAMPLE: &str = include_str!("../../../config/omird.toml");

    #[test]
    fn the_sample_says_exactly_the_defaults() {
        let host = host();
        let mut defaults = resolve(File::default(), &host).unwrap();
        let resolved = |text: &str| resolve(toml::from_str(text).unwrap(), &host).unwrap();
        // As it is it changes nothing: what is edited into it is all that is edited.
        assert_eq!(resolved(SAMPLE), defaults);
        let line = |line: &str| match line.strip_prefix('#') {
            Some(default) if default.starts_with(|c: char| c.is_ascii_lowercase()) => {
                default.into()
            }
            _ => line.to_owned(),
        };
        let said: Vec<String> = SAMPLE.lines().map(line).collect();
        // These two say in the sample what they would otherwise take from the machine.
        defaults.robot = "robot".into();
        defaults.data = "/var/lib/omird".into();
        let mut resolved = resolved(&said.join("\n"));
        let network = std::mem::take(&mut resolved.network);
        let (listen, connect) = (DEFAULT_LISTEN.to_owned(), DEFAULT_ROUTER.to_owned());
        let said = Network {
            mode: Some(Mode::Peer),
            listen: Some(vec![listen]),
            connect: Some(vec![connect]),
            file: None,
        };
        assert_eq!(network, said);
        assert_eq!(resolved, defaults);
    }

    #[test]
    fn a_service_keeps_its_data_where_its_manager_says() {
        let host = Host { state_directory: Some("/var/lib/other".into()), ..host() };
        let data = |text: &str| resolve(toml::from_str(text).unwrap(), &host).unwrap().data;
        assert_eq!(data(""), PathBuf::from("/var/lib/other"));
        assert_eq!(data("data = '/media/card'"), PathBuf::from("/media/card"));
    }

    /// The keys of a section, as the complaint about one that is not known names them; nothing if
    /// `header` begins no section.
    fn keys(header: &str) -> Vec<String> {
        let complaint = match toml::from_str::<File>(&format!("{header}\nzzz = 1")) {
            Ok(file) => resolve(file, &host()).unwrap_err().to_string(),
            Err(error) => error.message().to_owned(),
        };
        if let Some((_, known)) = complaint.split_once("no such key; there are ") {
            return known.split(", ").map(str::to_owned).collect();
        }
        let known = complaint.split_once("unknown field `zzz`, expected ");
        let known = known.map_or("", |(_, known)| known);
        known.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    #[test]
    fn the_sample_shows_every_key() {
        // What is a comment shows its key too.
        let mut section = String::new();
        let mut shown = Vec::new();
        for line in SAMPLE.lines() {
            let line =
                line.strip_prefix('#').map_or(line, |comment| comment.trim_start_matches(' '));
            if line.starts_with('[') {
                section = line.split_whitespace().next().unwrap().to_owned();
                if let Some((of, list)) = section.trim_matches(['[', ']']).split_once('.') {
                    shown.push((format!("[{of}]"), list.to_owned()));
                }
            } else if let Some((key, _)) = line.split_once(" = ") {
                shown.push((section.clone(), key.to_owned()));
            }
        }
        let mut sections = Vec::new();
        let mut missing = Vec::new();
        for name in keys("") {
            let headers = [format!("[{name}]"), format!("[[{name}]]")];
            let Some(header) = headers.into_iter().find(|header| !keys(header).is_empty()) else {
                missing.push((String::new(), name));
                continue;
            };
            missing.extend(keys(&header).into_iter().map(|key| (header.clone(), key)));
            sections.push(header);
        }
        missing.retain(|key| !shown.contains(key));
        assert!(missing.is_empty(), "not in the sample: {missing:?}");
        for section in ["[network]", "[store]", "[access]"] {
            assert!(sections.contains(&section.to_owned()), "{section} was not looked at");
        }
        #[cfg(feature = "ros2")]
        assert!(sections.contains(&"[ros2]".to_owned()));
        #[cfg(feature = "serial")]
        assert!(sections.contains(&"[[serial]]".to_owned()));
    }

    #[test]
    fn complaints_name_their_key() {
        for (text, key) in [
            ("robot = 'a b'", "robot"),
            ("robot = '.'", "robot"),
            ("robot = '..'", "robot"),
            ("prefix = 'a//b'", "prefix"),
            ("data = ''", "data"),
            ("log = 'loud'", "log: \"loud\" is no level"),
            ("[store]\ndurability = 'maybe'", "store.durability"),
            ("[store]\nsegment_bytes = 1", "store.segment_bytes"),
            ("[flash]\nmax_bytes = 4000", "flash.max_bytes"),
            ("[flash]\nbytes_per_day = 1", "flash.bytes_per_day"),
            ("[flash]\nreserve_bytes = 1", "flash.reserve_bytes"),
            ("[flash]\ncard_bytes = 1", "flash.card_bytes"),
            ("[flash]\ncard_write_cycles = 0", "flash.card_write_cycles"),
            ("[flash]\ncard_write_factor = 0", "flash.card_write_factor"),
            ("[clock]\nsource = 'sundial'", "clock.source"),
            ("[clock]\nsynchronised_file = 'synced'", "clock.synchronised_file"),
            ("[limits]\nmax_depth = 113", "limits.max_depth"),
            ("[forgetting]\nsession_after_h = 0.0", "forgetting.session_after_h"),
            ("[forgetting]\nlongterm_after_h = nan", "forgetting.longterm_after_h"),
            ("[forgetting]\narchive_below = 0.6", "forgetting.archive_below"),
            ("[forgetting]\nmerge_similarity = 1.5", "forgetting.merge_similarity"),
            ("[forgetting]\nmerge_radius_m = -1.0", "forgetting.merge_radius_m"),
            ("[forgetting]\nsweep_interval_s = 0", "forgetting.sweep_interval_s"),
            ("[forgetting]\nexpire_after_s = 0", "forgetting.expire_after_s"),
            ("[network]\nlisten = ['garbage']", "network.listen"),
            ("[network]\nconnect = ['tcp/127.0.0.1:99999']", "network.connect"),
            ("[network]\nlisten = ['foo/1.2.3.4:1']", "network.listen"),
        ] {
            let file: File = toml::from_str(text).unwrap();
            let message = resolve(file, &host()).unwrap_err().to_string();
            assert!(message.starts_with(key), "{message}");
        }
        let unknown = toml::from_str::<File>("[store]\nsegmentbytes = 1").unwrap_err();
        assert!(unknown.to_string().contains("segmentbytes"));
    }

    #[cfg(feature = "ros2")]
    #[test]
    fn questions_are_asked_in_the_frame_that_rules_keep_places_in() {
        let frame = |text: &str| {
            let file: File = toml::from_str(text).unwrap();
            resolve(file, &host()).unwrap().settings.fixed_frame
        };
        assert_eq!(frame(""), "map");
        assert_eq!(frame("[ros2]"), "map");
        assert_eq!(frame("[ros2]\nfixed_frame = 'odom'"), "odom");
        assert_eq!(frame("[ros2]\nenabled = false\nfixed_frame = 'odom'"), "map");
    }

    #[test]
    fn a_named_endpoint_is_the_only_one() {
        let file: File = toml::from_str("[network]\nlisten = ['tcp/10.0.0.1:7448']").unwrap();
        let config = resolve(file, &host()).unwrap();
        assert_eq!(config.network.listen, Some(vec!["tcp/10.0.0.1:7448".to_owned()]));
        assert_eq!(config.network.connect, None);
        assert_eq!(config.robot, "rover7");
        assert_eq!(config.data, PathBuf::from("/home/r/.local/state/omird"));
    }
}
