//! Opening of a session, within a time.

use std::sync::mpsc;
use std::time::Duration;

use omir_core::decode::Limits;
use omir_core::json;
use omir_core::value::Value;
use omird::zenoh::plain;
use zenoh::{Config, Session, Wait as _};

use crate::error::Error;

pub(super) fn unreachable_at(endpoints: &str, why: Option<&str>) -> Error {
    let mut message = format!(
        "no omird answers at {endpoints}; start one with `omird`, or name one with --connect"
    );
    if let Some(why) = why {
        message.push_str(&format!(" ({why})"));
    }
    Error::Unreachable(message)
}

/// `["tcp/a:1","tcp/b:2"]` as `tcp/a:1 or tcp/b:2`; what is no such list, as it is.
pub(super) fn readable_endpoints(json: &str) -> String {
    let list = json::from_slice(json.as_bytes(), &Limits::default()).ok();
    let names: Option<Vec<&str>> = list
        .as_ref()
        .and_then(Value::as_array)
        .and_then(|items| items.iter().map(Value::as_str).collect());
    names.map_or_else(|| json.to_owned(), |names| names.join(" or "))
}

/// Opens a session, giving up after `timeout`: an address that swallows packets would hold a
/// connection attempt for minutes. The error is a reason worth showing, if there is one.
pub(super) fn open_within(
    config: Config,
    timeout: Duration,
) -> std::result::Result<Session, Option<String>> {
    let (done, result) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = done.send(zenoh::open(config).wait());
    });
    match result.recv_timeout(timeout.max(Duration::from_millis(100))) {
        Ok(Ok(session)) => Ok(session),
        Ok(Err(why)) => {
            let why = plain(&why);
            // A refused connection is the ordinary case and explains itself.
            let ordinary = why.contains("Unable to connect to any of");
            Err((!ordinary).then_some(why))
        }
        Err(_) => Err(Some(format!("gave up after {} s", timeout.as_secs_f64()))),
    }
}
