//! Sending, in the face of a daemon that restarts.
//!
//! Ids are fixed and a request is stored as a whole or not at all, so a request without an answer is
//! simply sent again: if it was stored after all, the daemon finds it unchanged.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use omir_core::cbor;
use omir_core::value::Value;

use super::Tally;
use super::load::Resource;
use crate::cli::Globals;
use crate::client::{Client, Payload};
use crate::error::{Error, Result};
use crate::selector::Parameters;
use crate::{document, output, progress};

/// Pause between attempts.
const PAUSE: Duration = Duration::from_millis(250);

/// One import under way.
pub(super) struct Shipment<'a> {
    globals: &'a Globals,
    wait: Duration,
    robot: String,
    /// `None` while the connection is lost.
    client: Option<Client>,
    tally: Tally,
}

impl<'a> Shipment<'a> {
    pub(super) fn new(globals: &'a Globals, wait: Duration, client: Client, robot: String) -> Self {
        Self { globals, wait, robot, client: Some(client), tally: Tally::default() }
    }

    pub(super) fn tally(&self) -> Tally {
        self.tally
    }

    /// Sends request after request and stops at the first that cannot be stored: those behind it may
    /// refer to what is in it.
    pub(super) fn send(&mut self, resources: &[Resource], plan: &[Vec<usize>]) -> Result<()> {
        let bar = progress::bar(self.globals, resources.len() as u64, "importing");
        for parcel in plan {
            let sent = self.deliver(resources, parcel, &bar);
            let reply = match sent {
                Ok(reply) => reply,
                Err(error) => {
                    bar.abandon();
                    return Err(self.incomplete(located(error, resources, parcel), resources.len()));
                }
            };
            self.count(&reply, parcel.len());
            bar.inc(parcel.len() as u64);
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// One request, as often as it takes within the time to wait.
    fn deliver(
        &mut self,
        resources: &[Resource],
        parcel: &[usize],
        bar: &ProgressBar,
    ) -> Result<Value> {
        let bundle = document::bundle(parcel.iter().map(|&at| resources[at].value.clone()));
        let payload = Payload::Cbor(cbor::to_vec(&bundle));
        let mut lost_at: Option<Instant> = None;
        loop {
            let error = match self.attempt(&payload) {
                Ok(reply) => {
                    if lost_at.is_some() {
                        bar.set_message("importing");
                    }
                    return Ok(reply);
                }
                Err(error) => error,
            };
            let busy = error.code() == "BUSY";
            let lost = matches!(error, Error::Unreachable(_));
            if !busy && !lost {
                return Err(error);
            }
            let since = *lost_at.get_or_insert_with(|| {
                let words = if busy { "the daemon is busy" } else { "the daemon went away" };
                bar.set_message(words);
                if bar.is_hidden() {
                    let seconds = self.wait.as_secs_f64();
                    let quiet = self.globals.quiet || self.globals.json;
                    output::remark(quiet, &format!("{words}; trying again for {seconds} s"));
                }
                Instant::now()
            });
            if since.elapsed() >= self.wait {
                return Err(error);
            }
            if lost {
                self.client = None;
            }
            self.tally.retries += 1;
            std::thread::sleep(PAUSE.min(self.wait.saturating_sub(since.elapsed())));
        }
    }

    fn attempt(&mut self, payload: &Payload) -> Result<Value> {
        let client = match &mut self.client {
            Some(client) => client,
            lost => lost.insert(Client::open(self.globals)?),
        };
        let reply = client.ask(&self.robot, "remember", &Parameters::new(), Some(payload))?;
        reply.value()
    }

    fn count(&mut self, reply: &Value, sent: usize) {
        self.tally.requests += 1;
        self.tally.acknowledged += sent;
        let stored = reply.get("stored").and_then(Value::as_array).unwrap_or_default();
        for item in stored {
            let unchanged = item.get("unchanged").and_then(Value::as_bool) == Some(true);
            let first = item.get("version").and_then(Value::as_u64) == Some(1);
            match (unchanged, first) {
                (true, _) => self.tally.unchanged += 1,
                (false, true) => self.tally.recorded += 1,
                (false, false) => self.tally.updated += 1,
            }
        }
    }

    /// The failure as a whole: what was acknowledged stays stored.
    fn incomplete(&self, error: Error, total: usize) -> Error {
        if self.tally.acknowledged == 0 {
            return error;
        }
        Error::Partial(format!(
            "only {} of {total} resources are acknowledged; importing again completes it. The cause: \
             {error}",
            self.tally.acknowledged
        ))
    }
}

/// A refusal points into the request; the reader knows the file.
fn located(error: Error, resources: &[Resource], parcel: &[usize]) -> Error {
    let Error::Refused { code, message, path: Some(path) } = error else {
        return error;
    };
    let found = path.strip_prefix("/entry/").and_then(|rest| {
        let (index, rest) = match rest.find('/') {
            Some(end) => rest.split_at(end),
            None => (rest, ""),
        };
        let index: usize = index.parse().ok()?;
        let resource = resources.get(*parcel.get(index)?)?;
        Some((resource, rest))
    });
    match found {
        Some((resource, rest)) => Error::Refused {
            code,
            message: format!("{}: {}: {message}", resource.file.display(), resource.name),
            path: Some(format!("{}{rest}", resource.pointer)),
        },
        None => Error::Refused { code, message, path: Some(path) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_point_into_the_file() {
        let resource = |pointer: &str, name: &str| Resource {
            file: "x.omir".into(),
            pointer: pointer.to_owned(),
            name: name.parse().unwrap(),
            value: Value::Null,
        };
        let resources = [resource("/entry/7", "Entity/a"), resource("/entry/2", "MemoryRecord/m")];
        let refused = |path: &str| Error::Refused {
            code: "INVALID_RESOURCE".to_owned(),
            message: "too big".to_owned(),
            path: Some(path.to_owned()),
        };
        let error = located(refused("/entry/0/importance"), &resources, &[1, 0]);
        assert_eq!(error.path(), Some("/entry/2/importance"));
        assert!(error.to_string().contains("x.omir: MemoryRecord/m: too big"), "{error}");
        for path in ["/entry/9/x", "/other", ""] {
            assert_eq!(located(refused(path), &resources, &[1, 0]).path(), Some(path));
        }
    }
}
