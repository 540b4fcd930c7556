//! Nodes that go, that are of an older distribution, and that are in another domain.

use omir_ros2::graph::Distribution;

use super::*;

#[test]
fn dropping_a_node_takes_everything_of_it_out_of_the_graph() {
    let (a, b) = sessions();
    let (gone, seer) = (node(&a, "gone"), node(&b, "seer"));
    let text = gone.ty("std_msgs/msg/String");
    let publisher = gone.node.publisher("out", &text, Qos::LATCHED).unwrap();
    let (_subscription, _receive) = gone.listen("in", Qos::DEFAULT);
    let ty = gone.node.types().read().service("action_msgs/srv/CancelGoal").unwrap();
    let client = gone.node.client("ask", &ty).unwrap();
    let server = gone.node.serve("serve", &ty, |_| ()).unwrap();
    seer.sees("/out", EntityKind::Publisher);
    seer.sees("/in", EntityKind::Subscription);
    seer.sees("/ask", EntityKind::Client);
    seer.sees("/serve", EntityKind::Server);
    assert!(seer.node.graph().nodes().contains("/gone"));
    let Ours { node, .. } = gone;
    drop(node);
    let empty = |graph: &Graph| graph.entities().iter().all(|e| e.node == "seer").then_some(());
    seer.node.graph().wait(LONG, empty).expect("nothing of it stays");
    let mut message = Message::new(&text);
    message.set("data", "late").unwrap();
    assert_eq!(publisher.publish(&message), Err(NodeError::Closed));
    drop((client, server));
}

#[test]
fn humble_has_no_hashes_and_describes_nothing() {
    let (a, b) = sessions();
    let humble =
        |name: &str| NodeConfig { distribution: Distribution::Humble, ..NodeConfig::named(name) };
    let talker = node_of(&a, humble("talker"), Registry::standard());
    let listener = node_of(&b, humble("listener"), Registry::standard());
    let (_subscription, receive) = listener.listen("chatter", Qos::DEFAULT);
    let publisher =
        talker.node.publisher("chatter", &talker.ty("std_msgs/msg/String"), Qos::DEFAULT).unwrap();
    talker.sees("/chatter", EntityKind::Subscription);
    let theirs = listener.sees("/chatter", EntityKind::Publisher);
    assert_eq!(theirs.endpoint.as_ref().unwrap().hash, "TypeHashNotSupported");
    publisher.publish(&talker.text("hello")).unwrap();
    assert_eq!(texts(&receive, 1), ["hello"]);
    assert!(listener.node.graph().services().is_empty());
    assert_eq!(
        listener.node.type_of_topic("chatter", LONG).unwrap().name,
        talker.ty("std_msgs/msg/String").name
    );
}

#[test]
fn domains_do_not_see_each_other_and_names_are_remapped() {
    let (a, b) = sessions();
    let config = NodeConfig {
        domain: 7,
        remap: vec!["chatter:=/loud".parse().unwrap(), "__ns:=/r1".parse().unwrap()],
        ..NodeConfig::named("talker")
    };
    let talker = node_of(&a, config, Registry::standard());
    let (same, other) = (
        node_of(&b, NodeConfig { domain: 7, ..NodeConfig::named("same") }, Registry::standard()),
        node(&b, "other"),
    );
    let publisher =
        talker.node.publisher("chatter", &talker.ty("std_msgs/msg/String"), Qos::DEFAULT).unwrap();
    assert_eq!(publisher.topic(), "/loud");
    let seen = same.sees("/loud", EntityKind::Publisher);
    assert_eq!(seen.node_name(), "/r1/talker");
    assert!(other.node.graph().topics().is_empty());
    assert!(!other.node.graph().nodes().contains("/r1/talker"));
}
