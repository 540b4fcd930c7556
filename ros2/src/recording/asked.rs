//! Which rules an import applies: those of a configuration, or one for each well-known type.

use serde::Deserialize;

use crate::rules::{Pattern, Ros2, Ros2Section, TopicRule, known_types};

/// The part of a configuration that is read; the rest is for others.
#[derive(Deserialize)]
struct File {
    ros2: Option<Ros2Section>,
}

/// The rules in `[ros2]` of a configuration (`omird.toml`).
///
/// # Errors
/// What is wrong with it, key by key, or that it has none.
pub fn configured(text: &str) -> Result<Ros2, String> {
    let file: File = toml::from_str(text).map_err(|why| why.to_string())?;
    let section = file.ros2.ok_or("there is no [ros2] in it")?;
    let ros2 = section.resolve().map_err(|why| why.to_string())?;
    if ros2.topics.is_empty() {
        return Err("there is no [[ros2.topic]] in it, so nothing would be kept".to_owned());
    }
    Ok(ros2)
}

/// The defaults of well-known types, for every topic.
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
