//! Signals: those that end the program, and the one that has the configuration read again.

/// The signals that the program listens for.
pub(super) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
    _file_size: tokio::signal::unix::Signal,
}

impl Signals {
    /// Listens from now on.
    pub(super) fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            // A terminal that is closed, or a person who edited the file.
            hangup: signal(SignalKind::hangup())?,
            // SIGXFSZ (25): with it handled, a file-size limit is an error like a full disk
            // instead of the end of the process.
            _file_size: signal(SignalKind::from_raw(25))?,
        })
    }

    /// Waits for one that ends the program, and calls `reload` at each hangup.
    pub(super) async fn wait(mut self, reload: &mut dyn FnMut()) {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return,
                _ = self.terminate.recv() => return,
                Some(()) = self.hangup.recv() => reload(),
            }
        }
    }
}
