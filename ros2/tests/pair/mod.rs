//! Two Zenoh sessions on loopback for tests of a node and its peer.

use std::net::TcpListener;

use zenoh::{Config, Session, Wait};

/// Two sessions that see each other and nobody else.
pub fn sessions() -> (Session, Session) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let open = |key: &str| {
        let mut config = Config::default();
        let endpoint = format!(r#"["tcp/127.0.0.1:{port}"]"#);
        let settings = [
            ("mode", r#""peer""#),
            ("scouting/multicast/enabled", "false"),
            ("scouting/gossip/enabled", "false"),
            ("listen/endpoints", "[]"),
            (key, endpoint.as_str()),
        ];
        for (key, value) in settings {
            config.insert_json5(key, value).unwrap();
        }
        zenoh::open(config).wait().unwrap()
    };
    (open("listen/endpoints"), open("connect/endpoints"))
}
