//! An ordinary Zenoh client, and how fast it gets answers.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use zenoh::bytes::Encoding;
use zenoh::{Config, Session, Wait};

use crate::Result;

/// Longest wait for one answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The configuration of a server, the same as the daemon's own.
pub fn server(endpoint: &str) -> Result<Config> {
    configuration("peer", "listen/endpoints", endpoint)
}

fn configuration(mode: &str, role: &str, endpoint: &str) -> Result<Config> {
    let mut config = Config::default();
    config.insert_json5("mode", &format!("\"{mode}\""))?;
    config.insert_json5("scouting/multicast/enabled", "false")?;
    config.insert_json5("listen/endpoints", "[]")?;
    config.insert_json5("connect/endpoints", "[]")?;
    config.insert_json5(role, &format!("[\"{endpoint}\"]"))?;
    config.insert_json5("timestamping/enabled", if mode == "peer" { "true" } else { "false" })?;
    Ok(config)
}

/// A client of one server.
pub struct Wire {
    session: Session,
}

impl Wire {
    /// Connects.
    pub fn open(endpoint: &str) -> Result<Self> {
        let session =
            zenoh::open(configuration("client", "connect/endpoints", endpoint)?).wait()?;
        Ok(Self { session })
    }

    /// Asks and waits for the answer.
    ///
    /// # Errors
    /// If there is none, or it is a refusal.
    pub fn ask(&self, selector: &str, payload: Option<&[u8]>) -> Result<Vec<u8>> {
        self.ask_within(PATIENCE, selector, payload)
    }

    /// As [`Wire::ask`], with less patience.
    ///
    /// # Errors
    /// As [`Wire::ask`].
    pub fn ask_within(
        &self,
        patience: Duration,
        selector: &str,
        payload: Option<&[u8]>,
    ) -> Result<Vec<u8>> {
        let mut get = self.session.get(selector).timeout(patience);
        if let Some(payload) = payload {
            get = get.payload(payload).encoding(Encoding::APPLICATION_CBOR);
        }
        let replies = get.wait()?;
        let mut answer = Err(format!("no answer on {selector}").into());
        while let Ok(reply) = replies.recv() {
            answer = match reply.result() {
                Ok(sample) => Ok(sample.payload().to_bytes().into_owned()),
                Err(refusal) => {
                    let text = refusal.payload().to_bytes();
                    Err(format!("refused: {}", String::from_utf8_lossy(&text)).into())
                }
            };
        }
        answer
    }

    /// Asks with `payloads`, keeping `in_flight` questions under way, until they end or `span` is
    /// over; gives how many were answered a second.
    ///
    /// # Errors
    /// If one is refused or not answered.
    pub fn stream(
        &self,
        key: &str,
        in_flight: usize,
        span: Duration,
        payloads: &mut dyn Iterator<Item = Vec<u8>>,
    ) -> Result<f64> {
        let (sender, answers) = mpsc::channel();
        let began = Instant::now();
        let (mut sent, mut answered) = (0u64, 0u64);
        let mut last = began;
        loop {
            while sent - answered < in_flight as u64 && began.elapsed() < span {
                let Some(payload) = payloads.next() else { break };
                let sender = sender.clone();
                self.session
                    .get(key)
                    .payload(payload)
                    .encoding(Encoding::APPLICATION_CBOR)
                    .timeout(PATIENCE)
                    .callback(move |reply| {
                        let _ = sender.send(reply.result().is_ok());
                    })
                    .wait()?;
                sent += 1;
            }
            if sent == answered {
                break;
            }
            match answers.recv_timeout(PATIENCE) {
                Ok(true) => answered += 1,
                Ok(false) => return Err(format!("refused on {key}").into()),
                Err(_) => return Err(format!("no answer on {key}").into()),
            }
            last = Instant::now();
        }
        Ok(answered as f64 / (last - began).as_secs_f64())
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let _ = self.session.close().wait();
    }
}
