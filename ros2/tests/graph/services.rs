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
        .unwrap()
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
    let who = clients.lock().unwrap()[0];
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
    let ty = server.node.types().read().unwrap().service("action_msgs/srv/CancelGoal").unwrap();
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
