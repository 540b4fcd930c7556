//! The caller of a request: whom its token speaks for, or the owner on the socket.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use hyper::http::request::Parts;
use omird_access::bearer;

use super::Context;
use super::answer::Refused;
use super::connection::Arrival;
use crate::protocols::Protocols;
use crate::router::{Caller, Refusal, Scope, Scopes, Unauthenticated};

/// Longest token that is looked at. A JWT with many scopes has some hundred bytes.
const LONGEST: usize = 4096;

/// The scopes that a request makes do with, separated by spaces or commas: of those that its caller holds.
const NARROWING: &str = "omir-scopes";

/// Who asks. An extractor: a handler that takes it is not called without.
pub(crate) struct Asker(pub(crate) Caller);

impl FromRequestParts<Arc<Context>> for Asker {
    type Rejection = Refused;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &Arc<Context>,
    ) -> Result<Self, Refused> {
        Ok(Self(identify(context, parts)?))
    }
}

/// Finds out who asks. Over HTTP that takes a token, whatever the other ways in take; a protocol that words refusals in its
/// own form calls this instead of taking an [`Asker`].
///
/// # Errors
/// `Unauthenticated`.
pub(crate) fn identify(context: &Context, parts: &Parts) -> Result<Caller, Refusal> {
    let access = &context.protocols.access;
    let is_owner = parts.extensions.get::<Arrival>().is_some_and(Arrival::is_of_owner);
    let transport = if is_owner { "socket" } else { "http" };
    let caller = match token(&parts.headers)? {
        Some(token) => access.identify(transport, token)?,
        None if is_owner => access.owner(transport),
        None => return Err(Refusal::Unauthenticated(Unauthenticated::Missing)),
    };
    Ok(narrowed(caller, &parts.headers))
}

/// Takes from the caller every scope that [`NARROWING`] does not list, if it is there. So a program may hand what it may do
/// on to another, such as a language model, and keep the rest to itself. It never gives a scope.
fn narrowed(caller: Caller, headers: &HeaderMap) -> Caller {
    if !headers.contains_key(NARROWING) {
        return caller;
    }
    let listed: Vec<&str> = headers
        .get_all(NARROWING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split([' ', ',']))
        .filter(|word| !word.is_empty())
        .collect();
    let held = match &caller.scopes {
        Scopes::All => Protocols::SCOPES,
        Scopes::Only(held) => held,
    };
    let kept: Vec<Scope> = held.iter().copied().filter(|one| listed.contains(&one.0)).collect();
    Caller { scopes: Scopes::only(&kept), ..caller }
}

/// Returns the token of `Authorization: Bearer TOKEN`, if there is such a header.
fn token(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let unknown = Refusal::Unauthenticated(Unauthenticated::Unknown);
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() || value.len() > LONGEST {
        return Err(unknown);
    }
    let text = value.to_str().map_err(|_| unknown)?;
    bearer(text).map(Some).ok_or(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn of(values: &[&'static str]) -> Result<Option<String>, Refusal> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_static(value));
        }
        token(&headers).map(|token| token.map(str::to_owned))
    }

    #[test]
    fn scopes_are_narrowed_and_never_widened() {
        let narrow = |scopes: Scopes, values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(NARROWING, HeaderValue::from_static(value));
            }
            let caller = Caller { scopes, ..Caller::trusted("socket", "socket") };
            narrowed(caller, &headers).scopes
        };
        let (read, write) = (Scope::READ, Scope::WRITE);
        let both = || Scopes::only(&[read, write]);
        assert_eq!(narrow(both(), &[]), both());
        assert_eq!(narrow(both(), &["omir:read"]), Scopes::only(&[read]));
        assert_eq!(narrow(both(), &["omir:write, omir:read"]), both());
        assert_eq!(narrow(both(), &["omir:read", "omir:write"]), both());
        assert_eq!(narrow(both(), &[""]), Scopes::only(&[]));
        assert_eq!(narrow(both(), &["*"]), Scopes::only(&[]));
        let (wanted, reader) = ("omir:write omir:admin omir:read", Scopes::only(&[read]));
        assert_eq!(narrow(reader.clone(), &[wanted]), reader);
        assert_eq!(narrow(Scopes::All, &["omir:write"]), Scopes::only(&[write]));
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
