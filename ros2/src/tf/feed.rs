//! `tf2_msgs/TFMessage` into the buffer, from the network as from a recording.

use super::buffer::Buffer;
use super::error::InsertError;
use super::transform::transform;
use crate::message::{Message, Value};
use crate::stamp::Stamp;

/// Takes in all transforms of a `tf2_msgs/TFMessage`, which are static if it came by `/tf_static`; gives
/// why some were refused. A message of another type has none.
pub fn feed(buffer: &mut Buffer, message: &Message, is_static: bool) -> Vec<InsertError> {
    let transforms = message.field("transforms").and_then(Value::as_list).unwrap_or_default();
    let stamped = transforms.iter().filter_map(Value::as_message);
    stamped.filter_map(|stamped| insert(buffer, stamped, is_static)?.err()).collect()
}

/// Takes in a `geometry_msgs/TransformStamped`; `None` if it is something else.
fn insert(
    buffer: &mut Buffer,
    stamped: &Message,
    is_static: bool,
) -> Option<Result<(), InsertError>> {
    // Field by field and not by paths: there may be thousands a second.
    let header = inner(stamped, "header")?;
    let parent = header.field("frame_id")?.as_text()?;
    let child = stamped.field("child_frame_id")?.as_text()?;
    let stamp = Stamp::from_message(inner(header, "stamp")?)?;
    let told = inner(stamped, "transform")?;
    let translation = numbers(inner(told, "translation")?, ["x", "y", "z"])?;
    let rotation = numbers(inner(told, "rotation")?, ["x", "y", "z", "w"])?;
    let inserted = transform(translation, rotation)
        .map_err(|why| InsertError::Bad { parent: parent.into(), child: child.into(), why })
        .and_then(|transform| buffer.insert(parent, child, stamp, transform, is_static));
    Some(inserted.map(|_| ()))
}

fn inner<'m>(message: &'m Message, field: &str) -> Option<&'m Message> {
    message.field(field)?.as_message()
}

fn numbers<const N: usize>(message: &Message, fields: [&str; N]) -> Option<[f64; N]> {
    let mut numbers = [0.0; N];
    for (number, field) in numbers.iter_mut().zip(fields) {
        *number = message.field(field).and_then(Value::as_f64)?;
    }
    Some(numbers)
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
        let kinds: Vec<_> = refused.iter().map(InsertError::kind).collect();
        assert_eq!(kinds, ["self-parent", "no-transform"]);
        let pose = buffer.lookup("map", "base_link", Stamp::from_ros(12, 0)).unwrap();
        assert_eq!(pose * Point3::origin(), Point3::new(0.0, 3.0, 0.0));
        assert!(buffer.lookup("map", "base_link", Stamp::MAX).is_err());
        feed(&mut buffer, &message, true);
        assert!(buffer.lookup("map", "base_link", Stamp::MAX).is_ok());
        let text = Message::new(&registry.message("std_msgs/msg/String").unwrap());
        assert_eq!(feed(&mut buffer, &text, false), []);
    }
}
