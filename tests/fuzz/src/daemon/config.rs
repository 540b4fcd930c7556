//! The configuration file.

use omird::config::file::File;
use omird::config::{Host, resolve};

/// Reads a configuration; what is accepted names a robot and a place, within its bounds.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(file) = toml::from_str::<File>(text) else { return };
    let unknown = format!("surely_unknown = 1\n{text}");
    assert!(toml::from_str::<File>(&unknown).is_err(), "a key nobody knows");
    let host = Host {
        name: Some(text.to_owned()),
        uid: None,
        is_root: false,
        state_directory: None,
        state_home: None,
        home: Some("/home/robot".into()),
        ros_domain_id: None,
    };
    match resolve(file.clone(), &host) {
        Ok(config) => {
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            assert!((1..=64).contains(&config.robot.len()) && config.robot.bytes().all(is_name));
            assert!(!config.prefix.is_empty() && !config.prefix.contains(['*', '?', '#', '$']));
            assert!(!config.data.as_os_str().is_empty());
            assert!(config.readers > 0 && config.settings.queue_requests > 0);
            assert_eq!(resolve(file, &host), Ok(config));
        }
        Err(invalid) => assert!(!invalid.to_string().is_empty()),
    }
}
