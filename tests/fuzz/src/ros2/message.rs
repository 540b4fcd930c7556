//! CDR of the bundled types, beside what is written of it again; resources beside their messages.

use std::sync::LazyLock;

use omir_ros2::interface::Registry;
use omir_ros2::message::Message;
use omir_ros2::records::Records;

use crate::support::identical;

static KNOWN: LazyLock<(Registry, Records)> = LazyLock::new(|| {
    let registry = Registry::standard();
    let records = Records::new(&registry).expect("the bundled types are there");
    (registry, records)
});

/// The name of a type, a line feed, CDR.
pub fn run(bytes: &[u8]) {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { return };
    let (registry, records) = &*KNOWN;
    let Ok(name) = std::str::from_utf8(&bytes[..end]) else { return };
    let Ok(ty) = registry.message(name) else { return };
    let cdr = &bytes[end + 1..];
    let message = match Message::decode(&ty, cdr) {
        Ok(message) => message,
        Err(wrong) => {
            assert!(wrong.offset <= cdr.len(), "{wrong}");
            return;
        }
    };
    // Compared as bytes, for a NaN is not equal to itself.
    let written = message.encode();
    let again = Message::decode(&ty, &written).expect("what was written is read");
    assert_eq!(again.encode(), written, "{message:?}");
    assert!(written.len() <= 4 * cdr.len(), "{message:?}");

    if let Ok(resource) = records.from_message(&message) {
        let message = records.to_message(&resource).expect("a resource of the four types");
        let again = records.from_message(&message).expect("what was written is read");
        assert!(identical(&again, &resource), "{resource} became {again}");
    }
}
