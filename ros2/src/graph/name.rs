//! Names of the ROS graph: their rules, and the absolute form of relative and private ones.
//!
//! Rules: <https://design.ros2.org/articles/topic_and_service_names.html> and the limits of
//! `rmw/validate_full_topic_name.h`, `validate_namespace.h` and `validate_node_name.h`.

use std::fmt;

/// Longest topic or service name (`RMW_TOPIC_MAX_NAME_LENGTH`: 255 less 8 for DDS prefixes).
const LONGEST_TOPIC: usize = 247;
/// Longest namespace (`RMW_NAMESPACE_MAX_LENGTH`: a topic of one letter must still fit).
const LONGEST_NAMESPACE: usize = 245;
/// Longest node name (`RMW_NODE_NAME_MAX_NAME_LENGTH`).
const LONGEST_NODE: usize = 255;

/// A name that ROS does not allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameError {
    what: &'static str,
    name: String,
    fault: NameFault,
}

/// The fault of a name, or of a remapping rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NameFault {
    Empty,
    TooLong {
        most: usize,
    },
    Relative,
    EndsWithSlash,
    EmptyPart,
    Digit {
        part: String,
    },
    Character(char),
    Tilde,
    /// A rule without `:=`.
    NoArrow,
    /// A rule with nothing on one side.
    Halved,
    /// A rule with a scheme that ROS does not know.
    Scheme(String),
    /// A name in a rule.
    Of(Box<NameError>),
}

impl NameError {
    fn new(what: &'static str, name: &str, fault: NameFault) -> Self {
        Self { what, name: name.to_owned(), fault }
    }

    pub(super) fn rule(name: &str, fault: NameFault) -> Self {
        Self::new("remapping rule", name, fault)
    }
}

impl fmt::Display for NameFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("is empty"),
            Self::TooLong { most } => write!(f, "is longer than {most} characters"),
            Self::Relative => f.write_str("does not begin with `/`"),
            Self::EndsWithSlash => f.write_str("ends with `/`"),
            Self::EmptyPart => f.write_str("has an empty part"),
            Self::Digit { part } => write!(f, "the part {part:?} begins with a digit"),
            Self::Character(c) => {
                write!(f, "{c:?} is none of the letters, digits and `_` that names are of")
            }
            Self::Tilde => f.write_str("`~` must be followed by `/` or nothing"),
            Self::NoArrow => f.write_str("has no `:=`: write from:=to"),
            Self::Halved => f.write_str("has nothing on one side of `:=`"),
            Self::Scheme(scheme) => {
                write!(f, "{scheme:?} is neither rostopic:// nor rosservice://")
            }
            Self::Of(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}: {}", self.what, self.name, self.fault)
    }
}

impl std::error::Error for NameError {}

/// A node's name: letters, digits and `_`, no digit first.
///
/// # Errors
/// The name breaks a rule of ROS.
pub fn check_node(name: &str) -> Result<(), NameError> {
    let error = |fault| NameError::new("node name", name, fault);
    if name.len() > LONGEST_NODE {
        return Err(error(NameFault::TooLong { most: LONGEST_NODE }));
    }
    check_part(name).map_err(error)
}

/// A namespace: `/`, or absolute parts without a `/` at the end.
///
/// # Errors
/// The namespace breaks a rule of ROS.
pub fn check_namespace(namespace: &str) -> Result<(), NameError> {
    if namespace == "/" {
        return Ok(());
    }
    check_absolute("namespace", namespace, LONGEST_NAMESPACE)
}

/// A fully qualified topic, service or action name.
///
/// # Errors
/// The name breaks a rule of ROS.
pub fn check_absolute_name(name: &str) -> Result<(), NameError> {
    check_absolute("name", name, LONGEST_TOPIC)
}

/// The absolute form of `name` for a node: `/x` stays, `x` gets the namespace, `~` and `~/x` get
/// the namespace and the node's name.
///
/// `namespace` is a valid one. The substitutions `{node}` and `{ns}` of rcl are not known here.
///
/// # Errors
/// The name breaks a rule of ROS.
pub fn expand(name: &str, namespace: &str, node: &str) -> Result<String, NameError> {
    if name.is_empty() {
        return Err(NameError::new("name", name, NameFault::Empty));
    }
    let base = namespace.trim_end_matches('/');
    let full = match name.strip_prefix('~') {
        Some("") => format!("{base}/{node}"),
        Some(rest) if rest.starts_with('/') => format!("{base}/{node}{rest}"),
        Some(_) => return Err(NameError::new("name", name, NameFault::Tilde)),
        None if name.starts_with('/') => name.to_owned(),
        None => format!("{base}/{name}"),
    };
    check_absolute_name(&full)?;
    Ok(full)
}

fn check_absolute(what: &'static str, name: &str, longest: usize) -> Result<(), NameError> {
    let error = |fault| NameError::new(what, name, fault);
    let Some(rest) = name.strip_prefix('/') else {
        return Err(error(NameFault::Relative));
    };
    if name.len() > longest {
        return Err(error(NameFault::TooLong { most: longest }));
    }
    if rest.is_empty() || rest.ends_with('/') {
        return Err(error(NameFault::EndsWithSlash));
    }
    for part in rest.split('/') {
        check_part(part).map_err(error)?;
    }
    Ok(())
}

fn check_part(part: &str) -> Result<(), NameFault> {
    if part.is_empty() {
        return Err(NameFault::EmptyPart);
    }
    if part.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(NameFault::Digit { part: part.to_owned() });
    }
    let strange = part.chars().find(|c| !(c.is_ascii_alphanumeric() || *c == '_'));
    strange.map_or(Ok(()), |c| Err(NameFault::Character(c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why<T: fmt::Debug>(result: Result<T, NameError>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn node_names() {
        assert_eq!(check_node("omird_2"), Ok(()));
        assert_eq!(check_node("_hidden"), Ok(()));
        assert_eq!(why(check_node("")), r#"node name "": has an empty part"#);
        assert!(why(check_node("2nd")).contains("begins with a digit"));
        assert!(why(check_node("my/node")).contains("'/' is none of"));
        assert!(why(check_node(&"a".repeat(256))).contains("longer than 255"));
    }

    #[test]
    fn namespaces() {
        assert_eq!(check_namespace("/"), Ok(()));
        assert_eq!(check_namespace("/robot1/arm"), Ok(()));
        assert!(why(check_namespace("robot1")).contains("does not begin with `/`"));
        assert!(why(check_namespace("/robot1/")).contains("ends with `/`"));
        assert!(why(check_namespace("//x")).contains("empty part"));
        assert!(why(check_namespace(&format!("/{}", "a".repeat(245)))).contains("longer than 245"));
    }

    #[test]
    fn a_name_is_made_absolute_for_its_node() {
        let of = |name| expand(name, "/robot1", "omird");
        assert_eq!(of("/tf").unwrap(), "/tf");
        assert_eq!(of("chatter").unwrap(), "/robot1/chatter");
        assert_eq!(of("~/recall").unwrap(), "/robot1/omird/recall");
        assert_eq!(of("~").unwrap(), "/robot1/omird");
        assert_eq!(expand("chatter", "/", "omird").unwrap(), "/chatter");
        assert_eq!(expand("~/recall", "/", "omird").unwrap(), "/omird/recall");
        assert_eq!(of("a/_action/send_goal").unwrap(), "/robot1/a/_action/send_goal");
        assert!(why(of("~recall")).contains("`~` must be followed"));
        assert!(why(of("a//b")).contains("empty part"));
        assert!(why(of("a b")).contains("' ' is none of"));
        assert!(why(of("{node}/x")).contains("'{' is none of"));
        assert!(why(of("")).contains("is empty"));
    }
}
