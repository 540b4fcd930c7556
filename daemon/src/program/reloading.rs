//! SIGHUP: the configuration is read again, and what may take hold at once does.

use std::fmt;
use std::path::PathBuf;

use super::arguments::{Arguments, checked};
use super::filter;
use crate::config::reload::{Refused, Reloaded, Running};
use crate::config::{ConfigError, Host, Invalid};
use crate::engine::Engine;
use crate::logs::Logs;
use crate::protocols::Protocols;
use crate::service_manager;

/// Reads the configuration again, takes over what may change while it runs, and tells the log and the service manager
/// what came of it.
pub(super) fn reload(
    running: &mut Running,
    arguments: &Arguments,
    engine: &Engine,
    protocols: &Protocols,
    logs: &Logs,
) {
    service_manager::tell(&service_manager::reloading());
    let told = match read_again(running, arguments) {
        Err(error) => {
            let told =
                format!("the configuration is faulty, and the one that runs is kept: {error}");
            tracing::error!("SIGHUP: {told}");
            told
        }
        Ok(mut reloaded) => {
            if !reloaded.taken.is_empty() {
                engine.reconfigure(running.config().settings.clone());
                protocols.reconfigure_compass(running.config().compass.clone());
            }
            let access = &protocols.access;
            let was_required = access.is_required();
            // Also where no key has changed: the files of keys that it names may have.
            access.reconfigure(running.config().access.clone());
            if access.is_required() != was_required {
                // The ways in are closed, or open, from now on.
                reloaded.waiting.push("the rules of Zenoh for access.require".to_owned());
            }
            let is_log_new = reloaded.taken.iter().any(|key| key == "log");
            let mut told = String::new();
            if is_log_new && !logs.follow(&filter(&running.config().log)) {
                reloaded.taken.retain(|key| key != "log");
                told.push_str("; log waits: RUST_LOG says what is logged");
            }
            told.insert_str(0, &in_words(&reloaded));
            // Louder if the operator has to do something.
            if reloaded.waiting.is_empty() {
                tracing::info!("SIGHUP: {told}");
            } else {
                tracing::warn!("SIGHUP: {told}");
            }
            told
        }
    };
    service_manager::tell(&service_manager::reloaded(&told));
}

fn read_again(running: &mut Running, arguments: &Arguments) -> Result<Reloaded, NotReloaded> {
    let (_, written) = arguments.read().map_err(NotReloaded::Unreadable)?;
    let host = Host::ask();
    let resolve = |written: &toml::Table| {
        let mut file = written.clone().try_into().map_err(Invalid::of_all)?;
        arguments.clone().onto(&mut file);
        checked(file, &host)
    };
    let refused = |refused| NotReloaded::Refused { file: arguments.config.clone(), refused };
    running.reload(&written, &resolve).map_err(refused)
}

/// A reload that keeps the configuration that runs.
#[derive(Debug)]
enum NotReloaded {
    /// The file cannot be read.
    Unreadable(ConfigError),
    /// Its contents are refused.
    Refused { file: Option<PathBuf>, refused: Refused },
}

impl fmt::Display for NotReloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => error.fmt(f),
            Self::Refused { file: Some(file), refused } => {
                write!(f, "{}: {refused}", file.display())
            }
            Self::Refused { file: None, refused } => refused.fmt(f),
        }
    }
}

fn in_words(Reloaded { taken, waiting }: &Reloaded) -> String {
    let (taken, waiting) = (taken.join(", "), waiting.join(", "));
    match (taken.as_str(), waiting.as_str()) {
        ("", "") => "the configuration is good, and nothing in it has changed".to_owned(),
        (taken, "") => format!("taken over: {taken}"),
        ("", waiting) => format!("needs a restart: {waiting}"),
        (taken, waiting) => format!("taken over: {taken}; needs a restart: {waiting}"),
    }
}
