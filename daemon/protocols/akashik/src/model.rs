//! The state of a field in memory: what the entries of its log add up to.
//!
//! Contents are not in it. A unit has its vector and what decides about it; its text is read from the store when it is asked for.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use omird_embedding::Probe;

use crate::fingerprint;
use crate::log::{Delta, Entry};
use crate::meaning;
use crate::nearby::{Meaning, Nearby};
use crate::rights::{self, UnitVisibility, Viewer};
use crate::types::{Agent, Conflict, Handoff, Session, Subscription, Task, Unit};
use crate::words::{AgentStatus, MemoryType, RelationType, UnitStatus};

/// A unit without its content.
#[derive(Debug, Clone)]
pub(crate) struct IndexedUnit {
    /// The unit as it was recorded; its content is empty here.
    pub(crate) unit: Unit,
    /// The status now.
    pub(crate) status: UnitStatus,
    pub(crate) is_archived: bool,
    /// What the log says of it as it was recorded.
    digest: Option<u128>,
    /// The authority it was recorded with.
    pub(crate) authority: u32,
    /// The row of its content among the vectors of its session; `None` if it has no words.
    row: Option<usize>,
    /// The stems of its purpose.
    pub(crate) purpose: Box<[u64]>,
    pub(crate) bytes: usize,
    /// Conflicts it is in, resolved ones too.
    pub(crate) conflicts: Vec<String>,
    /// Units that support it.
    pub(crate) supporters: Vec<String>,
}

impl IndexedUnit {
    fn of(unit: Unit, authority: u32, digest: Option<&str>, row: Option<usize>) -> Self {
        let purpose = meaning::stems(&unit.intent.purpose).into_boxed_slice();
        let bytes = unit.content.len();
        let status = unit.status;
        let unit = Unit { content: String::new(), ..unit };
        Self {
            unit,
            status,
            is_archived: false,
            digest: digest.and_then(|hex| u128::from_str_radix(hex, 16).ok()),
            authority,
            row,
            purpose,
            bytes,
            conflicts: Vec::new(),
            supporters: Vec::new(),
        }
    }

    /// Returns true if a unit of the store is this one still: nothing of it was changed past the log.
    pub(crate) fn is(&self, unit: &Unit) -> bool {
        let now = || fingerprint::of_unit(unit).and_then(|hex| u128::from_str_radix(&hex, 16).ok());
        self.digest.is_none_or(|known| now() == Some(known))
    }

    /// Returns true if it takes part in what is thought now: neither replaced nor taken back, and no draft.
    pub(crate) fn is_live(&self) -> bool {
        !matches!(self.status, UnitStatus::Draft | UnitStatus::Superseded | UnitStatus::Retracted)
    }

    fn visibility(&self) -> UnitVisibility<'_> {
        UnitVisibility {
            author: &self.unit.source.agent_id,
            of: self.unit.of,
            is_draft: self.unit.status == UnitStatus::Draft,
            session: self.unit.session(),
        }
    }
}

/// The state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    pub(crate) agents: BTreeMap<String, Agent>,
    pub(crate) units: HashMap<String, IndexedUnit>,
    /// The vectors of units, by their session.
    nearby: HashMap<Option<String>, Nearby>,
    /// Ids of units by epoch: the order of the field.
    pub(crate) order: BTreeMap<(u64, String), ()>,
    pub(crate) conflicts: BTreeMap<String, Conflict>,
    /// Pairs of units that are or were in conflict, the smaller id first.
    pub(crate) pairs: HashMap<(String, String), String>,
    pub(crate) tasks: BTreeMap<String, Task>,
    pub(crate) sessions: BTreeMap<String, Session>,
    pub(crate) handoffs: BTreeMap<String, Handoff>,
    pub(crate) subscriptions: BTreeMap<String, Subscription>,
    /// Units whose conflicts are still to be looked for.
    pub(crate) deferred: BTreeSet<String>,
    /// Names of sessions that units were recorded in.
    pub(crate) labels: BTreeSet<String>,
    /// Epochs of the entries about a thing: `unit`, `conflict`, `task`, `session`, and its id.
    pub(crate) history: HashMap<(&'static str, String), Vec<u64>>,
    /// The epoch of each message that changed something, by a digest of agent and message id.
    pub(crate) messages: HashMap<u128, u64>,
    pub(crate) purged: u64,
    /// The epoch of the last entry.
    pub(crate) last: u64,
    /// Epochs of entries that the log lacks, the last one of each gap. What they changed is not in this state.
    pub(crate) gaps: Vec<u64>,
}

/// Returns a pair of units, whichever way round.
pub(crate) fn pair(a: &str, b: &str) -> (String, String) {
    if a <= b { (a.to_owned(), b.to_owned()) } else { (b.to_owned(), a.to_owned()) }
}

impl Model {
    /// Takes in an entry. `unit` gives a unit of the store by its id; one that is gone there is gone here.
    pub(crate) fn apply(
        &mut self,
        entry: &Entry,
        message: Option<u128>,
        unit: &mut dyn FnMut(&str) -> Option<Unit>,
    ) {
        self.last = entry.epoch;
        for delta in &entry.deltas {
            for (kind, id) in delta.about() {
                let epochs = self.history.entry((kind, id.to_owned())).or_default();
                if epochs.last() != Some(&entry.epoch) {
                    epochs.push(entry.epoch);
                }
            }
            self.apply_delta(delta, entry, unit);
        }
        if let Some(message) = message {
            self.messages.insert(message, entry.epoch);
        }
    }

    fn apply_delta(
        &mut self,
        delta: &Delta,
        entry: &Entry,
        unit: &mut dyn FnMut(&str) -> Option<Unit>,
    ) {
        match delta {
            Delta::Agent(agent) => {
                self.agents.insert(agent.id.clone(), agent.clone());
            }
            Delta::Unit { id, digest } => {
                if let Some(unit) = unit(id) {
                    self.add(unit, entry.authority, digest.as_deref());
                }
            }
            Delta::Status { id, to } => {
                if let Some(indexed) = self.units.get_mut(id) {
                    indexed.status = *to;
                }
            }
            Delta::Archived { id } => {
                if let Some(indexed) = self.units.get_mut(id) {
                    indexed.is_archived = true;
                }
            }
            Delta::Purged { id, .. } => self.remove(id),
            Delta::Conflict(conflict) => self.put_conflict(conflict.clone()),
            Delta::Task(task) => {
                self.tasks.insert(task.id.clone(), task.clone());
            }
            Delta::Session(session) => {
                self.sessions.insert(session.id.clone(), session.clone());
            }
            Delta::Handoff(handoff) => {
                self.handoffs.insert(handoff.id.clone(), handoff.clone());
            }
            Delta::Subscription(subscription) => {
                self.subscriptions.insert(subscription.id.clone(), subscription.clone());
            }
            Delta::Unsubscribed { id } => {
                self.subscriptions.remove(id);
            }
            Delta::Deferred { ids } => self.deferred.extend(ids.iter().cloned()),
            Delta::Detected { ids } => {
                for id in ids {
                    self.deferred.remove(id);
                }
            }
        }
    }

    fn add(&mut self, unit: Unit, authority: u32, digest: Option<&str>) {
        for relation in unit.relations.iter().filter(|one| one.of == RelationType::Supports) {
            if let Some(target) = self.units.get_mut(&relation.target_id) {
                target.supporters.push(unit.id.clone());
            }
        }
        self.labels.extend(unit.source.session_id.clone());
        self.order.insert((unit.epoch, unit.id.clone()), ());
        let nearby = self.nearby.entry(unit.source.session_id.clone()).or_default();
        let row = nearby.add(&unit.id, &Meaning::of(&unit));
        self.units.insert(unit.id.clone(), IndexedUnit::of(unit, authority, digest, row));
    }

    /// Takes out what is gone from the store.
    pub(crate) fn remove(&mut self, id: &str) {
        if let Some(indexed) = self.units.remove(id) {
            self.order.remove(&(indexed.unit.epoch, id.to_owned()));
            self.deferred.remove(id);
            if let Some(nearby) = self.nearby.get_mut(&indexed.unit.source.session_id) {
                nearby.remove(id);
            }
            self.purged += 1;
        }
    }

    fn put_conflict(&mut self, conflict: Conflict) {
        let pair = pair(&conflict.unit_a, &conflict.unit_b);
        if self.pairs.insert(pair, conflict.id.clone()).is_none() {
            for id in conflict.units() {
                if let Some(indexed) = self.units.get_mut(id) {
                    indexed.conflicts.push(conflict.id.clone());
                }
            }
        }
        self.conflicts.insert(conflict.id.clone(), conflict);
    }

    /// Returns the vectors of the units of a session.
    pub(crate) fn nearby(&self, session: &Option<String>) -> Option<&Nearby> {
        self.nearby.get(session)
    }

    /// Returns the cosine of a unit with a text.
    pub(crate) fn cosine(&self, indexed: &IndexedUnit, probe: &Probe) -> f64 {
        let nearby = self.nearby(&indexed.unit.source.session_id);
        nearby.zip(indexed.row).map_or(0.0, |(nearby, row)| nearby.cosine(row, probe))
    }

    /// Returns an agent that is registered.
    pub(crate) fn agent(&self, id: &str) -> Option<&Agent> {
        self.agents.get(id).filter(|agent| agent.status != AgentStatus::Offline)
    }

    /// Returns the agents that are registered.
    pub(crate) fn registered(&self) -> impl Iterator<Item = &Agent> {
        self.agents.values().filter(|agent| agent.status != AgentStatus::Offline)
    }

    /// Returns a session by the name that a unit or message has.
    pub(crate) fn session(&self, id: &str) -> Option<&Session> {
        self.sessions.get(id)
    }

    /// Decides if a viewer sees a unit.
    pub(crate) fn sees(&self, viewer: &Viewer<'_>, indexed: &IndexedUnit) -> bool {
        self.sees_itself(viewer, indexed) && self.sees_sources(viewer, indexed)
    }

    fn sees_itself(&self, viewer: &Viewer<'_>, indexed: &IndexedUnit) -> bool {
        let visibility = indexed.visibility();
        rights::sees(viewer, visibility, visibility.session.and_then(|id| self.session(id)))
    }

    /// Decides if a viewer sees all that a synthesis elaborates: it says the same in other words. This is asked only
    /// for viewers that a rule of the session keeps from something. For those, a unit that is gone counts as hidden.
    fn sees_sources(&self, viewer: &Viewer<'_>, indexed: &IndexedUnit) -> bool {
        let is_limited = |indexed: &IndexedUnit| {
            let session = indexed.unit.session().and_then(|id| self.session(id));
            indexed.unit.of == MemoryType::Synthesis
                && indexed.unit.source.agent_id != viewer.agent_id
                && session.is_some_and(|session| rights::is_limited(viewer, session))
        };
        if !is_limited(indexed) {
            return true;
        }
        // A synthesis may elaborate others, and an agent that records units may have them do so in a circle.
        let mut met: HashSet<&str> = HashSet::new();
        let mut left = vec![indexed];
        while let Some(indexed) = left.pop() {
            for relation in &indexed.unit.relations {
                if relation.of != RelationType::Elaborates || !met.insert(&relation.target_id) {
                    continue;
                }
                match self.units.get(&relation.target_id) {
                    Some(source) if self.sees_itself(viewer, source) => {
                        if is_limited(source) {
                            left.push(source);
                        }
                    }
                    _ => return false,
                }
            }
        }
        true
    }

    /// Decides if a viewer sees a conflict: both its units, as far as they are there.
    pub(crate) fn sees_conflict(&self, viewer: &Viewer<'_>, conflict: &Conflict) -> bool {
        let mut units = conflict.units().into_iter().filter_map(|id| self.units.get(id)).peekable();
        units.peek().is_some() && units.all(|indexed| self.sees(viewer, indexed))
    }

    /// Decides if a viewer sees what is of a session.
    pub(crate) fn sees_session(&self, viewer: &Viewer<'_>, id: Option<&str>) -> bool {
        id.is_none_or(|id| rights::is_in(viewer, id, self.session(id)))
    }

    /// Returns a unit, if the viewer sees it.
    pub(crate) fn visible(&self, viewer: &Viewer<'_>, id: &str) -> Option<&IndexedUnit> {
        self.units.get(id).filter(|indexed| self.sees(viewer, indexed))
    }

    /// Returns the units that a viewer sees, in the order of the field.
    pub(crate) fn all_visible<'m>(
        &'m self,
        viewer: &'m Viewer<'m>,
    ) -> impl Iterator<Item = (&'m str, &'m IndexedUnit)> {
        let all = self.order.keys().filter_map(|(_, id)| Some((id.as_str(), self.units.get(id)?)));
        all.filter(|(_, indexed)| self.sees(viewer, indexed))
    }

    /// Returns true if a unit is in an unresolved conflict other than `but`.
    pub(crate) fn is_contested(&self, indexed: &IndexedUnit, but: Option<&str>) -> bool {
        let mut open = indexed.conflicts.iter().filter(|id| Some(id.as_str()) != but);
        open.any(|id| self.conflicts.get(id).is_some_and(Conflict::is_open))
    }

    /// Returns the conflicts that a viewer sees, in the order in which they were found.
    pub(crate) fn conflicts_seen(&self, viewer: &Viewer<'_>) -> Vec<&Conflict> {
        let seen = self.conflicts.values().filter(|one| self.sees_conflict(viewer, one));
        let mut seen: Vec<&Conflict> = seen.collect();
        // `conflict-<epoch>`, or with its number in that epoch behind it.
        seen.sort_by_key(|one| -> Vec<u64> {
            one.id.split('-').filter_map(|part| part.parse().ok()).collect()
        });
        seen
    }

    /// Returns the number of conflicts that are not resolved.
    pub(crate) fn open_conflicts(&self) -> usize {
        self.conflicts.values().filter(|conflict| conflict.is_open()).count()
    }
}
