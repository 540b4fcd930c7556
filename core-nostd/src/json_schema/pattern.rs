//! Regular expressions that accept exactly what the readers of ids, instants and URIs accept.
//!
//! JSON Schema leaves `format` to each library: most ignore it, others disagree on leap seconds and on
//! letter case. So there is no `format`, and the rules are patterns. They stay within what ECMA-262,
//! Python, Rust, RE2 and PCRE read alike: no look-around, no back reference, no `\d` (other scripts
//! have digits too). `$` also matches before a line break at the end in some of them, and engines
//! differ on what is one: each of these texts must also not match [`FOREIGN`].

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::reference::{Id, ResourceType};

/// Characters that stand in no id, instant, reference or URI, every line break among them.
pub(super) const FOREIGN: &str = "[^ -~]";

const HOUR: &str = "(?:[01][0-9]|2[0-3])";
const MINUTE: &str = "[0-5][0-9]";

/// [`Id::check`].
pub(super) fn id() -> String {
    format!("^{}$", bare_id())
}

fn bare_id() -> String {
    format!("[A-Za-z0-9._:-]{{1,{}}}", Id::MAX_LEN)
}

/// [`crate::reference::split`].
pub(super) fn reference() -> String {
    format!("^(?:{})/{}$", ResourceType::ALL.map(ResourceType::as_str).join("|"), bare_id())
}

/// [`crate::instant::Timestamp::parse`], with second 60 at any time of day: where it may stand,
/// [`leap_second`] says.
pub(super) fn instant() -> String {
    // By length of the month; the years that have a 29 February are 4n, of the centuries 400n.
    let common = "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])\
                  |(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)\
                  |02-(?:0[1-9]|1[0-9]|2[0-8])";
    let leap = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29";
    let time = format!("{HOUR}:{MINUTE}:(?:{MINUTE}|60)(?:\\.[0-9]+)?");
    let offset = format!("(?:[Zz]|[+-]{HOUR}:{MINUTE})");
    format!("^(?:[0-9]{{4}}-(?:{common})|{leap})[Tt]{time}{offset}$")
}

/// True if an instant is in a second 60.
pub(super) const SECOND_60: &str = ":60";

/// Two patterns that an instant in second 60 matches exactly where the second is 23:59:60 UTC.
///
/// The time of day is then the offset less one minute. One pattern for both would have to list all
/// 1440 minutes of a day; the hours and the minutes each for themselves are 24 and 60.
pub(super) fn leap_second() -> [String; 2] {
    let some_minute = "(?:0[1-9]|[1-5][0-9])";
    let hours: Vec<String> = (0..24)
        .map(|hour| {
            // One minute to the offset's full hour is in the hour before it.
            let (behind, next) = (23 - hour, (hour + 1) % 24);
            let utc = if hour == 23 { "|[Zz]" } else { "" };
            format!(
                "{hour:02}:..:60[.0-9]*(?:-{behind:02}:..|\\+{hour:02}:{some_minute}|\\+{next:02}:00{utc})"
            )
        })
        .collect();
    let minutes: Vec<String> = (0..60)
        .map(|minute| {
            let (behind, next) = (59 - minute, (minute + 1) % 60);
            let utc = if minute == 59 { "|[Zz]" } else { "" };
            format!("{minute:02}:60[.0-9]*(?:-..:{behind:02}|\\+..:{next:02}{utc})")
        })
        .collect();
    [format!("[Tt](?:{})$", hours.join("|")), format!("[Tt]..:(?:{})$", minutes.join("|"))]
}

/// [`crate::validate::is_absolute_uri`], in the order of RFC 3986, appendix A.
pub(super) fn uri() -> String {
    // Letters that may stand in every part, and the `dividers` that this part may hold.
    let some_of =
        |dividers: &str| format!("(?:[A-Za-z0-9._~!$&'()*+,;={dividers}-]|%[0-9A-Fa-f]{{2}})");
    let (any, not_slash) = (some_of(":@/?"), some_of(":@?"));
    let (user, name) = (some_of(":"), some_of(""));
    let future = "[Vv][0-9A-Fa-f]+\\.[A-Za-z0-9._~!$&'()*+,;=:-]+";
    let address = format!("\\[(?:{}|{future})\\]", ipv6());
    let authority = format!("(?:{user}*@)?(?:{address}|{name}*)(?::[0-9]*)?");
    // Without an authority a path does not begin with two slashes.
    let hierarchy = format!("(?://{authority}(?:[/?]{any}*)?|/?(?:{not_slash}{any}*)?)");
    format!("^[A-Za-z][A-Za-z0-9+.-]*:{hierarchy}(?:#{any}*)?$")
}

/// `IPv6address` of RFC 3986, §3.2.2: eight groups, or fewer and one `::` in place of the rest. The last
/// two may be written as an IPv4 address.
fn ipv6() -> String {
    let group = "[0-9A-Fa-f]{1,4}";
    let byte = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
    let pair = format!("(?:{group}:{group}|(?:{byte}\\.){{3}}{byte})");
    let whole = format!("(?:{group}:){{6}}{pair}");
    // By the number of groups that follow the gap; the pair stands for two of them.
    let gaps = (0..=7).map(|after| {
        let before = match 7 - after {
            0 => String::new(),
            most => format!("(?:(?:{group}:){{0,{}}}{group})?", most - 1),
        };
        match after {
            0 => format!("{before}::"),
            1 => format!("{before}::{group}"),
            _ => format!("{before}::(?:{group}:){{{}}}{pair}", after - 2),
        }
    });
    let all: Vec<String> = core::iter::once(whole).chain(gaps).collect();
    format!("(?:{})", all.join("|"))
}
