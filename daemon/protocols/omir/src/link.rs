//! Requests of the serial link (docs/serial-protocol.md, section 3), over whatever line they come.

mod pull;

use omir_core::cbor;
use omir_core::link::message::{Failure, Info, Push, Pushed, Request, Response};
use omir_core::value::Value;

use super::pacing::{Cancelled, Pacer};
use super::{Omir, methods};
use omird_engine::{Code, Effect, Encoding, Error, Merged, Precedence};
use omird_router::{Admitted, Method};
use omird_store::PRODUCER;

pub use self::pull::Readings;
pub use super::methods::{PUSH, UNKNOWN};

/// Bytes of a refusal, which may quote what was asked, and of where that stands.
pub const MOST_TOLD: usize = 500;

/// The way the answers to one request go, and the pace of the work for them.
pub trait ResponseSink: Pacer {
    /// Says something.
    ///
    /// # Errors
    /// The client is gone, or has cancelled the request.
    fn say(&mut self, answer: Response) -> Result<(), Cancelled>;

    /// Says what ends a kept reading of that name, which need not be kept once it was heard.
    ///
    /// # Errors
    /// The client is gone, or has cancelled the request.
    fn say_end_of(&mut self, reading: Option<String>, answer: Response) -> Result<(), Cancelled>;
}

/// Returns the method of that name among those of the link.
pub fn method(op: &str) -> &'static Method {
    let of_link =
        [&methods::INFO, &methods::PULL, &methods::PUSH, &methods::UNLOCK, &methods::CANCEL];
    of_link.into_iter().find(|method| method.name == op).unwrap_or(&UNKNOWN)
}

/// Returns the method of a request.
pub fn method_of(request: &Request) -> &'static Method {
    match request {
        Request::Info => &methods::INFO,
        Request::Pull(_) => &methods::PULL,
        Request::Push(_) => &methods::PUSH,
        Request::Unlock(_) => &methods::UNLOCK,
        Request::Cancel(_) => &methods::CANCEL,
        _ => &UNKNOWN,
    }
}

/// Returns the answer that an error is.
pub fn failed(error: Error) -> Response {
    let path = Some(error.path).filter(|path| !path.is_empty());
    let path = path.map(clipped);
    let message = clipped(error.message);
    Response::Error(Failure { code: error.code.as_str().to_owned(), message, path })
}

/// A text that may have come over the line, no longer than a person reads.
fn clipped(mut text: String) -> String {
    if text.len() > MOST_TOLD {
        let end = (0..=MOST_TOLD).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(end);
        text += " ...";
    }
    text
}

impl Omir {
    /// Answers `info`, to a client that may `write` or not.
    pub fn info(&self, _: &Admitted, write: bool) -> Info {
        let (now, clock) = self.engine.now();
        Info {
            robot: self.robot.to_string(),
            program: PRODUCER.to_owned(),
            write,
            time: now.to_string(),
            clock: clock.as_str().to_owned(),
            count: self.engine.live(),
            deflate: true,
        }
    }

    /// Carries out a request that may take long: a pull or a push.
    pub fn exchange(
        &self,
        mut admitted: Admitted,
        request: Request,
        readings: &Readings,
        with: &mut dyn ResponseSink,
    ) {
        let done = match request {
            Request::Pull(pull) => self.pull(&pull, readings, with),
            Request::Push(push) => self.push(&mut admitted, push).map(|pushed| {
                // It is durable, also where the client does not hear of it.
                let _ = with.say(Response::Ok(pushed.to_map()));
                Ok(())
            }),
            _ => Err(Error::new(Code::InvalidQuery, "this operation is not known here")),
        };
        match done {
            Ok(Ok(())) => admitted.done(),
            // The client has ended the session, or cancelled the request.
            Ok(Err(Cancelled)) => drop(admitted),
            Err(error) => {
                admitted.failed(error.code);
                let _ = with.say(failed(error));
            }
        }
    }

    fn push(&self, admitted: &mut Admitted, push: Push) -> Result<Pushed, Error> {
        let payload = cbor::to_vec(&Value::Array(push.items));
        // A node that does not know whether a push arrived, or begins again, undoes no forgetting.
        let precedence = if push.restore { Precedence::Newer } else { Precedence::Remembered };
        let permit = admitted.take_permit();
        let change = self.engine.prepare_admitted(permit, &payload, Encoding::Cbor, precedence)?;
        let receipt = self.change_now(admitted, change)?;
        let Effect::Remembered(stored) = receipt.effect else {
            return Err(Error::new(Code::Internal, "a push was answered as something else"));
        };
        let mut pushed = Pushed::default();
        for one in &stored {
            match one.merged {
                Some(Merged::Unchanged) => pushed.unchanged += 1,
                Some(Merged::Kept) => pushed.kept += 1,
                _ => pushed.stored += 1,
            }
        }
        Ok(pushed)
    }
}

#[cfg(test)]
mod tests {
    use omir_core::link::message::Pull;
    use omird_engine::Engine;
    use omird_router::testing::AuditLines;
    use omird_router::{Caller, Incoming, Router};

    use super::*;

    /// A line that takes so many answers, and is gone.
    struct Line(usize);

    impl Pacer for Line {
        fn is_wanted(&self) -> bool {
            true
        }

        fn rest(&mut self) {}

        fn rest_if_due(&mut self) {}
    }

    impl ResponseSink for Line {
        fn say(&mut self, _: Response) -> Result<(), Cancelled> {
            self.0 = self.0.checked_sub(1).ok_or(Cancelled)?;
            Ok(())
        }

        fn say_end_of(&mut self, _: Option<String>, answer: Response) -> Result<(), Cancelled> {
            self.say(answer)
        }
    }

    /// Invariant 37 of ARCHITECTURE.md: the audit line says how a pull ended.
    #[test]
    fn a_pull_whose_end_nobody_heard_was_given_up() {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(omird_engine::testing::parts(dir.path()), &mut |_| {}).unwrap();
        let lines = AuditLines::default();
        let router = Router::new(engine.clone(), [lines.sink()]);
        let omir = Omir::new(engine, "r1");
        // Of an empty memory: the beginning and the end.
        for (answers, ends) in [(0, "given up"), (1, "given up"), (2, "ok")] {
            let caller = Caller::trusted("serial", "line");
            let admitted = router.admit(&caller, &methods::PULL, Incoming::default()).unwrap();
            let request = Request::Pull(Pull::default());
            omir.exchange(admitted, request, &Readings::default(), &mut Line(answers));
            let told = lines.take();
            assert!(told.len() == 1 && told[0].ends_with(ends), "{answers}: {told:?}");
        }
    }
}
