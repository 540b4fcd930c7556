//! MERGE: seven ways to resolve a conflict. A strategy that does not decide leaves the conflict as it is: `MERGE_FAILED`.

use omir_core::value::Value;

use crate::answers;
use crate::failure::{CONFLICT_NOT_FOUND, Failure, INVALID_PAYLOAD, MERGE_FAILED};
use crate::log::{Delta, object};
use crate::machines::{CONFLICTS, ConflictCause, UnitCause, next};
use crate::model::IndexedUnit;
use crate::operation_context::{OperationContext, OperationResult};
use crate::operations::record::{NewUnit, add};
use crate::params::Params;
use crate::rights::Act;
use crate::types::{Confidence, Conflict, Intent, Relation, Resolution, Vote};
use crate::words::{ConflictStatus, MemoryType, Mode, RelationType, Strategy, UnitStatus};

/// Most bytes of a synthesis.
const MOST_SYNTHESIS: usize = 64 << 10;

pub(crate) fn merge(context: &mut OperationContext<'_>, mut params: Params<'_>) -> OperationResult {
    let id = params.needed_id("conflict_id")?;
    let strategy = params.word("strategy", Strategy::WORDS, Strategy::parse)?;
    let Some(strategy) = strategy else { return Err(params.fault("strategy", "is missing")) };
    let Some(mut of) = params.object("resolution")? else {
        return Err(params.fault("resolution", "is missing"));
    };
    let rationale = of.said("rationale")?.to_owned();
    let winner = of.id("winner_id")?;
    let synthesis =
        of.long_text("synthesis", MOST_SYNTHESIS)?.filter(|text| !text.trim().is_empty());
    of.finish()?;
    params.finish()?;
    context.sender()?;
    context.check_session(true)?;
    let viewer = context.viewer();
    let found = context.model.conflicts.get(id);
    let Some(conflict) = found.filter(|one| context.model.sees_conflict(&viewer, one)) else {
        return Err(Failure::unknown(&CONFLICT_NOT_FOUND, "conflict", id));
    };
    let is_running = conflict.vote.is_some() && conflict.status == ConflictStatus::Resolving;
    context.may(match (conflict.status, strategy) {
        (ConflictStatus::Escalated, _) => Act::ResolveEscalated,
        (_, Strategy::Vote) if is_running => Act::Vote,
        _ => Act::Merge,
    })?;
    let mut case = Case { conflict: conflict.clone(), strategy, rationale };
    case.begin()?;
    if let Some(winner) = winner.filter(|winner| !conflict.units().contains(winner)) {
        let message = format!("{winner:?} is neither {} nor {}", conflict.unit_a, conflict.unit_b);
        return Err(Failure::payload("/resolution/winner_id", message));
    }
    let live = |id: &&str| context.model.units.get(*id).is_some_and(IndexedUnit::is_live);
    let live: Vec<&str> = conflict.units().into_iter().filter(live).collect();
    let [a, b] = conflict.units().map(|unit| context.model.units.get(unit));
    // Of a unit that was replaced, taken back or purged meanwhile nothing is to be decided: it does not win.
    let is_open = live.len() == 2 || strategy == Strategy::HumanEscalation;
    let (true, Some(a), Some(b)) = (is_open, a, b) else {
        if strategy == Strategy::HumanEscalation {
            return case.end(context, Verdict::Escalate);
        }
        if let Some(gone) = winner.filter(|winner| !live.contains(winner)) {
            let status = context.status_of(gone).map_or("purged", UnitStatus::as_str);
            return Err(Failure::new(&MERGE_FAILED, format!("{gone} cannot win: it is {status}")));
        }
        if strategy == Strategy::Authority {
            context.outranks(a.into_iter().chain(b))?;
        }
        let verdict = live.first().map_or(Verdict::Moot, |id| Verdict::Wins((*id).to_owned()));
        return case.end(context, verdict);
    };
    let verdict = match strategy {
        Strategy::HumanEscalation => Verdict::Escalate,
        Strategy::LastWriteWins => newest(a, b),
        Strategy::ConfidenceWeighted => {
            weighed(a, b, "confidence.score", |indexed| indexed.unit.score())?
        }
        Strategy::EvidenceCount => {
            weighed(a, b, "evidence", |indexed| Some(evidence(context, indexed) as f64))?
        }
        Strategy::Authority => {
            let Some(winner) = winner else {
                return Err(Failure::payload(
                    "/resolution/winner_id",
                    "is missing; authority names it",
                ));
            };
            context.outranks([a, b])?;
            Verdict::Wins(winner.to_owned())
        }
        Strategy::Synthesis => match synthesis {
            Some(text) => Verdict::Synthesis(text.to_owned()),
            None => {
                let message = "is missing; synthesis is the content of the new unit";
                return Err(Failure::payload("/resolution/synthesis", message));
            }
        },
        Strategy::Vote => vote(context, &mut case.conflict, winner)?,
    };
    if let (Verdict::Wins(won), Some(named)) = (&verdict, winner)
        && won != named
        && strategy != Strategy::Vote
    {
        let message =
            format!("{} decides for {won}, and winner_id names {named}", strategy.as_str());
        return Err(Failure::new(&MERGE_FAILED, message));
    }
    case.end(context, verdict)
}

/// The decision of a strategy.
enum Verdict {
    Wins(String),
    Synthesis(String),
    Escalate,
    Pending,
    /// Neither unit is live any more.
    Moot,
}

struct Case {
    conflict: Conflict,
    strategy: Strategy,
    rationale: String,
}

impl Case {
    fn go(&mut self, cause: ConflictCause, to: &str) -> Result<(), Failure> {
        let status = self.conflict.status;
        let Some(next) = next(CONFLICTS, Some(status), cause) else {
            let (id, status) = (&self.conflict.id, status.as_str());
            return Err(Failure::transition("conflict", id, status, to));
        };
        self.conflict.status = next;
        Ok(())
    }

    /// Takes the conflict to where its strategy works on it.
    fn begin(&mut self) -> Result<(), Failure> {
        match (self.conflict.status, self.strategy) {
            // A person decides: no way leads back to escalation, nor to a vote.
            (ConflictStatus::Escalated, Strategy::HumanEscalation | Strategy::Vote) => {
                self.go(ConflictCause::Start, self.strategy.as_str())
            }
            (ConflictStatus::Escalated, _) => Ok(()),
            (ConflictStatus::Detected, Strategy::HumanEscalation) => Ok(()),
            _ => self.go(ConflictCause::Start, "resolved once more"),
        }
    }

    fn end(mut self, context: &mut OperationContext<'_>, verdict: Verdict) -> OperationResult {
        let (mut superseded, mut new_unit) = (Vec::new(), None);
        let mut winner_id = None;
        let authors = authors(context, &self.conflict);
        let status = match verdict {
            Verdict::Pending => "pending_vote",
            Verdict::Escalate => {
                self.go(ConflictCause::Escalate, "escalated")?;
                "escalated"
            }
            Verdict::Moot => {
                self.resolve()?;
                "resolved"
            }
            Verdict::Wins(winner) => {
                self.resolve()?;
                let units = self.conflict.units();
                superseded.extend(units.into_iter().filter(|id| *id != winner).map(str::to_owned));
                winner_id = Some(winner);
                "resolved"
            }
            Verdict::Synthesis(text) => {
                self.resolve()?;
                superseded.extend(self.conflict.units().map(str::to_owned));
                new_unit = Some(self.synthesize(context, text)?);
                "resolved"
            }
        };
        // One that was replaced, taken back or purged meanwhile stays as it is.
        superseded.retain(|id| {
            context.status_of(id).is_some() && context.move_unit(id, UnitCause::Supersede).is_ok()
        });
        if let Some(winner) = &winner_id
            && let Some(indexed) = context.model.units.get(winner)
            && !context.model.is_contested(indexed, Some(&self.conflict.id))
        {
            let _ = context.move_unit(winner, UnitCause::Resolve);
        }
        if status != "pending_vote" {
            self.conflict.resolution = Some(Resolution {
                strategy: self.strategy,
                winner_id,
                rationale: self.rationale.clone(),
                resolved_by: context.agent_id().to_owned(),
                epoch_resolved: context.epoch,
            });
        }
        context.description =
            format!("conflict {} by {}: {status}", self.conflict.id, self.strategy.as_str());
        let shown = answers::conflict(&self.conflict)?;
        context.deltas.push(Delta::Conflict(self.conflict));
        let list = |all: Vec<String>| all.into_iter().map(Value::from).collect::<Value>();
        let effects = object([
            ("superseded_units", list(superseded)),
            ("new_unit_id", new_unit.into()),
            ("notified_agents", list(authors)),
        ]);
        let answer =
            object([("status", status.into()), ("conflict", shown), ("side_effects", effects)]);
        Ok((200, answer))
    }

    fn resolve(&mut self) -> Result<(), Failure> {
        match self.conflict.status {
            ConflictStatus::Escalated => self.go(ConflictCause::Decide, "resolved"),
            _ => self.go(ConflictCause::Succeed, "resolved"),
        }
    }

    /// Adds the unit that reconciles both. It is in the session of the first of them.
    fn synthesize(
        &self,
        context: &mut OperationContext<'_>,
        content: String,
    ) -> Result<String, Failure> {
        let both = self.conflict.units().map(|id| context.model.units.get(id));
        let scores: Vec<f64> =
            both.iter().flatten().filter_map(|indexed| indexed.unit.score()).collect();
        let score = match scores.len() {
            0 => 0.5,
            many => scores.iter().sum::<f64>() / many as f64,
        };
        let session = both[0].and_then(|indexed| indexed.unit.source.session_id.clone());
        let task_id = both.iter().flatten().find_map(|indexed| indexed.unit.intent.task_id.clone());
        let relations = self.conflict.units().map(|id| Relation {
            of: RelationType::Elaborates,
            target_id: id.to_owned(),
            description: None,
        });
        let new_unit = NewUnit {
            mode: Mode::Committed,
            of: MemoryType::Synthesis,
            content,
            intent: Intent {
                purpose: format!("resolve {}", self.conflict.id),
                task_id,
                question: None,
            },
            confidence: Some(Confidence {
                score: Some(score),
                reasoning: Some(self.rationale.clone()),
                ..Confidence::default()
            }),
            relations: relations.to_vec(),
        };
        let id = add(context, new_unit, 0)?;
        if let Some(unit) = context.units.last_mut() {
            unit.source.session_id = session;
        }
        Ok(id)
    }
}

/// Returns the agents that recorded the units of a conflict.
fn authors(context: &OperationContext<'_>, conflict: &Conflict) -> Vec<String> {
    let mut authors: Vec<String> = conflict
        .units()
        .into_iter()
        .filter_map(|id| context.model.units.get(id))
        .map(|indexed| indexed.unit.source.agent_id.clone())
        .collect();
    authors.dedup();
    authors
}

fn newest(a: &IndexedUnit, b: &IndexedUnit) -> Verdict {
    let newer = if a.unit.epoch > b.unit.epoch { a } else { b };
    Verdict::Wins(newer.unit.id.clone())
}

fn weighed(
    a: &IndexedUnit,
    b: &IndexedUnit,
    what: &str,
    weight: impl Fn(&IndexedUnit) -> Option<f64>,
) -> Result<Verdict, Failure> {
    let (Some(of_a), Some(of_b)) = (weight(a), weight(b)) else {
        return Err(Failure::new(&MERGE_FAILED, format!("a unit has no {what}")));
    };
    if of_a == of_b {
        return Err(Failure::new(
            &MERGE_FAILED,
            format!("both units have the same {what}, {of_a}"),
        ));
    }
    let heavier = if of_a > of_b { a } else { b };
    Ok(Verdict::Wins(heavier.unit.id.clone()))
}

/// Returns the number of pieces of evidence: what the unit names, and live units that support it.
fn evidence(context: &OperationContext<'_>, indexed: &IndexedUnit) -> usize {
    let named = indexed.unit.confidence.as_ref().map_or(0, |one| one.evidence.len());
    let units = &context.model.units;
    let supporters = indexed.supporters.iter().filter_map(|id| units.get(id));
    named + supporters.filter(|one| one.is_live()).count()
}

/// Casts a vote. The first one fixes the voters: the registered agents of authority 4 that see the conflict.
fn vote(
    context: &OperationContext<'_>,
    conflict: &mut Conflict,
    winner: Option<&str>,
) -> Result<Verdict, Failure> {
    let Some(winner) = winner else {
        return Err(Failure::payload("/resolution/winner_id", "is missing; a vote names it"));
    };
    let voter = context.agent_id();
    let vote = conflict.vote.get_or_insert_with(|| {
        let seen = context.model.conflicts.get(&conflict.id);
        let voters = context.model.registered().filter(|agent| {
            let viewer = crate::rights::Viewer {
                active: context.envelope.session_id.as_deref(),
                ..crate::rights::Viewer::of(agent)
            };
            agent.authority >= Act::Vote.needs().0
                && seen.is_some_and(|conflict| context.model.sees_conflict(&viewer, conflict))
        });
        let electorate = voters.map(|agent| agent.id.clone()).chain([voter.to_owned()]).collect();
        Vote { electorate, ..Vote::default() }
    });
    if !vote.electorate.contains(voter) {
        let message = format!("{voter:?} came after this vote began");
        return Err(Failure::new(&INVALID_PAYLOAD, message));
    }
    vote.cast.insert(voter.to_owned(), winner.to_owned());
    let all = vote.electorate.len();
    let mut counts = std::collections::BTreeMap::new();
    vote.cast.values().for_each(|unit| *counts.entry(unit.clone()).or_insert(0) += 1);
    if let Some((won, _)) = counts.iter().find(|(_, count)| **count * 2 > all) {
        return Ok(Verdict::Wins(won.clone()));
    }
    Ok(if vote.cast.len() == all { Verdict::Escalate } else { Verdict::Pending })
}
