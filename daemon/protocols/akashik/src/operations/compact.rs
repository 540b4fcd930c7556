//! COMPACT: units go to cold storage, are summed up, or are purged. The log keeps every entry.

use std::collections::BTreeMap;

use omir_core::value::Value;

use crate::failure::Failure;
use crate::log::{Delta, object};
use crate::meaning;
use crate::model::IndexedUnit;
use crate::operation_context::{OperationContext, OperationResult};
use crate::operations::record::{NewUnit, add};
use crate::params::Params;
use crate::rights::Act;
use crate::types::{Confidence, Intent, Relation};
use crate::words::{Compaction, MemoryType, Mode, RelationType, UnitStatus};

/// Most units of one COMPACT. More of them take another.
const MOST: usize = 500;
/// Units that one synthesis sums up.
const AT_A_TIME: usize = 10;
/// Tokens of a synthesis.
const TOKENS: usize = 400;

pub(crate) fn compact(
    context: &mut OperationContext<'_>,
    mut params: Params<'_>,
) -> OperationResult {
    let strategy = params.word("strategy", Compaction::WORDS, Compaction::parse)?;
    let Some(strategy) = strategy else { return Err(params.fault("strategy", "is missing")) };
    let filter = Filter::read(&mut params)?;
    let reason = params.text("reason")?.unwrap_or("COMPACT purge").to_owned();
    params.finish()?;
    context.sender()?;
    context.check_session(true)?;
    context.may(match strategy {
        Compaction::Archive => Act::Archive,
        Compaction::Summarize => Act::Summarize,
        Compaction::Purge => Act::Purge,
    })?;
    let viewer = context.viewer();
    let takes = |indexed: &IndexedUnit| {
        let is_new = strategy == Compaction::Purge || !indexed.is_archived;
        let is_sound = strategy != Compaction::Summarize || indexed.is_live();
        is_new && is_sound && filter.takes(context, indexed)
    };
    let chosen: Vec<(String, usize)> = context
        .model
        .all_visible(&viewer)
        .filter(|(_, indexed)| takes(indexed))
        .take(MOST)
        .map(|(id, indexed)| (id.to_owned(), indexed.bytes))
        .collect();
    let bytes: usize = chosen.iter().map(|(_, bytes)| bytes).sum();
    let ids: Vec<String> = chosen.into_iter().map(|(id, _)| id).collect();
    let mut made = 0;
    match strategy {
        Compaction::Archive => archive(context, &ids),
        Compaction::Summarize => {
            made = summarize(context, &ids)?;
            archive(context, &ids);
        }
        Compaction::Purge => {
            let at = context.at.to_owned();
            context.deltas.extend(ids.iter().map(|id| Delta::Purged {
                id: id.clone(),
                at: at.clone(),
                reason: reason.clone(),
            }));
        }
    }
    context.description = format!("{} of {} units", strategy.as_str(), ids.len());
    let reclaimed = (strategy == Compaction::Purge).then_some(bytes);
    let answer = object([
        ("status", "ok".into()),
        ("units_affected", ids.len().into()),
        ("synthesis_units_created", made.into()),
        ("storage_reclaimed_bytes", reclaimed.into()),
        ("unit_ids", ids.into_iter().map(Value::from).collect()),
    ]);
    Ok((200, answer))
}

fn archive(context: &mut OperationContext<'_>, ids: &[String]) {
    context.deltas.extend(ids.iter().map(|id| Delta::Archived { id: id.clone() }));
}

/// Sums up units, those of one session and task together.
fn summarize(context: &mut OperationContext<'_>, ids: &[String]) -> Result<usize, Failure> {
    let mut groups: BTreeMap<(Option<String>, Option<String>), Vec<String>> = BTreeMap::new();
    for id in ids {
        if let Some(indexed) = context.model.units.get(id) {
            let of = (indexed.unit.source.session_id.clone(), indexed.unit.intent.task_id.clone());
            groups.entry(of).or_default().push(id.clone());
        }
    }
    let mut made = 0;
    for ((session, task_id), ids) in groups {
        for part in ids.chunks(AT_A_TIME) {
            let contents: Vec<String> =
                part.iter().map(|id| context.content(id)).collect::<Result<_, _>>()?;
            let text = contents.join("\n");
            let content =
                meaning::summary(&text, TOKENS).unwrap_or_else(|| meaning::head(&text, TOKENS));
            let scores: Vec<f64> = part
                .iter()
                .filter_map(|id| context.model.units.get(id))
                .filter_map(|indexed| indexed.unit.score())
                .collect();
            let score = scores.iter().copied().fold(1.0, f64::min);
            let new_unit = NewUnit {
                mode: Mode::Committed,
                of: MemoryType::Synthesis,
                content,
                intent: Intent {
                    purpose: format!("sum up {} units", part.len()),
                    task_id: task_id.clone(),
                    question: None,
                },
                confidence: Some(Confidence {
                    score: Some(if scores.is_empty() { 0.5 } else { score }),
                    reasoning: Some("the least sure of the units it sums up".to_owned()),
                    ..Confidence::default()
                }),
                relations: part
                    .iter()
                    .map(|id| Relation {
                        of: RelationType::Elaborates,
                        target_id: id.clone(),
                        description: None,
                    })
                    .collect(),
            };
            add(context, new_unit, made)?;
            if let Some(unit) = context.units.last_mut() {
                unit.source.session_id = session.clone();
            }
            made += 1;
        }
    }
    Ok(made)
}

/// A filter of units: each member that is there narrows.
struct Filter {
    max_age: Option<u64>,
    session: Option<String>,
    types: Vec<MemoryType>,
    status: Vec<UnitStatus>,
    ids: Vec<String>,
}

impl Filter {
    fn read(params: &mut Params<'_>) -> Result<Self, Failure> {
        let Some(mut of) = params.object("filter")? else {
            return Ok(Self {
                max_age: None,
                session: None,
                types: Vec::new(),
                status: Vec::new(),
                ids: Vec::new(),
            });
        };
        let filter = Self {
            max_age: of.integer("max_age_epochs", 0)?,
            session: of.id("session_id")?.map(str::to_owned),
            types: of.words("types", MemoryType::WORDS, MemoryType::parse)?,
            status: of.words("status", UnitStatus::WORDS, UnitStatus::parse)?,
            ids: of.texts("unit_ids")?,
        };
        of.finish()?;
        Ok(filter)
    }

    /// A unit is taken if it is older than the age that the filter leaves.
    fn takes(&self, context: &OperationContext<'_>, indexed: &IndexedUnit) -> bool {
        let age = context.epoch.saturating_sub(indexed.unit.epoch);
        self.max_age.is_none_or(|most| age > most)
            && self.session.as_deref().is_none_or(|id| indexed.unit.session() == Some(id))
            && (self.types.is_empty() || self.types.contains(&indexed.unit.of))
            && (self.status.is_empty() || self.status.contains(&indexed.status))
            && (self.ids.is_empty() || self.ids.contains(&indexed.unit.id))
    }
}
