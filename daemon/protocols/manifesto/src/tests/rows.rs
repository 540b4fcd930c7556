//! Each rule of the specification has a test that names it.

use std::path::Path;

/// The files with tests, from this crate's folder.
const FILES: [&str; 5] = [
    "../../../core-nostd/src/manifesto/tests.rs",
    "src/tests.rs",
    "src/tests/storing.rs",
    "src/tests/selecting.rs",
    "../../../.ci/manifesto_check.py",
];

#[test]
fn each_rule_has_a_test_that_names_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut named = String::new();
    for file in FILES {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        // What stands above a function that is a test.
        for (above, function) in text.lines().zip(text.lines().skip(1)) {
            let is_test = function.trim() == "#[test]" || function.trim().starts_with("def ");
            if is_test || above.trim_start().starts_with("/// ") {
                named.push_str(above);
                named.push('\n');
            }
        }
    }
    let is_named = |id: &str| {
        named.match_indices(id).any(|(at, _)| {
            let next = named[at + id.len()..].chars().next();
            next.is_some_and(|next| !next.is_ascii_digit())
        })
    };
    let rows = [("M-", 12, 1), ("CR-", 21, 2), ("SR-", 4, 2), ("MR-", 6, 2), ("FP-", 17, 2)];
    let missing: Vec<String> = rows
        .iter()
        .flat_map(|&(kind, count, digits)| (1..=count).map(move |n| format!("{kind}{n:0digits$}")))
        .filter(|id| !is_named(id))
        .collect();
    assert_eq!(missing, [""; 0], "no test says that it is of these");
}
