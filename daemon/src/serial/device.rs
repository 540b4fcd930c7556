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
use rustix::termios::{ControlModes, InputModes, OptionalActions, QueueSelector, SpecialCodeIndex};

/// An open device.
#[derive(Debug)]
pub struct Device(OwnedFd);

impl Device {
    /// Opens `path` at `baud`, 8 data bits, no parity, one stop bit, for this process alone.
    ///
    /// # Errors
    /// It is not there, is no serial device, cannot do that speed, or another program has it.
    pub fn open(path: &Path, baud: u32) -> io::Result<Device> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty())?;
        let mut termios = rustix::termios::tcgetattr(&fd).map_err(|error| match error {
            Errno::NOTTY => io::Error::new(io::ErrorKind::InvalidInput, "is no serial device"),
            other => other.into(),
        })?;
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

    /// Reads what is there into `buffer`; 0 if nothing is.
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

    /// Waits until something can be read or, if `is_full`, written, at most `patience`. Whether it can.
    ///
    /// # Errors
    /// The device is gone.
    pub fn wait(&self, is_full: bool, patience: Duration) -> io::Result<bool> {
        let patience = Timespec {
            tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: patience.subsec_nanos().into(),
        };
        let wanted = if is_full { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let mut fds = [PollFd::new(&self.0, wanted)];
        match poll(&mut fds, Some(&patience)) {
            Err(Errno::INTR) => return Ok(false),
            other => other?,
        };
        Ok(!fds[0].revents().is_empty())
    }

    /// Takes back what it was given and has not sent. A device that takes nothing would else be waited for when it
    /// is closed.
    pub fn discard(&self) {
        let _ = rustix::termios::tcflush(&self.0, QueueSelector::OFlush);
    }
}

#[cfg(test)]
mod tests {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    use super::*;

    #[test]
    fn what_is_no_terminal_is_no_device() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for path in [file.path(), Path::new("/dev/null")] {
            let error = Device::open(path, 115_200).unwrap_err();
            assert_eq!(error.to_string(), "is no serial device");
        }
    }

    #[test]
    fn a_full_device_is_waited_for_until_somebody_reads() {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let far = openpt(flags).unwrap();
        grantpt(&far).unwrap();
        unlockpt(&far).unwrap();
        let name = ptsname(&far, Vec::new()).unwrap().into_string().unwrap();
        let device = Device::open(Path::new(&name), 115_200).unwrap();
        let mut filled = 0;
        while let more @ 1.. = device.write(&[b'x'; 1000]).unwrap() {
            filled += more;
        }
        assert!(!device.wait(true, Duration::ZERO).unwrap(), "there is no room");
        let mut buffer = vec![0; filled];
        // This kind of device does not always tell of room at once.
        while !device.wait(true, Duration::from_millis(1)).unwrap() {
            assert!(rustix::io::read(&far, &mut buffer).unwrap() > 0);
        }
        assert!(!device.wait(false, Duration::ZERO).unwrap(), "and nothing to read");
        rustix::io::write(&far, b"y").unwrap();
        assert!(device.wait(false, Duration::from_secs(60)).unwrap());

        assert_eq!(device.read(&mut buffer).unwrap(), 1);
        drop(far);
        assert!(device.wait(false, Duration::from_secs(60)).unwrap());
        device.read(&mut buffer).unwrap_err();
    }
}
