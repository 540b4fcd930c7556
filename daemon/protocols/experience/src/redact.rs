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

/// The beginning of a block of a key.
const BEGIN: &str = "-----BEGIN ";

/// Schemes of `Authorization` whose credentials follow after a blank.
const SCHEMES: [&str; 2] = ["bearer", "basic"];

/// Returns the text without its secrets, and how many there were; `None` if there were none.
pub(crate) fn redacted(text: &str) -> Option<(String, usize)> {
    let mut out = String::new();
    // End of the text that is copied so far.
    let mut copied = 0;
    let mut at = 0;
    let mut count = 0;
    while at < text.len() {
        match secret_at(text, at) {
            Scanned::Secret { from, to } => {
                out.push_str(&text[copied..from]);
                out.push_str(REDACTED);
                count += 1;
                copied = to;
                at = to;
            }
            Scanned::Nothing { next } => at = next,
        }
    }
    if count == 0 {
        return None;
    }
    out.push_str(&text[copied..]);
    Some((out, count))
}

enum Scanned {
    /// A secret in these bytes.
    Secret { from: usize, to: usize },
    /// None that begins before this byte.
    Nothing { next: usize },
}

/// Looks for a secret that begins at a byte, or whose name does. That is a boundary of characters, and so is what comes back.
fn secret_at(text: &str, at: usize) -> Scanned {
    let rest = &text[at..];
    if rest.starts_with(BEGIN) {
        return match key_block(rest) {
            Some(length) => Scanned::Secret { from: at, to: at + length },
            None => Scanned::Nothing { next: at + 5 },
        };
    }
    let word = rest.bytes().take_while(|byte| is_of_word(*byte)).count();
    // A block may begin within a word: after `\n` in a text that is quoted twice, for one.
    let word = rest.get(..word + 1).and_then(|part| part.find(BEGIN)).unwrap_or(word);
    if word == 0 {
        let step = rest.chars().next().map_or(1, char::len_utf8);
        return Scanned::Nothing { next: at + step };
    }
    let end = at + word;
    if let Some((from, to)) = value_after(text, &rest[..word], end) {
        return Scanned::Secret { from, to };
    }
    // `=` pads base64 at its end.
    let padding = text[end..].bytes().take(2).take_while(|byte| *byte == b'=').count();
    if is_random(&rest[..word]) {
        return Scanned::Secret { from: at, to: end + padding };
    }
    // `name=value` in one word of that alphabet: the value may be one by itself.
    Scanned::Nothing { next: end }
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
    if word.eq_ignore_ascii_case("bearer") {
        let (from, to) = token_after(text, end)?;
        // A word of prose, as in "the bearer of", is no token.
        let token = &bytes[from..to];
        let is_token = token.len() >= 6 && token.iter().any(|byte| !byte.is_ascii_lowercase());
        return is_token.then_some((from, to));
    }
    let is_authorization = ends_with(word, "authorization");
    if !is_authorization && !NAMES.iter().any(|name| ends_with(word, name)) {
        return None;
    }
    // `password=x`, `password: x`, `"password": "x"`, and the same quoted once more: `\"password\": \"x\"`.
    let sign = blanks(bytes, end + quote_at(bytes, end).map_or(0, |(_, length)| length));
    if !bytes.get(sign).is_some_and(|byte| matches!(byte, b'=' | b':')) {
        return None;
    }
    let value = blanks(bytes, sign + 1);
    if bytes.get(value) == Some(&b'[') && !text[value..].starts_with(REDACTED) {
        let length = list_length(&text[value + 1..]);
        let is_done = text[value + 1..].starts_with(REDACTED);
        return (length > 0 && !is_done).then_some((value + 1, value + 1 + length));
    }
    let quote = quote_at(bytes, value);
    let from = value + quote.map_or(0, |(_, length)| length);
    // A text that follows the name of a scheme is a token, whatever it looks like.
    let scheme = bytes[from..].iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let is_scheme =
        SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(&text[from..from + scheme]));
    let token = is_scheme.then(|| token_after(text, from + scheme)).flatten();
    if is_authorization {
        return token;
    }
    if let Some((_, to)) = token {
        return Some((from, to));
    }
    let length = value_length(&text[from..], quote);
    let is_done = &text[from..from + length] == REDACTED;
    (length > 0 && !is_done).then_some((from, from + length))
}

/// Returns the length of what stands in a list, up to its end or that of the line.
fn list_length(rest: &str) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            b'\n' => return at,
            b']' if depth == 0 => return at,
            b']' => depth -= 1,
            b'[' => depth += 1,
            _ => {}
        }
    }
    rest.len()
}

fn ends_with(word: &str, name: &str) -> bool {
    let tail = word.len().checked_sub(name.len()).and_then(|from| word.get(from..));
    tail.is_some_and(|tail| tail.eq_ignore_ascii_case(name))
}

/// Returns the place after blanks.
fn blanks(bytes: &[u8], from: usize) -> usize {
    let count = bytes[from..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    from + count
}

/// Returns the quote at a place, and its length with the backslash before it.
fn quote_at(bytes: &[u8], at: usize) -> Option<(u8, usize)> {
    match bytes.get(at..)? {
        [quote @ (b'"' | b'\''), ..] => Some((*quote, 1)),
        [b'\\', quote @ (b'"' | b'\''), ..] => Some((*quote, 2)),
        _ => None,
    }
}

/// Returns the bytes of the token after a scheme, which ends at `end`: on the same line or, where that was wrapped, on the next.
fn token_after(text: &str, end: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut from = blanks(bytes, end);
    let line = text[from..].strip_prefix('\r').unwrap_or(&text[from..]);
    if line.starts_with('\n') {
        from = blanks(bytes, text.len() - line.len() + 1);
    }
    let length = bytes[from..].iter().take_while(|byte| is_of_token(**byte)).count();
    (from > end && length > 0).then_some((from, from + length))
}

/// Returns the length of a value. One in quotes ends at the same quote, unless that is escaped, or with the line.
fn value_length(rest: &str, quote: Option<(u8, usize)>) -> usize {
    let Some((quote, length)) = quote else {
        // A mark in the place of a secret may have more of the secret behind it.
        let marked = if rest.starts_with(REDACTED) { REDACTED.len() } else { 0 };
        let is_end =
            |c: char| c.is_whitespace() || matches!(c, '&' | ';' | ',' | '"' | '\'' | ')' | '}');
        return rest[marked..].find(is_end).map_or(rest.len(), |end| marked + end);
    };
    let mut slashes = 0;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            b'\n' => return at,
            // In a text that is quoted once, an even number of backslashes leaves it a quote.
            byte if byte == quote && slashes % 2 == 0 => return at,
            // In one that is quoted twice, one does, or five: three are an escaped quote.
            byte if byte == quote && length == 2 && slashes % 4 == 1 => return at - 1,
            b'\\' => slashes += 1,
            _ => slashes = 0,
        }
    }
    rest.len()
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
            ("token: Bearer abc.def.ghi", "token: [redacted]"),
            ("access_token=Bearer abc", "access_token=[redacted]"),
            ("X-Auth-Token: bearer S3cr3t.value", "X-Auth-Token: [redacted]"),
            ("Authorization: Bearer abcdefghijklmnop", "Authorization: Bearer [redacted]"),
            ("authorization: basic YTpi, x", "authorization: basic [redacted], x"),
            ("sent Bearer\nabc.def.ghi", "sent Bearer\n[redacted]"),
            ("Authorization: Bearer \r\n abc", "Authorization: Bearer \r\n [redacted]"),
            (r#"{\"password\": \"hunter2\"}"#, r#"{\"password\": \"[redacted]\"}"#),
            (r#"{\"password\": \"hun\\\"ter2\", 1}"#, r#"{\"password\": \"[redacted]\", 1}"#),
            (r#"{"password": "hun\"ter2-rest"}"#, r#"{"password": "[redacted]"}"#),
            (r#"{"password": "ends\\", "x": 1}"#, r#"{"password": "[redacted]", "x": 1}"#),
            (
                r"key\n-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n",
                r"key\n[redacted]\n",
            ),
            (r#""token":["abc"]"#, r#""token":[[redacted]]"#),
            (
                r#""tokens": 1, "token": [["a"],["b"]], 2"#,
                r#""tokens": 1, "token": [[redacted]], 2"#,
            ),
            ("Password=[redacted]hunter2", "Password=[redacted]"),
        ] {
            assert_eq!(all(text), expected, "{text}");
            assert_eq!(all(expected), expected, "once is enough");
        }
    }

    #[test]
    fn prose_names_and_paths_stay() {
        for text in [
            "the bearer of this note",
            "authorization: granted by the operator",
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
