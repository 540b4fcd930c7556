//! Sending, in the face of a daemon that restarts.
//!
//! A file is one request, and a request is stored as a whole or not at all. Ids are fixed, so one
//! without an answer is simply sent again: if it was stored after all, the daemon finds it unchanged.

use std::time::Duration;

use indicatif::ProgressBar;
use omir_core::cbor;
use omir_core::code::Code;
use omir_core::value::Value;

use super::load::{File, Resource};
use super::tally::Tally;
use crate::cli::{Globals, ImportArgs};
use crate::client::{Client, Payload};
use crate::error::{Error, Result};
use crate::retry::{BUSY, Retry};
use crate::selector::Parameters;
use crate::{batches, progress, table};

/// Bytes that the slowest daemon and network are expected to take in a second. A daemon that goes
/// away is noticed at once; this is only how long one that is there may be at it.
const BYTES_PER_SECOND: usize = 128 << 10;

/// One import under way.
pub(super) struct Shipment<'a> {
    globals: &'a Globals,
    wait: Duration,
    in_parts: bool,
    parameters: Parameters,
    robot: String,
    /// `None` while the connection is lost.
    client: Option<Client>,
}

/// Bounds of a daemon on one request.
struct Bounds {
    bytes: u64,
    count: u64,
    resource_bytes: u64,
}

impl Bounds {
    /// As the daemon's status tells them; `None` where it does not.
    fn of(status: &Value) -> Option<Self> {
        let bound = |name: &str| status.get("import")?.get(name)?.as_u64();
        Some(Self {
            bytes: bound("maxBytes")?,
            count: bound("maxResources")?,
            resource_bytes: bound("maxResourceBytes")?,
        })
    }

    fn check(&self, file: &File) -> Result<()> {
        let path = file.path.display();
        let too_large = |message| Err(Error::Negative { code: Code::TooLarge.as_str(), message });
        if let Some(resource) =
            file.resources.iter().find(|resource| resource.bytes as u64 > self.resource_bytes)
        {
            return too_large(format!(
                "{path}: {}: {} is {} bytes; the daemon takes {} (limits.max_resource_bytes). \
                 Nothing was sent",
                resource.pointer, resource.name, resource.bytes, self.resource_bytes
            ));
        }
        let (bytes, count) = (file.request_bytes() as u64, file.resources.len() as u64);
        if bytes <= self.bytes && count <= self.count {
            return Ok(());
        }
        too_large(format!(
            "{path}: {} in {count} resources; the daemon takes {} and {} resources at once \
             (limits.max_import_bytes). Nothing was sent. --in-parts sends the file in many requests: \
             each is stored as a whole or not at all, the file is not",
            table::bytes(bytes),
            table::bytes(self.bytes),
            self.count
        ))
    }
}

impl<'a> Shipment<'a> {
    pub(super) fn new(
        globals: &'a Globals,
        args: &ImportArgs,
        client: Client,
        robot: String,
    ) -> Self {
        let mut parameters = Parameters::new();
        parameters.push("merge", if args.overwrite { "overwrite" } else { "true" });
        Self {
            globals,
            wait: args.wait,
            in_parts: args.in_parts,
            parameters,
            robot,
            client: Some(client),
        }
    }

    /// Asks the daemon what it takes at once and refuses what is more, before anything is sent. A
    /// daemon that does not tell is left to refuse it itself.
    pub(super) fn check_sizes(&self, files: &[File]) -> Result<()> {
        let Some(client) = self.client.as_ref().filter(|_| !self.in_parts) else { return Ok(()) };
        let status = client.ask(&self.robot, "status", &Parameters::new(), None);
        let status = status.and_then(|reply| reply.value()).ok();
        match status.as_ref().and_then(Bounds::of) {
            Some(bounds) => files.iter().try_for_each(|file| bounds.check(file)),
            None => Ok(()),
        }
    }

    /// Sends a file, in parts if that was asked for. Stops at the first that cannot be stored: those
    /// behind it may refer to what is in it.
    pub(super) fn send(&mut self, file: &File, tally: &mut Tally) -> Result<()> {
        let plan = if self.in_parts {
            let items: Vec<batches::Item> = file.resources.iter().map(Resource::item).collect();
            batches::plan(&items)
        } else if file.resources.is_empty() {
            Vec::new()
        } else {
            vec![(0..file.resources.len()).collect()]
        };
        let bar = match plan.len() {
            0 | 1 => progress::spinner(self.globals, "importing"),
            _ => progress::bar(self.globals, file.resources.len() as u64, "importing"),
        };
        let sent = self.deliver_all(file, plan, &bar, tally, |sent| bar.inc(sent));
        match sent {
            Ok(()) => bar.finish_and_clear(),
            Err(_) => bar.abandon(),
        }
        sent
    }

    /// Sends a file in parts; the bar shows something else and only says what hinders.
    pub(super) fn send_parts(
        &mut self,
        file: &File,
        bar: &ProgressBar,
        tally: &mut Tally,
    ) -> Result<()> {
        let items: Vec<batches::Item> = file.resources.iter().map(Resource::item).collect();
        self.deliver_all(file, batches::plan(&items), bar, tally, |_| {})
    }

    fn deliver_all(
        &mut self,
        file: &File,
        plan: Vec<Vec<usize>>,
        bar: &ProgressBar,
        tally: &mut Tally,
        sent: impl Fn(u64),
    ) -> Result<()> {
        for parcel in plan {
            self.deliver(file, &parcel, bar, tally)
                .map_err(|error| located(error, file, &parcel))
                .and_then(|reply| tally.count(&reply))?;
            sent(parcel.len() as u64);
        }
        Ok(())
    }

    /// One request, as often as it takes within the time to wait.
    fn deliver(
        &mut self,
        file: &File,
        parcel: &[usize],
        bar: &ProgressBar,
        tally: &mut Tally,
    ) -> Result<Value> {
        let payload = Payload::Cbor(encode(file, parcel));
        let mut retry = Retry::new(self.wait);
        loop {
            let error = match self.attempt(&payload) {
                Ok(reply) => {
                    if retry.is_tried() {
                        bar.set_message("importing");
                    }
                    return Ok(reply);
                }
                Err(error) => error,
            };
            let lost = matches!(error, Error::Unreachable(_));
            if !error.is_busy() && !lost {
                return Err(error);
            }
            let hindrance = if lost { "the daemon went away" } else { BUSY };
            let Some(pause) = retry.pause_for(hindrance, self.globals, bar) else {
                return Err(error);
            };
            if lost {
                self.client = None;
            }
            tally.retries += 1;
            std::thread::sleep(pause);
        }
    }

    fn attempt(&mut self, payload: &Payload) -> Result<Value> {
        let client = match &mut self.client {
            Some(client) => client,
            lost => lost.insert(Client::open(self.globals)?),
        };
        let seconds = payload.bytes().div_ceil(BYTES_PER_SECOND) as u64;
        client.be_patient(self.globals.timeout + Duration::from_secs(seconds));
        let reply = client.ask(&self.robot, "remember", &self.parameters, Some(payload))?;
        reply.value()
    }
}

/// The Bundle of some of a file's resources: what encoding [`document::bundle`] of them gives,
/// without copying the resources first. In deterministic CBOR shorter keys come first (RFC 8949
/// §4.2.1).
///
/// [`document::bundle`]: crate::document::bundle
fn encode(file: &File, parcel: &[usize]) -> Vec<u8> {
    let chosen = parcel.iter().filter_map(|&at| file.resources.get(at));
    let mut out = Vec::with_capacity(file.request_bytes());
    let text = |text: &str, out: &mut Vec<u8>| cbor::write(&Value::from(text), out);
    cbor::write_map_header(3, &mut out);
    text("entry", &mut out);
    cbor::write_array_header(parcel.len(), &mut out);
    chosen.for_each(|resource| cbor::write(&resource.value, &mut out));
    text("omirVersion", &mut out);
    text("R1", &mut out);
    text("resourceType", &mut out);
    text("Bundle", &mut out);
    out
}

/// A refusal points into the request; the reader knows the file.
fn located(error: Error, file: &File, parcel: &[usize]) -> Error {
    let Error::Refused { code, message, path: Some(path) } = error else {
        return error;
    };
    let found = path.strip_prefix("/entry/").and_then(|rest| {
        let (index, rest) = match rest.find('/') {
            Some(end) => rest.split_at(end),
            None => (rest, ""),
        };
        let index: usize = index.parse().ok()?;
        let resource = file.resources.get(*parcel.get(index)?)?;
        Some((resource, rest))
    });
    match found {
        Some((resource, rest)) => Error::Refused {
            code,
            message: format!("{}: {}: {message}", file.path.display(), resource.name),
            path: Some(format!("{}{rest}", resource.pointer)),
        },
        None => Error::Refused { code, message, path: Some(path) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{self, Encoding};

    fn file(resources: &[(&str, &str)]) -> File {
        let resources = resources.iter().map(|(pointer, name)| Resource {
            pointer: (*pointer).to_owned(),
            name: name.parse().unwrap(),
            value: Value::from(*name),
            bytes: 1 + name.len(),
        });
        File { path: "x.omir".into(), resources: resources.collect(), repeated: 0 }
    }

    #[test]
    fn a_request_is_a_bundle_of_the_size_it_was_said_to_have() {
        let file = file(&[("/entry/7", "Entity/a"), ("/entry/2", "MemoryRecord/m")]);
        let bytes = encode(&file, &[1, 0]);
        let values = file.resources.iter().rev().map(|resource| resource.value.clone());
        assert_eq!(bytes, cbor::to_vec(&document::bundle(values)));
        assert_eq!(
            Encoding::Cbor.read(&bytes).unwrap().pointer("/entry/0").unwrap(),
            &Value::from("MemoryRecord/m")
        );
        assert!(bytes.len() <= file.request_bytes(), "{} {}", bytes.len(), file.request_bytes());
        assert!(bytes.len() + 8 >= file.request_bytes());
    }

    #[test]
    fn what_is_too_large_is_told_with_the_way_out() {
        let file = file(&[("/entry/0", "Entity/a"), ("/entry/1", "Entity/b")]);
        let check = |bytes, count| Bounds { bytes, count, resource_bytes: u64::MAX }.check(&file);
        let fits = file.request_bytes() as u64;
        check(fits, 2).unwrap();
        for (bytes, count) in [(fits - 1, 2), (fits, 1)] {
            let error = check(bytes, count).unwrap_err();
            assert_eq!((error.exit_code(), error.code()), (crate::error::REFUSED, "TOO_LARGE"));
            assert!(error.to_string().contains("--in-parts"), "{error}");
        }
        let error = Bounds { bytes: fits, count: 2, resource_bytes: 8 }.check(&file).unwrap_err();
        assert!(error.to_string().contains("Entity/a"), "{error}");
        assert!(!error.to_string().contains("--in-parts"), "{error}");
    }

    #[test]
    fn refusals_point_into_the_file() {
        let file = file(&[("/entry/7", "Entity/a"), ("/entry/2", "MemoryRecord/m")]);
        let refused = |path: &str| Error::Refused {
            code: "INVALID_RESOURCE".to_owned(),
            message: "too big".to_owned(),
            path: Some(path.to_owned()),
        };
        let error = located(refused("/entry/0/importance"), &file, &[1, 0]);
        assert_eq!(error.path(), Some("/entry/2/importance"));
        assert!(error.to_string().contains("x.omir: MemoryRecord/m: too big"), "{error}");
        for path in ["/entry/9/x", "/other", ""] {
            assert_eq!(located(refused(path), &file, &[1, 0]).path(), Some(path));
        }
    }
}
