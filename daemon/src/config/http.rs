//! `[http]`: the port, its TLS, and who may use it from a page in a browser.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use serde::Deserialize;

use super::{Invalid, within};
use crate::http::{Listen, Settings, TlsFiles};

/// `[http]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpSection {
    /// The address, or `off`.
    pub listen: Option<String>,
    /// The files of TLS.
    pub tls: Option<TlsSection>,
    /// Names that a request may have as its `Host`.
    pub hosts: Vec<String>,
    /// Origins of pages that may use the port.
    pub origins: Vec<String>,
    /// Most connections at a time.
    pub max_connections: Option<usize>,
    /// Most streams of events at a time.
    pub max_events: Option<usize>,
}

/// `http.tls`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TlsSection {
    /// The certificate, in PEM.
    pub certificate: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
    /// The authorities of clients.
    pub client_ca: Option<PathBuf>,
}

/// Checks the section and fills in what it leaves out.
pub fn resolve(written: &HttpSection) -> Result<Settings, Invalid> {
    let defaults = Settings::default();
    Ok(Settings {
        listen: match written.listen.as_deref() {
            None => Listen::Default,
            Some("off") => Listen::Off,
            Some(address) => Listen::At(checked_address(address)?),
        },
        tls: written.tls.as_ref().map(tls).transpose()?,
        hosts: written.hosts.iter().map(|host| checked_host(host)).collect::<Result<_, _>>()?,
        origins: written.origins.iter().map(|it| checked_origin(it)).collect::<Result<_, _>>()?,
        connections: within(
            "http.max_connections",
            written.max_connections,
            defaults.connections,
            1..=100_000,
        )?,
        events: within("http.max_events", written.max_events, defaults.events, 0..=100_000)?,
    })
}

/// `127.0.0.1:7449`, `[::1]:7449`, `localhost:7449` or `*:7449`.
fn checked_address(text: &str) -> Result<SocketAddr, Invalid> {
    let port = |port: &str| port.parse::<u16>().ok();
    let by_name = match text.rsplit_once(':') {
        Some(("localhost", number)) => port(number).map(|port| (Ipv4Addr::LOCALHOST, port).into()),
        Some(("*", number)) => port(number).map(|port| (Ipv6Addr::UNSPECIFIED, port).into()),
        _ => None,
    };
    by_name.or_else(|| text.parse().ok()).ok_or_else(|| {
        let message = format!(
            "{text:?} is no address such as \"127.0.0.1:7449\" or \"[::1]:7449\"; \"off\" closes the port"
        );
        Invalid::other("http.listen", message)
    })
}

fn tls(written: &TlsSection) -> Result<TlsFiles, Invalid> {
    let need = |key: &str, file: &Option<PathBuf>| match file {
        Some(file) if file.is_absolute() => Ok(file.clone()),
        Some(file) => {
            let message = format!("{:?} is no absolute path", file.display().to_string());
            Err(Invalid::other(&format!("http.tls.{key}"), message))
        }
        None => Err(Invalid::other(&format!("http.tls.{key}"), "is missing; it names a PEM file")),
    };
    let files = TlsFiles {
        certificate: need("certificate", &written.certificate)?,
        key: need("key", &written.key)?,
        client_ca: match &written.client_ca {
            None => None,
            named => Some(need("client_ca", named)?),
        },
    };
    // Read here too: what is wrong with them is wrong with the configuration, and no start makes it good.
    files.check().map_err(|error| {
        let key = error.file().and_then(|file| files.key_of(file)).unwrap_or("http.tls");
        Invalid::other(key, error.to_string())
    })?;
    Ok(files)
}

fn checked_host(text: &str) -> Result<String, Invalid> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let is_good = (1..=253).contains(&text.len()) && text.bytes().all(is_name);
    if is_good || text.parse::<std::net::IpAddr>().is_ok() {
        return Ok(text.to_ascii_lowercase());
    }
    let message =
        format!("{text:?} is no name or address of a machine; a port does not belong to it");
    Err(Invalid::other("http.hosts", message))
}

fn checked_origin(text: &str) -> Result<String, Invalid> {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_good = host.is_some_and(|host| {
        !host.is_empty()
            && host
                .bytes()
                .all(|b| b.is_ascii_graphic() && !matches!(b, b'/' | b'?' | b'#' | b'@' | b'*'))
    });
    if is_good {
        return Ok(text.to_ascii_lowercase());
    }
    let message = format!("{text:?} is no origin such as \"https://panel.example\"");
    Err(Invalid::other("http.origins", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Settings, Invalid> {
        let file: super::super::file::File = toml::from_str(text).unwrap();
        resolve(&file.http)
    }

    #[test]
    fn addresses_are_read() {
        assert_eq!(read("").unwrap(), Settings::default());
        let listen = |text: &str| read(&format!("[http]\nlisten = {text:?}")).unwrap().listen;
        assert_eq!(listen("off"), Listen::Off);
        assert_eq!(listen("127.0.0.1:0"), Listen::At("127.0.0.1:0".parse().unwrap()));
        assert_eq!(listen("localhost:81"), Listen::At("127.0.0.1:81".parse().unwrap()));
        assert_eq!(listen("*:81"), Listen::At("[::]:81".parse().unwrap()));
        assert_eq!(listen("[::1]:81"), Listen::At("[::1]:81".parse().unwrap()));
    }

    #[test]
    fn complaints_name_the_key() {
        for (text, complaint) in [
            ("listen = \"7449\"", "http.listen: \"7449\" is no address"),
            ("listen = \"rover.local:7449\"", "http.listen: \"rover.local:7449\" is no address"),
            ("listen = \"127.0.0.1:70000\"", "http.listen: "),
            ("hosts = [\"rover.local:7449\"]", "http.hosts: \"rover.local:7449\" is no name"),
            ("origins = [\"panel.example\"]", "http.origins: \"panel.example\" is no origin"),
            ("origins = [\"https://panel.example/\"]", "http.origins: "),
            ("origins = [\"*\"]", "http.origins: "),
            ("max_connections = 0", "http.max_connections: 0 is not between 1 and"),
            ("tls = { key = \"/k\" }", "http.tls.certificate: is missing"),
            (
                "tls = { certificate = \"c\", key = \"/k\" }",
                "http.tls.certificate: \"c\" is no abs",
            ),
        ] {
            let error = read(&format!("[http]\n{text}")).unwrap_err().to_string();
            assert!(error.starts_with(complaint), "{error}");
        }
    }
}
