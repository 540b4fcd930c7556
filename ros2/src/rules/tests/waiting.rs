//! Messages whose transform is still under way, or never comes.

use super::*;

#[test]
fn a_message_waits_for_its_transform_and_changes_nothing() {
    let mut bench = Bench::plain("/goal").with_robot();
    let mut pose = bench.message("geometry_msgs/msg/PoseStamped");
    pose.set("header.frame_id", "base_link").unwrap();
    let stamp = at(70.4).to_ros().unwrap();
    pose.set("header.stamp.sec", stamp.0).unwrap();
    pose.set("header.stamp.nanosec", stamp.1).unwrap();
    let arrival = Arrival { topic: "/goal", node: None, received: at(70.4), is_live: true };
    let decisions = bench.rules.observe(&arrival, &pose, &bench.tf);
    let [Decision::Wait(wait)] = &decisions[..] else { panic!("{decisions:?}") };
    assert!(wait.expected >= at(70.4), "{wait:?}");
    assert!(wait.reason.contains("base_link"), "{wait:?}");
    let decisions = bench.rules.retry(wait, &arrival, &pose, &bench.tf, false);
    assert!(matches!(decisions[..], [Decision::Wait(_)]));
    // Without waiting any longer it is kept, and says what it lacks.
    let mut too_late = Bench::plain("/goal").with_robot();
    let Decision::Wait(other) = too_late.one(70.4, &pose) else { panic!() };
    let decision = too_late.rules.retry(&other, &arrival, &pose, &too_late.tf, true).remove(0);
    let memory = record(decision);
    assert_eq!(poses(&memory).len(), 1);
    near(&poses(&memory)[0], "base_link", [0.0; 3]);
    let extensions = memory.extension.unwrap();
    let unplaced = extensions.iter().find(|e| e.url == UNPLACED_URL).unwrap();
    assert!(unplaced.value_string.as_ref().unwrap().contains("is known from"), "{unplaced:?}");
    let counters = too_late.counters();
    assert_eq!(
        (counters.received, counters.waited, counters.unplaced, counters.kept),
        (1, 1, 1, 1)
    );
    // With the transform it is where it was.
    let odom = Isometry3::translation(71.0, 0.0, 0.0);
    bench.tf.insert("odom", "base_link", at(71.0), odom, false).unwrap();
    let decision = bench.rules.retry(wait, &arrival, &pose, &bench.tf, false).remove(0);
    near(&poses(&record(decision))[0], "map", [10.0, 70.4, 0.0]);
    assert_eq!(bench.counters().received, 1);
}

#[test]
fn a_pose_without_a_frame_is_compared_too() {
    let mut bench = Bench::plain("/goal");
    let mut pose = bench.message("geometry_msgs/msg/PoseStamped");
    let memory = record(bench.one(0.0, &pose));
    let extension = memory.extension.unwrap().remove(0);
    assert_eq!(extension.value_string.as_deref(), Some("a pose without a frame_id"));
    pose.set("pose.position.y", 0.9).unwrap();
    assert!(is_dropped(&bench.one(1.0, &pose), Reason::Unchanged));
    pose.set("pose.position.y", 1.1).unwrap();
    assert!(kept(bench.one(2.0, &pose)).is_first);
}

#[test]
fn without_a_transform_it_may_be_dropped() {
    let mut bench =
        Bench::new("/goal", "[[ros2.topic]]\ntopic = '/goal'\nwithout_transform = 'drop'");
    let mut pose = bench.message("geometry_msgs/msg/PoseStamped");
    pose.set("header.frame_id", "gripper").unwrap();
    assert!(is_dropped(&bench.one(0.0, &pose), Reason::NoTransform));
    pose.set("header.frame_id", "map").unwrap();
    assert!(kept(bench.one(1.0, &pose)).unplaced.is_none(), "the fixed frame needs none");
    pose.set("pose.position.x", f64::INFINITY).unwrap();
    assert!(is_dropped(&bench.one(2.0, &pose), Reason::BadPose));
}
