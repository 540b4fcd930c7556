//! The protocol before a transport: each method of the table, and its answer.

use std::sync::Arc;

use omird_engine::Engine;
use omird_router::{Admitted, Count, Denied, Description, Exchange, Message, Reply, Response};

use crate::methods::{self, EXPERIENCE};
use crate::settings::ExperienceSettings;
use crate::shared::Shared;
use crate::{answers, failure, fetching, hinting, parameters, recording};

/// The protocol over one engine. Cloning gives another handle on the same.
#[derive(Clone)]
pub struct Experiences(pub(crate) Arc<Shared>);

impl Experiences {
    /// Starts the protocol. A thread counts the experiences of the store; until it is done hints go by what it has counted so
    /// far. `key` is secret, and the same at each start: pseudonyms of people are made with it.
    pub fn start(engine: Engine, settings: ExperienceSettings, key: [u8; 32]) -> Self {
        Self(Shared::start(engine, settings, key))
    }
}

impl Exchange for Experiences {
    fn description(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn answer(&self, admitted: Admitted, message: Message, reply: Reply) {
        let (shared, method) = (&self.0, admitted.method());
        let fetched = match method.name {
            "record" => return recording::record(shared, admitted, message, reply),
            "hints" => return hinting::hints(shared, admitted, &message, reply),
            "experience" => {
                let tenant = parameters::tenant(admitted.caller());
                fetching::experience(shared, &tenant, &message)
            }
            "health" => Ok(fetching::health(shared)),
            _ => fetching::schema(&message),
        };
        let answer = fetched.as_ref().map_or_else(failure::plain, Response::clone);
        let (rate, id) = (admitted.usage(), message.request_id.as_deref());
        admitted.finish(&fetched);
        reply(answers::with_headers(answer, method, id, rate, shared.engine.now().0));
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
        let answer = failure::denied(denied);
        let now = self.0.engine.now().0;
        // Answers to what has a body always bear a name. One that the client did not state is made up.
        let is_named = matches!(denied.method.name, "record" | "hints");
        let made_up = || is_named.then(|| self.0.engine.new_id());
        let id = denied.request_id.clone().or_else(made_up);
        let id = id.as_deref();
        answers::with_headers(answer, denied.method, id, denied.rate, now)
    }
}

/// The facts about the protocol that transports and documents know.
pub static DESCRIPTION: Description = Description {
    protocol: &EXPERIENCE,
    about: "Experience and hints: what tasks used and how they ended, and what is worth using again.",
    schemas: methods::schemas,
    answers: methods::answers,
};
