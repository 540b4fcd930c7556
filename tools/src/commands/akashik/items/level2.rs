//! Level 2: meaning, conflicts and their ends, push, handoff and replay.

use omir_core::value::Value;

use super::level0::pair;
use super::level1::{conflict, replay_of};
use crate::commands::akashik::probe::{
    Checked, Probe, Verdict, expect, ids, list, not, text, unit,
};

/// What shares no word with the question, and means something else, must come behind what shares its stems.
pub(super) fn meaning(probe: &mut Probe) -> Checked {
    let (a, b) = pair(probe)?;
    let since = probe.attune(&b, "")?.get("epoch").and_then(Value::as_u64).unwrap_or_default();
    let near = probe.record(&a, "the charging station stands beside the window", "")?;
    for other in [
        "plants need water twice a week",
        "the invoice was paid in may",
        "chess is played on tuesdays",
    ] {
        probe.record(&a, other, "")?;
    }
    let payload = format!(
        r#"{{"scope":{{"role":"electrician","max_units":4,"recency_weight":0.0}},"since_epoch":{since},"context_hint":"where do robots charge at stations"}}"#
    );
    let all = ids(&probe.ask(&b, "ATTUNE", &payload)?)?;
    expect(all.first() == Some(&near), "the unit nearest in meaning is not the first")
}

pub(super) fn scope(probe: &mut Probe) -> Checked {
    let (a, b) = pair(probe)?;
    let since = probe.attune(&b, "")?.get("epoch").and_then(Value::as_u64).unwrap_or_default();
    let task = probe.name("task");
    let plain = probe.record(&a, "ladders are in the shed", "")?;
    let payload = unit("brushes are in the attic", "").replace(
        r#""purpose":"conformance""#,
        &format!(r#""purpose":"conformance","task_id":"{task}""#),
    );
    let served = text(&probe.ask(&a, "RECORD", &payload)?, "/memory_unit_id")?;
    let mut ranked =
        |more: &str| ids(&probe.attune(&b, &format!(r#","since_epoch":{since}{more}"#))?);
    let by_task = ranked(&format!(r#","active_task_id":"{task}""#))?;
    expect(
        by_task.first() == Some(&served),
        format!("active_task_id does not raise its units: {by_task:?}"),
    )?;
    let by_interest = ranked(r#","interests":["ladders in the shed"]"#)?;
    expect(
        by_interest.first() == Some(&plain),
        format!("interests do not raise a match: {by_interest:?}"),
    )?;
    expect(
        ranked(r#","relevance_threshold":1.0"#)?.is_empty(),
        "relevance_threshold 1.0 lets units through",
    )?;
    expect(
        ranked(r#","relevance_threshold":0.0"#)?.len() == 2,
        "relevance_threshold 0.0 holds units back",
    )
}

pub(super) fn budget(probe: &mut Probe) -> Checked {
    let (a, b) = pair(probe)?;
    let since = probe.attune(&b, "")?.get("epoch").and_then(Value::as_u64).unwrap_or_default();
    let long = "The corridor is long and dark. It has nine doors. Nobody uses the last of them. "
        .repeat(4);
    for n in 0..8 {
        probe.record(&a, &format!("Floor {n}. {}", long.trim()), "")?;
    }
    let answer = probe.attune(&b, &format!(r#","since_epoch":{since},"max_tokens":100"#))?;
    let of =
        |name: &str| answer.pointer(&format!("/context_budget/{name}")).and_then(Value::as_u64);
    let used = of("tokens_used").ok_or_else(|| not("context_budget has no tokens_used"))?;
    expect(used <= 100, format!("{used} tokens are more than 100"))?;
    expect(of("units_available") >= of("units_returned"), format!("{answer}"))?;
    let bytes: usize = list(&answer, "/record")?
        .iter()
        .map(|one| text(one, "/memory_unit/content").map(|content| content.len()))
        .sum::<Checked<usize>>()?;
    // No counting of tokens has more than eight letters each on average.
    expect(bytes <= 800, format!("{bytes} bytes of content for a budget of 100 tokens"))
}

pub(super) fn detect(probe: &mut Probe) -> Checked {
    let (a, b) = pair(probe)?;
    let name = probe.name("door");
    let one = probe.record(&a, &format!("The door of room {name} is open."), "")?;
    let two = probe.record(&b, &format!("The door of room {name} is closed."), "")?;
    let is_of = |found: &Value| -> bool {
        let units = [text(found, "/unit_a"), text(found, "/unit_b")];
        units.iter().all(|unit| unit.as_ref().is_ok_and(|unit| *unit == one || *unit == two))
    };
    let checked = probe.ask(&a, "DETECT", &format!(r#"{{"mode":"check","target_id":"{one}"}}"#))?;
    let scanned = probe.ask(&a, "DETECT", r#"{"mode":"scan"}"#)?;
    let listed = probe.ask(&a, "DETECT", r#"{"mode":"list"}"#)?;
    let count = list(&listed, "/conflicts")?.iter().filter(|found| is_of(found)).count();
    expect(count == 1, format!("opposite claims are {count} conflicts, and not 1"))?;
    expect(list(&checked, "/conflicts")?.iter().any(is_of), "check does not show it")?;
    expect(scanned.pointer("/scan_coverage/units_scanned").is_some(), format!("{scanned}"))?;
    probe.refuses("UNIT_NOT_FOUND", &a, "DETECT", r#"{"mode":"check","target_id":"conf-none"}"#)
}

pub(super) fn merged(
    probe: &mut Probe,
    by: &str,
    id: &str,
    strategy: &str,
    more: &str,
) -> Checked<Value> {
    let payload = format!(
        r#"{{"conflict_id":"{id}","strategy":"{strategy}","resolution":{{"rationale":"because"{more}}}}}"#
    );
    probe.ask(by, "MERGE", &payload)
}

pub(super) fn merge(probe: &mut Probe) -> Checked {
    let senior = probe.join("senior", "planner", 6)?;
    for (strategy, wins) in [("last_write_wins", 1), ("confidence_weighted", 0)] {
        let (one, two, id) = conflict(probe, strategy)?;
        let done = merged(probe, &senior, &id, strategy, "")?;
        let both = [one, two];
        expect(text(&done, "/status")? == "resolved", format!("{done}"))?;
        expect(
            text(&done, "/conflict/resolution/winner_id")? == both[wins],
            format!("{strategy}: {done}"),
        )?;
        expect(
            text(&done, "/side_effects/superseded_units/0")? == both[1 - wins],
            format!("{done}"),
        )?;
        expect(list(&done, "/side_effects/notified_agents")?.len() == 2, format!("{done}"))?;
        let payload = format!(
            r#"{{"conflict_id":"{id}","strategy":"{strategy}","resolution":{{"rationale":"x"}}}}"#
        );
        probe.refuses("INVALID_TRANSITION", &senior, "MERGE", &payload)?;
    }
    let (_, _, id) = conflict(probe, "escalated")?;
    let done = merged(probe, &senior, &id, "human_escalation", "")?;
    expect(text(&done, "/status")? == "escalated", format!("{done}"))?;
    let payload = r#"{"conflict_id":"conf-none","strategy":"last_write_wins","resolution":{"rationale":"x"}}"#;
    probe.refuses("CONFLICT_NOT_FOUND", &senior, "MERGE", payload)
}

pub(super) fn push(probe: &mut Probe) -> Checked {
    let (a, b) = pair(probe)?;
    let wish = r#"{"action":"subscribe","subscription":{"events":["memory.recorded"]}}"#;
    probe.ask(&b, "SUBSCRIBE", wish)?;
    let payload = unit("a mark that is told of", "");
    let payload =
        omir_core::json::from_slice(payload.as_bytes(), &omir_core::decode::Limits::default());
    let message = probe.message(&a, "RECORD", None, payload.unwrap_or_default());
    let mut recorded = None;
    let heard = probe.heard(&b, 1, || {
        let answer = probe.send(4, &message)?;
        recorded = text(&answer.value, "/memory_unit_id").ok();
        Ok(())
    })?;
    let told = heard.first().ok_or_else(|| not("nothing was told within the time of --timeout"))?;
    expect(text(told, "/event")? == "memory.recorded", format!("{told}"))?;
    expect(text(told, "/memory_unit_id").ok() == recorded, format!("{told}"))
}

/// Asks what the draft leaves open.
pub(super) fn open(
    probe: &mut Probe,
    agent: &str,
    operation: &str,
    payload: &str,
) -> Checked<Value> {
    match probe.ask(agent, operation, payload) {
        Err(Verdict::Not(why)) if !why.contains("UNSUPPORTED_OPERATION") => {
            Err(Verdict::Undecided(format!("the draft has no payload; {why}")))
        }
        other => other,
    }
}

pub(super) fn task(probe: &mut Probe, agent: &str) -> Checked<String> {
    let payload =
        format!(r#"{{"action":"create","task":{{"title":"conformance","assignee":"{agent}"}}}}"#);
    text(&open(probe, agent, "COORDINATE", &payload)?, "/task/id")
}

pub(super) fn handoff(probe: &mut Probe) -> Checked {
    let (a, b) = pair(probe)?;
    let task = task(probe, &a)?;
    let payload = format!(
        r#"{{"action":"offer","task_id":"{task}","to_agent":"{b}","context":{{"summary":"half done","next_steps":["the rest"]}}}}"#
    );
    let offered = open(probe, &a, "HANDOFF", &payload)?;
    let id = text(&offered, "/handoff/id")?;
    let seen = probe.ask(&b, "HANDOFF", &format!(r#"{{"action":"get","handoff_id":"{id}"}}"#))?;
    expect(text(&seen, "/handoff/context/summary")? == "half done", format!("{seen}"))?;
    probe.ask(&b, "HANDOFF", &format!(r#"{{"action":"accept","handoff_id":"{id}"}}"#))?;
    let taken =
        probe.ask(&b, "COORDINATE", &format!(r#"{{"action":"get","task_id":"{task}"}}"#))?;
    expect(text(&taken, "/task/assignee")? == b, format!("{taken}"))
}

pub(super) fn replay(probe: &mut Probe) -> Checked {
    let (a, _) = pair(probe)?;
    let (one, two, _) = conflict(probe, "replay")?;
    let summary = probe.ask(&a, "REPLAY", &replay_of(&one, "summary"))?;
    expect(!text(&summary, "/summary")?.is_empty(), format!("{summary}"))?;
    list(&summary, "/agents_involved")?;
    let detailed = probe.ask(&a, "REPLAY", &replay_of(&one, "detailed"))?;
    expect(!list(&detailed, "/timeline")?.is_empty(), format!("{detailed}"))?;
    let full = probe.ask(&a, "REPLAY", &replay_of(&one, "full_trace"))?;
    let epochs: Vec<u64> =
        list(&full, "/timeline")?.iter().filter_map(|one| one.get("epoch")?.as_u64()).collect();
    expect(epochs.is_sorted() && !epochs.is_empty(), format!("epochs {epochs:?}"))?;
    let has = |id: &str| {
        list(&full, "/timeline").is_ok_and(|all| {
            all.iter().any(|one| text(one, "/memory_unit_id").is_ok_and(|known| known == id))
        })
    };
    expect(has(&one) && has(&two), "full_trace leaves out a unit of the chain")?;
    probe.refuses("UNIT_NOT_FOUND", &a, "REPLAY", &replay_of("conf-none", "summary"))
}

/// Archives what an agent of a session of its own recorded.
pub(super) fn compacted(
    probe: &mut Probe,
    strategy: &str,
    authority: u32,
) -> Checked<(String, String, Value)> {
    let name = format!("compact{authority}{strategy}");
    let by = probe.join(&name, "planner", authority)?;
    let session = probe.name(&name);
    let payload = unit(&format!("{strategy} this mark of the session"), "");
    let one = probe.ask_in(&by, Some(&session), "RECORD", &payload)?;
    let id = text(&one, "/memory_unit_id")?;
    let payload = format!(r#"{{"strategy":"{strategy}","filter":{{"session_id":"{session}"}}}}"#);
    let done = probe.ask_in(&by, Some(&session), "COMPACT", &payload)?;
    let affected = done.get("units_affected").and_then(Value::as_u64);
    expect(affected == Some(1), format!("units_affected: {done}"))?;
    let other = probe.join(&format!("{name}-other"), "planner", 4)?;
    let seen = probe.ask_in(
        &other,
        Some(&session),
        "ATTUNE",
        r#"{"scope":{"role":"planner","max_units":50}}"#,
    )?;
    expect(!ids(&seen)?.contains(&id), format!("{strategy}: the unit is in an ATTUNE still"))?;
    Ok((by, id, seen))
}

pub(super) fn archive(probe: &mut Probe) -> Checked {
    let (by, id, _) = compacted(probe, "archive", 6)?;
    let session = probe.name("compact6archive");
    let told = probe.ask_in(&by, Some(&session), "REPLAY", &replay_of(&id, "detailed"))?;
    expect(!list(&told, "/timeline")?.is_empty(), "the log has lost an archived unit")
}
