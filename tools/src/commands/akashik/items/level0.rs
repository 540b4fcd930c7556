//! Level 0: units are recorded, and found with reasons.

use omir_core::value::Value;

use crate::commands::akashik::probe::{Checked, Probe, expect, ids, list, not, text, unit};

pub(super) fn pair(probe: &mut Probe) -> Checked<(String, String)> {
    Ok((probe.join("a", "planner", 4)?, probe.join("b", "planner", 4)?))
}

pub(super) fn register(probe: &mut Probe) -> Checked {
    let id = probe.join("a", "planner", 4)?;
    let again = probe.refusal(&id, "REGISTER", &format!(r#"{{"id":"{id}","role":"planner"}}"#))?;
    expect(
        again == "AGENT_ID_TAKEN",
        format!("a second REGISTER is {again:?}, and not AGENT_ID_TAKEN"),
    )
}

pub(super) fn record(probe: &mut Probe) -> Checked {
    let (a, _) = pair(probe)?;
    for mode in ["draft", "committed"] {
        let payload = unit("a mark on the wall", "").replace("committed", mode);
        let answer = probe.ask(&a, "RECORD", &payload)?;
        expect(text(&answer, "/status")? == "accepted", format!("{mode}: {answer}"))?;
        text(&answer, "/memory_unit_id")?;
    }
    Ok(())
}

pub(super) fn intent(probe: &mut Probe) -> Checked {
    let (a, _) = pair(probe)?;
    for mode in ["draft", "committed"] {
        let payload = unit("x", "").replace("committed", mode).replace(r#""conformance""#, r#""""#);
        probe.refuses("MISSING_INTENT", &a, "RECORD", &payload)?;
    }
    Ok(())
}

pub(super) fn missing_intent(probe: &mut Probe) -> Checked {
    let (a, _) = pair(probe)?;
    let payload = unit("x", "").replace(r#""intent":{"purpose":"conformance"},"#, "");
    probe.refuses("MISSING_INTENT", &a, "RECORD", &payload)
}

/// Returns the unit of this id as another agent sees it.
pub(super) fn seen(probe: &mut Probe, agent: &str, id: &str) -> Checked<Value> {
    let answer = probe.attune(agent, "")?;
    let found = list(&answer, "/record")?;
    let found =
        found.iter().find(|one| text(one, "/memory_unit/id").is_ok_and(|known| known == id));
    found.cloned().ok_or_else(|| not(format!("{id} is not in an ATTUNE of another agent")))
}

pub(super) fn generated(probe: &mut Probe) -> Checked {
    let (a, b) = pair(probe)?;
    let id = probe.record(&a, "a mark on the door", "")?;
    let one = seen(probe, &b, &id)?;
    expect(text(&one, "/memory_unit/source/agent_id")? == a, "source.agent_id is not the sender")?;
    text(&one, "/memory_unit/source/timestamp")?;
    text(&one, "/memory_unit/status")?;
    let epoch = one.pointer("/memory_unit/epoch").and_then(Value::as_u64);
    expect(epoch.is_some(), format!("there is no epoch: {one}"))
}

pub(super) fn attune(probe: &mut Probe) -> Checked {
    let (a, b) = pair(probe)?;
    for n in 0..3 {
        probe.record(&a, &format!("mark {n} on the gate"), "")?;
    }
    let answer = probe.ask(&b, "ATTUNE", r#"{"scope":{"role":"planner","max_units":2}}"#)?;
    expect(list(&answer, "/record")?.len() == 2, format!("max_units 2: {answer}"))
}

fn scores(probe: &mut Probe) -> Checked<Vec<f64>> {
    let (a, b) = pair(probe)?;
    probe.record(&a, "a mark on the roof", "")?;
    let answer = probe.attune(&b, "")?;
    list(&answer, "/record")?
        .iter()
        .map(|one| {
            let score = one.get("relevance_score").and_then(Value::as_f64);
            score.ok_or_else(|| not(format!("no relevance_score: {one}")))
        })
        .collect()
}

pub(super) fn sorted(probe: &mut Probe) -> Checked {
    let scores = scores(probe)?;
    expect(scores.is_sorted_by(|a, b| a >= b), format!("not sorted: {scores:?}"))?;
    expect(
        scores.iter().all(|score| (0.0..=1.0).contains(score)),
        format!("not in [0, 1]: {scores:?}"),
    )
}

pub(super) fn own(probe: &mut Probe) -> Checked {
    let (a, _) = pair(probe)?;
    let id = probe.record(&a, "a mark of my own", "")?;
    let answer = probe.attune(&a, "")?;
    expect(!ids(&answer)?.contains(&id), "the caller's own unit is among the results")
}

pub(super) fn replaced(probe: &mut Probe) -> Checked {
    let (a, b) = pair(probe)?;
    let old = probe.record(&a, "the lift stands still", "")?;
    let new = probe.record(&a, "the lift goes", &relation("supersedes", &old))?;
    let answer = probe.attune(&b, "")?;
    let all = ids(&answer)?;
    expect(!all.contains(&old) && all.contains(&new), "a superseded unit is among the results")
}

pub(super) fn relation(of: &str, target: &str) -> String {
    format!(r#","relations":[{{"type":"{of}","target_id":"{target}"}}]"#)
}

pub(super) fn reasons(probe: &mut Probe) -> Checked {
    let (a, b) = pair(probe)?;
    probe.record(&a, "a mark on the bench", "")?;
    let answer = probe.attune(&b, "")?;
    let results = list(&answer, "/record")?;
    for one in results {
        let reason = text(one, "/relevance_reason")?;
        expect(!reason.is_empty() && one.get("relevance_score").is_some(), format!("{one}"))?;
    }
    expect(!results.is_empty(), "there are no results")
}

pub(super) fn envelope(probe: &mut Probe) -> Checked {
    let (a, _) = pair(probe)?;
    let payload = r#"{"scope":{"role":"planner","max_units":1}}"#;
    let payload: Value =
        omir_core::json::from_slice(payload.as_bytes(), &omir_core::decode::Limits::default())
            .unwrap_or_default();
    for (name, wrong) in [
        ("protocol", Value::from("other")),
        ("version", Value::from("9.9.9")),
        ("id", Value::from("")),
        ("epoch", Value::from(-1_i64)),
        ("operation", Value::from("DREAM")),
        ("more", Value::from(true)),
    ] {
        let mut message = probe.message(&a, "ATTUNE", None, payload.clone());
        message.insert(name, wrong);
        let answer = probe.send(4, &message)?;
        expect(answer.is_error, format!("a wrong `{name}` is answered"))?;
    }
    for name in ["id", "agent_id", "epoch", "payload", "operation"] {
        let mut message = probe.message(&a, "ATTUNE", None, payload.clone());
        message.remove(name);
        expect(
            probe.send(4, &message)?.is_error,
            format!("an envelope without `{name}` is answered"),
        )?;
    }
    Ok(())
}
