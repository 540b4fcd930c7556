//! `/omir/v1/memory/<Type>/<id>`: one resource under its name. Its `ETag` is its version.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, ETAG, HeaderValue};
use omir_core::reference::Ref;

use super::super::Context;
use super::super::body::UnreadRequest;
use super::super::caller::ask_who;
use super::super::guarded_body::guarded;
use super::super::negotiate::{self, Conditions};
use super::super::refused::{Refused, content_type};
use super::{admit_bare, answer_encoding, expect_none, most_bytes, query_parameters};
use crate::capacity::Slot;
use crate::engine::{
    Code, Effect, Encoding, Error, Precondition, Receipt, decode_stored, unanswered,
};
use crate::protocols::omir::{DELETE, GET, INLINE_BYTES, PUT, no_resource};
use crate::router::{Admitted, Caller, Incoming, Method};

/// Tries of a write whose condition held and then did not: another client wrote in between.
const TRIES: usize = 8;

/// The path of a request, of which both parts must be right.
type Named = Result<Path<(String, String)>, PathRejection>;

fn name_of(path: &Named) -> Result<Ref, Error> {
    let text = match path {
        Ok(Path((of, id))) => format!("{of}/{id}"),
        Err(_) => return Err(no_resource("a path that is no UTF-8 after percent-decoding")),
    };
    text.parse().map_err(|_| no_resource(&format!("memory/{text}")))
}

pub(in crate::http) async fn read(
    State(context): State<Arc<Context>>,
    path: Named,
    request: Request,
) -> Result<Response, Refused> {
    let (parts, _) = request.into_parts();
    let caller = ask_who(&context, &GET, &parts, None)?;
    let slot = slot(&context, &caller, &GET, 0, None)?;
    let admitted = admit_bare(&context, &GET, &caller, None)?;
    let asked = (|| {
        let mut parameters = query_parameters(&parts)?;
        let encoding = answer_encoding(&mut parameters, &parts.headers)?;
        expect_none(&GET, parameters, "filters belong to `recall`")?;
        let name = name_of(&path).map_err(|error| Error { code: Code::NotFound, ..error })?;
        Ok((name, encoding))
    })();
    let (name, encoding) = match asked {
        Ok(asked) => asked,
        Err(error) => return Err(failed(admitted, error)),
    };
    let omir = context.protocols.omir.clone();
    let look_up = move || {
        let found = omir.get_versioned(&admitted, &name).and_then(|found| {
            let missing = || Error::new(Code::NotFound, format!("{name} is not stored"));
            let (bytes, version) = found.ok_or_else(missing)?;
            let bytes = match encoding {
                Encoding::Cbor => bytes,
                Encoding::Json => Encoding::Json.encode(&decode_stored(&bytes)?),
            };
            Ok((bytes, version))
        });
        admitted.finish(&found);
        found
    };
    let (bytes, version) = slot.work(look_up).await??;
    let conditions = Conditions::of(&parts.headers);
    answered(&context, &conditions, bytes, version, encoding).await
}

/// Ends a request that is refused.
fn failed(admitted: Admitted, error: Error) -> Refused {
    admitted.failed(error.code);
    error.into()
}

async fn answered(
    context: &Context,
    conditions: &Conditions,
    bytes: Vec<u8>,
    version: u64,
    encoding: Encoding,
) -> Result<Response, Refused> {
    if conditions.rule_out(Some(version)) {
        return Err(Conditions::failed(Some(version)));
    }
    if conditions.have(version) {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, tag(version))]).into_response());
    }
    let room = context.capacity.room_for_answer(bytes.len()).await?;
    let headers = [(CONTENT_TYPE, content_type(encoding)), (ETAG, tag(version))];
    Ok((headers, guarded(Body::from(bytes), Arc::new(room))).into_response())
}

pub(in crate::http) async fn store(
    State(context): State<Arc<Context>>,
    path: Named,
    request: Request,
) -> Result<Response, Refused> {
    let (parts, body) = request.into_parts();
    let name = name_of(&path);
    let named = name.as_ref().ok();
    let caller = ask_who(&context, &PUT, &parts, named)?;
    let router = &context.protocols.router;
    let asked = (|| {
        let mut parameters = query_parameters(&parts)?;
        let encoding = answer_encoding(&mut parameters, &parts.headers)?;
        expect_none(&PUT, parameters, "conditions are `If-Match` and `If-None-Match`")?;
        Ok((name.clone()?, encoding))
    })();
    let (name, encoding) = asked.map_err(|error: Error| {
        router.refuse_named(&caller, &PUT, 0, named, error.code);
        Refused::from(error)
    })?;
    let asked = UnreadRequest { caller: &caller, method: &PUT, named };
    let most = most_bytes(&context, &PUT, false);
    let read = asked.read(&context, &parts.headers, body, most).await?;
    let size = read.bytes.len();
    let content = match size {
        // An empty body is refused for what it is.
        0 => Ok(Encoding::Json),
        _ => negotiate::content(&parts.headers),
    };
    let content = content.inspect_err(|refused| {
        router.refuse_named(&caller, &PUT, size, named, refused.error.code);
    })?;
    let _slot = slot(&context, &caller, &PUT, size, named)?;
    let incoming = Incoming { bytes: size, ..Incoming::default() };
    let admitted = router.admit_named(&caller, &PUT, incoming, named)?;
    let conditions = Conditions::of(&parts.headers);
    let bytes = Arc::new(read.bytes);
    let (mut admitted, found) = live_version(&context, admitted, &name).await?;
    let mut live = found.map(|(version, _)| version);
    for attempt in 0..TRIES {
        if !conditions.hold(live) {
            admitted.failed(Code::Conflict);
            return Err(Conditions::failed(live));
        }
        let precondition = precondition(&conditions, live, attempt);
        let (again, receipt) =
            put(&context, admitted, &name, &bytes, content, precondition).await?;
        let error = match receipt {
            Ok(receipt) => {
                again.done();
                return Ok(stored(&receipt, precondition == Precondition::Absent, encoding));
            }
            Err(error) => error,
        };
        if error.code != Code::Conflict || precondition == Precondition::None {
            return Err(failed(again, error));
        }
        // The condition may hold for what is stored now: that is looked at again.
        let (again, found) = live_version(&context, again, &name).await?;
        let now = found.map(|(version, _)| version);
        if now == live && !conditions.are_none() {
            return Err(failed(again, error));
        }
        (admitted, live) = (again, now);
    }
    let message = format!("{name} changes all the time; try again in a moment");
    Err(failed(admitted, Error::new(Code::Busy, message)))
}

/// Takes a slot among the requests that wait, before the request is taken on. A refusal has its audit line.
fn slot(
    context: &Context,
    caller: &Caller,
    row: &'static Method,
    bytes: usize,
    named: Option<&Ref>,
) -> Result<Slot, Refused> {
    context.capacity.slot().map_err(|error| {
        context.protocols.router.refuse_named(caller, row, bytes, named, error.code);
        Refused::from(error)
    })
}

/// Looks which version lives, and which transaction made it, on a thread that may wait: a long recall and the writer hold the
/// index.
async fn live_version(
    context: &Context,
    admitted: Admitted,
    name: &Ref,
) -> Result<(Admitted, Option<(u64, u64)>), Error> {
    let (omir, name) = (context.protocols.omir.clone(), name.clone());
    let look = move || {
        let live = omir.live_version(&admitted, &name);
        (admitted, live)
    };
    context.capacity.look(look).await
}

/// Returns what the writer is to check, where the conditions hold for the version that lives now.
fn precondition(conditions: &Conditions, live: Option<u64>, attempt: usize) -> Precondition {
    match live {
        // It is stored in any case. The first try of a name that is free tells one of many at once that it is new.
        _ if conditions.are_none() && (live.is_some() || attempt > 0) => Precondition::None,
        None => Precondition::Absent,
        Some(_) if conditions.take_any_version() => Precondition::Live,
        Some(version) => Precondition::Version(version),
    }
}

async fn put(
    context: &Arc<Context>,
    admitted: Admitted,
    name: &Ref,
    bytes: &Arc<Vec<u8>>,
    content: Encoding,
    precondition: Precondition,
) -> Result<(Admitted, Result<Receipt, Error>), Error> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let (omir, name, bytes) = (context.protocols.omir.clone(), name.clone(), bytes.clone());
    let is_large = bytes.len() > INLINE_BYTES;
    let work = move || {
        omir.put_if(admitted, &name, &bytes, content, precondition, move |admitted, receipt| {
            // A client that is gone does not wait for it. What became of it is in the audit line all the same.
            if let Err((admitted, receipt)) = tell.send((admitted, receipt)) {
                admitted.finish(&receipt);
            }
        });
    };
    if is_large {
        context.capacity.go_on(work).await?
    } else {
        work()
    }
    told.await.map_err(|_| unanswered())
}

fn stored(receipt: &Receipt, is_new: bool, encoding: Encoding) -> Response {
    let (mut status, mut etag) = (StatusCode::OK, None);
    if let Effect::Remembered(stored) = &receipt.effect
        && let [stored] = &stored[..]
    {
        etag = Some(tag(stored.version));
        if is_new && !stored.unchanged {
            status = StatusCode::CREATED;
        }
    }
    let mut response = answer(receipt, encoding);
    *response.status_mut() = status;
    if let Some(etag) = etag {
        response.headers_mut().insert(ETAG, etag);
    }
    response
}

fn answer(receipt: &Receipt, encoding: Encoding) -> Response {
    let bytes = encoding.encode(&receipt.to_value());
    ([(CONTENT_TYPE, content_type(encoding))], bytes).into_response()
}

pub(in crate::http) async fn forget(
    State(context): State<Arc<Context>>,
    path: Named,
    request: Request,
) -> Result<Response, Refused> {
    let (parts, _) = request.into_parts();
    let name = name_of(&path);
    let named = name.as_ref().ok();
    let caller = ask_who(&context, &DELETE, &parts, named)?;
    let _slot = slot(&context, &caller, &DELETE, 0, named)?;
    let admitted = admit_bare(&context, &DELETE, &caller, named)?;
    let asked = (|| {
        let mut parameters = query_parameters(&parts)?;
        let encoding = answer_encoding(&mut parameters, &parts.headers)?;
        expect_none(&DELETE, parameters, "a condition is `If-Match`")?;
        Ok((name.clone()?, encoding))
    })();
    let (name, encoding) = match asked {
        Ok(asked) => asked,
        Err(error) => return Err(failed(admitted, error)),
    };
    let (conditions, omir) = (Conditions::of(&parts.headers), &context.protocols.omir);
    let (tell, waiting) = tokio::sync::oneshot::channel();
    let reply = move |receipt| {
        // A client that is gone does not wait for it.
        let _ = tell.send(receipt);
    };
    let (admitted, live) = match conditions.are_none() {
        true => (admitted, None),
        false => live_version(&context, admitted, &name).await?,
    };
    let version = live.map(|(version, _)| version);
    match live {
        _ if conditions.are_none() => omir.delete(admitted, name.clone(), reply),
        Some(_) if conditions.take_any_version() => omir.delete(admitted, name.clone(), reply),
        Some((version, seq)) if conditions.hold(Some(version)) => {
            omir.delete_up_to(admitted, name.clone(), seq, reply);
        }
        _ => {
            admitted.failed(Code::Conflict);
            return Err(Conditions::failed(version));
        }
    }
    let receipt = waiting.await.unwrap_or_else(|_| Err(unanswered()))?;
    if !conditions.are_none() && receipt.effect == Effect::Forgotten(0) {
        // Another client wrote or forgot it in between.
        return Err(Conditions::failed(None));
    }
    Ok(answer(&receipt, encoding))
}

/// The `ETag` of a version.
fn tag(version: u64) -> HeaderValue {
    HeaderValue::from_str(&format!("\"{version}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}
