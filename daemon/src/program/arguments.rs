//! The command line, and the configuration that it and its file come to.

use std::path::PathBuf;

use clap::Parser;

use super::memory_folder;
use crate::config::reload::Running;
use crate::config::{self, Config, Host, Invalid, Origin};
use crate::zenoh::Mode;

/// Memory daemon for robots: keeps what a robot saw, did and learned through power cuts, and
/// recalls it by place, time and words over Zenoh, HTTP, ROS 2 and serial lines.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "omird",
    version,
    after_help = "EXIT STATUS\n  \
        0  stopped by SIGINT or SIGTERM, everything on disk; with --check, the configuration is good\n  \
        1  the data folder or the network cannot be used, or a bug ended it: what it acknowledged is stored\n  \
        2  the command line or the configuration is wrong\n\n\
        EXAMPLES\n  \
        omird\n  \
        omird --robot rover --data /var/lib/omird --listen tcp/0.0.0.0:7448\n  \
        RUST_LOG=debug omird --config config/omird.toml"
)]
pub struct Arguments {
    /// Configuration file (TOML); see config/omird.toml
    #[arg(long, value_name = "FILE", env = "OMIRD_CONFIG")]
    pub config: Option<PathBuf>,
    /// Data folder
    #[arg(long, value_name = "DIR", env = "OMIRD_DATA")]
    pub data: Option<PathBuf>,
    /// Keep all in memory, for tests: nothing is written to a card, and all is gone at the stop
    #[arg(long, conflicts_with = "data")]
    pub memory_only: bool,
    /// Name of this robot, the second part of every key
    #[arg(long, value_name = "NAME", env = "OMIRD_ROBOT")]
    pub robot: Option<String>,
    /// Endpoint to listen on, instead of tcp/127.0.0.1:7448; may be repeated
    #[arg(long, value_name = "ENDPOINT")]
    pub listen: Vec<String>,
    /// Endpoint to connect to, instead of tcp/127.0.0.1:7447; may be repeated
    #[arg(long, value_name = "ENDPOINT")]
    pub connect: Vec<String>,
    /// Address of HTTP, instead of 127.0.0.1:7449; port 0 takes a free one, `off` closes it
    #[cfg(feature = "http")]
    #[arg(long, value_name = "ADDRESS", env = "OMIRD_HTTP", hide_env_values = true)]
    pub http: Option<String>,
    /// Role in the Zenoh network
    #[arg(long, value_name = "MODE")]
    pub mode: Option<Mode>,
    /// Zenoh's own JSON5 file, for TLS, users and access control
    #[arg(long, value_name = "FILE")]
    pub zenoh_config: Option<PathBuf>,
    /// Refuse every change
    #[arg(long)]
    pub read_only: bool,
    /// Check the configuration, say what is wrong with it, and end without starting
    #[arg(long)]
    pub check: bool,
}

impl Arguments {
    /// Returns the configuration that these arguments and their file come to.
    ///
    /// # Errors
    /// Names the key, and the file where that is what it stands in.
    pub fn resolve(&self, host: &Host) -> Result<Running, config::ConfigError> {
        let (mut file, written) = self.read()?;
        // Alone first: what is wrong with them is no fault of the file.
        let mut given = config::file::File::default();
        self.clone().onto(&mut given);
        let complain = |origin| move |invalid| config::ConfigError { origin, invalid };
        checked(given, host).map_err(complain(Origin::Arguments))?;
        self.clone().onto(&mut file);
        let origin = self.config.clone().map_or(Origin::Defaults, Origin::File);
        let config = checked(file, host).map_err(complain(origin))?;
        Ok(Running::new(written, config))
    }

    /// Reads the file: its contents, and its keys as they are written.
    pub(super) fn read(&self) -> Result<(config::file::File, toml::Table), config::ConfigError> {
        self.config.as_deref().map_or_else(|| Ok(Default::default()), config::read)
    }

    /// Puts the arguments over the keys of the file.
    pub(super) fn onto(self, file: &mut config::file::File) {
        let in_memory = self.memory_only.then(memory_folder::path);
        file.data = in_memory.or(self.data).or(file.data.take());
        file.robot = self.robot.or(file.robot.take());
        if !self.listen.is_empty() || !self.connect.is_empty() {
            let named = |endpoints: Vec<String>| (!endpoints.is_empty()).then_some(endpoints);
            file.network.listen = named(self.listen);
            file.network.connect = named(self.connect);
        }
        #[cfg(feature = "http")]
        {
            file.http.listen = self.http.or(file.http.listen.take());
        }
        file.network.mode = self.mode.or(file.network.mode);
        file.network.zenoh_config = self.zenoh_config.or(file.network.zenoh_config.take());
        if self.read_only {
            file.access.read_only = Some(true);
        }
    }
}

/// Checks a configuration, with the part of it that is Zenoh's.
pub(super) fn checked(file: config::file::File, host: &Host) -> Result<Config, Invalid> {
    let config = config::resolve(file, host)?;
    if let Some(path) = &config.network.file {
        // Zenoh's own words for it have its insides in them.
        let matter = match std::fs::metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                "there is no such file".to_owned()
            }
            Err(error) => error.to_string(),
            Ok(found) if found.is_dir() => {
                "is a folder; it takes a file of Zenoh's, in JSON5".to_owned()
            }
            Ok(_) => return taken(config),
        };
        let message = format!("{}: {matter}", path.display());
        return Err(Invalid::other("network.zenoh_config", message));
    }
    taken(config)
}

/// Returns the configuration if Zenoh takes its part.
fn taken(config: Config) -> Result<Config, Invalid> {
    config.network.check().map_err(Invalid::of_all)?;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_names_where_the_key_stands() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.toml");
        let path = file.to_str().unwrap();
        let complain = |text: &str, more: &[&str]| {
            std::fs::write(&file, text).unwrap();
            let words = ["omird", "--config", path].into_iter().chain(more.iter().copied());
            let arguments = Arguments::try_parse_from(words).unwrap();
            arguments.resolve(&Host::default()).unwrap_err().to_string()
        };
        let listen = complain("robot = 'rover'", &["--listen", "garbage"]);
        assert!(listen.starts_with("command line or environment: network.listen"), "{listen}");
        let zenoh = complain("", &["--zenoh-config", "/nowhere/z.json5"]);
        let said = "command line or environment: network.zenoh_config: /nowhere/z.json5: there is no such file";
        assert_eq!(zenoh, said);
        let robot = complain("robot = 'a b'", &["--listen", "tcp/127.0.0.1:0"]);
        assert!(robot.starts_with(&format!("{path}: robot")), "{robot}");
    }
}
