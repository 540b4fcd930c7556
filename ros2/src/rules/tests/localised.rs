//! Places while the robot knows where it is, and while it does not.

use super::*;

/// A rule for `/goal` that keeps all, and asks for half a metre.
fn bench(otherwise: &str) -> Bench {
    let rule = format!(
        "[[ros2.topic]]\ntopic = '/goal'\nkeep.at_most_every_s = 0\n\
         localised = {{ topic = '/amcl_pose', within_m = 0.5, otherwise = '{otherwise}' }}"
    );
    Bench::new("/goal", &rule).with_robot()
}

impl Bench {
    /// The localiser says that its position is uncertain by so many metres.
    fn localised(&mut self, seconds: f64, metres: f64) {
        let mut pose = self.message("geometry_msgs/msg/PoseWithCovarianceStamped");
        stamp(&mut pose, seconds);
        let mut covariance = vec![0.0; 36];
        covariance[0] = metres * metres;
        pose.set("pose.covariance", covariance).unwrap();
        let received = at(seconds);
        let arrival = Arrival { topic: "/amcl_pose", node: None, received, is_live: true };
        assert_eq!(self.rules.observe(&arrival, &pose, &self.tf), [], "no rule is for it");
    }

    /// A pose a metre before the robot, at that time and seen ten seconds later.
    fn goal(&mut self, seconds: f64) -> Decision {
        let mut pose = self.message("geometry_msgs/msg/PoseStamped");
        pose.set("header.frame_id", "base_link").unwrap();
        pose.set("pose.position.x", 1.0).unwrap();
        stamp(&mut pose, seconds);
        self.one(seconds + 10.0, &pose)
    }
}

fn stamp(message: &mut Message, seconds: f64) {
    let (sec, nanosec) = at(seconds).to_ros().unwrap();
    message.set("header.stamp.sec", sec).unwrap();
    message.set("header.stamp.nanosec", nanosec).unwrap();
}

fn why(memory: &MemoryRecord) -> Option<&str> {
    let extensions = memory.extension.iter().flatten();
    let mut unplaced = extensions.filter(|extension| extension.url == UNPLACED_URL);
    unplaced.next()?.value_string.as_deref()
}

const WHY: &str = "the robot does not know where it is: the position of /amcl_pose was uncertain by 2.00 m, and 0.5 m \
                   are allowed";

#[test]
fn a_place_is_judged_by_what_was_known_at_its_time() {
    let mut bench = bench("unplaced");
    let memory = record(bench.goal(5.0));
    assert!(
        why(&memory)
            .unwrap()
            .ends_with("/amcl_pose had not said yet how well the robot knows where it is")
    );
    bench.localised(10.0, 0.1);
    bench.localised(20.0, 2.0);
    bench.localised(30.0, 0.2);
    for (seconds, is_known) in [(9.0, false), (15.0, true), (25.0, false), (35.0, true)] {
        let memory = record(bench.goal(seconds));
        assert_eq!(why(&memory).is_none(), is_known, "{seconds}");
        let poses = poses(&memory);
        if is_known {
            near(&poses[0], "map", [10.0, seconds + 1.0, 0.0]);
        } else {
            assert_eq!(poses, []);
        }
    }
    let counters = bench.counters();
    assert_eq!((counters.kept, counters.unplaced), (5, 3));
}

#[test]
fn what_is_not_placed_is_dropped_or_keeps_its_own_frame_as_the_rule_says() {
    let lost = |otherwise| {
        let mut bench = bench(otherwise);
        bench.localised(1.0, 2.0);
        (bench.goal(5.0), bench)
    };
    let memory = record(lost("unplaced").0);
    assert_eq!((poses(&memory), why(&memory)), (vec![], Some(WHY)));
    let memory = record(lost("own_frame").0);
    assert_eq!((poses(&memory).len(), why(&memory)), (1, Some(WHY)));
    near(&poses(&memory)[0], "base_link", [1.0, 0.0, 0.0]);
    let (decision, bench) = lost("drop");
    assert!(is_dropped(&decision, Reason::NotLocalised));
    assert_eq!(bench.counters().dropped[&Reason::NotLocalised], 1);
}

#[test]
fn where_the_robot_was_is_not_stored_while_it_does_not_know() {
    let rule = "[[ros2.topic]]\ntopic = '/chat'\nkeep.at_most_every_s = 0\n\
                localised = { frame = 'base_link', frame_age_s = '500ms', otherwise = 'own_frame' }";
    let mut bench = Bench::new("/chat", rule).with_robot();
    let mut chat = bench.message("std_msgs/msg/String");
    chat.set("data", "hello").unwrap();
    let memory = record(bench.one(20.25, &chat));
    near(&poses(&memory)[0], "map", [10.0, 20.25, 0.0]);
    let memory = record(bench.one(20.75, &chat));
    assert_eq!(poses(&memory), [], "where it is in its own frame says nothing");
    let expected =
        "the robot does not know where it is: the last transform of \"base_link\" was 0.8 s old";
    assert_eq!(why(&memory), Some(expected));
}

#[test]
fn a_thing_stays_where_it_was_known_to_be() {
    let rule = "[[ros2.topic]]\ntopic = '/goal'\nby = 'header.frame_id'\n\
                merge = { within_s = 60, update_every_s = 0 }\n\
                localised = { topic = '/amcl_pose', within_m = 0.5, otherwise = 'drop' }";
    let mut bench = Bench::new("/goal", rule).with_robot();
    bench.localised(10.0, 0.1);
    let first = record(bench.goal(11.0));
    bench.localised(12.0, 9.0);
    assert!(is_dropped(&bench.goal(13.0), Reason::NotLocalised));
    bench.localised(14.0, 0.1);
    let again = kept(bench.goal(15.0));
    assert_eq!((again.seen, again.is_first), (1, false), "the one between counts nowhere");
    near(&poses(&first)[0], "map", [10.0, 12.0, 0.0]);
}

#[test]
fn types_that_tell_no_covariance_are_refused() {
    let complaints = |text: &str| {
        let error = Rules::compile(&resolve(text).unwrap(), &Registry::standard()).unwrap_err();
        error.to_string()
    };
    let rule = |ty: &str| {
        format!(
            "[[ros2.topic]]\ntopic = '/goal'\ntype = 'geometry_msgs/PoseStamped'\n\
             localised = {{ topic = '/where', type = '{ty}', within_m = 1 }}\n"
        )
    };
    let said = complaints(&rule("std_msgs/msg/String"));
    assert_eq!(
        said,
        "ros2.topic[0].localised.type: a std_msgs/msg/String tells no covariance of a pose"
    );
    let two = rule("nav_msgs/msg/Odometry") + &rule("geometry_msgs/msg/PoseWithCovarianceStamped");
    let said = complaints(&two);
    assert!(said.starts_with("ros2.topic[1].localised.type: /where has messages of "), "{said}");
    let good = resolve(&rule("nav_msgs/msg/Odometry")).unwrap();
    let rules = Rules::compile(&good, &Registry::standard()).unwrap();
    let odometry = "nav_msgs/msg/Odometry".parse().unwrap();
    assert!(rules.wants("/where", &odometry) && !rules.wants("/elsewhere", &odometry));
    let other = "std_msgs/msg/String".parse().unwrap();
    assert_eq!(rules.interest("/where", &other), Interest::OtherType(&odometry));
}
