//! Logs of the programs, on standard error.

use std::fmt::{Display, Formatter};
use std::io::IsTerminal;

use omir_core::validate::closest;
use tracing_subscriber::filter::{LevelFilter, ParseError, Targets};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt, reload};

/// Description of a filter, for complaints.
const EXPECTED: &str = "a level (off, error, warn, info, debug, trace), or PART=LEVEL with commas between, such as \
                        info,omird::store=debug";
/// The names that parts of the programs begin with.
const PARTS: [&str; 7] = ["omir", "audit", "zenoh", "sled", "uhlc", "tokio", "rustls"];

/// The part that says more than its level is worth.
const CHATTY: &str = "rmcp";

/// Parts of the program that are crates, by the names that filters give them, and by those they log under.
const CRATES: [(&str, &str); 8] = [
    // As they were called once.
    ("omird::audit", "audit"),
    ("omird::service", "omird::zenoh"),
    ("omird::store", "omird_store"),
    ("omird::engine", "omird_engine"),
    ("omird::index", "omird_engine::index"),
    ("omird::recall", "omird_engine::recall"),
    ("omird::router", "omird_router"),
    ("omird::access", "omird_access"),
];
/// Parts that are protocols, `omird::protocols::NAME`: their crates log under their own names.
const PROTOCOLS: (&str, &str) = ("omird::protocols::", "omird_protocol_");

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
    let default = || parse(otherwise).unwrap_or_default();
    match asked.map(parse) {
        None => (default(), None),
        Some(Ok(filter)) => (filter, None),
        Some(Err(fault)) => (default(), Some(format!("RUST_LOG: {fault}; it is left aside"))),
    }
}

/// The levels of a filter.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// A text that is no filter.
#[derive(Debug)]
pub enum FilterError {
    /// It asks for fields or spans.
    TooMuch {
        /// The part that does.
        found: String,
    },
    /// A level is none.
    NoLevel {
        /// The word in its place.
        found: String,
        /// The level that looks like it.
        near: Option<&'static str>,
    },
    /// The library refuses it.
    Unread {
        /// The text.
        found: String,
        /// The reason of the library.
        error: ParseError,
    },
}

impl Display for FilterError {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooMuch { found } => {
                write!(f, "{found:?} asks for more than parts and levels: ")?
            }
            Self::NoLevel { found, near: None } => write!(f, "{found:?} is no level: ")?,
            Self::NoLevel { found, near: Some(near) } => {
                write!(f, "{found:?} is no level; did you mean {near:?}?: ")?;
            }
            Self::Unread { found, error } => write!(f, "{found:?}: {error}; ")?,
        }
        write!(f, "it takes {EXPECTED}")
    }
}

impl std::error::Error for FilterError {}

/// Reads a filter.
///
/// # Errors
/// The part that is wrong.
pub fn parse(text: &str) -> Result<Targets, FilterError> {
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
            return Err(FilterError::TooMuch { found: each.to_owned() });
        }
        if let Some(level) = level
            && level.parse::<LevelFilter>().is_err()
        {
            let near = closest(level, LEVELS.into_iter());
            return Err(FilterError::NoLevel { found: level.to_owned(), near });
        }
    }
    let parts: Vec<_> = text.split(',').map(|each| logged_as(each.trim())).collect();
    let filter: Result<Targets, _> = parts.join(",").parse();
    let filter = filter.map_err(|error| FilterError::Unread { found: text.to_owned(), error })?;
    Ok(if parts.iter().any(|part| part.starts_with(CHATTY)) { filter } else { hushed(filter) })
}

/// The SDK of MCP tells of each request at `info`, and warns with the words of each one that is wrong: a client with a
/// token could fill the card. The audit lines have all of that. Only its errors are logged, unless a filter names it.
fn hushed(filter: Targets) -> Targets {
    let level = filter.default_level().unwrap_or(LevelFilter::OFF);
    filter.with_target(CHATTY, level.min(LevelFilter::ERROR))
}

/// One part of a filter, by the name that its crate logs under.
fn logged_as(part: &str) -> String {
    let rest_of = |name: &str| {
        part.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with([':', '=']))
    };
    let known = CRATES.iter().find_map(|(name, logged)| Some((logged, rest_of(name)?)));
    let known = known.map(|(logged, rest)| format!("{logged}{rest}"));
    let protocol = || Some(format!("{}{}", PROTOCOLS.1, part.strip_prefix(PROTOCOLS.0)?));
    known.or_else(protocol).unwrap_or_else(|| part.to_owned())
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn each_request_of_mcp_is_told_only_if_it_is_asked_for() {
        let would =
            |filter: &str, level| parse(filter).unwrap().would_enable("rmcp::service", &level);
        assert!(would("info", Level::ERROR) && !would("info", Level::WARN));
        assert!(would("debug,omird::store=info", Level::ERROR) && !would("debug", Level::WARN));
        assert!(would("error", Level::ERROR) && !would("error", Level::WARN));
        assert!(!would("off", Level::ERROR) && !would("omird=info", Level::ERROR));
        assert!(would("info,rmcp=debug", Level::DEBUG));
        let (filter, _) = choose(None, "info");
        assert!(!filter.would_enable("rmcp::service", &Level::INFO));
    }

    #[test]
    fn asks_for_parts_and_levels() {
        let (filter, complaint) = choose(Some("warn,omird::store=debug"), "off");
        assert_eq!(complaint, None);
        assert!(filter.would_enable("omird_store::log", &Level::DEBUG));
        assert!(!filter.would_enable("omird_engine", &Level::INFO));
        assert!(filter.would_enable("zenoh", &Level::WARN));
    }

    /// The names stay, though the parts have become crates.
    #[test]
    fn a_part_is_named_as_ever_and_its_own_logs_are_meant() {
        let filter =
            parse("warn, omird::recall::search=trace,omird::audit=debug,omird::storey=off")
                .unwrap();
        assert!(filter.would_enable("omird_engine::recall::search", &Level::TRACE));
        assert!(!filter.would_enable("omird_engine::recall", &Level::INFO));
        assert!(filter.would_enable("audit", &Level::DEBUG));
        assert!(filter.would_enable("omird_store", &Level::WARN));
        for (name, logged) in CRATES {
            assert!(parse(name).unwrap().would_enable(logged, &Level::TRACE), "{name}");
        }
        let filter =
            parse("omird::protocols::omir::console=debug,omird::protocols::compass").unwrap();
        assert!(filter.would_enable("omird_protocol_omir::console", &Level::DEBUG));
        assert!(!filter.would_enable("omird_protocol_omir::link", &Level::DEBUG));
        assert!(filter.would_enable("omird_protocol_compass::money", &Level::TRACE));
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
        assert_eq!(parse(crate::program::DEFAULT_FILTER).ok(), Some(filter));
        let (filter, _) = choose(None, "off");
        assert!(!filter.would_enable("omir", &Level::ERROR));
    }
}
