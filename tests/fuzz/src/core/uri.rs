//! Absolute URIs, beside the grammar of RFC 3986 read from the back.

use omir_core::validate::is_absolute_uri;

/// Compares both answers; a part of a URI that is percent-encoded keeps it one.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let answer = is_absolute_uri(text);
    assert_eq!(answer, by_appendix_b(text), "{text:?}");
    if answer {
        assert!(
            text.is_ascii() && !text.contains([' ', '"', '<', '>', '\\', '^', '`', '{', '|', '}'])
        );
        if !text.contains('#') {
            assert!(is_absolute_uri(&format!("{text}#%20")), "{text:?}");
        }
        assert!(!is_absolute_uri(&format!("{text}#a#b")));
        assert!(!is_absolute_uri(&format!("{text}%2")) && !is_absolute_uri(&format!("{text} ")));
    }
}

/// Takes the text apart as RFC 3986 appendix B does, then looks at the characters of each part (§2.2,
/// §2.3, §3.1 to §3.5).
fn by_appendix_b(text: &str) -> bool {
    let (rest, fragment) = cut(text, '#');
    let (rest, query) = cut(rest, '?');
    let Some(colon) = rest.find(':').filter(|colon| !rest[..*colon].contains('/')) else {
        return false;
    };
    let (scheme, rest) = (&rest[..colon], &rest[colon + 1..]);
    let is_scheme = scheme.as_bytes().first().is_some_and(u8::is_ascii_alphabetic)
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", rest),
    };
    let pchar_and =
        |more: &'static str| move |byte: u8| is_pchar(byte) || more.as_bytes().contains(&byte);
    is_scheme
        && is_authority(authority)
        && all(path, pchar_and("/"))
        && all(query, pchar_and("/?"))
        && all(fragment, pchar_and("/?"))
}

fn cut(text: &str, at: char) -> (&str, &str) {
    text.split_once(at).unwrap_or((text, ""))
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

fn is_sub_delimiter(byte: u8) -> bool {
    b"!$&'()*+,;=".contains(&byte)
}

fn is_pchar(byte: u8) -> bool {
    is_unreserved(byte) || is_sub_delimiter(byte) || b":@".contains(&byte)
}

/// Every byte is allowed, or begins a percent sign with two digits.
fn all(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    let mut parts = text.split('%');
    let first = parts.next().unwrap_or_default();
    first.bytes().all(&allowed)
        && parts.all(|part| {
            let bytes = part.as_bytes();
            bytes.len() >= 2
                && bytes[..2].iter().all(u8::is_ascii_hexdigit)
                && bytes[2..].iter().copied().all(&allowed)
        })
}

/// `[ userinfo "@" ] host [ ":" port ]`.
fn is_authority(authority: &str) -> bool {
    let plain = |byte: u8| is_unreserved(byte) || is_sub_delimiter(byte);
    let host = match authority.split_once('@') {
        Some((user, host)) if all(user, |byte| plain(byte) || byte == b':') => host,
        Some(_) => return false,
        None => authority,
    };
    let (host, port) = match host.rfind(']') {
        Some(end) => host.split_at(end + 1),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_port = match port.strip_prefix(':') {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_digit()),
        None => port.is_empty(),
    };
    let is_host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(literal) => is_address(literal),
        None => all(host, plain),
    };
    is_host && is_port
}

/// Returns true for the contents of brackets: an address of version 6, of eight groups or fewer around one `::`, or
/// `"v" 1*HEXDIG "." 1*( unreserved / sub-delims / ":" )`.
fn is_address(literal: &str) -> bool {
    if let Some(future) = literal.strip_prefix(['v', 'V']) {
        let (version, rest) = cut(future, '.');
        let in_rest = |byte: u8| is_unreserved(byte) || is_sub_delimiter(byte) || byte == b':';
        return !version.is_empty()
            && version.bytes().all(|byte| byte.is_ascii_hexdigit())
            && !rest.is_empty()
            && rest.bytes().all(in_rest);
    }
    match literal.split_once("::") {
        None => groups(literal, true) == Some(8),
        Some((front, back)) => {
            let count = groups(front, false).zip(groups(back, true));
            count.is_some_and(|(front, back)| front + back <= 7)
        }
    }
}

/// Counts the groups; an address of version 4 at the end stands for two.
fn groups(text: &str, may_end_in_v4: bool) -> Option<usize> {
    if text.is_empty() {
        return Some(0);
    }
    let parts: Vec<&str> = text.split(':').collect();
    let mut count = 0;
    for (index, part) in parts.iter().enumerate() {
        let is_hex = part.bytes().all(|byte| byte.is_ascii_hexdigit());
        count += match part.len() {
            1..=4 if is_hex => 1,
            _ if may_end_in_v4 && index + 1 == parts.len() && is_v4(part) => 2,
            _ => return None,
        };
    }
    Some(count)
}

fn is_v4(text: &str) -> bool {
    let is_octet = |part: &str| (0..=255).any(|octet| part == octet.to_string());
    text.split('.').count() == 4 && text.split('.').all(is_octet)
}
