//! DETECT, and what RECORD finds by itself.
//!
//! | method | finds |
//! |---|---|
//! | `semantic` | two units whose vectors are near and whose claims oppose each other |
//! | `temporal` | the same, where the newer one is clearly less sure of itself |
//! | `logical` | an assumption of one against what another says |

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::time::{Duration, Instant};

use omir_core::value::Value;
use omird_text::{Claim, Embedding, Language, sentences};

use crate::answers;
use crate::failure::{DETECTION_TIMEOUT, Failure, UNIT_NOT_FOUND};
use crate::log::{Delta, object};
use crate::model::{Kept, pair};
use crate::params::Params;
use crate::rights::Act;
use crate::turn::{Done, Turn};
use crate::types::{Conflict, Unit};
use crate::words::{
    ConflictStatus, ConflictType, DetectMode, Detection, MemoryType, RelationType, UnitStatus,
};
use crate::work::record;

/// Cosine from which on two texts speak of the same.
const NEAR: f64 = 0.5;
/// Units whose claims are compared with a new one: the nearest.
const MOST_COMPARED: usize = 16;
/// Sentences of a unit that are compared.
const MOST_SENTENCES: usize = 8;
/// By so much less sure, a newer unit against an older one is a matter of time.
const LESS_SURE: f64 = 0.15;
/// Longest time of a check or a scan.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn detect(turn: &mut Turn<'_>, mut params: Params<'_>) -> Done {
    let mode = params.word("mode", DetectMode::WORDS, DetectMode::parse)?;
    let Some(mode) = mode else { return Err(params.fault("mode", "is missing")) };
    let target = params.id("target_id")?;
    let filter = Filter::read(&mut params)?;
    params.finish()?;
    turn.sender()?;
    turn.may(Act::Detect)?;
    turn.check_session(false)?;
    let viewer = turn.viewer();
    let (scanned, found) = match (mode, target) {
        (DetectMode::List, _) => {
            let known = turn.model.conflicts_seen(&viewer).into_iter();
            let known = known.filter(|conflict| filter.takes(turn, conflict));
            let known: Vec<Value> = known.map(answers::conflict).collect::<Result<_, _>>()?;
            return Ok((200, answer(known, 0, 0)));
        }
        (DetectMode::Check, None) => {
            return Err(Failure::payload("/target_id", "is missing; check needs one"));
        }
        (DetectMode::Check, Some(target)) => {
            let kept = turn.visible(target)?;
            if kept.unit.status == UnitStatus::Draft {
                return Err(Failure::unknown(&UNIT_NOT_FOUND, "committed unit", target));
            }
            (1, vec![target.to_owned()])
        }
        (DetectMode::Scan, _) => {
            let all: Vec<String> = turn
                .model
                .all_visible(&viewer)
                .filter(|(_, kept)| is_claim(kept))
                .map(|(id, _)| id.to_owned())
                .collect();
            (all.len(), all)
        }
    };
    let began = Instant::now();
    let mut new = BTreeSet::new();
    let mut read = Read { older_only: mode == DetectMode::Scan, ..Read::default() };
    for id in &found {
        new.extend(of_stored(turn, id, &mut read)?);
        if began.elapsed() > PATIENCE {
            let message =
                format!("{} units take longer than {} s", found.len(), PATIENCE.as_secs());
            return Err(Failure::new(&DETECTION_TIMEOUT, message));
        }
    }
    let done: Vec<String> =
        found.iter().filter(|id| turn.model.deferred.contains(*id)).cloned().collect();
    if !done.is_empty() {
        turn.deltas.push(Delta::Detected { ids: done });
    }
    turn.description = format!("{} of {scanned} units, {} new conflicts", mode.as_str(), new.len());
    let all: Vec<Value> = {
        let added = turn.deltas.iter().filter_map(|delta| match delta {
            Delta::Conflict(conflict) => Some(conflict),
            _ => None,
        });
        let is_of = |conflict: &&Conflict| {
            mode == DetectMode::Scan
                || conflict.units().iter().any(|id| found.iter().any(|one| one == id))
        };
        let known = turn.model.conflicts_seen(&viewer).into_iter();
        let added = added
            .filter(|one| one.units().iter().all(|id| turn.model.visible(&viewer, id).is_some()));
        let all = known.chain(added).filter(is_of).filter(|one| filter.takes(turn, one));
        all.map(answers::conflict).collect::<Result<_, _>>()?
    };
    Ok((200, answer(all, scanned, new.len())))
}

fn answer(conflicts: Vec<Value>, scanned: usize, new: usize) -> Value {
    let coverage = object([("units_scanned", scanned.into()), ("new_conflicts_found", new.into())]);
    object([
        ("status", "ok".into()),
        ("conflicts", Value::Array(conflicts)),
        ("scan_coverage", coverage),
    ])
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

    fn takes(&self, turn: &Turn<'_>, conflict: &Conflict) -> bool {
        let author = |id: &str| {
            let stored = turn.model.units.get(id).map(|kept| &kept.unit);
            stored.or_else(|| turn.units.iter().find(|unit| unit.id == id))
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
fn is_claim(kept: &Kept) -> bool {
    kept.is_live()
        && !kept.is_archived
        && !matches!(kept.unit.of, MemoryType::Question | MemoryType::Contradiction)
}

/// Looks for conflicts of a unit that this operation adds.
pub(crate) fn of_new(turn: &mut Turn<'_>, id: &str) -> Result<Vec<String>, Failure> {
    let Some(unit) = turn.units.iter().find(|unit| unit.id == id).cloned() else {
        return Ok(Vec::new());
    };
    if matches!(unit.of, MemoryType::Question | MemoryType::Contradiction) {
        return Ok(Vec::new());
    }
    let kept = Kept::of(unit.clone(), turn.who.authority);
    look(turn, &unit, &kept, &mut Read::default())
}

/// Looks for conflicts of a unit that is stored.
pub(crate) fn of_stored(
    turn: &mut Turn<'_>,
    id: &str,
    read: &mut Read,
) -> Result<Vec<String>, Failure> {
    let Some(kept) = turn.model.units.get(id).filter(|kept| is_claim(kept)) else {
        return Ok(Vec::new());
    };
    let content = turn.content(id)?;
    look(turn, &Unit { content, ..kept.unit.clone() }, kept, read)
}

/// What was read of units so far: each is read once for all that it is compared with.
#[derive(Default)]
pub(crate) struct Read {
    claims: HashMap<String, Rc<Claims>>,
    /// Each pair is met once: a unit is compared with those before it.
    older_only: bool,
}

impl Read {
    fn claims(&mut self, unit: &Unit) -> Rc<Claims> {
        let known = self.claims.entry(unit.id.clone());
        known.or_insert_with(|| Rc::new(Claims::of(unit))).clone()
    }
}

/// Compares a unit with the nearest that its author's session holds too.
fn look(
    turn: &mut Turn<'_>,
    unit: &Unit,
    kept: &Kept,
    read: &mut Read,
) -> Result<Vec<String>, Failure> {
    let replaced: Vec<&str> = unit
        .relations
        .iter()
        .filter(|relation| relation.of == RelationType::Supersedes)
        .map(|relation| relation.target_id.as_str())
        .collect();
    let mut near: Vec<(f64, &str, &Kept)> = Vec::new();
    for (id, other) in &turn.model.units {
        if *id == unit.id
            || !is_claim(other)
            || other.unit.session() != unit.session()
            || read.older_only && other.unit.epoch > unit.epoch
            || replaced.contains(&id.as_str())
            || turn.model.pairs.contains_key(&pair(id, &unit.id))
        {
            continue;
        }
        let closest = closeness(kept, other);
        if closest >= NEAR {
            near.push((closest, id, other));
        }
    }
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    near.truncate(MOST_COMPARED);
    let mut found = Vec::new();
    let claims = read.claims(unit);
    for (_, id, other) in near {
        let other = match read.claims.contains_key(id) {
            true => other.unit.clone(),
            false => Unit { content: turn.content(id)?, ..other.unit.clone() },
        };
        let theirs = read.claims(&other);
        let Some((detected_by, description)) = claims.against(&theirs, unit, &other) else {
            continue;
        };
        // The older one first.
        let (a, b) = if other.epoch <= unit.epoch { (id, &*unit.id) } else { (&*unit.id, id) };
        let of = kind_of(unit, &other, &unit.content);
        let (a, b) = (a.to_owned(), b.to_owned());
        found.extend(record::conflict(turn, &a, &b, of, detected_by, description));
    }
    Ok(found)
}

/// Returns the cosine of what is nearest of two units: their contents, or an assumption of one and the content of the other.
fn closeness(one: &Kept, other: &Kept) -> f64 {
    let most = |vectors: &[Embedding], content: &Embedding| {
        vectors.iter().map(|vector| vector.cosine(content)).fold(0.0, f64::max)
    };
    one.vector
        .cosine(&other.vector)
        .max(most(&one.assumptions, &other.vector))
        .max(most(&other.assumptions, &one.vector))
}

/// The claims of a unit, and those of its assumptions.
struct Claims {
    said: Vec<Claim>,
    assumed: Vec<Claim>,
}

impl Claims {
    fn of(unit: &Unit) -> Self {
        let language = Language::English;
        let said = sentences(&unit.content).take(MOST_SENTENCES);
        let said = said.map(|sentence| Claim::of(language, sentence)).collect();
        let assumed = unit.confidence.iter().flat_map(|confidence| &confidence.assumptions);
        let assumed = assumed.take(MOST_SENTENCES).map(|text| Claim::of(language, text));
        Self { said, assumed: assumed.collect() }
    }

    /// Returns how another unit opposes this one, and a sentence about it.
    fn against(&self, theirs: &Self, unit: &Unit, other: &Unit) -> Option<(Detection, String)> {
        let opposed = |a: &Claim, b: &Claim| a.opposes(b).is_some();
        if self.said.iter().any(|one| theirs.said.iter().any(|two| opposed(one, two))) {
            let (older, newer) =
                if other.epoch <= unit.epoch { (other, unit) } else { (unit, other) };
            let less_sure = matches!(
                (older.score(), newer.score()),
                (Some(older), Some(newer)) if newer + LESS_SURE <= older
            );
            let (by, why) = if less_sure {
                (Detection::Temporal, "is newer and less sure, and opposes")
            } else {
                (Detection::Semantic, "opposes")
            };
            // Nothing of a content stands in it: a purge must leave none.
            return Some((by, format!("{} {why} {}", newer.id, older.id)));
        }
        let assumed = |claims: &Self, said: &Self| {
            claims.assumed.iter().any(|claim| said.said.iter().any(|one| opposed(claim, one)))
        };
        let (assumes, opposes) = if assumed(self, theirs) {
            (unit, other)
        } else if assumed(theirs, self) {
            (other, unit)
        } else {
            return None;
        };
        Some((Detection::Logical, format!("{} assumes what {} opposes", assumes.id, opposes.id)))
    }
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
