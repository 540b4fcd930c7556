//! `tf2_msgs/TFMessage` into the buffer, from the network as from a recording.

use nalgebra::{Isometry3, Translation3};
use omir_core::space::unit_quaternion;

use super::buffer::Buffer;
use crate::message::{Message, Value};
use crate::stamp::Stamp;

/// Takes in all transforms of a message; gives why some were refused.
pub fn feed(buffer: &mut Buffer, message: &Message, is_static: bool) -> Vec<String> {
    let transforms = message.list("transforms").unwrap_or_default();
    let each = transforms.iter().filter_map(|transform| match transform {
        Value::Message(stamped) => insert(buffer, stamped, is_static).err(),
        _ => None,
    });
    each.collect()
}

/// Takes in a `geometry_msgs/TransformStamped`.
fn insert(buffer: &mut Buffer, stamped: &Message, is_static: bool) -> Result<(), String> {
    let text = |path| stamped.text(path).unwrap_or_default();
    let (parent, child) = (text("header.frame_id"), text("child_frame_id"));
    let number = |path: String| stamped.f64(&path).unwrap_or(f64::NAN);
    let at = ["x", "y", "z"].map(|axis| number(format!("transform.translation.{axis}")));
    let turn = ["x", "y", "z", "w"].map(|part| number(format!("transform.rotation.{part}")));
    let rotation = unit_quaternion(turn)
        .ok_or_else(|| format!("{parent:?} to {child:?}: {turn:?} is no rotation"))?;
    let transform = Isometry3::from_parts(Translation3::from(at), rotation);
    let part = |path| stamped.i64(path).unwrap_or_default();
    let (sec, nanosec) = (part("header.stamp.sec"), part("header.stamp.nanosec"));
    let stamp = Stamp::from_nanos(sec.saturating_mul(1_000_000_000).saturating_add(nanosec));
    buffer
        .insert(parent, child, stamp, transform, is_static)
        .map(|_| ())
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use nalgebra::Point3;

    use super::*;
    use crate::interface::Registry;

    #[test]
    fn what_a_message_tells_is_known_and_what_is_no_transform_is_refused() {
        let registry = Registry::standard();
        let stamped = registry.message("geometry_msgs/msg/TransformStamped").unwrap();
        let transform = |child: &str, w: f64| {
            let mut one = Message::new(&stamped);
            one.set("header.frame_id", "map").unwrap();
            one.set("header.stamp.sec", 12i64).unwrap();
            one.set("child_frame_id", child).unwrap();
            one.set("transform.translation.y", 3.0).unwrap();
            one.set("transform.rotation.w", w).unwrap();
            Value::Message(one)
        };
        let mut message = Message::new(&registry.message("tf2_msgs/msg/TFMessage").unwrap());
        let all = vec![transform("base_link", 1.0), transform("map", 1.0), transform("odd", 0.0)];
        message.set("transforms", Value::List(all)).unwrap();
        let mut buffer = Buffer::default();
        let refused = feed(&mut buffer, &message, false);
        assert_eq!(refused.len(), 2, "{refused:?}");
        let pose = buffer.lookup("map", "base_link", Stamp::from_ros(12, 0)).unwrap();
        assert_eq!(pose * Point3::origin(), Point3::new(0.0, 3.0, 0.0));
    }
}
