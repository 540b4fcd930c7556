//! The OMIR protocol over HTTP: the operations of `docs/keys.md` under `/omir/v1`, and what is stored under its name.

pub(super) mod clock;
pub(super) mod events;
mod export;
pub(super) mod memory;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use hyper::HeaderMap;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::http::request::Parts;
use omir_core::operation::Operation;
use omir_core::reference::Ref;
use omir_core::value::Value;
use percent_encoding::percent_decode_str;

use super::body::{self, Most, UnreadRequest};
use super::caller::ask_who;
use super::guarded_body::guarded;
use super::refused::{Refused, content_type};
use super::{Context, negotiate};
use crate::capacity::{Room, Slot};
use crate::engine::{Code, Encoding, Error, RequestLimits, decode, unanswered};
use crate::protocols::omir::{
    Encoded, INLINE_BYTES, Named, Params, Payload, add_parameter, add_parameters, is_served_inline,
    method,
};
use crate::router::{self, Admitted, Caller, Incoming, Method};

/// Returns the handler of an operation.
pub(super) fn served(way: MethodFilter, operation: Operation) -> MethodRouter<Arc<Context>> {
    match operation {
        Operation::Export => on(way, export::stream),
        _ => on(way, async move |State(context): State<Arc<Context>>, request: Request| {
            serve(&context, operation, request).await
        }),
    }
}

/// Serves an operation.
async fn serve(
    context: &Arc<Context>,
    operation: Operation,
    request: Request,
) -> Result<Response, Refused> {
    let Admission { admitted, params, encoding, size, room, slot } =
        admit(context, method(operation), request).await?;
    let omir = context.protocols.omir.clone();
    let (tell, told) = tokio::sync::oneshot::channel();
    let work = move || {
        let _room = room;
        let encode = move |response: crate::protocols::omir::Response| response.encode(encoding);
        omir.serve(admitted, params, encode, move |answer| {
            // A client that is gone does not wait for it.
            let _ = tell.send(answer);
        });
    };
    if is_served_inline(operation, size) {
        work();
    } else {
        slot.work(work).await?;
    }
    let encoded = told.await.unwrap_or_else(|_| Err(unanswered()))?;
    sent(context, method(operation), encoded).await
}

/// Returns the answer, once there is room for it.
async fn sent(context: &Context, row: &Method, encoded: Encoded) -> Result<Response, Refused> {
    let Encoded { bytes, encoding, left_out: _ } = encoded;
    let media = match encoding {
        Some(encoding) => content_type(encoding),
        None => HeaderValue::from_static("application/octet-stream"),
    };
    let body = match context.capacity.room_for_answer(bytes.len()).await {
        Ok(room) => guarded(Body::from(bytes), Arc::new(room)),
        // A change is made: that is told in any case.
        Err(_) if row.effect != router::Effect::Reads && encoding.is_some() => Body::from(bytes),
        Err(error) => return Err(error.into()),
    };
    Ok(([(CONTENT_TYPE, media)], body).into_response())
}

/// A request that may be worked on.
struct Admission {
    admitted: Admitted,
    params: Params,
    /// The encoding of the answer.
    encoding: Encoding,
    /// Bytes of the body.
    size: usize,
    /// Kept until the body is worked on.
    room: Room,
    /// Among the requests that wait.
    slot: Slot,
}

/// Identifies the caller, reads parameters and body within the bounds of the method, and has the router decide.
async fn admit(
    context: &Context,
    row: &'static Method,
    request: Request,
) -> Result<Admission, Refused> {
    let (parts, body) = request.into_parts();
    let caller = ask_who(context, row, &parts, None)?;
    let asked = UnreadRequest { caller: &caller, method: row, named: None };
    let refuse = |bytes: usize, error: Error| {
        asked.refuse(context, bytes, error.code);
        Refused::from(error)
    };
    let mut parameters = query_parameters(&parts).map_err(|error| refuse(0, error))?;
    let encoding = answer_encoding(&mut parameters, &parts.headers).map_err(|e| refuse(0, e))?;
    let merges = parameters.iter().any(|(name, _)| name == "merge");
    let most = most_bytes(context, row, merges);
    let body::Read { bytes, room } = asked.read(context, &parts.headers, body, most).await?;
    // The request takes a slot before it is admitted: a client that is told BUSY has begun nothing.
    let slot = context.capacity.slot().map_err(|error| refuse(bytes.len(), error))?;
    let size = bytes.len();
    let incoming = Incoming { bytes: size, merges, ..Incoming::default() };
    let admitted = context.protocols.router.admit(&caller, row, incoming)?;
    let content = match size {
        0 => Ok(None),
        _ => negotiate::content(&parts.headers).map(Some),
    };
    let limits = context.protocols.omir.limits();
    let read = move |content: Option<Encoding>| match content {
        None => Ok(Params { parameters, payload: Payload::None }),
        Some(content) => params(row, &limits, bytes, content, parameters),
    };
    let params = match content {
        Err(refused) => Err(refused),
        Ok(content) if size <= INLINE_BYTES => read(content).map_err(Refused::from),
        Ok(content) => {
            let read = context.capacity.go_on(move || read(content)).await;
            read.and_then(|read| read).map_err(Refused::from)
        }
    };
    match params {
        Ok(params) => Ok(Admission { admitted, params, encoding, size, room, slot }),
        Err(refused) => {
            admitted.failed(refused.error.code);
            Err(refused)
        }
    }
}

/// Returns the bound of a body of this method.
fn most_bytes(context: &Context, row: &'static Method, merges: bool) -> Most {
    let limits = context.protocols.omir.limits();
    let of_payload = Most { bytes: limits.max_payload_bytes, limit: Some("max_payload_bytes") };
    let may_merge = merges && row.payload == router::Payload::Resources;
    if may_merge && limits.max_import_bytes > of_payload.bytes {
        return Most { bytes: limits.max_import_bytes, limit: Some("max_import_bytes") };
    }
    of_payload
}

/// Makes of parameters and a body what the method takes.
fn params(
    row: &'static Method,
    limits: &RequestLimits,
    bytes: Vec<u8>,
    content: Encoding,
    mut parameters: Vec<(String, String)>,
) -> Result<Params, Error> {
    if row.payload == router::Payload::Resources {
        return Ok(Params { parameters, payload: Payload::Resources(bytes, content) });
    }
    let mut members = decode(&bytes, content, limits, Code::InvalidQuery)?;
    // The encoding of the answer is said in the query, or by `Accept`.
    if let Value::Object(members) = &mut members {
        members.remove("format");
    }
    if row.payload == router::Payload::None {
        add_parameters(&mut parameters, &members)?;
        return Ok(Params { parameters, payload: Payload::None });
    }
    Ok(Params { parameters, payload: Payload::Members(members) })
}

/// Takes `format` from the parameters, which wins over `Accept`.
fn answer_encoding(
    parameters: &mut Vec<(String, String)>,
    headers: &HeaderMap,
) -> Result<Encoding, Error> {
    let Some(at) = parameters.iter().position(|(name, _)| name == "format") else {
        return Ok(negotiate::accepted(headers));
    };
    match parameters.remove(at).1.as_str() {
        "json" => Ok(Encoding::Json),
        "cbor" => Ok(Encoding::Cbor),
        other => Err(Error::query("format", format!("{other:?} is neither `json` nor `cbor`"))),
    }
}

/// Reads the parameters of a query: `name=value`, with `&` between them, as forms and `curl --data-urlencode` write them.
///
/// # Errors
/// `INVALID_QUERY`, naming the parameter that is given twice or is no text.
pub(super) fn query_parameters(parts: &Parts) -> Result<Vec<(String, String)>, Error> {
    let mut list: Vec<(String, String)> = Vec::new();
    let query = parts.uri.query().unwrap_or_default();
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let decoded = |text: &str| {
            let text = text.replace('+', " ");
            percent_decode_str(&text).decode_utf8().map(std::borrow::Cow::into_owned)
        };
        let (Ok(name), Ok(value)) = (decoded(name), decoded(value)) else {
            return Err(Error::query(name, "is not UTF-8 after percent-decoding"));
        };
        add_parameter(&mut list, name, value)?;
    }
    Ok(list)
}

/// Refuses parameters where there are none.
fn expect_none(
    row: &'static Method,
    parameters: Vec<(String, String)>,
    hint: &str,
) -> Result<(), Error> {
    Named::of(row.about, parameters).finish(hint)
}

/// Has the router decide about a method without a body.
fn admit_bare(
    context: &Context,
    row: &'static Method,
    caller: &Caller,
    named: Option<&Ref>,
) -> Result<Admitted, Refused> {
    Ok(context.protocols.router.admit_named(caller, row, Incoming::default(), named)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(query: &str) -> Result<Vec<(String, String)>, Error> {
        let (parts, ()) = hyper::Request::get(format!("/x?{query}")).body(()).unwrap().into_parts();
        query_parameters(&parts)
    }

    #[test]
    fn parameters_are_read_as_forms_write_them() {
        let list = of("q=door+3%26%3b%2b&near=1,2&explain&").unwrap();
        let list: Vec<(&str, &str)> = list.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(list, [("q", "door 3&;+"), ("near", "1,2"), ("explain", "")]);
        assert_eq!(of("q=a&q=b").unwrap_err().path, "/q");
        assert_eq!(of("q=%ff").unwrap_err().code, Code::InvalidQuery);
    }
}
