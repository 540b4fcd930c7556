//! `omir pull` from, and `omir push` to, a real daemon on a pseudo-terminal that answers nobody without a token.

use std::fs;
use std::process::{Command, Output};

use omird_tests::process::{Client, Daemon};

use crate::serial::cable::{BAUD, ids, plug};
use crate::serial::{OMIR, ends_with};

#[test]
fn a_pull_and_a_push_give_a_token_where_one_is_required() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let _cable = plug([at("daemon"), at("tool")], usize::MAX);
    let config = format!(
        "[access]\nrequire = true\n[http]\nlisten = \"off\"\n[[serial]]\nport = {:?}\nbaud = {BAUD}\n",
        at("daemon")
    );
    fs::write(at("omird.toml"), config).unwrap();
    let (data, file) = (at("data"), at("omird.toml"));
    let daemon =
        Daemon::start_in_tool_with(OMIR, &data, "rover", &["--config", file.to_str().unwrap()]);
    let owner = fs::read_to_string(data.join("keys/local.token")).unwrap();
    let owner = Client::connect(&daemon.endpoint).with_token(owner.trim());
    let memories = r#"[{"resourceType":"MemoryRecord","id":"a","content":"a cup"},
        {"resourceType":"Entity","id":"cup","name":"cup"}]"#;
    owner.one("omir/rover/remember", Some((memories.into(), "application/json"))).value();
    let token = |name: &str, scope: &str| {
        let mut omir = Command::new(OMIR);
        omir.args(["token", "add", name, "--scope", scope]).env("OMIRD_DATA", &data);
        String::from_utf8(omir.output().unwrap().stdout).unwrap().trim_end().to_owned()
    };
    let (reader, writer) = (token("reader", "omir:read"), token("writer", "omir:write"));
    let pull = |given: &[&str], variable: Option<&str>| -> Output {
        let mut omir = Command::new(OMIR);
        omir.args(["pull", "-o", "all.omir", "--baud", &BAUD.to_string(), "--port"]);
        omir.arg(at("tool")).args(given).current_dir(folder.path());
        omir.env_remove("OMIR_SERIAL_TOKEN");
        if let Some(token) = variable {
            omir.env("OMIR_SERIAL_TOKEN", token);
        }
        omir.output().unwrap()
    };
    let said = ends_with(&pull(&[], None), 1);
    assert!(said.contains("UNAUTHENTICATED") && said.contains("give one with --token"), "{said}");
    let said = ends_with(&pull(&["--token", "omird_wrong"], None), 1);
    assert!(said.contains("no token of this daemon"), "{said}");
    let said = ends_with(&pull(&["--token", &writer], None), 1);
    assert!(said.contains("omir:read"), "{said}");
    assert!(!at("all.omir").exists());

    // A push that `access = "write"` of the port would not let in either says so before it sends.
    fs::write(at("new.omir"), r#"{"resourceType":"Entity","id":"new","name":"new"}"#).unwrap();
    let push = |given: &[&str]| -> Output {
        let mut omir = Command::new(OMIR);
        omir.args(["push", "new.omir", "--baud", &BAUD.to_string(), "--port"]).arg(at("tool"));
        omir.args(given).current_dir(folder.path()).env_remove("OMIR_SERIAL_TOKEN");
        omir.output().unwrap()
    };
    let said = ends_with(&push(&[]), 1);
    assert!(said.contains("UNAUTHENTICATED") && said.contains("a token is needed"), "{said}");
    assert!(said.contains("omir:write") && !said.contains("access ="), "{said}");
    ends_with(&push(&["--token", &writer]), 0);

    ends_with(&pull(&["--token", &reader], None), 0);
    let all = ids(&at("all.omir"));
    assert!(all.contains("a") && all.contains("cup"), "{all:?}");
    fs::remove_file(at("all.omir")).unwrap();
    ends_with(&pull(&[], Some(&reader)), 0);
    assert_eq!(ids(&at("all.omir")), all);
}
