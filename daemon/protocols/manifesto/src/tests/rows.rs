//! Each rule of the specification has a test that names it.

use std::path::Path;

/// The files with tests, from this crate's folder.
const FILES: [&str; 4] = [
    "../../../core-nostd/src/manifesto/tests.rs",
    "src/tests.rs",
    "src/tests/storing.rs",
    "src/tests/selecting.rs",
];

#[test]
fn each_rule_has_a_test_that_names_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut named = String::new();
    for file in FILES {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        named.push_str(&of_tests(&text));
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

/// Returns the comments directly above the tests of a file, and the lines that those begin with.
fn of_tests(text: &str) -> String {
    let mut named = String::new();
    let (mut above, mut is_test) = (String::new(), false);
    for line in text.lines().map(str::trim) {
        if line.starts_with("/// ") {
            above.push_str(line);
            above.push('\n');
        } else if line == "#[test]" {
            is_test = true;
        } else if is_test && line.starts_with("fn ") {
            named.push_str(&above);
            named.push_str(line);
            named.push('\n');
            (above, is_test) = (String::new(), false);
        } else if !line.starts_with("#[") {
            (above, is_test) = (String::new(), false);
        }
    }
    named
}

#[test]
fn a_comment_that_stands_above_no_test_names_none() {
    let text = "/// M-1\n#[test]\nfn a() {}\n/// M-2\nfn b() {}\n/// M-3\n\n#[test]\nfn c() {}";
    let named = of_tests(text);
    assert!(named.contains("M-1") && !named.contains("M-2") && !named.contains("M-3"), "{named}");
}
