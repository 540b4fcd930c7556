//! The table of methods.

use omir_core::operation::Operation;
use omird_router::{About, Effect, Method, Payload, Protocol, Scope};

use crate::about;

const NAME: &str = "omir";

const fn reads(name: &'static str, payload: Payload, about: &'static About) -> Method {
    let (effect, scope) = (Effect::Reads, Scope::READ);
    Method {
        protocol: NAME,
        name,
        effect,
        streams: false,
        payload,
        scope,
        rates: [None, None],
        about,
    }
}

const fn streams(name: &'static str, payload: Payload, about: &'static About) -> Method {
    Method { streams: true, ..reads(name, payload, about) }
}

const fn changes(name: &'static str, payload: Payload, about: &'static About) -> Method {
    Method { effect: Effect::Changes, scope: Scope::WRITE, ..reads(name, payload, about) }
}

/// Open to those who have not said who they are.
const fn open(method: Method) -> Method {
    Method { scope: Scope::OPEN, ..method }
}

const fn administers(name: &'static str, payload: Payload, about: &'static About) -> Method {
    Method { scope: Scope::ADMIN, ..changes(name, payload, about) }
}

// The operations of docs/keys.md.
pub(super) static REMEMBER: Method =
    changes(Operation::Remember.as_str(), Payload::Resources, &about::REMEMBER);
/// `recall`.
pub static RECALL: Method = reads(Operation::Recall.as_str(), Payload::Parameters, &about::RECALL);
pub(super) static FORGET: Method =
    changes(Operation::Forget.as_str(), Payload::Parameters, &about::FORGET);
pub(super) static ANCHOR: Method =
    changes(Operation::Anchor.as_str(), Payload::Parameters, &about::ANCHOR);
pub(super) static FEEDBACK: Method =
    changes(Operation::Feedback.as_str(), Payload::Parameters, &about::FEEDBACK);
pub(super) static EXPORT: Method =
    reads(Operation::Export.as_str(), Payload::Parameters, &about::EXPORT);
pub(super) static COMPACT: Method =
    administers(Operation::Compact.as_str(), Payload::Parameters, &about::COMPACT);
pub(super) static SWEEP: Method = Method {
    effect: Effect::ChangesUnlessDry,
    ..administers(Operation::Sweep.as_str(), Payload::Parameters, &about::SWEEP)
};
pub(super) static EXPLAIN: Method =
    reads(Operation::Explain.as_str(), Payload::Parameters, &about::EXPLAIN);
pub(super) static REBASE: Method =
    changes(Operation::Rebase.as_str(), Payload::Parameters, &about::REBASE);
/// `status`.
pub static STATUS: Method = reads(Operation::Status.as_str(), Payload::Parameters, &about::STATUS);
pub(super) static BACKUP: Method = Method {
    effect: Effect::Maintains,
    ..administers(Operation::Backup.as_str(), Payload::None, &about::BACKUP)
};
pub(super) static PROVE: Method =
    reads(Operation::Prove.as_str(), Payload::Parameters, &about::PROVE);

// Memories under their names: the memory keys of docs/keys.md, and `get` of a console.

/// The resources that a name, or a pattern of names, means.
pub static GET: Method = streams("get", Payload::None, &about::GET);
/// A resource under its name.
pub static PUT: Method = changes("put", Payload::Resources, &about::PUT);
/// The resources that a name, or a pattern of names, means are forgotten.
pub static DELETE: Method = changes("delete", Payload::None, &about::DELETE);

/// Events from now on.
pub static EVENTS: Method = streams("events", Payload::None, &about::EVENTS);
/// An export, one resource after the other.
pub static DOCUMENT: Method = streams("document", Payload::Parameters, &about::DOCUMENT);

/// The time of a simulation is set.
pub static CLOCK: Method = Method {
    effect: Effect::Maintains,
    ..administers("clock", Payload::Parameters, &about::CLOCK)
};

// The requests of docs/serial-protocol.md, section 3.
pub(super) static INFO: Method = open(reads("info", Payload::None, About::NOTHING));
pub(super) static UNLOCK: Method = open(reads("unlock", Payload::Parameters, About::NOTHING));
pub(super) static CANCEL: Method = open(reads("cancel", Payload::Parameters, About::NOTHING));
pub(super) static PULL: Method = streams("pull", Payload::Parameters, About::NOTHING);
/// `push`.
pub static PUSH: Method = changes("push", Payload::Resources, About::NOTHING);
/// A message that names none of them.
pub static UNKNOWN: Method = reads("?", Payload::Parameters, About::NOTHING);

/// The protocol of `docs/keys.md`, `docs/replies.md` and `docs/serial-protocol.md`.
pub static OMIR: Protocol = Protocol {
    name: NAME,
    scopes: &[Scope::READ, Scope::WRITE, Scope::ADMIN],
    methods: &[
        &REMEMBER, &RECALL, &FORGET, &ANCHOR, &FEEDBACK, &EXPORT, &COMPACT, &SWEEP, &EXPLAIN,
        &REBASE, &STATUS, &BACKUP, &PROVE, &GET, &PUT, &DELETE, &EVENTS, &DOCUMENT, &CLOCK, &INFO,
        &UNLOCK, &CANCEL, &PULL, &PUSH, &UNKNOWN,
    ],
};

/// Returns the row of an operation.
pub fn method(operation: Operation) -> &'static Method {
    match operation {
        Operation::Remember => &REMEMBER,
        Operation::Recall => &RECALL,
        Operation::Forget => &FORGET,
        Operation::Anchor => &ANCHOR,
        Operation::Feedback => &FEEDBACK,
        Operation::Export => &EXPORT,
        Operation::Compact => &COMPACT,
        Operation::Sweep => &SWEEP,
        Operation::Explain => &EXPLAIN,
        Operation::Rebase => &REBASE,
        Operation::Status => &STATUS,
        Operation::Backup => &BACKUP,
        Operation::Prove => &PROVE,
    }
}

/// Returns the operation of a row, if the row is of one.
pub(super) fn operation(row: &Method) -> Option<Operation> {
    Operation::ALL.into_iter().find(|&operation| method(operation) == row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_method_is_refused_for_each_reason() {
        omird_router::testing::each_method_is_decided(&OMIR, OMIR.scopes);
    }

    #[test]
    fn each_operation_has_its_row() {
        for operation in Operation::ALL {
            let row = OMIR.method(operation.as_str()).unwrap();
            assert!(std::ptr::eq(row, method(operation)));
            assert_eq!(super::operation(row), Some(operation));
        }
        assert_eq!(super::operation(&GET), None);
    }

    /// The list in docs/keys.md, "Requests".
    #[test]
    fn what_changes_something_is_named_exactly() {
        let exact = OMIR.methods.iter().filter(|method| method.effect.names_exactly());
        let exact: Vec<&str> = exact.map(|method| method.name).collect();
        let expected = [
            "remember", "forget", "anchor", "feedback", "compact", "sweep", "rebase", "backup",
            "put", "delete", "clock", "push",
        ];
        assert_eq!(exact, expected);
    }
}
