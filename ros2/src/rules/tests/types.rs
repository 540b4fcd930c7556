//! The memories of each well-known type.

use super::*;

#[test]
fn a_text_is_kept_when_it_changes() {
    let mut bench = Bench::plain("/note");
    let mut message = bench.message("std_msgs/msg/String");
    message.set("data", "the door is open").unwrap();
    let first = record(bench.one(0.0, &message));
    assert_eq!(first.content, "the door is open");
    assert_eq!(first.event_time.unwrap().at(), at(0.0).into());
    let provenance = first.provenance.unwrap();
    assert_eq!(provenance.source.as_deref(), Some("ros2 /note std_msgs/msg/String /driver"));
    assert_eq!(provenance.external_id.as_deref(), Some("ros2:/note@1780000000.000000000"));
    assert_eq!(first.extension, None, "nobody knows where the robot is");
    assert!(is_dropped(&bench.one(1.0, &message), Reason::Unchanged));
    message.set("data", "the door is closed").unwrap();
    assert_eq!(record(bench.one(2.0, &message)).content, "the door is closed");
    message.set("data", "  ").unwrap();
    assert!(is_dropped(&bench.one(3.0, &message), Reason::NoText));
    let counters = bench.counters();
    assert_eq!((counters.received, counters.kept), (4, 2));
    assert_eq!(counters.dropped[&Reason::Unchanged], 1);
}

#[test]
fn what_has_no_place_of_its_own_is_where_the_robot_was() {
    let mut bench = Bench::plain("/note").with_robot();
    let mut message = bench.message("std_msgs/msg/String");
    message.set("data", "bump").unwrap();
    let bump = record(bench.one(7.5, &message));
    let poses = poses(&bump);
    assert_eq!(poses.len(), 1);
    near(&poses[0], "map", [10.0, 7.5, 0.0]);
    assert_eq!(poses[0].child_frame.as_deref(), Some("base_link"));
    let yaw = poses[0].orientation.unwrap().euler_angles().2;
    assert!((yaw - std::f64::consts::FRAC_PI_2).abs() < 1e-9);
}

#[test]
fn an_error_that_repeats_is_one_memory() {
    let mut bench = Bench::plain("/rosout");
    let mut log = bench.message("rcl_interfaces/msg/Log");
    log.set("name", "controller_server").unwrap();
    log.set("msg", "Failed to make progress for 3.2 s").unwrap();
    log.set("level", 20_u8).unwrap();
    assert!(is_dropped(&bench.one(0.0, &log), Reason::Level));
    log.set("level", 40_u8).unwrap();
    log.set("stamp.sec", 1_780_000_000).unwrap();
    let decision = bench.one(0.1, &log);
    let first = record(decision);
    assert_eq!(first.content, "controller_server: Failed to make progress for 3.2 s");
    assert_eq!(first.importance.unwrap().as_f64(), 0.7);
    assert_eq!(first.event_time.unwrap().as_str(), "2026-05-28T20:26:40Z", "its own stamp");
    log.set("msg", "Failed to make progress for 14 s").unwrap();
    log.set("stamp.sec", 1_780_000_011).unwrap();
    assert_eq!(bench.one(11.0, &log), Decision::Merged { count: 2 });
    log.set("msg", "Failed to make progress for 301 s").unwrap();
    log.set("stamp.sec", 1_780_000_301).unwrap();
    let again = kept(bench.one(301.0, &log));
    assert_eq!((again.is_first, again.seen), (false, 2));
    let record = match valid(&again.resource) {
        Resource::MemoryRecord(record) => record,
        other => panic!("{other:?}"),
    };
    assert_eq!(record.id, first.id);
    assert_eq!(record.created_at, first.created_at);
    let url = |e: &&omir_core::model::Extension| e.url == CONSOLIDATED_URL;
    let extension = record.extension.iter().flatten().find(url).unwrap();
    let told = extension.value_json.clone().unwrap();
    assert_eq!(told.get("count").and_then(Json::as_u64), Some(3));
    assert_eq!(told.get("first").and_then(Json::as_str), Some("2026-05-28T20:26:40Z"));
    assert_eq!(told.get("last").and_then(Json::as_str), Some("2026-05-28T20:31:41Z"));
    // Other words are another memory.
    log.set("msg", "Goal was rejected").unwrap();
    assert!(kept(bench.one(302.0, &log)).is_first);
}

#[test]
fn diagnostics_tell_of_what_got_worse_and_what_is_well_again() {
    let mut bench = Bench::plain("/diagnostics");
    let status = |bench: &Bench, name: &str, level: u8, text: &str| {
        let mut status = bench.message("diagnostic_msgs/msg/DiagnosticStatus");
        status.set("name", name).unwrap();
        status.set("level", level).unwrap();
        status.set("message", text).unwrap();
        status
    };
    let array = |bench: &Bench, left: (u8, &str), right: (u8, &str)| {
        let mut array = bench.message("diagnostic_msgs/msg/DiagnosticArray");
        array
            .set(
                "status",
                vec![
                    status(bench, "left_wheel", left.0, left.1),
                    status(bench, "right_wheel", right.0, right.1),
                ],
            )
            .unwrap();
        array
    };
    let fine = array(&bench, (0, "fine"), (0, "fine"));
    let decisions = bench.see(0.0, &fine);
    assert!(
        decisions.iter().all(|decision| is_dropped(decision, Reason::Unchanged)),
        "{decisions:?}"
    );
    let hot = array(&bench, (2, "82 °C"), (0, "fine"));
    let mut decisions = bench.see(2.0, &hot);
    assert!(is_dropped(&decisions[1], Reason::Unchanged));
    let memory = record(decisions.remove(0));
    assert_eq!(memory.content, "left_wheel: ERROR 82 °C");
    assert_eq!(memory.importance.unwrap().as_f64(), 0.8);
    assert_eq!(
        memory.provenance.unwrap().external_id.as_deref(),
        Some("ros2:/diagnostics@1780000002.000000000#0")
    );
    let hotter = array(&bench, (2, "93 °C"), (0, "fine"));
    assert!(is_dropped(&bench.see(4.0, &hotter)[0], Reason::Unchanged), "the same level");
    let decision = bench.see(6.0, &fine).remove(0);
    assert_eq!(record(decision).content, "left_wheel: OK fine");
}

#[test]
fn a_list_without_end_makes_no_memories_without_end() {
    let config = "[[ros2.topic]]\ntopic = '/parts'\neach = 'detections[*]'\n\
        by = '{results[0].hypothesis.class_id}'\ntext = 'a part'\npose = '@none'";
    let mut bench = Bench::new("/parts", config);
    let mut result = bench.message("vision_msgs/msg/ObjectHypothesisWithPose");
    let mut detection = bench.message("vision_msgs/msg/Detection3D");
    let detections: Vec<Message> = (0..rule::MOST_ELEMENTS + 70)
        .map(|n| {
            result.set("hypothesis.class_id", format!("part {n}")).unwrap();
            result.set("hypothesis.score", 0.9).unwrap();
            detection.set("results", vec![result.clone()]).unwrap();
            detection.clone()
        })
        .collect();
    let mut array = bench.message("vision_msgs/msg/Detection3DArray");
    array.set("detections", detections).unwrap();
    let decisions = bench.see(1.0, &array);
    assert_eq!(decisions.last(), Some(&Decision::Beyond(70)));
    let counters = bench.counters();
    assert_eq!((counters.kept, counters.dropped), (1000, [(Reason::TooLong, 70)].into()));
    let ids: std::collections::BTreeSet<String> =
        decisions.into_iter().take(1000).map(|one| record(one).id.to_string()).collect();
    assert_eq!(ids.len(), 1000);
}

#[test]
fn a_pose_is_kept_in_the_fixed_frame_and_its_own() {
    let mut bench = Bench::plain("/goal").with_robot();
    let mut pose = bench.message("geometry_msgs/msg/PoseStamped");
    pose.set("header.frame_id", "base_link").unwrap();
    pose.set("header.stamp.sec", 1_780_000_020).unwrap();
    pose.set("header.stamp.nanosec", 500_000_000_u32).unwrap();
    pose.set("pose.position.x", 2.0).unwrap();
    pose.set("pose.position.y", 1.0).unwrap();
    let memory = record(bench.one(21.0, &pose));
    assert_eq!(memory.content, "/goal: pose at x 2.00, y 1.00 in base_link");
    assert_eq!(memory.event_time.clone().unwrap().as_str(), "2026-05-28T20:27:00.500Z");
    let poses = poses(&memory);
    // base_link is at 20.5 m in odom, which map sees turned by a quarter and shifted by 10.
    near(&poses[0], "map", [10.0 - 1.0, 22.5, 0.0]);
    near(&poses[1], "base_link", [2.0, 1.0, 0.0]);
    assert_eq!(poses[0].stamp.as_ref().unwrap().as_str(), "2026-05-28T20:27:00.500Z");
    // The same place in the world is no news, seen from wherever.
    pose.set("header.stamp.sec", 1_780_000_021).unwrap();
    pose.set("pose.position.x", 1.2).unwrap();
    assert!(is_dropped(&bench.one(21.6, &pose), Reason::Unchanged));
    pose.set("pose.position.x", 2.5).unwrap();
    assert!(kept(bench.one(21.7, &pose)).is_first);
}

#[test]
fn a_turn_is_news_too() {
    let mut bench = Bench::plain("/amcl_pose");
    let mut pose = bench.message("geometry_msgs/msg/PoseWithCovarianceStamped");
    pose.set("header.frame_id", "map").unwrap();
    let mut turned = |bench: &mut Bench, seconds, degrees: f64| {
        let half = degrees.to_radians() / 2.0;
        pose.set("pose.pose.orientation.z", half.sin()).unwrap();
        pose.set("pose.pose.orientation.w", half.cos()).unwrap();
        pose.set("pose.covariance[35]", 0.01).unwrap();
        bench.one(seconds, &pose)
    };
    let memory = record(turned(&mut bench, 0.0, 0.0));
    let pose = poses(&memory).remove(0);
    assert_eq!(pose.covariance.unwrap()[35], 0.01);
    assert!(is_dropped(&turned(&mut bench, 1.0, 29.0), Reason::Unchanged));
    assert!(matches!(turned(&mut bench, 2.0, 31.0), Decision::Keep(_)));
    assert!(is_dropped(&turned(&mut bench, 3.0, 2.0), Reason::Unchanged), "from what was kept");
}

#[test]
fn odometry_makes_a_trail() {
    let mut bench = Bench::plain("/odom").with_robot();
    let mut odometry = bench.message("nav_msgs/msg/Odometry");
    odometry.set("header.frame_id", "odom").unwrap();
    odometry.set("child_frame_id", "base_link").unwrap();
    odometry.set("twist.twist.linear.x", 1.0).unwrap();
    let mut trail = Vec::new();
    for tick in 0..5000 {
        let seconds = f64::from(tick) / 128.0;
        let stamp = at(seconds).to_ros().unwrap();
        odometry.set("header.stamp.sec", stamp.0).unwrap();
        odometry.set("header.stamp.nanosec", stamp.1).unwrap();
        odometry.set("pose.pose.position.x", seconds).unwrap();
        if let Decision::Keep(kept) = bench.one(seconds, &odometry) {
            trail.push(kept);
        }
    }
    // At the start, and then each time more than a metre went by, which is after 129/128 s.
    assert_eq!(trail.len(), 39);
    let last = record(Decision::Keep(trail.pop().unwrap()));
    assert_eq!(last.content, "drove at 1.00 m/s");
    near(&poses(&last)[0], "map", [10.0, 38.296875, 0.0]);
    near(&poses(&last)[1], "odom", [38.296875, 0.0, 0.0]);
    assert_eq!(bench.counters().dropped[&Reason::Unchanged], 4961);
    assert_eq!(bench.counters().waited, 0, "what is not kept needs no transform");
}

#[test]
fn a_fix_is_a_place_on_the_earth() {
    let mut bench = Bench::plain("/fix");
    let mut fix = bench.message("sensor_msgs/msg/NavSatFix");
    fix.set("header.frame_id", "gps").unwrap();
    fix.set("latitude", 48.137).unwrap();
    fix.set("longitude", 11.575).unwrap();
    fix.set("altitude", 520.0).unwrap();
    fix.set("status.status", -1_i8).unwrap();
    assert!(is_dropped(&bench.one(0.0, &fix), Reason::Condition));
    fix.set("status.status", 0_i8).unwrap();
    let memory = record(bench.one(1.0, &fix));
    assert_eq!(memory.content, "at 48.137000, 11.575000, 520.0 m");
    let pose = poses(&memory).remove(0);
    near(&pose, "gps", [0.0; 3]);
    let geo = pose.geo.unwrap();
    assert_eq!((geo.lat(), geo.lon(), geo.alt()), (48.137, 11.575, Some(520.0)));
    // 0.00008° of latitude are 8.9 m, 0.0001° are 11.1 m. Height does not count.
    fix.set("latitude", 48.13708).unwrap();
    fix.set("altitude", 570.0).unwrap();
    assert!(is_dropped(&bench.one(2.0, &fix), Reason::Unchanged));
    fix.set("latitude", 48.1371).unwrap();
    assert!(kept(bench.one(3.0, &fix)).is_first);
    fix.set("latitude", f64::NAN).unwrap();
    assert!(is_dropped(&bench.one(4.0, &fix), Reason::BadPose));
}

#[test]
fn a_fix_is_also_where_the_receiver_is_in_the_map() {
    let mut bench = Bench::plain("/fix").with_robot();
    let mut fix = bench.message("sensor_msgs/msg/NavSatFix");
    fix.set("header.frame_id", "camera").unwrap();
    fix.set("status.status", 0_i8).unwrap();
    fix.set("latitude", 48.0).unwrap();
    let memory = record(bench.one(30.0, &fix));
    let poses = poses(&memory);
    assert_eq!(poses.len(), 1);
    near(&poses[0], "map", [10.0, 30.5, 1.0]);
    assert_eq!(poses[0].geo.unwrap().lat(), 48.0);
}

#[test]
fn a_battery_tells_when_it_runs_low_and_when_it_is_charged() {
    let mut bench = Bench::plain("/battery");
    let mut battery = bench.message("sensor_msgs/msg/BatteryState");
    battery.set("voltage", 11.1_f32).unwrap();
    let mut reads = |seconds, percentage: f32, status: u8| {
        battery.set("percentage", percentage).unwrap();
        battery.set("power_supply_status", status).unwrap();
        bench.one(seconds, &battery)
    };
    let memory = record(reads(00.0, 0.9, 2));
    assert_eq!(memory.content, "battery at 90%, 11.1 V, DISCHARGING");
    assert!(is_dropped(&reads(10.0, 0.21, 2), Reason::Unchanged));
    assert_eq!(record(reads(20.0, 0.19, 2)).content, "battery at 19%, 11.1 V, DISCHARGING");
    assert!(is_dropped(&reads(30.0, 0.21, 2), Reason::Unchanged), "not back yet");
    assert!(is_dropped(&reads(40.0, 0.18, 2), Reason::Unchanged));
    assert!(matches!(reads(50.0, 0.09, 2), Decision::Keep(_)));
    assert_eq!(record(reads(60.0, 0.09, 1)).content, "battery at 9%, 11.1 V, CHARGING");
    assert!(is_dropped(&reads(70.0, f32::NAN, 1), Reason::Unchanged), "not measured");
}

#[test]
fn an_image_is_seen_from_where_the_robot_is() {
    let mut bench = Bench::plain("/detections").with_robot();
    let mut result = bench.message("vision_msgs/msg/ObjectHypothesisWithPose");
    result.set("hypothesis.class_id", "person").unwrap();
    result.set("hypothesis.score", 0.8).unwrap();
    let mut one = bench.message("vision_msgs/msg/Detection2D");
    one.set("results", vec![result]).unwrap();
    let mut array = bench.message("vision_msgs/msg/Detection2DArray");
    array.set("detections", vec![one]).unwrap();
    let memory = record(bench.one(5.0, &array));
    assert_eq!(memory.content, "saw person");
    near(&poses(&memory)[0], "map", [10.0, 5.0, 0.0]);
    assert_eq!(bench.one(6.0, &array), Decision::Merged { count: 2 }, "a metre on");
    assert!(kept(bench.one(20.0, &array)).is_first, "another place");
}

#[test]
fn every_type_with_defaults_is_bundled_and_fits_them() {
    let mut bench = Bench::plain("/x");
    for ty in known_types() {
        let message = bench.message(ty);
        for decision in bench.see(0.0, &message) {
            assert!(!is_dropped(&decision, Reason::WrongType), "{ty}");
        }
    }
    assert_eq!(bench.rules.misfits().count(), 0);
}
