//! Secrets taken out of texts before they are stored.
//!
//! Bearer tokens, blocks of private keys, values of `password=`, `secret=` and `token=`, and long random strings become
//! [`REDACTED`]. Texts are scanned once, without regular expressions and without looking back.

/// The text in the place of a secret.
pub(crate) const REDACTED: &str = "[redacted]";

/// The least length of a string that is taken for a random one.
const RANDOM_LENGTH: usize = 32;

/// Names whose value is a secret, also as the end of a longer name (`db_password`).
const NAMES: [&str; 8] =
    ["password", "passwd", "secret", "token", "api_key", "apikey", "api-key", "access_key"];

/// Returns the text without its secrets, and how many there were; `None` if there were none.
pub(crate) fn redacted(text: &str) -> Option<(String, usize)> {
    let mut out = String::new();
    // What is copied so far ends here.
    let mut copied = 0;
    let mut at = 0;
    let mut count = 0;
    while at < text.len() {
        match secret_at(text, at) {
            Found::Secret { from, to } => {
                out.push_str(&text[copied..from]);
                out.push_str(REDACTED);
                count += 1;
                copied = to;
                at = to;
            }
            Found::Nothing { next } => at = next,
        }
    }
    if count == 0 {
        return None;
    }
    out.push_str(&text[copied..]);
    Some((out, count))
}

enum Found {
    /// A secret in these bytes.
    Secret { from: usize, to: usize },
    /// None that begins before this byte.
    Nothing { next: usize },
}

/// Looks for a secret that begins at a byte, or whose name does. That is a boundary of characters, and so is what comes back.
fn secret_at(text: &str, at: usize) -> Found {
    let rest = &text[at..];
    if rest.starts_with("-----BEGIN ") {
        return match key_block(rest) {
            Some(length) => Found::Secret { from: at, to: at + length },
            None => Found::Nothing { next: at + 5 },
        };
    }
    let word = rest.bytes().take_while(|byte| is_of_word(*byte)).count();
    if word == 0 {
        let step = rest.chars().next().map_or(1, char::len_utf8);
        return Found::Nothing { next: at + step };
    }
    let end = at + word;
    if let Some((from, to)) = value_after(text, &rest[..word], end) {
        return Found::Secret { from, to };
    }
    // `=` pads base64 at its end.
    let padding = text[end..].bytes().take(2).take_while(|byte| *byte == b'=').count();
    if is_random(&rest[..word]) {
        return Found::Secret { from: at, to: end + padding };
    }
    // `name=value` in one word of that alphabet: the value may be one by itself.
    Found::Nothing { next: end }
}

/// The alphabet of base64 and base64url.
fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'_' | b'-')
}

/// Returns the length of a block of a private key: up to its end, or to the end of the text if that was cut.
fn key_block(text: &str) -> Option<usize> {
    const MARK: &str = "PRIVATE KEY-----";
    // The longest label known is shorter. A bound, so that a text of beginnings is read once.
    let label = &text.as_bytes()[..text.len().min(80)];
    let begin = label.windows(MARK.len()).position(|part| part == MARK.as_bytes())? + MARK.len();
    let end = text[begin..].find(MARK).map(|end| begin + end + MARK.len());
    Some(end.unwrap_or(text.len()))
}

/// Returns the bytes of the value that follows the name of a secret, which ends at `end`.
fn value_after(text: &str, word: &str, end: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let spaces = |from: usize| {
        let count = bytes[from..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        from + count
    };
    if word.eq_ignore_ascii_case("bearer") {
        let from = spaces(end);
        let length = text[from..].bytes().take_while(|byte| is_of_token(*byte)).count();
        // A word of prose, as in "the bearer of", is no token.
        let token = &text[from..from + length];
        let is_token = length >= 6 && token.bytes().any(|byte| !byte.is_ascii_lowercase());
        return (from > end && is_token).then_some((from, from + length));
    }
    let is_name = NAMES.iter().any(|name| {
        let tail = word.len().checked_sub(name.len()).and_then(|from| word.get(from..));
        tail.is_some_and(|tail| tail.eq_ignore_ascii_case(name))
    });
    if !is_name {
        return None;
    }
    // `password=x`, `password: x`, `"password": "x"`.
    let quoted = bytes.get(end).is_some_and(|byte| matches!(byte, b'"' | b'\''));
    let sign = spaces(end + usize::from(quoted));
    if !bytes.get(sign).is_some_and(|byte| matches!(byte, b'=' | b':')) {
        return None;
    }
    let value = spaces(sign + 1);
    let quote = bytes.get(value).copied().filter(|byte| matches!(byte, b'"' | b'\''));
    let from = value + usize::from(quote.is_some());
    if text[from..].starts_with(REDACTED) {
        return None;
    }
    let is_end = |c: char| match quote {
        Some(quote) => c == char::from(quote) || c == '\n',
        None => c.is_whitespace() || matches!(c, '&' | ';' | ',' | '"' | '\'' | ')' | '}'),
    };
    let length = text[from..].find(is_end).unwrap_or(text.len() - from);
    (length > 0).then_some((from, from + length))
}

/// RFC 6750, `b64token`.
fn is_of_token(byte: u8) -> bool {
    is_of_word(byte) || matches!(byte, b'.' | b'~' | b'=')
}

/// Returns true for a long word with digits and both cases, as keys and tokens are.
fn is_random(word: &str) -> bool {
    let has = |is: fn(&u8) -> bool| word.as_bytes().iter().any(is);
    word.len() >= RANDOM_LENGTH
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_uppercase)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(text: &str) -> String {
        redacted(text).map_or_else(|| text.to_owned(), |(text, _)| text)
    }

    #[test]
    fn secrets_are_taken_out() {
        let random = "Zm9vYmFyMTIzNDU2Nzg5MGFiY2RlZmdoaWprbG1ub3A=";
        for (text, expected) in [
            ("Authorization: Bearer abc.def.ghi", "Authorization: Bearer [redacted]"),
            ("bearer  A1b2C3~x==, then", "bearer  [redacted], then"),
            ("password=hunter2&user=x", "password=[redacted]&user=x"),
            ("DB_PASSWORD: hunter2 done", "DB_PASSWORD: [redacted] done"),
            (r#"{"token": "a b", "x": 1}"#, r#"{"token": "[redacted]", "x": 1}"#),
            ("secret='s3' api_key=\"k\"", "secret='[redacted]' api_key=\"[redacted]\""),
            (&format!("key {random} end"), "key [redacted] end"),
            (
                "a -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- b",
                "a [redacted] b",
            ),
            ("-----BEGIN PRIVATE KEY-----\nMIIE cut", "[redacted]"),
            ("pässwörter token=é;x", "pässwörter token=[redacted];x"),
        ] {
            assert_eq!(all(text), expected, "{text}");
            assert_eq!(all(expected), expected, "once is enough");
        }
    }

    #[test]
    fn prose_names_and_paths_stay() {
        for text in [
            "the bearer of this note",
            "a token of thanks; the secret is out",
            "-----BEGIN CERTIFICATE-----",
            "/home/robot/maps/warehouse_2026_11_24/station_2_dock_final",
            "550e8400-e29b-41d4-a716-446655440000",
            "docked in 100 ms",
            "password",
            "",
        ] {
            assert_eq!(redacted(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_taken_and_none_is_cut_within_a_character(text in "\\PC{0,60}|(token=|Bearer |é|-----BEGIN |[ -~]){0,9}") {
            let once = all(&text);
            prop_assert!(redacted(&text).is_none() || once.contains(REDACTED));
        }

        #[test]
        fn a_secret_is_found_wherever_it_stands(before in "[ .,é]{0,8}", secret in "[A-Za-z0-9]{8,40}", after in "[ ,;&é]{0,1}") {
            let text = format!("{before}password={secret}{}", if after == "é" { "" } else { &after });
            prop_assert!(!all(&text).contains(&secret), "{}", text);
        }
    }
}
