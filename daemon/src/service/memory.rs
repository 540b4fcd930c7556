//! PUT, DELETE and GET on memory keys: the daemon as an ordinary Zenoh storage.

use std::sync::Arc;
use std::time::Duration;

use omir_core::instant::Timestamp;
use omir_core::reference::{Id, Ref, ResourceType};
use zenoh::key_expr::keyexpr;
use zenoh::sample::{Sample, SampleKind};

use super::Context;
use super::ask::{Ask, stated};
use crate::engine::asked::Named;
use crate::engine::command::Change;
use crate::engine::export::decode_stored;
use crate::engine::id_of;
use crate::engine::request::Encoding;
use crate::error::{Code, Error};

/// How long a GET waits for earlier PUTs of the same moment to be committed.
const SETTLE: Duration = Duration::from_secs(2);
/// The same for a DELETE of all that matches, which holds up whatever comes over its link meanwhile.
const A_MOMENT: Duration = Duration::from_secs(1);

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

fn reject(context: &Context, key: &str, error: &Error) {
    context.engine.note_rejected();
    context.events.rejected(key, error);
}

fn change(context: &Context, key: &str, sample: &Sample) -> Result<Option<(Change, usize)>, Error> {
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
            let targets = match named {
                Some(reference) => vec![reference],
                None if context.keys.below_memory(key).is_some_and(|rest| rest.contains('*')) => {
                    // What was put before is meant as well.
                    context.engine.settle(A_MOMENT);
                    matching(context, key)
                }
                None if key.contains('*') => return Err(no_robot(context, key)),
                None => return Err(no_resource(key)),
            };
            Ok((!targets.is_empty()).then_some((Change::Forget(targets), 0)))
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

/// Everything live that a key expression with wildcards names.
fn matching(context: &Context, key: &str) -> Vec<Ref> {
    let mut targets = Vec::new();
    each_matching(context, key, |reference, _| targets.push(reference));
    targets
}

fn each_matching(context: &Context, key: &str, mut f: impl FnMut(Ref, Vec<u8>)) {
    let Ok(wanted) = keyexpr::new(key) else { return };
    for of in ResourceType::ALL {
        let all = format!("{}/{of}/*", context.keys.operation("memory"));
        if !keyexpr::new(&all).is_ok_and(|all| wanted.intersects(all)) {
            continue;
        }
        context.engine.each(Some(of), |bytes| {
            let Some(id) = id_of(&bytes).and_then(|id| Id::new(id).ok()) else { return };
            let reference = Ref::new(of, id);
            let key = context.keys.memory(&reference);
            if keyexpr::new(&key).is_ok_and(|key| wanted.intersects(key)) {
                f(reference, bytes);
            }
        });
    }
}

/// A GET: one reply for each resource, on its own key.
pub(super) fn get(context: &Context, ask: Ask) {
    if let Err(error) = ask.selector().and_then(|list| {
        let mut named = Named::new(list);
        // A storage may be asked for a time range; omird keeps one value for each key.
        let _ = named.take("_time");
        named.finish("format; filters belong to `recall`")
    }) {
        return context.refuse(ask, &error);
    }
    context.engine.settle(SETTLE);
    let send = |reference: &Ref, bytes: Vec<u8>| {
        let key = context.keys.memory(reference);
        let body = match ask.encoding {
            Encoding::Cbor => Ok(bytes),
            Encoding::Json => decode_stored(&bytes).map(|value| Encoding::Json.encode(&value)),
        };
        match body {
            Ok(body) => ask.send(&key, body),
            Err(error) => tracing::error!(%error, key, "left out of a reply"),
        }
    };
    match context.keys.reference(ask.key()) {
        Some(reference) => match context.engine.get(&reference) {
            Ok(Some(bytes)) => send(&reference, bytes),
            Ok(None) => {}
            Err(error) => context.refuse(ask, &error),
        },
        None => each_matching(context, ask.key(), |reference, bytes| send(&reference, bytes)),
    }
}
