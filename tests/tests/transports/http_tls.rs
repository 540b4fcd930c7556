//! TLS of HTTP: certificates made on the spot, certificates of clients, and files that change while the daemon runs.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use omird_tests::http::{Authority, get, tls};
use omird_tests::process::{Daemon, Settings, eventually, free_endpoint};

const PROGRAM: &str = env!("CARGO_BIN_EXE_omird-under-test");

fn write(folder: &Path, (certificate, key): &(String, String)) {
    fs::write(folder.join("http.key"), key).unwrap();
    fs::write(folder.join("http.pem"), certificate).unwrap();
}

fn configure(folder: &Path, more: &str) -> String {
    let config = folder.join("omird.toml");
    let at = folder.display();
    let section = format!(
        "[http]\ntls = {{ certificate = \"{at}/http.pem\", key = \"{at}/http.key\"{more} }}\n"
    );
    fs::write(&config, section).unwrap();
    config.to_str().unwrap().to_owned()
}

fn answers(daemon: &Daemon, authority: &Authority, shown: Option<&(String, String)>) -> bool {
    tls(daemon.http(), &authority.pem, shown).is_ok_and(|mut line| {
        // A server refuses a client behind its own end of the handshake (TLS 1.3).
        line.try_send(get("/")) && line.answer().is_some_and(|answer| answer.status == 200)
    })
}

#[test]
fn a_certificate_that_is_renewed_is_shown_to_the_next_client() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (Authority::make("first"), Authority::make("second"));
    write(folder.path(), &first.sign("localhost"));
    let config = configure(folder.path(), "");
    let data = folder.path().join("data");
    let daemon = Daemon::start_http(PROGRAM, &data, "r1", &["--config", &config]);
    let mut open = tls(daemon.http(), &first.pem, None).unwrap();
    assert_eq!(open.ask(get("/")).status, 200);
    assert!(!answers(&daemon, &second, None), "another authority did not sign it");
    // It is read again because it has changed, and by a signal.
    write(folder.path(), &second.sign("localhost"));
    eventually("the new certificate is shown", || answers(&daemon, &second, None));
    assert!(!answers(&daemon, &first, None));
    assert_eq!(open.ask(get("/")).status, 200, "who was connected stays so");
    write(folder.path(), &first.sign("localhost"));
    daemon.signal("HUP");
    eventually("the first one is back", || answers(&daemon, &first, None));
    // A file that is faulty changes nothing.
    fs::write(folder.path().join("http.pem"), "no certificate").unwrap();
    thread::sleep(Duration::from_millis(1100));
    assert!(answers(&daemon, &first, None));
    daemon.signal("HUP");
    thread::sleep(Duration::from_millis(300));
    assert!(answers(&daemon, &first, None));
}

#[test]
fn a_client_shows_its_certificate_where_one_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (server, clients, others) =
        (Authority::make("server"), Authority::make("clients"), Authority::make("others"));
    write(folder.path(), &server.sign("localhost"));
    let file = folder.path().join("clients.pem");
    fs::write(&file, &clients.pem).unwrap();
    let config = configure(folder.path(), &format!(", client_ca = {file:?}"));
    let data = folder.path().join("data");
    let daemon = Daemon::start_http(PROGRAM, &data, "r1", &["--config", &config]);
    assert!(answers(&daemon, &server, Some(&clients.sign("panel"))));
    assert!(!answers(&daemon, &server, Some(&others.sign("panel"))));
    assert!(!answers(&daemon, &server, None));
    // It needs its token all the same.
    let mut line = tls(daemon.http(), &server.pem, Some(&clients.sign("panel"))).unwrap();
    assert_eq!(line.ask(get("/omir/v1/status")).status, 401);
    // Plain HTTP gets no answer there, and harms nobody.
    let mut plain = omird_tests::http::Line::port(daemon.http());
    plain.send(get("/"));
    assert!(plain.answer().is_none_or(|answer| answer.status != 200));
    assert!(answers(&daemon, &server, Some(&clients.sign("panel"))));
}

#[test]
fn a_faulty_file_ends_the_start_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::make("a");
    let (certificate, _) = authority.sign("localhost");
    let (_, other) = authority.sign("localhost");
    for (pair, complaint) in [
        ((String::new(), other.clone()), "http.pem: expected a certificate in PEM"),
        ((certificate.clone(), String::new()), "http.key: expected a private key in PEM"),
        ((certificate, other), "http.tls: certificate and key cannot be used together"),
    ] {
        write(folder.path(), &pair);
        let config = configure(folder.path(), "");
        let arguments = ["--http", "127.0.0.1:0", "--config", config.as_str()];
        let settings = Settings { arguments: &arguments, ..Settings::default() };
        let data = folder.path().join("data");
        let mut daemon = Daemon::spawn_with(PROGRAM, &data, "r1", &free_endpoint(), &settings);
        let log = daemon.log();
        assert!(log.contains(complaint) && log.contains("omird.toml: http.tls"), "{log}");
    }
}
