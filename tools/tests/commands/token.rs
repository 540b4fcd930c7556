//! `omir token` before a real daemon: through its socket, and with `--data` on the folder beside it.

use std::path::Path;
use std::process::{Command, Output};

use omir_core::json;
use omir_core::value::Value;
use omird_tests::http::{Line, get};
use omird_tests::process::{Daemon, eventually};

const OMIR: &str = env!("CARGO_BIN_EXE_omir");

fn omir(data: &Path, line: &[&str]) -> Output {
    let mut command = Command::new(OMIR);
    command.args(line).env("OMIRD_DATA", data).env_remove("COLUMNS").output().unwrap()
}

#[track_caller]
fn text(output: &Output) -> String {
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[track_caller]
fn refused(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The status of an answer to whoever has a token.
fn asked_with(data: &Path, token: &str, path: &str) -> u16 {
    let head = get(path);
    let head = head.strip_suffix("\r\n").unwrap();
    let request = format!("{head}Authorization: Bearer {token}\r\n\r\n");
    Line::socket(&data.join("http.sock")).ask(request).status
}

const STATUS: &str = "/omir/v1/status";
const TOKENS: &str = "/access/v1/tokens";

#[test]
fn a_token_is_made_listed_used_and_revoked_through_the_socket() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let _daemon = Daemon::start_in_tool(OMIR, data, "rover");
    let added = omir(data, &["token", "add", "phone", "--scope", "omir:read", "--expires", "30d"]);
    let token = text(&added).trim_end().to_owned();
    assert!(token.starts_with("omird_") && !token.contains('\n'), "{token}");
    assert_eq!(asked_with(data, &token, STATUS), 200);
    assert_eq!(asked_with(data, &token, TOKENS), 403, "its scope is another");
    assert_eq!(asked_with(data, "omird_wrong", STATUS), 401);

    let listed = text(&omir(data, &["token", "list"]));
    assert!(listed.contains("phone") && listed.contains("omir:read"), "{listed}");
    let listed = text(&omir(data, &["--json", "token", "list"]));
    let line = json::from_slice(listed.trim_end().as_bytes(), &Default::default()).unwrap();
    let member = |name: &str| line.get(name).cloned();
    assert_eq!((member("name"), member("rate")), (Some("phone".into()), Some(Value::Null)));
    assert!(!listed.contains(&token));

    let again = omir(data, &["token", "add", "phone", "--scope", "omir:read"]);
    assert!(refused(&again, 1).contains("revoke it first"));
    let unknown = omir(data, &["token", "add", "a", "--scope", "omir:raed"]);
    assert!(refused(&unknown, 1).contains("is none of omir:read, omir:write, omir:admin"));

    text(&omir(data, &["token", "revoke", "phone"]));
    assert_eq!(asked_with(data, &token, STATUS), 401, "at once");
    assert!(refused(&omir(data, &["token", "revoke", "phone"]), 1).contains("no token \"phone\""));
}

#[test]
fn a_token_of_the_folder_is_in_force_beside_a_running_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let at = data.to_str().unwrap();
    let nowhere = Path::new("/nowhere");
    let missing = omir(nowhere, &["token", "--data", at, "add", "a", "--scope", "omir:read"]);
    assert!(refused(&missing, 2).contains("is no data folder: omird makes one"));
    let _daemon = Daemon::start_in_tool(OMIR, data, "rover");

    // Several at once: none is lost.
    let names: Vec<String> = (0..8).map(|i| format!("t{i}")).collect();
    let adding: Vec<_> = names
        .iter()
        .map(|name| {
            let line = ["token", "add", name, "--scope", "omir:read", "--data", at];
            let mut command = Command::new(OMIR);
            command.args(line).stdout(std::process::Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let tokens: Vec<String> =
        adding.into_iter().map(|adding| text(&adding.wait_with_output().unwrap())).collect();
    for token in &tokens {
        let token = token.trim_end();
        eventually("the token is in force", || asked_with(data, token, STATUS) == 200);
    }
    let listed = text(&omir(nowhere, &["token", "--data", at, "list", "--json"]));
    assert_eq!(listed.lines().count(), names.len());

    let other = text(&omir(nowhere, &["token", "--data", at, "revoke", "t0", "--json"]));
    assert_eq!(other, "{\"revoked\":\"t0\"}\n");
    eventually("it is revoked", || asked_with(data, tokens[0].trim_end(), STATUS) == 401);

    let wrong = ["token", "--data", at, "add", "a", "--scope", "omir:raed"];
    let told = refused(&omir(nowhere, &wrong), 2);
    assert!(told.contains("--scope: \"omir:raed\" is none of omir:read"), "{told}");
}

#[test]
fn without_a_daemon_the_way_around_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let told = refused(&omir(folder.path(), &["token", "list"]), 4);
    assert!(told.contains("no daemon of this user runs") && told.contains("--data"), "{told}");
}
