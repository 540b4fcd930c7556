//! Gaps of the log: what was forgotten or lost of it is told in each answer.

use super::*;

#[test]
fn answers_of_a_field_whose_log_has_a_gap_say_so() {
    let mut rig = Rig::new();
    rig.join(&["a", "b"]);
    let wrong = rig.record("a", "The lift works.", "");
    let retract = format!(r#"{{"action":"retract","unit_id":"{wrong}"}}"#);
    let epoch = number(&rig.ask("a", "COORDINATE", &retract), "/epoch");
    rig.record("a", "The ramp is free.", "");
    rig.restart();
    let seen = rig.attune("b", "");
    assert!(seen.get("log_gaps").is_none() && ids(&seen).len() == 1, "{seen}");
    let entry = format!("MemoryRecord/akl.{epoch}").parse().unwrap();
    rig.engine.execute(omird_engine::Change::Forget(vec![entry])).unwrap();
    rig.restart();
    let status = rig.send(&with(4), &crate::STATUS, "", &[("agent_id", "b")]);
    for answer in [
        rig.attune("b", ""),
        rig.ask("b", "DETECT", r#"{"mode":"list"}"#),
        rig.ask("b", "RECORD", &unit("The door is open.", "")),
        value(&status.body),
    ] {
        assert_eq!(list(&answer, "/log_gaps"), [epoch.into()], "{answer}");
    }
    assert_eq!(
        ids(&rig.attune("b", "")).len(),
        2,
        "what was retracted is back, and not in silence"
    );
}

#[test]
fn a_lost_entry_at_the_end_of_the_log_and_a_lost_unit_are_gaps() {
    let mut rig = Rig::new();
    rig.join(&["a", "b"]);
    let wrong = rig.record("a", "The lift works.", "");
    let lost = rig.record("a", "The ramp is free.", "");
    let retract = format!(r#"{{"action":"retract","unit_id":"{wrong}"}}"#);
    let epoch = number(&rig.ask("a", "COORDINATE", &retract), "/epoch");
    rig.lose(&format!("COORDINATE at epoch {epoch}"));
    let seen = rig.attune("b", "");
    assert_eq!(list(&seen, "/log_gaps"), [epoch.into()], "{seen}");
    assert_eq!(ids(&seen).len(), 2, "what was retracted is back, and not in silence");
    rig.lose("The ramp is free.");
    let seen = rig.attune("b", "");
    assert_eq!(list(&seen, "/log_gaps").len(), 2, "{seen}");
    assert!(!ids(&seen).contains(&lost.as_str()), "{seen}");
}

#[test]
fn a_lost_entry_behind_the_lease_is_a_gap_and_its_epoch_is_not_given_again() {
    let mut rig = Rig::new();
    rig.join(&["a", "b"]);
    let wrong = rig.record("a", "The lift works.", "");
    rig.restart();
    let retract = format!(r#"{{"action":"retract","unit_id":"{wrong}"}}"#);
    let epoch = number(&rig.ask("a", "COORDINATE", &retract), "/epoch");
    rig.lose(&format!("COORDINATE at epoch {epoch}"));
    for _ in 0..2 {
        let seen = rig.attune("b", "");
        assert_eq!(list(&seen, "/log_gaps"), [epoch.into()], "{seen}");
        let next = number(&rig.ask("a", "RECORD", &unit("The ramp is free.", "")), "/epoch");
        assert!(next > epoch, "{next} {epoch}");
        rig.restart();
    }
}
