//! Other uses of a session: pushing, with a token or without, the time, and what is no request.

use omir_core::link::message::{Info, Pull, Push, Pushed, Request, Response, ResponseMessage};
use omir_core::link::{Closed, Reason};
use omir_core::value::Value;
use omird::engine::{Change, Clock as _, Query};
use omird::router::AccessPolicy;

use crate::serial::client::{Heard, stored, value};
use crate::serial::rig::Rig;

#[test]
fn a_port_is_read_only_until_its_token_is_given() {
    let token = "open sesame".to_owned();
    let rig = Rig::new(AccessPolicy { write: false, token: Some(token.clone()) }, 1);
    let mut client = rig.call(0.0, 1);
    let items = vec![value(r#"{"resourceType":"Entity","id":"new","name":"new"}"#)];
    let push = Request::Push(Push { items, restore: false });
    assert_eq!(client.refused(push.clone()).code, "UNAUTHORIZED");
    assert_eq!(client.refused(Request::Unlock("open simsim".to_owned())).code, "UNAUTHORIZED");
    client.ok(Request::Unlock(token.clone()));
    assert!(Info::from_map(client.ok(Request::Info)).unwrap().write);
    let pushed = Pushed::from_map(client.ok(push.clone())).unwrap();
    assert_eq!(pushed, Pushed { stored: 1, ..Pushed::default() });
    assert!(stored(&rig).contains("Entity/new"));
    let pushed = Pushed::from_map(client.ok(push.clone())).unwrap();
    assert_eq!(pushed, Pushed { unchanged: 1, ..Pushed::default() });
    let bad = vec![value(r#"{"resourceType":"Entity","id":"bad"}"#)];
    let bad = Request::Push(Push { items: bad, restore: false });
    assert_eq!(client.refused(bad).code, "INVALID_RESOURCE");

    // Another session has to give it too; whoever guesses is shut out for a while.
    client.open(2);
    assert_eq!(client.refused(push).code, "UNAUTHORIZED");
    for _ in 0..3 {
        client.refused(Request::Unlock("a guess".to_owned()));
    }
    let failure = client.refused(Request::Unlock(token));
    assert!(failure.message.contains("locked"), "{}", failure.message);
}

/// A node hands over once more what it has, and does not know what became of it here; a person pushes a file
/// and wants what is in it.
#[test]
fn what_was_forgotten_comes_back_only_where_that_is_asked_for() {
    let rig = Rig::new(AccessPolicy { write: true, token: None }, 1);
    let mut client = rig.call(0.0, 1);
    let door = value(r#"{"resourceType":"Entity","id":"door","name":"door"}"#);
    let memory = |id: &str, more: &str| {
        value(&format!(
            r#"{{"resourceType":"MemoryRecord","id":"{id}","content":"it stood open",
                "createdAt":"2026-05-30T12:00:00Z"{more}}}"#
        ))
    };
    let of_door = r#","entityRefs":[{"ref":"Entity/door"}]"#;
    let all = vec![door.clone(), memory("n-1", ""), memory("n-2", of_door)];
    let mut push = |items: Vec<Value>, restore| {
        Pushed::from_map(client.ok(Request::Push(Push { items, restore }))).unwrap()
    };
    assert_eq!(push(all.clone(), false), Pushed { stored: 3, unchanged: 0, kept: 0 });
    let forgotten = ["Entity/door", "MemoryRecord/n-1"].map(|name| name.parse().unwrap());
    rig.session.execute(Change::Forget(forgotten.to_vec())).unwrap();
    let known = stored(&rig);

    // Again, and with what is new: all of it, in parts, or changed.
    let mut more = all.clone();
    more.push(memory("n-3", ""));
    assert_eq!(push(more, false), Pushed { stored: 1, unchanged: 1, kept: 2 });
    for (item, kept) in all.iter().zip([1, 1, 0]) {
        let pushed = Pushed { stored: 0, unchanged: 1 - kept, kept };
        assert_eq!(push(vec![item.clone()], false), pushed);
    }
    let changed = memory("n-1", r#","version":7"#);
    assert_eq!(push(vec![changed], false), Pushed { stored: 0, unchanged: 0, kept: 1 });
    let new: Vec<String> = stored(&rig).difference(&known).cloned().collect();
    assert_eq!(new, ["MemoryRecord/n-3"]);
    let export = rig.session.export(&Query::everything()).unwrap().to_value();
    let entries = export.get("entry").unwrap().as_array().unwrap();
    let held = entries.iter().find(|entry| entry.get("id") == Some(&"n-2".into())).unwrap();
    assert_eq!(held.get("entityRefs"), Some(&Value::Array(vec![])), "gone for good");
    // Nothing new refers to it either, though both come together.
    let items = vec![door, memory("n-4", of_door)];
    let refused = client.refused(Request::Push(Push { items: items.clone(), restore: false }));
    assert_eq!(
        (refused.code.as_str(), refused.path.as_deref()),
        ("INVALID_RESOURCE", Some("/1/entityRefs/0/ref"))
    );

    let mut push = |items: Vec<Value>, restore| {
        Pushed::from_map(client.ok(Request::Push(Push { items, restore }))).unwrap()
    };
    assert_eq!(push(items, true), Pushed { stored: 2, unchanged: 0, kept: 0 });
    // The door is back, and what referred to the one that was forgotten does not do so again by itself.
    assert_eq!(push(vec![all[2].clone()], false), Pushed { stored: 0, unchanged: 1, kept: 0 });
    assert_eq!(push(all, true), Pushed { stored: 2, unchanged: 1, kept: 0 });
    assert!(stored(&rig).contains("MemoryRecord/n-1"));
}

#[test]
fn who_asks_the_time_hears_how_far_it_can_be_trusted() {
    let rig = Rig::new(AccessPolicy::default(), 1);
    let mut client = rig.call(0.0, 1);
    let dawn = rig.clock.now().as_micros();
    for (clock, wall, is_synchronised) in
        [("coarse", dawn, false), ("synchronised", dawn + 9_000_000, true)]
    {
        rig.clock.set(wall, is_synchronised);
        let info = Info::from_map(client.ok(Request::Info)).unwrap();
        assert_eq!((info.clock.as_str(), info.time), (clock, rig.session.now().0.to_string()));
    }
    rig.clock.reboot(0);
    let unset = Rig::with(AccessPolicy::default(), 0, rig.clock.clone());
    let info = Info::from_map(unset.call(0.0, 1).ok(Request::Info)).unwrap();
    assert_eq!(info.clock, "unknown");
}

#[test]
fn what_is_no_request_is_answered_or_ends_the_session() {
    let rig = Rig::new(AccessPolicy { write: true, token: None }, 300);
    let mut client = rig.call(0.0, 1);
    let asked = |text| omir_core::cbor::to_vec(&value(text));
    client.send(&asked(r#"{"id":7,"op":"fetch"}"#));
    let Response::Error(failure) = client.answer(7) else { panic!("it was done") };
    assert_eq!((failure.code.as_str(), failure.path.as_deref()), ("INVALID_QUERY", Some("/op")));
    // Nothing is locked here.
    client.ok(Request::Unlock("anything".to_owned()));

    // A cancelled request ends, and the one behind it is done.
    let pull = client.ask(Request::Pull(Pull::default()));
    assert!(matches!(client.answer(pull), Response::Begin { .. }));
    let cancel = client.ask(Request::Cancel(pull));
    let mut complete = None;
    loop {
        match client.hear() {
            Heard::Response(ResponseMessage {
                id,
                response: Response::End { complete: all, .. },
            }) => {
                assert_eq!(id, pull);
                complete = Some(all);
            }
            Heard::Response(ResponseMessage { response: Response::Items { .. }, .. }) => {}
            Heard::Response(ResponseMessage { id, response: Response::Ok(_) }) => {
                assert_eq!(id, cancel);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(complete, Some(false));
    client.ok(Request::Info);

    client.send(&asked(r#"["no", "map"]"#));
    match client.hear() {
        Heard::Closed(Closed::Bye(reason)) => assert_eq!(reason, Reason::Protocol),
        other => panic!("{other:?}"),
    }
    client.open(2);
    client.ok(Request::Info);
}

#[test]
fn a_daemon_that_stops_says_goodbye() {
    let mut rig = Rig::new(AccessPolicy::default(), 1);
    let mut client = rig.call(0.0, 1);
    rig.ports.take().unwrap().stop();
    match client.hear() {
        Heard::Closed(Closed::Bye(reason)) => assert_eq!(reason, Reason::GoingAway),
        other => panic!("{other:?}"),
    }
}
