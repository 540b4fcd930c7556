//! Level 3: many agents, with rights, in tasks and sessions.

use super::level0::{pair, relation};
use super::level1::{conflict, replay_of};
use super::level2::{archive, compacted, merge, merged, open, task};
use crate::commands::akashik::probe::{
    Checked, Probe, Verdict, expect, ids, list, not, text, unit,
};

pub(super) fn coordination(probe: &mut Probe) -> Checked {
    let (a, _) = pair(probe)?;
    task(probe, &a)?;
    let made = open(probe, &a, "SESSION", r#"{"action":"create","goal":"conformance"}"#)?;
    let id = text(&made, "/session/id")?;
    for (action, state) in [("pause", "paused"), ("resume", "active"), ("end", "ended")] {
        let done =
            probe.ask(&a, "SESSION", &format!(r#"{{"action":"{action}","session_id":"{id}"}}"#))?;
        expect(text(&done, "/session/state")? == state, format!("{done}"))?;
    }
    probe.refuses(
        "INVALID_TRANSITION",
        &a,
        "SESSION",
        &format!(r#"{{"action":"resume","session_id":"{id}"}}"#),
    )
}

pub(super) fn tasks(probe: &mut Probe) -> Checked {
    let (a, b) = pair(probe)?;
    let chief = probe.join("chief", "planner", 10)?;
    let id = task(probe, &a)?;
    let act = |action: &str| format!(r#"{{"action":"{action}","task_id":"{id}"}}"#);
    for (by, action, state) in [
        (&a, "start", "in_progress"),
        (&a, "block", "blocked"),
        (&a, "unblock", "in_progress"),
        (&a, "release", "created"),
    ] {
        let done = probe.ask(by, "COORDINATE", &act(action))?;
        expect(text(&done, "/task/state")? == state, format!("{action}: {done}"))?;
    }
    probe.refuses("INVALID_TRANSITION", &chief, "COORDINATE", &act("complete"))?;
    let assign = format!(r#"{{"action":"assign","task_id":"{id}","assignee":"{b}"}}"#);
    probe.ask(&b, "COORDINATE", &assign)?;
    let done = probe.ask(&b, "COORDINATE", &act("fail"))?;
    expect(text(&done, "/task/state")? == "failed", format!("fail: {done}"))?;
    probe.ask(&chief, "COORDINATE", &assign)?;
    probe.ask(&b, "COORDINATE", &act("start"))?;
    let done = probe.ask(&b, "COORDINATE", &act("complete"))?;
    expect(text(&done, "/task/state")? == "completed", format!("{done}"))?;
    for action in ["start", "cancel", "fail", "release"] {
        probe.refuses("INVALID_TRANSITION", &chief, "COORDINATE", &act(action))?;
    }
    Ok(())
}

pub(super) fn strategies(probe: &mut Probe) -> Checked {
    merge(probe)?;
    let senior = probe.join("senior", "planner", 6)?;
    let human = probe.join("human", "planner", 10)?;
    let (one, _, id) = conflict(probe, "authority")?;
    let winner = |id: &str| format!(r#","winner_id":"{id}""#);
    let done = merged(probe, &senior, &id, "authority", &winner(&one))?;
    expect(text(&done, "/status")? == "resolved", format!("authority: {done}"))?;
    let (one, _, id) = conflict(probe, "evidence")?;
    let third = probe.join("c", "planner", 4)?;
    probe.record(&third, "i saw tools there", &relation("supports", &one))?;
    let done = merged(probe, &senior, &id, "evidence_count", "")?;
    expect(
        text(&done, "/conflict/resolution/winner_id")? == one,
        format!("evidence_count: {done}"),
    )?;
    let (_, _, id) = conflict(probe, "synthesis")?;
    let done = merged(probe, &senior, &id, "synthesis", r#","synthesis":"both, in turns""#)?;
    expect(
        list(&done, "/side_effects/superseded_units")?.len() == 2,
        format!("synthesis: {done}"),
    )?;
    text(&done, "/side_effects/new_unit_id")?;
    let (one, _, id) = conflict(probe, "vote")?;
    let done = merged(probe, &senior, &id, "vote", &winner(&one))?;
    let status = text(&done, "/status")?;
    expect(status == "pending_vote" || status == "resolved", format!("vote: {done}"))?;
    let (one, _, id) = conflict(probe, "human")?;
    merged(probe, &senior, &id, "human_escalation", "")?;
    let done = merged(probe, &human, &id, "authority", &winner(&one))?;
    expect(text(&done, "/status")? == "resolved", format!("a person decides: {done}"))
}

pub(super) fn authenticated(probe: &mut Probe) -> Checked {
    probe.needs(4)?;
    let (a, _) = pair(probe)?;
    let message = probe.message(
        &a,
        "DETECT",
        None,
        omir_core::json::from_slice(br#"{"mode":"list"}"#, &omir_core::decode::Limits::default())
            .unwrap_or_default(),
    );
    let answer = probe.send_bare(&message)?;
    expect(answer.is_error, "a message without a token is answered")?;
    expect(
        matches!(answer.status, 0 | 401 | 403),
        format!("without a token the status is {}", answer.status),
    )
}

pub(super) fn authority(probe: &mut Probe) -> Checked {
    for authority in [2, 4, 6, 10] {
        probe.needs(authority)?;
    }
    let (a, b) = pair(probe)?;
    let observer = probe.join("observer", "observer", 2)?;
    let senior = probe.join("senior", "planner", 6)?;
    let (_, _, id) = conflict(probe, "refused")?;
    let merge = format!(
        r#"{{"conflict_id":"{id}","strategy":"last_write_wins","resolution":{{"rationale":"x"}}}}"#
    );
    let deregister = format!(r#"{{"agent_id":"{b}"}}"#);
    for (who, operation, payload) in [
        (&observer, "RECORD", unit("x", "")),
        (&observer, "DETECT", r#"{"mode":"list"}"#.to_owned()),
        (&a, "MERGE", merge),
        (&a, "COMPACT", r#"{"strategy":"archive","filter":{"session_id":"none"}}"#.to_owned()),
        (&senior, "COMPACT", r#"{"strategy":"purge","filter":{"session_id":"none"}}"#.to_owned()),
        (&a, "DEREGISTER", deregister),
    ] {
        let code = probe.refusal(who, operation, &payload);
        code.map_err(|why| not(format!("{operation} by too low an authority: {why:?}")))?;
    }
    probe.attune(&observer, "").map(drop)
}

pub(super) fn visibility(probe: &mut Probe) -> Checked {
    let (a, b) = pair(probe)?;
    let auditor = probe.join("auditor", "auditor", 4)?;
    let outsider = probe.join("outsider", "planner", 4)?;
    let payload = format!(
        r#"{{"action":"create","goal":"conformance","members":["{b}","{auditor}"],"policy":{{"role_rules":[{{"role":"auditor","hidden_types":["decision"]}}]}}}}"#
    );
    let made = open(probe, &a, "SESSION", &payload)?;
    let session = text(&made, "/session/id")?;
    let payload = unit("we meet at the pier", "").replace(r#""finding""#, r#""decision""#);
    let id = text(&probe.ask_in(&a, Some(&session), "RECORD", &payload)?, "/memory_unit_id")?;
    let scope = r#"{"scope":{"role":"planner","max_units":200}}"#;
    let inside = ids(&probe.ask_in(&b, Some(&session), "ATTUNE", scope)?)?;
    expect(inside.contains(&id), "a member does not see a unit of its session")?;
    let filtered = ids(&probe.ask_in(&auditor, Some(&session), "ATTUNE", scope)?)?;
    expect(!filtered.contains(&id), "a type that is hidden from a role is seen by it")?;
    let outside = ids(&probe.ask(&outsider, "ATTUNE", scope)?)?;
    expect(!outside.contains(&id), "somebody outside sees a unit of a session")?;
    probe.refusal(&outsider, "REPLAY", &replay_of(&id, "summary")).map(drop)
}

pub(super) fn compact(probe: &mut Probe) -> Checked {
    archive(probe)?;
    let (_, _, seen) = compacted(probe, "summarize", 6)?;
    let has_synthesis = list(&seen, "/record")?
        .iter()
        .any(|one| text(one, "/memory_unit/type").is_ok_and(|of| of == "synthesis"));
    expect(has_synthesis, "summarize leaves no synthesis unit")?;
    let (by, id, _) = compacted(probe, "purge", 10)?;
    let session = probe.name("compact10purge");
    let told = probe.ask_in(&by, Some(&session), "REPLAY", &replay_of(&id, "detailed"))?;
    expect(!list(&told, "/timeline")?.is_empty(), "a purged unit has no tombstone in the log")
}

pub(super) fn transports(probe: &mut Probe) -> Checked {
    let ways = probe.ways();
    let &[first, second] = ways.as_slice() else {
        return Err(Verdict::Undecided(
            "--url and --zenoh name one endpoint by two ways".to_owned(),
        ));
    };
    let (a, b) = pair(probe)?;
    let mut written = Vec::new();
    for n in 0..6 {
        let payload = unit(&format!("mark {n} by two ways"), "");
        let payload =
            omir_core::json::from_slice(payload.as_bytes(), &omir_core::decode::Limits::default());
        let message = probe.message(&a, "RECORD", None, payload.unwrap_or_default());
        let answer = probe.send_by(if n % 2 == 0 { first } else { second }, 4, &message)?;
        expect(!answer.is_error, format!("{}", answer.value))?;
        written.push(text(&answer.value, "/memory_unit_id")?);
    }
    let mut seen = Vec::new();
    for way in [first, second] {
        let scope = r#"{"scope":{"role":"planner","max_units":200}}"#;
        let payload =
            omir_core::json::from_slice(scope.as_bytes(), &omir_core::decode::Limits::default());
        let message = probe.message(&b, "ATTUNE", None, payload.unwrap_or_default());
        let answer = probe.send_by(way, 4, &message)?;
        expect(!answer.is_error, format!("{}", answer.value))?;
        seen.push(ids(&answer.value)?);
    }
    expect(seen[0] == seen[1], "both ways do not see the same field")?;
    expect(
        written.iter().all(|id| seen[0].contains(id)),
        "what was written by one way is not seen by both",
    )
}
