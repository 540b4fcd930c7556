//! Goals, how far they are, and how they end.

use omir_ros2::graph::{ActionConfig, Ending, Goal, GoalHandler, Status};

use super::*;

/// Copies until it is told that it is done.
struct Copy(Mutex<Receiver<()>>);

impl GoalHandler for Copy {
    fn accepts(&self, goal: &Message) -> bool {
        goal.text("path").is_some_and(|path| !path.is_empty())
    }

    fn execute(&self, goal: &Goal) -> Ending {
        let mut feedback = goal.feedback().unwrap();
        feedback.set("feedback.done", 7_u32).unwrap();
        goal.send_feedback(&feedback).unwrap();
        while !goal.is_canceling() {
            if self.0.lock().unwrap().recv_timeout(Duration::from_millis(20)).is_ok() {
                let mut result = goal.result();
                result.set("files", 12_u32).unwrap();
                return Ending::Succeeded(result);
            }
        }
        Ending::Canceled(goal.result())
    }
}

#[test]
fn an_action_takes_a_goal_tells_how_far_it_is_and_ends() {
    let (a, b) = sessions();
    let copy = || with("lab_msgs/action/Copy", "string path\n---\nuint32 files\n---\nuint32 done");
    let server = node_of(&a, NodeConfig::named("server"), copy());
    let client = node_of(&b, NodeConfig::named("client"), copy());
    let ty = server.node.types().read().action("lab_msgs/action/Copy").unwrap();
    let (finish, finished) = mpsc::channel();
    let offered = server
        .node
        .action_server("~/copy", &ty, ActionConfig::default(), Copy(Mutex::new(finished)))
        .unwrap();
    assert_eq!(offered.name(), "/server/copy");

    let part = |part: &str| format!("/server/copy/_action/{part}");
    let cancel = client.node.types().read().service("action_msgs/srv/CancelGoal").unwrap();
    let send_goal = client.node.client(&part("send_goal"), &ty.send_goal).unwrap();
    let get_result = client.node.client(&part("get_result"), &ty.get_result).unwrap();
    let cancel_goal = client.node.client(&part("cancel_goal"), &cancel).unwrap();
    let (send, states) = mpsc::channel();
    let status = client.ty("action_msgs/msg/GoalStatusArray");
    let _states = client
        .node
        .subscribe(&part("status"), &status, Qos::LATCHED.keep_last(100), move |m| {
            drop(send.send(m))
        })
        .unwrap();
    let (send, feedback) = mpsc::channel();
    let _feedback = client
        .node
        .subscribe(&part("feedback"), &ty.feedback_message, Qos::DEFAULT, move |m| {
            drop(send.send(m))
        })
        .unwrap();
    for service in ["send_goal", "get_result", "cancel_goal"] {
        client.sees(&part(service), EntityKind::Server);
    }
    server.sees(&part("feedback"), EntityKind::Subscription);

    let goal = |id: u8, path: &str| {
        let mut request = send_goal.request();
        request.set("goal_id.uuid", Value::Bytes(vec![id; 16])).unwrap();
        request.set("goal.path", path).unwrap();
        send_goal.call(&request, LONG).unwrap().bool("accepted").unwrap()
    };
    let result = |id: u8| {
        let mut request = get_result.request();
        request.set("goal_id.uuid", Value::Bytes(vec![id; 16])).unwrap();
        let response = get_result.call(&request, LONG).unwrap();
        (response.i64("status").unwrap(), response.u64("result.files").unwrap())
    };
    assert!(!goal(1, ""), "the handler does not want it");
    assert!(goal(1, "a.mcap"));
    let told = feedback.recv_timeout(LONG).unwrap().message;
    assert_eq!(told.bytes("goal_id.uuid"), Some([1; 16].as_slice()));
    assert_eq!(told.u64("feedback.done"), Some(7));
    assert!(!goal(2, "b.mcap"), "one at once");
    // More ask for the result than may wait: one of them is refused, and none is told of an end too early.
    std::thread::scope(|scope| {
        let (send, answers) = mpsc::channel();
        for _ in 0..=100 {
            let (send, get_result) = (send.clone(), &get_result);
            scope.spawn(move || {
                let mut request = get_result.request();
                request.set("goal_id.uuid", Value::Bytes(vec![1; 16])).unwrap();
                loop {
                    match get_result.call(&request, LONG) {
                        Err(CallError::Refused(why)) if why.contains("wait here") => {}
                        answer => return send.send(answer).unwrap(),
                    }
                }
            });
        }
        match answers.recv_timeout(LONG).unwrap() {
            Err(CallError::Refused(why)) => assert!(why.contains("for this goal"), "{why}"),
            other => panic!("{other:?}"),
        }
        finish.send(()).unwrap();
        for _ in 0..100 {
            let response = answers.recv_timeout(LONG).unwrap().unwrap();
            let end = (response.i64("status"), response.u64("result.files"));
            assert_eq!(end, (Some(Status::Succeeded as i64), Some(12)));
        }
    });
    assert_eq!(result(9), (Status::Unknown as i64, 0));

    assert!(goal(3, "c.mcap"));
    let mut request = cancel_goal.request();
    request.set("goal_info.goal_id.uuid", Value::Bytes(vec![3; 16])).unwrap();
    let canceled = cancel_goal.call(&request, LONG).unwrap();
    assert_eq!(
        (canceled.i64("return_code"), canceled.list("goals_canceling").map(<[_]>::len)),
        (Some(0), Some(1))
    );
    assert_eq!(result(3), (Status::Canceled as i64, 0));

    // The last state that is told has both goals at their ends.
    let ends = |m: &Message| -> Vec<i64> {
        let list = m.list("status_list").unwrap();
        list.iter().map(|s| s.as_message().unwrap().i64("status").unwrap()).collect()
    };
    loop {
        let state = states.recv_timeout(LONG).expect("both ends are told").message;
        if ends(&state).last() == Some(&(Status::Canceled as i64)) {
            break;
        }
    }
    assert!(goal(4, "d.mcap"));
    drop(offered);
    client.misses(&part("send_goal"), EntityKind::Server);
}
