//! HANDOFF: a task goes from one agent to another, with its context packed. The payloads are our design.
//!
//! The task stays with its agent until the other one accepts. The field adds to the package what it knows: the units of the task
//! and their conflicts.

use omir_core::value::Value;

use crate::failure::{
    AGENT_NOT_REGISTERED, Failure, HANDOFF_NOT_FOUND, INSUFFICIENT_AUTHORITY, INVALID_TRANSITION,
};
use crate::log::{Delta, object};
use crate::machines::{HANDOFFS, HandoffCause, TASKS, TaskCause, next};
use crate::operation_context::{OperationContext, OperationResult, value};
use crate::operations::coordinate;
use crate::params::Params;
use crate::rights::{self, Act, Viewer};
use crate::types::{Handoff, Package, Task};
use crate::words::{HandoffAction, HandoffState, MemoryType};

/// Units that the field adds to a package by itself.
const MOST_UNITS: usize = 50;

pub(crate) fn handoff(
    context: &mut OperationContext<'_>,
    mut params: Params<'_>,
) -> OperationResult {
    let action = params.word("action", HandoffAction::WORDS, HandoffAction::parse)?;
    let Some(action) = action else { return Err(params.fault("action", "is missing")) };
    context.sender()?;
    match action {
        HandoffAction::Offer => offer(context, params),
        HandoffAction::Get | HandoffAction::List => read(context, action, params),
        _ => decide(context, action, params),
    }
}

fn answer(status: u16, handoff: &Handoff, epoch: u64) -> OperationResult {
    let answer =
        object([("status", "ok".into()), ("handoff", value(handoff)?), ("epoch", epoch.into())]);
    Ok((status, answer))
}

fn offer(context: &mut OperationContext<'_>, mut params: Params<'_>) -> OperationResult {
    let task_id = params.needed_id("task_id")?;
    let to = params.needed_id("to_agent")?;
    let mut package = read_package(&mut params)?;
    let reason = params.text("reason")?.map(str::to_owned);
    params.finish()?;
    context.may(Act::HandOff)?;
    context.check_session(true)?;
    let task = coordinate::task(context, task_id)?;
    let sender = context.agent_id();
    if task.assignee.as_deref() != Some(sender) {
        let message = format!("task {task_id:?} is not that of {sender:?}, who hands it off");
        return Err(Failure::new(&INVALID_TRANSITION, message));
    }
    if next(TASKS, Some(task.state), TaskCause::Assign).is_none() {
        return Err(Failure::transition("task", task_id, task.state.as_str(), "handed off"));
    }
    let open = context
        .model
        .handoffs
        .values()
        .find(|one| one.task_id == task_id && one.state == HandoffState::Offered);
    if let Some(open) = open {
        let message = format!("task {task_id:?} is offered already, by {}", open.id);
        return Err(Failure::new(&INVALID_TRANSITION, message));
    }
    let Some(receiver) = context.model.agent(to) else {
        let message = format!("agent {to:?} is not registered");
        return Err(Failure::new(&AGENT_NOT_REGISTERED, message));
    };
    if to == sender {
        return Err(Failure::payload("/to_agent", "is the one who hands it off"));
    }
    let receiver =
        Viewer { active: context.envelope.session_id.as_deref(), ..Viewer::of(receiver) };
    if !context.model.sees_session(&receiver, task.session_id.as_deref()) {
        let message = format!("agent {to:?} is no member of the session of the task");
        return Err(Failure::new(&INSUFFICIENT_AUTHORITY, message));
    }
    pack(context, task, &mut package, &receiver)?;
    let Some(state) = next(HANDOFFS, None, HandoffCause::Offer) else {
        return Err(Failure::internal("no row for a new handoff"));
    };
    let handoff = Handoff {
        id: context.new_id("handoff", 0),
        task_id: task_id.to_owned(),
        from_agent: sender.to_owned(),
        to_agent: to.to_owned(),
        state,
        context: package,
        reason,
        session_id: task.session_id.clone(),
        epoch: context.epoch,
    };
    context.description = format!("{sender} offers {task_id} to {to}");
    context.deltas.push(Delta::Handoff(handoff.clone()));
    answer(201, &handoff, context.epoch)
}

fn read_package(params: &mut Params<'_>) -> Result<Package, Failure> {
    let Some(mut of) = params.object("context")? else {
        return Err(params.fault("context", "is missing"));
    };
    let package = Package {
        summary: of.said("summary")?.to_owned(),
        unit_ids: of.texts("unit_ids")?,
        open_questions: of.texts("open_questions")?,
        next_steps: of.texts("next_steps")?,
        constraints: of.texts("constraints")?,
        conflict_ids: Vec::new(),
    };
    of.finish()?;
    Ok(package)
}

/// Adds to a package what the field knows of the task. Nothing is packed that its receiver may not see.
fn pack(
    context: &OperationContext<'_>,
    task: &Task,
    package: &mut Package,
    receiver: &Viewer<'_>,
) -> Result<(), Failure> {
    for id in &package.unit_ids {
        context.visible(id)?;
        if context.model.visible(receiver, id).is_none() {
            let message = format!("{} may not see unit {id:?}", receiver.agent_id);
            return Err(Failure::payload("/context/unit_ids", message));
        }
    }
    let viewer = context.viewer();
    let of_task = context.model.all_visible(&viewer).filter(|(id, kept)| {
        kept.is_live()
            && kept.unit.intent.task_id.as_deref() == Some(&task.id)
            && context.model.visible(receiver, id).is_some()
    });
    let of_task: Vec<&str> = of_task.map(|(id, _)| id).collect();
    for id in of_task.into_iter().rev().take(MOST_UNITS) {
        if !package.unit_ids.iter().any(|known| known == id) {
            package.unit_ids.push(id.to_owned());
        }
    }
    let conflicts = context.model.conflicts.values().filter(|conflict| {
        conflict.is_open()
            && conflict.units().iter().any(|id| package.unit_ids.iter().any(|one| one == id))
            && context.model.sees_conflict(receiver, conflict)
    });
    package.conflict_ids = conflicts.map(|conflict| conflict.id.clone()).collect();
    Ok(())
}

/// Adds to a package what its units say: open questions, constraints and next steps. That is done for each reader, and
/// not in the log, so that a purge leaves nothing of a content.
fn unpacked(context: &OperationContext<'_>, handoff: &Handoff) -> Result<Handoff, Failure> {
    let mut shown = handoff.clone();
    let viewer = context.viewer();
    for id in &handoff.context.unit_ids {
        let Some(kept) = context.model.visible(&viewer, id).filter(|kept| kept.is_live()) else {
            continue;
        };
        let package = &mut shown.context;
        let list = match kept.unit.of {
            MemoryType::Question => &mut package.open_questions,
            MemoryType::Constraint | MemoryType::HumanDirective => &mut package.constraints,
            MemoryType::Intention => &mut package.next_steps,
            _ => continue,
        };
        let content = context.content(id)?;
        if !list.contains(&content) {
            list.push(content);
        }
    }
    Ok(shown)
}

/// Returns a handoff that the sender is a party of.
fn find<'a>(context: &OperationContext<'a>, id: &str) -> Result<&'a Handoff, Failure> {
    let sender = context.agent_id();
    let found = context.model.handoffs.get(id);
    let found = found.filter(|one| one.from_agent == sender || one.to_agent == sender);
    found.ok_or_else(|| Failure::unknown(&HANDOFF_NOT_FOUND, "handoff", id))
}

fn read(
    context: &mut OperationContext<'_>,
    action: HandoffAction,
    mut params: Params<'_>,
) -> OperationResult {
    let id = params.id("handoff_id")?;
    params.finish()?;
    context.may(Act::Attune)?;
    if action == HandoffAction::Get {
        let id = id.ok_or_else(|| Failure::payload("/handoff_id", "is missing"))?;
        return answer(200, &unpacked(context, find(context, id)?)?, context.epoch);
    }
    let sender = context.agent_id();
    let own = context.model.handoffs.values();
    let own = own.filter(|one| one.from_agent == sender || one.to_agent == sender);
    let own: Vec<Value> = own.map(value).collect::<Result<_, _>>()?;
    Ok((
        200,
        object([
            ("status", "ok".into()),
            ("handoffs", Value::Array(own)),
            ("epoch", context.epoch.into()),
        ]),
    ))
}

fn decide(
    context: &mut OperationContext<'_>,
    action: HandoffAction,
    mut params: Params<'_>,
) -> OperationResult {
    let id = params.needed_id("handoff_id")?;
    let reason = params.text("reason")?.map(str::to_owned);
    params.finish()?;
    context.may(Act::HandOff)?;
    context.check_session(true)?;
    let before = find(context, id)?;
    let (cause, party) = match action {
        HandoffAction::Accept => (HandoffCause::Accept, &before.to_agent),
        HandoffAction::Decline => (HandoffCause::Decline, &before.to_agent),
        _ => (HandoffCause::Withdraw, &before.from_agent),
    };
    if party != context.agent_id() {
        let message = format!("to {} handoff {id:?} is for {party:?} alone", action.as_str());
        return Err(Failure::new(&INSUFFICIENT_AUTHORITY, message));
    }
    let Some(state) = next(HANDOFFS, Some(before.state), cause) else {
        let state = before.state.as_str();
        return Err(Failure::transition("handoff", id, state, action.as_str()));
    };
    let after =
        Handoff { state, reason: reason.or_else(|| before.reason.clone()), ..before.clone() };
    context.description = format!("handoff {id}: {}", state.as_str());
    context.deltas.push(Delta::Handoff(after.clone()));
    if cause == HandoffCause::Accept {
        take_over(context, &after)?;
    }
    answer(200, &after, context.epoch)
}

/// Gives the task to the agent that accepted it.
fn take_over(context: &mut OperationContext<'_>, handoff: &Handoff) -> Result<(), Failure> {
    let before = coordinate::task(context, &handoff.task_id)?;
    rights::may(Act::OwnTask, context.authority)?;
    let is_held = before.assignee.as_deref() == Some(&handoff.from_agent);
    let state = next(TASKS, Some(before.state), TaskCause::Assign).filter(|_| is_held);
    let Some(state) = state else {
        let message = format!("task {:?} is {} by now", before.id, before.state.as_str());
        return Err(Failure::new(&INVALID_TRANSITION, message));
    };
    let after = Task {
        state,
        assignee: Some(handoff.to_agent.clone()),
        needs_reassignment: false,
        ..before.clone()
    };
    context.deltas.push(Delta::Task(after.clone()));
    coordinate::follow(context, before, &after, TaskCause::Assign);
    Ok(())
}
