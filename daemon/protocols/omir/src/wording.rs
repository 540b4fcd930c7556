//! The router's refusals in the words of this protocol: the error object of `docs/replies.md`.

use omird_engine::NotAdmitted;
use omird_engine::error::{Code, Error};
use omird_router::{Refusal, Size};

/// Words a refusal.
pub fn worded(refusal: Refusal) -> Error {
    let code = refusal.code();
    match refusal {
        Refusal::ReadOnly => {
            Error::new(code, "this daemon is configured read-only (access.read_only)")
        }
        Refusal::Scope { remedy: Some(remedy), .. } => Error::new(code, remedy),
        Refusal::Scope { needed, remedy: None } => Error::new(
            code,
            format!("this needs the scope `{needed}`, which the caller does not hold"),
        ),
        Refusal::TooLarge { bytes, most, size: Size::Payload(limit) } => {
            NotAdmitted::TooLarge { bytes, most, limit }.into()
        }
        Refusal::TooLarge { size: Size::Decoded, .. } => {
            Error::new(code, "decoded it takes more memory than a request may; send less at a time")
        }
        Refusal::ImportUnderWay => NotAdmitted::ImportUnderWay.into(),
        Refusal::TooOften { retry_after } => {
            let seconds = retry_after.as_secs_f64();
            Error::new(Code::Busy, format!("asked too often; try again in {seconds:.1} s"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use omird_router::Scope;

    #[test]
    fn each_refusal_says_what_to_do() {
        let too_large = |size| Refusal::TooLarge { bytes: 9, most: 8, size };
        let needed = Scope::WRITE;
        for (refusal, expected) in [
            (Refusal::ReadOnly, "access.read_only"),
            (Refusal::Scope { needed, remedy: None }, "the scope `write`"),
            (Refusal::Scope { needed, remedy: Some("unlock it") }, "unlock it"),
            (too_large(Size::Payload("max_payload_bytes")), "limits.max_payload_bytes is 8"),
            (too_large(Size::Decoded), "send less at a time"),
            (Refusal::ImportUnderWay, "another import is under way"),
            (Refusal::TooOften { retry_after: Duration::from_millis(2500) }, "again in 2.5 s"),
        ] {
            let error = worded(refusal);
            assert!(error.message.contains(expected), "{error}");
            assert_eq!(error.code, refusal.code());
        }
    }
}
