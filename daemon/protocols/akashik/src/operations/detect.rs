//! DETECT, and what RECORD finds by itself.
//!
//! | method | finds |
//! |---|---|
//! | `semantic` | two units whose vectors are near and whose claims oppose each other |
//! | `temporal` | the same, where the newer one is clearly less sure of itself |
//! | `logical` | an assumption of one against what another says |

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use omir_core::json;
use omir_core::value::{Map, Value};

use crate::answers;
use crate::claims::Claims;
use crate::failure::{Failure, UNIT_NOT_FOUND};
use crate::log::{Delta, object};
use crate::model::{IndexedUnit, pair};
use crate::nearby::Meaning;
use crate::operation_context::{OperationContext, OperationResult};
use crate::operations::record;
use crate::params::Params;
use crate::rights::Act;
use crate::types::{Conflict, Unit};
use crate::words::{
    ConflictStatus, ConflictType, DetectMode, MemoryType, RelationType, UnitStatus,
};

/// Cosine from which on two texts speak of the same.
const NEAR: f64 = 0.5;
/// Units whose claims are compared with a new one: the nearest.
const MOST_COMPARED: usize = 16;
/// Longest time of a check or a scan.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// Units that one scan leaves to the field: their ids stand in one entry of the log.
const MOST_LEFT: usize = 4096;
/// Conflicts that one scan finds, from which on it leaves the rest to the field: they stand in that entry as well.
const MOST_FOUND: usize = 500;
/// Bytes of the conflicts that the answer of a check or scan lists: so does the answer.
const MOST_LISTED: usize = 256 << 10;

pub(crate) fn detect(
    context: &mut OperationContext<'_>,
    mut params: Params<'_>,
) -> OperationResult {
    let mode = params.word("mode", DetectMode::WORDS, DetectMode::parse)?;
    let Some(mode) = mode else { return Err(params.fault("mode", "is missing")) };
    let target = params.id("target_id")?;
    let filter = Filter::read(&mut params)?;
    params.finish()?;
    context.sender()?;
    context.may(Act::Detect)?;
    context.check_session(false)?;
    let viewer = context.viewer();
    let found = match (mode, target) {
        (DetectMode::List, _) => {
            let known = context.model.conflicts_seen(&viewer).into_iter();
            let known = known.filter(|conflict| filter.takes(context, conflict));
            let known: Vec<Value> = known.map(answers::conflict).collect::<Result<_, _>>()?;
            return Ok((200, answer(known, coverage(0, 0), false)));
        }
        (DetectMode::Check, None) => {
            return Err(Failure::payload("/target_id", "is missing; check needs one"));
        }
        (DetectMode::Check, Some(target)) => {
            let indexed = context.visible(target)?;
            if indexed.unit.status == UnitStatus::Draft {
                return Err(Failure::unknown(&UNIT_NOT_FOUND, "committed unit", target));
            }
            vec![target.to_owned()]
        }
        (DetectMode::Scan, _) => {
            let all = context.model.all_visible(&viewer).filter(|(_, indexed)| is_claim(indexed));
            all.map(|(id, _)| id.to_owned()).collect()
        }
    };
    let began = Instant::now();
    let mut new = BTreeSet::new();
    // A scan meets each pair once: a unit is compared with those before it.
    let older_only = mode == DetectMode::Scan;
    let patience = context.contents.patience();
    let mut scanned = 0;
    for id in &found {
        new.extend(of_stored(context, id, older_only)?);
        scanned += 1;
        if began.elapsed() > patience || new.len() >= MOST_FOUND {
            break;
        }
    }
    // Conflicts that were found stand. The field looks at the rest by itself: a second DETECT would begin with the same
    // units.
    let (looked_at, left) = found.split_at(scanned);
    if !left.is_empty() {
        let ids = left.iter().take(MOST_LEFT).cloned().collect();
        context.deltas.push(Delta::Deferred { ids });
    }
    let done: Vec<String> =
        looked_at.iter().filter(|id| context.model.deferred.contains(*id)).cloned().collect();
    if !done.is_empty() {
        context.deltas.push(Delta::Detected { ids: done });
    }
    context.description =
        format!("{} of {scanned} units, {} new conflicts", mode.as_str(), new.len());
    let (all, left_out) = {
        let added = context.deltas.iter().filter_map(|delta| match delta {
            Delta::Conflict(conflict) => Some(conflict),
            _ => None,
        });
        let is_of = |conflict: &&Conflict| {
            mode == DetectMode::Scan
                || conflict.units().iter().any(|id| found.iter().any(|one| one == id))
        };
        let known = context.model.conflicts_seen(&viewer).into_iter();
        let added = added.filter(|one| {
            one.units().iter().all(|id| context.model.visible(&viewer, id).is_some())
        });
        let all = known.chain(added).filter(is_of).filter(|one| filter.takes(context, one));
        let all: Vec<&Conflict> = all.collect();
        let mut listed = Vec::new();
        let mut bytes = 0;
        // The newest first: what is left out is what has been known for longest.
        for conflict in all.iter().rev() {
            let shown = answers::conflict(conflict)?;
            bytes += json::to_string(&shown).len();
            if bytes > MOST_LISTED {
                break;
            }
            listed.push(shown);
        }
        listed.reverse();
        let left_out = all.len() - listed.len();
        (listed, left_out)
    };
    let mut coverage = coverage(scanned, new.len());
    if left_out > 0 {
        coverage.insert("conflicts_left_out", left_out);
    }
    Ok((200, answer(all, coverage, !left.is_empty())))
}

/// Returns the answer. One that leaves units for later says so as that of RECORD does.
fn answer(conflicts: Vec<Value>, coverage: Map, is_deferred: bool) -> Value {
    let mut answer = object([
        ("status", "ok".into()),
        ("conflicts", Value::Array(conflicts)),
        ("scan_coverage", coverage.into()),
    ]);
    if is_deferred && let Some(map) = answer.as_object_mut() {
        map.insert("conflict_detection", "deferred");
    }
    answer
}

fn coverage(scanned: usize, new: usize) -> Map {
    let mut map = Map::new();
    map.insert("units_scanned", scanned);
    map.insert("new_conflicts_found", new);
    map
}

/// A filter of conflicts: each list that is not empty narrows.
struct Filter {
    status: Vec<ConflictStatus>,
    types: Vec<ConflictType>,
    agents: Vec<String>,
}

impl Filter {
    fn read(params: &mut Params<'_>) -> Result<Self, Failure> {
        let Some(mut of) = params.object("filter")? else {
            return Ok(Self { status: Vec::new(), types: Vec::new(), agents: Vec::new() });
        };
        let filter = Self {
            status: of.words("status", ConflictStatus::WORDS, ConflictStatus::parse)?,
            types: of.words("types", ConflictType::WORDS, ConflictType::parse)?,
            agents: of.texts("involving_agents")?,
        };
        of.finish()?;
        Ok(filter)
    }

    fn takes(&self, context: &OperationContext<'_>, conflict: &Conflict) -> bool {
        let author = |id: &str| {
            let stored = context.model.units.get(id).map(|indexed| &indexed.unit);
            stored.or_else(|| context.units.iter().find(|unit| unit.id == id))
        };
        (self.status.is_empty() || self.status.contains(&conflict.status))
            && (self.types.is_empty() || self.types.contains(&conflict.of))
            && (self.agents.is_empty()
                || conflict
                    .units()
                    .into_iter()
                    .filter_map(author)
                    .any(|unit| self.agents.contains(&unit.source.agent_id)))
    }
}

/// Returns true if a unit claims something that another may oppose.
fn is_claim(indexed: &IndexedUnit) -> bool {
    indexed.is_live()
        && !indexed.is_archived
        && !matches!(indexed.unit.of, MemoryType::Question | MemoryType::Contradiction)
}

/// Looks for conflicts of a unit that this operation adds.
pub(crate) fn of_new(context: &mut OperationContext<'_>, id: &str) -> Result<Vec<String>, Failure> {
    let Some(unit) = context.units.iter().find(|unit| unit.id == id).cloned() else {
        return Ok(Vec::new());
    };
    if matches!(unit.of, MemoryType::Question | MemoryType::Contradiction) {
        return Ok(Vec::new());
    }
    look(context, &unit, false)
}

/// Looks for conflicts of a unit that is stored.
pub(crate) fn of_stored(
    context: &mut OperationContext<'_>,
    id: &str,
    older_only: bool,
) -> Result<Vec<String>, Failure> {
    let Some(indexed) = context.model.units.get(id).filter(|indexed| is_claim(indexed)) else {
        return Ok(Vec::new());
    };
    let content = context.content(id)?;
    look(context, &Unit { content, ..indexed.unit.clone() }, older_only)
}

/// Compares a unit with the nearest that its author's session holds too.
fn look(
    context: &mut OperationContext<'_>,
    unit: &Unit,
    older_only: bool,
) -> Result<Vec<String>, Failure> {
    let replaced: Vec<&str> = unit
        .relations
        .iter()
        .filter(|relation| relation.of == RelationType::Supersedes)
        .map(|relation| relation.target_id.as_str())
        .collect();
    let counts = |id: &str| {
        let is_other = id != unit.id && !replaced.contains(&id);
        let other = context.model.units.get(id).filter(|_| is_other);
        other.is_some_and(|other| {
            is_claim(other)
                && !(older_only && other.unit.epoch > unit.epoch)
                && !context.model.pairs.contains_key(&pair(id, &unit.id))
        })
    };
    let nearby = context.model.nearby(&unit.source.session_id);
    let near = nearby.map(|one| one.nearest(&Meaning::of(unit), NEAR, MOST_COMPARED, counts));
    let mut found = Vec::new();
    let claims = Claims::of(unit, &unit.content);
    for (_, id) in near.unwrap_or_default() {
        let Some(other) = context.model.units.get(id).map(|other| &other.unit) else { continue };
        let theirs =
            context.contents.known().of(id, || Ok(Claims::of(other, &context.content(id)?)))?;
        let Some((detected_by, description)) = claims.against(&theirs, unit, other) else {
            continue;
        };
        // The older one first.
        let (a, b) = if other.epoch <= unit.epoch { (id, &*unit.id) } else { (&*unit.id, id) };
        let of = kind_of(unit, other, &unit.content);
        let (a, b) = (a.to_owned(), b.to_owned());
        found.extend(record::conflict(context, &a, &b, of, detected_by, description));
    }
    Ok(found)
}

/// Returns the kind of a conflict, by the types of its units and their evidence.
pub(crate) fn kind_of(unit: &Unit, other: &Unit, content: &str) -> ConflictType {
    let plans = |of: MemoryType| matches!(of, MemoryType::Decision | MemoryType::Intention);
    let lower = content.to_lowercase();
    let weighs = ["urgent", "priority", "first of all", "more important", "can wait"];
    let evidence = |unit: &Unit| unit.confidence.clone().unwrap_or_default().evidence;
    let shared = evidence(unit);
    if weighs.iter().any(|word| lower.contains(word)) && (plans(unit.of) || plans(other.of)) {
        ConflictType::Priority
    } else if plans(unit.of) && plans(other.of) {
        ConflictType::Strategic
    } else if evidence(other).iter().any(|one| shared.contains(one)) {
        ConflictType::Interpretive
    } else {
        ConflictType::Factual
    }
}
