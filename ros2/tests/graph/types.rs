//! Types that nobody knows before they are asked for.

use omir_ros2::graph::DescribeError;

use super::*;

#[test]
fn an_unknown_type_is_asked_of_its_publisher_and_must_have_its_hash() {
    let (a, b) = sessions();
    let mut types = Registry::standard();
    let name: TypeName = "lab_msgs/msg/Probe".parse().unwrap();
    types.add_text(&name, "std_msgs/Header header\nfloat64[<=4] values\nstring<=8 unit").unwrap();
    let talker =
        node_of(&a, NodeConfig { namespace: "/lab".into(), ..NodeConfig::named("probe") }, types);
    let listener = node(&b, "listener");
    let probe = talker.ty("lab_msgs/msg/Probe");
    let publisher = talker.node.publisher("values", &probe, Qos::LATCHED).unwrap();
    listener.sees("/lab/values", EntityKind::Publisher);
    listener.sees("/lab/probe/get_type_description", EntityKind::Server);
    assert!(listener.node.types().read().message("lab_msgs/msg/Probe").is_err());
    let ty = listener.node.type_of_topic("/lab/values", LONG).unwrap();
    assert_eq!(ty.hash, probe.hash);
    assert!(listener.node.types().read().message("lab_msgs/msg/Probe").is_err(), "not kept");

    let (send, receive) = mpsc::channel();
    let _subscription = listener
        .node
        .subscribe("/lab/values", &ty, Qos::LATCHED, move |m| drop(send.send(m)))
        .unwrap();
    let mut message = Message::new(&probe);
    message.set("header.frame_id", "lab").unwrap();
    message.set("values", Value::Floats(vec![1.5, 2.5])).unwrap();
    message.set("unit", "mT").unwrap();
    publisher.publish(&message).unwrap();
    let received = receive.recv_timeout(LONG).unwrap().message;
    assert_eq!(received.floats("values"), Some([1.5, 2.5].as_slice()));
    assert_eq!(
        (received.text("unit"), received.text("header.frame_id")),
        (Some("mT"), Some("lab"))
    );

    assert_eq!(
        listener.node.type_of_topic("/nothing", LONG),
        Err(DescribeError::Unpublished("/nothing".into()))
    );
    // A known type with another definition on the wire: the described one is used for the topic.
    let other = with("std_msgs/msg/String", "string data\nuint32 number");
    let changed = node_of(&a, NodeConfig::named("changed"), other);
    let theirs = changed.ty("std_msgs/msg/String");
    let _publisher = changed.node.publisher("odd", &theirs, Qos::DEFAULT).unwrap();
    listener.sees("/odd", EntityKind::Publisher);
    listener.sees("/changed/get_type_description", EntityKind::Server);
    let asked = listener.node.type_of_topic("/odd", LONG).unwrap();
    assert_eq!(asked.hash, theirs.hash);
    assert_ne!(listener.ty("std_msgs/msg/String").hash, theirs.hash);
}

#[test]
fn a_description_that_is_not_of_the_announced_hash_is_refused() {
    let (a, b) = sessions();
    let (liar, listener) = (node(&a, "accomplice"), node(&b, "listener"));
    let ty = liar.node.types().read();
    let ty = ty.service("type_description_interfaces/srv/GetTypeDescription").unwrap();
    let _server = liar
        .node
        .serve("/liar/get_type_description", &ty, |request| {
            let mut response = request.response();
            let name = request.message().text("type_name").unwrap().to_owned();
            response.set("successful", true).unwrap();
            response.set("type_description.type_description.type_name", name).unwrap();
            request.answer(&response).unwrap();
        })
        .unwrap();
    let announced = format!("RIHS01_{}", "1".repeat(64));
    let token = format!(
        "@ros2_lv/0/{}/900/901/MP/%/%/liar/%lie/lab_msgs::msg::dds_::Lie_/{announced}/::,10:,:,:,,",
        a.zid()
    );
    let _token = a.liveliness().declare_token(token).wait().unwrap();
    listener.sees("/lie", EntityKind::Publisher);
    listener.sees("/liar/get_type_description", EntityKind::Server);
    match listener.node.type_of_topic("/lie", LONG) {
        Err(DescribeError::Hash { name, announced: said, described }) => {
            assert_eq!((name.as_str(), said), ("lab_msgs/msg/Lie", announced.clone()));
            assert_ne!(described, announced);
        }
        other => panic!("{other:?}"),
    }
    assert!(listener.node.types().read().message("lab_msgs/msg/Lie").is_err());
}
