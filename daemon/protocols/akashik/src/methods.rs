//! The tables: the rows that transports know, and those of the operations inside a message.

use std::time::Duration;

use omir_core::value::Map;
use omird_router::{
    About, Effect, Field, Method, Payload, Protocol, Rate, Scope, Shape, embedded_schemas,
};

use crate::words::Operation;

const NAME: &str = "akashik";
/// Most bytes of a message: a content of 64 KiB may be six times as long as JSON.
const MOST: usize = 1 << 20;
/// Requests of one token a second, where it states no rate.
const RATE: Rate = Rate { requests: 1000, per: Duration::from_secs(1) };

/// Agents of a field. The number of its token says what else it may.
pub const AGENT: Scope = Scope("akashik:agent");

const ID: Shape = Shape::Text(256);
const OPERATION: Field = Field::new(
    "operation",
    Shape::Text(32),
    "The operation in lower case, which the envelope must name too.",
);
const AGENT_ID: Field =
    Field::new("agent_id", ID, "The agent that looks; without it the first one of the token.");
const SESSION_ID: Field = Field::new("session_id", ID, "The session it is in.");

const fn row(name: &'static str, effect: Effect, about: &'static About) -> Method {
    Method {
        protocol: NAME,
        name,
        effect,
        streams: false,
        payload: Payload::Message(MOST),
        scope: AGENT,
        rates: [Some(RATE), None],
        about,
    }
}

const fn look(name: &'static str, about: &'static About) -> Method {
    Method { payload: Payload::None, ..row(name, Effect::Reads, about) }
}

/// A message. It changes something if its operation does, so only the protocol can tell.
pub static MESSAGE: Method = row(
    "message",
    Effect::ChangesUnlessDry,
    &About {
        summary: "Carries out the operation of one envelope.",
        parameters: &[OPERATION],
        payload: "AkashikEnvelope",
        response: "AkashikResponse",
    },
);

/// The field at a glance.
pub static STATUS: Method = look(
    "field/status",
    &About {
        summary: "Tells the level, the epoch and the counts of the field.",
        parameters: &[AGENT_ID, SESSION_ID],
        payload: "",
        response: "AkashikStatus",
    },
);

/// The agents that are registered.
pub static AGENTS: Method = look(
    "agents",
    &About {
        summary: "Lists the agents that are registered.",
        parameters: &[AGENT_ID, SESSION_ID],
        payload: "",
        response: "AkashikAgents",
    },
);

/// The conflicts that are not resolved.
pub static CONFLICTS: Method = look(
    "conflicts",
    &About {
        summary: "Lists the conflicts that are not resolved, as far as the agent sees them.",
        parameters: &[AGENT_ID, SESSION_ID],
        payload: "",
        response: "AkashikConflicts",
    },
);

/// One unit.
pub static UNIT: Method = look(
    "units",
    &About {
        summary: "Reads a memory unit.",
        parameters: &[Field::new("id", ID, "The id of the unit.").required(), AGENT_ID, SESSION_ID],
        payload: "",
        response: "AkashikUnit",
    },
);

/// Notifications, as long as the client listens. [`Akashik`](crate::Akashik) answers no request for it: a transport
/// opens a stream by its row.
pub static EVENTS: Method = Method {
    streams: true,
    ..look(
        "events",
        &About {
            summary: "Streams the notifications of an agent's subscriptions.",
            parameters: &[AGENT_ID],
            payload: "",
            response: "",
        },
    )
};

/// The protocol of `docs/akashik.md`.
pub static AKASHIK: Protocol = Protocol {
    name: NAME,
    scopes: &[AGENT],
    methods: &[&MESSAGE, &STATUS, &AGENTS, &CONFLICTS, &UNIT, &EVENTS],
};

macro_rules! operations {
    ($($operation:ident $row:ident $name:literal $effect:ident;)+) => {
        $(static $row: Method = row($name, Effect::$effect, About::NOTHING);)+

        /// Returns the row of an operation inside a message.
        pub(crate) const fn row_of(operation: Operation) -> &'static Method {
            match operation {
                $(Operation::$operation => &$row),+
            }
        }
    };
}

operations! {
    Register REGISTER "register" Changes;
    Deregister DEREGISTER "deregister" Changes;
    Record RECORD "record" Changes;
    Attune ATTUNE "attune" Reads;
    Detect DETECT "detect" ChangesUnlessDry;
    Merge MERGE "merge" Changes;
    Subscribe SUBSCRIBE "subscribe" ChangesUnlessDry;
    Replay REPLAY "replay" Reads;
    Compact COMPACT "compact" Changes;
    Coordinate COORDINATE "coordinate" ChangesUnlessDry;
    Handoff HANDOFF "handoff" ChangesUnlessDry;
    Session SESSION "session" ChangesUnlessDry;
}

/// The row of a message that is no envelope.
pub(crate) static UNKNOWN: Method = row("?", Effect::Reads, About::NOTHING);

/// Returns the JSON Schemas of messages and answers, which refer to each other at this place.
pub(crate) fn schemas(at: &str) -> Map {
    let text = include_str!("../schemas/messages.json");
    embedded_schemas(&text.replace("#/components/schemas/", at))
}

/// Returns the statuses, and the schema of each.
pub(crate) fn answers(method: &'static Method) -> &'static [(u16, &'static str)] {
    macro_rules! with {
        ($($first:expr),+) => {
            &[
                $($first,)+
                (400, "AkashikError"),
                (401, "AkashikError"),
                (403, "AkashikError"),
                (404, "AkashikError"),
                (409, "AkashikError"),
                (413, "AkashikError"),
                (415, "AkashikError"),
                (429, "AkashikError"),
                (500, "AkashikError"),
                (503, "AkashikError"),
                (507, "AkashikError"),
            ]
        };
    }
    match method.name {
        "field/status" => with!((200, "AkashikStatus")),
        "agents" => with!((200, "AkashikAgents")),
        "conflicts" => with!((200, "AkashikConflicts")),
        "units" => with!((200, "AkashikUnit")),
        "events" => with!((200, "")),
        _ => with!((200, "AkashikResponse"), (201, "AkashikResponse")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_method_is_refused_for_each_reason() {
        omird_router::testing::each_method_is_decided(&AKASHIK, &[AGENT]);
    }

    #[test]
    fn the_schemas_are_there() {
        let known = schemas("#/components/schemas/");
        for method in AKASHIK.methods {
            let named = answers(method).iter().map(|(_, name)| *name);
            let about = method.about;
            for name in named.chain([about.payload, about.response]).filter(|name| !name.is_empty())
            {
                assert!(known.contains_key(name), "{name}");
            }
        }
    }
}
