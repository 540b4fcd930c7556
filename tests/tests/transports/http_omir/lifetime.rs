//! A daemon that is killed, stopped, or cannot start.

use std::thread;
use std::time::Duration;

use omird_tests::http::{Line, request};
use omird_tests::process::{Daemon, Settings, free_endpoint};

use crate::http_omir::rig::{PROGRAM, Rig, entity};

/// What was acknowledged is there after the power was cut.
#[test]
fn what_was_acknowledged_survives_a_kill() {
    let data = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    for round in 0..3 {
        let daemon = Daemon::start_http(PROGRAM, data.path(), "r1", &[]);
        let token = std::fs::read_to_string(data.path().join("keys/local.token")).unwrap();
        let headers =
            format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\n", token.trim());
        let address = daemon.http();
        let writers: Vec<_> = (0..4)
            .map(|who| {
                let headers = headers.clone();
                thread::spawn(move || {
                    let (mut line, mut stored) = (Line::port(address), Vec::new());
                    for n in 0.. {
                        let id = format!("r{round}-w{who}-{n}");
                        let body = serde_json::to_vec(&entity(&id)).unwrap();
                        let put =
                            request(&format!("PUT /omir/v1/memory/Entity/{id}"), &headers, &body);
                        let answer = line.try_send(put).then(|| line.answer()).flatten();
                        let Some(answer) = answer else { return stored };
                        assert_eq!(answer.status, 201);
                        stored.push(id);
                    }
                    unreachable!()
                })
            })
            .collect();
        thread::sleep(Duration::from_millis(500));
        daemon.kill();
        let stored = writers.into_iter().flat_map(|writer| writer.join().unwrap());
        acknowledged.extend(stored);
    }
    assert!(acknowledged.len() > 30, "{}", acknowledged.len());
    let daemon = Daemon::start_http(PROGRAM, data.path(), "r1", &[]);
    let mut socket = Line::socket(&daemon.http_socket());
    for id in &acknowledged {
        let answer = socket.ask(request(&format!("GET /omir/v1/memory/Entity/{id}"), "", b""));
        assert_eq!(answer.status, 200, "{id} was acknowledged");
    }
}

/// What is under way at a stop is finished, and an answer is of something durable.
#[test]
fn a_stop_lets_what_is_under_way_finish() {
    let rig = Rig::start(&[]);
    let (address, token) = (rig.daemon.http(), rig.token());
    let writer = thread::spawn(move || {
        let (mut line, mut stored) = (Line::port(address), Vec::new());
        let headers = format!("{token}Content-Type: application/json\r\n");
        for n in 0.. {
            let id = format!("s{n}");
            let body = serde_json::to_vec(&entity(&id)).unwrap();
            let put = request(&format!("PUT /omir/v1/memory/Entity/{id}"), &headers, &body);
            let answer = line.try_send(put).then(|| line.answer()).flatten();
            match answer.map(|answer| answer.status) {
                Some(201) => stored.push(id),
                Some(other) => panic!("{other}"),
                None => return stored,
            }
        }
        unreachable!()
    });
    thread::sleep(Duration::from_millis(300));
    let Rig { daemon, data } = rig;
    assert!(daemon.stop().success());
    let stored = writer.join().unwrap();
    assert!(!stored.is_empty());
    let daemon = Daemon::start_http(PROGRAM, data.path(), "r1", &[]);
    let mut socket = Line::socket(&daemon.http_socket());
    for id in &stored {
        let answer = socket.ask(request(&format!("GET /omir/v1/memory/Entity/{id}"), "", b""));
        assert_eq!(answer.status, 200, "{id} was acknowledged");
    }
}

/// The address: taken by default it is gone without, and stated it ends the start.
#[test]
fn a_stated_address_that_is_taken_ends_the_start() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let data = tempfile::tempdir().unwrap();
    let arguments = ["--http", address.as_str()];
    let settings = Settings { arguments: &arguments, ..Settings::default() };
    let mut daemon = Daemon::spawn_with(PROGRAM, data.path(), "r1", &free_endpoint(), &settings);
    let log = daemon.log();
    assert!(log.contains(&format!("http: {address} is taken")), "{log}");
}
