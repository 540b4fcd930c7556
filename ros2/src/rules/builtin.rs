//! Defaults by type, for what a rule leaves out: `defaults.toml`, in the language of the
//! configuration itself.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use omir_core::value::{Map, Value};

use super::config::Spec;
use super::written::{Complaints, ConfigError, Table};
use crate::interface::TypeName;

/// The text, as a person may read it.
pub const DEFAULTS: &str = include_str!("defaults.toml");

static SPECS: LazyLock<BTreeMap<String, Spec>> =
    LazyLock::new(|| read(DEFAULTS).unwrap_or_default());

fn read(text: &str) -> Result<BTreeMap<String, Spec>, ConfigError> {
    let complaints = Complaints::default();
    let types: Map = toml::from_str(text).unwrap_or_else(|error| {
        complaints.add("defaults", error);
        Map::new()
    });
    let mut specs = BTreeMap::new();
    for (name, written) in &types {
        let Value::Object(members) = written else {
            complaints.add(name, "no table");
            continue;
        };
        let table = Table::new(name, members, &complaints);
        specs.insert(name.to_owned(), Spec::read(&table));
        table.done();
    }
    complaints.or(specs)
}

/// Returns the defaults of a type; nothing for a type that is not one of the well known.
pub fn spec_of(ty: &TypeName) -> Spec {
    SPECS.get(&ty.to_string()).cloned().unwrap_or_default()
}

/// The types that need no more than a topic.
pub fn types() -> impl Iterator<Item = &'static str> {
    SPECS.keys().map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_well_written() {
        let specs = read(DEFAULTS).unwrap_or_else(|error| panic!("{error}"));
        assert!(specs.values().all(|spec| spec.text.is_some() && spec.keep.is_some()));
        assert_eq!(specs.len(), 23);
        assert!(types().any(|name| name == "vision_msgs/msg/Detection3DArray"));
    }
}
