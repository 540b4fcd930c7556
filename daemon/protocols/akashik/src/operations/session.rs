//! SESSION: bounded joint work with a goal. The payloads are our design.

use std::collections::BTreeSet;

use omir_core::value::Value;

use crate::failure::{
    AGENT_NOT_REGISTERED, Failure, INSUFFICIENT_AUTHORITY, INVALID_TRANSITION, SESSION_NOT_FOUND,
};
use crate::log::{Delta, object};
use crate::machines::{SESSIONS, SessionCause, next};
use crate::operation_context::{OperationContext, OperationResult, value};
use crate::params::Params;
use crate::rights::{self, Act};
use crate::types::{Policy, RoleRule, Session, TypeRule};
use crate::words::{MemoryType, SessionAction, SessionState};

pub(crate) fn session(
    context: &mut OperationContext<'_>,
    mut params: Params<'_>,
) -> OperationResult {
    let action = params.word("action", SessionAction::WORDS, SessionAction::parse)?;
    let Some(action) = action else { return Err(params.fault("action", "is missing")) };
    context.sender()?;
    match action {
        SessionAction::Create => create(context, params),
        SessionAction::Get | SessionAction::List => read(context, action, params),
        _ => change(context, action, params),
    }
}

fn answer(status: u16, session: &Session, epoch: u64) -> OperationResult {
    let answer =
        object([("status", "ok".into()), ("session", value(session)?), ("epoch", epoch.into())]);
    Ok((status, answer))
}

fn read_policy(params: &mut Params<'_>) -> Result<Option<Policy>, Failure> {
    let Some(mut of) = params.object("policy")? else { return Ok(None) };
    let mut policy = Policy { open: of.flag("open")?.unwrap_or(false), ..Policy::default() };
    for mut rule in of.objects("role_rules")? {
        let role = rule.said("role")?.to_owned();
        let hidden_types = rule.words("hidden_types", MemoryType::WORDS, MemoryType::parse)?;
        rule.finish()?;
        policy.role_rules.push(RoleRule { role, hidden_types });
    }
    for mut rule in of.objects("type_rules")? {
        let kind = rule.word("type", MemoryType::WORDS, MemoryType::parse)?;
        let Some(kind) = kind else { return Err(rule.fault("type", "is missing")) };
        let least = rule.integer("min_authority", 0)?.unwrap_or(0).min(10);
        rule.finish()?;
        policy.type_rules.push(TypeRule { of: kind, min_authority: least as u32 });
    }
    of.finish()?;
    Ok(Some(policy))
}

/// Checks that agents are registered.
fn known(context: &OperationContext<'_>, agents: &[String]) -> Result<(), Failure> {
    match agents.iter().find(|id| context.model.agent(id).is_none()) {
        None => Ok(()),
        Some(id) => {
            let message = format!("agent {id:?} is not registered");
            Err(Failure::new(&AGENT_NOT_REGISTERED, message))
        }
    }
}

fn create(context: &mut OperationContext<'_>, mut params: Params<'_>) -> OperationResult {
    let goal = params.said("goal")?.to_owned();
    let id = params.id("session_id")?.map(str::to_owned);
    let members = params.texts("members")?;
    let policy = read_policy(&mut params)?.unwrap_or_default();
    params.finish()?;
    context.may(Act::CreateSession)?;
    known(context, &members)?;
    let id = id.unwrap_or_else(|| context.new_id("session", 0));
    if context.model.sessions.contains_key(&id) || context.model.labels.contains(&id) {
        return Err(Failure::new(&INVALID_TRANSITION, format!("session {id:?} is there already")));
    }
    let Some(state) = next(SESSIONS, None, SessionCause::Create) else {
        return Err(Failure::internal("no row for a new session"));
    };
    let creator = context.agent_id().to_owned();
    let members: BTreeSet<String> = members.into_iter().chain([creator.clone()]).collect();
    let session = Session {
        id,
        goal,
        state,
        creator,
        members,
        invited: BTreeSet::new(),
        policy,
        epoch: context.epoch,
    };
    context.description = format!("session {}: {}", session.id, session.goal);
    context.deltas.push(Delta::Session(session.clone()));
    answer(201, &session, context.epoch)
}

/// Returns a session that the sender finds.
fn find<'a>(context: &OperationContext<'a>, id: &str) -> Result<&'a Session, Failure> {
    let viewer = context.viewer();
    let found = context.model.session(id).filter(|session| rights::finds(&viewer, session));
    found.ok_or_else(|| Failure::unknown(&SESSION_NOT_FOUND, "session", id))
}

fn read(
    context: &mut OperationContext<'_>,
    action: SessionAction,
    mut params: Params<'_>,
) -> OperationResult {
    let id = params.id("session_id")?;
    params.finish()?;
    context.may(Act::Attune)?;
    if action == SessionAction::Get {
        let id = id.ok_or_else(|| Failure::payload("/session_id", "is missing"))?;
        return answer(200, find(context, id)?, context.epoch);
    }
    let viewer = context.viewer();
    let all = context.model.sessions.values().filter(|session| rights::finds(&viewer, session));
    let all: Vec<Value> = all.map(value).collect::<Result<_, _>>()?;
    let answer = object([
        ("status", "ok".into()),
        ("sessions", Value::Array(all)),
        ("epoch", context.epoch.into()),
    ]);
    Ok((200, answer))
}

fn change(
    context: &mut OperationContext<'_>,
    action: SessionAction,
    mut params: Params<'_>,
) -> OperationResult {
    let id = params.needed_id("session_id")?;
    let agents = params.texts("agents")?;
    let policy = read_policy(&mut params)?;
    params.finish()?;
    let before = find(context, id)?;
    let viewer = context.viewer();
    let authority = rights::in_session(&viewer, Some(before));
    let (cause, act) = match action {
        SessionAction::Join | SessionAction::Leave => (SessionCause::Change, Act::TakePart),
        SessionAction::Invite | SessionAction::SetPolicy => {
            (SessionCause::Change, Act::LeadSession)
        }
        SessionAction::Pause => (SessionCause::Pause, Act::LeadSession),
        SessionAction::Resume => (SessionCause::Resume, Act::LeadSession),
        _ => (SessionCause::End, Act::LeadSession),
    };
    rights::may(act, authority)?;
    let Some(state) = next(SESSIONS, Some(before.state), cause) else {
        let what = match action {
            SessionAction::Pause => "paused",
            SessionAction::Resume => "resumed",
            SessionAction::End => "ended",
            _ => "changed",
        };
        return Err(Failure::transition("session", id, before.state.as_str(), what));
    };
    let mut after = Session { state, ..before.clone() };
    match action {
        SessionAction::Join => {
            let is_free = before.policy.open
                || before.invited.contains(viewer.agent_id)
                || authority >= rights::CREATOR;
            if !is_free && !before.members.contains(viewer.agent_id) {
                let message = format!("session {id:?} is for whoever is invited");
                return Err(Failure::new(&INSUFFICIENT_AUTHORITY, message));
            }
            after.invited.remove(viewer.agent_id);
            after.members.insert(viewer.agent_id.to_owned());
        }
        SessionAction::Leave => {
            after.members.remove(viewer.agent_id);
        }
        SessionAction::Invite => {
            known(context, &agents)?;
            if agents.is_empty() {
                return Err(Failure::payload("/agents", "is missing or empty"));
            }
            after.invited.extend(agents.into_iter().filter(|id| !before.members.contains(id)));
        }
        SessionAction::SetPolicy => {
            after.policy = policy.ok_or_else(|| Failure::payload("/policy", "is missing"))?;
        }
        _ => {}
    }
    context.description = format!("session {id}: {}", action.as_str());
    if after != *before {
        context.deltas.push(Delta::Session(after.clone()));
    }
    debug_assert!(SessionState::ALL.contains(&after.state));
    answer(200, &after, context.epoch)
}
