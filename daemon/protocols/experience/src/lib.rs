//! Experience and hints: an agent records what a task used and how it ended, and asks what is worth using before the next one.
//! `docs/experience.md`.
//!
//! An experience is a MemoryRecord that fades, is exported and is forgotten like any other. What it used are Entities. So hints
//! are a recall, and nothing is stored but what was reported.

#![warn(unreachable_pub)]

mod answers;
mod cache;
mod candidates;
mod check;
mod experience;
mod fetching;
mod health;
mod hinting;
mod ids;
mod ingest;
mod methods;
mod parameters;
mod patterns;
mod privacy;
mod ranking;
mod recording;
mod redact;
mod relevance;
mod resources;
mod schema;
mod service;
mod settings;
mod shapes;
mod statistics;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use omir_core::value::Map;
use omird_engine::{Engine, Error};
use omird_router::{
    Admitted, Count, Denial, Denied, Description, ERROR, Exchange, Message, Method, Refusal, Reply,
    Response, worded_for,
};

pub use self::methods::{EXPERIENCE, HEALTH, HINTS, PROTOCOL, READ, RECORD, SCHEMA, WRITE};
use self::service::Service;
pub use self::settings::ExperienceSettings;

/// The protocol over one engine. Cloning gives another handle on the same.
#[derive(Clone)]
pub struct Experiences(Arc<Service>);

/// The facts about the protocol that transports and documents know.
pub static DESCRIPTION: Description = Description {
    protocol: &PROTOCOL,
    about: "Experience and hints: what tasks used and how they ended, and what is worth using again.",
    schemas,
    answers,
};

fn schemas(_: &str) -> Map {
    schema::components()
}

fn answers(method: &'static Method) -> &'static [(u16, &'static str)] {
    const RECORDED: &str = "ExperienceResponse";
    const HINTED: &str = "HintsResponse";
    match method.name {
        "record" => &[
            (200, RECORDED),
            (400, RECORDED),
            (401, ERROR),
            (403, ERROR),
            (409, RECORDED),
            (413, ERROR),
            (415, ERROR),
            (429, ERROR),
            (500, RECORDED),
            (503, ERROR),
            (507, RECORDED),
        ],
        "hints" => &[
            (200, HINTED),
            (400, HINTED),
            (401, ERROR),
            (403, ERROR),
            (404, HINTED),
            (413, ERROR),
            (415, ERROR),
            (429, ERROR),
            (500, HINTED),
            (503, ERROR),
        ],
        "experience" => &[
            (200, "Experience"),
            (400, ERROR),
            (401, ERROR),
            (403, ERROR),
            (404, ERROR),
            (413, ERROR),
            (429, ERROR),
            (500, ERROR),
            (503, ERROR),
        ],
        "health" => {
            &[(200, "ExperienceHealth"), (400, ERROR), (413, ERROR), (503, "ExperienceHealth")]
        }
        _ => &[(200, ""), (400, ERROR), (404, ERROR), (413, ERROR), (503, ERROR)],
    }
}

impl Experiences {
    /// Starts the protocol. A thread counts the experiences of the store; until it is done hints go by what it has counted so
    /// far. `key` is secret, and the same at each start: pseudonyms of people are made with it.
    pub fn start(engine: Engine, settings: ExperienceSettings, key: [u8; 32]) -> Self {
        Self(Service::start(engine, settings, key))
    }

    /// Words an error of a GET.
    fn failed(error: &Error) -> Response {
        answers::plain(answers::status(error.code), error)
    }
}

impl Exchange for Experiences {
    fn description(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn answer(&self, admitted: Admitted, message: Message, reply: Reply) {
        let (service, method) = (&self.0, admitted.method());
        let fetched = match method.name {
            "record" => return recording::record(service, admitted, message, reply),
            "hints" => return hinting::hints(service, admitted, &message, reply),
            "experience" => {
                let tenant = parameters::tenant(admitted.caller());
                fetching::experience(service, &tenant, &message)
            }
            "health" => Ok(fetching::health(service)),
            _ => fetching::schema(&message),
        };
        let answer = fetched.as_ref().map_or_else(Self::failed, Response::clone);
        let (rate, id) = (admitted.usage(), message.request_id.as_deref());
        admitted.finish(&fetched);
        reply(answers::with_headers(answer, method, id, rate, service.engine.now().0));
    }

    fn counts(&self) -> Vec<Count> {
        let relevance = self.0.relevance();
        let count = |name, help, count| Count { name, help, count };
        vec![
            count(
                "experience_hints_given",
                "Hints that were given, each once a day",
                relevance.given,
            ),
            count(
                "experience_hints_taken",
                "Hints whose thing a later experience used with success within a day",
                relevance.taken,
            ),
        ]
    }

    fn refuse(&self, denied: &Denied) -> Response {
        let (status, error, retry_after) = match &denied.why {
            Denial::Refusal(refusal) => {
                let retry_after = match refusal {
                    Refusal::TooOften { retry_after } => Some(*retry_after),
                    _ => None,
                };
                let error = worded_for(*refusal, denied.method);
                (answers::status(refusal.code()), error, retry_after)
            }
            Denial::Transport { status, error } => (*status, error.clone(), None),
        };
        let mut answer = answers::denied(denied.method, status, &error);
        answer.retry_after = retry_after.or(answer.retry_after);
        let now = self.0.engine.now().0;
        // Answers to what has a body always bear a name. One that nobody stated is made up.
        let is_named = matches!(denied.method.name, "record" | "hints");
        let made_up = || is_named.then(|| self.0.engine.new_id());
        let id = denied.request_id.clone().or_else(made_up);
        let id = id.as_deref();
        answers::with_headers(answer, denied.method, id, denied.rate, now)
    }
}
