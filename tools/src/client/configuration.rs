//! Zenoh's configuration of a client: without scouting, with the endpoints that are asked for.

use std::io;
use std::path::Path;
use std::time::Duration;

use omir_core::json;
use omir_core::value::Value;
use omird::zenoh::plain;
use zenoh::Config;

use crate::cli::Globals;
use crate::error::{Error, Result};

/// Endpoints where a daemon listens by default, and where a router does.
const DEFAULT_ENDPOINTS: [&str; 2] = ["tcp/127.0.0.1:7448", "tcp/127.0.0.1:7447"];

/// Longest wait for the slowest of several endpoints.
const FLEET_PATIENCE: Duration = Duration::from_millis(1000);

/// The configuration for these options.
///
/// # Errors
/// [`Error::Usage`] and [`Error::Input`] for endpoints and files that Zenoh does not understand.
pub(super) fn configuration(globals: &Globals) -> Result<Config> {
    let mut config = match &globals.zenoh_config {
        Some(file) => zenoh_file(file)?,
        None => Config::default(),
    };
    if !globals.connect.is_empty() || !has_endpoints(&config) {
        let endpoints: Vec<&str> = if globals.connect.is_empty() {
            DEFAULT_ENDPOINTS.to_vec()
        } else {
            globals.connect.iter().map(String::as_str).collect()
        };
        let json = json::to_string(&Value::from(endpoints));
        config.insert_json5("connect/endpoints", &json).map_err(|why| {
            Error::Usage(format!("--connect {}: {}", globals.connect.join(","), plain(&why)))
        })?;
    }
    let several = globals.connect.len() > 1;
    let quiet = [
        ("mode", if several { "\"peer\"" } else { "\"client\"" }),
        ("scouting/multicast/enabled", "false"),
        // One endpoint is tried once, at once. Of several each is tried by itself in the background, so that a robot
        // that is out of range does not hold up others.
        ("connect/timeout_ms", if several { "-1" } else { "0" }),
        ("connect/exit_on_failure", "false"),
    ];
    for (key, value) in quiet {
        if is_unset(&config, key) {
            set(&mut config, key, value)?;
        }
    }
    if several && globals.zenoh_config.is_none() {
        // A peer for the length of one command neither listens nor makes friends.
        let patience = globals.timeout.min(FLEET_PATIENCE).as_millis().to_string();
        for (key, value) in [
            ("listen/endpoints", "[]"),
            ("scouting/gossip/enabled", "false"),
            ("scouting/delay", patience.as_str()),
        ] {
            set(&mut config, key, value)?;
        }
    }
    Ok(config)
}

/// Zenoh's own file, or why that is none.
fn zenoh_file(file: &Path) -> Result<Config> {
    let refused = |why: &str| {
        Error::input(file, format!("{why} (--zenoh-config: a file of Zenoh's, in JSON5 or YAML)"))
    };
    match std::fs::metadata(file) {
        Ok(found) if found.is_dir() => return Err(refused("is a folder")),
        Err(why) if why.kind() == io::ErrorKind::NotFound => {
            return Err(refused("there is no such file"));
        }
        _ => {}
    }
    Config::from_file(file).map_err(|why| refused(&plain(&why)))
}

fn set(config: &mut Config, key: &str, value: &str) -> Result<()> {
    config
        .insert_json5(key, value)
        .map_err(|why| Error::Usage(format!("Zenoh refuses {key}: {}", plain(&why))))
}

fn is_unset(config: &Config, key: &str) -> bool {
    config.get_json(key).is_ok_and(|json| json == "null")
}

fn has_endpoints(config: &Config) -> bool {
    config.get_json("connect/endpoints").is_ok_and(|json| !matches!(json.as_str(), "null" | "[]"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::tests::globals;

    fn get(config: &Config, key: &str) -> String {
        config.get_json(key).unwrap()
    }

    #[test]
    fn by_default_a_client_without_scouting() {
        let config = configuration(&globals(&[])).unwrap();
        assert_eq!(get(&config, "mode"), "\"client\"");
        assert_eq!(get(&config, "scouting/multicast/enabled"), "false");
        assert_eq!(
            get(&config, "connect/endpoints"),
            r#"["tcp/127.0.0.1:7448","tcp/127.0.0.1:7447"]"#
        );
    }

    #[test]
    fn several_endpoints_are_all_connected() {
        let line = ["--connect", "tcp/a:1", "--connect", "tcp/b:2"];
        let config = configuration(&globals(&line)).unwrap();
        assert_eq!(get(&config, "mode"), "\"peer\"");
        assert_eq!(get(&config, "listen/endpoints"), "[]");
        assert_eq!(get(&config, "connect/endpoints"), r#"["tcp/a:1","tcp/b:2"]"#);
    }

    #[test]
    fn a_zenoh_file_keeps_what_it_says() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("zenoh.json5");
        std::fs::write(&file, "{ mode: 'peer', connect: { endpoints: ['tcp/c:3'] }, }").unwrap();
        let path = file.to_str().unwrap();
        let config = configuration(&globals(&["--zenoh-config", path])).unwrap();
        assert_eq!(get(&config, "mode"), "\"peer\"");
        assert_eq!(get(&config, "connect/endpoints"), r#"["tcp/c:3"]"#);
        let line = ["--zenoh-config", path, "--connect", "tcp/d:4"];
        let config = configuration(&globals(&line)).unwrap();
        assert_eq!(get(&config, "connect/endpoints"), r#"["tcp/d:4"]"#);
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = configuration(&globals(&["--zenoh-config", "/no/such"])).unwrap_err();
        assert!(error.to_string().contains("/no/such"), "{error}");
    }
}
