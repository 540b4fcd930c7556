//! The browser next door: a page of another site must neither read nor write here, by a name that suddenly means this
//! machine (DNS rebinding), by a request that it sends along, or by a form.

use std::net::IpAddr;

use axum::body::Body;
use axum::response::Response;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HOST,
    HeaderValue, ORIGIN, VARY,
};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{HeaderMap, Method, StatusCode};

use super::Settings;
use super::connection::Arrival;
use super::refused::Refused;
use crate::engine::Code;

/// Paths that have nothing to protect: pages of other sites may lead there.
const STATIC: [&str; 3] = ["/", "/health/live", "/health/ready"];

/// Checks where a request is addressed to, and which page sent it. Returns the origin that may read the answer, if it is
/// another one than ours.
///
/// # Errors
/// 400 without a host, 421 for a host that is not this daemon, 403 for a page that may not use it.
pub(super) fn check(
    settings: &Settings,
    arrival: &Arrival,
    parts: &Parts,
) -> Result<Option<HeaderValue>, Refused> {
    let host = host(parts)?;
    // No browser opens the socket.
    if let Some(local) = arrival.local
        && !is_ours(settings, local, host.host())
    {
        let message = format!(
            "{:?} is not this daemon; if it is, name it: [http] hosts = [{:?}]",
            host.host(),
            host.host()
        );
        return Err(Refused::new(StatusCode::MISDIRECTED_REQUEST, Code::Unauthorized, message));
    }
    let mut origins = parts.headers.get_all(ORIGIN).iter();
    let Some(origin) = origins.next() else { return Ok(None) };
    if origins.next().is_some() {
        let message = "the request comes from more than one `Origin`";
        return Err(Refused::new(StatusCode::FORBIDDEN, Code::Unauthorized, message));
    }
    let text = origin.to_str().unwrap_or_default().to_ascii_lowercase();
    let scheme = if arrival.is_encrypted { "https" } else { "http" };
    if text == format!("{scheme}://{host}").to_ascii_lowercase() {
        return Ok(None);
    }
    if settings.origins.contains(&text) {
        return Ok(Some(origin.clone()));
    }
    if STATIC.contains(&parts.uri.path()) {
        return Ok(None);
    }
    let message = format!("a page of {text:?} may not use this daemon ([http] origins)");
    Err(Refused::new(StatusCode::FORBIDDEN, Code::Unauthorized, message))
}

/// Returns the host of a request. A request that names two must name the same one.
fn host(parts: &Parts) -> Result<Authority, Refused> {
    let bad = || {
        let message = "the request names no host, or more than one; send one `Host`";
        Refused::new(StatusCode::BAD_REQUEST, Code::InvalidQuery, message)
    };
    let mut hosts = parts.headers.get_all(HOST).iter();
    let header = hosts.next().map(|host| Authority::try_from(host.as_bytes()));
    let header = header.transpose().map_err(|_| bad())?;
    if hosts.next().is_some() {
        return Err(bad());
    }
    let host = match (header, parts.uri.authority()) {
        (Some(header), Some(named)) if header != *named => return Err(bad()),
        (Some(header), _) => header,
        (None, Some(named)) => named.clone(),
        (None, None) => return Err(bad()),
    };
    // `user@host` is no host.
    if host.as_str().contains('@') { Err(bad()) } else { Ok(host) }
}

/// Returns true for the names of loopback, the address that was connected to, and the names of the configuration.
fn is_ours(settings: &Settings, local: IpAddr, host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    if host == "localhost" || host.ends_with(".localhost") || settings.hosts.contains(&host) {
        return true;
    }
    let literal = host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(&host);
    literal.parse::<IpAddr>().is_ok_and(|address| {
        let address = address.to_canonical();
        address.is_loopback() || address == local
    })
}

/// Answers the question of a browser before the request of a page that may use the daemon.
pub(super) fn preflight(method: &Method, headers: &HeaderMap) -> Option<Response> {
    if method != Method::OPTIONS || !headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
        return None;
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    for (name, value) in [
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, POST, PUT, DELETE"),
        (
            ACCESS_CONTROL_ALLOW_HEADERS,
            "accept, authorization, content-type, if-match, if-none-match, last-event-id, mcp-method, mcp-name, \
             mcp-protocol-version, mcp-session-id, omir-read-only, x-request-id, x-trace-id",
        ),
        (ACCESS_CONTROL_MAX_AGE, "600"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Some(response)
}

/// Lets a page of a named origin read the answer.
pub(super) fn open_to(origin: Option<HeaderValue>, headers: &mut HeaderMap) {
    headers.append(VARY, HeaderValue::from_static("accept, origin"));
    let Some(origin) = origin else { return };
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    let exposed = "etag, location, mcp-session-id, omir-left-out, retry-after, www-authenticate, x-ratelimit-limit, \
                   x-ratelimit-remaining, x-ratelimit-reset, x-request-id";
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(exposed));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others_are_not_ours() {
        let settings = Settings { hosts: vec!["rover.local".to_owned()], ..Settings::default() };
        let ours = |local: &str, host| is_ours(&settings, local.parse().unwrap(), host);
        for host in [
            "localhost",
            "LOCALHOST",
            "a.localhost",
            "127.0.0.1",
            "127.1.2.3",
            "[::1]",
            "rover.local",
            "Rover.Local.",
        ] {
            assert!(ours("127.0.0.1", host), "{host}");
        }
        assert!(ours("192.168.1.4", "192.168.1.4"));
        for host in
            ["evil.example", "localhost.evil.example", "192.168.1.4", "10.0.0.1", "rover", ""]
        {
            assert!(!ours("127.0.0.1", host), "{host}");
        }
    }
}
