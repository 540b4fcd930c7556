//! Privacy: ids of people become pseudonyms, and secrets are taken out of texts.

use hmac::{Hmac, Mac as _};
use omir_core::value::Value;
use sha2::Sha256;

use crate::ids::hex;
use crate::redact::redacted;

/// Stands for an id of a person: HMAC-SHA-256 under the key of the daemon, 32 hex digits. The tenant is part of it, so that
/// no reader of the store sees that two tenants have the same user.
pub(crate) fn pseudonym(key: &[u8; 32], tenant: &str, class: &str, id: &str) -> String {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        return String::new(); // HMAC takes a key of any length.
    };
    for part in [class, tenant, id] {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part.as_bytes());
    }
    let mut text = hex(&mac.finalize().into_bytes());
    text.truncate(32);
    text
}

/// Puts pseudonyms in the place of `context.user_id` and `context.session_id`.
pub(crate) fn hide_people(record: &mut Value, key: &[u8; 32], tenant: &str) {
    let Some(context) = record.as_object_mut().and_then(|record| record.get_mut("context")) else {
        return;
    };
    for class in ["user_id", "session_id"] {
        if let Some(context) = context.as_object_mut()
            && let Some(Value::Text(id)) = context.get_mut(class)
        {
            *id = pseudonym(key, tenant, class, id);
        }
    }
}

/// Takes secrets out of the texts that people and programs write: title, intent, summary, notes, results of tests and the
/// contents of artifacts. Returns how many there were.
pub(crate) fn redact(record: &mut Value) -> usize {
    fn text(value: Option<&mut Value>) -> usize {
        let Some(Value::Text(text)) = value else { return 0 };
        let Some((clean, count)) = redacted(text) else { return 0 };
        *text = clean;
        count
    }
    fn each(list: Option<&mut Value>, mut f: impl FnMut(&mut Value) -> usize) -> usize {
        list.and_then(Value::as_array_mut).into_iter().flatten().map(&mut f).sum()
    }
    let Some(map) = record.as_object_mut() else { return 0 };
    let mut count = text(map.get_mut("title")) + text(map.get_mut("intent"));
    let member = |item: &mut Value, name: &str| {
        text(item.as_object_mut().and_then(|item| item.get_mut(name)))
    };
    count += each(map.get_mut("nodes_used"), |node| member(node, "notes"));
    if let Some(result) = map.get_mut("result").and_then(Value::as_object_mut) {
        count += text(result.get_mut("summary"));
        count += each(result.get_mut("artifacts"), |artifact| member(artifact, "content"));
        let validation = result.get_mut("validation").and_then(Value::as_object_mut);
        let results = validation.and_then(|known| known.get_mut("test_results"));
        count += each(results, |line| text(Some(line)));
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::record;

    #[test]
    fn a_person_is_a_pseudonym_of_one_tenant() {
        let of = |key: u8, tenant, class, id| pseudonym(&[key; 32], tenant, class, id);
        let one = of(1, "default", "user_id", "u-77");
        assert_eq!(one.len(), 32);
        assert_eq!(one, of(1, "default", "user_id", "u-77"));
        for other in [
            of(2, "default", "user_id", "u-77"),
            of(1, "b", "user_id", "u-77"),
            of(1, "default", "session_id", "u-77"),
            of(1, "default", "user_id", "u-7"),
        ] {
            assert_ne!(one, other);
        }
        let mut value = record("t-1");
        let context = value.as_object_mut().unwrap().get_mut("context").unwrap();
        context.as_object_mut().unwrap().insert("user_id", "u-77");
        hide_people(&mut value, &[1; 32], "default");
        assert_eq!(value.pointer("/context/user_id"), Some(&Value::from(one)));
        assert_eq!(value.pointer("/context/domain"), Some(&Value::from("general")));
    }

    #[test]
    fn every_text_is_searched_for_secrets() {
        let secret = "password=hunter2";
        let text = format!(
            r#"{{"title":"{secret}","intent":"{secret}","nodes_used":[{{"notes":"{secret}"}}],"result":{{
            "summary":"{secret}","artifacts":[{{"content":"{secret}"}}],"validation":{{"test_results":["{secret}"]}}}}}}"#
        );
        let mut value = omir_core::json::from_slice(text.as_bytes(), &Default::default()).unwrap();
        assert_eq!(redact(&mut value), 6);
        assert!(!omir_core::json::to_string(&value).contains("hunter2"));
        assert_eq!(redact(&mut value), 0);
    }
}
