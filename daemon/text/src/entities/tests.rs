//! Entities of sentences as robots and their people write them.

use super::EntityKind::{Identifier, Known, Link, Name, Path, Place, Quantity, Quoted, Time};
use super::vocabulary::{
    ABBREVIATIONS, ACTS_OF_PEOPLE, CONNECTORS, DESCRIPTIONS, DEVICES, FILE_ENDINGS, FOLDERS,
    LANDMARKS, OPENERS, PLACES, PREFIXES, PROGRAMS, READINGS, SERVICES, TIMES, TITLES,
};
use super::*;
use proptest::prelude::*;

fn found(text: &str) -> Vec<(EntityKind, &str)> {
    entities(Language::English, text, &[])
        .into_iter()
        .map(|entity| (entity.kind, entity.text))
        .collect()
}

#[test]
fn names_have_capitals_of_their_own() {
    assert_eq!(found("Yesterday Alice Smith moved the arm."), [(Name, "Alice Smith")]);
    assert_eq!(found("Ask Bob. Bob's key is red."), [(Name, "Bob")]);
    assert_eq!(found("Alice prefers tea"), [(Name, "Alice")]);
    assert_eq!(found("Rust is slow to compile"), [], "a capital at the beginning says nothing");
    assert_eq!(found("Use JWT tokens."), [(Name, "JWT")]);
    assert_eq!(found("We fly with the Bank of Scotland"), [(Name, "Bank of Scotland")]);
    assert_eq!(found("The arm fell. I'm sorry, and I will mend it."), []);
    assert_eq!(found("DO NOT TOUCH THE ARM"), []);
    assert_eq!(found("attempt 7 took 3 tries"), [(Name, "attempt 7")]);
}

#[test]
fn places_have_numbers_letters_or_names() {
    assert_eq!(found("The robot must not enter room 12."), [(Place, "room 12")]);
    assert_eq!(found("Door 3 sticks, and gate B too."), [(Place, "Door 3"), (Place, "gate B")]);
    assert_eq!(
        found("It waits in the kitchen of the Loading Bay"),
        [(Place, "kitchen"), (Place, "Loading Bay")]
    );
}

#[test]
fn machine_names_keep_their_form() {
    assert_eq!(
        found("dock_3 and WO-1234 run ros2_control v1.2.3."),
        [
            (Identifier, "dock_3"),
            (Identifier, "WO-1234"),
            (Identifier, "ros2_control"),
            (Identifier, "v1.2.3")
        ]
    );
    assert_eq!(
        found("call open_gripper() of GripperNode at 10.0.0.5"),
        [(Identifier, "open_gripper"), (Identifier, "GripperNode"), (Identifier, "10.0.0.5")]
    );
    assert_eq!(
        found("commit 8f12c401a9b2, std::io, the 2nd try"),
        [(Identifier, "8f12c401a9b2"), (Identifier, "std::io")]
    );
    assert_eq!(
        found("see (src/main.rs), /camera/image_raw and map.yaml."),
        [(Path, "src/main.rs"), (Path, "/camera/image_raw"), (Path, "map.yaml")]
    );
    assert_eq!(
        found("at https://omird.io/docs?x=1. Mail ops@plant.example or and/or."),
        [(Link, "https://omird.io/docs?x=1"), (Link, "ops@plant.example")]
    );
}

#[test]
fn quantities_times_and_quotes() {
    assert_eq!(
        found("It fell 3.5 m at 9:05, to 40% on Monday"),
        [(Quantity, "3.5 m"), (Time, "9:05"), (Quantity, "40%"), (Time, "Monday")]
    );
    assert_eq!(
        found("the label says \"fragile goods\" and `retry`; it doesn't matter"),
        [(Quoted, "fragile goods"), (Quoted, "retry")]
    );
    assert_eq!(found("12\" of it, and no \" more"), [], "what is not closed at once is no quote");
}

#[test]
fn kinds_are_no_names() {
    assert_eq!(found("the door is open and the shelf is wet"), [], "any door, any shelf");
    assert_eq!(
        found("Left by the freight lift, then the rear wheel encoder failed near the sauna door"),
        [(Place, "freight lift"), (Name, "rear wheel encoder"), (Place, "sauna door")]
    );
    assert_eq!(found("It took the next door of the empty shelf"), []);
    assert_eq!(found("CPU and RAM are fine, OK. The GPU has a FIFO"), []);
    assert_eq!(found("confidence 0.93, cost 81, it says 4, rows 12, count 7"), []);
    assert_eq!(
        found("Moved Piotr to ward 7C, past dock B4"),
        [(Name, "Piotr"), (Place, "ward 7C"), (Place, "dock B4")]
    );
    assert_eq!(
        found("Then Dr. Haas and Sister Ruth came"),
        [(Name, "Dr. Haas"), (Name, "Sister Ruth")]
    );
}

#[test]
fn programs_and_their_parts_are_names() {
    assert_eq!(
        found("curl fails at clock.now() in retry(last_ack), see PR #77 and !9"),
        [
            (Name, "curl"),
            (Identifier, "clock.now"),
            (Identifier, "last_ack"),
            (Identifier, "PR #77")
        ]
    );
    assert_eq!(
        found("mail-gateway and image-api are down; a co-worker made a double-check read-only"),
        [(Identifier, "mail-gateway"), (Identifier, "image-api")]
    );
    assert_eq!(
        found("deploy/orders-db, tests/kitchen, lib/io.rs:44 and/or nothing of lot 4410-07"),
        [
            (Path, "deploy/orders-db"),
            (Path, "tests/kitchen"),
            (Path, "lib/io.rs:44"),
            (Identifier, "4410-07")
        ]
    );
    assert_eq!(found("Ran it --tail 500k rows in 4m12s of 3 GiB, 1.2M kHz"), [(Quantity, "3 GiB")]);
    assert_eq!(found("the \"odd\" one and `odd`"), [(Quoted, "odd")], "a remark is no name");
}

#[test]
fn known_names_are_found_in_any_case_and_once() {
    let known = ["left gripper", "Left Gripper Pad", "mug"];
    let of = |text| -> Vec<(EntityKind, &str)> {
        entities(Language::English, text, &known)
            .into_iter()
            .map(|entity| (entity.kind, entity.text))
            .collect()
    };
    assert_eq!(
        of("the left gripper pad, the LEFT gripper, a Mug, the mug"),
        [(Known, "left gripper pad"), (Known, "LEFT gripper"), (Known, "Mug")]
    );
    assert!(of("smug left grippers").is_empty());
}

#[test]
fn german_nouns_are_no_names() {
    let of = |text| -> Vec<&str> {
        entities(Language::German, text, &[]).into_iter().map(|entity| entity.text).collect()
    };
    assert_eq!(of("Gestern hat Erika Mustermann die Tasse bewegt"), ["Erika Mustermann"]);
}

#[test]
fn lists_are_sorted() {
    let people: [&[&str]; 3] = [ACTS_OF_PEOPLE, CONNECTORS, TITLES];
    let things: [&[&str]; 7] =
        [PLACES, LANDMARKS, DEVICES, DESCRIPTIONS, READINGS, ABBREVIATIONS, OPENERS];
    let machines: [&[&str]; 6] = [FILE_ENDINGS, FOLDERS, PREFIXES, PROGRAMS, SERVICES, TIMES];
    for list in people.into_iter().chain(things).chain(machines) {
        assert!(list.is_sorted_by(|a, b| a < b));
        assert!(list.iter().all(|word| word.to_lowercase() == **word));
    }
}

proptest! {
    #[test]
    fn entities_are_slices_in_order_and_unlike(text in "(?s).{0,80}|([A-Z][a-z]{0,3}|3|m|room|\"|`|/|_|\\.| |'s|\\n){0,20}") {
        let found = entities(Language::English, &text, &["room a"]);
        let mut seen = BTreeSet::new();
        let mut at = 0;
        for entity in &found {
            prop_assert!(!entity.text.is_empty() && !entity.text.contains('\n'));
            prop_assert!(seen.insert(entity.text.to_lowercase()));
            let start = entity.text.as_ptr() as usize - text.as_ptr() as usize;
            prop_assert!(start >= at, "{:?}", entity.text);
            at = start + entity.text.len();
        }
    }
}
