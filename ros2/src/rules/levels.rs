//! The severity that a message states: the levels of logs and diagnostics.

use crate::interface::TypeName;

/// A level of `rcl_interfaces/msg/Log` or `diagnostic_msgs/msg/DiagnosticStatus`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Log: 10.
    Debug,
    /// Log: 20.
    Info,
    /// Diagnostics: 0.
    Ok,
    /// Log: 30, diagnostics: 1.
    Warn,
    /// Log: 40, diagnostics: 2.
    Error,
    /// Log: 50.
    Fatal,
    /// Diagnostics: 3.
    Stale,
}

impl Level {
    /// As the configuration names them.
    pub const WORDS: &'static [(&'static str, Self)] = &[
        ("debug", Self::Debug),
        ("info", Self::Info),
        ("ok", Self::Ok),
        ("warn", Self::Warn),
        ("error", Self::Error),
        ("fatal", Self::Fatal),
        ("stale", Self::Stale),
    ];

    /// The field of a type that holds its level, if the type is one that has levels.
    pub fn field_of(ty: &TypeName) -> Option<&'static str> {
        matches!(
            (ty.package(), ty.name()),
            ("rcl_interfaces", "Log") | ("diagnostic_msgs", "DiagnosticStatus")
        )
        .then_some("level")
    }

    /// Meaning of a number in that field.
    pub fn of(ty: &TypeName, number: i64) -> Option<Self> {
        match (ty.package(), number) {
            ("rcl_interfaces", 10) => Some(Self::Debug),
            ("rcl_interfaces", 20) => Some(Self::Info),
            ("rcl_interfaces", 30) | ("diagnostic_msgs", 1) => Some(Self::Warn),
            ("rcl_interfaces", 40) | ("diagnostic_msgs", 2) => Some(Self::Error),
            ("rcl_interfaces", 50) => Some(Self::Fatal),
            ("diagnostic_msgs", 0) => Some(Self::Ok),
            ("diagnostic_msgs", 3) => Some(Self::Stale),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::Registry;

    #[test]
    fn the_numbers_are_those_of_the_definitions() {
        let registry = Registry::standard();
        for ty in ["rcl_interfaces/msg/Log", "diagnostic_msgs/msg/DiagnosticStatus"] {
            let ty = registry.message(ty).unwrap();
            assert!(ty.field(Level::field_of(&ty.name).unwrap()).is_some());
            for (word, level) in Level::WORDS {
                if let Some(value) = ty.constant(&word.to_ascii_uppercase()) {
                    assert_eq!(Level::of(&ty.name, value.as_i64().unwrap()), Some(*level));
                }
            }
            assert_eq!(Level::of(&ty.name, 99), None);
        }
    }
}
