//! Messages to a service manager, by the protocol of sd_notify(3): one datagram to the socket that it names.

pub mod watchdog;

use std::ffi::OsStr;
use std::io;
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use rustix::time::{ClockId, clock_gettime};

/// All that is configured is served.
pub const READY: &str = "READY=1";
/// It was asked to stop, and writes what makes the next start fast.
pub const STOPPING: &str = "STOPPING=1";
/// It works.
const WATCHDOG: &str = "WATCHDOG=1";

/// The configuration is being read again. A manager tells an answer to its own request from an earlier one by the time.
pub fn reloading() -> String {
    let now = clock_gettime(ClockId::Monotonic);
    let micros = now.tv_sec.saturating_mul(1_000_000).saturating_add(now.tv_nsec / 1000);
    format!("RELOADING=1\nMONOTONIC_USEC={micros}")
}

/// That is over, and `status` is what came of it.
pub fn reloaded(status: &str) -> String {
    // A line each: another would be taken for a statement of its own.
    let line = status.replace(['\n', '\r'], " ");
    format!("{READY}\nSTATUS={line}")
}

/// Tells the service manager that started this process with `$NOTIFY_SOCKET`, if one did. One that does not listen
/// is no reason not to serve.
pub fn tell(state: &str) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty()) else {
        return;
    };
    if let Err(error) = send(&socket, state) {
        tracing::warn!(socket = %socket.display(), %error, "the service manager was not told {state}");
    }
}

/// `socket` is a path, or `@` and an abstract name.
fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        #[cfg(target_os = "linux")]
        Some(name) => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 64];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_socket_hears_it_by_path_and_by_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), READY).unwrap();
        assert_eq!(heard(&socket), "READY=1");

        let name = format!("omird-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        send(OsStr::new(&format!("@{name}")), STOPPING).unwrap();
        assert_eq!(heard(&socket), "STOPPING=1");
    }

    #[test]
    fn a_status_is_one_line() {
        assert_eq!(reloaded("kept:\nREADY=0"), "READY=1\nSTATUS=kept: READY=0");
        let micros = reloading();
        let micros = micros.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
        assert!(micros.parse::<u64>().unwrap() > 0);
    }

    #[test]
    fn nobody_listening_is_an_error_and_no_panic() {
        let folder = tempfile::tempdir().unwrap();
        assert!(send(folder.path().join("nobody").as_os_str(), READY).is_err());
        assert!(send(OsStr::new(&"x".repeat(400)), READY).is_err());
    }
}
