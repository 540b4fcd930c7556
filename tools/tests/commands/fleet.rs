//! Several robots behind one router, asked by the program `omir`: real daemons, a real router.

use std::process::{Command, Output, Stdio};

use omir_core::decode::Limits;
use omir_core::json;
use omird_tests::process::{Client, Daemon, eventually, free_endpoint, session};
use zenoh::Wait as _;

const PROGRAM: &str = env!("CARGO_BIN_EXE_omir");

fn omir(endpoint: &str, words: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    for variable in ["OMIR_ROBOT", "OMIR_ZENOH_CONFIG", "OMIR_PREFIX", "RUST_LOG"] {
        command.env_remove(variable);
    }
    command.env("OMIR_CONNECT", endpoint).args(words).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn the_status_through_a_router_shows_every_robot_each_time() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let start = |(robot, folder): (&str, &tempfile::TempDir)| {
        Daemon::start_in_tool(PROGRAM, folder.path(), robot)
    };
    let daemons: Vec<Daemon> = ["r1", "r2"].into_iter().zip(&folders).map(start).collect();
    let router_at = free_endpoint();
    let endpoints: Vec<&str> = daemons.iter().map(|daemon| daemon.endpoint.as_str()).collect();
    let router = session("router", &[&router_at], &endpoints);
    let client = Client::connect(&router_at);
    eventually("both are at the router", || client.ask("omir/*/status").len() == 2);
    for round in 0..20 {
        let output = omir(&router_at, &["--json", "status"]);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "round {round}: {out}{err}");
        let robot = |line: &str| {
            let status = json::from_slice(line.as_bytes(), &Limits::default()).unwrap();
            status.get("robot").unwrap().as_str().unwrap().to_owned()
        };
        let robots: Vec<String> = out.lines().map(robot).collect();
        assert_eq!(robots, ["r1", "r2"], "round {round}: {err}");
    }
    drop(daemons);
    router.close().wait().unwrap();
}
