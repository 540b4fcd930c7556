use super::*;
use alloc::string::ToString;

fn value(text: &str) -> Value {
    json::from_slice(text.as_bytes(), &Limits::default()).unwrap()
}

fn named(name: &str) -> Profile {
    builtin().into_iter().find(|profile| profile.name == name).unwrap()
}

/// `code pointer` of what a resource has against a profile.
fn faults(profile: &Profile, resource: &str) -> Vec<String> {
    let mut out = Vec::new();
    profile.check(&value(resource), "/entry/3", &mut out);
    out.iter().map(|fault| format!("{} {}", fault.code, fault.pointer)).collect()
}

const RECORD: &str =
    r#""resourceType":"MemoryRecord","id":"a","content":"c","createdAt":"2026-01-01T00:00:00Z""#;

fn record(members: &str) -> String {
    format!("{{{RECORD}{members}}}")
}

#[test]
fn the_profiles_of_r1_can_be_read() {
    let profiles = builtin();
    let urls: Vec<&str> = profiles.iter().map(|profile| profile.url.as_str()).collect();
    assert_eq!(urls, [CODING_AGENT, ROBOTICS, PERSONAL_ASSISTANT]);
    assert!(profiles.iter().all(|profile| profile.url.ends_with(&profile.name)));
}

#[test]
fn robots_say_when_and_where() {
    let robotics = named("omir-robotics");
    let good = r#","eventTime":"2026-01-01T00:00:00Z","decay":{"halfLifeHours":1}"#;
    assert_eq!(faults(&robotics, &record(good)), [] as [&str; 0]);
    assert_eq!(faults(&robotics, &record("")), ["E400 /entry/3", "W403 /entry/3"]);
    let decay = r#","eventTime":"2026-01-01T00:00:00Z","decay":{}"#;
    assert_eq!(faults(&robotics, &record(decay)), ["W403 /entry/3/decay"]);
    let pose = |pose: &str| {
        record(&format!(
            r#"{good},"extension":[{{"url":"urn:x:y"}},{{"url":"https://omir.io/spec/R1/extension/spatial-pose"{pose}}}]"#
        ))
    };
    assert_eq!(
        faults(&robotics, &pose(r#","valueJson":{"frame":"map","position":[0,0]}"#)),
        ["E400 /entry/3/extension/1/valueJson/position"]
    );
    assert_eq!(faults(&robotics, &pose("")), ["E400 /entry/3/extension/1"]);
    assert_eq!(
        faults(&robotics, &pose(r#","valueJson":{"frame":"map","position":[0,0,0]}"#)),
        [] as [&str; 0]
    );
    let place = r#"{"resourceType":"Entity","id":"k","name":"K","labels":["location"]}"#;
    assert_eq!(faults(&robotics, place), ["E400 /entry/3"]);
    let thing = r#"{"resourceType":"Entity","id":"k","name":"K","labels":["other"]}"#;
    assert_eq!(faults(&robotics, thing), [] as [&str; 0]);
    let told = r#"{"resourceType":"Episode","id":"e","content":"c","createdAt":"2026-01-01T00:00:00Z","source":"message"}"#;
    assert_eq!(faults(&robotics, told), ["W403 /entry/3/source"]);
    assert!(robotics.is_met_by(&value(&record(good))));
    assert!(!robotics.is_met_by(&value(&record(""))));
    assert!(robotics.is_met_by(&value(told)), "advice is no condition");
    assert!(!robotics.is_met_by(&value("3")));
}

#[test]
fn coding_agents_say_where_from() {
    let coding = named("omir-coding-agent");
    assert_eq!(faults(&coding, &record("")), ["E400 /entry/3", "E400 /entry/3"]);
    let from = |more: &str| record(&format!(r#","kind":"plan","provenance":{{{more}}}"#));
    assert_eq!(faults(&coding, &from(r#""sourceType":"command""#)), [] as [&str; 0]);
    assert_eq!(
        faults(&coding, &from(r#""sourceType":"webhook""#)),
        ["W403 /entry/3/provenance/sourceType"]
    );
    let edit =
        r#","kind":"memory","experienceType":"code_edit","provenance":{"sourceType":"command"}"#;
    assert_eq!(faults(&coding, &record(edit)), ["W403 /entry/3/provenance"]);
    let entity = |labels: &str| {
        format!(r#"{{"resourceType":"Entity","id":"k","name":"K","labels":[{labels}]}}"#)
    };
    assert_eq!(faults(&coding, &entity(r#""skill""#)), [] as [&str; 0]);
    assert_eq!(faults(&coding, &entity(r#""person""#)), [] as [&str; 0]);
    assert_eq!(faults(&coding, &entity(r#""concept""#)), ["W403 /entry/3/labels"]);
    let relationship = r#"{"resourceType":"Relationship","id":"r"}"#;
    assert!(!coding.applies_to(ResourceType::Relationship));
    assert!(!coding.is_met_by(&value(relationship)), "it does not speak of relationships");
}

#[test]
fn assistants_say_how_sure_and_how_private() {
    let assistant = named("omir-personal-assistant");
    let pii = r#""extension":[{"url":"https://omir.io/spec/R1/extension/pii-class","valueString":"none"}]"#;
    assert_eq!(
        faults(&assistant, &record(&format!(r#","confidence":{{}},{pii}"#))),
        [] as [&str; 0]
    );
    assert_eq!(faults(&assistant, &record(&format!(",{pii}"))), ["E400 /entry/3"]);
    assert_eq!(faults(&assistant, &record(r#","confidence":{}"#)), ["W403 /entry/3"]);
    let person =
        r#"{"resourceType":"Entity","id":"k","name":"K","labels":["person"],"salience":1}"#;
    assert_eq!(faults(&assistant, person), ["E400 /entry/3"]);
}

#[test]
fn every_test_can_fail_and_pass() {
    let profile = |test: &str| {
        let text = format!(
            r#"{{"url":"urn:x:y","name":"x","rules":[{{"on":["MemoryRecord"],"must":{test}}}]}}"#
        );
        Profile::from_value(&value(&text)).unwrap()
    };
    for (test, good, bad) in [
        (r#"{"path":"/kind","present":true}"#, r#","kind":"plan""#, ""),
        (r#"{"path":"/kind","present":false}"#, "", r#","kind":"plan""#),
        (r#"{"path":"/kind","in":["plan"]}"#, r#","kind":"plan""#, r#","kind":"memory""#),
        (r#"{"path":"/importance","atLeast":0.5}"#, r#","importance":0.5"#, r#","importance":0.4"#),
        (r#"{"path":"/importance","atMost":0.5}"#, r#","importance":0.5"#, r#","importance":0.6"#),
        (r#"{"extension":"urn:a:b"}"#, r#","extension":[{"url":"urn:a:b"}]"#, ""),
        (
            r#"{"path":"/meta/profile","contains":["urn:x:y"]}"#,
            r#","meta":{"profile":["urn:z:z","urn:x:y"]}"#,
            r#","meta":{"profile":["urn:z:z"]}"#,
        ),
    ] {
        assert_eq!(faults(&profile(test), &record(good)).len(), 0, "{test} {good}");
        assert_eq!(faults(&profile(test), &record(bad)).len(), 1, "{test} {bad}");
    }
}

#[test]
fn a_profile_document_is_checked() {
    let refused = |text: &str| {
        let faults = Profile::from_value(&value(text)).unwrap_err();
        faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    for (text, expected) in [
        ("[]", "E120 /: a profile is an object"),
        (r#"{"url":"x","name":"n","rules":[]}"#, "E120 /url"),
        (r#"{"url":"urn:x:y","nmae":"n","rules":[]}"#, "did you mean \"name\"?"),
        (r#"{"url":"urn:x:y","name":"n"}"#, "\"rules\" is missing"),
        (
            r#"{"url":"urn:x:y","name":"n","rules":[{"on":["Entity"],"must":{"path":"/nmae","present":true}}]}"#,
            "E120 /rules/0/must/path: Entity has no field \"/nmae\" (\"nmae\" is unknown); did you mean \"name\"?",
        ),
        (
            r#"{"url":"urn:x:y","name":"n","rules":[{"on":["Entity"],"must":{"path":"name","present":true}}]}"#,
            "begins with a slash",
        ),
        (
            r#"{"url":"urn:x:y","name":"n","rules":[{"on":["Entity"],"must":{"path":"/name"}}]}"#,
            "E120 /rules/0/must: a test is about one thing",
        ),
        (
            r#"{"url":"urn:x:y","name":"n","rules":[{"on":["Entity"],"must":{"path":"/name","present":true,"extension":"urn:a:b"}}]}"#,
            "E120 /rules/0/must: a test is about one thing",
        ),
        (
            r#"{"url":"urn:x:y","name":"n","rules":[{"on":["Entity"],"must":{"path":"/name","extension":"urn:a:b"}}]}"#,
            "E120 /rules/0/must: a test is about one thing",
        ),
        (
            r#"{"url":"urn:x:y","name":"n","rules":[{"on":["Entity"],"must":{"poses":"valid","atLeast":1}}]}"#,
            "E120 /rules/0/must: a test is about one thing",
        ),
        (
            r#"{"url":"urn:x:y","name":"n","rules":[{"on":["Entity"],"must":{"path":"/labels","contains":[]}}]}"#,
            "E120 /rules/0/must/contains: an empty list lets nothing pass",
        ),
        (
            r#"{"url":"urn:x:y","name":"n","rules":[{"on":["Entity"]}]}"#,
            "E120 /rules/0: a rule has either",
        ),
        (
            r#"{"url":"urn:x:y","name":"n","rules":[{"on":[],"must":{"poses":"valid"}}]}"#,
            "E120 /rules/0/on: name at least one type",
        ),
    ] {
        assert!(refused(text).contains(expected), "{text}: {}", refused(text));
    }
}
