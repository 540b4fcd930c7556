//! Absolute URIs, as the schemas' `format: uri` asks for.

use core::net::Ipv6Addr;

/// Returns true if `text` is a URI with a scheme, in the characters and places RFC 3986 allows: a scheme and a
/// colon (§3.1), percent signs only before two hexadecimal digits (§2.1), one fragment at most (§3.5),
/// brackets only around a host that is an address (§3.2.2).
pub fn is_absolute_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    if !scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        || !scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
    {
        return false;
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (authority, rest) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len())),
        None => ("", rest),
    };
    is_authority(authority) && is_plain(rest) && is_plain(fragment)
}

fn is_authority(authority: &str) -> bool {
    let host = match authority.rsplit_once('@') {
        Some((user, host)) if is_plain(user) && !user.contains('@') => host,
        Some(_) => return false,
        None => authority,
    };
    if let Some(address) = host.strip_prefix('[') {
        return address.split_once(']').is_some_and(|(address, port)| {
            (address.parse::<Ipv6Addr>().is_ok() || is_future_address(address)) && is_port(port)
        });
    }
    match host.split_once(':') {
        Some((name, port)) => is_plain(name) && port.bytes().all(|b| b.is_ascii_digit()),
        None => is_plain(host),
    }
}

/// An address of a version to come: `v1F.` and what that version makes of it (§3.2.2, `IPvFuture`).
fn is_future_address(text: &str) -> bool {
    let Some((version, address)) = text.strip_prefix(['v', 'V']).and_then(|t| t.split_once('.'))
    else {
        return false;
    };
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:".contains(&b);
    !version.is_empty()
        && version.bytes().all(|b| b.is_ascii_hexdigit())
        && !address.is_empty()
        && address.bytes().all(plain)
}

fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|p| p.bytes().all(|b| b.is_ascii_digit()))
}

/// Characters allowed without brackets or another `#`, percent signs in order.
fn is_plain(text: &str) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let allowed = match byte {
            b'%' => {
                let mut hex = || bytes.next().is_some_and(|b| b.is_ascii_hexdigit());
                hex() && hex()
            }
            _ => byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?".contains(&byte),
        };
        if !allowed {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_uris_and_others() {
        for good in [
            "https://omir.io/spec/R1/extension/spatial-pose",
            "urn:omird:ext:x",
            "a:",
            "mailto:a@b.c",
            "http://u:p@[2001:db8::1]:80/a?b#c",
            "http://h:80",
            "file:///tmp/x",
            "a://[::]",
            "a://[1:2:3:4:5:6:7::]",
            "a://[::ffff:255.2.3.4]:",
            "a://[V1f.x:!]",
            "x+y-z.1:%20?q=[".trim_end_matches('['),
        ] {
            assert!(is_absolute_uri(good), "{good}");
        }
        for bad in [
            "",
            "omir.io",
            "//omir.io/x",
            "/x",
            ":x",
            "1a:x",
            "a b:x",
            "a:b c",
            "a:%",
            "a:%2",
            "a:%zz",
            "a:b#c#d",
            "a:[b]",
            "http://[::1",
            "http://[x]/",
            "http://[:::::]/",
            "http://[1::2::3]/",
            "http://[1:2:3:4:5:6:7]/",
            "http://[12345::]/",
            "http://[::256.2.3.4]/",
            "http://[::01.2.3.4]/",
            "http://[fe80::1%25eth0]/",
            "http://[v.x]/",
            "http://[vg.x]/",
            "http://[v1.]/",
            "http://[v1.%41]/",
            "http://a b/",
            "http://h:8x/",
            "a:ü",
            "a:\\",
            "a:\"",
            "a:<b>",
            "a:{b}",
        ] {
            assert!(!is_absolute_uri(bad), "{bad}");
        }
    }
}
