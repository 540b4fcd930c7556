//! A server of models as the protocol asks it: tries with pauses, a bound on calls under way, and a rest after a failure. What
//! is asked, and what is made of an answer, is that of a [`Request`]. The sockets are the program's ([`ModelClient`]).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use omird_router::{ModelClient, ModelFault, Reached};
use parking_lot::Mutex;

use crate::settings::Settings;

/// Pauses before the second and the third try.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(1)];
/// Time without calls after one that failed: all would wait for the same.
pub(crate) const REST: Duration = Duration::from_secs(30);

/// The words of an answer with the tokens in and out that are paid for, or its fault.
pub(crate) type Reading<R> =
    Result<(<R as Request>::Content, (u64, u64)), <R as Request>::Unusable>;

/// Something that a server of models is asked.
pub(crate) trait Request: Sized {
    /// The content of an answer.
    type Content;
    /// The fault of an answer that is none.
    type Unusable: fmt::Display;
    /// The path below the server's.
    const PATH: &'static str;
    /// True if an answer that is none lets the server rest: the next one would be none either, and is paid for.
    const RESTS_IF_UNUSABLE: bool;

    /// Returns the JSON that is sent.
    fn body(&self) -> &[u8];

    /// Returns the tokens in and out that one try can cost at most.
    fn most(&self) -> (u64, u64);

    /// Returns the price of tokens in millionths of a dollar.
    fn price(settings: &Settings, tokens: (u64, u64)) -> u64;

    /// Reads an answer: what it says, and the tokens in and out that are paid for.
    ///
    /// # Errors
    /// Says what is wrong with it.
    fn read(&self, body: &[u8]) -> Reading<Self>;

    /// Returns the most that one try can cost, in millionths of a dollar.
    fn dearest(&self, settings: &Settings) -> u64 {
        Self::price(settings, self.most())
    }
}

/// The time for which a caller waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// For one try.
    timeout: Duration,
    /// Between tries; there is one more try than pauses.
    pauses: &'static [Duration],
}

impl Patience {
    /// Waits for three tries.
    pub(crate) fn long(settings: &Settings) -> Self {
        Self { timeout: settings.model_timeout, pauses: &PAUSES }
    }

    /// Waits for one try, and no longer than this.
    pub(crate) fn short(settings: &Settings, most: Duration) -> Self {
        Self { timeout: settings.model_timeout.min(most), pauses: &[] }
    }

    /// Returns the number of tries.
    pub(crate) fn tries(&self) -> u64 {
        1 + self.pauses.len() as u64
    }
}

/// An answer of a server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModelResponse<T> {
    pub(crate) content: T,
    /// Tokens in and out, as they are paid for.
    pub(crate) tokens: (u64, u64),
    /// Tries before it that may have been worked on.
    pub(crate) lost: u64,
}

/// A server that says nothing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Silent {
    pub(crate) message: String,
    /// Answers that may have been worked on and did not come: each may cost as much as it can.
    pub(crate) lost: u64,
    /// The reason.
    pub(crate) why: Why,
}

/// The reason for which a server says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// It was not asked: it rests, or works for others.
    NotAsked,
    /// It is not reached, does not answer, or takes nothing for now.
    Down,
    /// It refuses this request.
    Refused,
    /// It answers with what is no answer.
    Unusable,
}

/// The server of the daemon, for one kind of request.
pub(crate) struct Server {
    client: Arc<dyn ModelClient>,
    most_at_once: usize,
    /// The time without calls after one that failed.
    rest: Duration,
    under_way: AtomicUsize,
    rests_until: Mutex<Option<Instant>>,
}

/// A call under way, until it is dropped.
struct UnderWay<'m>(&'m AtomicUsize);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Server {
    /// Returns the server behind a client, with so many calls under way at most.
    pub(crate) fn new(client: Arc<dyn ModelClient>, most_at_once: usize) -> Self {
        let (under_way, rests_until) = (AtomicUsize::new(0), Mutex::default());
        Self { client, most_at_once, rest: REST, under_way, rests_until }
    }

    /// Returns the same server for a caller that pauses by itself.
    pub(crate) fn without_rest(client: Arc<dyn ModelClient>) -> Self {
        Self { rest: Duration::ZERO, ..Self::new(client, 1) }
    }

    /// Asks, and asks again where that may help.
    pub(crate) fn ask<R: Request>(
        &self,
        request: &R,
        patience: &Patience,
    ) -> Result<ModelResponse<R::Content>, Silent> {
        let nothing =
            |message: &str| Silent { message: message.to_owned(), lost: 0, why: Why::NotAsked };
        let rests = *self.rests_until.lock();
        if rests.is_some_and(|until| Instant::now() < until) {
            return Err(nothing("it failed a moment ago, and is asked again soon"));
        }
        let others = self.under_way.fetch_add(1, Ordering::AcqRel);
        let _under_way = UnderWay(&self.under_way);
        if others >= self.most_at_once {
            return Err(nothing("it works for others"));
        }
        let answer = self.tried(request, patience);
        let rests = |silent: &Silent| silent.why != Why::Unusable || R::RESTS_IF_UNUSABLE;
        if answer.as_ref().is_err_and(rests) {
            let until = Some(Instant::now() + self.rest);
            *self.rests_until.lock() = until;
        }
        answer
    }

    fn tried<R: Request>(
        &self,
        request: &R,
        patience: &Patience,
    ) -> Result<ModelResponse<R::Content>, Silent> {
        let mut lost = 0;
        let mut pauses = patience.pauses.iter();
        loop {
            let deadline = Instant::now() + patience.timeout;
            let fault = match self.client.post(R::PATH, request.body().to_vec(), deadline) {
                Ok(body) => {
                    let read = request.read(&body);
                    return read
                        .map(|(content, tokens)| ModelResponse { content, tokens, lost })
                        .map_err(|what| {
                            // It was worked on, and is paid for.
                            let message = format!("its answer is unusable: {what}");
                            Silent { message, lost: lost + 1, why: Why::Unusable }
                        });
                }
                Err(fault) => fault,
            };
            let ModelFault { reached, message } = fault;
            lost += u64::from(reached == Reached::NoAnswer);
            let is_refused = reached == Reached::Refused;
            let why = if is_refused { Why::Refused } else { Why::Down };
            match pauses.next().filter(|_| !is_refused) {
                Some(pause) => std::thread::sleep(*pause),
                None => return Err(Silent { message, lost, why }),
            }
        }
    }
}

/// Returns the tokens that count: those that the server reports, if they can be true. A text has no more tokens than bytes, and
/// hardly fewer than a third of our own count, which reads high.
pub(crate) fn believed(reported: Option<u64>, counted: usize, most: u64) -> u64 {
    let counted = counted as u64;
    reported.unwrap_or(counted).clamp((counted / 3).min(most), most)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks for a word.
    struct Word;

    impl Request for Word {
        type Content = String;
        type Unusable = &'static str;
        const PATH: &'static str = "/word";
        const RESTS_IF_UNUSABLE: bool = true;

        fn body(&self) -> &[u8] {
            b"{}"
        }

        fn most(&self) -> (u64, u64) {
            (10, 10)
        }

        fn price(_: &Settings, (sent, came): (u64, u64)) -> u64 {
            sent + came
        }

        fn read(&self, body: &[u8]) -> Result<(String, (u64, u64)), &'static str> {
            let word = str::from_utf8(body).map_err(|_| "no text")?;
            if word == "<html>" { Err("no word") } else { Ok((word.to_owned(), (1, 1))) }
        }
    }

    /// Answers by a list, one for each try.
    struct Fake(Mutex<Vec<Result<Vec<u8>, Reached>>>);

    impl Fake {
        fn saying(answers: Vec<Result<&str, Reached>>) -> Arc<Self> {
            let answers = answers.into_iter().map(|one| one.map(|body| body.as_bytes().to_vec()));
            Arc::new(Self(Mutex::new(answers.collect())))
        }
    }

    impl ModelClient for Fake {
        fn post(&self, _: &str, _: Vec<u8>, _: Instant) -> Result<Vec<u8>, ModelFault> {
            let next = self.0.lock().remove(0);
            next.map_err(|reached| ModelFault { reached, message: "down".to_owned() })
        }
    }

    fn asked(
        answers: Vec<Result<&str, Reached>>,
    ) -> (Result<ModelResponse<String>, Silent>, usize) {
        let fake = Fake::saying(answers);
        let patience = Patience::long(&Settings::default());
        let answer = Server::new(fake.clone(), 2).ask(&Word, &patience);
        let left = fake.0.lock().len();
        (answer, left)
    }

    #[test]
    fn it_is_asked_again_where_that_may_help() {
        let (answer, left) = asked(vec![Err(Reached::Nobody), Err(Reached::NoAnswer), Ok("cup")]);
        assert_eq!((answer.unwrap().content.as_str(), left), ("cup", 0));
        let (answer, left) = asked(vec![Err(Reached::Refused), Ok("cup")]);
        assert_eq!((answer.unwrap_err().lost, left), (0, 1), "a refusal stands");
        let three =
            vec![Err(Reached::NoAnswer), Err(Reached::RefusedForNow), Err(Reached::NoAnswer)];
        let (answer, _) = asked(three);
        assert_eq!(answer.unwrap_err().lost, 2);
        let (answer, left) = asked(vec![Ok("<html>"), Ok("cup")]);
        assert_eq!(
            (answer.unwrap_err().lost, left),
            (1, 1),
            "what was paid for is not bought again"
        );
    }

    #[test]
    fn one_that_fails_is_left_alone_for_a_while() {
        let fake = Fake::saying(vec![Err(Reached::Refused), Ok("cup")]);
        let (server, patience) =
            (Server::new(fake.clone(), 2), Patience::long(&Settings::default()));
        assert!(server.ask(&Word, &patience).is_err());
        assert!(server.ask(&Word, &patience).unwrap_err().message.contains("a moment ago"));
        assert_eq!(fake.0.lock().len(), 1);
        let fake = Fake::saying(vec![Ok("<html>"), Ok("cup")]);
        let server = Server::new(fake.clone(), 2);
        assert_eq!(server.ask(&Word, &patience).unwrap_err().why, Why::Unusable);
        assert_eq!(server.ask(&Word, &patience).unwrap_err().why, Why::NotAsked);
        assert_eq!(fake.0.lock().len(), 1);
    }

    #[test]
    fn a_caller_that_pauses_by_itself_asks_at_once() {
        let fake = Fake::saying(vec![Err(Reached::Refused), Ok("<html>"), Ok("cup")]);
        let (server, patience) =
            (Server::without_rest(fake.clone()), Patience::long(&Settings::default()));
        assert_eq!(server.ask(&Word, &patience).unwrap_err().why, Why::Refused);
        assert_eq!(server.ask(&Word, &patience).unwrap_err().why, Why::Unusable);
        assert_eq!(server.ask(&Word, &patience).unwrap().content, "cup");
    }

    #[test]
    fn who_has_no_time_asks_once() {
        let fake = Fake::saying(vec![Err(Reached::NoAnswer), Ok("cup")]);
        let patience = Patience::short(&Settings::default(), Duration::from_secs(1));
        let silent = Server::new(fake.clone(), 2).ask(&Word, &patience).unwrap_err();
        assert_eq!((silent.lost, silent.why, fake.0.lock().len()), (1, Why::Down, 1));
        assert_eq!(patience.tries(), 1);
    }

    #[test]
    fn reported_tokens_count_within_reason() {
        assert_eq!(believed(Some(40), 50, 400), 40);
        assert_eq!(believed(None, 50, 400), 50);
        assert_eq!(believed(Some(0), 60, 400), 20, "nothing is free");
        assert_eq!(believed(Some(u64::MAX), 50, 400), 400);
    }
}
