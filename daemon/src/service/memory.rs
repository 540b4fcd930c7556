//! PUT, DELETE and GET on memory keys: the daemon as an ordinary Zenoh storage.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use omir_core::instant::Timestamp;
use omir_core::reference::{Id, Ref, ResourceType};
use zenoh::key_expr::keyexpr;
use zenoh::sample::{Sample, SampleKind};

use super::Context;
use super::ask::{Ask, stated};
use super::deleting;
use crate::engine::asked::Named;
use crate::engine::command::Change;
use crate::engine::export::decode_stored;
use crate::engine::request::Encoding;
use crate::engine::{Unread, id_of};
use crate::error::{Code, Error};

/// How long a GET waits for earlier PUTs and DELETEs of the same moment to be committed.
const SETTLE: Duration = Duration::from_secs(2);
/// Most of what cannot be read that a GET tells of one by one.
const MAX_TOLD: usize = 8;

/// A PUT or DELETE. Nobody waits for an answer: a refusal is announced.
pub(super) fn sample(context: &Arc<Context>, sample: &Sample) {
    let key = sample.key_expr().as_str().to_owned();
    let (change, size) = match change(context, &key, sample) {
        Ok(Some(change)) => change,
        Ok(None) => return,
        Err(error) => return reject(context, &key, &error),
    };
    let after = context.clone();
    let reply = Box::new(move |result: Result<_, Error>| {
        if let Err(error) = result {
            reject(&after, &key, &error);
        }
    });
    context.engine.submit(change, size, reply);
}

pub(super) fn reject(context: &Context, key: &str, error: &Error) {
    context.engine.note_rejected();
    context.events.rejected(key, error);
}

fn change(
    context: &Arc<Context>,
    key: &str,
    sample: &Sample,
) -> Result<Option<(Change, usize)>, Error> {
    let named = context.keys.reference(key);
    match sample.kind() {
        SampleKind::Put => {
            let reference = named.ok_or_else(|| no_resource(key))?;
            let size = sample.payload().len();
            context.engine.admit(size, false)?;
            let payload = sample.payload().to_bytes();
            let encoding =
                stated(Some(sample.encoding())).unwrap_or_else(|| Encoding::sniff(&payload));
            let sent = sample.timestamp().map(|stamp| stamp.get_time().as_nanos() / 1000);
            let sent = sent.and_then(|micros| i64::try_from(micros).ok());
            let key = Some(&reference);
            let change = match sent.map(Timestamp::from_micros) {
                Some(sent) => context.engine.prepare_sent(&payload, encoding, key, sent)?,
                None => context.engine.prepare(&payload, encoding, key)?,
            };
            Ok(Some((change, size)))
        }
        SampleKind::Delete => {
            if let Some(reference) = named {
                return Ok(Some((Change::Forget(vec![reference]), 0)));
            }
            match context.keys.below_memory(key) {
                Some(rest) if rest.contains('*') => deleting::take_on(context, key).map(|()| None),
                None if key.contains('*') => Err(no_robot(context, key)),
                _ => Err(no_resource(key)),
            }
        }
    }
}

/// A DELETE that does not name the robot: `**` deletes whatever there is in a network, and what denies
/// `omir/<robot>/memory/**` to somebody lets `omir/*/memory/**` pass.
fn no_robot(context: &Context, key: &str) -> Error {
    let all = context.keys.all_memory();
    let message = format!(
        "{key}: a DELETE names the robot exactly, and may have wildcards behind `memory/` only: \
         {all}"
    );
    Error::new(Code::InvalidQuery, message)
}

fn no_resource(key: &str) -> Error {
    let types: Vec<&str> = ResourceType::ALL.iter().map(|of| of.as_str()).collect();
    Error::new(
        Code::InvalidResource,
        format!(
            "{key} names no resource: expected memory/<Type>/<id> with a type of {} and an id of \
             [A-Za-z0-9._:-]{{1,128}}",
            types.join(", ")
        ),
    )
}

/// Everything live that a key expression with wildcards names; also what cannot be read and may be among it.
pub(super) fn each_matching(
    context: &Context,
    key: &str,
    mut f: impl FnMut(Result<(Ref, Vec<u8>), Unread>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let Ok(wanted) = keyexpr::new(key) else { return ControlFlow::Continue(()) };
    for of in ResourceType::ALL {
        let all = format!("{}/{of}/*", context.keys.operation("memory"));
        if !keyexpr::new(&all).is_ok_and(|all| wanted.intersects(all)) {
            continue;
        }
        let is_wanted = |name: &Ref| {
            let key = context.keys.memory(name);
            keyexpr::new(&key).is_ok_and(|key| wanted.intersects(key))
        };
        context.engine.each_or_unread(Some(of), |one| match one {
            Ok(bytes) => {
                let name = id_of(&bytes).and_then(|id| Id::new(id).ok()).map(|id| Ref::new(of, id));
                match name.filter(is_wanted) {
                    Some(name) => f(Ok((name, bytes))),
                    None => ControlFlow::Continue(()),
                }
            }
            Err(unread) if unread.name.as_ref().is_none_or(is_wanted) => f(Err(unread)),
            Err(_) => ControlFlow::Continue(()),
        })?;
    }
    ControlFlow::Continue(())
}

/// A GET: one reply for each resource, on its own key. What cannot be read is told of by error replies.
pub(super) fn get(context: &Context, ask: Ask) {
    if let Err(error) = ask.selector().and_then(|list| {
        let mut named = Named::new(list);
        // A storage may be asked for a time range; omird keeps one value for each key.
        let _ = named.take("_time");
        named.finish("format; filters belong to `recall`")
    }) {
        return context.refuse(ask, &error);
    }
    context.pool.pool().wait(|| {
        context.deletes.settle(SETTLE);
        context.engine.settle(SETTLE);
    });
    match context.keys.reference(ask.key()) {
        None => get_matching(context, ask),
        Some(name) => {
            let stored = context.engine.get(&name).transpose();
            match stored.map(|bytes| body(&ask, bytes?)).transpose() {
                Ok(Some(body)) => drop(ask.send(context.keys.memory(&name), body)),
                Ok(None) => {}
                Err(error) => context.refuse(ask, &error),
            }
        }
    }
}

/// What is stored, in the encoding of the answer.
fn body(ask: &Ask, stored: Vec<u8>) -> Result<Vec<u8>, Error> {
    Ok(match ask.encoding {
        Encoding::Cbor => stored,
        Encoding::Json => Encoding::Json.encode(&decode_stored(&stored)?),
    })
}

fn get_matching(context: &Context, ask: Ask) {
    let go_on = |is_taken: bool| {
        if is_taken { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let refuse = |message: String| go_on(ask.send_error(&Error::new(Code::Internal, message)));
    let mut unread = 0;
    let mut sent = each_matching(context, ask.key(), |one| {
        let fault = match one {
            Ok((name, bytes)) => match body(&ask, bytes) {
                Ok(body) => return go_on(ask.send(context.keys.memory(&name), body)),
                Err(error) => Unread { name: Some(name), error },
            },
            Err(unread) => unread,
        };
        tracing::error!(%fault, "left out of a GET");
        unread += 1;
        if unread <= MAX_TOLD { refuse(fault.to_string()) } else { ControlFlow::Continue(()) }
    });
    if sent.is_continue() && unread > MAX_TOLD {
        sent = refuse(format!("{} more cannot be read (omir store check)", unread - MAX_TOLD));
    }
    if sent.is_break() {
        ask.give_up();
    }
}
