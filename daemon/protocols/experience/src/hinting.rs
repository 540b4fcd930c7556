//! `hints`: what is worth using, by what similar tasks used.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use omir_core::value::Value;
use omird_engine::{Code, Error};
use omird_router::{Admitted, Message, Reply, Response};

use crate::answers::{self, Measured};
use crate::cache::{CachedAnswer, Moment, Question, VersionedCandidate};
use crate::candidates::{About, FoundCandidates, Search};
use crate::check::Fault;
use crate::failure;
use crate::ids::Key;
use crate::ids::Tenant;
use crate::ingest::{self, Rejected};
use crate::parameters::{self, Vicinity};
use crate::ranking::{self, Candidate, Hint};
use crate::shared::Shared;
use crate::statistics::Usage;

/// The longest that a request may ask to be worked on.
const LONGEST: Duration = Duration::from_secs(30);
const DEFAULT_HINTS: usize = 10;

/// A checked request.
struct Request {
    request_id: String,
    question: Question,
    tenant: Tenant,
    place: Option<Vicinity>,
    began: Instant,
    deadline: Instant,
}

/// The hints, and how they were found.
struct FoundHints {
    hints: Arc<[Value]>,
    candidates: Arc<[VersionedCandidate]>,
    /// The candidates that the hints rest on.
    supports: Arc<[usize]>,
    cache: &'static str,
}

/// The reason for which there are no hints.
enum Failure {
    NoMatches,
    TimedOut,
    Query(Error),
    System(Error),
}

/// Works on a request.
pub(crate) fn hints(shared: &Shared, admitted: Admitted, message: &Message, reply: Reply) {
    let tenant = parameters::tenant(admitted.caller());
    let (answer, shown, ended) = match read(message, tenant) {
        Err(rejected) => {
            let Rejected { fault, request_id, .. } = rejected;
            let echoed = request_id.as_deref().unwrap_or_default();
            let answer = invalid(echoed, &failure::sentence(&fault), message.began);
            let shown = parameters::shown_id(shared, request_id.as_deref(), message);
            (answer, shown, Err(Code::InvalidQuery))
        }
        Ok(request) => {
            let found = answer(shared, &request);
            let is_answered = matches!(found, Ok(_) | Err(Failure::NoMatches));
            if is_answered || matches!(found, Err(Failure::TimedOut | Failure::System(_))) {
                shared.window().note(request.began.elapsed(), is_answered);
            }
            let ended = match &found {
                Ok(_) => Ok(()),
                Err(Failure::NoMatches) => Err(Code::NotFound),
                Err(Failure::Query(_)) => Err(Code::InvalidQuery),
                Err(_) => Err(Code::Internal),
            };
            (worded(&request, found), request.request_id, ended)
        }
    };
    let (method, rate) = (admitted.method(), admitted.usage());
    let (now, _) = shared.engine.now();
    let answer = answers::with_headers(answer, method, Some(&shown), rate, now);
    match ended {
        Ok(()) => admitted.done(),
        Err(code) => admitted.failed(code),
    }
    reply(answer);
}

/// Reads a request.
///
/// # Errors
/// The first fault.
fn read(message: &Message, tenant: Tenant) -> Result<Request, Rejected> {
    let value = ingest::read(&message.body, &crate::shapes::HINT_REQUEST)?;
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let request_id = text("request_id").unwrap_or_default().to_owned();
    let rejected = |fault: Fault| {
        let (request_id, task_id) = (Some(request_id.clone()), String::new());
        Rejected { fault, request_id, task_id }
    };
    let query_type = text("query_type").unwrap_or_default();
    // The contract requires by meaning what its schema does not.
    let member = if query_type == "similar_pattern" { "pattern" } else { query_type };
    let asked = text(member).filter(|asked| !asked.trim().is_empty()).ok_or_else(|| {
        let reason = format!("is required, and not empty, for query_type {query_type}");
        rejected(Fault::new(format!("/{member}"), reason))
    })?;
    let place = Vicinity::of(message).map_err(rejected)?;
    let context = |name: &str| value.get("context").and_then(|context| context.get(name));
    let mut tools: Vec<String> = context("current_tools")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|tool| tool.as_str().map(str::to_owned))
        .collect();
    tools.sort_unstable();
    tools.dedup();
    let whole = |name: &str| value.get(name).and_then(Value::as_u64);
    let max_hints = whole("max_hints").and_then(|most| usize::try_from(most).ok());
    // A number beyond 64 bits is beyond the bound too.
    let patience = whole("deadline_ms").map_or(LONGEST, Duration::from_millis).min(LONGEST);
    let question = Question {
        tenant: tenant.name().to_owned(),
        query_type: query_type.to_owned(),
        text: asked.to_owned(),
        domain: context("domain").and_then(Value::as_str).map(str::to_owned),
        tools,
        max_hints: max_hints.unwrap_or(DEFAULT_HINTS),
        place: place.as_ref().map(|place| place.stated.clone()).unwrap_or_default(),
    };
    let (began, deadline) = (message.began, message.began + patience);
    Ok(Request { request_id, question, tenant, place, began, deadline })
}

fn answer(shared: &Shared, request: &Request) -> Result<FoundHints, Failure> {
    let now = Instant::now();
    if now >= request.deadline {
        return Err(Failure::TimedOut);
    }
    // While the statistics are being counted the answer goes by what is counted so far: readers are few, and a request
    // that waits on one keeps all others from reading.
    let outcome = found(shared, request, now)?;
    let stubs = outcome.supports.iter().filter_map(|at| outcome.candidates.get(*at));
    shared.engine.touch(stubs.map(|drawn| drawn.stub.as_slice()));
    Ok(outcome)
}

fn found(shared: &Shared, request: &Request, now: Instant) -> Result<FoundHints, Failure> {
    let now = Moment { monotonic: now, dated: shared.engine.now().0.as_micros() };
    let kept = shared.cache().get(&request.question, now);
    // Read before the experiences are: what comes meanwhile makes the answer a partial one next time.
    let generation = shared.table().generation(request.tenant.spelt());
    // One that was forgotten or changed since may be a candidate in its new form, and others may come after it. The store
    // is asked too: a client may know that it was forgotten before the table has been told.
    let is_as_drawn = |drawn: &VersionedCandidate| {
        let version = shared.engine.live_version(&drawn.target);
        version.is_some() && version == drawn.version
    };
    match kept.filter(|kept| kept.candidates.iter().all(is_as_drawn)) {
        Some(CachedAnswer { candidates, hints, supports, generation: then, .. })
            if then == generation =>
        {
            return Ok(FoundHints { hints, candidates, supports, cache: "hit" });
        }
        Some(CachedAnswer { candidates, born, .. }) => {
            match finish(shared, request, candidates, generation, Some(born), "partial") {
                // Experiences that came since may well match.
                Err(Failure::NoMatches) => {}
                finished => return finished,
            }
        }
        None => {}
    }
    let search = Search {
        tenant: &request.tenant,
        domain: request.question.domain.as_deref(),
        place: request.place.as_ref(),
        deadline: request.deadline,
    };
    let text = request.question.text.as_str();
    let about = match request.question.query_type.as_str() {
        "task_id" => About::Task(text),
        "similar_pattern" => About::Pattern(text),
        _ => About::Intent(text),
    };
    let FoundCandidates { candidates, is_partial } =
        search.run(shared, about).map_err(|error| {
            // The frame is not known.
            let is_asked_wrong = error.code == Code::InvalidQuery && request.place.is_some();
            if is_asked_wrong { Failure::Query(error) } else { Failure::System(error) }
        })?;
    match (candidates.is_empty(), is_partial) {
        (true, true) => Err(Failure::TimedOut),
        (true, false) => Err(Failure::NoMatches),
        (false, _) => {
            let born = (!is_partial).then_some(now);
            finish(shared, request, candidates.into(), generation, born, "miss")
        }
    }
}

/// Makes the hints of the candidates, and keeps them if the candidates were all there are (`born`).
fn finish(
    shared: &Shared,
    request: &Request,
    candidates: Arc<[VersionedCandidate]>,
    generation: u64,
    born: Option<Moment>,
    cache: &'static str,
) -> Result<FoundHints, Failure> {
    let drawn: Vec<&Candidate> = candidates.iter().map(|drawn| &drawn.candidate).collect();
    let Question { tools, max_hints, .. } = &request.question;
    let tenant = request.tenant.spelt();
    // The table is let go before anything is made of it: the thread that gives the writer's answers waits for it.
    let used: HashMap<&Key, Usage> = {
        let table = shared.table();
        let things = drawn.iter().flat_map(|candidate| candidate.things());
        things.map(|thing| (thing, table.usage(tenant, thing))).collect()
    };
    let usage = |thing: &Key| used.get(thing).copied().unwrap_or_default();
    let mut made: Vec<Hint> = ranking::hints(&drawn, tools, *max_hints, usage);
    if made.is_empty() {
        return Err(Failure::NoMatches);
    }
    let shown: Vec<Key> = made.iter().map(|hint| hint.thing).collect();
    shared.relevance().give(tenant, &shown, Instant::now());
    let latest = shared.table().latest(tenant, &shown);
    made.iter_mut().zip(latest).for_each(|(hint, last)| hint.last = last);
    let supports: Arc<[usize]> = ranking::supports(&made, &drawn).into();
    let hints: Arc<[Value]> = made.iter().map(Hint::to_value).collect();
    if let Some(born) = born {
        let (candidates, hints, supports) = (candidates.clone(), hints.clone(), supports.clone());
        let kept = CachedAnswer { candidates, hints, generation, born, supports };
        shared.cache().put(request.question.clone(), kept);
    }
    Ok(FoundHints { hints, candidates, supports, cache })
}

fn worded(request: &Request, found: Result<FoundHints, Failure>) -> Response {
    let latency = request.began.elapsed();
    let nothing = Measured { latency, ..Measured::default() };
    let id = request.request_id.as_str();
    match found {
        Ok(FoundHints { hints, candidates, cache, .. }) => {
            let best = candidates.iter().map(|drawn| drawn.candidate.similarity).reduce(f64::max);
            let total = candidates.len();
            let cache = Some(cache);
            answers::hints(id, &hints, Measured { latency, total, best, cache })
        }
        Err(Failure::NoMatches) => {
            let mut suggestions = vec!["say it in other or fewer words"];
            if request.question.domain.is_some() {
                suggestions.push("leave context.domain out, to look at every domain");
            }
            if request.place.is_some() {
                suggestions.push("ask within a larger radius");
            }
            if request.question.query_type == "task_id" {
                suggestions.push("check that the task was recorded under this task_id");
            }
            suggestions.push("record what similar tasks used, as they end");
            let message = "no experience is like this";
            answers::no_hints(404, id, "NO_MATCHES", message, &suggestions, nothing)
        }
        Err(Failure::TimedOut) => {
            let message = "the deadline passed before anything was found";
            let suggestions = ["allow more time in deadline_ms"];
            answers::no_hints(500, id, "TIMEOUT", message, &suggestions, nothing)
        }
        Err(Failure::Query(error)) => invalid(id, &error.message, request.began),
        Err(Failure::System(error)) => {
            tracing::error!(%error, "hints failed");
            answers::no_hints(500, id, "SYSTEM_ERROR", &error.message, &[], nothing)
        }
    }
}

fn invalid(request_id: &str, message: &str, began: Instant) -> Response {
    let measured = Measured { latency: began.elapsed(), ..Measured::default() };
    let suggestions = ["compare the request with the schema hint_request.v0"];
    answers::no_hints(400, request_id, "INVALID_QUERY", message, &suggestions, measured)
}
