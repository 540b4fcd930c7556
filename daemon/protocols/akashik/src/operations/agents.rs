//! REGISTER and DEREGISTER.

use omir_core::value::Value;

use crate::answers;
use crate::failure::{AGENT_ID_TAKEN, Failure, INSUFFICIENT_AUTHORITY, INVALID_ENVELOPE};
use crate::log::{Delta, object};
use crate::machines::{AGENTS, AgentCause, TASKS, TaskCause, next};
use crate::model::Model;
use crate::operation_context::{OperationContext, OperationResult};
use crate::params::Params;
use crate::rights::{Act, Viewer};
use crate::types::{Agent, Task};
use crate::words::Operation;

/// Most interests of an agent, and bytes of one: they stand in each entry that moves the agent.
const MOST_INTERESTS: usize = 64;
const LONGEST_INTEREST: usize = 256;

pub(crate) fn register(
    context: &mut OperationContext<'_>,
    mut params: Params<'_>,
) -> OperationResult {
    let id = params.needed_id("id")?;
    let role = params.said("role")?;
    let interests = interests(&mut params)?;
    let required = params.texts("required_operations")?;
    let declared = params.integer("authority_level", 0)?;
    params.finish()?;
    context.may(Act::Register)?;
    if id != context.agent_id() {
        let message = "`agent_id` of the envelope and `id` of the payload are two agents";
        return Err(Failure::new(&INVALID_ENVELOPE, message));
    }
    let authority = context.who.authority;
    let declared = declared.map(|declared| u32::try_from(declared).unwrap_or(u32::MAX));
    if let Some(declared) = declared.filter(|declared| *declared > authority) {
        let message =
            format!("authority_level {declared} is declared, and the credential has {authority}");
        return Err(Failure::new(&INSUFFICIENT_AUTHORITY, message));
    }
    let missing: Vec<String> =
        required.into_iter().filter(|name| Operation::parse(name).is_none()).collect();
    if !missing.is_empty() {
        let reason = format!("this field does not offer {}", missing.join(", "));
        let rejected = object([
            ("status", "rejected".into()),
            ("field_capabilities", answers::capabilities(context.contents)),
            ("rejection_reason", reason.into()),
        ]);
        return Ok((200, rejected));
    }
    let before = context.model.agents.get(id);
    let Some(status) = next(AGENTS, before.map(|agent| agent.status), AgentCause::Register) else {
        return Err(Failure::new(&AGENT_ID_TAKEN, format!("agent {id:?} is registered")));
    };
    // The agent still owns its drafts, memberships and invitations.
    if before.is_some_and(|agent| !context.who.may_be(agent)) {
        let message = format!(
            "agent {id:?} was registered with another token; choose another id, or ask the owner for a token that \
             names this agent (`omir token add NAME --scope akashik:agent --agent {id}`)"
        );
        return Err(Failure::new(&AGENT_ID_TAKEN, message));
    }
    let agent = Agent {
        id: id.to_owned(),
        role: role.to_owned(),
        status,
        interests,
        current_task_id: None,
        holder: context.who.holder.clone(),
        authority: declared.unwrap_or(authority),
        declared,
    };
    let answer = object([
        ("status", "registered".into()),
        ("agent", answers::agent(&agent)),
        ("field_capabilities", answers::capabilities(context.contents)),
    ]);
    context.description = format!("agent {id} joined as {role}");
    context.deltas.push(Delta::Agent(agent));
    Ok((201, answer))
}

fn interests(params: &mut Params<'_>) -> Result<Vec<String>, Failure> {
    let interests = params.texts("interests")?;
    if interests.len() > MOST_INTERESTS
        || interests.iter().any(|interest| interest.len() > LONGEST_INTEREST)
    {
        let message = format!("at most {MOST_INTERESTS} of at most {LONGEST_INTEREST} bytes each");
        return Err(params.fault("interests", message));
    }
    Ok(interests)
}

pub(crate) fn deregister(
    context: &mut OperationContext<'_>,
    mut params: Params<'_>,
) -> OperationResult {
    let id = params.needed_id("agent_id")?;
    params.finish()?;
    let sender = context.sender()?;
    context.may(if id == sender.id { Act::DeregisterSelf } else { Act::DeregisterOther })?;
    let cleanup = |units: usize, tasks: usize| {
        object([("units_orphaned", units.into()), ("tasks_reassigned", tasks.into())])
    };
    let Some(agent) = context.model.agent(id) else {
        let answer = object([("status", "not_found".into()), ("cleanup", cleanup(0, 0))]);
        return Ok((200, answer));
    };
    let Some(status) = next(AGENTS, Some(agent.status), AgentCause::Leave) else {
        return Err(Failure::transition("agent", id, agent.status.as_str(), "deregistered"));
    };
    let orphaned =
        context.model.units.values().filter(|indexed| indexed.unit.source.agent_id == id).count();
    let released = release_tasks(context, id, "its agent left")?;
    context.deltas.push(Delta::Agent(Agent { status, current_task_id: None, ..agent.clone() }));
    let gone: Vec<String> = context
        .model
        .subscriptions
        .values()
        .filter(|one| one.agent_id == id)
        .map(|one| one.id.clone())
        .collect();
    context.deltas.extend(gone.into_iter().map(|id| Delta::Unsubscribed { id }));
    context.description = format!("agent {id} left");
    Ok((200, object([("status", "ok".into()), ("cleanup", cleanup(orphaned, released))])))
}

/// Gives back the open tasks of an agent, and returns their number. They are marked as in need of another agent.
pub(crate) fn release_tasks(
    context: &mut OperationContext<'_>,
    agent_id: &str,
    reason: &str,
) -> Result<usize, Failure> {
    let held =
        context.model.tasks.values().filter(|task| task.assignee.as_deref() == Some(agent_id));
    let mut released = Vec::new();
    for task in held {
        let Some(state) = next(TASKS, Some(task.state), TaskCause::Release) else { continue };
        released.push(Delta::Task(Task {
            state,
            assignee: None,
            needs_reassignment: true,
            reason: Some(reason.to_owned()),
            ..task.clone()
        }));
    }
    let count = released.len();
    context.deltas.extend(released);
    Ok(count)
}

/// Moves an agent, after what this operation has changed so far. A move that its table does not have is none.
pub(crate) fn move_agent(
    context: &mut OperationContext<'_>,
    id: &str,
    cause: AgentCause,
    task: Option<&str>,
) {
    let changed = context.deltas.iter().rev().find_map(|delta| match delta {
        Delta::Agent(agent) if agent.id == id => Some(agent),
        _ => None,
    });
    let Some(agent) = changed.or_else(|| context.model.agent(id)) else { return };
    let Some(status) = next(AGENTS, Some(agent.status), cause) else { return };
    let current_task_id = task.map(str::to_owned);
    let moved = Agent { status, current_task_id, ..agent.clone() };
    if moved != *agent {
        context.deltas.push(Delta::Agent(moved));
    }
}

/// Returns the answer of GET `/agents`. The task of an agent is named to agents that see its session.
pub(crate) fn list(model: &Model, viewer: &Viewer<'_>) -> Value {
    let shown = |agent: &Agent| {
        let sees = |id: &String| {
            let task = model.tasks.get(id);
            task.is_some_and(|task| model.sees_session(viewer, task.session_id.as_deref()))
        };
        let current_task_id = agent.current_task_id.clone().filter(sees);
        answers::agent(&Agent { current_task_id, ..agent.clone() })
    };
    object([("agents", model.registered().map(shown).collect())])
}
