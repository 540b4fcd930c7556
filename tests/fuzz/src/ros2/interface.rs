//! Texts of interfaces and type descriptions, beside each other.

use omir_ros2::interface::{Registry, TypeDescriptionMsg, message_type};

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
        let mut registry = Registry::standard();
        let parsed = name.parse().map(|name| registry.add_text(&name, text));
        let Ok(ty) = registry.message(name) else { continue };
        assert_eq!(parsed, Ok(Ok(())));
        let mut learnt = Registry::new();
        assert_eq!(learnt.add_description(&ty.description()).map(|ty| ty.hash), Ok(ty.hash));
    }
}
