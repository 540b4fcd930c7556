//! Answers by status.

use omir_core::operation::Operation;
use omir_core::value::{Map, Value};

use super::super::endpoints::Serves;
use super::schemas::{self, in_both, object, reference, schema_of};
use super::statuses::{self, Status};
use crate::router::About;

/// Returns the answers of an endpoint by status.
pub(super) fn of(serves: Serves, has_body: bool) -> Map {
    let mut map = Map::new();
    for (status, answer) in answers(serves) {
        map.insert(status, answer);
    }
    for status in statuses::refusals(serves, has_body) {
        let Status { number, name, .. } = status;
        map.insert(number.to_string(), response(name));
    }
    map
}

/// Refers to a response by its name in the document.
pub(super) fn response(name: &str) -> Map {
    object([("$ref", format!("#/components/responses/{name}").into())])
}

/// What is answered where nothing is refused.
fn answers(serves: Serves) -> Vec<(&'static str, Map)> {
    let about = serves.row().map_or(About::NOTHING, |row| row.about);
    let told = |text: &str| Answered::new(text).content(in_both(reference(about.response)));
    let text = |media: &str, about: &str| {
        Answered::new(about).content(object([(
            media,
            object([("schema", object([("type", "string".into())]).into())]).into(),
        )]))
    };
    let health = |about: &str| Answered::new(about).content(schemas::health());
    let etag = "The version of the resource, in quotes.";
    match serves {
        Serves::Operation(Operation::Backup) => {
            let bytes = object([("type", "string".into()), ("format", "binary".into())]);
            let mut content = in_both(reference(about.response));
            content.insert("application/octet-stream", schema_of(bytes));
            vec![("200", Answered::new("The list, or bytes of a segment.").content(content).into())]
        }
        Serves::Operation(Operation::Export) => {
            let left_out =
                "Names what the card did not give back, as JSON; missing if all is there.";
            vec![("200", told("The Bundle.").header("Omir-Left-Out", left_out).into())]
        }
        Serves::Operation(_) | Serves::Clock | Serves::Tokens | Serves::RevokeToken => {
            vec![("200", told("Done.").into())]
        }
        Serves::AddToken => {
            let place = "The list of the tokens.";
            vec![("201", told("Added.").header("Location", place).into())]
        }
        Serves::Read => vec![
            ("200", told("The resource.").header("ETag", etag).into()),
            (
                "304",
                Answered::new("The version is the one that is known.").header("ETag", etag).into(),
            ),
        ],
        Serves::Store => vec![
            ("200", told("Updated, or the same already.").header("ETag", etag).into()),
            ("201", told("Stored for the first time.").header("ETag", etag).into()),
        ],
        Serves::Forget => vec![("200", told("Forgotten, if it was there.").into())],
        Serves::Events => {
            let about = "Server-sent events: the name of an event is its kind, its data an `Event` as JSON.";
            vec![("200", text("text/event-stream", about).into())]
        }
        Serves::Notifications => {
            let about = "Server-sent events: the name of an event, the epoch as its id, a notification as JSON.";
            vec![("200", text("text/event-stream", about).into())]
        }
        Serves::NotificationSocket => {
            let about = "The connection is a WebSocket from here on.";
            vec![("101", Answered::new(about).into())]
        }
        Serves::Exchange(_) => Vec::new(),
        Serves::Live => vec![("200", health("It lives.").into())],
        Serves::Ready => vec![
            ("200", health("It is ready.").into()),
            ("503", health("It is not, for these reasons.").into()),
        ],
        Serves::Metrics => {
            let media = "application/openmetrics-text";
            vec![("200", text(media, "OpenMetrics text, version 1.0.0.").into())]
        }
        Serves::Document => {
            let content = schemas::any_json();
            vec![("200", Answered::new("This document.").content(content).into())]
        }
    }
}

/// Returns all refusals by name.
pub(super) fn refusals() -> Map {
    let one = |status: &Status| {
        let mut answered = Answered::new(status.about).content(in_both(reference("Error")));
        if let Some((name, about)) = status.header {
            answered = answered.header(name, about);
        }
        (status.name, Map::from(answered))
    };
    statuses::ALL.iter().map(one).collect()
}

/// One answer in the document.
pub(super) struct Answered(Map);

impl Answered {
    pub(super) fn new(about: &str) -> Self {
        Self(object([("description", about.into())]))
    }

    pub(super) fn content(mut self, content: Map) -> Self {
        self.0.insert("content", content);
        self
    }

    fn header(mut self, name: &str, about: &str) -> Self {
        let schema = object([("type", "string".into())]);
        let header = object([("description", about.into()), ("schema", schema.into())]);
        let headers: Value = object([(name, header.into())]).into();
        self.0.insert("headers", headers);
        self
    }
}

impl From<Answered> for Map {
    fn from(answered: Answered) -> Self {
        answered.0
    }
}
