//! Texts of interfaces and type descriptions, beside each other.

use omir_ros2::interface::{Registry, TypeDescriptionMsg, message_type};

/// Parts of every service and every action.
const PARTS: [(&str, &str); 4] = [
    (
        "service_msgs/msg/ServiceEventInfo",
        include_str!("../../../../ros2/interfaces/service_msgs/msg/ServiceEventInfo.msg"),
    ),
    (
        "unique_identifier_msgs/msg/UUID",
        include_str!("../../../../ros2/interfaces/unique_identifier_msgs/msg/UUID.msg"),
    ),
    (
        "builtin_interfaces/msg/Time",
        include_str!("../../../../ros2/interfaces/builtin_interfaces/msg/Time.msg"),
    ),
    (
        "builtin_interfaces/msg/Duration",
        include_str!("../../../../ros2/interfaces/builtin_interfaces/msg/Duration.msg"),
    ),
];

/// A type description as JSON, or the text of a message, a service or an action.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(described) = serde_json::from_str::<TypeDescriptionMsg>(text)
        && let Ok(ty) = message_type(&described)
    {
        let again = message_type(&ty.description()).expect("our own description");
        assert_eq!(again.hash, ty.hash);
    }
    for name in ["demo_msgs/msg/Demo", "demo_msgs/srv/Demo", "demo_msgs/action/Demo"] {
        let mut registry = Registry::new();
        for (name, text) in PARTS {
            let name = name.parse().expect("the name of a type");
            registry.add_text(&name, text).expect("a type of ROS");
        }
        let parsed = name.parse().map(|name| registry.add_text(&name, text));
        let Ok(ty) = registry.message(name) else { continue };
        assert_eq!(parsed, Ok(Ok(())));
        let none = Registry::new();
        assert_eq!(none.described(&ty.description()).map(|ty| ty.hash), Ok(ty.hash));
    }
}
