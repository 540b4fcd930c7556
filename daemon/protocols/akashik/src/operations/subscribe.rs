//! SUBSCRIBE: what an agent wants to be told of. Subscriptions are entries of the log, so they outlive a restart.

use omir_core::value::{Map, Value};

use crate::failure::{Failure, SUBSCRIPTION_NOT_FOUND};
use crate::log::{Delta, object};
use crate::operation_context::{OperationContext, OperationResult};
use crate::params::Params;
use crate::rights::Act;
use crate::types::Subscription;
use crate::words::{EventName, SubscribeAction};

/// Most subscriptions of an agent.
const MOST: usize = 64;
/// Longest gap, in milliseconds.
const LONGEST_GAP: u64 = 3_600_000;

pub(crate) fn subscribe(
    context: &mut OperationContext<'_>,
    mut params: Params<'_>,
) -> OperationResult {
    let action = params.word("action", SubscribeAction::WORDS, SubscribeAction::parse)?;
    let Some(action) = action else { return Err(params.fault("action", "is missing")) };
    let of = params.object("subscription")?;
    params.finish()?;
    let sender = context.sender()?;
    context.may(Act::Subscribe)?;
    let own = context.model.subscriptions.values().filter(|one| one.agent_id == sender.id);
    match action {
        SubscribeAction::List => {
            let own: Vec<Value> = own.map(shown).collect();
            Ok((200, object([("status", "ok".into()), ("subscriptions", Value::Array(own))])))
        }
        SubscribeAction::Unsubscribe => {
            let Some(mut of) = of else {
                return Err(Failure::payload("/subscription", "is missing"));
            };
            let id = of.needed_id("id")?;
            let is_own =
                context.model.subscriptions.get(id).is_some_and(|one| one.agent_id == sender.id);
            if !is_own {
                return Err(Failure::unknown(&SUBSCRIPTION_NOT_FOUND, "subscription", id));
            }
            context.deltas.push(Delta::Unsubscribed { id: id.to_owned() });
            context.description = format!("{} unsubscribes {id}", sender.id);
            Ok((200, object([("status", "ok".into()), ("subscription_id", id.into())])))
        }
        SubscribeAction::Subscribe => {
            let Some(mut of) = of else {
                return Err(Failure::payload("/subscription", "is missing"));
            };
            let events = of.words("events", EventName::WORDS, EventName::parse)?;
            if events.is_empty() {
                return Err(of.fault("events", "is missing or empty"));
            }
            if of.value("id").is_some() {
                return Err(of.fault("id", "is given by the field: leave it out"));
            }
            let subscription = Subscription {
                id: context.new_id("sub", 0),
                agent_id: sender.id.clone(),
                events: events.into_iter().collect(),
                min_relevance: of.share("min_relevance")?,
                debounce_ms: of.integer("debounce_ms", 0)?.map(|gap| gap.min(LONGEST_GAP)),
            };
            of.finish()?;
            if own.count() >= MOST {
                let message = format!("an agent has at most {MOST} subscriptions");
                return Err(Failure::payload("/subscription", message));
            }
            let answer = object([
                ("status", "ok".into()),
                ("subscription_id", subscription.id.as_str().into()),
                ("subscription", shown(&subscription)),
                ("events_url", "/akashik/v1/events".into()),
                ("socket_url", "/akashik/v1/socket".into()),
            ]);
            context.description = format!("{} subscribes {}", sender.id, subscription.id);
            context.deltas.push(Delta::Subscription(subscription));
            Ok((201, answer))
        }
    }
}

fn shown(one: &Subscription) -> Value {
    let mut map = Map::new();
    map.insert("id", one.id.as_str());
    map.insert(
        "events",
        one.events.iter().map(|event| Value::from(event.as_str())).collect::<Value>(),
    );
    map.insert("min_relevance", one.min_relevance);
    map.insert("debounce_ms", one.debounce_ms);
    Value::Object(map)
}
