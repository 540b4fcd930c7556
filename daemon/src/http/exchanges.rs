//! Protocols of one message and one answer each ([`Exchange`]) over HTTP: JSON in a body, and what a path or query names.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{RawPathParams, Request, State};
use axum::response::Response as HttpResponse;
use axum::routing::{MethodFilter, MethodRouter, on};
use hyper::header::{
    CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use hyper::http::request::Parts;
use hyper::{HeaderMap, StatusCode};

use super::Context;
use super::body::{self, Most, Read};
use super::caller::{identify, nobody};
use super::guarded_body::guarded;
use super::negotiate;
use super::omir::query_parameters;
use super::refused::{Refused, content_type, in_seconds};
use super::request::NOT_TAKEN;
use crate::capacity::Room;
use crate::engine::{Code, Encoding, Error, unanswered};
use crate::router::{
    Admitted, Caller, Denial, Denied, Effect, Exchange, Incoming, Message, Method, Payload,
    Response, Scope,
};

/// The name that a client gives its request, and that of the conversation which the request is part of.
const REQUEST_ID: &str = "x-request-id";
const TRACE_ID: &str = "x-trace-id";
/// Characters of such a name.
const LONGEST_ID: usize = 128;
/// Bytes of what an answer says in a header.
const LONGEST_BESIDE: usize = 1 << 10;

/// Returns the handler of a method.
pub(super) fn served(way: MethodFilter, method: &'static Method) -> MethodRouter<Arc<Context>> {
    on(way, async move |State(context): State<Arc<Context>>, names, request| {
        serve(&context, method, names, request).await
    })
}

/// Marks a response that words, as its protocol does, that a path does not take a verb.
#[derive(Clone, Copy)]
pub(super) struct Worded;

/// Returns the same routes, which also answer other verbs, as the protocol of the method words that.
pub(super) fn refusing_others(
    routes: MethodRouter<Arc<Context>>,
    method: &'static Method,
) -> MethodRouter<Arc<Context>> {
    routes.fallback(async move |State(context): State<Arc<Context>>, headers: HeaderMap| {
        not_taken(&context, method, &headers)
    })
}

fn not_taken(
    context: &Context,
    method: &'static Method,
    headers: &HeaderMap,
) -> Result<HttpResponse, Refused> {
    let error = Error::new(Code::InvalidQuery, NOT_TAKEN);
    let status = StatusCode::METHOD_NOT_ALLOWED.as_u16();
    let why = Denial::Transport { status, error };
    let request_id = named(headers, REQUEST_ID);
    let denied = Denied { method, why, request_id, rate: None };
    let mut response = sent(exchange_of(context, method)?.refuse(&denied), None);
    response.extensions_mut().insert(Worded);
    Ok(response)
}

fn exchange_of<'c>(
    context: &'c Context,
    method: &Method,
) -> Result<&'c Arc<dyn Exchange>, Refused> {
    context.protocols.exchange(method.protocol).ok_or_else(|| {
        let message = "this protocol is not served here";
        Refused::new(StatusCode::NOT_FOUND, Code::NotFound, message)
    })
}

/// The names in a path, percent-decoded; or that it is no text.
type Names = Result<RawPathParams, axum::extract::rejection::RawPathParamsRejection>;

async fn serve(
    context: &Arc<Context>,
    method: &'static Method,
    names: Names,
    request: Request,
) -> Result<HttpResponse, Refused> {
    let exchange = exchange_of(context, method)?;
    let (parts, body) = request.into_parts();
    let named = |header| named(&parts.headers, header);
    let (request_id, trace_id) = (named(REQUEST_ID), named(TRACE_ID));
    let asked = RequestHead { context, exchange, method, request_id: request_id.clone(), trace_id };
    let mut answer = match asked.answered(&parts, names, body).await {
        Ok(answer) => answer,
        Err(denied) => exchange.refuse(&denied),
    };
    let room = match context.capacity.room_for_answer(answer.body.len()).await {
        Ok(room) => Some(room),
        // A change is made: that is told in any case.
        Err(_) if method.effect != Effect::Reads || answer.is_error() => None,
        Err(error) => {
            let why = refused_by_us(error.into());
            answer = exchange.refuse(&Denied { method, why, request_id, rate: None });
            None
        }
    };
    Ok(sent(answer, room))
}

/// A request, as far as its head tells.
struct RequestHead<'a> {
    context: &'a Context,
    exchange: &'a Arc<dyn Exchange>,
    method: &'static Method,
    request_id: Option<String>,
    trace_id: Option<String>,
}

impl RequestHead<'_> {
    async fn answered(
        self,
        parts: &Parts,
        names: Names,
        body: Body,
    ) -> Result<Response, Box<Denied>> {
        let began = Instant::now();
        let (context, method) = (self.context, self.method);
        let caller = self.caller(parts)?;
        // Before the body comes: what is refused is not read, and what is read has been counted.
        let bytes = body::stated_length(&parts.headers).unwrap_or(0);
        let incoming = Incoming { bytes, ..Incoming::default() };
        let admitted = context.protocols.router.admit(&caller, method, incoming);
        let mut admitted =
            admitted.map_err(|refusal| self.denied(&caller, Denial::Refusal(refusal)))?;
        let (parameters, Read { bytes, room }) = match self.read(parts, names, body).await {
            Ok(read) => read,
            Err(refused) => return Err(self.turned_down(&caller, admitted, refused)),
        };
        admitted.came_in(bytes.len());
        let slot = match context.capacity.slot() {
            Ok(slot) => slot,
            Err(error) => return Err(self.turned_down(&caller, admitted, error.into())),
        };
        let (tell, told) = tokio::sync::oneshot::channel();
        let (request_id, trace_id) = (self.request_id.clone(), self.trace_id.clone());
        let message = Message { body: bytes, parameters, request_id, trace_id, began };
        let exchange = self.exchange.clone();
        let worked = slot.work(move || {
            let reply = Box::new(move |answer| {
                // Until then the body, or what was made of it, waits for the disk.
                drop(room);
                // A client that is gone does not wait for it.
                drop(tell.send(answer));
            });
            exchange.answer(admitted, message, reply);
        });
        let failed = |error: Error| self.denied(&caller, refused_by_us(error.into()));
        worked.await.map_err(failed)?;
        told.await.map_err(|_| failed(unanswered()))
    }

    /// Identifies the caller. Open methods need no token.
    fn caller(&self, parts: &Parts) -> Result<Caller, Box<Denied>> {
        let (context, method) = (self.context, self.method);
        identify(context, parts).or_else(|refusal| {
            let nobody = nobody(parts);
            if method.scope == Scope::OPEN {
                return Ok(nobody);
            }
            let bytes = body::stated_length(&parts.headers).unwrap_or(0);
            context.protocols.router.refuse(&nobody, method, bytes, refusal.code());
            Err(self.denied(&nobody, Denial::Refusal(refusal)))
        })
    }

    /// Reads what the path and the query name, and the body.
    async fn read(
        &self,
        parts: &Parts,
        names: Names,
        body: Body,
    ) -> Result<(Vec<(String, String)>, Read), Refused> {
        let mut parameters = query_parameters(parts)?;
        let names = names.map_err(|_| Error::new(Code::InvalidQuery, "the path is not UTF-8"))?;
        for (name, value) in &names {
            // A parameter in the path takes the place of one in the query.
            parameters.retain(|(known, _)| known != name);
            parameters.push((name.to_owned(), value.to_owned()));
        }
        Message::check_parameters(self.method, &parameters)?;
        let most = match self.method.payload {
            Payload::Message(most) => {
                negotiate::expect_json(&parts.headers)?;
                Most { bytes: most, limit: None }
            }
            _ => Most { bytes: 0, limit: None },
        };
        Ok((parameters, body::read(&self.context.capacity, &parts.headers, body, most).await?))
    }

    /// Ends a request that was admitted.
    fn turned_down(&self, caller: &Caller, admitted: Admitted, refused: Refused) -> Box<Denied> {
        let rate = admitted.usage();
        admitted.failed(refused.error.code);
        Box::new(Denied { rate, ..*self.denied(caller, refused_by_us(refused)) })
    }

    fn denied(&self, caller: &Caller, why: Denial) -> Box<Denied> {
        let (method, request_id) = (self.method, self.request_id.clone());
        let rate = self.context.protocols.router.usage(caller, method);
        Box::new(Denied { method, why, request_id, rate })
    }
}

fn refused_by_us(refused: Refused) -> Denial {
    Denial::Transport { status: refused.status.as_u16(), error: refused.error }
}

/// Returns the name that a header gives, if it may stand in a header again.
fn named(headers: &HeaderMap, header: &str) -> Option<String> {
    let id = headers.get(header)?.to_str().ok()?;
    let is_visible = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_graphic());
    (is_visible && id.len() <= LONGEST_ID).then(|| id.to_owned())
}

/// Returns the response.
pub(super) fn sent(answer: Response, room: Option<Room>) -> HttpResponse {
    let (mut response, body) = head(answer);
    let length = HeaderValue::from(body.len());
    response.headers_mut().insert(CONTENT_LENGTH, length);
    let body = Body::from(body);
    *response.body_mut() = match room {
        Some(room) => guarded(body, Arc::new(room)),
        None => body,
    };
    response
}

/// Returns the response without its body.
fn head(answer: Response) -> (HttpResponse, Vec<u8>) {
    let Response { status, body, headers: beside, retry_after } = answer;
    let mut response = HttpResponse::new(Body::empty());
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    if !body.is_empty() {
        headers.insert(CONTENT_TYPE, content_type(Encoding::Json));
    }
    if status == StatusCode::UNAUTHORIZED.as_u16() {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    // Also where the protocol has no word for it in its own form.
    let may_pass = matches!(status, 429 | 503).then_some(Response::SOON);
    if let Some(after) = retry_after.or(may_pass) {
        headers.insert(RETRY_AFTER, in_seconds(after));
    }
    // A message may name itself at any length, or not at all; clients give up on a head of some 64 KiB.
    let fits = |value: &String| (1..=LONGEST_BESIDE).contains(&value.len());
    for (name, value) in beside.into_iter().filter(|(_, value)| fits(value)) {
        // A value that no header can have would be a bug of the protocol, and splits no response.
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::try_from(value))
        {
            headers.insert(name, value);
        }
    }
    (response, body)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_head_says_what_the_answer_does() {
        let mut answer = Response::new(429, "{}")
            .header("X-RateLimit-Limit", "2000")
            .header("X-Request-ID", "a\r\nSet-Cookie: b");
        answer.retry_after = Some(Duration::from_millis(1));
        let (response, body) = head(answer);
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        assert_eq!((response.status().as_u16(), body.as_slice()), (429, b"{}".as_slice()));
        assert_eq!(header("content-type"), Some("application/json"));
        assert_eq!((header("x-ratelimit-limit"), header("retry-after")), (Some("2000"), Some("1")));
        assert_eq!(header("x-request-id"), None, "no header is made of two lines");
        for id in ["", &"i".repeat(LONGEST_BESIDE + 1)] {
            let (response, _) = head(Response::new(200, "{}").header("X-Request-ID", id));
            assert!(!response.headers().contains_key("x-request-id"), "{} bytes", id.len());
        }
        for (status, after) in [(503, Some("1")), (429, Some("1")), (409, None)] {
            let (response, _) = head(Response::new(status, "{}"));
            let header = response.headers().get("retry-after").and_then(|it| it.to_str().ok());
            assert_eq!(header, after, "{status}");
        }
        let (response, _) = head(Response::new(401, ""));
        assert!(response.headers().contains_key("www-authenticate"));
        assert!(!response.headers().contains_key("content-type"), "there is no body");
    }

    #[test]
    fn a_request_has_a_name_that_a_header_may_bear() {
        let of = |value: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID, HeaderValue::from_bytes(value).unwrap());
            named(&headers, REQUEST_ID)
        };
        assert_eq!(of(b"r-1").as_deref(), Some("r-1"));
        for wrong in [&b""[..], b"a b", b"\xe9", &[b'x'; LONGEST_ID + 1]] {
            assert_eq!(of(wrong), None);
        }
    }
}
