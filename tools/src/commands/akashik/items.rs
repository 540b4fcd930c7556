//! The 39 items of the checklist, with its numbers.
//!
//! What the draft leaves open is asked in the form of docs/akashik.md. An endpoint that refuses that form is undecided there, unless it
//! says that it does not offer the operation.

use omir_core::value::Value;

use super::probe::{Checked, Probe, Verdict, expect, ids, list, not, text, unit};

/// An item.
pub(super) struct Item {
    pub(super) number: &'static str,
    pub(super) level: u8,
    pub(super) title: &'static str,
    pub(super) check: fn(&mut Probe) -> Checked,
}

macro_rules! items {
    ($($number:literal $level:literal $check:ident $title:literal;)+) => {
        pub(super) static ITEMS: &[Item] =
            &[$(Item { number: $number, level: $level, title: $title, check: $check }),+];
    };
}

items! {
    "L0-1" 0 register "REGISTER with id and role";
    "L0-2" 0 record "RECORD in draft and committed";
    "L0-3" 0 intent "intent.purpose present and not empty, on drafts too";
    "L0-4" 0 missing_intent "absent intent is MISSING_INTENT";
    "L0-5" 0 generated "id, epoch, source and status are generated";
    "L0-6" 0 attune "ATTUNE with role and max_units";
    "L0-7" 0 sorted "results scored and sorted";
    "L0-8" 0 own "the caller's own units left out";
    "L0-9" 0 replaced "retracted and superseded units left out";
    "L0-10" 0 reasons "relevance_score and relevance_reason on each result";
    "L0-11" 0 envelope "the standard envelope";
    "L1-1" 1 durable "units survive a restart";
    "L1-2" 1 log "an append-only log of operations";
    "L1-3" 1 clock "a Lamport clock";
    "L1-4" 1 confidence "confidence required on committed RECORD";
    "L1-5" 1 deregister "DEREGISTER";
    "L1-6" 1 detect_list "DETECT list";
    "L1-7" 1 contradicts "a Conflict for each contradicts relation";
    "L1-8" 1 since "ATTUNE since_epoch";
    "L1-9" 1 unresolved "unresolved conflicts in ATTUNE";
    "L1-10" 1 capabilities "REGISTER returns field_capabilities";
    "L2-1" 2 meaning "embeddings of content";
    "L2-2" 2 meaning "semantic scoring in ATTUNE";
    "L2-3" 2 scope "the extended scope";
    "L2-4" 2 budget "a budget of tokens";
    "L2-5" 2 detect "DETECT check, scan and list, and one automatic method";
    "L2-6" 2 merge "MERGE by three strategies";
    "L2-7" 2 push "SUBSCRIBE with push";
    "L2-8" 2 handoff "HANDOFF with a context package";
    "L2-9" 2 replay "REPLAY at three depths";
    "L2-10" 2 archive "COMPACT archive";
    "L3-1" 3 coordination "COORDINATE and SESSION";
    "L3-2" 3 tasks "the task state machine";
    "L3-3" 3 strategies "MERGE by seven strategies";
    "L3-4" 3 authenticated "agents are authenticated";
    "L3-5" 3 authority "the authority hierarchy";
    "L3-6" 3 visibility "session scoping and role filtering";
    "L3-7" 3 compact "COMPACT archive, summarize and purge";
    "L3-8" 3 transports "two transport bindings";
}

fn pair(probe: &mut Probe) -> Checked<(String, String)> {
    Ok((probe.join("a", "planner", 4)?, probe.join("b", "planner", 4)?))
}

fn register(probe: &mut Probe) -> Checked {
    let id = probe.join("a", "planner", 4)?;
    let again = probe.refusal(&id, "REGISTER", &format!(r#"{{"id":"{id}","role":"planner"}}"#))?;
    expect(
        again == "AGENT_ID_TAKEN",
        format!("a second REGISTER is {again:?}, and not AGENT_ID_TAKEN"),
    )
}

fn record(probe: &mut Probe) -> Checked {
    let (a, _) = pair(probe)?;
    for mode in ["draft", "committed"] {
        let payload = unit("a mark on the wall", "").replace("committed", mode);
        let answer = probe.ask(&a, "RECORD", &payload)?;
        expect(text(&answer, "/status")? == "accepted", format!("{mode}: {answer}"))?;
        text(&answer, "/memory_unit_id")?;
    }
    Ok(())
}

fn intent(probe: &mut Probe) -> Checked {
    let (a, _) = pair(probe)?;
    for mode in ["draft", "committed"] {
        let payload = unit("x", "").replace("committed", mode).replace(r#""conformance""#, r#""""#);
        probe.refuses("MISSING_INTENT", &a, "RECORD", &payload)?;
    }
    Ok(())
}

fn missing_intent(probe: &mut Probe) -> Checked {
    let (a, _) = pair(probe)?;
    let payload = unit("x", "").replace(r#""intent":{"purpose":"conformance"},"#, "");
    probe.refuses("MISSING_INTENT", &a, "RECORD", &payload)
}

/// Returns the unit of this id as another agent sees it.
fn seen(probe: &mut Probe, agent: &str, id: &str) -> Checked<Value> {
    let answer = probe.attune(agent, "")?;
    let found = list(&answer, "/record")?;
    let found =
        found.iter().find(|one| text(one, "/memory_unit/id").is_ok_and(|known| known == id));
    found.cloned().ok_or_else(|| not(format!("{id} is not in an ATTUNE of another agent")))
}

fn generated(probe: &mut Probe) -> Checked {
    let (a, b) = pair(probe)?;
    let id = probe.record(&a, "a mark on the door", "")?;
    let one = seen(probe, &b, &id)?;
    expect(text(&one, "/memory_unit/source/agent_id")? == a, "source.agent_id is not the sender")?;
    text(&one, "/memory_unit/source/timestamp")?;
    text(&one, "/memory_unit/status")?;
    let epoch = one.pointer("/memory_unit/epoch").and_then(Value::as_u64);
    expect(epoch.is_some(), format!("there is no epoch: {one}"))
}

fn attune(probe: &mut Probe) -> Checked {
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

fn sorted(probe: &mut Probe) -> Checked {
    let scores = scores(probe)?;
    expect(scores.is_sorted_by(|a, b| a >= b), format!("not sorted: {scores:?}"))?;
    expect(
        scores.iter().all(|score| (0.0..=1.0).contains(score)),
        format!("not in [0, 1]: {scores:?}"),
    )
}

fn own(probe: &mut Probe) -> Checked {
    let (a, _) = pair(probe)?;
    let id = probe.record(&a, "a mark of my own", "")?;
    let answer = probe.attune(&a, "")?;
    expect(!ids(&answer)?.contains(&id), "the caller's own unit is among the results")
}

fn replaced(probe: &mut Probe) -> Checked {
    let (a, b) = pair(probe)?;
    let old = probe.record(&a, "the lift stands still", "")?;
    let new = probe.record(&a, "the lift goes", &relation("supersedes", &old))?;
    let answer = probe.attune(&b, "")?;
    let all = ids(&answer)?;
    expect(!all.contains(&old) && all.contains(&new), "a superseded unit is among the results")
}

fn relation(of: &str, target: &str) -> String {
    format!(r#","relations":[{{"type":"{of}","target_id":"{target}"}}]"#)
}

fn reasons(probe: &mut Probe) -> Checked {
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

fn envelope(probe: &mut Probe) -> Checked {
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

fn durable(probe: &mut Probe) -> Checked {
    let (a, b) = pair(probe)?;
    let id = probe.record(&a, "a mark that lasts", "")?;
    probe.restarted()?;
    let answer = probe.attune(&b, "")?;
    expect(ids(&answer)?.contains(&id), "the unit is gone after a restart")
}

fn log(probe: &mut Probe) -> Checked {
    let (a, _) = pair(probe)?;
    let id = probe.record(&a, "a mark in the log", "")?;
    let payload = replay_of(&id, "detailed");
    let code = match probe.ask(&a, "REPLAY", &payload) {
        Ok(answer) => return expect(!list(&answer, "/timeline")?.is_empty(), "the log is empty"),
        Err(Verdict::Not(why)) => why,
        Err(other) => return Err(other),
    };
    // At level 1 nobody need show it.
    Err(Verdict::Undecided(format!("the log is not shown: {code}")))
}

fn replay_of(id: &str, depth: &str) -> String {
    format!(r#"{{"target_type":"memory_unit","target_id":"{id}","depth":"{depth}"}}"#)
}

fn clock(probe: &mut Probe) -> Checked {
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

fn confidence(probe: &mut Probe) -> Checked {
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

fn deregister(probe: &mut Probe) -> Checked {
    let (_, b) = pair(probe)?;
    let gone = probe.join("gone", "planner", 4)?;
    let id = probe.record(&gone, "a mark that outlives me", "")?;
    let answer = probe.ask(&gone, "DEREGISTER", &format!(r#"{{"agent_id":"{gone}"}}"#))?;
    expect(text(&answer, "/status")? == "ok", format!("{answer}"))?;
    seen(probe, &b, &id)?;
    probe.refuses("AGENT_NOT_REGISTERED", &gone, "RECORD", &unit("x", ""))
}

/// Makes a conflict; the two units and its id.
fn conflict(probe: &mut Probe, n: &str) -> Checked<(String, String, String)> {
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

fn detect_list(probe: &mut Probe) -> Checked {
    let (a, _) = pair(probe)?;
    let (_, _, id) = conflict(probe, "one")?;
    let answer = probe.ask(&a, "DETECT", r#"{"mode":"list"}"#)?;
    expect(has_conflict(&answer, &id)?, format!("{id} is not listed"))
}

fn contradicts(probe: &mut Probe) -> Checked {
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

fn since(probe: &mut Probe) -> Checked {
    let (a, b) = pair(probe)?;
    let early = probe.record(&a, "an early mark", "")?;
    let epoch = probe.attune(&b, "")?.get("epoch").and_then(Value::as_u64).unwrap_or_default();
    let late = probe.record(&a, "a late mark", "")?;
    let payload =
        format!(r#"{{"scope":{{"role":"planner","max_units":200}},"since_epoch":{epoch}}}"#);
    let all = ids(&probe.ask(&b, "ATTUNE", &payload)?)?;
    expect(all.contains(&late) && !all.contains(&early), format!("since {epoch}: {all:?}"))
}

fn unresolved(probe: &mut Probe) -> Checked {
    let third = probe.join("c", "planner", 4)?;
    let (_, _, id) = conflict(probe, "three")?;
    let answer = probe.attune(&third, "")?;
    expect(has_conflict(&answer, &id)?, format!("{id} is not in an ATTUNE"))
}

fn capabilities(probe: &mut Probe) -> Checked {
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

/// What shares no word with the question, and means something else, must come behind what shares its stems.
fn meaning(probe: &mut Probe) -> Checked {
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

fn scope(probe: &mut Probe) -> Checked {
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

fn budget(probe: &mut Probe) -> Checked {
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

fn detect(probe: &mut Probe) -> Checked {
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

fn merged(probe: &mut Probe, by: &str, id: &str, strategy: &str, more: &str) -> Checked<Value> {
    let payload = format!(
        r#"{{"conflict_id":"{id}","strategy":"{strategy}","resolution":{{"rationale":"because"{more}}}}}"#
    );
    probe.ask(by, "MERGE", &payload)
}

fn merge(probe: &mut Probe) -> Checked {
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

fn push(probe: &mut Probe) -> Checked {
    let (a, b) = pair(probe)?;
    let wish = r#"{"action":"subscribe","subscription":{"events":["memory.recorded"]}}"#;
    probe.ask(&b, "SUBSCRIBE", wish)?;
    let payload = unit("a mark that is told of", "");
    let payload =
        omir_core::json::from_slice(payload.as_bytes(), &omir_core::decode::Limits::default());
    let message = probe.message(&a, "RECORD", None, payload.unwrap_or_default());
    let mut recorded = None;
    let heard = probe.heard(&b, 1, || {
        let answer = probe.send(4, &message).map_err(|why| format!("{why:?}"))?;
        recorded = text(&answer.value, "/memory_unit_id").ok();
        Ok(())
    });
    // The binding of push is not in the draft.
    let heard = heard.map_err(|why| {
        Verdict::Undecided(format!("no stream of events at events?agent_id=: {why}"))
    })?;
    let told = heard.first().ok_or_else(|| not("nothing was told within the time of --timeout"))?;
    expect(text(told, "/event")? == "memory.recorded", format!("{told}"))?;
    expect(text(told, "/memory_unit_id").ok() == recorded, format!("{told}"))
}

/// Asks what the draft leaves open.
fn open(probe: &mut Probe, agent: &str, operation: &str, payload: &str) -> Checked<Value> {
    match probe.ask(agent, operation, payload) {
        Err(Verdict::Not(why)) if !why.contains("UNSUPPORTED_OPERATION") => {
            Err(Verdict::Undecided(format!("the draft has no payload; {why}")))
        }
        other => other,
    }
}

fn task(probe: &mut Probe, agent: &str) -> Checked<String> {
    let payload =
        format!(r#"{{"action":"create","task":{{"title":"conformance","assignee":"{agent}"}}}}"#);
    text(&open(probe, agent, "COORDINATE", &payload)?, "/task/id")
}

fn handoff(probe: &mut Probe) -> Checked {
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

fn replay(probe: &mut Probe) -> Checked {
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
fn compacted(
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

fn archive(probe: &mut Probe) -> Checked {
    let (by, id, _) = compacted(probe, "archive", 6)?;
    let session = probe.name("compact6archive");
    let told = probe.ask_in(&by, Some(&session), "REPLAY", &replay_of(&id, "detailed"))?;
    expect(!list(&told, "/timeline")?.is_empty(), "the log has lost an archived unit")
}

fn coordination(probe: &mut Probe) -> Checked {
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

fn tasks(probe: &mut Probe) -> Checked {
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

fn strategies(probe: &mut Probe) -> Checked {
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

fn authenticated(probe: &mut Probe) -> Checked {
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

fn authority(probe: &mut Probe) -> Checked {
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

fn visibility(probe: &mut Probe) -> Checked {
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

fn compact(probe: &mut Probe) -> Checked {
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

fn transports(probe: &mut Probe) -> Checked {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checklist_has_39_items() {
        let of = |level: u8| ITEMS.iter().filter(|item| item.level == level).count();
        assert_eq!([of(0), of(1), of(2), of(3)], [11, 10, 10, 8]);
        for (at, item) in ITEMS.iter().enumerate() {
            assert!(item.number.starts_with(&format!("L{}-", item.level)));
            assert!(ITEMS[..at].iter().all(|other| other.number != item.number));
        }
    }
}
