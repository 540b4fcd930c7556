//! Kinds of lines, in texts in the style of transcripts.

use super::*;

fn of(text: &str, kind: LineKind) -> Vec<&str> {
    lines(text).into_iter().filter(|(one, _)| *one == kind).map(|(_, line)| line).collect()
}

#[test]
fn of_a_traceback_the_error_and_its_place_stay() {
    let text = "I run the script again.\n\
                Traceback (most recent call last):\n\
                \x20 File \"/home/rob/dock/run.py\", line 7, in <module>\n\
                \x20   main(load(\"map.yaml\"))\n\
                \x20 File \"/home/rob/dock/map.py\", line 41, in load\n\
                \x20   return parse(text)\n\
                \x20 File \"/usr/lib/python3.12/json/decoder.py\", line 338, in decode\n\
                \x20   obj, end = self.raw_decode(s)\n\
                dock.MapError: the map has no origin\n\
                (Open file: /home/rob/dock/map.py)\n\
                rob@dock:~$";
    assert_eq!(of(text, LineKind::Said), ["I run the script again."]);
    assert_eq!(of(text, LineKind::Failure), ["dock.MapError: the map has no origin"]);
    assert_eq!(of(text, LineKind::Place), ["File \"/home/rob/dock/map.py\", line 41, in load"]);
    assert_eq!(
        told(text),
        "I run the script again.\nFile \"/home/rob/dock/map.py\", line 41, in load\n\
         dock.MapError: the map has no origin"
    );
}

#[test]
fn results_of_tests_are_results() {
    for line in [
        "==================== 1 failed, 6 passed in 3.28s ====================",
        "209 passed, 1 warning in 4.12s",
        "Ran 5 tests in 0.312s",
        "test result: ok. 3 passed; 0 failed; 0 ignored",
        "Tests: 1 failed, 12 passed, 13 total",
    ] {
        assert_eq!(by_itself(line), LineKind::Result, "{line}");
    }
    for line in [
        "E       AttributeError: module 'dock' has no attribute 'arm'",
        "FAILED tests/test_arm.py::test_lift - KeyError: 'arm'",
        "error[E0308]: mismatched types",
        "thread 'main' panicked at src/arm.rs:40:9:",
        "bash: colcon: command not found",
        "test arm::lifts ... FAILED",
        "dock/map.py:33:13: F841 local variable 'arm' is never used",
        "src/map.c:3:4: error: expected ';'",
        "STATUS: FAIL",
    ] {
        assert_eq!(by_itself(line), LineKind::Failure, "{line}");
    }
}

#[test]
fn what_tools_print_is_a_listing() {
    for line in [
        "(Current directory: /home/rob)",
        "[File: dock/map.py (120 lines total)]",
        "(40 more lines above)",
        "bash-5.1$",
        "----------------------------",
        "tests/test_arm.py ........F...       [ 45%]",
        " 45%|████████          | 45/100 [00:12<00:15]",
        "tests/test_arm.py::test_lift PASSED                 [  3%]",
        "/home/rob/dock/map.py",
        "9fceb02d0ae598e95dc970b74767f19372d61af8",
        "-rw-r--r-- 1 rob rob  4096 Nov 25 10:12 map.yaml",
        "\"status\": \"docked\",",
        "self.arm = Arm(port='/dev/ttyUSB0')",
        "def lift(self, height):",
        "from dock.arm import Arm",
        "if (arm.is_up()) {",
        "return self._height",
        "Compiling dock v0.3.1",
        "at lift (src/arm.js:40:9)",
        "},",
        "]",
        "Outcome: [File: dock/map.py (120 lines total)]",
        "/usr/lib/python3/dist-packages/arm/old.py:12: DeprecationWarning: old",
    ] {
        assert_eq!(by_itself(line), LineKind::Listing, "{line}");
    }
}

#[test]
fn what_people_say_is_no_listing() {
    for line in [
        "The fault is in `dock/map.py`, line 41: `origin` is read before it is set.",
        "(The door is locked.)",
        "(must stay below 5 kg)",
        "speed = 0.5 m/s",
        "battery: 40 %",
        "> go to drawer 1",
        "On the desk 1, you see a mug 1, and a pencil 1.",
        "Import the map first.",
        "If the door is shut, wait:",
        "Return to the dock",
        "- never enter room 12",
        "With the arm up:",
        "For each box in the hall:",
        "Only 3 tests are left.",
        "OK.",
        "8.2",
        "{\"order\": 12, \"status\": \"delivered\"}",
        "門が開く。",
        "Building 4 is closed",
        "10:30 the robot docked",
        "# Plan",
        "Use https://example.org/map for it",
        "let us wait for the lift",
        "export the map before you leave",
        "GET /health answers 200",
    ] {
        assert_ne!(by_itself(line), LineKind::Listing, "{line}");
    }
    let list = "1: Never enter room 12\n2: Tidy the hall\n3: Dock at night";
    assert_eq!(of(list, LineKind::Said).len(), 3);
    let times = "10: the lift is up\n12: the lift is down\n14: the lift is up";
    assert_eq!(of(times, LineKind::Said).len(), 3);
}

#[test]
fn comments_inside_of_code_are_listed_with_it() {
    let text = "[File: map.py (9 lines total)]\n1:import yaml\n2:\n3:# Only the first origin counts\n\
                4:def load(path):\n5:    with open(path) as file:\n6:        return yaml.load(file)\nI see it now.";
    assert_eq!(of(text, LineKind::Said), ["I see it now."]);
    let block = "name = 'map'\n\n    def resolve(name):\n        \"\"\"\n        Resolve a name to a map.\n\n        \
                 Only one origin is needed here.\n        \"\"\"\n        maps = name.split('.')\n        return maps[0]\nDone with it.";
    assert_eq!(of(block, LineKind::Said), ["Done with it."]);
    let fenced = "Do this:\n```python\nx = 1\n# never change it\n```\nThen stop.";
    assert_eq!(of(fenced, LineKind::Said), ["Do this:", "Then stop."]);
    let quoted = "The rule is:\n```\nThe robot must not enter room 12.\n```";
    assert_eq!(of(quoted, LineKind::Said).len(), 2);
    let change = "diff --git a/map.py b/map.py\nindex 20edef5..5857437 100644\n--- a/map.py\n+++ b/map.py\n@@ -1,2 +1,2 @@\n \
                  origin = None\n-# must stay\n+# may go\nApplied.";
    assert_eq!(of(change, LineKind::Said), ["Applied."]);
    assert_eq!(of(&format!("Outcome: {change}"), LineKind::Said), ["Applied."]);
    let quoted =
        "def resolve(name):\n\"\"\"\nOnly one origin is needed here.\n\"\"\"\nDone with it.";
    assert_eq!(of(quoted, LineKind::Said), ["Done with it."]);
}

#[test]
fn a_text_without_listings_stays_as_it_is() {
    for text in ["", "The door is shut.\n\n  It stays so.", "/a/b/c/d/e\n/a/b/c/d/f"] {
        assert!(matches!(told(text), Cow::Borrowed(same) if same == text), "{text}");
    }
}
