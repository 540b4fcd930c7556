//! A daemon, and connections that ask it.

use omird_tests::http::{Answer, Line, request};
use omird_tests::process::Daemon;
use serde_json::{Value, json};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_omird-under-test");

pub struct Rig {
    pub daemon: Daemon,
    pub data: tempfile::TempDir,
}

impl Rig {
    pub fn start(more: &[&str]) -> Self {
        let data = tempfile::tempdir().unwrap();
        let daemon = Daemon::start_http(PROGRAM, data.path(), "r1", more);
        Self { daemon, data }
    }

    pub fn token(&self) -> String {
        let token = std::fs::read_to_string(self.data.path().join("keys/local.token")).unwrap();
        format!("Authorization: Bearer {}\r\n", token.trim())
    }

    pub fn line(&self) -> Asking {
        Asking { line: Line::port(self.daemon.http()), token: self.token() }
    }
}

/// A connection with a token.
pub struct Asking {
    pub line: Line,
    pub token: String,
}

impl Asking {
    #[track_caller]
    pub fn ask(&mut self, what: &str, headers: &str, body: &[u8]) -> Answer {
        let headers = format!("{}{headers}", self.token);
        self.line.ask(request(what, &headers, body))
    }

    #[track_caller]
    pub fn json(&mut self, what: &str, body: &Value) -> Answer {
        let body = serde_json::to_vec(body).unwrap();
        self.ask(what, "Content-Type: application/json\r\n", &body)
    }

    #[track_caller]
    pub fn get(&mut self, path: &str) -> Answer {
        self.ask(&format!("GET {path}"), "", b"")
    }
}

pub fn entity(name: &str) -> Value {
    json!({"resourceType": "Entity", "name": name})
}
