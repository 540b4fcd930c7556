//! `[[serial]]`: the ports to be served.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Invalid, within};
use crate::router::AccessPolicy;
use crate::serial::{Port, Share};

/// A line's speed where nothing else is agreed.
const DEFAULT_BAUD: u32 = 115_200;
/// A shorter token is guessed.
const LEAST_TOKEN: usize = 8;

/// `[[serial]]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SerialSection {
    /// The device, by a name that stays.
    pub port: Option<PathBuf>,
    /// Bits a second.
    pub baud: Option<u32>,
    /// `read` or `write`.
    pub access: Option<String>,
    /// The token that unlocks a port for writing.
    pub token: Option<String>,
    /// Share of a core.
    pub cpu_share: Option<f64>,
}

/// Checks the ports and fills in what they leave out.
pub fn resolve(written: &[SerialSection]) -> Result<Vec<Port>, Invalid> {
    let ports: Vec<Port> = written.iter().map(port).collect::<Result<_, _>>()?;
    for (i, port) in ports.iter().enumerate() {
        if ports[..i].iter().any(|earlier| earlier.path == port.path) {
            let message = format!("{} is there twice", port.path.display());
            return Err(Invalid::other("serial.port", message));
        }
    }
    Ok(ports)
}

fn port(written: &SerialSection) -> Result<Port, Invalid> {
    let path = written.port.as_deref().unwrap_or(Path::new(""));
    if !path.is_absolute() {
        let example = "/dev/serial/by-id/usb-FTDI_FT232R-if00-port0";
        let message = format!("{path:?} is no absolute path such as {example}");
        return Err(Invalid::other("serial.port", message));
    }
    let write = match written.access.as_deref() {
        None | Some("read") => false,
        Some("write") => true,
        Some(other) => {
            return Err(Invalid::none_of("serial.access", other, &["read", "write"]));
        }
    };
    let token = written.token.clone();
    if token.as_ref().is_some_and(|token| token.len() < LEAST_TOKEN) {
        let message = format!("has less than {LEAST_TOKEN} bytes, and is guessed");
        return Err(Invalid::other("serial.token", message));
    }
    Ok(Port {
        path: path.to_owned(),
        baud: within("serial.baud", written.baud, DEFAULT_BAUD, 1_200..=4_000_000)?,
        access: AccessPolicy { write, token },
        share: Share::new(within("serial.cpu_share", written.cpu_share, 0.25, 0.01..=1.0)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Port>, Invalid> {
        let file: super::super::file::File = toml::from_str(text).unwrap();
        resolve(&file.serial)
    }

    #[test]
    fn a_port_needs_only_its_name() {
        let ports = read("[[serial]]\nport = \"/dev/ttyS0\"").unwrap();
        let access = AccessPolicy { write: false, token: None };
        let share = Share::new(0.25);
        assert_eq!(ports, [Port { path: "/dev/ttyS0".into(), baud: 115_200, access, share }]);
        assert_eq!(read(""), Ok(vec![]));
    }

    #[test]
    fn complaints_name_the_key() {
        let port = "[[serial]]\nport = \"/dev/ttyS0\"\n";
        for (text, complaint) in [
            ("[[serial]]\n".to_owned(), "serial.port: \"\" is no absolute path"),
            ("[[serial]]\nport = \"ttyS0\"".to_owned(), "serial.port: \"ttyS0\" is no absolute"),
            (format!("{port}baud = 300"), "serial.baud: 300 is not between 1200 and 4000000"),
            (format!("{port}access = \"all\""), "serial.access: \"all\" is none of"),
            (format!("{port}token = \"short\""), "serial.token: has less than 8 bytes"),
            (format!("{port}cpu_share = 0.0"), "serial.cpu_share: 0 is not between"),
            (format!("{port}{port}"), "serial.port: /dev/ttyS0 is there twice"),
        ] {
            let error = read(&text).unwrap_err().to_string();
            assert!(error.starts_with(complaint), "{error}");
        }
    }
}
