//! Questions and answers.

use super::*;

#[test]
fn a_service_is_found_asked_and_answers() {
    let (a, b) = sessions();
    let (server, client) = (node(&a, "server"), node(&b, "client"));
    let ty = server
        .node
        .types()
        .read()
        .service("type_description_interfaces/srv/GetTypeDescription")
        .unwrap();
    let clients = Arc::new(Mutex::new(Vec::new()));
    let offered = server
        .node
        .serve("~/echo", &ty, {
            let clients = Arc::clone(&clients);
            move |request| {
                clients.lock().unwrap().push(request.client());
                let mut response = request.response();
                let text = request.message().text("type_name").unwrap().to_owned();
                response.set("failure_reason", text).unwrap();
                request.answer(&response).unwrap();
            }
        })
        .unwrap();
    assert_eq!(offered.name(), "/server/echo");
    let asked = client.node.client("/server/echo", &ty).unwrap();
    client.sees("/server/echo", EntityKind::Server);
    assert!(asked.is_served(client.node.graph()));
    let mut request = asked.request();
    request.set("type_name", "hello").unwrap();
    let response = asked.call(&request, LONG).unwrap();
    assert_eq!(response.text("failure_reason"), Some("hello"));
    let who = clients.lock().unwrap()[0].unwrap();
    let who = server.node.graph().wait(LONG, |graph| graph.who(who)).unwrap();
    assert_eq!((who.kind, who.node_name()), (EntityKind::Client, "/client".to_owned()));

    drop(offered);
    client.misses("/server/echo", EntityKind::Server);
    assert!(!asked.is_served(client.node.graph()));
    assert_eq!(asked.call(&request, LONG), Err(CallError::Unanswered));
}

#[test]
fn who_leaves_waits_for_no_answer() {
    let (a, b) = sessions();
    let (server, client) = (node(&a, "server"), node(&b, "client"));
    let ty = server.node.types().read().service("action_msgs/srv/CancelGoal").unwrap();
    let (keep, kept) = mpsc::channel();
    let _silent = server.node.serve("/silent", &ty, move |request| _ = keep.send(request)).unwrap();
    let asked = client.node.client("/silent", &ty).unwrap();
    client.sees("/silent", EntityKind::Server);
    std::thread::scope(|scope| {
        let called = scope.spawn(|| asked.call(&asked.request(), LONG));
        let _unanswered = kept.recv_timeout(LONG).unwrap();
        client.node.hang_up();
        assert_eq!(called.join().unwrap(), Err(CallError::HungUp));
    });
    assert_eq!(asked.call(&asked.request(), LONG), Err(CallError::HungUp));
}

#[test]
fn a_request_without_an_attachment_has_an_answer_without_one() {
    let (a, b) = sessions();
    let server = node(&a, "server");
    let ty = server.node.types().read().service("std_srvs/srv/SetBool").unwrap();
    let _offered = server
        .node
        .serve("/light", &ty, |request| {
            let mut response = request.response();
            response.set("success", request.message().bool("data").unwrap()).unwrap();
            response.set("message", format!("{:?}", request.client())).unwrap();
            request.answer(&response).unwrap();
        })
        .unwrap();
    node(&b, "seen").sees("/light", EntityKind::Server);
    let key = format!("0/light/{}/{}", ty.name.dds(), ty.hash.to_rihs_string());
    let mut request = Message::new(&ty.request);
    request.set("data", true).unwrap();
    let replies = b.get(&key).payload(request.encode()).timeout(LONG).wait().unwrap();
    let sample = replies.recv().unwrap().into_result().unwrap();
    assert!(sample.attachment().is_none());
    let response = Message::decode(&ty.response, &sample.payload().to_bytes()).unwrap();
    assert_eq!((response.bool("success"), response.text("message")), (Some(true), Some("None")));
    assert_eq!(server.node.counts().malformed, 0);
}
