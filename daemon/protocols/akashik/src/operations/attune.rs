//! ATTUNE: what matters to an agent now. The field decides, by many small reasons.

use std::collections::{BTreeSet, HashMap, HashSet};

use omir_core::value::{Map, Value};
use omird_embedding::Probe;

use crate::answers;
use crate::failure::Failure;
use crate::log::object;
use crate::meaning;
use crate::model::{IndexedUnit, Model};
use crate::nearby::{Agreement, RobotMemory};
use crate::operation_context::{OperationContext, OperationResult, value};
use crate::params::Params;
use crate::rights::Act;
use crate::store::MOST_SEARCHED;
use crate::types::Unit;
use crate::words::{Form, MemoryType, UnitStatus};

/// Weight of recency where the scope states none.
const RECENCY: f64 = 0.1;
/// Tokens of a unit in the form `summary`.
const SUMMARY: usize = 40;
/// Least tokens that a unit is shortened to, to keep a budget.
const LEAST_SUMMARY: usize = 8;
/// Most units of an answer.
const MOST_UNITS: u64 = 1000;
/// Most memories of the robot in an answer.
const MOST_ROBOT: usize = 50;

/// The scope of an agent.
pub(crate) struct Scope {
    pub(crate) role: String,
    max_units: usize,
    since_epoch: Option<u64>,
    max_tokens: Option<usize>,
    pub(crate) interests: Vec<String>,
    pub(crate) active_task_id: Option<String>,
    threshold: f64,
    recency_weight: f64,
    layers: Vec<Layer>,
    include_own: bool,
    include_archived: bool,
}

/// A temporal layer: what is concluded, in progress or planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layer {
    Past,
    Present,
    Future,
}

impl Layer {
    const WORDS: [&'static str; 3] = ["past", "present", "future"];

    fn parse(text: &str) -> Option<Self> {
        match text {
            "past" => Some(Self::Past),
            "present" => Some(Self::Present),
            "future" => Some(Self::Future),
            _ => None,
        }
    }

    /// No unit states its layer: plans are ahead, questions and what is contested is in progress, the rest is concluded.
    fn of(indexed: &IndexedUnit) -> Self {
        match (indexed.unit.of, indexed.status) {
            (MemoryType::Intention, _) => Self::Future,
            (MemoryType::Question | MemoryType::Assumption, _) | (_, UnitStatus::Contested) => {
                Self::Present
            }
            _ => Self::Past,
        }
    }
}

impl Scope {
    fn read(params: &mut Params<'_>) -> Result<Self, Failure> {
        let Some(mut of) = params.object("scope")? else {
            return Err(params.fault("scope", "is missing"));
        };
        let role = of.said("role")?.to_owned();
        let Some(max_units) = of.integer("max_units", 1)? else {
            return Err(of.fault("max_units", "is missing"));
        };
        let top = params.integer("since_epoch", 0)?;
        let since = of.integer("since_epoch", 0)?;
        // Other members of a scope are ignored: its schema is open.
        Ok(Self {
            role,
            max_units: max_units.min(MOST_UNITS) as usize,
            since_epoch: top.or(since),
            max_tokens: of
                .integer("max_tokens", 1)?
                .map(|most| usize::try_from(most).unwrap_or(usize::MAX)),
            interests: of.texts("interests")?,
            active_task_id: of.id("active_task_id")?.map(str::to_owned),
            threshold: of.share("relevance_threshold")?.unwrap_or(0.0),
            recency_weight: of.share("recency_weight")?.unwrap_or(RECENCY),
            layers: of.words("temporal_layers", &Layer::WORDS, Layer::parse)?,
            include_own: of.flag("include_own")?.unwrap_or(false),
            include_archived: of.flag("include_archived")?.unwrap_or(false),
        })
    }
}

pub(crate) fn attune(
    context: &mut OperationContext<'_>,
    mut params: Params<'_>,
) -> OperationResult {
    let scope = Scope::read(&mut params)?;
    let hint = params.text("context_hint")?;
    let form = params.word("format", Form::WORDS, Form::parse)?.unwrap_or(Form::Full);
    params.finish()?;
    let sender = context.sender()?;
    context.may(Act::Attune)?;
    context.check_session(false)?;
    let viewer = context.viewer();
    let mut words = vec![scope.role.as_str()];
    words.extend(scope.interests.iter().chain(&sender.interests).map(String::as_str));
    words.extend(hint);
    let query = words.join(" ");
    let ranks = Ranks::new(context, &scope, &query)?;
    let is_wanted = |indexed: &IndexedUnit| {
        (scope.include_own || indexed.unit.source.agent_id != viewer.agent_id)
            && (indexed.is_live() || scope.include_own && indexed.status == UnitStatus::Draft)
            && (scope.include_archived || !indexed.is_archived)
            && scope.since_epoch.is_none_or(|since| indexed.unit.epoch >= since)
            && (scope.layers.is_empty() || scope.layers.contains(&Layer::of(indexed)))
    };
    let mut candidates: Vec<Candidate<'_>> = Vec::new();
    for (id, indexed) in
        context.model.all_visible(&viewer).filter(|(_, indexed)| is_wanted(indexed))
    {
        let (score, reason) = ranks.of(context.model, id, indexed);
        if score >= scope.threshold {
            candidates.push(Candidate {
                score,
                reason,
                epoch: indexed.unit.epoch,
                what: CandidateContent::Unit(id, indexed),
            });
        }
    }
    let mut searched = None;
    if context.who.reads_robot && scope.since_epoch.is_none_or(|since| since == 0) {
        let most = MOST_ROBOT.min(scope.max_units);
        let (memories, is_whole) = context.contents.robot(&query, most)?;
        searched = (!is_whole).then_some(MOST_SEARCHED);
        for memory in memories {
            let score = memory.score.clamp(0.0, 1.0);
            if score >= scope.threshold {
                let reason = "the robot remembers it".to_owned();
                candidates.push(Candidate {
                    score,
                    reason,
                    epoch: 0,
                    what: CandidateContent::Robot(Box::new(memory)),
                });
            }
        }
    }
    // Ties go to the newer unit, so that the order depends on nothing but the field.
    candidates.sort_by(|a, b| {
        b.score.total_cmp(&a.score).then(b.epoch.cmp(&a.epoch)).then_with(|| a.id().cmp(b.id()))
    });
    let available = candidates.len();
    candidates.truncate(scope.max_units);
    let (record, used) = packed(context, candidates, form, scope.max_tokens)?;
    let conflicts = context.model.conflicts_seen(&viewer).into_iter().filter(|one| one.is_open());
    let conflicts: Vec<Value> = conflicts.map(answers::conflict).collect::<Result<_, _>>()?;
    let mut budget = object([
        ("units_returned", record.len().into()),
        ("units_available", available.into()),
        ("tokens_used", scope.max_tokens.map(|_| used).into()),
        ("tokens_budget", scope.max_tokens.into()),
    ]);
    if let (Some(searched), Some(budget)) = (searched, budget.as_object_mut()) {
        budget.insert("robot_records_searched", searched);
    }
    let answer = object([
        ("status", "ok".into()),
        ("record", Value::Array(record)),
        ("conflicts", Value::Array(conflicts)),
        ("context_budget", budget),
        ("epoch", context.epoch.into()),
    ]);
    Ok((200, answer))
}

/// A candidate.
struct Candidate<'a> {
    score: f64,
    reason: String,
    epoch: u64,
    what: CandidateContent<'a>,
}

enum CandidateContent<'a> {
    Unit(&'a str, &'a IndexedUnit),
    Robot(Box<RobotMemory>),
}

impl Candidate<'_> {
    fn id(&self) -> &str {
        match &self.what {
            CandidateContent::Unit(id, _) => id,
            CandidateContent::Robot(memory) => &memory.unit.id,
        }
    }
}

/// Writes the units of an answer, the best first, within a budget of tokens. One that does not fit is shortened, and left out
/// where that does not help; a shorter one behind it may fit.
fn packed(
    context: &OperationContext<'_>,
    candidates: Vec<Candidate<'_>>,
    form: Form,
    budget: Option<usize>,
) -> Result<(Vec<Value>, usize), Failure> {
    let mut left = budget.unwrap_or(usize::MAX);
    let mut used = 0;
    let mut record = Vec::new();
    for Candidate { score, reason, what, .. } in candidates {
        let whole = match what {
            CandidateContent::Robot(memory) => memory.unit,
            CandidateContent::Unit(id, indexed) => {
                // One that the owner has forgotten a moment ago is gone.
                let Some(unit) = context.stored(id)? else { continue };
                Unit { status: indexed.status, ..unit }
            }
        };
        let mut members = Map::new();
        if form == Form::IdsOnly {
            members.insert("memory_unit", object([("id", whole.id.as_str().into())]));
            members.insert("relevance_score", rounded(score));
            members.insert("relevance_reason", reason);
            members.insert("format", "ids_only");
            record.push(Value::Object(members));
            continue;
        }
        let tokens = meaning::tokens(&whole.content);
        let most = if form == Form::Summary { left.min(SUMMARY) } else { left };
        let (unit, shown, cost) = if tokens <= most {
            (whole, "full", tokens)
        } else if most < LEAST_SUMMARY {
            continue;
        } else {
            let Some(content) = meaning::summary(&whole.content, most) else { continue };
            let cost = meaning::tokens(&content);
            (Unit { content, ..whole }, "summary", cost)
        };
        left -= cost;
        used += cost;
        members.insert("memory_unit", value(&unit)?);
        members.insert("relevance_score", rounded(score));
        members.insert("relevance_reason", reason);
        members.insert("format", shown);
        record.push(Value::Object(members));
    }
    Ok((record, used))
}

fn rounded(score: f64) -> Value {
    Value::from((score * 1e4).round() / 1e4)
}

/// What units are ranked by.
pub(crate) struct Ranks {
    /// The query; `None` if it has no words.
    probe: Option<Probe>,
    /// Agreement with the words, of those units that have some.
    agreements: HashMap<String, Agreement>,
    stems: HashSet<u64>,
    task: Option<String>,
    /// Tasks that the active one depends on, or that depend on it.
    near_tasks: BTreeSet<String>,
    recency_weight: f64,
    newest: u64,
    oldest: u64,
}

impl Ranks {
    fn new(context: &OperationContext<'_>, scope: &Scope, query: &str) -> Result<Self, Failure> {
        let mut agreements = HashMap::new();
        context.contents.ranked(query, &mut |id, agreement| {
            agreements.insert(id.to_owned(), agreement);
        })?;
        let mut ranks = Self::bare(
            context,
            query,
            scope.active_task_id.as_deref().or_else(|| {
                context
                    .model
                    .agent(context.agent_id())
                    .and_then(|agent| agent.current_task_id.as_deref())
            }),
        );
        ranks.agreements = agreements;
        ranks.recency_weight = scope.recency_weight;
        Ok(ranks)
    }

    /// Returns ranks without the index: what a unit is worth to an agent that is told of it.
    fn bare(context: &OperationContext<'_>, query: &str, task: Option<&str>) -> Self {
        let epochs = || context.model.order.keys().map(|(epoch, _)| *epoch);
        Self::of_model(context.model, query, task, epochs().next(), epochs().next_back())
    }

    fn of_model(
        model: &Model,
        query: &str,
        task: Option<&str>,
        oldest: Option<u64>,
        newest: Option<u64>,
    ) -> Self {
        let near = model.tasks.values().filter(|other| {
            let depends = |id: &str| other.depends_on.iter().any(|on| on == id);
            task.is_some_and(|task| {
                depends(task)
                    || model.tasks.get(task).is_some_and(|own| own.depends_on.contains(&other.id))
            })
        });
        Self {
            probe: meaning::embed(query).as_ref().map(Probe::of),
            agreements: HashMap::new(),
            stems: meaning::stems(query).into_iter().collect(),
            task: task.map(str::to_owned),
            near_tasks: near.map(|task| task.id.clone()).collect(),
            recency_weight: RECENCY,
            newest: newest.unwrap_or_default(),
            oldest: oldest.unwrap_or_default(),
        }
    }

    /// Returns the ranks by which an agent is told of units.
    pub(crate) fn for_push(model: &Model, query: &str, task: Option<&str>) -> Self {
        Self::of_model(model, query, task, None, None)
    }

    /// Returns the relevance of a unit that is new.
    pub(crate) fn of_new(&self, model: &Model, indexed: &IndexedUnit) -> f64 {
        self.of(model, &indexed.unit.id, indexed).0
    }

    /// Returns the score of a unit in [0, 1], and its reasons in words.
    fn of(&self, model: &Model, id: &str, indexed: &IndexedUnit) -> (f64, String) {
        let agreement = self.agreements.get(id);
        // A unit that the model has no vector of yet is compared without it.
        let hashed =
            || self.probe.as_ref().map_or(0.0, |probe| model.cosine(indexed, probe).max(0.0));
        let meant = agreement.and_then(|one| one.cosine).unwrap_or_else(hashed);
        let text = agreement.map_or(0.0, |one| one.words);
        let role = indexed.purpose.iter().filter(|stem| self.stems.contains(stem)).count() as f64;
        let role = role / self.stems.len().clamp(1, 4) as f64;
        let task = indexed.unit.intent.task_id.as_ref();
        let task = match (&self.task, task) {
            (Some(active), Some(of)) if active == of => 1.0,
            (Some(_), Some(of)) if self.near_tasks.contains(of) => 0.6,
            _ => 0.0,
        };
        let sources = (indexed.supporters.len() as f64 / 3.0).min(1.0);
        let parts = [
            (0.35, meant, "near in meaning"),
            (0.2, text, "shares words"),
            (0.1, role.min(1.0), "its purpose fits the role"),
            (0.15, weight_of(indexed.unit.of), "of a type that counts"),
            (0.1, indexed.unit.score().unwrap_or(0.5), "sure of itself"),
            (0.05, sources, "supported by others"),
            (if self.task.is_some() { 0.3 } else { 0.0 }, task, "serves the task"),
        ];
        let total: f64 = parts.iter().map(|(weight, _, _)| weight).sum();
        let score: f64 = parts.iter().map(|(weight, part, _)| weight * part).sum::<f64>() / total;
        let span = self.newest.saturating_sub(self.oldest).max(1) as f64;
        let recency = 1.0 - self.newest.saturating_sub(indexed.unit.epoch) as f64 / span;
        let share = self.recency_weight;
        let score = (1.0 - share) * score + share * recency.clamp(0.0, 1.0);
        let mut why: Vec<(f64, &str)> =
            parts.iter().map(|(weight, part, why)| (weight * part / total, *why)).collect();
        why.push((share * recency, "recent"));
        why.sort_by(|a, b| b.0.total_cmp(&a.0));
        let why: Vec<&str> =
            why.iter().filter(|one| one.0 > 0.02).take(3).map(|one| one.1).collect();
        let of = indexed.unit.of.as_str().replace('_', " ");
        let why = if why.is_empty() { "little speaks for it".to_owned() } else { why.join(", ") };
        (score.clamp(0.0, 1.0), format!("{of} by {}: {why}", indexed.unit.source.agent_role))
    }
}

/// Returns how much a type counts by itself.
fn weight_of(of: MemoryType) -> f64 {
    match of {
        MemoryType::Decision | MemoryType::Contradiction | MemoryType::HumanDirective => 1.0,
        MemoryType::Constraint | MemoryType::Correction => 0.9,
        MemoryType::Synthesis => 0.8,
        MemoryType::Finding => 0.7,
        MemoryType::Intention | MemoryType::Question => 0.6,
        MemoryType::Assumption => 0.5,
        MemoryType::Observation => 0.4,
    }
}
