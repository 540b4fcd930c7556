//! Commands of the console on threads of their own: a command shows text, and may send a file.

use std::sync::Weak;

use crossbeam_channel::Sender;

use super::cpu_share::BudgetGuard;
use super::spool::{MOST_PACKED, Spool};
use crate::protocols::Protocols;
use crate::protocols::omir::console::{Command, HELP, NotAppended, Terminal, error_line};
use crate::protocols::omir::{Cancelled, Pacer};
use crate::router::{Caller, Incoming, worded};

/// Output of a command.
pub enum Output {
    /// To be shown, lines ended by LF.
    Text(String),
    /// To be sent.
    File {
        /// Its name at the other end.
        name: String,
        /// Seconds since 1970.
        modified: u32,
        /// Its contents.
        spool: Spool,
    },
}

/// Context of a command.
pub struct Worker {
    /// The possible requests.
    pub protocols: Protocols,
    /// The caller.
    pub caller: Caller,
    /// No reader is left once it cannot be upgraded.
    pub wanted: Weak<()>,
    /// Destination of its output.
    pub out: Sender<Output>,
}

impl Worker {
    /// Works on a command, on a thread of its own.
    pub fn run(self, command: &Command, share: &mut BudgetGuard) {
        let Self { protocols, caller, wanted, out } = self;
        let mut page = Page { wanted, out, share, file: Spool::new(MOST_PACKED) };
        // It waited for its share of time. If it was interrupted meanwhile, no reader wants its output.
        if !page.is_wanted() {
            return;
        }
        let Some(method) = command.method() else {
            let _ = page.show(HELP.to_owned());
            return;
        };
        match protocols.router.admit(&caller, method, Incoming::default()) {
            Ok(admitted) => protocols.omir.console(admitted, command, &mut page),
            Err(refusal) => drop(page.show(error_line(&worded(refusal)))),
        }
    }
}

/// The output of one command.
struct Page<'a> {
    wanted: Weak<()>,
    out: Sender<Output>,
    share: &'a mut BudgetGuard,
    file: Spool,
}

impl Pacer for Page<'_> {
    fn is_wanted(&self) -> bool {
        self.wanted.strong_count() > 0
    }

    fn rest(&mut self) {
        self.share.rest();
    }

    fn rest_if_due(&mut self) {
        self.share.rest_if_due();
    }
}

impl Terminal for Page<'_> {
    fn show(&mut self, text: String) -> Result<(), Cancelled> {
        self.out.send(Output::Text(text)).map_err(|_| Cancelled)
    }

    fn append(&mut self, text: &str) -> Result<(), NotAppended> {
        let full = |_| NotAppended::Full { most_mib: MOST_PACKED >> 20 };
        self.file.push(text).map_err(full)
    }

    fn send_file(&mut self, name: String, modified: u32) -> Result<(), Cancelled> {
        let spool = std::mem::replace(&mut self.file, Spool::new(MOST_PACKED));
        self.out.send(Output::File { name, modified, spool }).map_err(|_| Cancelled)
    }
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::unbounded;

    use super::*;
    use crate::serial::cpu_share::{Budget, Share};
    use crate::serial::testing::Bench;

    #[test]
    fn what_nobody_wants_any_more_is_not_begun() {
        let bench = Bench::new();
        let (out, shown) = unbounded();
        let (protocols, caller) = (bench.protocols(), Caller::trusted("serial", "console"));
        let worker = Worker { protocols, caller, wanted: Weak::new(), out };
        worker.run(&Command::Status, &mut Budget::new(Share::new(1.0)).begin());
        assert_eq!(shown.len(), 0);
    }
}
