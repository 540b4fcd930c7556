//! Refusals by their status: which of them an endpoint may give, and what is said of each in the document.

use omir_core::operation::Operation;

use super::super::endpoints::Serves;
use crate::router::Effect;

/// A refusal by its status.
pub(super) struct Status {
    /// The status.
    pub(super) number: u16,
    /// The name in the document.
    pub(super) name: &'static str,
    /// The reason, in words.
    pub(super) about: &'static str,
    /// A header that comes with it, and its meaning.
    pub(super) header: Option<(&'static str, &'static str)>,
}

const RETRY_AFTER: Option<(&str, &str)> =
    Some(("Retry-After", "Seconds after which asking again may help."));

const fn status(number: u16, name: &'static str, about: &'static str) -> Status {
    Status { number, name, about, header: None }
}

/// All refusals: docs/http.md, "Errors".
pub(super) const ALL: [Status; 15] = [
    status(
        400,
        "BadRequest",
        "INVALID_RESOURCE or INVALID_QUERY: something in the request is wrong.",
    ),
    Status {
        header: Some(("WWW-Authenticate", "`Bearer`.")),
        ..status(401, "Unauthenticated", "UNAUTHENTICATED: a token is missing, unknown or expired.")
    },
    status(403, "Forbidden", "UNAUTHORIZED: the token, or the configuration, does not allow it."),
    status(404, "NotFound", "NOT_FOUND: there is no such resource."),
    status(408, "TooSlow", "The body comes too slowly."),
    status(409, "Conflict", "CONFLICT: the resource changed since it was seen."),
    status(412, "PreconditionFailed", "CONFLICT: If-Match or If-None-Match does not hold."),
    status(413, "TooLarge", "TOO_LARGE: a bound is exceeded, which the message names."),
    status(414, "UriTooLong", "TOO_LARGE: put the parameters into the body."),
    status(415, "UnsupportedMediaType", "The body is neither JSON nor CBOR by its Content-Type."),
    status(421, "Misdirected", "UNAUTHORIZED: the host is not this daemon."),
    Status {
        header: RETRY_AFTER,
        ..status(429, "RateLimited", "RATE_LIMITED: the token is used more often than it may be.")
    },
    status(500, "Internal", "INTERNAL: the disk or the daemon failed."),
    Status { header: RETRY_AFTER, ..status(503, "Busy", "BUSY: too much is under way.") },
    status(507, "StorageFull", "STORAGE_FULL: forget something, or allow more."),
];

/// Returns the refusals that an endpoint may give.
pub(super) fn refusals(serves: Serves, has_body: bool) -> impl Iterator<Item = &'static Status> {
    ALL.iter().filter(move |status| may_give(serves, has_body, status.number))
}

fn may_give(serves: Serves, has_body: bool, status: u16) -> bool {
    use Operation::{Anchor, Backup, Explain, Feedback, Prove, Rebase, Remember};
    let row = serves.row();
    let changes = row.is_some_and(|row| row.effect != Effect::Reads);
    let is_named = matches!(serves, Serves::Read | Serves::Store | Serves::Forget);
    match status {
        400 | 403 | 414 | 421 => true,
        401 => !serves.is_open(),
        // Of a name in the path, nothing at all may be there, or nothing by that name.
        404 => {
            let of_operation = matches!(
                serves,
                Serves::Operation(Anchor | Backup | Explain | Feedback | Prove | Rebase)
            );
            is_named || of_operation || serves == Serves::RevokeToken
        }
        409 => matches!(
            serves,
            Serves::Store | Serves::AddToken | Serves::Operation(Prove | Remember | Rebase)
        ),
        412 => is_named,
        408 | 415 => has_body,
        // Parameters may be too many without a body as well.
        413 | 429 | 500 | 503 => !serves.is_open(),
        507 => changes && serves != Serves::Clock,
        _ => false,
    }
}
