//! Authority and visibility, decided in one place for every operation and every way in.

use crate::failure::Failure;
use crate::types::{Agent, Session};
use crate::words::MemoryType;

/// Authority of a person at the machine.
pub(crate) const OPERATOR: u32 = 10;
/// Authority of the creator of a session, in that session.
pub(crate) const CREATOR: u32 = 8;
/// Authority of a caller whose token states none.
pub(crate) const STANDARD: u32 = 4;

/// An act that needs authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Register,
    RecordDraft,
    RecordCommitted,
    Attune,
    Subscribe,
    Detect,
    Vote,
    Merge,
    ResolveEscalated,
    Replay,
    Archive,
    Summarize,
    Purge,
    DeregisterSelf,
    DeregisterOther,
    OwnTask,
    OthersTask,
    CancelTask,
    RetractOwn,
    RetractOthers,
    FailSelf,
    FailOther,
    HandOff,
    CreateSession,
    TakePart,
    LeadSession,
}

impl Act {
    /// All of them.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 26] = [
        Self::Register,
        Self::RecordDraft,
        Self::RecordCommitted,
        Self::Attune,
        Self::Subscribe,
        Self::Detect,
        Self::Vote,
        Self::Merge,
        Self::ResolveEscalated,
        Self::Replay,
        Self::Archive,
        Self::Summarize,
        Self::Purge,
        Self::DeregisterSelf,
        Self::DeregisterOther,
        Self::OwnTask,
        Self::OthersTask,
        Self::CancelTask,
        Self::RetractOwn,
        Self::RetractOthers,
        Self::FailSelf,
        Self::FailOther,
        Self::HandOff,
        Self::CreateSession,
        Self::TakePart,
        Self::LeadSession,
    ];

    /// Returns the least authority, and the act in words.
    pub(crate) fn needs(self) -> (u32, &'static str) {
        match self {
            Self::Register => (0, "REGISTER"),
            Self::Replay => (0, "REPLAY"),
            Self::RecordDraft => (2, "to RECORD a draft"),
            Self::Attune => (2, "ATTUNE"),
            Self::Subscribe => (2, "SUBSCRIBE"),
            Self::TakePart => (2, "to take part in a session"),
            Self::RecordCommitted => (STANDARD, "to RECORD a committed unit"),
            Self::Detect => (STANDARD, "DETECT"),
            Self::Vote => (STANDARD, "to vote"),
            Self::DeregisterSelf => (STANDARD, "to DEREGISTER"),
            Self::OwnTask => (STANDARD, "to work on a task"),
            Self::RetractOwn => (STANDARD, "to retract a unit"),
            Self::FailSelf => (STANDARD, "to report a failure"),
            Self::HandOff => (STANDARD, "HANDOFF"),
            Self::CreateSession => (STANDARD, "to create a session"),
            Self::Merge => (6, "MERGE"),
            Self::Archive => (6, "COMPACT archive"),
            Self::Summarize => (6, "COMPACT summarize"),
            Self::OthersTask => (6, "to coordinate a task of another agent"),
            Self::DeregisterOther => (CREATOR, "to DEREGISTER another agent"),
            Self::CancelTask => (CREATOR, "to cancel a task"),
            Self::RetractOthers => (CREATOR, "to retract a unit of another agent"),
            Self::FailOther => (CREATOR, "to report the failure of another agent"),
            Self::LeadSession => (CREATOR, "to lead a session"),
            Self::ResolveEscalated => (OPERATOR, "to resolve an escalated conflict"),
            Self::Purge => (OPERATOR, "COMPACT purge"),
        }
    }
}

/// Decides if an act is open to an authority.
///
/// # Errors
/// `INSUFFICIENT_AUTHORITY`.
pub(crate) fn may(act: Act, authority: u32) -> Result<(), Failure> {
    let (needed, what) = act.needs();
    if authority >= needed { Ok(()) } else { Err(Failure::authority(what, needed, authority)) }
}

/// The viewer.
#[derive(Debug, Clone)]
pub(crate) struct Viewer<'a> {
    pub(crate) agent_id: &'a str,
    pub(crate) role: &'a str,
    pub(crate) authority: u32,
    /// The session of the message.
    pub(crate) active: Option<&'a str>,
}

impl<'a> Viewer<'a> {
    /// Returns an agent as a viewer of what is of no session, or of its own.
    pub(crate) fn of(agent: &'a Agent) -> Self {
        Self { agent_id: &agent.id, role: &agent.role, authority: agent.authority, active: None }
    }
}

/// A unit, as far as it decides which viewers see it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnitVisibility<'a> {
    pub(crate) author: &'a str,
    pub(crate) of: MemoryType,
    pub(crate) is_draft: bool,
    pub(crate) session: Option<&'a str>,
}

/// Decides which agents are in a session: its members, once it is declared. A name that was not declared is a session
/// to agents whose message says they are in it.
pub(crate) fn is_in(viewer: &Viewer<'_>, id: &str, declared: Option<&Session>) -> bool {
    match declared {
        Some(session) => session.members.contains(viewer.agent_id),
        None => viewer.active == Some(id),
    }
}

/// Decides if a viewer sees a unit: membership, then rules by role, then rules by authority.
pub(crate) fn sees(
    viewer: &Viewer<'_>,
    unit: UnitVisibility<'_>,
    declared: Option<&Session>,
) -> bool {
    let is_own = unit.author == viewer.agent_id;
    if unit.is_draft && !is_own {
        return false;
    }
    let Some(id) = unit.session else { return true };
    // A name that nobody created has no members that its author could cease to be one of.
    let is_authors = is_own && declared.is_none();
    if !is_authors && !is_in(viewer, id, declared) {
        return false;
    }
    let Some(session) = declared.filter(|_| !is_own) else { return true };
    let policy = &session.policy;
    let is_hidden = policy
        .role_rules
        .iter()
        .any(|rule| rule.role == viewer.role && rule.hidden_types.contains(&unit.of));
    let is_barred = policy
        .type_rules
        .iter()
        .any(|rule| rule.of == unit.of && viewer.authority < rule.min_authority);
    !is_hidden && !is_barred
}

/// Decides if a rule of a session keeps some type of units from a viewer.
pub(crate) fn is_limited(viewer: &Viewer<'_>, session: &Session) -> bool {
    let policy = &session.policy;
    let mut of_role = policy.role_rules.iter().filter(|rule| rule.role == viewer.role);
    of_role.any(|rule| !rule.hidden_types.is_empty())
        || policy.type_rules.iter().any(|rule| viewer.authority < rule.min_authority)
}

/// Decides if a viewer finds a session: a member, an invited agent, any agent if it is open, and one that may lead any.
pub(crate) fn finds(viewer: &Viewer<'_>, session: &Session) -> bool {
    let id = viewer.agent_id;
    session.policy.open
        || session.members.contains(id)
        || session.invited.contains(id)
        || viewer.authority >= CREATOR
}

/// Returns the authority of an agent in a session: its creator leads it.
pub(crate) fn in_session(viewer: &Viewer<'_>, session: Option<&Session>) -> u32 {
    match session {
        Some(session) if session.creator == viewer.agent_id => viewer.authority.max(CREATOR),
        _ => viewer.authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Policy, RoleRule, TypeRule};
    use crate::words::SessionState;

    #[test]
    fn each_act_is_refused_below_its_number_and_allowed_from_it() {
        for act in Act::ALL {
            let needed = act.needs().0;
            for authority in 0..=OPERATOR {
                assert_eq!(may(act, authority).is_ok(), authority >= needed, "{act:?} {authority}");
            }
        }
        assert_eq!(Act::Merge.needs().0, 6);
        assert_eq!(Act::Purge.needs().0, 10);
        assert_eq!(Act::RecordDraft.needs().0, 2);
    }

    fn session() -> Session {
        Session {
            id: "s".to_owned(),
            goal: "g".to_owned(),
            state: SessionState::Active,
            creator: "lead".to_owned(),
            members: ["lead", "a", "b"].map(str::to_owned).into(),
            invited: ["guest".to_owned()].into(),
            policy: Policy {
                open: false,
                role_rules: vec![RoleRule {
                    role: "auditor".to_owned(),
                    hidden_types: vec![MemoryType::Decision],
                }],
                type_rules: vec![TypeRule { of: MemoryType::HumanDirective, min_authority: 6 }],
            },
            epoch: 1,
        }
    }

    fn viewer<'a>(agent_id: &'a str, role: &'a str, authority: u32) -> Viewer<'a> {
        Viewer { agent_id, role, authority, active: None }
    }

    fn unit(of: MemoryType, session: Option<&str>) -> UnitVisibility<'_> {
        UnitVisibility { author: "a", of, is_draft: false, session }
    }

    #[test]
    fn membership_then_role_then_authority() {
        let session = session();
        let declared = Some(&session);
        let finding = unit(MemoryType::Finding, Some("s"));
        assert!(sees(&viewer("b", "planner", 4), finding, declared));
        assert!(!sees(&viewer("c", "planner", 10), finding, declared), "no member");
        let decision = unit(MemoryType::Decision, Some("s"));
        assert!(!sees(&viewer("b", "auditor", 4), decision, declared));
        assert!(sees(&viewer("b", "planner", 4), decision, declared));
        let directive = unit(MemoryType::HumanDirective, Some("s"));
        assert!(!sees(&viewer("b", "planner", 4), directive, declared));
        assert!(sees(&viewer("b", "planner", 6), directive, declared));
        assert!(sees(&viewer("a", "auditor", 2), directive, declared), "its own");
    }

    #[test]
    fn a_session_that_nobody_declared_is_that_of_the_message() {
        let finding = unit(MemoryType::Finding, Some("t"));
        let inside = Viewer { active: Some("t"), ..viewer("b", "r", 4) };
        let outside = Viewer { active: Some("s"), ..viewer("b", "r", 4) };
        assert!(sees(&inside, finding, None) && !sees(&outside, finding, None));
        assert!(sees(&outside, unit(MemoryType::Finding, None), None));
        let author = Viewer { active: None, ..viewer("a", "r", 4) };
        assert!(sees(&author, finding, None), "its own unit");
        let declared = Session { members: Default::default(), ..session() };
        assert!(!sees(&author, finding, Some(&declared)), "it has left");
    }

    #[test]
    fn drafts_are_of_their_authors() {
        let draft = UnitVisibility { is_draft: true, ..unit(MemoryType::Finding, None) };
        assert!(sees(&viewer("a", "r", 4), draft, None));
        assert!(!sees(&viewer("b", "r", 10), draft, None));
    }

    #[test]
    fn the_creator_leads_its_own_session_alone() {
        let session = session();
        assert_eq!(in_session(&viewer("lead", "r", 4), Some(&session)), 8);
        assert_eq!(in_session(&viewer("lead", "r", 4), None), 4);
        assert_eq!(in_session(&viewer("a", "r", 4), Some(&session)), 4);
        assert!(finds(&viewer("guest", "r", 2), &session));
        assert!(!finds(&viewer("c", "r", 4), &session) && finds(&viewer("c", "r", 8), &session));
    }
}
