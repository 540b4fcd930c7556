//! Notifications: what an entry of the log tells its subscribers.
//!
//! They are made after the entry is durable, in the order of the log, and handed to listeners that never block: a slow subscriber
//! loses its own and does not hold up others.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use omir_core::json;
use omir_core::value::{Map, Value};
use parking_lot::Mutex;

use crate::log::{Delta, Entry};
use crate::meaning;
use crate::model::Model;
use crate::operations::attune::Ranks;
use crate::rights::Viewer;
use crate::types::{Agent, Subscription, Unit};
use crate::words::{
    AgentStatus, ConflictStatus, EventName, HandoffState, Operation, SessionState, TaskState,
    UnitStatus,
};

/// Gaps that are kept. Beyond it the oldest are forgotten, and their next notification comes at once.
const MOST_GAPS: usize = 4096;

/// A notification for one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Push {
    /// The tenant of the field.
    pub tenant: Arc<str>,
    /// The agent that subscribed.
    pub agent_id: Arc<str>,
    /// The session it happened in.
    pub session: Option<Arc<str>>,
    /// The name of the event.
    pub event: &'static str,
    /// The epoch of the change.
    pub epoch: u64,
    /// The subscription it answers.
    pub subscription: Arc<str>,
    /// The notification as JSON.
    pub body: Arc<str>,
    /// The same where anybody may listen: nothing of a content stands in it, unless the agent was registered without a token, so that
    /// anybody may speak as it.
    pub open_body: Arc<str>,
}

type Listener = dyn Fn(&Push) + Send + Sync;

/// The listeners that carry notifications on. Cloning gives another handle.
#[derive(Clone, Default)]
pub struct Pushes(Arc<Inner>);

#[derive(Default)]
struct Inner {
    listeners: Mutex<Vec<Weak<Listener>>>,
    /// Those that listen for good.
    kept: Mutex<Vec<Listening>>,
    gaps: Mutex<HashMap<(String, String), Instant>>,
    /// The ranks of each agent that is told of units, and what they were made of.
    ranks: Mutex<HashMap<String, (String, Arc<Ranks>)>>,
}

/// Hears of notifications until it is dropped.
#[must_use = "nothing is heard any more once this is dropped"]
pub struct Listening {
    _listener: Arc<Listener>,
}

impl Pushes {
    /// Calls `listener` for each notification from now on, in the order of the log. It must not block.
    pub fn listen(&self, listener: impl Fn(&Push) + Send + Sync + 'static) -> Listening {
        let listener: Arc<Listener> = Arc::new(listener);
        let mut listeners = self.0.listeners.lock();
        listeners.retain(|known| known.strong_count() > 0);
        listeners.push(Arc::downgrade(&listener));
        Listening { _listener: listener }
    }

    /// Has a listener listen for good.
    pub(crate) fn keep(&self, listening: Listening) {
        self.0.kept.lock().push(listening);
    }

    /// Tells everybody.
    pub(crate) fn tell(&self, pushes: &[Push]) {
        let listeners = self.0.listeners.lock().clone();
        for listener in listeners.iter().filter_map(Weak::upgrade) {
            pushes.iter().for_each(|push| listener(push));
        }
    }

    /// Returns true if anybody listens.
    pub(crate) fn are_heard(&self) -> bool {
        let listeners = self.0.listeners.lock();
        listeners.iter().any(|listener| listener.strong_count() > 0)
    }

    /// Returns the notifications of an entry.
    pub(crate) fn of(&self, tenant: &str, model: &Model, entry: &Entry, new: &[Unit]) -> Vec<Push> {
        let mut pushes = Vec::new();
        for delta in &entry.deltas {
            for happened in happened(model, entry, delta, new) {
                for subscription in model.subscriptions.values() {
                    pushes.extend(self.push(tenant, model, entry, &happened, subscription));
                }
            }
        }
        pushes
    }

    fn push(
        &self,
        tenant: &str,
        model: &Model,
        entry: &Entry,
        happened: &Occurrence,
        subscription: &Subscription,
    ) -> Option<Push> {
        if !subscription.events.contains(&happened.event) {
            return None;
        }
        let agent = model.agent(&subscription.agent_id)?;
        let viewer = Viewer { active: happened.session.as_deref(), ..Viewer::of(agent) };
        // A name that was not declared as a session has no members that could be told.
        let is_declared = |id: &str| model.session(id).is_some();
        if !happened
            .session
            .as_deref()
            .is_none_or(|id| is_declared(id) && model.sees_session(&viewer, Some(id)))
        {
            return None;
        }
        if happened.only.as_ref().is_some_and(|only| *only != agent.id)
            || happened
                .units
                .iter()
                .any(|id| model.units.get(id).is_some_and(|kept| !model.sees(&viewer, kept)))
        {
            return None;
        }
        let kept = happened.units.first().and_then(|id| model.units.get(id));
        let relevance =
            kept.map_or(1.0, |kept| self.ranks(tenant, model, agent).of_new(model, kept));
        if subscription.min_relevance.is_some_and(|least| relevance < least) {
            return None;
        }
        if let Some(gap) = subscription.debounce_ms.filter(|gap| *gap > 0)
            && !self.passes(&subscription.id, &happened.entity, Duration::from_millis(gap))
        {
            return None;
        }
        let is_author = happened.units.iter().any(|id| {
            model.units.get(id).is_some_and(|kept| kept.unit.source.agent_id == agent.id)
        });
        let requires_action = match happened.event {
            EventName::Handoff => true,
            EventName::TaskAssigned => happened.assignee.as_deref() == Some(&agent.id),
            EventName::ConflictDetected | EventName::Contested => is_author,
            _ => false,
        };
        let unit = happened.units.first().filter(|_| happened.is_of_unit);
        let mut map = Map::new();
        map.insert("subscription_id", subscription.id.as_str());
        map.insert("event", happened.event.as_str());
        map.insert("epoch", entry.epoch);
        map.insert("relevance_score", (relevance * 1e4).round() / 1e4);
        map.insert("summary", happened.summary.as_str());
        map.insert("memory_unit_id", unit.cloned());
        map.insert("conflict_id", happened.conflict.clone());
        map.insert("requires_action", requires_action);
        let mut told = Value::Object(map);
        let body: Arc<str> = json::to_string(&told).into();
        let open_body = match told.as_object_mut().filter(|_| !agent.holder.is_empty()) {
            Some(map) => {
                map.insert("summary", happened.event.as_str());
                json::to_string(&told).into()
            }
            None => body.clone(),
        };
        Some(Push {
            tenant: tenant.into(),
            agent_id: agent.id.as_str().into(),
            session: happened.session.as_deref().map(Into::into),
            event: happened.event.as_str(),
            epoch: entry.epoch,
            subscription: subscription.id.as_str().into(),
            body,
            open_body,
        })
    }

    /// Returns the ranks of an agent, made once for all notifications.
    fn ranks(&self, tenant: &str, model: &Model, agent: &Agent) -> Arc<Ranks> {
        let query = format!("{} {}", agent.role, agent.interests.join(" "));
        let task = agent.current_task_id.as_deref();
        let made_of = format!("{query}\0{}", task.unwrap_or_default());
        let mut ranks = self.0.ranks.lock();
        let key = format!("{tenant}\0{}", agent.id);
        if let Some((known, ranks)) = ranks.get(&key)
            && *known == made_of
        {
            return ranks.clone();
        }
        if ranks.len() >= MOST_GAPS {
            ranks.clear();
        }
        let new = Arc::new(Ranks::for_push(model, &query, task));
        ranks.insert(key, (made_of, new.clone()));
        new
    }

    /// Returns true if the gap since the last notification of an entity is over.
    fn passes(&self, subscription: &str, entity: &str, gap: Duration) -> bool {
        let mut gaps = self.0.gaps.lock();
        let now = Instant::now();
        let key = (subscription.to_owned(), entity.to_owned());
        if gaps.get(&key).is_some_and(|last| now.duration_since(*last) < gap) {
            return false;
        }
        if gaps.len() >= MOST_GAPS
            && let Some(oldest) = gaps.iter().min_by_key(|(_, at)| **at).map(|(key, _)| key.clone())
        {
            gaps.remove(&oldest);
        }
        gaps.insert(key, now);
        true
    }
}

/// Something that happened.
struct Occurrence {
    event: EventName,
    entity: String,
    units: Vec<String>,
    is_of_unit: bool,
    conflict: Option<String>,
    session: Option<String>,
    summary: String,
    /// For this agent alone.
    only: Option<String>,
    assignee: Option<String>,
}

impl Occurrence {
    fn new(event: EventName, entity: &str, session: Option<String>, summary: String) -> Self {
        Self {
            event,
            entity: entity.to_owned(),
            units: Vec::new(),
            is_of_unit: false,
            conflict: None,
            session,
            summary,
            only: None,
            assignee: None,
        }
    }
}

fn happened(model: &Model, entry: &Entry, delta: &Delta, new: &[Unit]) -> Vec<Occurrence> {
    let session_of =
        |id: &str| model.units.get(id).and_then(|kept| kept.unit.source.session_id.clone());
    let of_unit = |event, id: &String, summary: String| Occurrence {
        units: vec![id.clone()],
        is_of_unit: true,
        ..Occurrence::new(event, id, session_of(id), summary)
    };
    match delta {
        Delta::Unit { id, .. } => {
            let unit = new.iter().find(|unit| unit.id == *id);
            let unit = unit.filter(|unit| unit.status != UnitStatus::Draft);
            unit.map(|unit| {
                let head = meaning::head(&unit.content, 120);
                let summary = format!("{} by {}: {head}", unit.of.as_str(), unit.source.agent_id);
                of_unit(EventName::Recorded, id, summary)
            })
            .into_iter()
            .collect()
        }
        Delta::Status { id, to: UnitStatus::Superseded } => {
            vec![of_unit(EventName::Superseded, id, format!("{id} is superseded"))]
        }
        Delta::Status { id, to: UnitStatus::Contested } => {
            vec![of_unit(EventName::Contested, id, format!("{id} is contested"))]
        }
        Delta::Conflict(conflict) => {
            let event = match conflict.status {
                ConflictStatus::Detected => EventName::ConflictDetected,
                ConflictStatus::Resolved => EventName::ConflictResolved,
                _ => return Vec::new(),
            };
            vec![Occurrence {
                units: conflict.units().map(str::to_owned).to_vec(),
                conflict: Some(conflict.id.clone()),
                ..Occurrence::new(
                    event,
                    &conflict.id,
                    session_of(&conflict.unit_a),
                    conflict.description.clone(),
                )
            }]
        }
        Delta::Task(task) => {
            let base = |event| Occurrence {
                assignee: task.assignee.clone(),
                ..Occurrence::new(
                    event,
                    &task.id,
                    task.session_id.clone(),
                    format!("{}: {}", task.title, task.state.as_str()),
                )
            };
            let mut all = vec![base(EventName::TaskChanged)];
            match task.state {
                TaskState::Assigned => all.push(base(EventName::TaskAssigned)),
                TaskState::Completed => all.push(base(EventName::TaskCompleted)),
                _ => {}
            }
            all
        }
        Delta::Handoff(handoff) if handoff.state == HandoffState::Offered => vec![Occurrence {
            only: Some(handoff.to_agent.clone()),
            ..Occurrence::new(
                EventName::Handoff,
                &handoff.id,
                handoff.session_id.clone(),
                format!(
                    "{} hands {} off: {}",
                    handoff.from_agent, handoff.task_id, handoff.context.summary
                ),
            )
        }],
        Delta::Agent(agent) => match agent.status {
            AgentStatus::Idle if entry.operation == Operation::Register => {
                vec![Occurrence::new(
                    EventName::Joined,
                    &agent.id,
                    None,
                    format!("{} joined", agent.id),
                )]
            }
            AgentStatus::Failed => {
                vec![Occurrence::new(
                    EventName::Failed,
                    &agent.id,
                    None,
                    format!("{} failed", agent.id),
                )]
            }
            _ => Vec::new(),
        },
        Delta::Session(session) => {
            let event = match session.state {
                SessionState::Paused => EventName::SessionPaused,
                SessionState::Ended => EventName::SessionEnded,
                SessionState::Active => return Vec::new(),
            };
            let summary = format!("session {} is {}", session.id, session.state.as_str());
            vec![Occurrence::new(event, &session.id, Some(session.id.clone()), summary)]
        }
        _ => Vec::new(),
    }
}
