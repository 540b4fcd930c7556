//! The stage that a new memory belongs to, and the signals that move a task on.

use omir_core::instant::Timestamp;

use crate::call::Call;
use crate::failure::Failure;
use crate::methods::tasks::Course;
use crate::names::Sort;
use crate::stages::{self, Signal};
use crate::state::{ErrorRecord, Memory, Task};
use crate::store::{Batch, Search, Stored};
use crate::words::StageType;

/// Memories before one that are looked at for their actions: results of tools stand between them.
const LOOKED_AT: usize = 12;

/// Finds the stage that a memory belongs to, and moves the task on if a signal says so.
pub(crate) fn place(
    call: &Call<'_>,
    batch: &mut Batch,
    course: &mut Course,
    memory: &mut Memory,
    content: &str,
    now: Timestamp,
) -> Result<Option<(StageType, StageType)>, Failure> {
    let marker = stages::marker(memory.stage_type, content);
    let current = course.task.current().map(|note| (note.stage_id.clone(), note.stage_type));
    let Some((id, stage_type)) = current else {
        let first = marker.map_or(StageType::Planning, |signal| signal.stage_type);
        memory.stage_id = Some(course.begin(call, batch, first, now)?);
        memory.stage_type = Some(first);
        return Ok(None);
    };
    memory.stage_id = Some(id.clone());
    memory.stage_type = Some(stage_type);
    if !call.settings.stage_detection_enabled || !call.settings.stage_auto_transition {
        return Ok(None);
    }
    let mut signals: Vec<Signal> = marker.into_iter().collect();
    if signals.is_empty() {
        if !memory.actions.is_empty() {
            // An agent that reports each action by itself is understood as well.
            let before = last_actions(call, &id, LOOKED_AT)?;
            let actions = before.iter().chain(&memory.actions).map(String::as_str);
            signals.extend(stages::acted(actions));
        }
        signals.extend(errors_lately(call, &course.task)?);
    }
    let Some(signal) = stages::decided(&signals, stage_type) else { return Ok(None) };
    memory.stage_id = Some(course.move_on(call, batch, signal.stage_type, now)?);
    memory.stage_type = Some(signal.stage_type);
    Ok(Some((stage_type, signal.stage_type)))
}

/// Returns the actions of the last `most` memories of a stage, as many as decide about the next, oldest first.
pub(crate) fn last_actions(
    call: &Call<'_>,
    stage_id: &str,
    most: usize,
) -> Result<Vec<String>, Failure> {
    let search =
        Search { most: Some(most), ..Search::of(call.store.name(Sort::StageHandle, stage_id)?) };
    let memories = call.store.find::<Memory>(&search)?;
    let newest = memories.into_iter().flat_map(|found| found.state.actions.into_iter().rev());
    let mut last: Vec<String> = newest.take(stages::RECENT_ACTIONS).collect();
    last.reverse();
    Ok(last)
}

/// Returns the signal of errors among the last memories of the current stage. It looks at a handful of records, however many
/// there are.
pub(crate) fn errors_lately(call: &Call<'_>, task: &Task) -> Result<Option<Signal>, Failure> {
    let Some(note) = task.current().filter(|note| note.stage_type == StageType::Execution) else {
        return Ok(None);
    };
    let errors = call.store.errors_of(task, stages::RECENT_MEMORIES, None)?;
    let of_stage =
        |error: &&Stored<ErrorRecord>| error.state.stage_id.as_deref() == Some(&*note.stage_id);
    let errors =
        errors.iter().filter(of_stage).map(|error| (error.state.recorded_at.as_str(), true));
    let mut times: Vec<(&str, bool)> = errors.collect();
    if times.is_empty() {
        return Ok(None);
    }
    // Errors are memories too: of the newest of both, how many are errors.
    let newest = Search {
        most: Some(2 * stages::RECENT_MEMORIES),
        ..Search::of(call.store.name(Sort::StageHandle, &note.stage_id)?)
    };
    let memories = call.store.find::<Memory>(&newest)?;
    times.extend(memories.iter().map(|found| (found.state.timestamp.as_str(), false)));
    times.sort_by_key(|(at, _)| std::cmp::Reverse(Timestamp::parse(at).ok()));
    let count =
        times.iter().take(stages::RECENT_MEMORIES).filter(|(_, is_error)| *is_error).count();
    Ok(stages::erred(note.stage_type, count))
}
