//! Requests of the serial link (docs/serial-protocol.md, section 3), over whatever line they come.

mod pull;

use omir_core::cbor;
use omir_core::link::message::{Answer, Failure, Info, Push, Pushed, Request};
use omir_core::value::Value;

use super::{Omir, methods};
use omird_engine::command::Effect;
use omird_engine::error::{Code, Error};
use omird_engine::merge::{Merged, Precedence};
use omird_engine::request::Encoding;
use omird_router::{Admitted, Method};
use omird_store::PRODUCER;

pub use self::pull::Readings;
pub use super::methods::{PUSH, UNKNOWN};

/// Bytes of a refusal, which may quote what was asked, and of where that stands.
pub const MOST_TOLD: usize = 500;

/// The way the answers to one request go, and the pace of the work for them.
pub trait Exchange {
    /// Says something.
    ///
    /// # Errors
    /// Nobody wants to know any more.
    fn say(&mut self, answer: Answer) -> Result<(), Unwanted>;

    /// Says what ends a kept reading of that name, which need not be kept once it was heard.
    ///
    /// # Errors
    /// Nobody wants to know any more.
    fn say_end_of(&mut self, reading: Option<String>, answer: Answer) -> Result<(), Unwanted>;

    /// Returns true while somebody wants to know.
    fn is_wanted(&self) -> bool;

    /// Rests for the work that was done.
    fn rest(&mut self);

    /// The same, where it is worth it.
    fn rest_if_due(&mut self);
}

/// Nobody wants to know any more.
#[derive(Debug)]
pub struct Unwanted;

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
pub fn failed(error: Error) -> Answer {
    let path = Some(error.path).filter(|path| !path.is_empty());
    let path = path.map(clipped);
    let message = clipped(error.message);
    Answer::Error(Failure { code: error.code.as_str().to_owned(), message, path })
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
    /// Answers `info`, of somebody who may `write` or not.
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
        with: &mut dyn Exchange,
    ) {
        let done = match request {
            Request::Pull(pull) => self.pull(&pull, readings, with),
            Request::Push(push) => self.push(&mut admitted, push).map(|pushed| {
                // It is durable, whoever hears of it.
                let _ = with.say(Answer::Ok(pushed.to_map()));
            }),
            _ => Err(Error::new(Code::InvalidQuery, "this operation is not known here")),
        };
        admitted.finish(&done);
        if let Err(error) = done {
            let _ = with.say(failed(error));
        }
    }

    fn push(&self, admitted: &mut Admitted, push: Push) -> Result<Pushed, Error> {
        let payload = cbor::to_vec(&Value::Array(push.items));
        // A node that does not know whether a push arrived, or begins anew, undoes no forgetting.
        let precedence = if push.restore { Precedence::Newer } else { Precedence::Remembered };
        let permit = admitted.take_permit();
        let change = self.engine.prepare_admitted(permit, &payload, Encoding::Cbor, precedence)?;
        let receipt = self.engine.execute(change)?;
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
