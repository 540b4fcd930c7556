//! Types that tests know.

use omir_ros2::interface::Registry;

/// The bundled types, and two that everybody knows.
pub fn registry() -> Registry {
    let mut registry = Registry::standard();
    for (name, text) in [
        ("example_interfaces/srv/AddTwoInts", "int64 a\nint64 b\n---\nint64 sum\n"),
        (
            "example_interfaces/action/Fibonacci",
            "int32 order\n---\nint32[] sequence\n---\nint32[] sequence\n",
        ),
    ] {
        registry.add_text(&name.parse().unwrap(), text).unwrap();
    }
    registry
}
