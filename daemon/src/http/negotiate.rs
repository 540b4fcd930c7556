//! Headers that say what a body is, what an answer may be, and on which version a request depends (RFC 9110, sections 8,
//! 12 and 13).

use hyper::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, IF_MATCH, IF_NONE_MATCH};
use hyper::{HeaderMap, StatusCode};

use super::refused::Refused;
use crate::engine::{Code, Encoding};

/// Returns the encoding that a client would rather have. One that takes neither gets JSON, which says so.
pub(crate) fn accepted(headers: &HeaderMap) -> Encoding {
    let mut best = [None::<(u8, u16)>; 2];
    let lists = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    for range in lists.flat_map(|list| list.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default().to_ascii_lowercase();
        let quality = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
        let quality = quality.map_or(1000, thousandths);
        // The most specific range that matches counts (section 12.5.1).
        let (precision, is_for) = match media.as_str() {
            "application/json" => (2, [true, false]),
            "application/cbor" => (2, [false, true]),
            "application/*" => (1, [true, true]),
            "*/*" => (0, [true, true]),
            _ => continue,
        };
        for (best, _) in best.iter_mut().zip(is_for).filter(|(_, is_for)| *is_for) {
            if best.is_none_or(|(known, _)| precision > known) {
                *best = Some((precision, quality));
            }
        }
    }
    let quality = |best: Option<(u8, u16)>| best.map_or(0, |(_, quality)| quality);
    if quality(best[1]) > quality(best[0]) { Encoding::Cbor } else { Encoding::Json }
}

/// A quality value, such as `0.8`, in thousandths; what is none counts as 0.
fn thousandths(text: &str) -> u16 {
    let value: f64 = text.parse().unwrap_or(0.0);
    if (0.0..=1.0).contains(&value) { (value * 1000.0) as u16 } else { 0 }
}

/// Returns the encoding that a body has by its header.
///
/// # Errors
/// 415, if there is none, or it is neither JSON nor CBOR: a form of another site's page must not be read as JSON.
pub(crate) fn content(headers: &HeaderMap) -> Result<Encoding, Refused> {
    match stated(headers)?.as_str() {
        "application/json" | "application/omir+json" => Ok(Encoding::Json),
        "application/cbor" | "application/omir+cbor" => Ok(Encoding::Cbor),
        other => Err(other_kind(other, "`application/json` or `application/cbor`")),
    }
}

/// Refuses a body that is no JSON, where nothing else is taken.
///
/// # Errors
/// 415.
pub(super) fn expect_json(headers: &HeaderMap) -> Result<(), Refused> {
    match stated(headers)?.as_str() {
        "application/json" => Ok(()),
        other => Err(other_kind(other, "`application/json` here")),
    }
}

/// Returns the media type that a header states, in lower case; nothing if there is none.
fn stated(headers: &HeaderMap) -> Result<String, Refused> {
    let mut codings = headers.get_all(CONTENT_ENCODING).iter();
    if let Some(coding) = codings.find(|it| !it.as_bytes().eq_ignore_ascii_case(b"identity")) {
        let message = format!("Content-Encoding {coding:?}: bodies are not compressed here");
        return Err(unsupported(message));
    }
    let mut kinds = headers.get_all(CONTENT_TYPE).iter();
    let (kind, another) = (kinds.next(), kinds.next());
    if another.is_some() {
        return Err(unsupported("there is more than one Content-Type".to_owned()));
    }
    let text = kind.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut parts = text.split(';');
    let essence = parts.next().unwrap_or_default();
    let named = parts.filter_map(|part| part.split_once('='));
    let mut charsets = named.filter(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    let is_other = |set: &str| !set.trim().trim_matches('"').eq_ignore_ascii_case("utf-8");
    if let Some((_, other)) = charsets.find(|(_, set)| is_other(set)) {
        return Err(unsupported(format!("charset {}: texts are UTF-8 here", other.trim())));
    }
    Ok(essence.trim().to_ascii_lowercase())
}

fn other_kind(found: &str, taken: &str) -> Refused {
    let found = if found.is_empty() { "no Content-Type" } else { found };
    unsupported(format!("{found}: a body is {taken}"))
}

fn unsupported(message: String) -> Refused {
    Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::InvalidQuery, message)
}

/// The versions that a header names.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Tags {
    /// `*`: whichever there is.
    Any,
    /// These. What is none of ours is left out: it matches no version.
    These(Vec<u64>),
}

impl Tags {
    fn of(headers: &HeaderMap, name: HeaderName, takes_weak: bool) -> Option<Self> {
        let mut lists =
            headers.get_all(&name).iter().map(|value| value.to_str().unwrap_or("")).peekable();
        lists.peek()?;
        let mut versions = Vec::new();
        for tag in lists.flat_map(|list| list.split(',')).map(str::trim) {
            if tag == "*" {
                return Some(Self::Any);
            }
            let strong = match tag.strip_prefix("W/") {
                Some(tag) if takes_weak => tag,
                Some(_) => continue,
                None => tag,
            };
            let inner = strong.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
            // As omird writes it: `"03"` and `"+3"` are other tags.
            let version = inner.and_then(|tag| {
                let version = tag.parse::<u64>().ok()?;
                (version.to_string() == tag).then_some(version)
            });
            versions.extend(version);
        }
        Some(Self::These(versions))
    }

    fn match_version(&self, live: Option<u64>) -> bool {
        match (self, live) {
            (_, None) => false,
            (Self::Any, Some(_)) => true,
            (Self::These(versions), Some(live)) => versions.contains(&live),
        }
    }
}

/// The conditions of a request: `If-Match` and `If-None-Match`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conditions {
    matches: Option<Tags>,
    none_match: Option<Tags>,
}

impl Conditions {
    /// Returns the conditions of a request.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        Self {
            // The strong comparison, and the weak one (RFC 9110, section 8.8.3.2).
            matches: Tags::of(headers, IF_MATCH, false),
            none_match: Tags::of(headers, IF_NONE_MATCH, true),
        }
    }

    /// Returns true if there are none.
    pub(crate) fn are_none(&self) -> bool {
        self.matches.is_none() && self.none_match.is_none()
    }

    /// Returns true if they hold where this is the version that lives.
    pub(crate) fn hold(&self, live: Option<u64>) -> bool {
        self.matches.as_ref().is_none_or(|tags| tags.match_version(live))
            && self.none_match.as_ref().is_none_or(|tags| !tags.match_version(live))
    }

    /// Returns true if they hold for whichever version lives: `If-Match: *`, alone.
    pub(crate) fn take_any_version(&self) -> bool {
        self.matches == Some(Tags::Any) && self.none_match.is_none()
    }

    /// Returns true if a client that reads has this version already, and wants another one only.
    pub(crate) fn have(&self, version: u64) -> bool {
        self.none_match.as_ref().is_some_and(|tags| tags.match_version(Some(version)))
    }

    /// Returns true if `If-Match` rules a version out for a client that reads.
    pub(crate) fn rule_out(&self, live: Option<u64>) -> bool {
        self.matches.as_ref().is_some_and(|tags| !tags.match_version(live))
    }

    /// The refusal where they do not hold.
    pub(crate) fn failed(live: Option<u64>) -> Refused {
        let found = match live {
            Some(version) => format!("version {version} is stored"),
            None => "nothing is stored under this name".to_owned(),
        };
        let message = format!("If-Match or If-None-Match does not hold: {found}");
        Refused::new(StatusCode::PRECONDITION_FAILED, Code::Conflict, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn headers(list: &[(HeaderName, &'static str)]) -> HeaderMap {
        list.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_client_gets_what_it_would_rather_have() {
        let of = |text| accepted(&headers(&[(ACCEPT, text)]));
        assert_eq!(accepted(&HeaderMap::new()), Encoding::Json);
        for text in [
            "*/*",
            "application/json",
            "text/html",
            "text/html, */*;q=0.1",
            "application/*",
            "application/json, application/cbor",
            "application/cbor;q=0.4, application/json;q=0.5",
            "application/cbor;q=0",
            "application/cbor;q=x",
            "",
            ",;,",
            "application/cbor;q=2",
        ] {
            assert_eq!(of(text), Encoding::Json, "{text}");
        }
        for text in [
            "application/cbor",
            "Application/CBOR",
            "application/cbor, */*;q=0.5",
            "application/json;q=0.1, application/cbor;q=0.9",
            "*/*, application/json;q=0",
        ] {
            assert_eq!(of(text), Encoding::Cbor, "{text}");
        }
    }

    #[test]
    fn a_form_is_no_json() {
        let of = |text| content(&headers(&[(CONTENT_TYPE, text)])).ok();
        assert_eq!(of("application/json; charset=utf-8"), Some(Encoding::Json));
        assert_eq!(of("APPLICATION/CBOR"), Some(Encoding::Cbor));
        for text in ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""] {
            assert_eq!(of(text), None, "{text}");
        }
        assert!(content(&HeaderMap::new()).is_err());
        let json = (CONTENT_TYPE, "application/json");
        let coded = |coding| content(&headers(&[json.clone(), (CONTENT_ENCODING, coding)]));
        assert!(coded("Identity").is_ok() && coded("gzip").is_err());
        // A header that comes twice is not read as the one that suits us.
        let twice = |name: HeaderName, values: [&'static str; 2]| {
            let mut headers = headers(&[(CONTENT_TYPE, "application/json")]);
            headers.remove(&name);
            for value in values {
                headers.append(&name, HeaderValue::from_static(value));
            }
            content(&headers)
        };
        assert!(twice(CONTENT_TYPE, ["application/json", "text/plain"]).is_err());
        assert!(twice(CONTENT_ENCODING, ["identity", "gzip"]).is_err());
    }

    #[test]
    fn where_json_alone_is_taken_nothing_else_is_proposed() {
        let of =
            |text| expect_json(&headers(&[(CONTENT_TYPE, text)])).map_err(|it| it.error.message);
        assert_eq!(of("application/json; charset=utf-8"), Ok(()));
        for text in ["application/cbor", "application/omir+json", "text/plain", ""] {
            assert!(of(text).is_err_and(|why| why.ends_with("a body is `application/json` here")));
        }
    }

    #[test]
    fn conditions_are_of_versions() {
        let of = |list: &[(HeaderName, &'static str)]| Conditions::of(&headers(list));
        let holds = |list: &[_], live| of(list).hold(live);
        assert!(of(&[]).are_none() && of(&[]).hold(None));
        assert!(holds(&[(IF_NONE_MATCH, "*")], None));
        assert!(!holds(&[(IF_NONE_MATCH, "*")], Some(1)));
        assert!(holds(&[(IF_MATCH, "\"3\"")], Some(3)));
        assert!(!holds(&[(IF_MATCH, "\"3\"")], Some(4)));
        assert!(!holds(&[(IF_MATCH, "\"3\"")], None));
        assert!(holds(&[(IF_MATCH, "\"3\", \"4\"")], Some(4)));
        assert!(holds(&[(IF_MATCH, "*")], Some(9)));
        assert!(!holds(&[(IF_MATCH, "*")], None));
        // Strong and weak.
        assert!(!holds(&[(IF_MATCH, "W/\"3\"")], Some(3)));
        assert!(of(&[(IF_NONE_MATCH, "W/\"3\"")]).have(3));
        assert!(!holds(&[(IF_MATCH, "3")], Some(3)), "a tag has quotes");
        for other in ["\"x\"", "\"+3\"", "\"03\"", "\" 3\"", "\"3", "\""] {
            assert!(!holds(&[(IF_MATCH, other)], Some(3)), "{other}");
        }
        assert!(holds(&[(IF_NONE_MATCH, "\"2\"")], Some(3)));
    }
}
