//! REPLAY: what happened to something, told by the log and by nothing else.

use std::collections::{BTreeMap, BTreeSet};

use omir_core::value::{Map, Value};

use crate::failure::{
    CONFLICT_NOT_FOUND, Failure, REPLAY_TOO_LARGE, SESSION_NOT_FOUND, TASK_NOT_FOUND,
    UNIT_NOT_FOUND,
};
use crate::log::{Delta, Entry, object};
use crate::operation_context::{OperationContext, OperationResult};
use crate::params::Params;
use crate::rights::Act;
use crate::types::Unit;
use crate::words::{Depth, MemoryType, Target, UnitStatus};

/// Most events of an answer.
const MOST_EVENTS: usize = 1000;
/// Most things that a chain of causes is followed through.
const MOST_LINKS: usize = 500;

type Thing = (&'static str, String);

pub(crate) fn replay(
    context: &mut OperationContext<'_>,
    params: &mut Params<'_>,
) -> OperationResult {
    let of = params.word("target_type", Target::WORDS, Target::parse)?;
    let Some(of) = of else { return Err(params.fault("target_type", "is missing")) };
    let id = params.needed_id("target_id")?;
    let depth = params.word("depth", Depth::WORDS, Depth::parse)?;
    let Some(depth) = depth else { return Err(params.fault("depth", "is missing")) };
    context.sender()?;
    context.may(Act::Replay)?;
    context.check_session(false)?;
    let thing = find(context, of, id)?;
    let mut things = BTreeSet::from([thing.clone()]);
    match of {
        _ if depth == Depth::FullTrace => follow(context, &thing, &mut things)?,
        // The replay of a session or a task covers everything linked to it, such as units.
        Target::Session | Target::Task => things.extend(seen(context, linked(context, &thing))),
        _ => {}
    }
    let mut epochs = BTreeSet::new();
    for thing in &things {
        epochs.extend(context.model.history.get(thing).into_iter().flatten().copied());
    }
    if depth != Depth::Summary && epochs.len() > MOST_EVENTS {
        let message =
            format!("{} entries are more than the {MOST_EVENTS} of an answer", epochs.len());
        return Err(Failure::new(&REPLAY_TOO_LARGE, message));
    }
    let (mut timeline, mut agents, mut total) = (Vec::new(), BTreeSet::new(), 0);
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for epoch in epochs {
        let Some(entry) = context.contents.entry(epoch)? else {
            return Err(Failure::internal(format!("entry {epoch} of the log cannot be read")));
        };
        for delta in &entry.deltas {
            let is_about =
                delta.about().iter().any(|(kind, id)| things.contains(&(*kind, (*id).to_owned())));
            let Some((kind, event)) = event_of(context, &entry, delta).filter(|_| is_about) else {
                continue;
            };
            total += 1;
            agents.insert(entry.agent_id.clone());
            *kinds.entry(kind).or_default() += 1;
            if depth != Depth::Summary {
                timeline.push(event);
            }
        }
    }
    if timeline.len() > MOST_EVENTS {
        let message =
            format!("{} events are more than the {MOST_EVENTS} of an answer", timeline.len());
        return Err(Failure::new(&REPLAY_TOO_LARGE, message));
    }
    let told: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let who: Vec<&str> = agents.iter().map(String::as_str).collect();
    let summary = format!(
        "{} {id}: {total} events by {}: {}",
        of.as_str(),
        if who.is_empty() { "nobody".to_owned() } else { who.join(", ") },
        told.join(", ")
    );
    let answer = object([
        ("status", "ok".into()),
        ("timeline", Value::Array(timeline)),
        ("summary", summary.into()),
        ("agents_involved", who.into_iter().map(Value::from).collect()),
        ("total_events", total.into()),
    ]);
    Ok((200, answer))
}

/// Returns the thing that is meant, if the sender sees it, or sees what is left of it.
fn find(context: &OperationContext<'_>, of: Target, id: &str) -> Result<Thing, Failure> {
    let viewer = context.viewer();
    let model = context.model;
    let known = |kind: &'static str| model.history.contains_key(&(kind, id.to_owned()));
    match of {
        Target::MemoryUnit | Target::Decision => {
            let unknown = || Failure::unknown(&UNIT_NOT_FOUND, of.as_str(), id);
            match model.units.get(id) {
                Some(kept) if model.sees(&viewer, kept) => {
                    if of == Target::Decision && kept.unit.of != MemoryType::Decision {
                        return Err(unknown());
                    }
                }
                // A tombstone says what was there and no more; whose it was is not known any more.
                None if known("unit") && of == Target::MemoryUnit => {}
                _ => return Err(unknown()),
            }
            Ok(("unit", id.to_owned()))
        }
        Target::Conflict => {
            let found = model.conflicts.get(id).filter(|one| model.sees_conflict(&viewer, one));
            found
                .map(|_| ("conflict", id.to_owned()))
                .ok_or_else(|| Failure::unknown(&CONFLICT_NOT_FOUND, "conflict", id))
        }
        // Units may name a task or session that was never created. Of one that was created a name in a unit tells
        // nothing.
        Target::Task => {
            let is_found = match model.tasks.get(id) {
                Some(task) => model.sees_session(&viewer, task.session_id.as_deref()),
                None => names(context, |unit| unit.intent.task_id.as_deref() == Some(id)),
            };
            let thing = is_found.then(|| ("task", id.to_owned()));
            thing.ok_or_else(|| Failure::unknown(&TASK_NOT_FOUND, "task", id))
        }
        Target::Session => {
            let is_found = match model.sessions.get(id) {
                Some(session) => session.members.contains(viewer.agent_id),
                None => names(context, |unit| unit.session() == Some(id)),
            };
            let thing = is_found.then(|| ("session", id.to_owned()));
            thing.ok_or_else(|| Failure::unknown(&SESSION_NOT_FOUND, "session", id))
        }
    }
}

/// Returns true if the sender sees a unit that names something.
fn names(context: &OperationContext<'_>, is_it: impl Fn(&Unit) -> bool) -> bool {
    let viewer = context.viewer();
    let mut units = context.model.all_visible(&viewer);
    units.any(|(_, kept)| is_it(&kept.unit))
}

/// Follows the chain of causes: what a unit relates to, its conflicts and its task; the units of a task, a session or a conflict.
fn follow(
    context: &OperationContext<'_>,
    thing: &Thing,
    things: &mut BTreeSet<Thing>,
) -> Result<(), Failure> {
    let mut edge = vec![thing.clone()];
    while let Some(thing) = edge.pop() {
        for next in seen(context, linked(context, &thing)) {
            if things.insert(next.clone()) {
                edge.push(next);
            }
        }
        if things.len() > MOST_LINKS {
            let message = format!("the chain of causes has more than {MOST_LINKS} links");
            return Err(Failure::new(&REPLAY_TOO_LARGE, message));
        }
    }
    Ok(())
}

/// Returns the things that one is linked with.
fn linked(context: &OperationContext<'_>, (kind, id): &Thing) -> Vec<Thing> {
    let viewer = context.viewer();
    let model = context.model;
    let mut linked: Vec<Thing> = Vec::new();
    match *kind {
        "unit" => {
            if let Some(kept) = model.units.get(id) {
                let relations = kept.unit.relations.iter();
                linked.extend(relations.map(|one| ("unit", one.target_id.clone())));
                linked.extend(kept.conflicts.iter().map(|one| ("conflict", one.clone())));
                linked.extend(kept.unit.intent.task_id.iter().map(|one| ("task", one.clone())));
            }
        }
        "conflict" => {
            let units = model.conflicts.get(id).into_iter().flat_map(|one| one.units());
            linked.extend(units.map(|one| ("unit", one.to_owned())));
        }
        "task" => {
            let of_task = |unit: &Unit| unit.intent.task_id.as_ref() == Some(id);
            let units = model.all_visible(&viewer).filter(|(_, kept)| of_task(&kept.unit));
            linked.extend(units.map(|(id, _)| ("unit", id.to_owned())));
            let handoffs = model.handoffs.values().filter(|one| one.task_id == *id);
            linked.extend(handoffs.map(|one| ("handoff", one.id.clone())));
        }
        "session" => {
            let units =
                model.all_visible(&viewer).filter(|(_, kept)| kept.unit.session() == Some(id));
            linked.extend(units.map(|(id, _)| ("unit", id.to_owned())));
            let tasks = model.tasks.values().filter(|one| one.session_id.as_ref() == Some(id));
            linked.extend(tasks.map(|one| ("task", one.id.clone())));
        }
        _ => {}
    }
    linked
}

/// Returns those of some things that the sender sees.
fn seen(context: &OperationContext<'_>, mut things: Vec<Thing>) -> Vec<Thing> {
    let viewer = context.viewer();
    let model = context.model;
    things.retain(|(kind, id)| match *kind {
        "unit" => model.visible(&viewer, id).is_some(),
        "conflict" => model.conflicts.get(id).is_some_and(|one| model.sees_conflict(&viewer, one)),
        "task" => model
            .tasks
            .get(id)
            .is_some_and(|one| model.sees_session(&viewer, one.session_id.as_deref())),
        _ => true,
    });
    things
}

/// Returns a delta as an event: its type, and the event itself. `None` for what the sender may not see.
fn event_of(
    context: &OperationContext<'_>,
    entry: &Entry,
    delta: &Delta,
) -> Option<(String, Value)> {
    let viewer = context.viewer();
    let may =
        |id: &str| context.model.units.get(id).is_none_or(|kept| context.model.sees(&viewer, kept));
    let (kind, unit, task) = match delta {
        Delta::Unit { id, .. } => ("memory.recorded".to_owned(), Some(id), None),
        Delta::Status { id, to } => {
            let what = match to {
                UnitStatus::Active => "settled",
                other => other.as_str(),
            };
            (format!("memory.{what}"), Some(id), None)
        }
        Delta::Archived { id } => ("memory.archived".to_owned(), Some(id), None),
        Delta::Purged { id, .. } => ("memory.purged".to_owned(), Some(id), None),
        Delta::Conflict(one) => {
            (format!("conflict.{}", one.status.as_str()), Some(&one.unit_b), None)
        }
        Delta::Task(one) => (format!("task.{}", one.state.as_str()), None, Some(&one.id)),
        Delta::Session(one) => (format!("session.{}", one.state.as_str()), None, None),
        Delta::Handoff(one) => {
            (format!("handoff.{}", one.state.as_str()), None, Some(&one.task_id))
        }
        _ => return None,
    };
    if !unit.is_none_or(|id| may(id)) {
        return None;
    }
    let description = match delta {
        Delta::Purged { at, reason, .. } => format!("purged at {at}: {reason}"),
        Delta::Conflict(one) => one.description.clone(),
        Delta::Task(one) => match &one.assignee {
            Some(agent) => format!("{} ({agent})", one.title),
            None => one.title.clone(),
        },
        _ => entry.description.clone(),
    };
    let mut map = Map::new();
    map.insert("epoch", entry.epoch);
    map.insert("event_type", kind.as_str());
    map.insert("agent_id", entry.agent_id.as_str());
    map.insert("description", description);
    map.insert("memory_unit_id", unit.cloned());
    map.insert("task_id", task.cloned());
    map.insert("timestamp", entry.at.as_str());
    map.insert("authority", entry.authority);
    map.insert("operation", entry.operation.as_str());
    Some((kind, Value::Object(map)))
}
