//! The words of the draft: closed lists, each with the spelling of the wire.

use serde::{Deserialize, Serialize};

macro_rules! words {
    ($($(#[$about:meta])* $name:ident { $($variant:ident = $word:literal),+ $(,)? })+) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub(crate) enum $name {
            $(#[serde(rename = $word)] $variant),+
        }

        #[allow(dead_code, reason = "not every list is walked, read or written")]
        impl $name {
            /// All of them.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// Their spellings, in the same order.
            pub(crate) const WORDS: &'static [&'static str] = &[$($word),+];

            /// Returns the spelling of the wire.
            pub(crate) fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Reads the spelling of the wire.
            pub(crate) fn parse(text: &str) -> Option<Self> {
                match text { $($word => Some(Self::$variant),)+ _ => None }
            }
        }
    )+};
}

words! {
    /// An operation of the envelope.
    Operation {
        Register = "REGISTER", Deregister = "DEREGISTER", Record = "RECORD", Attune = "ATTUNE",
        Detect = "DETECT", Merge = "MERGE", Subscribe = "SUBSCRIBE", Replay = "REPLAY",
        Compact = "COMPACT", Coordinate = "COORDINATE", Handoff = "HANDOFF", Session = "SESSION",
    }
    /// The mode of a unit.
    Mode { Draft = "draft", Committed = "committed" }
    /// The type of a unit.
    MemoryType {
        Finding = "finding", Decision = "decision", Observation = "observation",
        Intention = "intention", Assumption = "assumption", Constraint = "constraint",
        Question = "question", Contradiction = "contradiction", Synthesis = "synthesis",
        Correction = "correction", HumanDirective = "human_directive",
    }
    /// The status of a unit.
    UnitStatus {
        Draft = "draft", Active = "active", PendingEnrichment = "pending_enrichment",
        Contested = "contested", Superseded = "superseded", Retracted = "retracted",
    }
    /// A relation of a unit to another.
    RelationType {
        Supports = "supports", Contradicts = "contradicts", DependsOn = "depends_on",
        Supersedes = "supersedes", CausedBy = "caused_by", Elaborates = "elaborates",
        Answers = "answers", Blocks = "blocks", Informs = "informs",
    }
    /// The status of an agent.
    AgentStatus {
        Idle = "idle", Working = "working", Waiting = "waiting", Offline = "offline", Failed = "failed",
    }
    /// The kind of a conflict.
    ConflictType {
        Factual = "factual", Interpretive = "interpretive", Strategic = "strategic", Priority = "priority",
    }
    /// The status of a conflict.
    ConflictStatus {
        Detected = "detected", Resolving = "resolving", Resolved = "resolved", Escalated = "escalated",
    }
    /// The way a conflict was found.
    Detection {
        Explicit = "explicit", Semantic = "semantic", Logical = "logical", Temporal = "temporal",
    }
    /// A way to resolve a conflict.
    Strategy {
        LastWriteWins = "last_write_wins", ConfidenceWeighted = "confidence_weighted",
        Authority = "authority", EvidenceCount = "evidence_count", Synthesis = "synthesis",
        HumanEscalation = "human_escalation", Vote = "vote",
    }
    /// The mode of DETECT.
    DetectMode { List = "list", Check = "check", Scan = "scan" }
    /// The form of ATTUNE's units.
    Form { Full = "full", Summary = "summary", IdsOnly = "ids_only" }
    /// The way COMPACT works.
    Compaction { Archive = "archive", Summarize = "summarize", Purge = "purge" }
    /// The depth of REPLAY.
    Depth { Summary = "summary", Detailed = "detailed", FullTrace = "full_trace" }
    /// The kind of thing that REPLAY tells of.
    Target {
        Task = "task", MemoryUnit = "memory_unit", Decision = "decision", Conflict = "conflict",
        Session = "session",
    }
    /// The action of SUBSCRIBE.
    SubscribeAction { Subscribe = "subscribe", Unsubscribe = "unsubscribe", List = "list" }
    /// An event that is pushed.
    EventName {
        Recorded = "memory.recorded", Superseded = "memory.superseded",
        Contested = "memory.contested", ConflictDetected = "conflict.detected",
        ConflictResolved = "conflict.resolved", TaskAssigned = "task.assigned",
        TaskCompleted = "task.completed", TaskChanged = "task.state_changed",
        Handoff = "handoff.incoming", Joined = "agent.joined", Failed = "agent.failed",
        SessionPaused = "session.paused", SessionEnded = "session.ended",
    }
    /// The state of a task.
    TaskState {
        Created = "created", Assigned = "assigned", InProgress = "in_progress",
        Blocked = "blocked", Completed = "completed", Failed = "failed", Cancelled = "cancelled",
    }
    /// The action of COORDINATE.
    CoordinateAction {
        Create = "create", Assign = "assign", Start = "start", Block = "block",
        Unblock = "unblock", Complete = "complete", Fail = "fail", Release = "release",
        Cancel = "cancel", Get = "get", List = "list",
        FailAgent = "fail_agent", RecoverAgent = "recover_agent", Retract = "retract",
    }
    /// The state of a handoff.
    HandoffState {
        Offered = "offered", Accepted = "accepted", Declined = "declined", Withdrawn = "withdrawn",
    }
    /// The action of HANDOFF.
    HandoffAction {
        Offer = "offer", Accept = "accept", Decline = "decline", Withdraw = "withdraw",
        Get = "get", List = "list",
    }
    /// The state of a session.
    SessionState { Active = "active", Paused = "paused", Ended = "ended" }
    /// The action of SESSION.
    SessionAction {
        Create = "create", Join = "join", Leave = "leave", Invite = "invite", Pause = "pause",
        Resume = "resume", End = "end", SetPolicy = "set_policy", Get = "get", List = "list",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_read_as_it_is_written() {
        assert!(Operation::ALL.iter().all(|one| Operation::parse(one.as_str()) == Some(*one)));
        assert_eq!((Operation::ALL.len(), MemoryType::ALL.len()), (12, 11));
        assert_eq!((RelationType::ALL.len(), Strategy::ALL.len()), (9, 7));
        assert_eq!(EventName::ALL.len(), 13);
        assert_eq!(MemoryType::parse("Finding"), None);
    }
}
