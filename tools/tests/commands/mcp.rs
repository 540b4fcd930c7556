//! `omir mcp` before a real daemon on a port: over TLS with a certificate made on the spot, and what is said where the two
//! do not fit.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use omir_core::json;
use omir_core::value::Value;
use omird_tests::http::Authority;
use omird_tests::process::Daemon;

const OMIR: &str = env!("CARGO_BIN_EXE_omir");
const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"me","version":"1"}}}"#;

/// A daemon on a port, a token for it, and the authority that signed its certificate.
struct Scene {
    daemon: Daemon,
    token: String,
    folder: tempfile::TempDir,
}

impl Scene {
    /// A daemon whose certificate is for a name, by this authority; without TLS if there is none.
    fn start(signed: Option<(&Authority, &str)>) -> Self {
        Self::asking(signed, None)
    }

    /// The same, which asks for certificates of clients that this authority signed.
    fn asking(signed: Option<(&Authority, &str)>, clients: Option<&Authority>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().display();
        let mut config = "[http]\nlisten = \"127.0.0.1:0\"\n".to_owned();
        if let Some((authority, name)) = signed {
            let (certificate, key) = authority.sign(name);
            fs::write(folder.path().join("http.pem"), certificate).unwrap();
            fs::write(folder.path().join("http.key"), key).unwrap();
            fs::write(folder.path().join("ca.pem"), &authority.pem).unwrap();
            config += &format!("tls = {{ certificate = \"{at}/http.pem\", key = \"{at}/http.key\"");
            if let Some(clients) = clients {
                fs::write(folder.path().join("clients.pem"), &clients.pem).unwrap();
                config += &format!(", client_ca = \"{at}/clients.pem\"");
            }
            config += " }\n";
        }
        let file = folder.path().join("omird.toml");
        fs::write(&file, config).unwrap();
        let data = folder.path().join("data");
        let config = ["--config", file.to_str().unwrap()];
        let daemon = Daemon::start_in_tool_with(OMIR, &data, "rover", &config);
        let added = Command::new(OMIR)
            .args(["token", "add", "model", "--scope", "omir:read"])
            .env("OMIRD_DATA", &data)
            .output()
            .unwrap();
        let token = String::from_utf8(added.stdout).unwrap().trim_end().to_owned();
        assert!(token.starts_with("omird_"), "{}", String::from_utf8_lossy(&added.stderr));
        Self { daemon, token, folder }
    }

    fn port(&self) -> u16 {
        self.daemon.http().port()
    }

    fn ca(&self) -> String {
        self.folder.path().join("ca.pem").display().to_string()
    }

    /// `omir mcp` with these lines as its input.
    fn mcp(&self, args: &[&str], lines: &[&str]) -> Output {
        let mut child = Command::new(OMIR)
            .arg("mcp")
            .args(args)
            .env("OMIR_TOKEN", &self.token)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // One that ends at once reads nothing.
        let _ = child.stdin.take().unwrap().write_all(lines.join("\n").as_bytes());
        child.wait_with_output().unwrap()
    }

    /// What it says as it ends with this code.
    #[track_caller]
    fn fault(&self, args: &[&str], code: i32) -> String {
        let output = self.mcp(args, &[HELLO]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert_eq!(output.stdout, b"");
        said
    }
}

fn answers(output: &Output) -> Vec<Value> {
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| json::from_slice(line, &Default::default()).unwrap()).collect()
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[test]
fn a_daemon_with_tls_is_asked_where_its_certificate_is_known() {
    let authority = Authority::make("ours");
    let scene = Scene::start(Some((&authority, "localhost")));
    let url = format!("https://localhost:{}", scene.port());
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let output = scene.mcp(&["--url", &url, "--ca", &scene.ca()], &[HELLO, note, list]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let answers = answers(&output);
    assert_eq!(answers.len(), 2, "{answers:?}");
    let of = |id: u64| answers.iter().find(|one| one.get("id").and_then(Value::as_u64) == Some(id));
    assert_eq!(text(of(1).unwrap(), "/result/protocolVersion"), "2025-06-18");
    let tools = of(2).unwrap().pointer("/result/tools").and_then(Value::as_array).unwrap();
    assert_eq!(tools.len(), 6, "those that read");
}

#[test]
fn a_certificate_is_shown_where_the_daemon_asks_for_one() {
    let (ours, clients) = (Authority::make("ours"), Authority::make("clients"));
    let scene = Scene::asking(Some((&ours, "localhost")), Some(&clients));
    let url = format!("https://localhost:{}", scene.port());
    let at = |name: &str| scene.folder.path().join(name).display().to_string();
    let write = |name: &str, (certificate, key): (String, String)| {
        fs::write(at(&format!("{name}.pem")), certificate).unwrap();
        fs::write(at(&format!("{name}.key")), key).unwrap();
    };
    write("model", clients.sign("model"));
    write("other", ours.sign("model"));
    let asked = |more: &[&str]| {
        let ca = scene.ca();
        let output = scene.mcp(&[&["--url", url.as_str(), "--ca", &ca], more].concat(), &[HELLO]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (answers(&output).into_iter().next(), said)
    };
    let (model, key) = (at("model.pem"), at("model.key"));
    let (answer, said) = asked(&["--cert", &model, "--key", &key]);
    let answer = answer.expect(&said);
    assert_eq!(text(&answer, "/result/protocolVersion"), "2025-06-18");
    // None, and one of another authority.
    let (other, other_key) = (at("other.pem"), at("other.key"));
    for more in [&[][..], &["--cert", &other, "--key", &other_key]] {
        let (answer, said) = asked(more);
        let answer = answer.expect(&said);
        let why = text(&answer, "/error/message");
        assert!(why.contains("--cert and --key") && why.contains("client_ca"), "{why}");
    }
    for (more, expected) in [
        (&["--cert", model.as_str(), "--key", &other_key][..], "key of --cert"),
        (&["--cert", "/nowhere.pem", "--key", &key], "/nowhere.pem"),
        (&["--cert", model.as_str()], "--key"),
    ] {
        let ca = scene.ca();
        let said = scene.fault(&[&["--url", url.as_str(), "--ca", &ca], more].concat(), 2);
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn an_address_is_held_against_the_certificate_as_a_name_is() {
    let authority = Authority::make("ours");
    let scene = Scene::start(Some((&authority, "127.0.0.1")));
    let by_address = format!("https://127.0.0.1:{}/mcp", scene.port());
    let output = scene.mcp(&["--url", &by_address, "--ca", &scene.ca()], &[HELLO]);
    assert_eq!(text(&answers(&output)[0], "/result/protocolVersion"), "2025-06-18");
    let by_name = format!("https://localhost:{}", scene.port());
    let said = scene.fault(&["--url", &by_name, "--ca", &scene.ca()], 4);
    assert!(said.contains("its certificate is not for localhost"), "{said}");
    assert!(said.contains("subjectAltName localhost"), "{said}");
}

#[test]
fn what_does_not_fit_is_said_with_what_to_do() {
    let authority = Authority::make("ours");
    let scene = Scene::start(Some((&authority, "localhost")));
    let port = scene.port();
    let https = format!("https://localhost:{port}");
    let other = scene.folder.path().join("other.pem");
    fs::write(&other, Authority::make("other").pem).unwrap();
    let other = other.display().to_string();
    let said = scene.fault(&["--url", &https, "--ca", &other], 4);
    assert!(
        said.contains("signed by none of the authorities in") && said.contains("--ca"),
        "{said}"
    );

    // Without a file nobody is trusted; a file must be one.
    let said = scene.fault(&["--url", &https], 2);
    assert!(said.contains("https needs --ca FILE"), "{said}");
    let said = scene.fault(&["--url", &https, "--ca", "/nowhere/ca.pem"], 2);
    assert!(said.contains("/nowhere/ca.pem") && said.contains("in PEM"), "{said}");
    let key = scene.folder.path().join("http.key").display().to_string();
    let said = scene.fault(&["--url", &https, "--ca", &key], 2);
    assert!(said.contains("no certificate is in it"), "{said}");

    // Plain HTTP where TLS is spoken: the one who asks is answered.
    let plain = format!("http://localhost:{port}");
    let output = scene.mcp(&["--url", &plain], &[HELLO]);
    let answer = &answers(&output)[0];
    let why = text(answer, "/error/message");
    assert!(why.contains(&format!("--url https://localhost:{port} --ca FILE")), "{why}");
    let said = scene.fault(&["--url", &plain, "--ca", &scene.ca()], 2);
    assert!(said.contains("--ca is for https"), "{said}");

    // And the other way round.
    let open = Scene::start(None);
    let https = format!("https://localhost:{}", open.port());
    let said = open.fault(&["--url", &https, "--ca", &scene.ca()], 4);
    assert!(said.contains("speaks no TLS") && said.contains("use http://"), "{said}");
    let plain = format!("http://localhost:{}", open.port());
    let answer = &answers(&open.mcp(&["--url", &plain], &[HELLO]))[0];
    assert_eq!(text(answer, "/result/protocolVersion"), "2025-06-18");
}
