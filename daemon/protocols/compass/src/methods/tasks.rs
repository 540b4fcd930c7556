//! Tasks and their stages: opened by the first memory, moved on, completed. All steps of a call are one write.

use std::collections::HashSet;

use omir_core::instant::Timestamp;
use omir_core::model::{ExperienceType, Kind, Label};

use omird_text::TokenCounter;

use crate::call::Call;
use crate::compress::{self, Compressed, InForce, Load, Source};
use crate::failure::Failure;
use crate::methods::modelled::improved;
use crate::names::Sort;
use crate::state::{
    AgentSettings, Compression, CriticalPart, Memory, Metric, Stage, StageNote, Task,
};
use crate::store::{Batch, Shape, Store, Stored};
use crate::words::{StageType, TaskStatus};

/// Metrics of compressions that a stage or a task keeps.
const MOST_METRICS: usize = 8;
/// Memories that the record of a completed stage names, at most. Without a bound the record of a long stage would become too
/// large to be written, and the stage could never be completed.
const MOST_REFS: usize = 1000;
/// Most bytes of a summary, about. A record has a bound, and holds the summary twice.
const MOST_SUMMARY: usize = 128 << 10;

/// A task that a call opens or changes, until it is written.
pub(crate) struct Course {
    /// The task as it will be.
    pub(crate) task: Task,
    /// The task as it is stored, unless the call opens it.
    pub(crate) before: Option<Stored<Task>>,
    /// True if the task must be written.
    pub(crate) is_changed: bool,
}

/// The texts with which a caller completes a stage.
#[derive(Debug, Clone, Default)]
pub(crate) struct Completion<'a> {
    /// The caller's summary, instead of one that is made of the memories.
    pub(crate) summary: Option<&'a str>,
    /// The caller's insights, instead of those that are made of the memories.
    pub(crate) insights: Option<Vec<String>>,
}

impl Course {
    /// Begins with a task that is stored.
    pub(crate) fn of(before: Stored<Task>) -> Self {
        Self { task: before.state.clone(), before: Some(before), is_changed: false }
    }

    /// Opens a task.
    pub(crate) fn open(call: &Call<'_>, id: &str, agent: &str, now: Timestamp) -> Self {
        let now = Store::stamp(now);
        let task = Task {
            tenant: call.store.tenant().to_owned(),
            task_id: id.to_owned(),
            agent_id: agent.to_owned(),
            task_goal: String::new(),
            critical_constraints: Vec::new(),
            status: TaskStatus::Active,
            current_stage_id: None,
            stages: Vec::new(),
            task_progress_summary: None,
            critical_facts: Vec::new(),
            has_more_facts: false,
            performance_metrics: Default::default(),
            compression: Compression::default(),
            metrics: Vec::new(),
            uses: Default::default(),
            has_handles: true,
            created_at: now.clone(),
            updated_at: now,
        };
        Self { task, before: None, is_changed: true }
    }

    /// Begins a stage.
    pub(crate) fn begin(
        &mut self,
        call: &Call<'_>,
        batch: &mut Batch,
        stage_type: StageType,
        now: Timestamp,
    ) -> Result<String, Failure> {
        let id = call.store.new_id();
        let at = Store::stamp(now);
        let stage = Stage {
            tenant: call.store.tenant().to_owned(),
            stage_id: id.clone(),
            task_id: self.task.task_id.clone(),
            agent_id: self.task.agent_id.clone(),
            stage_type,
            stage_summary: String::new(),
            stage_insights: Vec::new(),
            raw_memory_refs: Vec::new(),
            memory_count: None,
            has_more_facts: false,
            relevance_score: 1.0,
            compression_ratio: None,
            compression_model: None,
            created_at: at.clone(),
            updated_at: at.clone(),
            completed_at: None,
            critical_facts: Vec::new(),
            metrics: Vec::new(),
        };
        let shape = shape_of_stage(call, batch, &stage)?;
        call.store.add(batch, Sort::Stage, &stage, &shape)?;
        let note = StageNote {
            stage_id: id.clone(),
            stage_type,
            began_at: at,
            is_completed: false,
            input_tokens: None,
        };
        self.task.stages.push(note);
        self.task.current_stage_id = Some(id.clone());
        self.is_changed = true;
        Ok(id)
    }

    /// Moves on to a stage of another type. A current stage without memories is not completed: it takes that type itself.
    pub(crate) fn move_on(
        &mut self,
        call: &Call<'_>,
        batch: &mut Batch,
        stage_type: StageType,
        now: Timestamp,
    ) -> Result<String, Failure> {
        if let Some(id) = self.task.current_stage_id.clone() {
            let stored = current_stage(call, &id)?;
            let memories = memories_of_stage(call, &id)?;
            if memories.is_empty() {
                let mut stage = stored.state.clone();
                stage.stage_type = stage_type;
                stage.updated_at = Store::stamp(now);
                let shape = shape_of_stage(call, batch, &stage)?;
                call.store.change(batch, &stored, &stage, &shape)?;
                for note in self.task.stages.iter_mut().filter(|note| note.stage_id == id) {
                    note.stage_type = stage_type;
                }
                self.is_changed = true;
                return Ok(id);
            }
            self.complete(call, batch, stored, &memories, &Completion::default(), now)?;
        }
        self.begin(call, batch, stage_type, now)
    }

    /// Completes a stage: makes its summary and facts, and adds them to those of the task.
    pub(crate) fn complete(
        &mut self,
        call: &Call<'_>,
        batch: &mut Batch,
        stored: Stored<Stage>,
        memories: &[Stored<Memory>],
        how: &Completion<'_>,
        now: Timestamp,
    ) -> Result<(Stage, Option<Metric>), Failure> {
        let mut stage = stored.state.clone();
        let mut metric = None;
        let has_summary = how.summary.is_some() || call.settings.stage_completion_auto_compress;
        if has_summary && !memories.is_empty() {
            let force = self.in_force(call, memories)?;
            let made = compressed(call, &self.task, memories, force.stage_ratio, how.summary)?;
            metric = Some(take_summary(call, &mut stage, made, now));
        }
        if let Some(insights) = &how.insights {
            stage.stage_insights.clone_from(insights);
        }
        let ids = memories.iter().map(|stored| stored.state.memory_id.clone());
        stage.raw_memory_refs = ids.take(MOST_REFS).collect();
        stage.memory_count = u64::try_from(memories.len()).ok();
        stage.completed_at = Some(Store::stamp(now));
        stage.updated_at = Store::stamp(now);
        let shape = shape_of_stage(call, batch, &stage)?;
        call.store.change(batch, &stored, &stage, &shape)?;
        for note in self.task.stages.iter_mut().filter(|note| note.stage_id == stage.stage_id) {
            note.is_completed = true;
            note.input_tokens = metric.as_ref().map(|metric| metric.input_tokens);
        }
        self.task.current_stage_id = None;
        self.keep_facts(&stage.critical_facts);
        self.summarise(call, Some(&stage), None, false, now)?;
        self.is_changed = true;
        Ok((stage, metric))
    }

    /// Makes the summary of the task again out of its completed stages. `newest` is a stage that is completed now and not written
    /// yet. `by_model` lets a model write it: false at the end of a stage, whose own summary is the one that a call waits for.
    /// Returns `None` if no stage has facts or a summary.
    pub(crate) fn summarise(
        &mut self,
        call: &Call<'_>,
        newest: Option<&Stage>,
        ratio: Option<f64>,
        by_model: bool,
        now: Timestamp,
    ) -> Result<Option<Metric>, Failure> {
        let mut sources = Vec::new();
        for note in self.task.stages.iter().filter(|note| note.is_completed) {
            let stage = match newest.filter(|stage| stage.stage_id == note.stage_id) {
                Some(stage) => stage.clone(),
                // A stage that is lost or forgotten is skipped, so that the task can go on.
                None => match call.store.get_readable::<Stage>(Sort::Stage, &note.stage_id)? {
                    Some(stored) => stored.state,
                    None => continue,
                },
            };
            // Facts come first: of equal sentences the first one is kept, and facts must stay.
            for fact in &stage.critical_facts {
                sources.push(source(fact, 1.0, CriticalPart::All));
            }
            let relevance = stage.relevance_score * worth_of(stage.stage_type);
            sources.push(source(&stage.stage_summary, relevance, CriticalPart::Constraints));
        }
        if sources.iter().all(|source| source.text.trim().is_empty()) {
            return Ok(None);
        }
        let ratio = match ratio {
            Some(ratio) => ratio,
            None => self.in_force(call, &[])?.task_ratio,
        };
        let made = compress::compress(&sources, ratio, None, call.settings.token_counter)?;
        let made = if by_model { improved(call, &self.task, &sources, made)? } else { made };
        let metric = metric(call, &made, "task", now);
        let metric = Metric { task_id: Some(self.task.task_id.clone()), ..metric };
        // A summary by a caller or a model may state facts that no stage has. They are kept too, since the metric counts them.
        self.keep_facts(&made.critical_facts);
        self.task.task_progress_summary = Some(made.summary);
        note_metric(&mut self.task.metrics, metric.clone());
        self.is_changed = true;
        Ok(Some(metric))
    }

    /// Keeps facts with the task, as far as its record has room.
    fn keep_facts(&mut self, facts: &[String]) {
        let known: HashSet<String> = self.task.critical_facts.iter().cloned().collect();
        let mut bytes: usize = known.iter().map(String::len).sum();
        for fact in facts.iter().filter(|fact| !known.contains(*fact)) {
            bytes += fact.len();
            if bytes <= compress::MOST_FACTS {
                self.task.critical_facts.push(fact.clone());
                continue;
            }
            if !self.task.has_more_facts {
                let (task, most) = (&self.task.task_id, compress::MOST_FACTS);
                tracing::warn!(
                    task,
                    most,
                    "critical facts of a task are read from its stages from now on"
                );
            }
            self.task.has_more_facts = true;
            return;
        }
    }

    /// Returns the compression ratios in force. `memories` are those of the current stage.
    pub(crate) fn in_force(
        &self,
        call: &Call<'_>,
        memories: &[Stored<Memory>],
    ) -> Result<InForce, Failure> {
        let agent =
            call.store.get_readable::<AgentSettings>(Sort::Settings, &self.task.agent_id)?;
        let agent = agent.map(|stored| stored.state.compression).unwrap_or_default();
        let errors = match self.task.current_stage_id.as_deref() {
            Some(stage) => errors_of_stage(call, stage)?,
            None => 0,
        };
        let load = Load {
            stages: self.task.stages.len(),
            memories: memories.len(),
            error_rate: if memories.is_empty() {
                0.0
            } else {
                errors as f64 / memories.len() as f64
            },
        };
        Ok(compress::in_force(call.settings, &self.task.compression, &agent, load))
    }

    /// Adds the task to a batch. An unchanged task becomes a condition: the write fails if another client has changed it, because
    /// decisions such as the stage of a memory depend on it.
    pub(crate) fn write(
        mut self,
        call: &Call<'_>,
        batch: &mut Batch,
        now: Timestamp,
    ) -> Result<Task, Failure> {
        if !self.is_changed {
            if let Some(before) = &self.before {
                call.store.expect(batch, before);
            }
            return Ok(self.task);
        }
        self.task.updated_at = Store::stamp(now);
        // Uses are written with a task that is written anyway. Writes for their sake would wear the card.
        let (tenant, id) = (call.store.tenant(), &self.task.task_id);
        if self.task.is_active() {
            self.task.uses = call.shared.uses.added_to(&self.task.uses, tenant, id);
        }
        batch.note_task(id);
        let handles =
            call.store.add_owners(batch, &self.task.agent_id, Some(&self.task.task_id))?;
        let says = |text: &String| !text.trim().is_empty();
        let content = Some(&self.task.task_goal).filter(|goal| says(goal));
        let shape = Shape {
            content: content.unwrap_or(&self.task.task_id).clone(),
            kind: Some(Kind::Plan),
            experience_type: Some(ExperienceType::Task),
            importance: Some(1.0),
            anchored: true,
            entities: handles,
            external_id: Some(format!("compass:{}", self.task.task_id)),
            ..Shape::default()
        };
        match &self.before {
            Some(before) => call.store.change(batch, before, &self.task, &shape)?,
            None => call.store.add(batch, Sort::Task, &self.task, &shape)?,
        };
        Ok(self.task)
    }
}

/// Returns the weight of a stage in the summary of its task. Decisions, findings and checks count more than steps of execution.
fn worth_of(stage_type: StageType) -> f64 {
    if stage_type == StageType::Execution { 0.3 } else { 1.0 }
}

fn source(text: &str, relevance: f64, critical: CriticalPart) -> Source {
    Source { text: text.to_owned(), relevance, critical, is_correction: false }
}

/// Compresses the memories of a stage, which are newest first.
pub(crate) fn compressed(
    call: &Call<'_>,
    task: &Task,
    memories: &[Stored<Memory>],
    ratio: f64,
    given: Option<&str>,
) -> Result<Compressed, Failure> {
    let of = |stored: &Stored<Memory>| Source {
        text: stored.record.content.clone(),
        relevance: stored.state.relevance_score,
        critical: stored.state.critical_part(),
        is_correction: stored.state.corrects.is_some() && stored.state.success != Some(false),
    };
    let sources: Vec<Source> = memories.iter().rev().map(of).collect();
    let bytes: usize = sources.iter().map(|source| source.text.len()).sum();
    let ratio = ratio.max(bytes as f64 / MOST_SUMMARY as f64);
    let made = compress::compress(&sources, ratio, given, call.settings.token_counter)?;
    match given {
        Some(_) => Ok(made),
        None => improved(call, task, &sources, made),
    }
}

/// Puts the results of a compression into a stage, and returns its metric.
pub(crate) fn take_summary(
    call: &Call<'_>,
    stage: &mut Stage,
    made: Compressed,
    now: Timestamp,
) -> Metric {
    let metric =
        Metric { stage_id: Some(stage.stage_id.clone()), ..metric(call, &made, "stage", now) };
    stage.stage_summary = made.summary;
    stage.stage_insights = made.insights;
    stage.critical_facts = made.critical_facts;
    stage.has_more_facts = made.left_out > 0;
    stage.compression_ratio = Some(made.ratio);
    stage.compression_model = Some(made.model);
    stage.updated_at = Store::stamp(now);
    note_metric(&mut stage.metrics, metric.clone());
    metric
}

fn note_metric(metrics: &mut Vec<Metric>, new: Metric) {
    metrics.push(new);
    let over = metrics.len().saturating_sub(MOST_METRICS);
    metrics.drain(..over);
}

fn metric(call: &Call<'_>, made: &Compressed, compression_type: &str, now: Timestamp) -> Metric {
    Metric {
        metric_id: call.store.new_id(),
        stage_id: None,
        task_id: None,
        compression_type: compression_type.to_owned(),
        input_tokens: made.input_tokens as u64,
        output_tokens: made.output_tokens as u64,
        compression_ratio: made.ratio,
        critical_fact_retention_rate: made.retention(),
        coherence_score: made.coherence,
        cost_usd: made.cost_usd,
        model_used: made.model.clone(),
        count_method: call.settings.token_counter.name().to_owned(),
        recorded_at: Store::stamp(now),
    }
}

/// Returns a stage that a task names. It is missing only if a person has removed it from the store.
pub(crate) fn current_stage(call: &Call<'_>, id: &str) -> Result<Stored<Stage>, Failure> {
    let stage = call.store.get::<Stage>(Sort::Stage, id)?;
    stage.ok_or_else(|| Failure::not_found("stage", id))
}

/// Returns the memories of a stage, newest first.
pub(crate) fn memories_of_stage(call: &Call<'_>, id: &str) -> Result<Vec<Stored<Memory>>, Failure> {
    call.store.all(call.store.name(Sort::StageHandle, id)?)
}

/// Returns the number of errors of a stage.
pub(crate) fn errors_of_stage(call: &Call<'_>, id: &str) -> Result<usize, Failure> {
    call.store.count(call.store.name(Sort::StageHandle, id)?, &[ExperienceType::Error])
}

/// Returns the shape of a stage, and adds its handles to the batch.
pub(crate) fn shape_of_stage(
    call: &Call<'_>,
    batch: &mut Batch,
    stage: &Stage,
) -> Result<Shape, Failure> {
    let mut handles = call.store.add_owners(batch, &stage.agent_id, Some(&stage.task_id))?;
    handles.push(call.store.add_handle(batch, Sort::StageHandle, &stage.stage_id, Label::Event)?);
    let summary = Some(&stage.stage_summary).filter(|summary| !summary.trim().is_empty());
    Ok(Shape {
        // A record needs a content. A stage that goes on has no summary yet, and takes the name of its type.
        content: summary.cloned().unwrap_or_else(|| stage.stage_type.to_string()),
        experience_type: Some(ExperienceType::Context),
        importance: Some(stage.relevance_score),
        anchored: true,
        entities: handles,
        external_id: Some(format!("compass:{}", stage.stage_id)),
        ..Shape::default()
    })
}
