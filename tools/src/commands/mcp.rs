//! `omir mcp`: a bridge from standard input and output to `/mcp` of a daemon. Nothing but messages goes to standard output.
//!
//! It keeps nothing but the version that the client and the daemon agreed on, because the daemon keeps nothing either: each
//! message is one HTTP request. To drop that request is how a call is cancelled.

mod endpoint;
mod message;
mod stream;

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{BufRead as _, Read as _, Write as _};
use std::rc::Rc;

use http_body_util::BodyExt as _;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet, LocalSet};

use self::endpoint::Endpoint;
use self::message::{Message, refusal, version_of};
use self::stream::Events;
use crate::cli::{Globals, McpArgs};
use crate::client::Token;
use crate::error::{Error, Result};

/// Bytes of a message: what a daemon takes, and more.
const MOST_BYTES: u64 = 16 << 20;
/// Messages that were read and are not sent yet.
const AHEAD: usize = 16;

pub(super) fn run(globals: &Globals, args: &McpArgs) -> Result<()> {
    let endpoint = Endpoint::of(args, Token::given(globals)?.map(|token| token.bearer()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|why| Error::Unreachable(format!("no runtime: {why}")))?;
    let bridge = Bridge { endpoint, version: RefCell::default() };
    LocalSet::new().block_on(&runtime, async {
        // A person who starts this by hand learns at once that no daemon is there.
        bridge.endpoint.connect().await.map_err(|why| bridge.endpoint.not_there(&why))?;
        Rc::new(bridge).serve(lines()).await
    })
}

/// The lines of standard input. They are read on a thread of their own, because a read of it cannot be given up.
fn lines() -> mpsc::Receiver<std::io::Result<Vec<u8>>> {
    let (tell, told) = mpsc::channel(AHEAD);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let read = input.by_ref().take(MOST_BYTES + 1).read_until(b'\n', &mut line);
            let line = match read {
                Ok(0) => return,
                Ok(_) if line.len() as u64 > MOST_BYTES => {
                    Err(std::io::Error::other(format!("a line of more than {MOST_BYTES} bytes")))
                }
                Ok(_) => Ok(line),
                Err(why) => Err(why),
            };
            let is_last = line.is_err();
            if tell.blocking_send(line).is_err() || is_last {
                return;
            }
        }
    });
    told
}

struct Bridge {
    endpoint: Endpoint,
    /// The version that the daemon answered `initialize` with.
    version: RefCell<Option<String>>,
}

impl Bridge {
    /// Passes messages on until the input ends, and then until all are answered.
    async fn serve(
        self: Rc<Self>,
        mut lines: mpsc::Receiver<std::io::Result<Vec<u8>>>,
    ) -> Result<()> {
        let mut requests: JoinSet<Result<()>> = JoinSet::new();
        let under_way: Rc<RefCell<HashMap<String, AbortHandle>>> = Rc::default();
        loop {
            tokio::select! {
                line = lines.recv() => {
                    let Some(line) = line else { break };
                    let line = line.map_err(|why| Error::Usage(format!("standard input: {why}")))?;
                    match Message::read(line) {
                        Message::Nothing => {}
                        Message::Cancels(id) => {
                            if let Some(request) = under_way.borrow_mut().remove(&id) {
                                request.abort();
                            }
                        }
                        Message::Refused(answer) => say(answer.as_bytes())?,
                        Message::Request(request) => {
                            let (bridge, known) = (self.clone(), under_way.clone());
                            let id = request.id.clone();
                            let handle = requests.spawn_local(async move {
                                let ended = bridge.pass_on(&request).await;
                                known.borrow_mut().remove(&request.id);
                                ended
                            });
                            under_way.borrow_mut().insert(id, handle);
                        }
                    }
                }
                Some(ended) = requests.join_next() => ended.unwrap_or(Ok(()))?,
            }
        }
        while let Some(ended) = requests.join_next().await {
            ended.unwrap_or(Ok(()))?;
        }
        Ok(())
    }

    /// Sends a request, and says all that comes back. An error is one of standard output.
    async fn pass_on(&self, request: &message::Request) -> Result<()> {
        let version = request.version.clone().or_else(|| self.version.borrow().clone());
        let (answer, _connection) = match self.endpoint.send(request, version.as_deref()).await {
            Ok(answer) => answer,
            Err(why) => {
                let error = self.endpoint.not_there(&why);
                return say(refusal(&request.id, &error.to_string()).as_bytes());
            }
        };
        let (parts, mut body) = answer.into_parts();
        let is_stream = parts.headers.get("content-type").is_some_and(|kind| {
            kind.to_str().is_ok_and(|kind| kind.starts_with("text/event-stream"))
        });
        if is_stream {
            let mut events = Events::default();
            let mut is_answered = false;
            while let Some(Ok(frame)) = body.frame().await {
                for data in frame.data_ref().map(|data| events.take(data)).unwrap_or_default() {
                    is_answered |= message::is_answer(&data);
                    say(&data)?;
                }
            }
            if !is_answered {
                let why = "the daemon stopped before it had answered; ask again";
                say(refusal(&request.id, why).as_bytes())?;
            }
            return Ok(());
        }
        let Ok(body) = body.collect().await else {
            let why = "the daemon stopped before it had answered; ask again";
            return say(refusal(&request.id, why).as_bytes());
        };
        let body = body.to_bytes();
        if !message::is_answer(&body) {
            let why = message::reason(parts.status.as_u16(), &body);
            return say(refusal(&request.id, &why).as_bytes());
        }
        if request.method == "initialize" {
            *self.version.borrow_mut() = version_of(&body);
        }
        say(&body)
    }
}

/// Writes a message on a line of its own.
fn say(message: &[u8]) -> Result<()> {
    let mut output = std::io::stdout().lock();
    let written = output
        .write_all(message.trim_ascii_end())
        .and_then(|()| output.write_all(b"\n"))
        .and_then(|()| output.flush());
    written.map_err(Error::Output)
}
