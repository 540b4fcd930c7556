//! One call under way: its parameters, its caller, and what that may see.

use omir_core::instant::Timestamp;
use omir_core::model::{ExperienceType, Label};
use omir_core::reference::Ref;
use omir_core::spatial::SpatialPose;
use omird_router::Admitted;

use crate::failure::Failure;
use crate::model::ModelUse;
use crate::names::Sort;
use crate::params::Params;
use crate::queues::patterns::PatternQueue;
use crate::score;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::state::{ErrorRecord, Memory, Stage, StageNote, State, Task};
use crate::store::{Batch, Search, Shape, Store, Stored, Written};
use crate::who::Who;
use crate::words::{MemoryType, TaskStatus};

/// Importance from which on everything critical is found.
pub(crate) const CRITICAL_IMPORTANCE: f64 = 0.9;
/// Errors of a task that a call looks at, at most.
pub(crate) const MOST_RECENT_ERRORS: usize = 100;

/// A call under way.
pub(crate) struct Call<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) store: Store,
    pub(crate) who: &'a Who,
    pub(crate) params: Params<'a>,
    pub(crate) admitted: &'a mut Admitted,
    pub(crate) shared: &'a Shared,
    pub(crate) patterns: &'a PatternQueue,
    pub(crate) model: ModelUse,
    /// The agent that the answer is about.
    pub(crate) agent: Option<String>,
    /// The answer is less than was asked for.
    pub(crate) degraded: bool,
}

impl Call<'_> {
    /// Takes the agent of the parameters, else the caller's own.
    pub(crate) fn take_agent(&mut self) -> Result<String, Failure> {
        let agent = self.who.agent(&mut self.params)?;
        self.agent = Some(agent.clone());
        Ok(agent)
    }

    /// Notes that the call changes something, where its row leaves that open.
    pub(crate) fn expect_change(&mut self) -> Result<(), Failure> {
        let method = self.admitted.method();
        self.admitted.expect_change().map_err(|refusal| Failure::of_refusal(refusal, method))
    }

    /// Returns the errors of a task in its last stages, newest first, at most so many.
    pub(crate) fn recent_errors(
        &self,
        task: &Task,
        most: usize,
    ) -> Result<Vec<Stored<ErrorRecord>>, Failure> {
        self.store.recent_errors(task, self.settings.error_history_lookback_stages, most)
    }

    /// Returns the pose of the robot, where it is known.
    pub(crate) fn robot_pose(&self) -> Option<SpatialPose> {
        self.store.engine().pose_of(self.settings.robot_frame.as_deref()?)
    }

    /// Writes a batch, and notes it for the audit line.
    pub(crate) fn commit(&mut self, batch: Batch) -> Result<Written, Failure> {
        let written = self.shared.commit(&self.store, batch)?;
        self.admitted.note_receipt(written.receipt());
        Ok(written)
    }

    /// Returns a task that the caller may see.
    pub(crate) fn task(&mut self, id: &str) -> Result<Stored<Task>, Failure> {
        let task: Stored<Task> = self.visible(Sort::Task, "task", id)?;
        self.agent = Some(task.state.agent_id.clone());
        Ok(task)
    }

    /// Returns a stage that the caller may see.
    pub(crate) fn stage(&mut self, id: &str) -> Result<Stored<Stage>, Failure> {
        let stage: Stored<Stage> = self.visible(Sort::Stage, "stage", id)?;
        self.agent = Some(stage.state.agent_id.clone());
        Ok(stage)
    }

    /// Returns a memory that the caller may see.
    pub(crate) fn memory(&mut self, id: &str) -> Result<Stored<Memory>, Failure> {
        let memory: Stored<Memory> = self.visible(Sort::Memory, "memory", id)?;
        self.agent = Some(memory.state.agent_id.clone());
        Ok(memory)
    }

    fn visible<S: State>(&self, sort: Sort, what: &str, id: &str) -> Result<Stored<S>, Failure> {
        let stored = self.store.get::<S>(sort, id)?;
        // A memory of another agent looks like one that does not exist.
        stored
            .filter(|stored| self.who.may(stored.state.agent()))
            .ok_or_else(|| Failure::not_found(what, id))
    }

    /// Takes the task that the parameters name, if they do. With an agent beside it, the task must be that agent's.
    pub(crate) fn take_task(
        &mut self,
        agent: Option<&str>,
    ) -> Result<Option<Stored<Task>>, Failure> {
        let Some(id) = self.params.id("task_id")? else { return Ok(None) };
        let task = self.task(id)?;
        match agent {
            Some(agent) if task.state.agent_id != agent => Err(Failure::not_found("task", id)),
            _ => Ok(Some(task)),
        }
    }

    /// Takes the task that the parameters must name.
    pub(crate) fn required_task(&mut self) -> Result<Stored<Task>, Failure> {
        let task = self.take_task(None)?;
        self.params.required("task_id", task)
    }
}

impl Task {
    /// Returns the current stage, as the task knows it.
    pub(crate) fn current(&self) -> Option<&StageNote> {
        let id = self.current_stage_id.as_deref()?;
        self.stages.iter().find(|note| note.stage_id == id)
    }

    /// Returns the ids of the stages that are completed, in the order of their beginnings.
    pub(crate) fn completed_stages(&self) -> Vec<String> {
        let completed = self.stages.iter().filter(|note| note.is_completed);
        completed.map(|note| note.stage_id.clone()).collect()
    }

    /// Returns true if work on it goes on.
    pub(crate) fn is_active(&self) -> bool {
        self.status == TaskStatus::Active
    }
}

impl Store {
    /// Returns the newest errors of a task, newest first: at most so many, and of at least this severity.
    pub(crate) fn errors_of(
        &self,
        task: &Task,
        most: usize,
        severity: Option<f64>,
    ) -> Result<Vec<Stored<ErrorRecord>>, Failure> {
        let sort = if task.has_handles { Sort::Errors } else { Sort::TaskHandle };
        let search = Search {
            experience: vec![ExperienceType::Error],
            most: Some(most),
            min_importance: severity,
            ..Search::of(self.name(sort, &task.task_id)?)
        };
        self.find(&search)
    }

    /// Returns the errors of a task in its last stages and between them, newest first: those among its newest, of which there
    /// are so many.
    pub(crate) fn recent_errors(
        &self,
        task: &Task,
        stages: usize,
        most: usize,
    ) -> Result<Vec<Stored<ErrorRecord>>, Failure> {
        let last: Vec<&StageNote> = task.stages.iter().rev().take(stages).collect();
        let since = last.last().and_then(|note| Timestamp::parse(&note.began_at).ok());
        let is_recent = |error: &ErrorRecord| match &error.stage_id {
            Some(id) => last.iter().any(|note| note.stage_id == *id),
            // Between two stages a task has none: what counts is if the first of the last ones had begun.
            None => since.is_none_or(|since| {
                Timestamp::parse(&error.recorded_at).is_ok_and(|at| at >= since)
            }),
        };
        let mut errors = self.errors_of(task, most, None)?;
        errors.retain(|error| is_recent(&error.state));
        Ok(errors)
    }

    /// Returns a search for the critical memories of a task, newest first. It may find others too.
    pub(crate) fn critical_of(&self, task: &Task) -> Result<Search, Failure> {
        if task.has_handles {
            return Ok(Search::of(self.name(Sort::Critical, &task.task_id)?));
        }
        let handle = self.name(Sort::TaskHandle, &task.task_id)?;
        Ok(Search { min_importance: Some(CRITICAL_IMPORTANCE), ..Search::of(handle) })
    }

    /// Returns the handles under which a memory may count.
    pub(crate) fn owners(&self, agent: &str, task: Option<&str>) -> Result<Vec<Ref>, Failure> {
        let mut handles = vec![self.name(Sort::Agent, agent)?];
        if let Some(task) = task {
            handles.push(self.name(Sort::TaskHandle, task)?);
        }
        Ok(handles)
    }

    /// Adds the handles of an agent and a task.
    pub(crate) fn add_owners(
        &self,
        batch: &mut Batch,
        agent: &str,
        task: Option<&str>,
    ) -> Result<Vec<Ref>, Failure> {
        let mut handles = vec![self.add_handle(batch, Sort::Agent, agent, Label::Other)?];
        if let Some(task) = task {
            handles.push(self.add_handle(batch, Sort::TaskHandle, task, Label::Project)?);
        }
        Ok(handles)
    }

    /// Returns the shape of a memory, and adds the handles that it bears. One that is critical has no end, whatever
    /// `valid_until` says: the engine finds nothing that is past it.
    pub(crate) fn shape_of_memory(
        &self,
        batch: &mut Batch,
        memory: &Memory,
        content: &str,
        valid_until: Option<Timestamp>,
    ) -> Result<Shape, Failure> {
        batch.note_memory(memory);
        let mut handles = self.add_owners(batch, &memory.agent_id, memory.task_id.as_deref())?;
        if let Some(stage) = &memory.stage_id {
            handles.push(self.add_handle(batch, Sort::StageHandle, stage, Label::Event)?);
        }
        if memory.is_critical {
            let (sort, whose) = match &memory.task_id {
                Some(task) => (Sort::Critical, task),
                None => (Sort::CriticalOfAgent, &memory.agent_id),
            };
            handles.push(self.add_handle(batch, sort, whose, Label::Event)?);
        }
        for thing in memory.entities.iter().take(MOST_THINGS) {
            let thing =
                self.add_handle(batch, Sort::Thing, &thing.to_lowercase(), Label::Concept)?;
            if !handles.contains(&thing) {
                handles.push(thing);
            }
        }
        if let Some(error) = &memory.corrects {
            handles.push(self.add_handle(batch, Sort::Correction, error, Label::Event)?);
        }
        let parent = memory.parent_memory_id.as_deref();
        let parent = parent.map(|id| self.name(Sort::Memory, id)).transpose()?;
        let (kind, experience_type) = score::class(memory.memory_type);
        let importance = if memory.is_critical {
            memory.relevance_score.max(CRITICAL_IMPORTANCE)
        } else {
            memory.relevance_score
        };
        Ok(Shape {
            content: content.to_owned(),
            kind,
            experience_type,
            tier: Some(match memory.memory_type {
                MemoryType::Working => omir_core::model::Tier::Working,
                MemoryType::Episodic => omir_core::model::Tier::Session,
                MemoryType::Semantic | MemoryType::Procedural => omir_core::model::Tier::Longterm,
            }),
            importance: Some(importance),
            anchored: memory.is_critical,
            event_time: Timestamp::parse(&memory.timestamp).ok(),
            valid_until: valid_until.filter(|_| !memory.is_critical),
            entities: handles,
            parent: parent.map(|name| name.id),
            external_id: Some(format!("compass:{}", memory.memory_id)),
            vector: None,
            pose: None,
        })
    }
}

/// Things that one memory is found by, at most; it may name more.
const MOST_THINGS: usize = 16;
