//! The end of a serial cable: a pseudo-terminal under a name that stays, whichever device it is today.

use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// One end, plugged in until it is dropped. Neither side of it is for a child: what that inherited would
/// not be pulled out.
#[derive(Debug)]
pub struct End {
    /// Our side of it, which does not block.
    pub ours: OwnedFd,
    /// Theirs: while it is held, the line does not hang up.
    _theirs: OwnedFd,
}

impl End {
    /// Plugs it in under a name, in the place of what was there.
    ///
    /// # Panics
    /// If the system has no pseudo-terminals.
    pub fn plug(name: &Path) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags).expect("a terminal");
        grantpt(&ours).expect("it is ours");
        unlockpt(&ours).expect("it is ours");
        let flags = rustix::fs::fcntl_getfl(&ours).expect("it is open");
        rustix::fs::fcntl_setfl(&ours, flags | OFlags::NONBLOCK).expect("it is open");
        let device = ptsname(&ours, Vec::new()).expect("a name").into_string().expect("in ASCII");
        // Raw, and open, before a daemon comes: nothing is echoed, and nothing hangs up.
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let theirs = rustix::fs::open(&device, flags, Mode::empty()).expect("it is there");
        let mut termios = rustix::termios::tcgetattr(&theirs).expect("it is a terminal");
        termios.make_raw();
        let now = rustix::termios::OptionalActions::Now;
        rustix::termios::tcsetattr(&theirs, now, &termios).expect("it is a terminal");
        let _ = std::fs::remove_file(name);
        symlink(&device, name).expect("a folder of ours");
        Self { ours, _theirs: theirs }
    }
}
