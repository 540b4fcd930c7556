//! Refused bytes, types and requests, each with the reason.

use super::*;

#[test]
fn a_request_that_is_too_large_is_refused_unread_with_the_reason() {
    let (a, b) = sessions();
    let config = NodeConfig { most_request: 1000, ..NodeConfig::named("server") };
    let server = node_of(&a, config, Registry::standard());
    let client = node(&b, "client");
    let ty = server.node.types().read().service("omir_msgs/srv/Remember").unwrap();
    let _offered = server
        .node
        .serve("~/remember", &ty, |request| {
            let response = request.response();
            request.answer(&response).unwrap();
        })
        .unwrap();
    client.sees("/server/remember", EntityKind::Server);
    let remember = client.node.client("/server/remember", &ty).unwrap();
    let mut request = remember.request();
    remember.call(&request, LONG).unwrap();
    request.set("json", "x".repeat(2000)).unwrap();
    match remember.call(&request, LONG) {
        Err(CallError::Refused(why)) => assert!(why.contains("at most 1000"), "{why}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(server.node.counts().malformed, 1);
}

#[test]
fn another_definition_under_the_same_name_is_refused_with_the_reason() {
    let (a, b) = sessions();
    let types = with("std_msgs/msg/String", "string data\nuint32 number");
    let talker = node_of(&a, NodeConfig::named("talker"), types);
    let listener = node(&b, "listener");
    let (_subscription, receive) = listener.listen("chatter", Qos::DEFAULT);
    let changed = talker.ty("std_msgs/msg/String");
    let publisher = talker.node.publisher("chatter", &changed, Qos::DEFAULT).unwrap();
    let told = || listener.events.lock().unwrap().first().map(ToString::to_string);
    let why = listener.node.graph().wait(LONG, |_| told()).expect("it is told");
    assert!(why.contains("the publisher of /talker is refused"), "{why}");
    assert!(why.contains("the definitions of that type differ"), "{why}");
    assert_eq!(listener.node.counts().other_types, 1);
    publisher.publish(&Message::new(&changed)).unwrap();
    assert!(receive.recv_timeout(SHORT).is_err());
    // The other side is told as well, and another type by its name.
    talker.node.graph().wait(LONG, |_| (talker.node.counts().other_types == 1).then_some(()));
    assert_eq!(talker.node.counts().other_types, 1);
    let int = listener.ty("std_msgs/msg/Int32");
    let _int = talker.node.publisher("chatter", &int, Qos::DEFAULT).unwrap();
    let second = || listener.events.lock().unwrap().get(1).map(ToString::to_string);
    let last = listener.node.graph().wait(LONG, |_| second()).expect("once for each publisher");
    assert!(last.contains("its type is std_msgs::msg::dds_::Int32_"), "{last}");
}

#[test]
fn bytes_that_are_no_message_are_refused_counted_and_answered() {
    let (a, b) = sessions();
    let server = node(&a, "server");
    let (_subscription, receive) = server.listen("chatter", Qos::DEFAULT);
    let service = server
        .node
        .types()
        .read()
        .service("type_description_interfaces/srv/GetTypeDescription")
        .unwrap();
    let _server = server.node.serve("recall", &service, |_| panic!("never asked")).unwrap();
    let key = |name: &str, ty: String, hash: String| format!("0/{name}/{ty}/{hash}");
    let text = server.ty("std_msgs/msg/String");
    let topic = key("chatter", text.name.dds(), text.hash.to_rihs_string());
    let seen = node(&b, "seen");
    seen.sees("/chatter", EntityKind::Subscription);
    seen.sees("/recall", EntityKind::Server);
    let attachment: Vec<u8> = [[0; 16].as_slice(), &[16], &[0; 16]].concat();
    b.put(&topic, "odd").attachment("odd").wait().unwrap();
    b.put(&topic, vec![0, 1, 0, 0, 255, 255, 255, 255])
        .attachment(attachment.clone())
        .wait()
        .unwrap();
    b.put(&topic, "").attachment(attachment.clone()).wait().unwrap();
    let malformed =
        |n| server.node.graph().wait(LONG, |_| (server.node.counts().malformed == n).then_some(()));
    malformed(3).expect("three messages are refused");
    assert!(receive.recv_timeout(SHORT).is_err());

    let key = key("recall", service.name.dds(), service.hash.to_rihs_string());
    let ask = |payload: &[u8], attachment: &[u8]| {
        let replies =
            b.get(&key).payload(payload).attachment(attachment).timeout(LONG).wait().unwrap();
        let reply = replies.recv().unwrap();
        let error = reply.into_result().unwrap_err();
        String::from_utf8(error.payload().to_bytes().into_owned()).unwrap()
    };
    let why = ask(&[0, 1, 0, 0, 9], &attachment);
    assert!(why.contains("byte"), "{why}");
    assert!(ask(&[], &[1, 2, 3]).contains("an attachment of 3 bytes"));
    // One without any bytes is one, and no missing one.
    assert!(ask(&[0, 1, 0, 0, 9], &[]).contains("an attachment of 0 bytes"));
    malformed(6).expect("three requests are refused");
    // A token that names no entity is counted, and hides nothing.
    let _odd = b.liveliness().declare_token("@ros2_lv/0/x/y").wait().unwrap();
    let token = || (server.node.counts().tokens == 1).then_some(());
    server.node.graph().wait(LONG, |_| token()).expect("it is counted");
}
