//! HTTP as `docs/http.md` has it, spoken by a client that writes bytes.

use omird_tests::http::{Line, get};
use omird_tests::process::Daemon;

const PROGRAM: &str = env!("CARGO_BIN_EXE_omird-under-test");

#[test]
fn the_port_needs_a_token_and_the_socket_does_not() {
    let data = tempfile::tempdir().unwrap();
    let daemon = Daemon::start_http(PROGRAM, data.path(), "r1", &[]);
    let mut port = Line::port(daemon.http());
    assert_eq!(port.ask(get("/")).status, 200);
    let refused = port.ask(get("/omir/v1/status"));
    assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some("Bearer")));
    assert_eq!(refused.json()["code"], "UNAUTHENTICATED");
    assert_eq!(port.ask(get("/nothing")).json()["code"], "NOT_FOUND");
    let mut socket = Line::socket(&daemon.http_socket());
    let status = socket.ask(get("/omir/v1/status"));
    assert_eq!((status.status, status.header("content-type")), (200, Some("application/json")));
    assert_eq!(status.json()["robot"], "r1");
    drop((port, socket));
    let path = daemon.http_socket();
    assert!(daemon.stop().success());
    assert!(!path.exists());
}
