//! The caller of a request: the holder of its token, or the owner on the socket.

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderValue};
use hyper::http::request::Parts;
use omir_core::reference::Ref;
use omird_access::bearer;

use super::Context;
use super::body;
use super::connection::Arrival;
use super::refused::Refused;
use crate::router::{Caller, Incoming, Method, Refusal, Unauthenticated, worded_for};

/// The way in that only the owner can open.
const SOCKET: &str = "socket";

/// Holds a request to reading, whatever its caller may do and whatever the value is. So a program may hand what it may read
/// on to another, such as a language model, and keep changes to itself.
const READ_ONLY: &str = "omir-read-only";

/// Identifies the caller, for a method and the resource that its path names. A refusal has its audit line.
///
/// # Errors
/// `Unauthenticated`, in the words of omird: a protocol that has its own asks [`identify`].
pub(crate) fn ask_who(
    context: &Context,
    method: &'static Method,
    parts: &Parts,
    named: Option<&Ref>,
) -> Result<Caller, Refused> {
    identify(context, parts).map_err(|refusal| {
        let bytes = body::stated_length(&parts.headers).unwrap_or(0);
        let nobody = nobody(parts);
        context.protocols.router.refuse_named(&nobody, method, bytes, named, refusal.code());
        let mut error = worded_for(refusal, method);
        if refusal == Refusal::Unauthenticated(Unauthenticated::Missing) {
            error.message.push_str("; send `Authorization: Bearer TOKEN`");
        }
        error.into()
    })
}

/// Identifies the caller. Over HTTP that takes a token, whatever the other ways in take.
///
/// # Errors
/// `Unauthenticated`.
pub(crate) fn identify(context: &Context, parts: &Parts) -> Result<Caller, Refusal> {
    let access = &context.protocols.access;
    let transport = transport(parts);
    let caller = match token(&parts.headers)? {
        Some(token) => access.identify(transport, token)?,
        None if transport == SOCKET => access.owner(SOCKET),
        None => return Err(Refusal::Unauthenticated(Unauthenticated::Missing)),
    };
    let only_reads = parts.headers.contains_key(READ_ONLY);
    Ok(Caller { only_reads, ..caller })
}

/// The caller of an answer in many parts: a token that is revoked meanwhile is in force no longer for the rest.
pub(crate) struct CallerCredentials(Box<Parts>);

impl CallerCredentials {
    /// Copies the headers that identify the caller. The rest of the request is not kept for as long as the answer
    /// takes, nor are the 8 kB that it was read into: each header is a part of them.
    pub(crate) fn of(parts: &Parts) -> Self {
        let (mut credentials, ()) = hyper::Request::new(()).into_parts();
        for value in parts.headers.get_all(AUTHORIZATION) {
            if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
                credentials.headers.append(AUTHORIZATION, value);
            }
        }
        if let Some(arrival) = parts.extensions.get::<Arrival>() {
            credentials.extensions.insert(arrival.clone());
        }
        Self(Box::new(credentials))
    }

    /// Decides once more about a method that only reads. Nothing is counted.
    ///
    /// # Errors
    /// Why it would be refused now.
    pub(crate) fn check(&self, context: &Context, method: &Method) -> Result<(), Refusal> {
        let caller = identify(context, &self.0)?;
        context.protocols.router.check(&caller, method, Incoming::default())
    }
}

/// Returns the caller of a request without a token.
pub(super) fn nobody(parts: &Parts) -> Caller {
    Caller::unknown(transport(parts))
}

/// Returns the way by which a request came in, as audit lines name it.
fn transport(parts: &Parts) -> &'static str {
    let is_of_owner = parts.extensions.get::<Arrival>().is_some_and(Arrival::is_of_owner);
    if is_of_owner { SOCKET } else { "http" }
}

/// Returns the token of `Authorization: Bearer TOKEN`, if there is such a header.
fn token(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let unknown = Refusal::Unauthenticated(Unauthenticated::Unknown);
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(unknown);
    }
    // A header of another scheme asks to be let in by it, and is refused.
    let token = bearer(value.as_bytes()).map_err(Refusal::Unauthenticated)?;
    token.map(Some).ok_or(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&'static str]) -> Result<Option<String>, Refusal> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_static(value));
        }
        token(&headers).map(|token| token.map(str::to_owned))
    }

    #[test]
    fn a_token_is_read_from_one_header_of_its_scheme() {
        assert_eq!(of(&[]), Ok(None));
        assert_eq!(of(&["Bearer abc"]), Ok(Some("abc".to_owned())));
        assert_eq!(of(&["bearer  abc"]), Ok(Some("abc".to_owned())));
        for wrong in [&["Basic abc"][..], &["Bearer"], &["abc"], &["Bearer a", "Bearer a"]] {
            assert!(of(wrong).is_err(), "{wrong:?}");
        }
    }
}
