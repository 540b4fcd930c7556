//! The state machines of units, conflicts, agents, tasks, handoffs and sessions, as tables.
//!
//! A row that is not in a table is a move that does not exist: the answer is `INVALID_TRANSITION`. Tests walk each
//! table with each cause from each state.

use crate::words::{
    AgentStatus, ConflictStatus, HandoffState, SessionState, TaskState, UnitStatus,
};

/// A table of moves: from, cause, to. `None` is what is not there yet.
pub(crate) type Table<S, C> = &'static [(Option<S>, C, S)];

/// Returns the state that a cause leads to.
pub(crate) fn next<S: Copy + PartialEq, C: Copy + PartialEq>(
    table: Table<S, C>,
    from: Option<S>,
    cause: C,
) -> Option<S> {
    table.iter().find(|(at, by, _)| *at == from && *by == cause).map(|(_, _, to)| *to)
}

macro_rules! machine {
    ($(#[$about:meta])* $name:ident: $state:ident by $cause:ident { $($by:ident),+ $(,)? } $($from:tt --$with:ident--> $to:ident;)+) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $cause { $($by),+ }

        #[cfg(test)]
        impl $cause {
            const ALL: &'static [Self] = &[$(Self::$by),+];
        }

        $(#[$about])*
        pub(crate) static $name: Table<$state, $cause> =
            &[$((machine!(@from $state $from), $cause::$with, $state::$to)),+];
    };
    (@from $state:ident New) => { None };
    (@from $state:ident $from:ident) => { Some($state::$from) };
}

machine! {
    /// Units: `docs/akashik.md`, "Units". A draft never becomes anything but superseded or retracted: a committed unit takes its place.
    UNITS: UnitStatus by UnitCause { Draft, Commit, CommitWithoutVector, Enrich, Contest, Resolve, Supersede, Retract }
    New --Draft--> Draft;
    New --Commit--> Active;
    New --CommitWithoutVector--> PendingEnrichment;
    PendingEnrichment --Enrich--> Active;
    Active --Contest--> Contested;
    PendingEnrichment --Contest--> Contested;
    Contested --Contest--> Contested;
    Contested --Resolve--> Active;
    Draft --Supersede--> Superseded;
    Active --Supersede--> Superseded;
    PendingEnrichment --Supersede--> Superseded;
    Contested --Supersede--> Superseded;
    Draft --Retract--> Retracted;
    Active --Retract--> Retracted;
    PendingEnrichment --Retract--> Retracted;
    Contested --Retract--> Retracted;
}

machine! {
    /// Conflicts, as the draft has them.
    CONFLICTS: ConflictStatus by ConflictCause { Detect, Start, Succeed, Escalate, Decide }
    New --Detect--> Detected;
    Detected --Start--> Resolving;
    Detected --Escalate--> Escalated;
    Resolving --Start--> Resolving;
    Resolving --Succeed--> Resolved;
    Resolving --Escalate--> Escalated;
    Escalated --Decide--> Resolved;
}

machine! {
    /// Agents.
    AGENTS: AgentStatus by AgentCause { Register, Work, Wait, Free, Leave, Fail, Recover }
    New --Register--> Idle;
    Offline --Register--> Idle;
    Idle --Work--> Working;
    Working --Work--> Working;
    Waiting --Work--> Working;
    Working --Wait--> Waiting;
    Idle --Wait--> Waiting;
    Idle --Free--> Idle;
    Working --Free--> Idle;
    Waiting --Free--> Idle;
    Idle --Leave--> Offline;
    Working --Leave--> Offline;
    Waiting --Leave--> Offline;
    Failed --Leave--> Offline;
    Idle --Fail--> Failed;
    Working --Fail--> Failed;
    Waiting --Fail--> Failed;
    Failed --Recover--> Idle;
}

machine! {
    /// Tasks: our design.
    TASKS: TaskState by TaskCause { Create, Assign, Start, Block, Unblock, Complete, Fail, Release, Cancel }
    New --Create--> Created;
    New --Assign--> Assigned;
    Created --Assign--> Assigned;
    Assigned --Assign--> Assigned;
    InProgress --Assign--> Assigned;
    Blocked --Assign--> Assigned;
    Failed --Assign--> Assigned;
    Assigned --Start--> InProgress;
    Assigned --Block--> Blocked;
    InProgress --Block--> Blocked;
    Blocked --Unblock--> InProgress;
    InProgress --Complete--> Completed;
    Assigned --Fail--> Failed;
    InProgress --Fail--> Failed;
    Blocked --Fail--> Failed;
    Assigned --Release--> Created;
    InProgress --Release--> Created;
    Blocked --Release--> Created;
    Created --Cancel--> Cancelled;
    Assigned --Cancel--> Cancelled;
    InProgress --Cancel--> Cancelled;
    Blocked --Cancel--> Cancelled;
    Failed --Cancel--> Cancelled;
}

machine! {
    /// Handoffs: our design.
    HANDOFFS: HandoffState by HandoffCause { Offer, Accept, Decline, Withdraw }
    New --Offer--> Offered;
    Offered --Accept--> Accepted;
    Offered --Decline--> Declined;
    Offered --Withdraw--> Withdrawn;
}

machine! {
    /// Sessions: our design.
    SESSIONS: SessionState by SessionCause { Create, Pause, Resume, End, Change }
    New --Create--> Active;
    Active --Pause--> Paused;
    Active --End--> Ended;
    Active --Change--> Active;
    Paused --Resume--> Active;
    Paused --End--> Ended;
    Paused --Change--> Paused;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walks a table: each state with each cause. Returns the moves that are made, and the states nothing leads out of.
    fn walk<S: Copy + PartialEq + std::fmt::Debug, C: Copy + PartialEq + std::fmt::Debug>(
        table: Table<S, C>,
        states: &[S],
        causes: &[C],
    ) -> (usize, Vec<S>) {
        let mut made = 0;
        let mut last = Vec::new();
        for from in std::iter::once(None).chain(states.iter().copied().map(Some)) {
            let mut leads_out = false;
            for &cause in causes {
                let rows: Vec<_> =
                    table.iter().filter(|(at, by, _)| *at == from && *by == cause).collect();
                assert!(rows.len() <= 1, "{from:?} by {cause:?} leads to one state");
                assert_eq!(next(table, from, cause), rows.first().map(|row| row.2));
                made += rows.len();
                leads_out |= rows.iter().any(|row| Some(row.2) != from);
            }
            if let Some(from) = from.filter(|_| !leads_out) {
                last.push(from);
            }
        }
        assert_eq!(made, table.len());
        // Each state is reached.
        let mut reached: Vec<S> = Vec::new();
        let mut edge: Vec<Option<S>> = vec![None];
        while let Some(from) = edge.pop() {
            for (_, _, to) in table.iter().filter(|(at, _, _)| *at == from) {
                if !reached.contains(to) {
                    reached.push(*to);
                    edge.push(Some(*to));
                }
            }
        }
        assert!(states.iter().all(|state| reached.contains(state)), "{reached:?}");
        (made, last)
    }

    #[test]
    fn each_table_is_walked_from_each_state_by_each_cause() {
        use {AgentStatus as A, ConflictStatus as C, TaskState as T, UnitStatus as U};
        let units = walk(UNITS, U::ALL, UnitCause::ALL);
        assert_eq!(units, (16, vec![U::Superseded, U::Retracted]));
        assert_eq!(walk(CONFLICTS, C::ALL, ConflictCause::ALL), (7, vec![C::Resolved]));
        assert_eq!(walk(AGENTS, A::ALL, AgentCause::ALL).1, vec![]);
        let tasks = walk(TASKS, T::ALL, TaskCause::ALL);
        assert_eq!(tasks, (23, vec![T::Completed, T::Cancelled]));
        let handoffs = walk(HANDOFFS, HandoffState::ALL, HandoffCause::ALL);
        assert_eq!(handoffs.1.len(), 3);
        let sessions = walk(SESSIONS, SessionState::ALL, SessionCause::ALL);
        assert_eq!(sessions.1, vec![SessionState::Ended]);
    }

    #[test]
    fn a_resolved_conflict_stays_so() {
        for &cause in ConflictCause::ALL {
            assert_eq!(next(CONFLICTS, Some(ConflictStatus::Resolved), cause), None);
        }
    }
}
