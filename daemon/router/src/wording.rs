//! The error object of `docs/replies.md`, and refusals in words. A protocol with a form of its own takes the sentence.

use omir_core::value::{Map, Value};
use omird_engine::{Error, NotAdmitted};

use super::method::{Method, Scope};
use super::refusal::{Refusal, Remedy, Size, Unauthenticated};

/// Words the refusal of a request for `method`: it names the scope of the token that is missing.
pub fn worded_for(refusal: Refusal, method: &Method) -> Error {
    match refusal {
        Refusal::Unauthenticated(Unauthenticated::Missing) if method.scope != Scope::OPEN => {
            Error::new(refusal.code(), missing(method.scope))
        }
        refusal => worded(refusal),
    }
}

fn missing(scope: Scope) -> String {
    // One token is enough: the first of several that would do.
    let scope = scope.alternatives().next().unwrap_or(scope);
    format!("a token is needed here; `omir token add NAME --scope {scope}` makes one")
}

/// Words a refusal.
pub fn worded(refusal: Refusal) -> Error {
    let code = refusal.code();
    match refusal {
        Refusal::ReadOnly => {
            Error::new(code, "this daemon is configured read-only (access.read_only)")
        }
        Refusal::OnlyReads => Error::new(
            code,
            "whoever sent this asked to be held to reading: `omir mcp` does without --write",
        ),
        Refusal::Scope { remedy: Some(Remedy::Unlock), .. } => Error::new(
            code,
            "this port is read-only; unlock it with its token, or set access = \"write\"",
        ),
        Refusal::Scope { needed, .. } => Error::new(
            code,
            format!("this needs the scope `{needed}`, which the caller does not hold"),
        ),
        Refusal::Unauthenticated(why) => Error::new(code, unknown(why)),
        Refusal::TooLarge { bytes, most, size: Size::Payload(limit) } => {
            NotAdmitted::TooLarge { bytes, most, limit }.into()
        }
        Refusal::TooLarge { size: Size::Decoded, .. } => {
            Error::new(code, "decoded it takes more memory than a request may; send less at a time")
        }
        Refusal::TooLarge { bytes, most, size: Size::Message } => {
            Error::new(code, format!("{bytes} bytes are more than the {most} that are taken here"))
        }
        Refusal::ImportUnderWay => NotAdmitted::ImportUnderWay.into(),
        Refusal::TooOften { retry_after } => {
            // Rounded up: who waits less is refused again.
            let tenths = retry_after.as_millis().div_ceil(100).max(1);
            let (seconds, tenth) = (tenths / 10, tenths % 10);
            Error::new(code, format!("asked too often; try again in {seconds}.{tenth} s"))
        }
        Refusal::WrongToken => Error::new(code, "that is not the token of this port"),
        Refusal::NoToken => Error::new(
            code,
            "that is no token of this daemon, and none opens this port: its configuration has none",
        ),
        Refusal::Locked { retry_after } => {
            let left = retry_after.as_micros().div_ceil(1_000_000);
            Error::new(code, format!("locked after a wrong token: try again in {left} s"))
        }
    }
}

fn unknown(why: Unauthenticated) -> String {
    let message = match why {
        Unauthenticated::Missing => return missing(Scope::READ),
        Unauthenticated::Unknown => "no token of this daemon; `omir token list` names them",
        Unauthenticated::Expired => "this token has expired; ask for another one",
        Unauthenticated::ClockUntrusted => {
            "this token has an end, and the daemon's clock cannot be trusted now; try again once it is set"
        }
        Unauthenticated::Unsound(why) => {
            return format!("the key of this JWT is trusted here, but {why}");
        }
    };
    message.to_owned()
}

/// The error object: `docs/replies.md`, "Errors".
pub fn error_value(error: &Error) -> Value {
    let mut map = Map::new();
    map.insert("code", error.code.as_str());
    map.insert("message", error.message.as_str());
    map.insert("path", error.path.as_str());
    Value::Object(map)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_row_of_several_scopes_names_them_all_and_asks_for_one() {
        let either = Scope("p:actor p:judge");
        let refused = worded(Refusal::Scope { needed: either, remedy: None });
        assert!(refused.message.contains("the scope `p:actor or p:judge`"), "{refused}");
        assert!(missing(either).contains("--scope p:actor` makes one"), "{}", missing(either));
    }

    #[test]
    fn each_refusal_says_what_to_do() {
        let too_large = |size| Refusal::TooLarge { bytes: 9, most: 8, size };
        let needed = Scope::WRITE;
        for (refusal, expected) in [
            (Refusal::ReadOnly, "access.read_only"),
            (Refusal::OnlyReads, "without --write"),
            (Refusal::Scope { needed, remedy: None }, "the scope `omir:write`"),
            (Refusal::Scope { needed, remedy: Some(Remedy::Unlock) }, "unlock it with its token"),
            (too_large(Size::Payload("max_payload_bytes")), "limits.max_payload_bytes is 8"),
            (too_large(Size::Decoded), "send less at a time"),
            (too_large(Size::Message), "more than the 8 that"),
            (Refusal::ImportUnderWay, "another import is under way"),
            (Refusal::TooOften { retry_after: Duration::from_millis(2500) }, "again in 2.5 s"),
            (Refusal::WrongToken, "not the token"),
            (Refusal::NoToken, "its configuration has none"),
            (Refusal::Locked { retry_after: Duration::from_micros(1) }, "again in 1 s"),
        ] {
            let error = worded(refusal);
            assert!(error.message.contains(expected), "{error}");
            assert_eq!(error.code, refusal.code());
        }
    }
}
