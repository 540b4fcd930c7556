//! The table of methods.

use omird_router::field::ANY_TEXT;
use omird_router::{About, Effect, Field, Method, Payload, Protocol, Scope, Shape};

const NAME: &str = "access";

const fn row(
    name: &'static str,
    effect: Effect,
    payload: Payload,
    about: &'static About,
) -> Method {
    Method {
        protocol: NAME,
        name,
        effect,
        streams: false,
        payload,
        scope: Scope::ADMIN,
        rates: [None, None],
        about,
    }
}

/// A name: `daemon/access/src/grant.rs`.
const NAMED: Shape = Shape::Form("^[A-Za-z0-9._-]{1,64}$");
const SCOPES: Shape = some(&Shape::Form("^[A-Za-z0-9._:-]{1,64}$"));
const AGENTS: Shape = some(&Shape::Form("^[^\\s,]{1,256}$"));
const AUTHORITY: Shape = Shape::Integer(0, u32::MAX as i64);
const RATE: Shape = Shape::Integer(1, u32::MAX as i64);
const TOKEN: Field =
    Field::new("name", NAMED, "The name of the token: of a person, a program or a robot.")
        .required();

/// One or more of a shape.
const fn some(of: &'static Shape) -> Shape {
    Shape::List(of, 1, usize::MAX)
}

/// The tokens are listed, without their texts.
pub static LIST: Method = row(
    "list",
    Effect::Reads,
    Payload::None,
    &About {
        summary: "Lists the tokens, without their texts.",
        parameters: &[],
        payload: "",
        response: "Tokens",
    },
);

/// A token is added, and shown this once.
pub static ADD: Method = row(
    "add",
    Effect::Administers,
    Payload::Parameters,
    &About {
        summary: "Adds a token, which the answer shows this once.",
        parameters: &[
            TOKEN,
            Field::new("scopes", SCOPES, "What it may do: scopes such as omir:read.").required(),
            Field::new(
                "tenant",
                NAMED,
                "The part of the memory that it is for; by default `default`.",
            ),
            Field::new(
                "agents",
                AGENTS,
                "The agents it speaks as, the first one where a protocol knows one.",
            ),
            Field::new("authority", AUTHORITY, "Its authority among agents (Akashik)."),
            Field::new("expires", ANY_TEXT, "A time from now such as 30d, or an RFC 3339 instant."),
            Field::new("rate", RATE, "Requests a second."),
            Field::new("perHour", RATE, "Requests an hour."),
        ],
        payload: "",
        response: "NewToken",
    },
);

/// A token is revoked.
pub static REVOKE: Method = row(
    "revoke",
    Effect::Administers,
    Payload::None,
    &About {
        summary: "Revokes a token, which is refused from then on.",
        parameters: &[TOKEN],
        payload: "",
        response: "RevokedToken",
    },
);

/// The protocol of `docs/access.md`, "Tokens over HTTP". It has no scopes of its own.
pub static ACCESS: Protocol =
    Protocol { name: NAME, scopes: &[], methods: &[&LIST, &ADD, &REVOKE] };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_method_is_refused_for_each_reason() {
        omird_router::testing::each_method_is_decided(&ACCESS, &[Scope::READ, Scope::ADMIN]);
    }
}
