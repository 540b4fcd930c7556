//! JSON as the text of an `rdf:JSON` literal: one text for one value, so that equal values are equal
//! terms.
//!
//! RFC 8785 (which JSON-LD 1.1 §10.2 follows), but for one thing: a number that no double holds keeps its
//! digits, where the RFC would round it.

use omir_core::json;
use omir_core::value::Value;

use super::digits::Digits;

/// The canonical text of a value.
pub(super) fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value);
    out
}

/// As deep as the value, which a decoder has bounded.
fn write(out: &mut String, value: &Value) {
    match value {
        Value::Number(number) => match Digits::of(number) {
            Some(digits) => out.push_str(&digits.ecmascript()),
            None => out.push_str(&number.to_string()),
        },
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(out, item);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            out.push('{');
            for (index, (name, member)) in members.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&json::to_string(&Value::from(name)));
                out.push(':');
                write(out, member);
            }
            out.push('}');
        }
        plain => out.push_str(&json::to_string(plain)),
    }
}

#[cfg(test)]
mod tests {
    use omir_core::decode::Limits;

    use super::*;

    #[test]
    fn equal_values_have_one_text() {
        let canonical =
            |text: &str| canonical(&json::from_slice(text.as_bytes(), &Limits::default()).unwrap());
        assert_eq!(
            canonical(r#"{ "b": [1.0, null, true], "a": {"é": "\u000f\n\"", "A": -0.0} }"#),
            r#"{"a":{"A":0,"é":"\u000f\n\""},"b":[1,null,true]}"#
        );
        // RFC 8785 §3.2.3: by UTF-16 code units a surrogate pair comes before U+FB33.
        assert_eq!(canonical(r#"{"\ufb33":1,"😀":2}"#), "{\"😀\":2,\"\u{fb33}\":1}");
        assert_eq!(canonical("1e400"), "1e+400");
    }
}
