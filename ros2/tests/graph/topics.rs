//! Messages: who hears which, in which order, and what is dropped.

use zenoh::query::{ConsolidationMode, QueryTarget, ReplyKeyExpr};

use omir_ros2::graph::History;

use super::*;

#[test]
fn a_message_comes_with_who_published_it_and_when() {
    let (a, b) = sessions();
    let (talker, listener) = (node(&a, "talker"), node(&b, "listener"));
    let (_subscription, receive) = listener.listen("chatter", Qos::DEFAULT);
    let publisher =
        talker.node.publisher("chatter", &talker.ty("std_msgs/msg/String"), Qos::DEFAULT).unwrap();
    talker.sees("/chatter", EntityKind::Subscription);
    let theirs = listener.sees("/chatter", EntityKind::Publisher);
    assert!(publisher.is_heard());
    publisher.publish(&talker.text("hello")).unwrap();
    publisher.publish(&talker.text("again")).unwrap();
    let first = receive.recv_timeout(LONG).unwrap();
    assert_eq!(first.message.text("data"), Some("hello"));
    assert_eq!((first.sequence, receive.recv_timeout(LONG).unwrap().sequence), (1, 2));
    assert_eq!(first.source.nanos() % 1_000_000_000, 0, "by the clock that was handed in");
    assert_eq!(listener.node.graph().who(first.publisher.unwrap()), Some(theirs));
    let other = Message::new(&talker.ty("std_msgs/msg/Int32"));
    assert!(matches!(publisher.publish(&other), Err(NodeError::Type { .. })));
}

#[test]
fn what_was_published_before_comes_once_and_in_order() {
    let (a, b) = sessions();
    let (talker, listener) = (node(&a, "talker"), node(&b, "listener"));
    let ty = talker.ty("std_msgs/msg/String");
    let latched = Qos::LATCHED.keep_last(3);
    let early = talker.node.publisher("map", &ty, latched.keep_last(4)).unwrap();
    for text in ["0", "1", "2", "3", "4"] {
        early.publish(&talker.text(text)).unwrap();
    }
    listener.sees("/map", EntityKind::Publisher);
    // Four are kept, and three are wanted.
    let (subscription, receive) = listener.listen("map", latched);
    assert_eq!(texts(&receive, 3), ["2", "3", "4"]);
    assert_eq!(subscription.dropped(), 0);
    talker.sees("/map", EntityKind::Subscription);
    early.publish(&talker.text("5")).unwrap();
    assert_eq!(texts(&receive, 1), ["5"]);
    // A publisher that comes later is asked too, and may have published before it was seen.
    let late = talker.node.publisher("map", &ty, latched).unwrap();
    late.publish(&talker.text("6")).unwrap();
    assert_eq!(texts(&receive, 1), ["6"]);
    assert!(receive.recv_timeout(SHORT).is_err(), "nothing comes twice");
    // One who wants no history gets none.
    let (_volatile, fresh) = listener.listen("map", Qos::DEFAULT);
    assert!(fresh.recv_timeout(SHORT).is_err());
}

#[test]
fn all_that_was_published_before_comes_whatever_the_depth() {
    let (a, b) = sessions();
    let (talker, listener) = (node(&a, "talker"), node(&b, "listener"));
    let ty = talker.ty("std_msgs/msg/String");
    let numbers: Vec<String> = (10..40).map(|n| n.to_string()).collect();
    let publish = |text: &String| {
        let publisher = talker.node.publisher("rosout", &ty, Qos::LATCHED).unwrap();
        publisher.publish(&talker.text(text)).unwrap();
        publisher
    };
    let _publishers: Vec<_> = numbers.iter().map(publish).collect();
    let all = |graph: &Graph| {
        (graph.at("/rosout", EntityKind::Publisher).len() == numbers.len()).then_some(())
    };
    listener.node.graph().wait(LONG, all).expect("thirty publishers");
    let (begun, begins) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let (send, receive) = mpsc::channel();
    let subscription = listener
        .node
        .subscribe("rosout", &ty, Qos::LATCHED.keep_last(2), move |m| {
            let _ = begun.send(());
            let _ = wait.recv();
            let _ = send.send(m);
        })
        .unwrap();
    begins.recv_timeout(LONG).unwrap();
    // All that comes comes while the first one is still looked at: what is asked after the subscription did is
    // answered after it.
    let caches = b
        .get("*/rosout/*/*/@adv/**")
        .accept_replies(ReplyKeyExpr::Any)
        .target(QueryTarget::All)
        .consolidation(ConsolidationMode::None)
        .wait()
        .unwrap();
    assert_eq!(caches.into_iter().count(), numbers.len());
    drop(go);
    let mut heard = texts(&receive, numbers.len());
    heard.sort();
    assert_eq!(heard, numbers);
    assert_eq!(subscription.dropped(), 0);
}

/// Returns the messages of a subscription of depth 2 whose consumer stands still while `burst` comes after the first
/// message: all but so many of it that are dropped.
fn stalled(burst: &[String], dropped: u64) -> Vec<String> {
    let (a, b) = sessions();
    let (talker, listener) = (node(&a, "talker"), node(&b, "listener"));
    let ty = talker.ty("std_msgs/msg/String");
    let (begun, begins) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let (send, receive) = mpsc::channel();
    let subscription = listener
        .node
        .subscribe("chatter", &ty, Qos::DEFAULT.keep_last(2), move |m| {
            let _ = begun.send(());
            let _ = wait.recv();
            let _ = send.send(m);
        })
        .unwrap();
    // Dropped before the subscription, which waits for its consumer: a test that fails must not hang.
    let go = go;
    // Another node with a room of its own, which tells what has come.
    let other = node(&b, "other");
    let (_other, heard) = other.listen("chatter", Qos::DEFAULT);
    other.sees("/chatter", EntityKind::Subscription);
    talker.sees("/chatter", EntityKind::Subscription);
    // With a history of everything Zenoh waits for a busy link. Otherwise it drops, as rmw_zenoh has it, and nobody counts
    // that here.
    let everything = Qos { history: History::KeepAll, ..Qos::DEFAULT };
    let publisher = talker.node.publisher("chatter", &ty, everything).unwrap();
    publisher.publish(&talker.text("0")).unwrap();
    begins.recv_timeout(LONG).unwrap();
    for text in burst {
        publisher.publish(&talker.text(text)).unwrap();
    }
    // On a busy machine it may drop the oldest itself, never the last.
    while texts(&heard, 1).last() != burst.last() {}
    let counted = || (listener.node.counts().dropped == dropped).then_some(());
    let is_counted = listener.node.graph().wait(LONG, |_| counted()).is_some();
    assert!(is_counted, "{} are counted, not {dropped}", listener.node.counts().dropped);
    drop(go);
    let heard = texts(&receive, burst.len() + 1 - usize::try_from(dropped).unwrap());
    assert_eq!((subscription.dropped(), listener.node.counts().dropped), (dropped, dropped));
    heard
}

#[test]
fn a_burst_beyond_the_depth_waits_for_who_stands_still() {
    let burst: Vec<String> = (1..=5000).map(|n| n.to_string()).collect();
    let heard = stalled(&burst, 0);
    assert_eq!((heard[0].as_str(), &heard[1..]), ("0", &*burst));
}

#[test]
fn beyond_the_room_the_oldest_of_a_burst_is_dropped_and_counted() {
    // 15 of 4 MiB and a few bytes each are less than the 64 MiB of a queue; the first one is worked on.
    let burst: Vec<String> = (1..=20).map(|n| format!("{n}{}", " ".repeat(4 << 20))).collect();
    let heard = stalled(&burst, 5);
    let heard: Vec<&str> = heard.iter().map(|text| text.trim()).collect();
    let expected: Vec<String> = (6..=20).map(|n| n.to_string()).collect();
    assert_eq!(
        (heard[0], &heard[1..]),
        ("0", &*expected.iter().map(String::as_str).collect::<Vec<_>>())
    );
}

#[test]
fn a_message_without_an_attachment_is_a_message_of_nobody_known() {
    let (a, b) = sessions();
    let listener = node(&a, "listener");
    let ty = listener.ty("std_msgs/msg/String");
    let (_plain, plain) = listener.listen("chatter", Qos::DEFAULT);
    let (_latched, latched) = listener.listen("map", Qos::LATCHED.keep_last(5));
    let seen = node(&b, "seen");
    for topic in ["chatter", "map"] {
        seen.sees(&format!("/{topic}"), EntityKind::Subscription);
        let key = format!("0/{topic}/{}/{}", ty.name.dds(), ty.hash.to_rihs_string());
        // Twice the same: they are two messages.
        for text in ["hello", "hello", "again"] {
            b.put(&key, listener.text(text).encode()).wait().unwrap();
        }
    }
    for receive in [&plain, &latched] {
        let first = receive.recv_timeout(LONG).unwrap();
        assert_eq!(first.message.text("data"), Some("hello"));
        assert_eq!((first.publisher, first.sequence), (None, 0));
        assert_eq!(first.source, first.received);
        assert_eq!(texts(receive, 2), ["hello", "again"]);
    }
    assert_eq!(listener.node.counts().malformed, 0);
}
