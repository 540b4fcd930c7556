//! `memory.get_context`: a text with the parts of a task's memory that its agent needs now, within a budget of tokens.

use std::collections::HashSet;

use omir_core::instant::Timestamp;
use omir_core::value::{Map, Value};
use omird_engine::Code;
use omird_text::{Claim, TokenCounter, sentences};

use crate::call::Call;
use crate::compress::{FactSearch, LANGUAGE, Source, facts_of};
use crate::context::{Context, Draft, Section, Worth};
use crate::failure::Failure;
use crate::methods::retrieve::{Ranked, RetrieveRequest, Selection, select, touch_all};
use crate::methods::tasks::current_stage;
use crate::names::Sort;
use crate::repetition::{SeenSentences, failures, is_printed, shown};
use crate::state::{ErrorRecord, Stage, Task};
use crate::store::{Search, Sketch};
use crate::words::{Format, Level, Word};

/// Least and most tokens that a caller may state as a budget.
pub(crate) const BUDGETS: (usize, usize) = (64, 200_000);
/// Errors in a context, at most.
const MOST_ERRORS: usize = 10;
/// Completed stages that are named one by one, at most. More are counted by type.
const MOST_NAMED: usize = 4;
/// One part in so many of a budget is for the best memories of the current stage. Only what is never cut comes before them.
const SHARE_OF_NOW: usize = 6;
/// Newest memories of the current stage that are searched for errors that tools reported.
const MOST_READ: usize = 50;
/// Newest critical memories of an agent, outside its tasks, whose facts go into its context.
const MOST_OF_AGENT: usize = 100;
/// Sentences of a context that are compared with each other.
const MOST_SENTENCES: usize = 100;

/// Answers `memory.get_context`.
pub(crate) fn get_context(call: &mut Call<'_>) -> Result<Map, Failure> {
    let named = call.params.has("agent_id") || !call.params.has("task_id");
    let agent = if named { Some(call.take_agent()?) } else { None };
    let request = ContextRequest::read(&mut call.params, 2000)?;
    let worked = call.take_task(agent.as_deref()).and_then(|task| {
        call.params.id("agent_id")?;
        call.params.finish()?;
        let agent = match (&agent, &task) {
            (Some(agent), _) => agent.clone(),
            (None, Some(task)) => task.state.agent_id.clone(),
            (None, None) => return Err(Failure::params("/task_id", "task_id: names no task")),
        };
        build_context(call, &agent, task.as_ref().map(|task| &task.state), &request)
    });
    let built = or_empty(call, worked, &request)?;
    Ok(built.answer())
}

/// A request for a context.
pub(crate) struct ContextRequest {
    pub(crate) query: Option<String>,
    pub(crate) budget: usize,
    pub(crate) k: usize,
    pub(crate) level: Level,
    pub(crate) format: Format,
}

impl ContextRequest {
    /// Returns a request for Markdown of level `auto` within a budget.
    pub(crate) fn plain(query: Option<String>, budget: usize) -> Self {
        Self { query, budget, k: 10, level: Level::Auto, format: Format::Markdown }
    }

    pub(crate) fn read(
        params: &mut crate::params::Params<'_>,
        budget: usize,
    ) -> Result<Self, Failure> {
        Ok(Self {
            query: params.said("query")?.map(str::to_owned),
            budget: params.count("token_budget", BUDGETS.0, BUDGETS.1)?.unwrap_or(budget),
            k: params.count("k", 1, 100)?.unwrap_or(10),
            level: params.word("level")?.unwrap_or(Level::Auto),
            format: params.word("format")?.unwrap_or(Format::Markdown),
        })
    }
}

/// A context, and the measures that are answered with it.
pub(crate) struct BuiltContext {
    pub(crate) context: Context,
    pub(crate) coverage: f64,
    pub(crate) coherence: f64,
    /// Tokens of all memories that the context stands for.
    pub(crate) history: usize,
}

impl BuiltContext {
    /// Returns an empty context.
    pub(crate) fn empty(call: &Call<'_>, request: &ContextRequest) -> Result<Self, Failure> {
        let counter = call.settings.token_counter;
        let context = Draft::default().fit(request.budget, request.format, counter)?;
        Ok(Self { context, coverage: 0.0, coherence: 1.0, history: 0 })
    }

    /// Returns the members of an answer.
    pub(crate) fn answer(&self) -> Map {
        let mut map = Map::new();
        map.insert("context", self.context.context.clone());
        map.insert("quality", self.quality());
        map.insert("sections", self.context.sections());
        map
    }

    /// Returns the measures of its quality.
    pub(crate) fn quality(&self) -> Value {
        let Context { tokens, budget, .. } = self.context;
        let mut map = Map::new();
        map.insert("token_count", tokens);
        map.insert("token_budget", budget);
        map.insert("utilization", tokens as f64 / budget.max(1) as f64);
        map.insert("critical_coverage", self.coverage);
        map.insert("compression_ratio", self.history as f64 / tokens.max(1) as f64);
        map.insert("coherence_score", self.coherence);
        map.insert("count_method", self.context.counter.name());
        Value::Object(map)
    }
}

/// Returns an empty context if the store failed: an agent goes on without memories rather than not at all.
pub(crate) fn or_empty(
    call: &mut Call<'_>,
    worked: Result<BuiltContext, Failure>,
    request: &ContextRequest,
) -> Result<BuiltContext, Failure> {
    match or_nothing(call, worked)? {
        Some(built) => Ok(built),
        None => BuiltContext::empty(call, request),
    }
}

/// Returns `None` if the store failed, and marks the answer as degraded. Other failures stay failures.
pub(crate) fn or_nothing<T>(
    call: &mut Call<'_>,
    worked: Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    match worked {
        Ok(worked) => Ok(Some(worked)),
        Err(failure) if failure.code == Code::Internal => {
            tracing::error!(error = %failure.error.message, "an empty context was given");
            call.degraded = true;
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

/// Makes the context of an agent, or of one of its tasks.
pub(crate) fn build_context(
    call: &Call<'_>,
    agent: &str,
    task: Option<&Task>,
    request: &ContextRequest,
) -> Result<BuiltContext, Failure> {
    // At level `auto` and without a question only memories of the current stage are selected. Other stages have summaries.
    let is_of_stage = task.is_some_and(|task| task.current_stage_id.is_some())
        && request.query.is_none()
        && request.level == Level::Auto;
    let wanted = RetrieveRequest {
        query: request.query.as_deref(),
        k: request.k,
        types: Vec::new(),
        stage_id: task.filter(|_| is_of_stage).and_then(|task| task.current_stage_id.as_deref()),
        stage_type: None,
        min_score: 0.0,
        archived: false,
        // Their facts have a section of their own, so that most of them are not shown again.
        critical_beside: request.query.is_none(),
    };
    let with_raw = matches!(request.level, Level::Auto | Level::Raw);
    let found = select(call, agent, task, &wanted)?;
    let mut draft = Draft::default();
    let (facts, history, looked_at) = match task {
        Some(task) => {
            let (facts, history) = write_task(call, &mut draft, task, request)?;
            (facts, history, 1.0)
        }
        None => {
            let (facts, looked_at) = facts_of_agent(call, agent)?;
            let contents = found.memories.iter().map(|one| &one.stored.record.content);
            let counter = call.settings.token_counter;
            (facts, contents.map(|content| counter.count(content)).sum(), looked_at)
        }
    };
    // The facts of a task are never cut. An agent has any number of facts outside its tasks, since no critical memory is put
    // aside: the newest of them are added, up to half of the budget.
    let told = match task {
        Some(_) => facts.clone(),
        None => newest_within(call, &facts, request.budget / 2),
    };
    draft.add_facts(&told);
    if with_raw {
        let section = if task.is_some() { Section::Current } else { Section::Memories };
        add_memories(call, &mut draft, section, &found.memories, &told, request);
    }
    let context = draft.fit(request.budget, request.format, call.settings.token_counter)?;
    if with_raw {
        touch_shown(call, agent, task, &found, &context);
    }
    let coherence = coherence(&found.memories);
    // Without facts the coverage is that of the selection: the share of the related critical memories that it has.
    let coverage = match facts.is_empty() {
        true => found.coverage,
        false => coverage(&facts, &context) * found.known,
    };
    Ok(BuiltContext { context, coverage: coverage * looked_at, coherence, history })
}

/// Adds memories, best first. In the current stage the best ones are cut last, as long as their short forms take no more than
/// the part of the budget that [`SHARE_OF_NOW`] says. Without a question memories stand in order of time.
fn add_memories(
    call: &Call<'_>,
    draft: &mut Draft,
    section: Section,
    memories: &[Ranked],
    facts: &[String],
    request: &ContextRequest,
) {
    let mut seen = SeenSentences::default();
    facts.iter().for_each(|fact| seen.add(fact));
    let mut times: Vec<&str> =
        memories.iter().map(|one| one.stored.state.timestamp.as_str()).collect();
    times.sort_by_key(|at| Timestamp::parse(at).ok());
    let mut told: HashSet<String> = HashSet::new();
    let mut room = request.budget / SHARE_OF_NOW;
    for one in memories {
        let content = &one.stored.record.content;
        let text = match request.level {
            // A caller that asks for raw memories gets them as they are.
            Level::Raw => content.trim().to_owned(),
            _ => shown(content, &seen),
        };
        // Output that a tool printed may leave no text to show. With a question its summary is shown: it may hold the answer.
        let text = match &request.query {
            Some(_) if text.is_empty() && is_printed(content) => one.stored.state.summary.clone(),
            _ => text,
        };
        if text.is_empty() || !told.insert(text.clone()) {
            continue;
        }
        let content = format!("- {text}");
        let short = without(&one.stored.state.summary, &seen, "; ");
        // Printed output has no short form. Members of an object are short already, and the summary is a random part of it.
        let has_short = !short.is_empty() && !is_printed(&one.stored.record.content);
        let short = has_short.then(|| format!("- {short}"));
        let tokens = call.settings.token_counter.count(short.as_deref().unwrap_or(&content)) + 1;
        let is_now = section == Section::Current && tokens <= room;
        if is_now {
            room -= tokens;
        }
        let worth = if is_now { Worth::Now } else { Worth::Raw };
        let in_time = times.iter().position(|at| *at == one.stored.state.timestamp);
        let at = in_time.filter(|_| request.query.is_none()).map_or(1, |at| at + 1);
        draft.add_with_short(section, worth, &content, short, at);
    }
}

/// Returns a summary without the sentences that stand elsewhere in the context. `end` separates two sentences if the first has
/// no punctuation at its end.
fn without(summary: &str, seen: &SeenSentences, end: &str) -> String {
    let mut text = String::new();
    for sentence in sentences(summary).filter(|sentence| !seen.covers(sentence)) {
        if !text.is_empty() {
            text.push_str(if text.ends_with(['.', '!', '?', ')', '"']) { " " } else { end });
        }
        text.push_str(sentence);
    }
    text
}

/// Returns the share of the facts that stand in the context word for word.
pub(crate) fn coverage(facts: &[String], context: &Context) -> f64 {
    let mut texts = Vec::new();
    collect(&context.context, &mut texts);
    if facts.is_empty() {
        return 1.0;
    }
    let mut search = FactSearch::of(texts);
    facts.iter().filter(|fact| search.finds(fact)).count() as f64 / facts.len().max(1) as f64
}

fn collect<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::Text(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(map) => map.values().for_each(|item| collect(item, texts)),
        _ => {}
    }
}

/// Returns 1, less the share of memories that contradict each other.
pub(crate) fn coherence(memories: &[Ranked]) -> f64 {
    1.0 - contradictions(memories) as f64 / memories.len().max(1) as f64
}

/// Returns 1, less the share of sentences that contradict each other.
pub(crate) fn coherence_of<'t>(texts: impl IntoIterator<Item = &'t str>) -> f64 {
    let claims: Vec<Claim> = texts
        .into_iter()
        .flat_map(sentences)
        .take(MOST_SENTENCES)
        .map(|sentence| Claim::of(LANGUAGE, sentence))
        .collect();
    let opposed = claims.iter().enumerate().map(|(at, claim)| {
        claims.iter().skip(at + 1).filter(|other| claim.opposes(other).is_some()).count()
    });
    (1.0 - opposed.sum::<usize>() as f64 / claims.len().max(1) as f64).max(0.0)
}

fn contradictions(memories: &[Ranked]) -> usize {
    let pairs = memories
        .iter()
        .enumerate()
        .flat_map(|(at, one)| memories.iter().skip(at + 1).map(move |other| (one, other)));
    pairs
        .filter(|(one, other)| {
            super::retrieve::same_things(&one.stored.state, &other.stored.state)
                && super::retrieve::contradict(
                    &one.stored.record.content,
                    &other.stored.record.content,
                )
        })
        .count()
}

/// Counts the memories that are in a context as used.
pub(crate) fn touch_shown(
    call: &Call<'_>,
    agent: &str,
    task: Option<&Task>,
    found: &Selection,
    context: &Context,
) {
    let mut texts = Vec::new();
    collect(&context.context, &mut texts);
    // A memory is in the context if all of its text is, or a line `- …` that begins as the memory or its summary does. One of
    // its sentences elsewhere may be part of the summary of a stage.
    let is_in = |one: &&Ranked| {
        let content = one.stored.record.content.trim();
        let begins = shown(content, &SeenSentences::default());
        let begins = begins.lines().next().map(|first| format!("- {first}"));
        let first = sentences(&one.stored.state.summary).next();
        let line = first.map(|first| format!("- {first}"));
        let is_at = |text: &&str| {
            text.contains(content)
                || line.iter().chain(&begins).any(|line| text.contains(line.as_str()))
        };
        texts.iter().any(is_at)
    };
    let shown: Vec<Ranked> = found.memories.iter().filter(is_in).cloned().collect();
    touch_all(call, agent, task.map(|task| &*task.task_id), &shown);
}

/// Adds the progress, the stages and the errors of a task. Returns its critical facts, and the tokens of all its memories.
fn write_task(
    call: &Call<'_>,
    draft: &mut Draft,
    task: &Task,
    request: &ContextRequest,
) -> Result<(Vec<String>, usize), Failure> {
    let level = request.level;
    let (with_task, with_stages) =
        (matches!(level, Level::Auto | Level::Task), matches!(level, Level::Auto | Level::Stage));
    let facts = critical_facts(call, task)?;
    let mut seen = SeenSentences::default();
    facts.iter().for_each(|fact| seen.add(fact));
    if with_task {
        write_progress(draft, task, &facts);
        seen.add(task.task_progress_summary.as_deref().unwrap_or_default());
    }
    let mut failed: Vec<String> = Vec::new();
    let mut history = 0;
    if let Some(id) = &task.current_stage_id {
        let stage = current_stage(call, id)?.state;
        let memories = Search::of(call.store.name(Sort::StageHandle, id)?);
        let memories = call.store.sketches(&memories)?;
        let counter = call.settings.token_counter;
        history += memories.iter().map(|sketch| counter.count(&sketch.content)).sum::<usize>();
        let newest = memories.iter().take(MOST_READ);
        failed.extend(newest.flat_map(|sketch| failures(&sketch.content)));
        if with_stages {
            draft.add(Section::Current, Worth::Stage, &stage.stage_summary);
        }
    }
    // Summaries of completed stages are added from the newest on, until they take twice the budget. Older ones would be cut.
    let (mut told, most) = (0, request.budget.saturating_mul(2));
    for note in task.stages.iter().rev().filter(|note| note.is_completed) {
        let is_told = with_stages && told <= most;
        if let Some(input) = note.input_tokens.filter(|_| !is_told) {
            history += usize::try_from(input).unwrap_or(usize::MAX);
            continue;
        }
        let stage: Stage = current_stage(call, &note.stage_id)?.state;
        let input = stage.metrics.last().map_or(0, |metric| metric.input_tokens);
        history += usize::try_from(input).unwrap_or(usize::MAX);
        failed.extend(stage.stage_insights.iter().flat_map(|insight| failures(insight)));
        if is_told && !stage.stage_summary.is_empty() {
            let summary = without(&stage.stage_summary, &seen, "; ");
            if summary.is_empty() {
                continue;
            }
            seen.add(&summary);
            let text = format!("- {}: {summary}", stage.stage_type);
            told += call.settings.token_counter.count(&text);
            draft.add(Section::Past, Worth::Past, text);
        }
    }
    if level == Level::Auto {
        write_errors(call, draft, task, &failed)?;
    }
    Ok((facts, history))
}

/// Adds the goal of a task, its progress, and its summary without the facts, which have a section of their own.
pub(crate) fn write_progress(draft: &mut Draft, task: &Task, facts: &[String]) {
    if !task.task_goal.is_empty() {
        draft.add(Section::Progress, Worth::Fixed, format!("Goal: {}", task.task_goal));
    }
    let stage = task.current().map(|note| format!("Stage: {}", note.stage_type));
    draft.add(
        Section::Progress,
        Worth::Progress,
        stage.unwrap_or_else(|| format!("Status: {}", task.status)),
    );
    if let Some(completed) = completed(task) {
        draft.add(Section::Progress, Worth::Past, format!("Completed: {completed}"));
    }
    let mut seen = SeenSentences::default();
    facts.iter().for_each(|fact| seen.add(fact));
    seen.add(&task.task_goal);
    let summary = task.task_progress_summary.as_deref().unwrap_or_default();
    draft.add(Section::Progress, Worth::Progress, without(summary, &seen, "\n"));
}

/// Returns the names of the completed stages, or of many of them the number of each type.
fn completed(task: &Task) -> Option<String> {
    let all: Vec<&str> = task
        .stages
        .iter()
        .filter(|note| note.is_completed)
        .map(|note| note.stage_type.as_str())
        .collect();
    if all.len() <= MOST_NAMED {
        return (!all.is_empty()).then(|| all.join(", "));
    }
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for one in all {
        match kinds.iter_mut().find(|(kind, _)| *kind == one) {
            Some((_, count)) => *count += 1,
            None => kinds.push((one, 1)),
        }
    }
    Some(kinds.iter().map(|(kind, n)| format!("{n} {kind}")).collect::<Vec<_>>().join(", "))
}

/// Adds the errors that were recorded, and behind them those that tools reported and no call recorded.
fn write_errors(
    call: &Call<'_>,
    draft: &mut Draft,
    task: &Task,
    failed: &[String],
) -> Result<(), Failure> {
    let mut seen = SeenSentences::default();
    let recorded = call.recent_errors(task, MOST_ERRORS)?;
    for error in &recorded {
        seen.add(&error.state.error_description);
        draft.add(Section::Errors, Worth::Error, line_of_error(&error.state));
    }
    let mut room = MOST_ERRORS.saturating_sub(recorded.len());
    for failure in failed {
        if room == 0 {
            break;
        }
        if !seen.covers(failure) {
            seen.add(failure);
            draft.add(Section::Errors, Worth::Error, format!("- seen: {failure}"));
            room -= 1;
        }
    }
    Ok(())
}

/// Returns an error as a line of a context.
pub(crate) fn line_of_error(error: &ErrorRecord) -> String {
    let mut line = format!(
        "- {} ({:.1}): {}",
        error.error_type,
        error.error_severity,
        error.error_description.trim()
    );
    if let Some(recovery) = &error.recovery_action {
        line.push_str(&format!(" Recovery: {}", recovery.trim()));
    }
    line
}

/// Returns the critical facts of a stage, with those that had no room in its record and are read from its memories.
pub(crate) fn facts_of_stage(call: &Call<'_>, stage: &Stage) -> Result<Vec<String>, Failure> {
    let mut facts = stage.critical_facts.clone();
    if stage.has_more_facts {
        let known: HashSet<String> = facts.iter().cloned().collect();
        let memories = Search::of(call.store.name(Sort::StageHandle, &stage.stage_id)?);
        let mut memories = call.store.sketches(&memories)?;
        memories.reverse();
        let sources: Vec<Source> = memories.into_iter().map(source).collect();
        facts.extend(facts_of(&sources).into_iter().filter(|fact| !known.contains(fact)));
    }
    Ok(facts)
}

fn source(sketch: Sketch) -> Source {
    Source {
        relevance: sketch.memory.relevance_score,
        critical: sketch.memory.critical_part(),
        is_correction: false,
        text: sketch.content,
    }
}

/// Returns the newest facts that fit into a budget together, in their order. One that is too long leaves the room to others.
fn newest_within(call: &Call<'_>, facts: &[String], budget: usize) -> Vec<String> {
    let mut left = budget;
    let fits = facts.iter().rev().filter(|fact| {
        // Two tokens more: the mark of the list and the end of the line.
        let tokens = call.settings.token_counter.count(fact) + 2;
        let fits = tokens <= left;
        left -= if fits { tokens } else { 0 };
        fits
    });
    let mut newest: Vec<String> = fits.cloned().collect();
    newest.reverse();
    newest
}

/// Returns the critical facts of an agent outside its tasks, and the share of the critical memories that were read for them.
fn facts_of_agent(call: &Call<'_>, agent: &str) -> Result<(Vec<String>, f64), Failure> {
    let handle = call.store.name(Sort::CriticalOfAgent, agent)?;
    let all = call.store.count(handle.clone(), &[])?;
    let search = Search { most: Some(MOST_OF_AGENT), ..Search::of(handle) };
    let mut memories = call.store.sketches(&search)?;
    let looked_at = match all {
        0 => 1.0,
        all => memories.len().min(all) as f64 / all as f64,
    };
    memories.retain(|sketch| sketch.memory.is_critical && sketch.memory.agent_id == agent);
    memories.reverse();
    let sources: Vec<Source> = memories.into_iter().map(source).collect();
    Ok((facts_of(&sources), looked_at))
}

/// Returns the critical facts of a task: its constraints, those of its stages, and the sentences of its critical memories.
pub(crate) fn critical_facts(call: &Call<'_>, task: &Task) -> Result<Vec<String>, Failure> {
    let mut facts = task.critical_constraints.clone();
    let mut known: HashSet<String> = facts.iter().cloned().collect();
    let mut add = |fact: &String| {
        if known.insert(fact.clone()) {
            facts.push(fact.clone());
        }
    };
    task.critical_facts.iter().for_each(&mut add);
    if task.has_more_facts {
        for note in task.stages.iter().filter(|note| note.is_completed) {
            let stage = current_stage(call, &note.stage_id)?.state;
            facts_of_stage(call, &stage)?.iter().for_each(&mut add);
        }
    }
    let mut memories = call.store.sketches(&call.store.critical_of(task)?)?;
    memories.retain(|sketch| sketch.memory.is_critical);
    memories.reverse();
    let sources: Vec<Source> = memories.into_iter().map(source).collect();
    facts_of(&sources).iter().for_each(&mut add);
    Ok(facts)
}
