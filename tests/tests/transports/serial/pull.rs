//! Pulls: all of it, through noise, over several cables, and around what cannot be read.

use std::collections::BTreeSet;
use std::time::Duration;

use omir_core::link::Reason;
use omir_core::link::message::{Info, Pull, Request, Response};
use omir_core::value::{Map, Value};
use omird::engine::Encoding;
use omird::router::AccessPolicy;
use omird::store::format::wal;
use omird_tests::check;

use crate::serial::client::{bundle, references, stored, value};
use crate::serial::rig::Rig;
use crate::serial::terminal::Terminal;

#[test]
fn everything_is_pulled_in_the_order_it_was_recorded() {
    let rig = Rig::new(AccessPolicy::default(), 300);
    let mut client = rig.call(0.0, 1);
    let info = Info::from_map(client.ok(Request::Info)).unwrap();
    assert_eq!((info.robot.as_str(), info.count, info.write), ("r2", 600, false));

    let plain = client.pull(Pull::default());
    let carried = client.cable.carried;
    let packed = client.pull(Pull { deflate: true, ..Pull::default() });
    assert!(client.cable.carried - carried < carried / 4, "{carried} bytes, and less packed");
    assert_eq!(plain, packed);
    let expected: Vec<String> =
        (0..300).flat_map(|n| [format!("Entity/e{n}"), format!("MemoryRecord/m{n}")]).collect();
    assert_eq!(references(&plain), expected);
    check::conforms(&bundle(plain)).unwrap();

    // A filter takes with it what its resources refer to.
    let filter: Map = [("type", "MemoryRecord")].into_iter().collect();
    assert_eq!(client.pull(Pull { filter, ..Pull::default() }).len(), 600);
    let filter: Map = [("type", "Entity")].into_iter().collect();
    assert_eq!(client.pull(Pull { filter, ..Pull::default() }).len(), 300);
    let filter: Map = [("tipe", "Entity")].into_iter().collect();
    let failure = client.refused(Request::Pull(Pull { filter, ..Pull::default() }));
    assert_eq!(
        (failure.code.as_str(), failure.path.as_deref()),
        ("INVALID_QUERY", Some("/filter/tipe"))
    );
}

#[test]
fn a_noisy_line_brings_the_same() {
    let rig = Rig::new(AccessPolicy::default(), 200);
    let mut client = rig.call(1e-4, 1);
    let pulled = client.pull(Pull::default());
    assert_eq!(references(&pulled).into_iter().collect::<BTreeSet<_>>(), stored(&rig));
    assert!(client.link.counts().faults > 0, "the line was not noisy");
}

#[test]
fn a_pull_goes_on_where_the_cable_was_pulled_out() {
    let rig = Rig::new(AccessPolicy::default(), 500);
    let mut all: Vec<Value> = Vec::new();
    let mut pull = Pull::default();
    let mut cables = 0;
    'cables: loop {
        cables += 1;
        let mut client = rig.call(0.0, cables);
        let id = client.ask(Request::Pull(pull.clone()));
        let Response::Begin { as_of, count, store } = client.answer(id) else {
            panic!("no beginning")
        };
        assert_eq!(count, 1000 - all.len() as u64);
        pull.as_of.get_or_insert(as_of);
        pull.store.get_or_insert(store);
        // A memory that is recorded meanwhile belongs to another pull.
        rig.clock.advance(Duration::from_millis(1));
        let text = format!(r#"{{"resourceType":"Entity","id":"late{cables}","name":"late"}}"#);
        let change = rig.session.prepare(text.as_bytes(), Encoding::Json, None).unwrap();
        rig.session.execute(change).unwrap();
        loop {
            match client.answer(id) {
                Response::Items { items, next, .. } => {
                    all.extend(items);
                    pull.after = Some(next);
                    if client.cable.carried > 40_000 {
                        continue 'cables;
                    }
                }
                Response::End { complete, .. } => {
                    assert!(complete);
                    break 'cables;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(cables > 2, "the cable was not pulled");
    let names = references(&all);
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 1000, "each came");
    assert_eq!(names.len(), 1000, "and once");
    check::conforms(&bundle(all)).unwrap();
}

#[test]
fn what_cannot_be_read_is_told_and_the_rest_comes() {
    // So few that they lie in one log.
    let rig = Rig::new(AccessPolicy::default(), 3);
    let needle = b"thing 1";
    rig.disk.rot(&wal::path(1), |bytes| {
        let at = bytes.windows(needle.len()).position(|window| window == needle);
        bytes[at.expect("it is in the log")] ^= 3;
    });
    let mut client = rig.call(0.0, 1);
    let mut pull = Pull::default();
    let (mut all, mut told) = (Vec::new(), Vec::new());
    // Also to one who goes on after it: it is told where it stands.
    for session in 2.. {
        let id = client.ask(Request::Pull(pull.clone()));
        let Response::Begin { as_of, store, .. } = client.answer(id) else {
            panic!("no beginning")
        };
        pull.as_of.get_or_insert(as_of);
        pull.store.get_or_insert(store);
        match client.answer(id) {
            Response::Items { items, next, lost } => {
                all.extend(items);
                told.extend(lost);
                pull.after = Some(next);
            }
            Response::End { count, complete } => {
                assert_eq!((count, complete), (0, true));
                break;
            }
            other => panic!("{other:?}"),
        }
        client.open(session);
    }
    assert!(told.len() == 1 && told[0].contains("checksum"), "{told:?}");
    let names = references(&all);
    assert_eq!(names.len(), 5);
    assert!(!names.contains(&"Entity/e1".to_owned()));
    check::conforms(&bundle(all)).unwrap();

    client.link.close(Reason::Done);
    client.turn();
    let mut terminal = Terminal::on(client.cable);
    terminal.type_in("dump\r");
    terminal.until("-----BEGIN OMIR-----\r\n");
    let shown = terminal.until("-----END OMIR-----\r\n");
    let document = value(shown.strip_suffix("-----END OMIR-----\r\n").unwrap());
    assert_eq!(document.get("entry").unwrap().as_array().unwrap().len(), 5);
    check::conforms(&document).unwrap();
    terminal.until("1 resources are left out");
    terminal.until("r2> ");
}
