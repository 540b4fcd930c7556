//! The rules that an import applies: those of a configuration, or one for each well-known type.

use std::fmt;

use serde::Deserialize;

use crate::rules::{ConfigError, Pattern, Ros2, Ros2Section, TopicRule, known_types};

/// The part of a configuration that is read; the rest is for others.
#[derive(Deserialize)]
struct File {
    ros2: Option<Ros2Section>,
}

/// A configuration without rules that can be applied.
#[derive(Clone, Debug, PartialEq)]
pub enum NoRules {
    /// It is no TOML.
    Toml(toml::de::Error),
    /// It has no `[ros2]`.
    NoSection,
    /// `[ros2]` is wrong.
    Config(ConfigError),
    /// It has no `[[ros2.topic]]`.
    NoTopics,
}

impl fmt::Display for NoRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Toml(why) => why.fmt(f),
            Self::NoSection => f.write_str("there is no [ros2] in it"),
            Self::Config(why) => why.fmt(f),
            Self::NoTopics => {
                f.write_str("there is no [[ros2.topic]] in it, so nothing would be kept")
            }
        }
    }
}

impl std::error::Error for NoRules {}

/// Reads the rules in `[ros2]` of a configuration (`omird.toml`).
///
/// # Errors
/// The configuration is wrong, or has no rules.
pub fn configured(text: &str) -> Result<Ros2, NoRules> {
    let file: File = toml::from_str(text).map_err(NoRules::Toml)?;
    let section = file.ros2.ok_or(NoRules::NoSection)?;
    let ros2 = section.resolve().map_err(NoRules::Config)?;
    if ros2.topics.is_empty() {
        return Err(NoRules::NoTopics);
    }
    Ok(ros2)
}

/// Returns a rule for each well-known type, with its defaults and for every topic.
pub fn by_type() -> Ros2 {
    let rule = |name: &str| {
        Some(TopicRule {
            key: format!("the rule for {name}"),
            name: name.to_owned(),
            topic: Pattern::new("*"),
            type_name: Some(name.parse().ok()?),
            queue_depth: None,
            spec: Default::default(),
        })
    };
    Ros2 { topics: known_types().filter_map(rule).collect(), ..Ros2::default() }
}
