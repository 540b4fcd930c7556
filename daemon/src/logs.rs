//! Logs of the programs, on standard error.

use std::io::IsTerminal;

use omir_core::validate::closest;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt, reload};

/// Description of a filter, for complaints.
const EXPECTED: &str = "a level (off, error, warn, info, debug, trace), or PART=LEVEL with commas between, such as \
                        info,omird::store=debug";
/// The names that parts of the programs begin with.
const PARTS: [&str; 6] = ["omir", "zenoh", "sled", "uhlc", "tokio", "rustls"];

/// The log filter, which may change while the program runs.
pub struct Logs {
    filter: reload::Handle<Targets, Registry>,
    is_environments: bool,
}

impl Logs {
    /// Logs what `filter` says from now on, unless `RUST_LOG` says what is logged. Returns whether it does.
    pub fn follow(&self, filter: &str) -> bool {
        if self.is_environments {
            return false;
        }
        // Refused where the first logs of the process are another's, as in a test.
        parse(filter).is_ok_and(|filter| self.filter.reload(filter).is_ok())
    }
}

/// Logs what `RUST_LOG` asks for (`debug`, or `info,omird::store=debug,zenoh=warn`), and what `otherwise`
/// does where it is not set or cannot be understood, which is said. A second call in one process, as in
/// a test, goes on with the first one's.
///
/// Parts and levels are all it understands: the filters of `EnvFilter`, for fields and spans, would bring
/// an engine for regular expressions along, 185 kB of code.
pub fn to_stderr(otherwise: &str) -> Logs {
    let asked = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let (filter, complaint) = choose(asked.as_deref(), otherwise);
    let is_environments = asked.is_some() && complaint.is_none();
    if let Some(complaint) = complaint {
        eprintln!("{complaint}");
    }
    let (filter, handle) = reload::Layer::new(filter);
    let layer = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_filter(filter);
    let _ = tracing_subscriber::registry().with(layer).try_init();
    Logs { filter: handle, is_environments }
}

/// The filter, and what is wrong with the one that was asked for.
fn choose(asked: Option<&str>, otherwise: &str) -> (Targets, Option<String>) {
    let default = || otherwise.parse().unwrap_or_default();
    match asked.map(parse) {
        None => (default(), None),
        Some(Ok(filter)) => (filter, None),
        Some(Err(fault)) => (default(), Some(format!("RUST_LOG: {fault}; it is left aside"))),
    }
}

/// Reads a filter.
///
/// # Errors
/// Says what is wrong with it, and what one is.
pub fn parse(text: &str) -> Result<Targets, String> {
    for each in text.split(',').map(str::trim).filter(|each| !each.is_empty()) {
        let (part, level) = match each.split_once('=') {
            Some((part, level)) => (Some(part), Some(level)),
            // A part without a level has all of them logged. A word that is neither would have nothing logged at all.
            None if each.contains("::") || PARTS.iter().any(|name| each.starts_with(name)) => {
                continue;
            }
            None => (None, Some(each)),
        };
        if part.is_some_and(|part| part.contains(['[', '{', ' '])) {
            return Err(format!(
                "{each:?} asks for more than parts and levels: it takes {EXPECTED}"
            ));
        }
        if let Some(level) = level
            && level.parse::<LevelFilter>().is_err()
        {
            let levels = ["off", "error", "warn", "info", "debug", "trace"];
            let near =
                closest(level, levels.into_iter()).map(|near| format!("; did you mean {near:?}?"));
            let near = near.unwrap_or_default();
            return Err(format!("{level:?} is no level{near}: it takes {EXPECTED}"));
        }
    }
    text.parse().map_err(|error| format!("{text:?}: {error}; it takes {EXPECTED}"))
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn asks_for_parts_and_levels() {
        let (filter, complaint) = choose(Some("warn,omird::store=debug"), "off");
        assert_eq!(complaint, None);
        assert!(filter.would_enable("omird::store::log", &Level::DEBUG));
        assert!(!filter.would_enable("omird::engine", &Level::INFO));
        assert!(filter.would_enable("zenoh", &Level::WARN));
    }

    #[test]
    fn does_as_without_one_when_it_is_not_understood() {
        for (asked, said) in [
            ("omird[span]=loud", "asks for more than parts and levels"),
            ("loud", "\"loud\" is no level: it takes a level (off"),
            ("debuf", "did you mean \"debug\"?"),
            ("info,omird=wan", "\"wan\" is no level; did you mean \"warn\"?"),
        ] {
            let (filter, complaint) = choose(Some(asked), "info,zenoh=error");
            let complaint = complaint.unwrap_or_default();
            assert!(complaint.starts_with("RUST_LOG: ") && complaint.contains(said), "{complaint}");
            assert!(filter.would_enable("omird", &Level::INFO));
            assert!(!filter.would_enable("zenoh::net", &Level::WARN));
        }
    }

    #[test]
    fn the_defaults_of_the_programs_are_understood() {
        let (filter, _) = choose(None, crate::program::DEFAULT_FILTER);
        assert!(filter.would_enable("omird", &Level::INFO));
        assert!(!filter.would_enable("uhlc", &Level::ERROR));
        assert_eq!(parse(crate::program::DEFAULT_FILTER), Ok(filter));
        let (filter, _) = choose(None, "off");
        assert!(!filter.would_enable("omir", &Level::ERROR));
    }
}
