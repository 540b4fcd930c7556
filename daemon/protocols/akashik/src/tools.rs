//! The tools that the draft names, for language models over MCP: `akashik_register` and six more.
//!
//! Arguments are the members of the operation's payload, with `agent_id` and perhaps `session_id` beside them; the result is the answer.
//! There is no push: poll ATTUNE with `since_epoch`.

use omir_core::value::{Map, Value};
use omird_engine::Error;
use omird_router::field::ANY_TEXT;
use omird_router::tool::{CallObserver, Tool, Toolbox};
use omird_router::{Admitted, Field, Method, Refusal, Shape, worded};

use crate::Akashik;
use crate::envelope::Envelope;
use crate::exchange::who;
use crate::failure::{Failure, INSUFFICIENT_AUTHORITY};
use crate::methods;
use crate::operation_context::OperationResult;
use crate::operations;
use crate::words::{
    Compaction, ConflictStatus, ConflictType, Depth, DetectMode, Form, MemoryType, Mode, Operation,
    RelationType, Strategy, Target, UnitStatus,
};

const ID: Shape = Shape::Text(256);
const TEXT: Shape = Shape::Text(16_384);
const SHARE: Shape = Shape::Number(0.0, 1.0);
const COUNT: Shape = Shape::Integer(1, 1000);
const EPOCH: Shape = Shape::Integer(0, 1 << 53);
const TEXTS: Shape = Shape::List(&TEXT, 0, 100);

const AGENT: Field = Field::new("agent_id", ID, "Your id in the field, as registered.").required();
const SESSION: Field = Field::new("session_id", ID, "The session you act in, if you are in one.");
const STATUS: Field =
    Field::new("status", ANY_TEXT, "How it ended, such as accepted or ok.").required();
const EPOCH_OUT: Field =
    Field::new("epoch", EPOCH, "The logical time; ask with it as since_epoch next time.");
const CONFLICTS: Field = Field::new(
    "conflicts",
    Shape::List(&Shape::Anything, 0, usize::MAX),
    "Conflicts: id, type, status, unit_a, unit_b, description, detected_by.",
);

const INTENT: Shape = Shape::Object(&[
    Field::new("purpose", TEXT, "Why it is recorded.").required(),
    Field::new("task_id", ID, "The task it serves."),
    Field::new("question", TEXT, "The question it answers or asks."),
]);
const CONFIDENCE: Shape = Shape::Object(&[
    Field::new("score", SHARE, "How sure you are."),
    Field::new("reasoning", TEXT, "Why."),
    Field::new("evidence", TEXTS, "What speaks for it."),
    Field::new("assumptions", TEXTS, "What is taken as true."),
]);
const RELATION: Shape = Shape::Object(&[
    Field::new("type", Shape::OneOf(RelationType::WORDS), "The relation.").required(),
    Field::new("target_id", ID, "The other unit.").required(),
    Field::new("description", TEXT, "More about it."),
]);
const SCOPE: Shape = Shape::Object(&[
    Field::new("role", TEXT, "Your role: the main signal of what matters to you.").required(),
    Field::new("max_units", COUNT, "Most units to get.").required(),
    Field::new("since_epoch", EPOCH, "Only units from this epoch on."),
    Field::new("max_tokens", Shape::Integer(1, 1 << 31), "Most tokens of their contents."),
    Field::new("interests", TEXTS, "Topics to raise."),
    Field::new("active_task_id", ID, "The task you work on."),
    Field::new("relevance_threshold", SHARE, "Leaves out units below it."),
    Field::new("recency_weight", SHARE, "0 ignores age, 1 goes by it alone."),
]);

/// A tool and its operation.
struct Row {
    tool: Tool,
    operation: Operation,
}

macro_rules! tools {
    ($($name:literal $operation:ident $title:literal $about:literal [$($input:expr),* $(,)?] [$($output:expr),* $(,)?] $destroys:literal;)+) => {
        static ROWS: &[Row] = &[$(Row {
            tool: Tool {
                name: $name,
                title: $title,
                about: $about,
                method: methods::row_of(Operation::$operation),
                inputs: &[AGENT, SESSION, $($input),*],
                outputs: &[$($output),*],
                is_destructive: $destroys,
                is_idempotent: false,
            },
            operation: Operation::$operation,
        }),+];
    };
}

tools! {
    "akashik_register" Register "Join a shared field"
        "Registers you as an agent of the memory that several agents share. Do this once, before the other akashik tools."
        [
            Field::new("id", ID, "Your id: the same as agent_id.").required(),
            Field::new("role", TEXT, "What you do, in a few words.").required(),
            Field::new("interests", TEXTS, "Topics that matter to you."),
        ]
        [
            STATUS,
            Field::new("agent", Shape::Anything, "You, as others see you."),
            Field::new("field_capabilities", Shape::Anything, "What the field offers."),
            Field::new("rejection_reason", ANY_TEXT, "Why you were not registered."),
        ] false;
    "akashik_record" Record "Record what you know for others"
        "Records a finding, decision, observation or the like, with the reason for it. Others see it when it matters to them. It does not change any more; correct it with a new one that supersedes it."
        [
            Field::new("mode", Shape::OneOf(Mode::WORDS), "committed, unless it is a draft of your own."),
            Field::new("type", Shape::OneOf(MemoryType::WORDS), "Its type.").required(),
            Field::new("content", Shape::Text(65_536), "What you know.").required(),
            Field::new("intent", INTENT, "Why you record it.").required(),
            Field::new("confidence", CONFIDENCE, "How sure you are; score and reasoning are needed where it is committed."),
            Field::new("relations", Shape::List(&RELATION, 0, 100), "Relations to other units."),
        ]
        [
            STATUS,
            Field::new("memory_unit_id", ANY_TEXT, "Its id."),
            EPOCH_OUT,
            Field::new("conflicts_detected", Shape::List(&ANY_TEXT, 0, usize::MAX), "Ids of conflicts with what others recorded."),
            Field::new("conflict_detection", ANY_TEXT, "deferred, if conflicts are looked for later."),
        ] false;
    "akashik_attune" Attune "Learn what others know"
        "Gives what other agents recorded that matters to you now, best first, and unresolved conflicts. Poll it with since_epoch: nothing is pushed here."
        [
            Field::new("scope", SCOPE, "Who you are and how much you can take.").required(),
            Field::new("context_hint", TEXT, "What you are doing."),
            Field::new("format", Shape::OneOf(Form::WORDS), "full unless stated."),
            Field::new("since_epoch", EPOCH, "Only units from this epoch on."),
        ]
        [
            STATUS,
            Field::new("record", Shape::List(&Shape::Anything, 0, usize::MAX), "Units with relevance_score and relevance_reason."),
            CONFLICTS,
            Field::new("context_budget", Shape::Anything, "Units and tokens used and available."),
            EPOCH_OUT,
        ] false;
    "akashik_detect" Detect "Find contradictions"
        "Lists known conflicts, checks one unit, or scans all units for conflicts."
        [
            Field::new("mode", Shape::OneOf(DetectMode::WORDS), "list, check or scan.").required(),
            Field::new("target_id", ID, "The unit to check."),
            Field::new("filter", Shape::Object(&[
                Field::new("status", Shape::List(&Shape::OneOf(ConflictStatus::WORDS), 0, 4), "Of these statuses."),
                Field::new("types", Shape::List(&Shape::OneOf(ConflictType::WORDS), 0, 4), "Of these types."),
                Field::new("involving_agents", TEXTS, "With units of these agents."),
            ]), "Narrows the conflicts."),
        ]
        [STATUS, CONFLICTS, Field::new("scan_coverage", Shape::Anything, "Units looked at, and new conflicts.")] false;
    "akashik_merge" Merge "Resolve a contradiction"
        "Resolves a conflict between two units by a strategy. The unit that loses is superseded. Needs authority 6."
        [
            Field::new("conflict_id", ID, "The conflict.").required(),
            Field::new("strategy", Shape::OneOf(Strategy::WORDS), "The way to decide.").required(),
            Field::new("resolution", Shape::Object(&[
                Field::new("rationale", TEXT, "Why.").required(),
                Field::new("winner_id", ID, "The unit that wins, for authority and vote."),
                Field::new("synthesis", Shape::Text(65_536), "The content that reconciles both, for synthesis."),
            ]), "The decision.").required(),
        ]
        [
            STATUS,
            Field::new("conflict", Shape::Anything, "The conflict now."),
            Field::new("side_effects", Shape::Anything, "Units superseded and made, agents notified."),
        ] true;
    "akashik_replay" Replay "Learn what happened"
        "Tells from the log what happened to a unit, task, conflict or session, and who did it."
        [
            Field::new("target_type", Shape::OneOf(Target::WORDS), "The kind of thing.").required(),
            Field::new("target_id", ID, "Its id.").required(),
            Field::new("depth", Shape::OneOf(Depth::WORDS), "How much to tell.").required(),
        ]
        [
            STATUS,
            Field::new("timeline", Shape::List(&Shape::Anything, 0, usize::MAX), "Events in their order."),
            Field::new("summary", ANY_TEXT, "A sentence about all of it."),
            Field::new("agents_involved", Shape::List(&ANY_TEXT, 0, usize::MAX), "Who took part."),
            Field::new("total_events", Shape::Integer(0, 1 << 53), "Number of events."),
        ] false;
    "akashik_compact" Compact "Take old units out of the way"
        "Archives units, sums them up, or purges them for good. Needs authority 6, and 10 to purge."
        [
            Field::new("strategy", Shape::OneOf(Compaction::WORDS), "archive, summarize or purge.").required(),
            Field::new("filter", Shape::Object(&[
                Field::new("max_age_epochs", EPOCH, "Older than so many epochs."),
                Field::new("session_id", ID, "Of this session."),
                Field::new("types", Shape::List(&Shape::OneOf(MemoryType::WORDS), 0, 11), "Of these types."),
                Field::new("status", Shape::List(&Shape::OneOf(UnitStatus::WORDS), 0, 6), "Of these statuses."),
                Field::new("unit_ids", TEXTS, "These units."),
            ]), "Narrows the units; each member that is given holds."),
            Field::new("reason", TEXT, "Why, for a purge."),
        ]
        [
            STATUS,
            Field::new("units_affected", Shape::Integer(0, 1 << 53), "Number of units."),
            Field::new("synthesis_units_created", Shape::Integer(0, 1 << 53), "Number of summaries."),
            Field::new("storage_reclaimed_bytes", Shape::Integer(0, 1 << 53), "Bytes of contents that were purged."),
            Field::new("unit_ids", Shape::List(&ANY_TEXT, 0, usize::MAX), "The units."),
        ] true;
}

impl Toolbox for Akashik {
    fn tools(&self) -> Vec<&'static Tool> {
        ROWS.iter().map(|row| &row.tool).collect()
    }

    // Tools that only read may wait for a change that is being written.
    fn waits_for_the_disk(&self, _: &Tool) -> bool {
        true
    }

    fn call(
        &self,
        tool: &'static Tool,
        mut admitted: Admitted,
        arguments: &Map,
        _observer: &dyn CallObserver,
    ) -> Result<Map, Error> {
        let Some(row) = ROWS.iter().find(|row| std::ptr::eq(&row.tool, tool)) else {
            let failure = Failure::internal(format!("{} is no tool here", tool.name));
            admitted.failed(failure.code.kind);
            return Err(told(&failure));
        };
        match self.used(row, &mut admitted, arguments) {
            Ok((_, Value::Object(map))) => {
                admitted.done();
                Ok(map.iter().filter(|(_, value)| !value.is_null()).fold(
                    Map::new(),
                    |mut map, (name, value)| {
                        map.insert(name, value.clone());
                        map
                    },
                ))
            }
            Ok(_) => {
                let failure = Failure::internal("an answer is no object");
                admitted.failed(failure.code.kind);
                Err(told(&failure))
            }
            Err(failure) => {
                admitted.failed(failure.code.kind);
                Err(told(&failure))
            }
        }
    }

    fn worded(&self, refusal: Refusal) -> Error {
        worded(refusal)
    }
}

/// Returns a failure as tools tell it: the code of the draft first.
fn told(failure: &Failure) -> Error {
    Error::new(failure.code.kind, format!("{}: {}", failure.code.name, failure.message))
}

impl Akashik {
    fn used(&self, row: &Row, admitted: &mut Admitted, arguments: &Map) -> OperationResult {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).map(str::to_owned);
        let mut payload = Map::new();
        for (name, value) in arguments.iter() {
            if name != "agent_id" && name != "session_id" {
                payload.insert(name, value.clone());
            }
        }
        let envelope = Envelope {
            // A call of a tool has no id of its own that would come twice.
            id: format!("mcp-{}", self.new_id()),
            operation: row.operation,
            agent_id: text("agent_id").unwrap_or_default(),
            session_id: text("session_id"),
            epoch: 0,
            payload,
        };
        let caller = admitted.caller().clone();
        let who = who(&caller);
        if !caller.may_name(&envelope.agent_id) {
            let message = format!("this token speaks as {}", who.agents.join(", "));
            return Err(Failure::new(&INSUFFICIENT_AUTHORITY, message));
        }
        let field = self.field(caller.tenant.as_deref());
        if !operations::changes(&envelope) {
            return field.read(&envelope, &who);
        }
        let method: &'static Method = admitted.method();
        admitted.expect_change().map_err(|refusal| Failure::of_refusal(refusal, method))?;
        let (tell, answer) = std::sync::mpsc::sync_channel(1);
        field.change(envelope, who, Box::new(move |done| drop(tell.send(done))));
        answer.recv().unwrap_or_else(|_| Err(Failure::from(omird_engine::unanswered())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_are_those_of_the_draft() {
        let names: Vec<&str> = ROWS.iter().map(|row| row.tool.name).collect();
        let expected = ["register", "record", "attune", "detect", "merge", "replay", "compact"];
        assert_eq!(names, expected.map(|name| format!("akashik_{name}")));
        assert!(
            ROWS.iter().all(|row| row.tool.method.name == row.operation.as_str().to_lowercase())
        );
    }
}
