//! Level 1: what is recorded lasts, in the order of a clock.

use omir_core::value::Value;

use super::level0::{pair, relation, seen};
use crate::commands::akashik::probe::{
    Checked, Probe, Verdict, expect, ids, list, not, text, unit,
};

pub(super) fn durable(probe: &mut Probe) -> Checked {
    let (a, b) = pair(probe)?;
    let id = probe.record(&a, "a mark that lasts", "")?;
    probe.restarted()?;
    let answer = probe.attune(&b, "")?;
    expect(ids(&answer)?.contains(&id), "the unit is gone after a restart")
}

pub(super) fn log(probe: &mut Probe) -> Checked {
    let (a, _) = pair(probe)?;
    let id = probe.record(&a, "a mark in the log", "")?;
    let payload = replay_of(&id, "detailed");
    let code = match probe.ask(&a, "REPLAY", &payload) {
        Ok(answer) => return expect(!list(&answer, "/timeline")?.is_empty(), "the log is empty"),
        Err(Verdict::Not(why)) => why,
        Err(other) => return Err(other),
    };
    // At level 1 no daemon need show it.
    Err(Verdict::Undecided(format!("the log is not shown: {code}")))
}

pub(super) fn replay_of(id: &str, depth: &str) -> String {
    format!(r#"{{"target_type":"memory_unit","target_id":"{id}","depth":"{depth}"}}"#)
}

pub(super) fn clock(probe: &mut Probe) -> Checked {
    let (a, _) = pair(probe)?;
    let before = probe.attune(&a, "")?.get("epoch").and_then(Value::as_u64);
    let before = before.ok_or_else(|| not("ATTUNE has no epoch"))?;
    let mut message = {
        let payload = unit("a mark in time", "");
        let payload =
            omir_core::json::from_slice(payload.as_bytes(), &omir_core::decode::Limits::default());
        probe.message(&a, "RECORD", None, payload.unwrap_or_default())
    };
    message.insert("epoch", before + 100);
    let answer = probe.send(4, &message)?;
    let jumped = answer.value.get("epoch").and_then(Value::as_u64).unwrap_or_default();
    expect(
        jumped > before + 100,
        format!("a message of {} is answered at {jumped}", before + 100),
    )?;
    let later = probe.attune(&a, "")?.get("epoch").and_then(Value::as_u64).unwrap_or_default();
    expect(later > jumped, format!("{later} follows {jumped}"))
}

pub(super) fn confidence(probe: &mut Probe) -> Checked {
    let (a, _) = pair(probe)?;
    let whole = unit("x", "");
    for (from, to) in [(r#""score":0.8,"#, ""), (r#","reasoning":"seen""#, "")] {
        probe.refuses("MISSING_CONFIDENCE", &a, "RECORD", &whole.replace(from, to))?;
    }
    for mode in ["draft", "committed"] {
        let payload = whole.replace("0.8", "1.5").replace("committed", mode);
        probe.refuses("INVALID_CONFIDENCE", &a, "RECORD", &payload)?;
    }
    Ok(())
}

pub(super) fn deregister(probe: &mut Probe) -> Checked {
    let (_, b) = pair(probe)?;
    let gone = probe.join("gone", "planner", 4)?;
    let id = probe.record(&gone, "a mark that outlives me", "")?;
    let answer = probe.ask(&gone, "DEREGISTER", &format!(r#"{{"agent_id":"{gone}"}}"#))?;
    expect(text(&answer, "/status")? == "ok", format!("{answer}"))?;
    seen(probe, &b, &id)?;
    probe.refuses("AGENT_NOT_REGISTERED", &gone, "RECORD", &unit("x", ""))
}

/// Makes a conflict; the two units and its id.
pub(super) fn conflict(probe: &mut Probe, n: &str) -> Checked<(String, String, String)> {
    let (a, b) = pair(probe)?;
    let one = probe.record(&a, &format!("shelf {n} holds tools"), "")?;
    let payload =
        unit(&format!("look elsewhere, {n}"), &relation("contradicts", &one)).replace("0.8", "0.5");
    let answer = probe.ask(&b, "RECORD", &payload)?;
    let found = list(&answer, "/conflicts_detected")?;
    expect(found.len() == 1, format!("conflicts_detected: {answer}"))?;
    let (two, id) = (text(&answer, "/memory_unit_id")?, text(&answer, "/conflicts_detected/0")?);
    Ok((one, two, id))
}

fn has_conflict(answer: &Value, id: &str) -> Checked<bool> {
    Ok(list(answer, "/conflicts")?
        .iter()
        .any(|one| text(one, "/id").is_ok_and(|known| known == id)))
}

pub(super) fn detect_list(probe: &mut Probe) -> Checked {
    let (a, _) = pair(probe)?;
    let (_, _, id) = conflict(probe, "one")?;
    let answer = probe.ask(&a, "DETECT", r#"{"mode":"list"}"#)?;
    expect(has_conflict(&answer, &id)?, format!("{id} is not listed"))
}

pub(super) fn contradicts(probe: &mut Probe) -> Checked {
    let (a, _) = pair(probe)?;
    let (one, two, id) = conflict(probe, "two")?;
    let answer = probe.ask(&a, "DETECT", r#"{"mode":"list"}"#)?;
    let all = list(&answer, "/conflicts")?;
    let found = all.iter().find(|conflict| text(conflict, "/id").is_ok_and(|known| known == id));
    let found = found.ok_or_else(|| not(format!("{id} is not listed")))?;
    let mut units = [text(found, "/unit_a")?, text(found, "/unit_b")?];
    units.sort();
    let mut expected = [one, two];
    expected.sort();
    expect(units == expected, format!("{found}"))?;
    expect(text(found, "/detected_by")? == "explicit", format!("{found}"))?;
    expect(text(found, "/status")? == "detected", format!("{found}"))
}

pub(super) fn since(probe: &mut Probe) -> Checked {
    let (a, b) = pair(probe)?;
    let early = probe.record(&a, "an early mark", "")?;
    let epoch = probe.attune(&b, "")?.get("epoch").and_then(Value::as_u64).unwrap_or_default();
    let late = probe.record(&a, "a late mark", "")?;
    let payload =
        format!(r#"{{"scope":{{"role":"planner","max_units":200}},"since_epoch":{epoch}}}"#);
    let all = ids(&probe.ask(&b, "ATTUNE", &payload)?)?;
    expect(all.contains(&late) && !all.contains(&early), format!("since {epoch}: {all:?}"))
}

pub(super) fn unresolved(probe: &mut Probe) -> Checked {
    let third = probe.join("c", "planner", 4)?;
    let (_, _, id) = conflict(probe, "three")?;
    let answer = probe.attune(&third, "")?;
    expect(has_conflict(&answer, &id)?, format!("{id} is not in an ATTUNE"))
}

pub(super) fn capabilities(probe: &mut Probe) -> Checked {
    let id = probe.name("cap");
    let answer = probe.ask(&id, "REGISTER", &format!(r#"{{"id":"{id}","role":"planner"}}"#))?;
    let of =
        answer.get("field_capabilities").ok_or_else(|| not("there are no field_capabilities"))?;
    list(of, "/supported_operations")?;
    list(of, "/conflict_strategies")?;
    text(of, "/protocol_version")?;
    let level = of.get("conformance_level").and_then(Value::as_u64);
    expect(
        level.is_some() && of.get("persistence").and_then(Value::as_bool).is_some(),
        format!("{of}"),
    )
}
