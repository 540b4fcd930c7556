//! Memory of a message, computed before it is decoded.

use alloc::string::String;

use ciborium_ll::Header;

use crate::cbor_head;
use crate::value::Value;

/// Returns the rough memory of a decoded message, in bytes: a small map is some hundred bytes, of three
/// to five on the line. What is malformed counts as far as it is not. Takes no memory itself.
pub fn weight(mut message: &[u8]) -> usize {
    /// Containers take room for so many members at once.
    const ROOM: usize = 4;
    /// Around what is allocated.
    const AROUND: usize = 16;
    let mut weight = 0usize;
    while let Ok((header, len)) = cbor_head::read(message) {
        let (inside, more) = match header {
            Header::Text(len) | Header::Bytes(len) => {
                let len = len.unwrap_or(0);
                (len, len.saturating_add(AROUND))
            }
            Header::Array(_) => (0, ROOM * size_of::<Value>()),
            Header::Map(_) => (0, ROOM * size_of::<(String, Value)>()),
            _ => (0, 0),
        };
        weight = weight.saturating_add(size_of::<Value>()).saturating_add(more);
        message = message.get(len.saturating_add(inside)..).unwrap_or_default();
    }
    weight
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::cbor;
    use crate::link::message::MOST_MESSAGE;

    #[test]
    fn what_takes_much_memory_weighs_much() {
        // The smallest map with a member, as often as it fits.
        let maps = [0xbf, 0x61, 0x61, 0x00, 0xff].repeat(MOST_MESSAGE / 5);
        assert!(weight(&maps) > 400_000 * 250, "{}", weight(&maps));
        // Numbers, as a map of the surroundings may have.
        let numbers: Value = (0..200_000).map(|n| Value::from(n * 100_000_000u64)).collect();
        let numbers = cbor::to_vec(&numbers);
        assert!((200_000 * 16..200_000 * 100).contains(&weight(&numbers)));
        let text = cbor::to_vec(&Value::from("x".repeat(1 << 20)));
        assert!((1 << 20..(1 << 20) + 200).contains(&weight(&text)));
        assert_eq!(weight(&[0xff, 0xff]), weight(&[0xff]) * 2);
        assert_eq!(weight(&[0x7b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), usize::MAX);
        assert_eq!(weight(&[]), 0);
    }

    proptest! {
        #[test]
        fn any_bytes_weigh_something(bytes: Vec<u8>) {
            assert_eq!(weight(&bytes) == 0, cbor_head::read(&bytes).is_err());
        }
    }
}
