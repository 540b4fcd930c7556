//! References and JSON Pointers.

use omir_core::pointer;
use omir_core::reference::{Id, Ref, ResourceType};
use omir_core::value::Value;

/// Reads a text as a reference, an id and a pointer.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let is_id = |id: &str| {
        (1..=128).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:-".contains(&b))
    };
    assert_eq!(Id::new(text).is_ok(), is_id(text), "{text:?}");
    let expected = ResourceType::ALL.iter().find_map(|kind| {
        let id = text.strip_prefix(kind.as_str())?.strip_prefix('/')?;
        is_id(id).then_some((*kind, id))
    });
    match text.parse::<Ref>() {
        Ok(target) => {
            assert_eq!(Some((target.kind, target.id.as_str())), expected);
            assert_eq!(target.to_string(), text);
        }
        Err(_) => assert_eq!(expected, None, "{text:?}"),
    }
    pointers(text);
}

fn pointers(text: &str) {
    let _ = Value::Null.pointer(text);
    // Any text is a token, and a pointer made of tokens leads to where they say.
    let tokens: Vec<&str> = text.split('\n').take(16).collect();
    let mut joined = String::new();
    let mut value = Value::from("here");
    for token in tokens.iter().rev() {
        let mut map = omir_core::value::Map::new();
        map.insert(*token, value);
        value = Value::Object(map);
    }
    for token in &tokens {
        pointer::push(&mut joined, token);
    }
    // A lone `/` is how people write the root, so an empty name alone cannot be pointed at.
    if joined != "/" {
        assert!(pointer::tokens(&joined).eq(tokens.iter().copied()), "{joined:?}");
        assert_eq!(value.pointer(&joined).and_then(Value::as_str), Some("here"), "{joined:?}");
    }
}
