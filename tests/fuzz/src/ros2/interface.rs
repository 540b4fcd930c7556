//! Texts of interfaces and type descriptions, beside each other.

use std::sync::LazyLock;

use omir_ros2::interface::{Registry, TypeDescriptionMsg, message_type};

/// What every service and every action contains.
static PARTS: LazyLock<Vec<TypeDescriptionMsg>> = LazyLock::new(|| {
    let standard = Registry::standard();
    ["service_msgs/msg/ServiceEventInfo", "unique_identifier_msgs/msg/UUID"]
        .map(|name| standard.message(name).expect("a bundled type").description())
        .into()
});

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
        for part in &*PARTS {
            registry.add_description(part).expect("a type of ROS");
        }
        let parsed = name.parse().map(|name| registry.add_text(&name, text));
        let Ok(ty) = registry.message(name) else { continue };
        assert_eq!(parsed, Ok(Ok(())));
        let mut learnt = Registry::new();
        assert_eq!(learnt.add_description(&ty.description()).map(|ty| ty.hash), Ok(ty.hash));
    }
}
