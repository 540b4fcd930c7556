//! Logs of the programs, on standard error.

use std::io::IsTerminal;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// Logs what `RUST_LOG` asks for (`debug`, or `info,omird::store=debug,zenoh=warn`), and what `otherwise`
/// does where it is not set or cannot be understood, which is said. A second call in one process, as in
/// a test, goes on with the first one's.
///
/// Parts and levels are all it understands: the filters of `EnvFilter`, for fields and spans, would bring
/// an engine for regular expressions along, 185 kB of code.
pub fn to_stderr(otherwise: &str) {
    let asked = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let (filter, complaint) = choose(asked.as_deref(), otherwise);
    if let Some(complaint) = complaint {
        eprintln!("{complaint}");
    }
    let layer = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_filter(filter);
    let _ = tracing_subscriber::registry().with(layer).try_init();
}

/// The filter, and what is wrong with the one that was asked for.
fn choose(asked: Option<&str>, otherwise: &str) -> (Targets, Option<String>) {
    let default = || otherwise.parse().unwrap_or_default();
    match asked.map(str::parse) {
        None => (default(), None),
        Some(Ok(filter)) => (filter, None),
        Some(Err(error)) => {
            let asked = asked.unwrap_or_default();
            let complaint = format!(
                "RUST_LOG: cannot understand '{asked}' ({error}), so it is left aside: a level \
                 (off, error, warn, info, debug), or PART=LEVEL with commas between, such as \
                 info,omird::store=debug"
            );
            (default(), Some(complaint))
        }
    }
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
        let (filter, complaint) = choose(Some("omird[span]=loud"), "info,zenoh=error");
        assert!(complaint.is_some_and(|text| text.contains("omird[span]=loud")));
        assert!(filter.would_enable("omird", &Level::INFO));
        assert!(!filter.would_enable("zenoh::net", &Level::WARN));
    }

    #[test]
    fn the_defaults_of_the_programs_are_understood() {
        let (filter, _) = choose(None, crate::program::DEFAULT_FILTER);
        assert!(filter.would_enable("omird", &Level::INFO));
        assert!(!filter.would_enable("uhlc", &Level::ERROR));
        let (filter, _) = choose(None, "off");
        assert!(!filter.would_enable("omir", &Level::ERROR));
    }
}
