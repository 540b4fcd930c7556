//! Serial ports: a transport beside [`crate::zenoh`], of the same protocols.
//!
//! One thread serves a port: it moves bytes between the device and the link of `omir_core::link`, messages
//! between the link and the session, and text between the device and the console. The device may come and
//! go. What is asked is worked on beside it (`session.rs`, `commands.rs`), with a bound on the share of a core.

mod commands;
mod console;
mod cpu_share;
mod device;
mod editor;
mod pace;
mod port;
mod session;
mod split;
mod spool;
#[cfg(test)]
mod testing;
mod zmodem;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

pub use self::cpu_share::Share;
pub use self::device::Device;
pub use self::pace::Pace;
use crate::protocols::Protocols;
use crate::router::AccessPolicy;

/// A port to be served.
#[derive(Debug, Clone, PartialEq)]
pub struct Port {
    /// The device, by a name that stays when it is plugged in elsewhere.
    pub path: PathBuf,
    /// Bits a second.
    pub baud: u32,
    /// Rights of a session.
    pub access: AccessPolicy,
    /// The share of a core that may be used for it.
    pub share: Share,
}

/// Ports that are served.
#[derive(Debug)]
pub struct Ports {
    stopping: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Ports {
    /// Serves `protocols` on all of `ports`. A device that is not there is waited for.
    ///
    /// # Errors
    /// No thread.
    pub fn start(protocols: &Protocols, ports: &[Port]) -> io::Result<Ports> {
        let stopping = Arc::new(AtomicBool::new(false));
        let mut started = Ports { stopping: stopping.clone(), threads: Vec::new() };
        for port in ports {
            let served = port::ServedPort::new(protocols.clone(), port, stopping.clone());
            let thread = std::thread::Builder::new().name("omird-serial".to_owned());
            match thread.spawn(move || served.run()) {
                Ok(thread) => started.threads.push(thread),
                Err(error) => {
                    started.stop();
                    return Err(error);
                }
            }
        }
        Ok(started)
    }

    /// Says goodbye on every port, and lets go of them.
    pub fn stop(self) {
        self.stopping.store(true, Ordering::Release);
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}
