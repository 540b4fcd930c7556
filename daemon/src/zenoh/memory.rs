//! PUT, DELETE and GET on memory keys: the daemon as an ordinary Zenoh storage.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use omir_core::instant::Timestamp;
use omir_core::reference::{Ref, ResourceType};
use zenoh::key_expr::keyexpr;
use zenoh::sample::{Sample, SampleKind};

use super::Context;
use super::deleting;
use super::identity::{ZENOH, identified};
use super::request::{Request, stated};
use crate::engine::{Code, Encoding, Error, Unread, decode_stored};
use crate::protocols::Protocols;
use crate::protocols::omir::{DELETE, GET, Named, PUT, no_resource};
use crate::router::{Admitted, Caller, Incoming, worded};

/// Longest time that a GET waits for earlier PUTs and DELETEs to be committed.
const COMMITTING: Duration = Duration::from_secs(2);
/// Most of what cannot be read that a GET tells of one by one.
const MAX_TOLD: usize = 8;

/// A PUT or DELETE. The client gets no answer: a refusal is announced.
pub(super) fn sample(context: &Arc<Context>, sample: &Sample) {
    let key = sample.key_expr().as_str();
    let method = match sample.kind() {
        SampleKind::Put => &PUT,
        SampleKind::Delete => &DELETE,
    };
    let incoming = Incoming { bytes: sample.payload().len(), ..Incoming::default() };
    let named = context.keys.reference(key);
    let Protocols { access, router, .. } = &context.protocols;
    let refused = |caller: &Caller, error: Error| {
        router.refuse_named(caller, method, incoming.bytes, named.as_ref(), error.code);
        context.events.rejected(key, &error);
    };
    let caller = match identified(access, sample.attachment()) {
        Ok(caller) => caller,
        Err(refusal) => return refused(&Caller::unknown(ZENOH), worded(refusal)),
    };
    if sample.kind() == SampleKind::Delete && names_no_robot(context, key) {
        return refused(&caller, no_robot(context, key));
    }
    let refused = match router.admit_named(&caller, method, incoming, named.as_ref()) {
        Err(refusal) => worded(refusal),
        Ok(admitted) => match change(context, key, named, sample, admitted) {
            Ok(()) => return,
            Err(not_taken) => {
                let (admitted, error) = *not_taken;
                admitted.failed(error.code);
                error
            }
        },
    };
    context.events.rejected(key, &refused);
}

/// Takes a change on. Gives the request back with what is wrong with its key.
fn change(
    context: &Arc<Context>,
    key: &str,
    named: Option<Ref>,
    sample: &Sample,
    admitted: Admitted,
) -> Result<(), deleting::NotTakenOn> {
    let omir = &context.protocols.omir;
    let after = (context.clone(), key.to_owned());
    let reply = move |done: Result<_, Error>| {
        if let Err(error) = done {
            let (context, key) = after;
            context.events.rejected(&key, &error);
        }
    };
    match (sample.kind(), named) {
        (SampleKind::Put, Some(name)) => {
            let payload = sample.payload().to_bytes();
            let encoding =
                stated(Some(sample.encoding())).unwrap_or_else(|| Encoding::sniff(&payload));
            let sent = sample.timestamp().map(|stamp| stamp.get_time().as_nanos() / 1000);
            let sent = sent.and_then(|micros| i64::try_from(micros).ok());
            let sent = sent.map(Timestamp::from_micros);
            omir.put(admitted, &name, &payload, encoding, sent, reply);
        }
        (SampleKind::Put, None) => return Err(Box::new((admitted, no_resource(key)))),
        (SampleKind::Delete, Some(name)) => omir.delete(admitted, name, reply),
        (SampleKind::Delete, None) => match context.keys.below_memory(key) {
            Some(rest) if rest.contains('*') => deleting::take_on(context, key, admitted)?,
            _ => return Err(Box::new((admitted, no_resource(key)))),
        },
    }
    Ok(())
}

/// Returns true for wildcards in the place of the robot or before it.
fn names_no_robot(context: &Context, key: &str) -> bool {
    key.contains('*') && context.keys.below_memory(key).is_none()
}

/// A DELETE that does not name the robot: `**` deletes whatever there is in a network, and what denies
/// `omir/<robot>/memory/**` to a client lets `omir/*/memory/**` pass.
fn no_robot(context: &Context, key: &str) -> Error {
    let all = context.keys.all_memory();
    let message = format!(
        "{key}: a DELETE names the robot exactly, and may have wildcards behind `memory/` only: \
         {all}"
    );
    Error::new(Code::InvalidQuery, message)
}

/// Everything live that a key expression with wildcards names; also what cannot be read and may be among it.
pub(super) fn each_matching(
    context: &Context,
    admitted: &Admitted,
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
        context.protocols.omir.each(admitted, of, is_wanted, &mut f)?;
    }
    ControlFlow::Continue(())
}

/// A GET: one reply for each resource, on its own key. What cannot be read is told of by error replies.
pub(super) fn get(context: &Context, request: Request, admitted: Admitted) {
    if let Err(error) = request.selector().and_then(|list| {
        // A storage may be asked for a time range; omird keeps one value for each key.
        let list = list.into_iter().filter(|(name, _)| name != "_time").collect();
        Named::of(GET.about, list).finish("filters belong to `recall`")
    }) {
        admitted.failed(error.code);
        return request.refuse(&error);
    }
    let omir = &context.protocols.omir;
    context.pool.pool().wait(|| {
        context.deletes.wait_done(COMMITTING);
        omir.wait_committed(COMMITTING);
    });
    match context.keys.reference(request.key()) {
        None => get_matching(context, request, admitted),
        Some(name) => {
            let stored = omir.get(&admitted, &name).transpose();
            let body = stored.map(|bytes| body(&request, bytes?)).transpose();
            admitted.finish(&body);
            match body {
                Ok(Some(body)) => drop(request.send(context.keys.memory(&name), body)),
                Ok(None) => {}
                Err(error) => request.refuse(&error),
            }
        }
    }
}

/// Returns the stored resource, in the encoding of the answer.
fn body(request: &Request, stored: Vec<u8>) -> Result<Vec<u8>, Error> {
    Ok(match request.encoding {
        Encoding::Cbor => stored,
        Encoding::Json => Encoding::Json.encode(&decode_stored(&stored)?),
    })
}

fn get_matching(context: &Context, request: Request, admitted: Admitted) {
    let go_on = |is_taken: bool| {
        if is_taken { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let refuse = |message: String| go_on(request.send_error(&Error::new(Code::Internal, message)));
    let mut unread = 0;
    let mut sent = each_matching(context, &admitted, request.key(), |one| {
        let fault = match one {
            Ok((name, bytes)) => match body(&request, bytes) {
                Ok(body) => return go_on(request.send(context.keys.memory(&name), body)),
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
        admitted.failed(Code::Busy);
        request.give_up();
    } else {
        admitted.done();
    }
}
