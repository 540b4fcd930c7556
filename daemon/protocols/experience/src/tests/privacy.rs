//! People, secrets and other tenants leave no trace.

use omird_engine::Query;
use serde_json::json as js;

use crate::testing::{Rig, by_intent, caller, message, record, with};
use crate::{ExperienceSettings, HINTS, RECORD};

fn exported(rig: &Rig) -> String {
    omir_core::json::to_string(&rig.engine.export(&Query::everything()).unwrap().to_value())
}

#[test]
fn neither_people_nor_secrets_are_stored() {
    let rig = Rig::new();
    let value = with(record("t-1"), "/nodes_used/0/notes", "Authorization: Bearer abc.def.ghi");
    let value = with(with(value, "/context/user_id", "u-77"), "/context/session_id", "s-78");
    let value = with(value, "/result/summary", "used password=hunter2");
    assert_eq!(rig.record(&value).status, 200);
    let text = exported(&rig);
    for secret in ["abc.def.ghi", "u-77", "s-78", "hunter2"] {
        assert!(!text.contains(secret), "{secret}");
    }
    assert!(text.contains("Bearer [redacted]") && text.contains("password=[redacted]"));
    assert_eq!(rig.record(&value).status, 200, "the same again is a replay");

    let settings =
        ExperienceSettings { store_identifiers: true, redact: false, ..Default::default() };
    let rig = Rig::with(settings);
    rig.record(&value);
    let text = exported(&rig);
    for told in ["abc.def.ghi", "u-77", "s-78", "hunter2"] {
        assert!(text.contains(told), "{told}");
    }
}

#[test]
fn two_tenants_share_nothing() {
    let rig = Rig::new();
    let failed =
        with(with(record("t-1"), "/nodes_used/0/outcome", "error"), "/result/success", false);
    let body = |value: &omir_core::value::Value| omir_core::json::to_string(value);
    let ask = |tenant, value: &omir_core::value::Value| {
        rig.ask(&RECORD, &caller(Some(tenant)), message(&body(value), &[]))
    };
    assert_eq!(ask("a", &record("t-1")).body["status"], "recorded");
    let told = ask("b", &failed);
    assert_eq!(told.body["status"], "recorded", "the same task of another tenant is no conflict");
    assert_eq!(told.body["metadata"]["related_experiences"], js!([]));
    for (tenant, rate) in [("a", 1.0), ("b", 0.0)] {
        let told = rig.ask(&HINTS, &caller(Some(tenant)), message(&by_intent("dock robot"), &[]));
        assert_eq!(told.hint("nav2")["usage_stats"]["success_rate"], rate, "{tenant}");
        assert_eq!(told.body["metadata"]["total_experiences"], 1);
        let pattern = by_intent("dock")
            .replace("\"intent\"", "\"similar_pattern\"")
            .replace("\"similar_pattern\":", "\"pattern\":");
        let told = rig.ask(&HINTS, &caller(Some(tenant)), message(&pattern, &[]));
        assert_eq!(told.body["metadata"]["total_experiences"], 1, "{pattern}");
    }
}
