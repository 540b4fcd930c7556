//! The methods: the one row that transports know, the table of the methods inside a message, and a file for each group of them.
//!
//! | file | methods |
//! |---|---|
//! | `store`, `retrieve`, `update`, `prune`, `memify` | those of memories |
//! | `context`, `ace` | contexts for agents; those for supervisors, and what is critical |
//! | `stages`, `compression` | those of stages and of tasks |
//! | `errors`, `patterns` | those of errors |
//! | `criticality` | `memory.update_criticality`, and the reasons for which a memory is critical |
//!
//! The others are parts that several methods have: `tasks` and `detection` move a task through its stages, `modelled` and
//! `understood` ask a server of models, `shown` writes states into answers. The decisions of a method are modules beside this
//! one: [`context`](crate::context) fits a text into a budget, [`methods::context`](self::context) reads the store for it.

pub(crate) mod ace;
pub(crate) mod compression;
pub(crate) mod context;
pub(crate) mod criticality;
pub(crate) mod detection;
pub(crate) mod errors;
pub(crate) mod memify;
pub(crate) mod modelled;
pub(crate) mod patterns;
pub(crate) mod prune;
pub(crate) mod retrieve;
pub(crate) mod shown;
pub(crate) mod stages;
pub(crate) mod store;
pub(crate) mod tasks;
pub(crate) mod understood;
pub(crate) mod update;

use std::time::Duration;

use omir_core::value::Map;
use omird_router::{About, Effect, Method, Payload, Protocol, Rate, Scope, embedded_schemas};

use crate::call::Call;
use crate::failure::Failure;
use crate::settings::Settings;
use crate::who::{ACE, AGENT, OPERATOR};

const NAME: &str = "compass";
/// Most bytes of a message: a content of 256 KiB may be six times as long as JSON.
const MOST: usize = 2 << 20;
/// Requests of an agent whose token states no rate.
const RATE: Rate = Rate { requests: 100, per: Duration::from_secs(1) };

/// Agents, and callers above one.
const ANY: Scope = Scope("compass:agent compass:ace compass:operator");
/// Callers that may do everything.
const OWNER: Scope = Scope("compass:operator");
/// Supervisors of agents.
const WATCHER: Scope = Scope("compass:ace compass:operator");

const fn row(name: &'static str, effect: Effect, scope: Scope, about: &'static About) -> Method {
    Method {
        protocol: NAME,
        name,
        effect,
        streams: false,
        payload: Payload::Message(MOST),
        scope,
        rates: [Some(RATE), None],
        about,
    }
}

/// A message. It changes something if a call inside does, so only the protocol can tell.
pub static JSONRPC: Method = row(
    "jsonrpc",
    Effect::ChangesUnlessDry,
    ANY,
    &About {
        summary: "Carries out one JSON-RPC 2.0 request or notification, or a batch of up to 32.",
        parameters: &[],
        payload: "CompassMessage",
        response: "CompassAnswer",
    },
);

/// The row of a request that is no call, or names no method.
pub(crate) static UNKNOWN: Method = row("?", Effect::Reads, ANY, About::NOTHING);

/// The protocol of `docs/compass.md`.
pub static COMPASS: Protocol =
    Protocol { name: NAME, scopes: &[AGENT, ACE, OPERATOR], methods: &[&JSONRPC] };

/// A method inside a message.
pub(crate) struct Entry {
    /// Its row: name, effect, rate.
    pub(crate) method: Method,
    /// The answer of a server of models that a call may wait for.
    pub(crate) waits: Waits,
    /// The setting that opens it.
    opened_by: OpenedBy,
    /// Its work: returns the members of the answer.
    pub(crate) handler: fn(&mut Call<'_>) -> Result<Map, Failure>,
}

/// The answer of a server of models that a call may wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    Nothing,
    /// A summary.
    Summary,
    /// The vector of a question that memories are ranked by.
    Question,
}

/// The setting that opens a method.
enum OpenedBy {
    /// None: it is always there.
    Always,
    /// `memify`: a call sweeps the memories of everybody.
    Memify,
}

macro_rules! entries {
    ($($name:literal, $effect:ident, $scope:ident, $waits:ident, $opened_by:ident, $handler:path;)+) => {
        /// The methods inside a message: name, effect, scope, what a call waits for, the setting that opens it, and its handler.
        pub(crate) static ENTRIES: &[Entry] = &[$(Entry {
            method: row($name, Effect::$effect, $scope, About::NOTHING),
            waits: Waits::$waits,
            opened_by: OpenedBy::$opened_by,
            handler: $handler,
        }),+];
    };
}

entries! {
    "memory.store", Changes, ANY, Nothing, Always, store::store;
    "memory.retrieve", Reads, ANY, Question, Always, retrieve::retrieve;
    "memory.get_context", Reads, ANY, Question, Always, context::get_context;
    "memory.update", Changes, ANY, Nothing, Always, update::update;
    "memory.prune", ChangesUnlessDry, ANY, Nothing, Always, prune::prune;
    "memory.get_stage_context", Reads, ANY, Question, Always, stages::get_stage_context;
    "memory.complete_stage", Changes, ANY, Summary, Always, stages::complete_stage;
    "memory.get_task_progress", ChangesUnlessDry, ANY, Nothing, Always, stages::get_task_progress;
    "memory.detect_stage_transition", ChangesUnlessDry, ANY, Nothing, Always, stages::detect_stage_transition;
    "memory.record_error", Changes, ANY, Nothing, Always, errors::record_error;
    "memory.detect_error_patterns", Changes, ANY, Nothing, Always, patterns::detect_error_patterns;
    "memory.get_error_history", Reads, ANY, Nothing, Always, errors::get_error_history;
    "memory.get_error_aware_context", Reads, ANY, Question, Always, errors::get_error_aware_context;
    "memory.compress_stage", Changes, ANY, Summary, Always, compression::compress_stage;
    "memory.compress_task", Changes, ANY, Summary, Always, compression::compress_task;
    "memory.get_compression_metrics", Reads, ANY, Nothing, Always, compression::get_compression_metrics;
    "memory.adjust_compression", Changes, ANY, Nothing, Always, compression::adjust_compression;
    "memory.get_strategic_context", Reads, WATCHER, Question, Always, ace::get_strategic_context;
    "memory.record_intervention_outcome", Changes, WATCHER, Nothing, Always, ace::record_intervention_outcome;
    "memory.get_critical_memories", Reads, WATCHER, Nothing, Always, ace::get_critical_memories;
    "memory.update_criticality", Changes, WATCHER, Nothing, Always, criticality::update_criticality;
    "memory.run_memify", Changes, OWNER, Nothing, Memify, memify::run_memify;
}

impl Entry {
    /// Returns true if it is a method under these settings.
    pub(crate) fn is_open(&self, settings: &Settings) -> bool {
        match self.opened_by {
            OpenedBy::Always => true,
            OpenedBy::Memify => settings.memify,
        }
    }
}

/// Returns the method of this name.
pub(crate) fn entry(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.method.name == name)
}

/// Returns the JSON Schemas of message and answer, which refer to each other at this place.
pub(crate) fn schemas(at: &str) -> Map {
    let text = include_str!("../schemas/messages.json");
    embedded_schemas(&text.replace("#/components/schemas/", at))
}

/// Returns the statuses, and the schema of each.
pub(crate) fn answers(_: &'static Method) -> &'static [(u16, &'static str)] {
    &[
        (200, "CompassAnswer"),
        (204, ""),
        (401, "CompassResponse"),
        (403, "CompassResponse"),
        (413, "CompassResponse"),
        (415, "CompassResponse"),
        (429, "CompassResponse"),
        (500, "CompassResponse"),
        (503, "CompassResponse"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_refused_for_each_reason() {
        omird_router::testing::each_method_is_decided(&COMPASS, &[AGENT, ACE, OPERATOR]);
    }

    #[test]
    fn each_method_stands_once() {
        for (at, one) in ENTRIES.iter().enumerate() {
            assert!(ENTRIES.iter().skip(at + 1).all(|other| other.method.name != one.method.name));
            assert!(entry(one.method.name).is_some());
        }
    }

    #[test]
    fn the_schemas_are_there() {
        let known = schemas("#/components/schemas/");
        let named = answers(&JSONRPC).iter().map(|(_, name)| *name).filter(|name| !name.is_empty());
        for name in named.chain([JSONRPC.about.payload, JSONRPC.about.response]) {
            assert!(known.contains_key(name), "{name}");
        }
    }
}
