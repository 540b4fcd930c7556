//! RECORD: the one way in for memory.

use omir_core::value::Value;

use crate::failure::{
    Failure, INSUFFICIENT_AUTHORITY, INVALID_TYPE, MISSING_CONFIDENCE, MISSING_INTENT,
    UNIT_NOT_FOUND, quoted,
};
use crate::log::{Delta, object};
use crate::machines::{CONFLICTS, ConflictCause, UNITS, UnitCause, next};
use crate::model::pair;
use crate::operation_context::{OperationContext, OperationResult};
use crate::operations::detect;
use crate::params::{LONGEST_ID, LONGEST_TEXT, Params};
use crate::rights::{Act, STANDARD};
use crate::types::{Confidence, Conflict, Intent, Relation, Source, Unit};
use crate::words::{ConflictType, Detection, MemoryType, Mode, RelationType, UnitStatus};

/// Most bytes of a content.
const MOST_CONTENT: usize = 64 << 10;
/// Members that the field sets itself.
const OURS: [&str; 4] = ["id", "epoch", "source", "status"];
/// Roles that only look, whatever their number: `docs/akashik.md`, "Authority".
const ONLY_LOOK: [&str; 2] = ["observer", "audit"];

pub(crate) fn record(
    context: &mut OperationContext<'_>,
    mut params: Params<'_>,
) -> OperationResult {
    let sender = context.sender()?;
    let new_unit = NewUnit::read(&mut params)?;
    params.finish()?;
    context.may(if new_unit.mode == Mode::Draft {
        Act::RecordDraft
    } else {
        Act::RecordCommitted
    })?;
    if context.authority < STANDARD && ONLY_LOOK.contains(&sender.role.to_lowercase().as_str()) {
        let message =
            format!("role {:?} only looks: it records nothing, drafts neither", sender.role);
        return Err(Failure::new(&INSUFFICIENT_AUTHORITY, message));
    }
    context.check_session(true)?;
    let of = new_unit.of;
    let id = add(context, new_unit, 0)?;
    let explicit = relate(context, &id)?;
    let (conflicts, is_deferred) = if status(context, &id) == UnitStatus::Draft {
        (explicit, false)
    } else if context.is_busy {
        context.deltas.push(Delta::Deferred { ids: vec![id.clone()] });
        (explicit, true)
    } else {
        let found = detect::of_new(context, &id)?;
        (explicit.into_iter().chain(found).collect(), false)
    };
    context.description = format!("{} {id} by {}", of.as_str(), sender.id);
    let mut answer = object([
        ("status", "accepted".into()),
        ("memory_unit_id", id.into()),
        ("epoch", context.epoch.into()),
        ("conflicts_detected", conflicts.into_iter().map(Value::from).collect()),
    ]);
    if is_deferred && let Some(map) = answer.as_object_mut() {
        map.insert("conflict_detection", "deferred");
    }
    Ok((201, answer))
}

fn status(context: &OperationContext<'_>, id: &str) -> UnitStatus {
    context.status_of(id).unwrap_or(UnitStatus::Draft)
}

/// A unit as it is asked for.
pub(crate) struct NewUnit {
    pub(crate) mode: Mode,
    pub(crate) of: MemoryType,
    pub(crate) content: String,
    pub(crate) intent: Intent,
    pub(crate) confidence: Option<Confidence>,
    pub(crate) relations: Vec<Relation>,
}

impl NewUnit {
    fn read(params: &mut Params<'_>) -> Result<Self, Failure> {
        for name in OURS {
            if params.value(name).is_some() {
                return Err(params.fault(name, "is set by the field: leave it out"));
            }
        }
        let no_intent =
            || Failure::new(&MISSING_INTENT, "payload/intent/purpose is missing or empty");
        let Some(mut of) = params.object("intent")? else { return Err(no_intent()) };
        let intent = Intent {
            purpose: of.text("purpose")?.ok_or_else(no_intent)?.to_owned(),
            task_id: of.id("task_id")?.map(str::to_owned),
            question: of.text("question")?.map(str::to_owned),
        };
        of.finish()?;
        let mode = params.word("mode", Mode::WORDS, Mode::parse)?.unwrap_or(Mode::Committed);
        let of = params.text("type")?.unwrap_or_default();
        let Some(of) = MemoryType::parse(of) else {
            let message =
                format!("payload/type: {} is none of {}", quoted(of), MemoryType::WORDS.join(", "));
            return Err(Failure::new(&INVALID_TYPE, message));
        };
        let confidence = read_confidence(params)?;
        let is_whole =
            confidence.as_ref().is_some_and(|one| one.score.is_some() && one.reasoning.is_some());
        if mode == Mode::Committed && !is_whole {
            let message =
                "a committed unit needs payload/confidence/score and payload/confidence/reasoning";
            return Err(Failure::new(&MISSING_CONFIDENCE, message));
        }
        let content = params.long_text("content", MOST_CONTENT)?.unwrap_or_default();
        if content.trim().is_empty() {
            return Err(params.fault("content", "is missing or empty"));
        }
        let relations = read_relations(params)?;
        Ok(Self { mode, of, content: content.to_owned(), intent, confidence, relations })
    }
}

fn read_confidence(params: &mut Params<'_>) -> Result<Option<Confidence>, Failure> {
    let Some(mut of) = params.object("confidence")? else { return Ok(None) };
    let confidence = Confidence {
        score: of.score("score")?,
        reasoning: of.text("reasoning")?.map(str::to_owned),
        evidence: of.texts("evidence")?,
        assumptions: of.texts("assumptions")?,
    };
    of.finish()?;
    Ok(Some(confidence))
}

fn read_relations(params: &mut Params<'_>) -> Result<Vec<Relation>, Failure> {
    let mut relations: Vec<Relation> = Vec::new();
    for mut one in params.objects("relations")? {
        let Some(of) = one.word("type", RelationType::WORDS, RelationType::parse)? else {
            return Err(one.fault("type", "is missing"));
        };
        let target_id = one.needed_id("target_id")?.to_owned();
        let description = one.long_text("description", LONGEST_TEXT)?.map(str::to_owned);
        one.finish()?;
        if !relations.iter().any(|known| known.of == of && known.target_id == target_id) {
            relations.push(Relation { of, target_id, description });
        }
    }
    Ok(relations)
}

/// Adds a unit of the sender to what is changed, the `taken`th of this operation.
pub(crate) fn add(
    context: &mut OperationContext<'_>,
    new_unit: NewUnit,
    taken: usize,
) -> Result<String, Failure> {
    let cause = if new_unit.mode == Mode::Draft { UnitCause::Draft } else { UnitCause::Commit };
    let status =
        next(UNITS, None, cause).ok_or_else(|| Failure::internal("no row for a new unit"))?;
    let id = context.new_id("mem", taken);
    let agent_id = context.agent_id().to_owned();
    let agent_role = context.model.agent(&agent_id).map(|agent| agent.role.clone());
    let source = Source {
        agent_id,
        agent_role: agent_role.unwrap_or_default(),
        session_id: context.envelope.session_id.clone(),
        timestamp: context.at.to_owned(),
    };
    debug_assert!(id.len() <= LONGEST_ID);
    context.units.push(Unit {
        id: id.clone(),
        mode: new_unit.mode,
        of: new_unit.of,
        content: new_unit.content,
        intent: new_unit.intent,
        confidence: new_unit.confidence,
        source,
        relations: new_unit.relations,
        status,
        epoch: context.epoch,
    });
    context.deltas.push(Delta::Unit { id: id.clone(), digest: None });
    Ok(id)
}

/// Carries out what relations of a new unit do: `supersedes` replaces, `contradicts` is a conflict. Returns the conflicts.
pub(crate) fn relate(context: &mut OperationContext<'_>, id: &str) -> Result<Vec<String>, Failure> {
    let Some(unit) = context.units.iter().find(|unit| unit.id == id).cloned() else {
        return Ok(Vec::new());
    };
    let mut conflicts = Vec::new();
    for relation in &unit.relations {
        let target = &relation.target_id;
        match relation.of {
            RelationType::Supersedes => {
                let kept = context.visible(target)?;
                // A draft is a proposal: what it would replace stays until it is committed.
                if unit.mode == Mode::Committed {
                    if kept.unit.source.agent_id != context.agent_id() {
                        context.outranks([kept])?;
                    }
                    context.move_unit(target, UnitCause::Supersede)?;
                }
            }
            RelationType::Contradicts => {
                let kept = context.visible(target)?;
                if unit.mode == Mode::Draft {
                    continue;
                }
                // A unit that was replaced or taken back already is no side of a conflict.
                if matches!(kept.status, UnitStatus::Superseded | UnitStatus::Retracted) {
                    continue;
                }
                if kept.unit.status == UnitStatus::Draft {
                    return Err(Failure::unknown(&UNIT_NOT_FOUND, "committed unit", target));
                }
                // Nothing of a content stands in it: a purge must leave none.
                let description = format!("{id} contradicts {target}");
                let of = detect::kind_of(&unit, &kept.unit, &unit.content);
                conflicts.extend(conflict(
                    context,
                    target,
                    id,
                    of,
                    Detection::Explicit,
                    description,
                ));
            }
            _ => {}
        }
    }
    Ok(conflicts)
}

/// Adds a conflict between two units, unless they have or had one. Both are contested from then on.
pub(crate) fn conflict(
    context: &mut OperationContext<'_>,
    unit_a: &str,
    unit_b: &str,
    of: ConflictType,
    detected_by: Detection,
    description: String,
) -> Option<String> {
    let both = pair(unit_a, unit_b);
    let new = context.deltas.iter().filter_map(|delta| match delta {
        Delta::Conflict(conflict) => Some(conflict),
        _ => None,
    });
    let new: Vec<&Conflict> = new.collect();
    if context.model.pairs.contains_key(&both)
        || new.iter().any(|one| pair(&one.unit_a, &one.unit_b) == both)
    {
        return None;
    }
    let id = context.new_id("conflict", new.len());
    let status = next(CONFLICTS, None, ConflictCause::Detect)?;
    context.deltas.push(Delta::Conflict(Conflict {
        id: id.clone(),
        of,
        status,
        unit_a: unit_a.to_owned(),
        unit_b: unit_b.to_owned(),
        description,
        detected_by,
        resolution: None,
        vote: None,
    }));
    for unit in [unit_a, unit_b] {
        // A unit that is replaced already stays so.
        let _ = context.move_unit(unit, UnitCause::Contest);
    }
    Some(id)
}
