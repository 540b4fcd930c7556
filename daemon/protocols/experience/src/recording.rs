//! `record`: a report is stored, or meets one that is there.
//!
//! | stored | request | answer |
//! |---|---|---|
//! | nothing | | stored: 200 `recorded` |
//! | same `request_id` and digest | a replay | 200, the first answer again; nothing is written |
//! | another | by default | 409 `DUPLICATE_TASK` |
//! | any | `on_duplicate=update` | 200 `updated`; an equal body writes nothing |
//!
//! No lock is held between the look and the write. The write states what it saw ([`Precondition`]), and of two at once the
//! writer takes one. The other looks again. The answer comes from the writer's callback, so that many records share one flush.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use omir_core::cbor;
use omir_core::reference::Ref;
use omir_core::spatial::SpatialPose;
use omir_core::value::{Map, Value};
use omird_engine::{
    Change, Code, Encoding, Error, Lookup, Precondition, Prepared, Query, Receipt, ScorePart,
};
use omird_router::{Admitted, Message, Reply, Response};

use crate::check::Fault;
use crate::experience::Experience;
use crate::ids::{Tenant, parse_experience};
use crate::ingest::{CheckedRecord, Rejected, Report};
use crate::parameters::{self, Recorded};
use crate::resources::{LaterEvidence, RecordingContext, Stored, resources};
use crate::shared::{Shared, decoded};
use crate::statistics::Row;
use crate::{answers, failure};

/// The most times that a record looks again because another was faster.
const MOST_TRIES: u32 = 16;
/// The most related experiences.
const MOST_RELATED: usize = 5;
/// The least agreement of words that relates two.
const LEAST_RELATED: f64 = 0.3;
/// Bytes of the text that related experiences are looked for by.
const MOST_WORDS: usize = 1 << 10;

/// A report on its way into the store. It holds the bytes that came and not what was read of them, which takes many times
/// the memory: a job waits for the disk, among many, and is seldom read again.
struct Job {
    shared: Arc<Shared>,
    admitted: Admitted,
    body: Vec<u8>,
    report: Report,
    stated: Recorded,
    reply: Reply,
    tries: u32,
}

/// A report that is being written.
struct Written {
    status: &'static str,
    row: Option<Row>,
    related: Vec<String>,
}

/// The decision on a report, given what is stored.
enum Decision {
    /// It is answered.
    Respond(Response, Result<(), Code>),
    /// It is written, if the store is still as it was seen, with what the old version has earned.
    Write(Precondition, &'static str, Option<LaterEvidence>),
}

/// Works on a request.
pub(crate) fn record(shared: &Arc<Shared>, admitted: Admitted, message: Message, reply: Reply) {
    let tenant = parameters::tenant(admitted.caller());
    let read = CheckedRecord::read(&message.body, tenant, &shared.settings, &shared.key);
    let CheckedRecord { report, record } = match read {
        Ok(read) => read,
        Err(rejected) => return reject(shared, admitted, &message, rejected, reply),
    };
    // After the message, so that the answer can name it.
    let stated = match Recorded::of(&message) {
        Ok(stated) => stated,
        Err(fault) => {
            let (request_id, task_id) = (Some(report.request_id), report.task_id);
            let rejected = Rejected { fault, request_id, task_id };
            return reject(shared, admitted, &message, rejected, reply);
        }
    };
    let (shared, body) = (shared.clone(), message.body);
    Job { shared, admitted, body, report, stated, reply, tries: 0 }.decide(record);
}

fn reject(
    shared: &Shared,
    admitted: Admitted,
    message: &Message,
    rejected: Rejected,
    reply: Reply,
) {
    let Rejected { fault, request_id, task_id } = rejected;
    let echoed = request_id.as_deref().unwrap_or_default();
    let (why, details) = (failure::sentence(&fault), failure::details(&fault));
    let answer = answers::rejected(400, echoed, &task_id, "INVALID_RECORD", &why, Some(details));
    let shown = parameters::shown_id(shared, request_id.as_deref(), message);
    send(shared, admitted, answer, &shown, Err(Code::InvalidResource), reply);
}

fn send(
    shared: &Shared,
    admitted: Admitted,
    answer: Response,
    request_id: &str,
    ended: Result<(), Code>,
    reply: Reply,
) {
    let (method, rate) = (admitted.method(), admitted.usage());
    let (now, _) = shared.engine.now();
    let answer = answers::with_headers(answer, method, Some(request_id), rate, now);
    match ended {
        Ok(()) => admitted.done(),
        Err(code) => admitted.failed(code),
    }
    reply(answer);
}

impl Job {
    /// Returns the memory that it takes, roughly.
    fn bytes(&self) -> usize {
        self.body.len() + size_of::<Self>()
    }

    /// Tries once more. May wait for the disk.
    fn attempt(self) {
        let Shared { settings, key, .. } = &*self.shared;
        match CheckedRecord::read(&self.body, self.report.tenant.clone(), settings, key) {
            Ok(CheckedRecord { record, .. }) => self.decide(record),
            Err(_) => self.fail(&bug()),
        }
    }

    /// Looks at what is stored, and answers or writes.
    fn decide(mut self, record: Value) {
        let target = self.report.tenant.experience(&self.report.task_id);
        self.admitted.touched([&target]);
        let decided = match self.shared.engine.get_versioned(&target) {
            Ok(stored) => {
                let stored = stored.as_ref().map(|(bytes, version)| (bytes.as_slice(), *version));
                decide(&self.report, self.stated.updates, stored)
            }
            Err(error) => match self.damaged(&target) {
                // Nothing of it is left: who records it again makes the loss good.
                Some(None) => Decision::Write(Precondition::Absent, "recorded", None),
                Some(Some(version)) if self.stated.updates => {
                    Decision::Write(Precondition::Version(version), "updated", None)
                }
                Some(Some(_)) => {
                    let message = &error.message;
                    let message = format!(
                        "{message}; to record the task again, send the record with ?on_duplicate=update"
                    );
                    return self.fail(&Error { message, ..error });
                }
                None => return self.fail(&error),
            },
        };
        match decided {
            Decision::Respond(answer, ended) => self.answer(answer, ended),
            Decision::Write(precondition, status, later) => {
                self.write(record, precondition, status, later);
            }
        }
    }

    /// Returns the version of an experience whose bytes the card has lost, if a write must name one; `None` where the card is
    /// only away.
    fn damaged(&self, target: &Ref) -> Option<Option<u64>> {
        let engine = &self.shared.engine;
        match engine.look_up(target) {
            Ok(Lookup::Damaged(_) | Lookup::Lost(_)) => {
                Some(engine.live_version(target).map(|(version, _)| version))
            }
            _ => None,
        }
    }

    fn write(
        self,
        record: Value,
        precondition: Precondition,
        status: &'static str,
        later: Option<LaterEvidence>,
    ) {
        let (shared, report) = (self.shared.clone(), &self.report);
        let engine = &shared.engine;
        let Some(experience) = Experience::of(&record) else { return self.fail(&bug()) };
        let related = related(&shared, &report.tenant, &experience);
        let pose = match (self.stated.at, shared.settings.robot_frame.as_deref()) {
            (Some(at), _) => {
                let frame = engine.settings().fixed_frame.clone();
                Some(SpatialPose::new(frame, at.into()))
            }
            (None, Some(frame)) => engine.pose_of(frame),
            (None, None) => None,
        };
        let context = RecordingContext {
            now: engine.now().0,
            source: &self.admitted.caller().name,
            related: &related,
            later,
            status,
            pose,
        };
        let is_there = |target: &Ref| engine.may_refer_to(target);
        let (resource, others) =
            resources(report, &experience, &record, &shared.settings, context, is_there);
        let experience_id = report.tenant.experience_id(&report.task_id);
        let row = Row::of(&experience, &experience_id, &report.patterns, 0);
        drop(record);
        let (change, bytes) = match change(&shared, resource, others, precondition) {
            Ok(change) => change,
            Err(error) => return self.fail(&error),
        };
        let mut written = Written { status, row: Some(row), related };
        let reply = Box::new(move |ended| self.ended(&mut written, ended));
        engine.submit(change, bytes, reply);
    }

    /// Answers once the writer has. Called on its publishing thread, where nothing may wait.
    fn ended(self, written: &mut Written, ended: Result<Receipt, Error>) {
        let receipt = match ended {
            Ok(receipt) => receipt,
            // Another was faster, or an entity that was there has been forgotten: it looks again.
            Err(error)
                if matches!(error.code, Code::Conflict | Code::InvalidResource)
                    && self.tries < MOST_TRIES =>
            {
                let shared = self.shared.clone();
                let again = Self { tries: self.tries + 1, ..self };
                return shared.later(again.bytes(), move |has_turn| {
                    if has_turn {
                        return again.attempt();
                    }
                    let message = "too many records are overtaken; try again in a moment";
                    again.fail(&Error::new(Code::Busy, message));
                });
            }
            Err(error) if error.code == Code::Conflict => {
                let message = "others write the same task all the time; try again in a moment";
                return self.fail(&Error::new(Code::Busy, message));
            }
            Err(error) => return self.fail(&error),
        };
        let Report { tenant, task_id, request_id, patterns, .. } = &self.report;
        let target = tenant.experience(task_id);
        if let (Some(row), Some((_, key))) =
            (written.row.take(), parse_experience(target.id.as_str()))
        {
            if written.status == "recorded" {
                let now = Instant::now();
                self.shared.relevance().take(tenant.spelt(), row.succeeded(), now);
            }
            self.shared.table().put(tenant.spelt(), key, row.stored(receipt.seq));
        }
        let texts = |list: &[String]| list.iter().map(String::as_str).collect::<Value>();
        let answer = answers::stored(
            written.status,
            request_id,
            task_id,
            tenant,
            texts(patterns),
            texts(&written.related),
        );
        let mut job = self;
        job.admitted.note_receipt(&receipt);
        job.answer(answer, Ok(()));
    }

    /// Answers that the store refuses.
    fn fail(self, error: &Error) {
        let Report { request_id, task_id, .. } = &self.report;
        let answer = match error.code {
            // The schema has no words for these, and they are none of the store.
            Code::Busy | Code::TooLarge | Code::Unauthorized => failure::plain(error),
            code => {
                let (status, named) = match code {
                    Code::StorageFull => (507, "STORAGE_ERROR"),
                    // Beyond the bounds of the engine, which the configuration may have narrowed.
                    Code::InvalidResource => (400, "INVALID_RECORD"),
                    _ => (500, "STORAGE_ERROR"),
                };
                let fault = Fault::new("", error.message.clone());
                let details = Some(failure::details(&fault));
                answers::rejected(status, request_id, task_id, named, &error.message, details)
            }
        };
        self.answer(answer, Err(error.code));
    }

    fn answer(self, answer: Response, ended: Result<(), Code>) {
        let Self { shared, admitted, report, reply, .. } = self;
        send(&shared, admitted, answer, &report.request_id, ended, reply);
    }
}

fn bug() -> Error {
    Error::new(Code::Internal, "a checked record is none: that is a bug of omird")
}

/// Decides by what is stored under the name of the task: its bytes and its version.
fn decide(report: &Report, updates: bool, stored: Option<(&[u8], u64)>) -> Decision {
    let Report { tenant, task_id, request_id, digest, .. } = report;
    let Some((bytes, version)) = stored else {
        return Decision::Write(Precondition::Absent, "recorded", None);
    };
    let resource = decoded(bytes);
    let known = resource.as_ref().and_then(Stored::of);
    let first_answer = |known: &Stored<'_>, status: &str| {
        let texts = |list: &[&str]| list.iter().copied().collect::<Value>();
        let (patterns, related) = (texts(&known.patterns), texts(&known.related));
        answers::stored(status, request_id, task_id, tenant, patterns, related)
    };
    match &known {
        Some(known) if known.digest == digest && updates => {
            Decision::Respond(first_answer(known, "updated"), Ok(()))
        }
        Some(known) if known.digest == digest && known.request_id == request_id => {
            Decision::Respond(first_answer(known, known.status), Ok(()))
        }
        _ if updates => {
            let old = known.as_ref().and_then(|known| Experience::of(known.record));
            let later =
                old.zip(resource.as_ref()).map(|(old, whole)| LaterEvidence::of(whole, &old));
            Decision::Write(Precondition::Version(version), "updated", later)
        }
        _ => {
            let message = "this task is recorded already; to replace what is known of it, send the record with \
                           ?on_duplicate=update";
            let mut details = Map::new();
            details.insert("path", "/task_id");
            details.insert("reason", "is recorded already");
            details.insert("experience_id", tenant.experience_id(task_id));
            let answer = answers::rejected(
                409,
                request_id,
                task_id,
                "DUPLICATE_TASK",
                message,
                Some(details),
            );
            Decision::Respond(answer, Err(Code::Conflict))
        }
    }
}

/// Returns the memory that a value takes beside its texts, roughly. It is as deep as a message may be, and a little more.
fn in_memory(value: &Value) -> usize {
    let inside: usize = match value {
        Value::Array(list) => list.iter().map(in_memory).sum(),
        Value::Object(map) => map.iter().map(|(name, one)| name.len() + 32 + in_memory(one)).sum(),
        _ => 0,
    };
    size_of::<Value>() + inside
}

/// Prepares one change of all resources: all of them are stored, or none. Each is within the bounds of a payload by itself.
fn change(
    shared: &Shared,
    record: Value,
    others: Vec<Value>,
    precondition: Precondition,
) -> Result<(Change, usize), Error> {
    let (engine, mut bytes) = (&shared.engine, 0);
    let mut prepare = |value: Value, precondition| -> Result<Vec<Prepared>, Error> {
        let encoded = cbor::to_vec(&value);
        // The engine holds it decoded until it is written.
        bytes += encoded.len() + in_memory(&value);
        drop(value);
        Ok(match engine.prepare(&encoded, Encoding::Cbor, None)?.only_if(precondition) {
            Change::Remember(prepared) => prepared,
            _ => Vec::new(),
        })
    };
    let mut all = prepare(record, precondition)?;
    for other in others {
        all.extend(prepare(other, Precondition::None)?);
    }
    Ok((Change::Remember(all), bytes))
}

/// Returns the experiences that are told of in similar words, best first.
pub(crate) fn related(
    shared: &Shared,
    tenant: &Tenant,
    experience: &Experience<'_>,
) -> Vec<String> {
    let query = Query {
        text: Some(experience.words(MOST_WORDS).into()),
        types: vec![omir_core::reference::ResourceType::MemoryRecord],
        entities: shared.home(tenant).into_iter().collect(),
        limit: Some(4 * MOST_RELATED),
        touch: false,
        explain: true,
        ..Query::default()
    };
    let mut found = Vec::new();
    let walked = shared.engine.recall_each(&query, |hit| {
        let text = hit.part(ScorePart::Text).unwrap_or(0.0);
        if text >= LEAST_RELATED
            && let Some(resource) = decoded(&hit.resource)
            && let Some(task) = task_of(&resource, tenant)
            && task != experience.task_id
        {
            found.push(tenant.experience_id(task));
        }
        if found.len() < MOST_RELATED { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    if let Err(error) = walked {
        tracing::warn!(%error, "related experiences cannot be looked for");
    }
    found
}

/// Returns the task that a resource is the experience of, if it is one of the tenant: anybody may write a record that mentions
/// the entity of a tenant.
pub(crate) fn task_of<'v>(resource: &'v Value, tenant: &Tenant) -> Option<&'v str> {
    let task = Stored::of(resource)?.record.get("task_id")?.as_str()?;
    let name = tenant.experience(task);
    (resource.get("id")?.as_str()? == name.id.as_str()).then_some(task)
}
