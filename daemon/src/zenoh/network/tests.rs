use std::io::ErrorKind;
use std::net::TcpListener;

use super::super::error::NotOpened;
use super::*;

fn with_file(text: &str, network: Network) -> (tempfile::TempDir, Network) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("zenoh.json5");
    std::fs::write(&file, text).unwrap();
    (folder, Network { file: Some(file), ..network })
}

#[test]
fn why_nothing_is_listened_on_is_said_with_the_endpoint() {
    let find = |endpoint: &str| {
        let said = format!("Can not create a new TCP listener bound to {endpoint}: what");
        NotOpened::find(&["unixsock-stream//tmp/x".to_owned(), endpoint.to_owned()], said)
    };
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = format!("tcp/{}", other.local_addr().unwrap());
    let said = find(&format!("{taken}?so_sndbuf=1000")).to_string();
    assert!(
        said.starts_with(&format!("{taken}?so_sndbuf=1000 is taken: another program")),
        "{said}"
    );
    // Of a network for documentation (RFC 5737).
    let said = find("tcp/192.0.2.1:7448").to_string();
    assert!(said.starts_with("tcp/192.0.2.1:7448: this machine has no such address"), "{said}");
    let endpoint = "tcp/127.0.0.1:7448".to_owned();
    let low = NotOpened::Endpoint { endpoint, kind: ErrorKind::PermissionDenied }.to_string();
    assert!(low.starts_with("tcp/127.0.0.1:7448: omird may not listen there"), "{low}");
    drop(other);
    let said = find(&taken).to_string();
    assert!(said.starts_with("the network could not be opened: Can not create"), "{said}");
}

fn get(network: &Network, key: &str) -> String {
    network.to_zenoh(32 << 20).unwrap().get_json(key).unwrap()
}

#[test]
fn what_zenoh_says_is_one_line_without_its_insides() {
    for (text, expected) in [
        ("No such file (os error 2) at /build/registry/src/lib.rs:1.", "No such file (os error 2)"),
        (
            "JSON error: Message { msg: \"unknown field `conect`\", location: Some(Location { line: 1, column: 17 }) } at /x.rs:1.",
            "line 1, column 17: unknown field `conect`",
        ),
        ("Json5Err(Message { msg: \"no\", location: None })", "no"),
        (
            " --> 2:1\n  |\n2 | \n  | ^---\n  |\n  = expected a value at /x.rs:1.",
            "line 2, column 1: expected a value",
        ),
        ("Unable to connect to any of [tcp/a:1]! ", "Unable to connect to any of [tcp/a:1]!"),
    ] {
        assert_eq!(plain(&text), expected);
    }
}

#[test]
fn zenoh_takes_larger_messages_than_requests_may_be_and_not_any() {
    let most = |network: &Network| get(network, "transport/link/rx/max_message_size");
    assert_eq!(most(&Network::default()), (97_usize << 20).to_string());
    let router = Network { mode: Some(Mode::Router), ..Network::default() };
    assert_eq!(most(&router), (1_usize << 30).to_string(), "it passes on what is for others");
    let text = "{ transport: { link: { rx: { max_message_size: 12345 } } } }";
    let (_folder, own) = with_file(text, Network::default());
    assert_eq!(most(&own), "12345", "what Zenoh's own file says stands");
    let (_folder, router) = with_file("{ mode: 'router' }", Network::default());
    assert_eq!(most(&router), (1_usize << 30).to_string());
}

/// An operator adds users, and must not let everybody in by that.
#[test]
fn a_zenoh_file_about_something_else_opens_nothing() {
    let (_folder, network) = with_file(
        "{ transport: { auth: { usrpwd: { user: 'r', password: 'p' } } } }",
        Network::default(),
    );
    let closed = Network::default();
    for key in [
        "mode",
        LISTEN,
        CONNECT,
        "scouting/multicast/enabled",
        "timestamping/enabled",
        "connect/timeout_ms",
        "connect/exit_on_failure",
        "connect/retry",
    ] {
        assert_eq!(get(&network, key), get(&closed, key), "{key}");
    }
    assert_eq!(get(&network, "scouting/multicast/enabled"), "false");
    assert_eq!(network.listening().unwrap(), [DEFAULT_LISTEN]);
    assert_eq!(get(&closed, CONNECT), format!("[\"{DEFAULT_ROUTER}\"]"));
    assert_eq!(get(&closed, "mode"), "\"peer\"");
}

#[test]
fn a_zenoh_file_says_what_is_not_said_here() {
    let text = "{ mode: 'router', listen: { endpoints: { router: ['tcp/127.0.0.1:1'], peer: [] } }, \
                scouting: { multicast: { enabled: true } } }";
    let (_folder, network) = with_file(text, Network::default());
    assert_eq!(network.listening().unwrap(), ["tcp/127.0.0.1:1"]);
    assert_eq!(get(&network, "mode"), "\"router\"");
    assert_eq!(get(&network, CONNECT), "[]", "only what is named is used");
    assert_eq!(get(&network, "scouting/multicast/enabled"), "true");
    let listen = Some(vec!["tcp/127.0.0.1:2".to_owned()]);
    let ours = Network { mode: Some(Mode::Peer), listen, ..Network::default() };
    let (_folder, network) = with_file(text, ours);
    assert_eq!(network.listening().unwrap(), ["tcp/127.0.0.1:2"]);
    assert_eq!(get(&network, "mode"), "\"peer\"");
}

/// It would wait for its router for ever, before it serves or hears a signal.
#[test]
fn a_client_gives_up_its_start() {
    let zenohs = zenoh::Config::default();
    let (_folder, of_file) = with_file("{ mode: 'client' }", Network::default());
    for client in [of_file, Network { mode: Some(Mode::Client), ..Network::default() }] {
        for key in ["connect/timeout_ms", "connect/exit_on_failure"] {
            assert_eq!(get(&client, key), zenohs.get_json(key).unwrap(), "{key}");
        }
        assert_eq!(client.listening().unwrap(), [""; 0], "it only connects");
    }
}

#[test]
fn only_what_is_named_is_used() {
    let connect = Some(vec!["tcp/10.0.0.1:7447".to_owned()]);
    let network = Network { connect, ..Network::default() };
    assert_eq!(network.listening().unwrap(), [""; 0]);
    assert!(!network.reaches_nobody() && !Network::default().reaches_nobody());
    let listen = Some(vec!["tcp/0.0.0.0:7448".to_owned()]);
    assert!(Network { listen, ..Network::default() }.reaches_nobody());
    assert_eq!(get(&network, CONNECT), r#"["tcp/10.0.0.1:7447"]"#);
}
