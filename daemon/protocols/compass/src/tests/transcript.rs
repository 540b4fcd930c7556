//! The transcript of an agent with tools, as a person reads what is left of it.

use omir_core::json;

use super::*;

const RUN: &str = "The dock does not answer, so I run its check.\nAction: python dock/check.py\n\
    Outcome: Traceback (most recent call last):\n\
    \x20 File \"/home/rob/dock/check.py\", line 12, in <module>\n\x20   main(\"dock.yaml\")\n\
    \x20 File \"/home/rob/dock/port.py\", line 41, in open_port\n\x20   raise PortError(name)\n\
    PortError: the port of the dock is missing\n(Open file: dock/check.py)\nrob@dock:~$";
const LISTED: &str = "I open the file of the port.\nAction: open dock/port.py 41\n\
    [File: dock/port.py (60 lines total)]\n40:def open_port(name):\n41:    raise PortError(name)\n\
    42:    # must only be called once\n43:    return Port(name)\n(Open file: dock/port.py)\nrob@dock:~$";
const TESTED: &str = "The port is read from dock.yaml now. I run the tests.\nAction: pytest dock\n\
    dock/test_port.py ..........F....      [100%]\n\
    ==================== 1 failed, 14 passed in 0.42s ====================\nrob@dock:~$";

fn store(rig: &Rig, content: &str) {
    let content = json::to_string(&Value::from(content));
    rig.ask("memory.store", &format!(r#"{{"task_id":"t1","content":{content}}}"#));
}

fn context(rig: &Rig) -> String {
    let made = rig.ask("memory.get_context", r#"{"task_id":"t1","token_budget":4000}"#);
    text(&made, "/context").to_owned()
}

#[test]
fn a_context_tells_what_was_done_and_how_it_came_out() {
    let rig = Rig::new();
    for content in [RUN, LISTED, TESTED, TESTED] {
        store(&rig, content);
    }
    for is_over in [false, true] {
        if is_over {
            rig.ask("memory.complete_stage", r#"{"task_id":"t1"}"#);
            store(&rig, "I look at the test that failed.");
        }
        let context = context(&rig);
        for told in [
            "The dock does not answer",
            "line 41, in open_port",
            "PortError: the port of the dock is missing",
            "1 failed, 14 passed in 0.42s",
            "# Errors",
        ] {
            assert!(context.contains(told), "{told}: {context}");
        }
        for noise in
            ["line 12", "(Open file", "rob@dock", "[File:", "return Port", "must only", "[100%]"]
        {
            assert!(!context.contains(noise), "{noise}: {context}");
        }
        assert!(!context.contains("# Critical Facts"), "{context}");
        let said = context.matches("The port is read from dock.yaml now.").count();
        assert_eq!(said, 1, "{context}");
    }
    let raw = rig.ask(
        "memory.get_context",
        r#"{"task_id":"t1","token_budget":4000,"level":"raw","query":"file of the port"}"#,
    );
    assert!(text(&raw, "/context").contains("42:    # must only be called once"), "{raw:?}");
}

#[test]
fn an_object_of_a_tool_is_shown_by_its_members() {
    let rig = Rig::new();
    store(&rig, "I ask for the order of the visitor.");
    store(
        &rig,
        "{\n  \"order\": \"W12\",\n  \"items\": [\n    {\"id\": 4}\n  ],\n  \"status\": \"delivered\"\n}",
    );
    let context = context(&rig);
    assert!(context.contains("- order: W12; id: 4; status: delivered"), "{context}");
}
