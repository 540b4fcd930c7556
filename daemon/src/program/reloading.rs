//! SIGHUP: the configuration is read again, and what may take hold at once does.

use super::{Arguments, checked, filter};
use crate::config::Host;
use crate::config::reload::{Outcome, Running};
use crate::engine::Engine;
use crate::logs::Logs;
use crate::service_manager;

/// Reads the configuration again, takes over what may change while it runs, and tells the log and the service manager
/// what came of it.
pub(super) fn reload(running: &mut Running, arguments: &Arguments, engine: &Engine, logs: &Logs) {
    service_manager::tell(&service_manager::reloading());
    let told = match read_again(running, arguments) {
        Err(error) => {
            let told =
                format!("the configuration is faulty, and the one that runs is kept: {error}");
            tracing::error!("SIGHUP: {told}");
            told
        }
        Ok(mut outcome) => {
            if !outcome.taken.is_empty() {
                engine.reconfigure(running.config().settings.clone());
            }
            let is_log_new = outcome.taken.iter().any(|key| key == "log");
            let mut told = String::new();
            if is_log_new && !logs.follow(&filter(&running.config().log)) {
                outcome.taken.retain(|key| key != "log");
                told.push_str("; log waits: RUST_LOG says what is logged");
            }
            told.insert_str(0, &in_words(&outcome));
            // Louder where somebody has to do something.
            if outcome.waiting.is_empty() {
                tracing::info!("SIGHUP: {told}");
            } else {
                tracing::warn!("SIGHUP: {told}");
            }
            told
        }
    };
    service_manager::tell(&service_manager::reloaded(&told));
}

fn read_again(running: &mut Running, arguments: &Arguments) -> Result<Outcome, String> {
    let (_, written) = arguments.read().map_err(|error| error.to_string())?;
    let host = Host::ask();
    let resolve = |written: &toml::Table| {
        let mut file = written.clone().try_into().map_err(|error| error.to_string())?;
        arguments.clone().onto(&mut file);
        checked(file, &host)
    };
    running.reload(&written, &resolve).map_err(|message| match &arguments.config {
        Some(file) => format!("{}: {message}", file.display()),
        None => message,
    })
}

fn in_words(Outcome { taken, waiting }: &Outcome) -> String {
    let (taken, waiting) = (taken.join(", "), waiting.join(", "));
    match (taken.as_str(), waiting.as_str()) {
        ("", "") => "the configuration is good, and nothing in it has changed".to_owned(),
        (taken, "") => format!("taken over: {taken}"),
        ("", waiting) => format!("needs a restart: {waiting}"),
        (taken, waiting) => format!("taken over: {taken}; needs a restart: {waiting}"),
    }
}
