//! A serial device: raw bytes at a speed, without waiting.
//!
//! The system's own terminal interface is all that is needed; a crate for serial ports would bring a second
//! one, and a search for devices that nobody asked for.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{ControlModes, InputModes, OptionalActions, SpecialCodeIndex};

/// An open device.
#[derive(Debug)]
pub struct Device(OwnedFd);

impl Device {
    /// Opens `path` at `baud`, 8 data bits, no parity, one stop bit, for this process alone.
    ///
    /// # Errors
    /// It is not there, is no serial device, cannot do that speed, or somebody else has it.
    pub fn open(path: &Path, baud: u32) -> io::Result<Device> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty())?;
        let mut termios = rustix::termios::tcgetattr(&fd)?;
        termios.make_raw();
        let modes = &mut termios.control_modes;
        modes.remove(ControlModes::CSTOPB | ControlModes::PARENB | ControlModes::CRTSCTS);
        modes.insert(ControlModes::CLOCAL | ControlModes::CREAD);
        // XON and XOFF are ours to understand: the kernel would stop for a byte of noise.
        termios.input_modes.remove(InputModes::IXON | InputModes::IXOFF | InputModes::IXANY);
        // Nothing there is no end of the file.
        termios.special_codes[SpecialCodeIndex::VMIN] = 1;
        termios.special_codes[SpecialCodeIndex::VTIME] = 0;
        termios.set_speed(baud)?;
        rustix::termios::tcsetattr(&fd, OptionalActions::Now, &termios)?;
        rustix::termios::ioctl_tiocexcl(&fd)?;
        Ok(Device(fd))
    }

    /// What is there, into `buffer`; 0 if nothing is.
    ///
    /// # Errors
    /// The device is gone.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match rustix::io::read(&self.0, buffer) {
            // A terminal that can be read from and has nothing is one that hung up.
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            other => Ok(other?),
        }
    }

    /// As much of `bytes` as fits; how many.
    ///
    /// # Errors
    /// The device is gone.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match rustix::io::write(&self.0, bytes) {
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            other => Ok(other?),
        }
    }

    /// Waits until something can be read, at most `patience`.
    ///
    /// # Errors
    /// The device is gone.
    pub fn wait(&self, patience: Duration) -> io::Result<()> {
        let patience = Timespec {
            tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: patience.subsec_nanos().into(),
        };
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        match poll(&mut fds, Some(&patience)) {
            Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
            Ok(_) => Ok(()),
        }
    }
}
