//! `omir remember` as people type it, against a real daemon: what a pipe says, and Entities without a file.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use omird_tests::process::Daemon;

const OMIR: &str = env!("CARGO_BIN_EXE_omir");

fn omir(daemon: &Daemon, words: &[&str], input: &str) -> Output {
    let mut command = Command::new(OMIR);
    for variable in ["OMIR_ROBOT", "OMIR_ZENOH_CONFIG", "OMIR_PREFIX", "COLUMNS", "RUST_LOG"] {
        command.env_remove(variable);
    }
    command.env("OMIR_CONNECT", &daemon.endpoint).args(words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[track_caller]
fn done(output: &Output) -> String {
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[track_caller]
fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_dash_is_what_comes_on_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start_in_tool(OMIR, folder.path(), "rover");
    done(&omir(&daemon, &["remember", "-", "--id", "piped"], "the lamp\nis broken\n"));
    let got = done(&omir(&daemon, &["get", "piped"], ""));
    assert!(got.contains(r#""content": "the lamp\nis broken""#), "{got}");
    let said = refused(&omir(&daemon, &["remember", "-"], " \n"));
    assert!(said.contains("standard input is empty"), "{said}");
}

#[test]
fn the_path_of_a_file_is_no_text() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start_in_tool(OMIR, folder.path(), "rover");
    let file = folder.path().join("walk.omir");
    std::fs::write(&file, "{}").unwrap();
    let said = refused(&omir(&daemon, &["remember", file.to_str().unwrap()], ""));
    assert!(said.contains("walk.omir is a file") && said.contains("omir import"), "{said}");
    done(&omir(&daemon, &["remember", "gone.omir"], ""));
}

#[test]
fn an_entity_needs_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start_in_tool(OMIR, folder.path(), "rover");
    let entity = ["remember", "--type", "Entity", "--name", "charging dock", "--label", "location"];
    let stored = done(&omir(&daemon, &entity, ""));
    let (name, _) = stored.split_once(' ').unwrap();
    let id = name.strip_prefix("Entity/").unwrap();
    let got = done(&omir(&daemon, &["get", &format!("Entity/{}", &id[..8])], ""));
    assert!(got.contains(r#""name": "charging dock""#) && got.contains(r#""location""#), "{got}");

    // A memory may be about it by the beginning of its id, and so may a question.
    done(&omir(&daemon, &["remember", "it hums", "--entity", &id[..8], "--id", "hum"], ""));
    let got = done(&omir(&daemon, &["get", "hum"], ""));
    assert!(got.contains(&format!(r#""ref": "Entity/{id}""#)), "{got}");
    let found = done(&omir(&daemon, &["recall", "--entity", &id[..8]], ""));
    assert!(found.contains("it hums"), "{found}");

    for (words, said) in [
        (&["remember", "--type", "Entity", "a summary"][..], "--name"),
        (&["remember", "x", "--name", "n"], "--type Entity"),
        (&["remember", "--name", "n"], "--type Entity"),
        (
            &["remember", "--type", "Entity", "--name", "n", "--anchored"],
            "--anchored is for a MemoryRecord",
        ),
        (&["remember", "--type", "Entity", "--name", "n", "--label", "building"], "location"),
    ] {
        let text = refused(&omir(&daemon, words, ""));
        assert!(text.contains(said), "{words:?}: {text}");
    }

    // The card in hand knows it by the same beginning.
    let data = folder.path().to_str().unwrap().to_owned();
    let endpoint = daemon.endpoint.clone();
    assert!(daemon.stop().success());
    let line = ["store", "cat", &data, &format!("Entity/{}…", &id[..8])];
    let output = Command::new(OMIR).env("OMIR_CONNECT", &endpoint).args(line).output().unwrap();
    assert!(done(&output).contains(r#""name": "charging dock""#));
}

#[test]
fn a_condition_that_does_not_hold_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start_in_tool(OMIR, folder.path(), "rover");
    let remember = |text: &str, condition: &[&str]| {
        omir(&daemon, &[&["remember", text, "--id", "lamp"], condition].concat(), "")
    };
    done(&remember("it is on", &["--if-absent"]));
    let again = remember("it is off", &["--if-absent"]);
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(!again.status.success() && said.contains("CONFLICT"), "{said}");
    assert!(done(&remember("it is off", &["--if-version", "1"])).contains("version 2"));
    for condition in [&["--if-version", "0"][..], &["--if-version", "2", "--if-absent"]] {
        refused(&remember("it is broken", condition));
    }
}
