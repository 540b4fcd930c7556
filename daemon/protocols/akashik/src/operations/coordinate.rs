//! COORDINATE: the life of tasks, and what agents and units report of themselves. The payloads are our design.

use omir_core::value::Value;

use crate::failure::{AGENT_NOT_REGISTERED, Failure, INVALID_TRANSITION, TASK_NOT_FOUND};
use crate::log::{Delta, object};
use crate::machines::{AGENTS, AgentCause, TASKS, TaskCause, UnitCause, next};
use crate::operation_context::{OperationContext, OperationResult, value};
use crate::operations::agents::{move_agent, release_tasks};
use crate::params::{LONGEST_TEXT, Params};
use crate::rights::{self, Act};
use crate::types::{Agent, Task};
use crate::words::{CoordinateAction, TaskState};

pub(crate) fn coordinate(
    context: &mut OperationContext<'_>,
    mut params: Params<'_>,
) -> OperationResult {
    let action = params.word("action", CoordinateAction::WORDS, CoordinateAction::parse)?;
    let Some(action) = action else { return Err(params.fault("action", "is missing")) };
    context.sender()?;
    match action {
        CoordinateAction::Create => create(context, params),
        CoordinateAction::Get | CoordinateAction::List => read(context, action, params),
        CoordinateAction::FailAgent | CoordinateAction::RecoverAgent => {
            agent(context, action, params)
        }
        CoordinateAction::Retract => retract(context, params),
        _ => change(context, action, params),
    }
}

fn answer(task: &Task, epoch: u64) -> OperationResult {
    let answer = object([("status", "ok".into()), ("task", value(task)?), ("epoch", epoch.into())]);
    Ok((200, answer))
}

/// Returns an agent that is registered.
fn registered<'a>(context: &OperationContext<'a>, id: &str) -> Result<&'a Agent, Failure> {
    context.model.agent(id).ok_or_else(|| {
        Failure::new(&AGENT_NOT_REGISTERED, format!("agent {id:?} is not registered"))
    })
}

fn create(context: &mut OperationContext<'_>, mut params: Params<'_>) -> OperationResult {
    let Some(mut of) = params.object("task")? else {
        return Err(params.fault("task", "is missing"));
    };
    let title = of.said("title")?.to_owned();
    let description = of.text("description")?.map(str::to_owned);
    let assignee = of.id("assignee")?.map(str::to_owned);
    let id = of.id("id")?.map(str::to_owned);
    let depends_on = of.texts("depends_on")?;
    of.finish()?;
    params.finish()?;
    context.check_session(true)?;
    let own = assignee.as_deref().is_none_or(|agent| agent == context.agent_id());
    context.may(if own { Act::OwnTask } else { Act::OthersTask })?;
    if let Some(agent) = &assignee {
        registered(context, agent)?;
    }
    let viewer = context.viewer();
    for id in &depends_on {
        // Tasks that it depends on exist already, so there is no circle.
        let found = context.model.tasks.get(id);
        if !found
            .is_some_and(|task| context.model.sees_session(&viewer, task.session_id.as_deref()))
        {
            return Err(Failure::unknown(&TASK_NOT_FOUND, "task", id));
        }
    }
    let id = id.unwrap_or_else(|| context.new_id("task", 0));
    if context.model.tasks.contains_key(&id) {
        return Err(Failure::new(&INVALID_TRANSITION, format!("task {id:?} is there already")));
    }
    let cause = if assignee.is_some() { TaskCause::Assign } else { TaskCause::Create };
    let state = next(TASKS, None, cause).unwrap_or(TaskState::Created);
    let task = Task {
        id,
        title,
        description,
        state,
        created_by: context.agent_id().to_owned(),
        assignee,
        depends_on,
        session_id: context.envelope.session_id.clone(),
        needs_reassignment: false,
        reason: None,
        result: None,
        epoch: context.epoch,
    };
    context.description = format!("task {}: {}", task.id, task.title);
    context.deltas.push(Delta::Task(task.clone()));
    let (_, done) = answer(&task, context.epoch)?;
    Ok((201, done))
}

/// Returns a task that the sender sees.
pub(crate) fn task<'a>(context: &OperationContext<'a>, id: &str) -> Result<&'a Task, Failure> {
    let viewer = context.viewer();
    let found = context.model.tasks.get(id);
    let seen = found.filter(|task| context.model.sees_session(&viewer, task.session_id.as_deref()));
    seen.ok_or_else(|| Failure::unknown(&TASK_NOT_FOUND, "task", id))
}

fn read(
    context: &mut OperationContext<'_>,
    action: CoordinateAction,
    mut params: Params<'_>,
) -> OperationResult {
    let id = params.id("task_id")?;
    let states = params.words("states", TaskState::WORDS, TaskState::parse)?;
    let assignee = params.id("assignee")?;
    params.finish()?;
    context.may(Act::Attune)?;
    context.check_session(false)?;
    if action == CoordinateAction::Get {
        let id = id.ok_or_else(|| Failure::payload("/task_id", "is missing"))?;
        return answer(task(context, id)?, context.epoch);
    }
    let viewer = context.viewer();
    let tasks = context.model.tasks.values().filter(|task| {
        context.model.sees_session(&viewer, task.session_id.as_deref())
            && (states.is_empty() || states.contains(&task.state))
            && assignee.is_none_or(|agent| task.assignee.as_deref() == Some(agent))
    });
    let tasks: Vec<Value> = tasks.map(value).collect::<Result<_, _>>()?;
    let answer = object([
        ("status", "ok".into()),
        ("tasks", Value::Array(tasks)),
        ("epoch", context.epoch.into()),
    ]);
    Ok((200, answer))
}

fn change(
    context: &mut OperationContext<'_>,
    action: CoordinateAction,
    mut params: Params<'_>,
) -> OperationResult {
    let id = params.needed_id("task_id")?;
    let assignee = params.id("assignee")?;
    let reason = params.long_text("reason", LONGEST_TEXT)?.map(str::to_owned);
    let result = params.long_text("result", LONGEST_TEXT)?.map(str::to_owned);
    params.finish()?;
    context.check_session(true)?;
    let before = task(context, id)?;
    let session = before.session_id.as_deref().and_then(|id| context.model.session(id));
    let authority = rights::in_session(&context.viewer(), session);
    let sender = context.agent_id();
    let is_own = before.assignee.as_deref() == Some(sender);
    let (cause, act, agent) = match action {
        CoordinateAction::Assign => {
            let agent = assignee.ok_or_else(|| Failure::payload("/assignee", "is missing"))?;
            registered(context, agent)?;
            // An agent that takes a free task takes it for itself.
            let is_free = before.assignee.as_deref().is_none_or(|held| held == sender);
            let own = agent == sender && is_free;
            (TaskCause::Assign, if own { Act::OwnTask } else { Act::OthersTask }, Some(agent))
        }
        CoordinateAction::Cancel => (TaskCause::Cancel, Act::CancelTask, None),
        other => {
            let cause = match other {
                CoordinateAction::Start => TaskCause::Start,
                CoordinateAction::Block => TaskCause::Block,
                CoordinateAction::Unblock => TaskCause::Unblock,
                CoordinateAction::Complete => TaskCause::Complete,
                CoordinateAction::Fail => TaskCause::Fail,
                _ => TaskCause::Release,
            };
            let act = if is_own { Act::OwnTask } else { Act::OthersTask };
            (cause, act, before.assignee.as_deref())
        }
    };
    rights::may(act, authority)?;
    let Some(state) = next(TASKS, Some(before.state), cause) else {
        let what = format!("made to {}", action.as_str());
        return Err(Failure::transition("task", id, before.state.as_str(), &what));
    };
    if cause == TaskCause::Start {
        let is_open = |on: &&String| {
            context.model.tasks.get(*on).is_some_and(|task| task.state != TaskState::Completed)
        };
        if let Some(on) = before.depends_on.iter().find(is_open) {
            let message = format!("task {id:?} depends on {on:?}, which is not completed");
            return Err(Failure::new(&INVALID_TRANSITION, message));
        }
    }
    let after = Task {
        state,
        assignee: if cause == TaskCause::Release {
            None
        } else {
            agent.map(str::to_owned).or_else(|| before.assignee.clone())
        },
        needs_reassignment: false,
        reason: reason.or_else(|| before.reason.clone()),
        result: result.or_else(|| before.result.clone()),
        ..before.clone()
    };
    context.description = format!("task {id}: {}", state.as_str());
    context.deltas.push(Delta::Task(after.clone()));
    follow(context, before, &after, cause);
    answer(&after, context.epoch)
}

/// Moves the agents of a task with it.
pub(crate) fn follow(
    context: &mut OperationContext<'_>,
    before: &Task,
    after: &Task,
    cause: TaskCause,
) {
    let worked = |context: &OperationContext<'_>, agent: &str| {
        let current = context.model.agent(agent).and_then(|agent| agent.current_task_id.as_deref());
        current == Some(before.id.as_str())
    };
    let holder = before.assignee.clone().unwrap_or_default();
    match cause {
        TaskCause::Start | TaskCause::Unblock => {
            move_agent(context, &holder, AgentCause::Work, Some(&before.id));
        }
        TaskCause::Block => move_agent(context, &holder, AgentCause::Wait, Some(&before.id)),
        TaskCause::Complete | TaskCause::Fail | TaskCause::Release | TaskCause::Cancel
            if worked(context, &holder) =>
        {
            move_agent(context, &holder, AgentCause::Free, None);
        }
        TaskCause::Assign if before.assignee != after.assignee && worked(context, &holder) => {
            move_agent(context, &holder, AgentCause::Free, None);
        }
        _ => {}
    }
}

/// An agent reports that it has failed, or works again; or another one does.
fn agent(
    context: &mut OperationContext<'_>,
    action: CoordinateAction,
    mut params: Params<'_>,
) -> OperationResult {
    let id = params.id("agent_id")?.unwrap_or(context.agent_id()).to_owned();
    let reason = params.text("reason")?.unwrap_or("its agent failed").to_owned();
    params.finish()?;
    context.may(if id == context.agent_id() { Act::FailSelf } else { Act::FailOther })?;
    let agent = registered(context, &id)?;
    let fails = action == CoordinateAction::FailAgent;
    let cause = if fails { AgentCause::Fail } else { AgentCause::Recover };
    let Some(status) = next(AGENTS, Some(agent.status), cause) else {
        let what = if fails { "failed" } else { "recovered" };
        return Err(Failure::transition("agent", &id, agent.status.as_str(), what));
    };
    let released = if fails { release_tasks(context, &id, &reason)? } else { 0 };
    let moved = Agent { status, current_task_id: None, ..agent.clone() };
    context.description = format!("agent {id}: {}", status.as_str());
    let answer = object([
        ("status", "ok".into()),
        ("agent", crate::answers::agent(&moved)),
        ("tasks_reassigned", released.into()),
        ("epoch", context.epoch.into()),
    ]);
    context.deltas.push(Delta::Agent(moved));
    Ok((200, answer))
}

/// A unit is taken back by its author.
fn retract(context: &mut OperationContext<'_>, mut params: Params<'_>) -> OperationResult {
    let id = params.needed_id("unit_id")?;
    let reason = params.text("reason")?.unwrap_or("taken back").to_owned();
    params.finish()?;
    context.check_session(true)?;
    let kept = context.visible(id)?;
    let is_own = kept.unit.source.agent_id == context.agent_id();
    context.may(if is_own { Act::RetractOwn } else { Act::RetractOthers })?;
    context.move_unit(id, UnitCause::Retract)?;
    context.description = format!("unit {id} is retracted: {reason}");
    let answer = object([
        ("status", "ok".into()),
        ("memory_unit_id", id.into()),
        ("epoch", context.epoch.into()),
    ]);
    Ok((200, answer))
}
