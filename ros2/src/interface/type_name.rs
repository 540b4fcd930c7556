//! The name of a type: `package/kind/Name`.

use std::fmt;
use std::str::FromStr;

use super::InterfaceError;

/// The kind of interface file that a type comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A `.msg` file.
    Msg,
    /// A `.srv` file; also the request, the response and the event made from it.
    Srv,
    /// An `.action` file; also what is made from it.
    Action,
}

impl Kind {
    /// `msg`, `srv` or `action`: the middle of a type's name, the folder and the extension of its file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Msg => "msg",
            Self::Srv => "srv",
            Self::Action => "action",
        }
    }
}

/// The name of a type, as in `std_msgs/msg/String`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeName {
    package: String,
    kind: Kind,
    name: String,
}

impl TypeName {
    /// Checks package and name against the rules of `rosidl`.
    pub fn new(package: &str, kind: Kind, name: &str) -> Result<Self, InterfaceError> {
        let bad =
            |why| InterfaceError::Name { name: format!("{package}/{}/{name}", kind.as_str()), why };
        if !is_package(package) {
            return Err(bad("a package is lower case letters, digits and single underscores, \
                            and begins with a letter"));
        }
        if !is_type(name) {
            return Err(bad("a type is letters and digits and begins with an upper case letter"));
        }
        Ok(Self { package: package.into(), kind, name: name.into() })
    }

    /// A name that is written in this program.
    pub(super) fn known(package: &str, kind: Kind, name: &str) -> Self {
        Self { package: package.into(), kind, name: name.into() }
    }

    /// The package, as in `std_msgs`.
    pub fn package(&self) -> &str {
        &self.package
    }

    /// Message, service or action.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The name alone, as in `String`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name on the wire of DDS and in Zenoh's keys: `std_msgs::msg::dds_::String_`.
    pub fn dds(&self) -> String {
        format!("{}::{}::dds_::{}_", self.package, self.kind.as_str(), self.name)
    }

    /// The name of what is derived from this one: `Recall` and `_Request` give `Recall_Request`.
    pub(super) fn derived(&self, suffix: &str) -> Self {
        Self { name: format!("{}{suffix}", self.name), ..self.clone() }
    }
}

impl fmt::Display for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.package, self.kind.as_str(), self.name)
    }
}

/// `package/kind/Name`; `package/Name` is a message; the form of DDS is understood too.
impl FromStr for TypeName {
    type Err = InterfaceError;

    fn from_str(text: &str) -> Result<Self, InterfaceError> {
        let bad = |why| InterfaceError::Name { name: text.into(), why };
        let plain = if text.contains("::") {
            let (head, tail) = text
                .split_once("::dds_::")
                .ok_or_else(|| bad("a name with :: has the form package::msg::dds_::Name_"))?;
            let name = tail
                .strip_suffix('_')
                .ok_or_else(|| bad("a name with :: ends in an underscore"))?;
            format!("{}/{name}", head.replace("::", "/"))
        } else {
            text.into()
        };
        let parts: Vec<&str> = plain.split('/').collect();
        match parts[..] {
            [package, name] => Self::new(package, Kind::Msg, name),
            [package, "msg", name] => Self::new(package, Kind::Msg, name),
            [package, "srv", name] => Self::new(package, Kind::Srv, name),
            [package, "action", name] => Self::new(package, Kind::Action, name),
            _ => Err(bad("a type is named package/msg/Name, package/srv/Name or \
                          package/action/Name")),
        }
    }
}

/// `rosidl_adapter`: `^(?!.*__)(?!.*_$)[a-z][a-z0-9_]*$`.
fn is_package(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && !text.contains("__")
        && !text.ends_with('_')
}

/// `rosidl_adapter`: `^[A-Z][A-Za-z0-9]*$`, and the names it derives have underscores between such parts.
fn is_type(text: &str) -> bool {
    text.split('_').all(|part| {
        part.starts_with(|c: char| c.is_ascii_uppercase())
            && part.bytes().all(|b| b.is_ascii_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_one_name() {
        let name: TypeName = "std_msgs/msg/String".parse().unwrap();
        assert_eq!(name, "std_msgs/String".parse().unwrap());
        assert_eq!(name, name.dds().parse().unwrap());
        assert_eq!(name.dds(), "std_msgs::msg::dds_::String_");
        assert_eq!(name.to_string(), "std_msgs/msg/String");
        let request: TypeName =
            "example_interfaces::srv::dds_::AddTwoInts_Request_".parse().unwrap();
        assert_eq!(request.to_string(), "example_interfaces/srv/AddTwoInts_Request");
    }

    #[test]
    fn a_name_that_is_none_is_refused_with_the_rule() {
        for text in [
            "",
            "String",
            "std_msgs/String/",
            "std_msgs/msgs/String",
            "Std_msgs/msg/String",
            "std__msgs/msg/String",
            "std_msgs_/msg/String",
            "std_msgs/msg/string",
            "std_msgs/msg/Str-ing",
            "std_msgs/msg/",
            "std_msgs::msg::String",
            "std_msgs::msg::dds_::String",
        ] {
            assert!(text.parse::<TypeName>().is_err(), "{text}");
        }
    }
}
