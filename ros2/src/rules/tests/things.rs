//! Things that a rule recognises, and things that it ties to a place.

use super::*;

#[test]
fn what_is_seen_again_nearby_is_the_same_thing() {
    let mut bench = Bench::plain("/detections").with_robot();
    // A cup that stands at (9, 20, 1) in the map; camera is at (10, t + 0.5, 1), x forward along y.
    let cup = |bench: &Bench, t: f64, aside: f64| {
        detection(bench, "Cup", 0.9, [20.0 - t - 0.5, 1.0 + aside, 0.0])
    };
    let first = detections(
        &bench,
        10.0,
        vec![
            cup(&bench, 10.0, 0.0),
            cup(&bench, 10.0, 5.0),
            detection(&bench, "person", 0.3, [1.0; 3]),
            bench.message("vision_msgs/msg/Detection3D"),
        ],
    );
    let mut decisions = bench.see(10.05, &first);
    assert!(is_dropped(&decisions.pop().unwrap(), Reason::Condition), "without a result");
    assert!(is_dropped(&decisions.pop().unwrap(), Reason::Condition), "not sure enough");
    let other = kept(decisions.pop().unwrap());
    let kept_first = kept(decisions.pop().unwrap());
    assert_ne!(other.resource.get("id"), kept_first.resource.get("id"));
    let cup_entity = entity(&kept_first.about[0]);
    assert_eq!((cup_entity.id.as_str(), cup_entity.name.as_str()), ("cup", "Cup"));
    let first = record(Decision::Keep(Box::new(kept_first)));
    assert_eq!(first.content, "saw Cup");
    assert_eq!(first.entity_refs.as_ref().unwrap()[0].target.to_string(), "Entity/cup");
    assert_eq!(first.confidence.as_ref().unwrap().calibrated.as_ref().unwrap().as_f64(), 0.9);
    near(&poses(&first)[0], "map", [9.0, 20.0, 1.0]);
    near(&poses(&first)[1], "camera", [9.5, 1.0, 0.0]);
    // Driving by, at 30 Hz for five seconds.
    let mut merged = 0;
    for tick in 1..150 {
        let t = 10.0 + f64::from(tick) / 30.0;
        let seen = detections(&bench, t, vec![cup(&bench, t, 0.1)]);
        match bench.one(t, &seen) {
            Decision::Merged { count } => merged = count,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(merged, 150);
    assert_eq!(bench.rules.things(), 2);
    let untold = bench.rules.untold(at(71.0), false);
    assert_eq!(untold.len(), 1);
    assert_eq!(untold[0].seen, 149);
    let stored = Resource::from(first).to_value();
    assert_eq!(
        untold[0].reference,
        format!("MemoryRecord/{}", stored.get("id").unwrap().as_str().unwrap())
    );
    let value = with_unreported(&stored, &untold[0]).unwrap();
    let record = match valid(&value) {
        Resource::MemoryRecord(record) => record,
        other => panic!("{other:?}"),
    };
    let last = record.extension.unwrap().pop().unwrap();
    assert_eq!(last.value_json.unwrap().get("count").and_then(Json::as_u64), Some(150));
    assert_eq!(with_unreported(&value, &untold[0]), None, "told once");
    // Somewhere else it is another.
    let t = 16.0;
    let moved = detections(&bench, t, vec![cup(&bench, t, 2.5)]);
    assert!(kept(bench.one(t, &moved)).is_first);
}

#[test]
fn a_recording_seen_twice_says_the_same() {
    let run = || {
        let mut bench = Bench::plain("/detections").with_robot();
        let mut said = Vec::new();
        for tick in 0..20 {
            let t = 10.0 + f64::from(tick);
            let place = [f64::from(tick % 7), f64::from(tick % 3) * 2.0, 0.0];
            let seen = detections(&bench, t, vec![detection(&bench, "cup", 0.9, place)]);
            said.push(bench.one(t, &seen));
        }
        said
    };
    let said = run();
    assert!(said.iter().filter(|decision| matches!(decision, Decision::Keep(_))).count() > 3);
    assert_eq!(said, run());
}

#[test]
fn two_messages_of_one_moment_are_two_memories() {
    let mut bench = Bench::new("/note", "[[ros2.topic]]\ntopic = '/note'\nkeep.on_change = 'data'");
    let mut message = bench.message("std_msgs/msg/String");
    let mut say = |text: &str| {
        message.set("data", text).unwrap();
        record(bench.one(0.0, &message)).id
    };
    assert_ne!(say("a"), say("b"));
}

#[test]
fn the_number_of_things_is_bounded() {
    let mut bench = Bench::new(
        "/mine",
        "[ros2]\nthings = 10\n[[ros2.topic]]\ntopic = '/mine'\ntext = '{name}'\nby = '{name}'\n\
         keep.on_change = 'score'",
    );
    let mut mine = bench.message("my_msgs/msg/Mine");
    for n in 0..100 {
        mine.set("name", format!("thing {n}")).unwrap();
        assert!(kept(bench.one(f64::from(n), &mine)).is_first);
    }
    assert_eq!(bench.rules.things(), 10);
    assert!(is_dropped(&bench.one(100.0, &mine), Reason::Unchanged));
}

#[test]
fn a_memory_is_tied_to_the_nearest_keyframe() {
    let mut bench =
        Bench::new("/goal", "[ros2]\nkeyframes = ['kf_*']\n[[ros2.topic]]\ntopic = '/goal'")
            .with_robot();
    let mut pose = bench.message("geometry_msgs/msg/PoseStamped");
    pose.set("header.frame_id", "map").unwrap();
    pose.set("pose.position.x", 5.0).unwrap();
    assert_eq!(poses(&record(bench.one(1.0, &pose))).len(), 1, "no keyframe is known yet");
    let quarter = UnitQuaternion::from_axis_angle(&Vector3::z_axis(), std::f64::consts::FRAC_PI_2);
    for (name, x) in [("kf_1", 100.0), ("kf_2", 4.0), ("kf_3", -4.0), ("other", 5.0)] {
        let keyframe = Isometry3::from_parts(Translation3::new(x, 0.0, 0.0), quarter);
        bench.tf.insert("map", name, at(0.0), keyframe, false).unwrap();
    }
    pose.set("pose.position.x", 6.0).unwrap();
    pose.set("pose.position.y", 1.0).unwrap();
    let memory = record(bench.one(2.0, &pose));
    let poses = poses(&memory);
    assert_eq!(poses.len(), 2);
    near(&poses[0], "map", [6.0, 1.0, 0.0]);
    // Seen from (4, 0), turned a quarter to the left: what is 2 m in x lies 2 m to the right.
    near(&poses[1], "kf_2", [1.0, -2.0, 0.0]);
}

#[test]
fn a_thing_stays_the_same_when_the_map_moves() {
    let mut bench = Bench::plain("/detections");
    let cup = |bench: &Bench, t, x| {
        let mut seen = detections(bench, t, vec![detection(bench, "cup", 0.9, [x, 0.0, 0.0])]);
        seen.set("header.frame_id", "map").unwrap();
        seen
    };
    let first = cup(&bench, 10.0, 1.0);
    let kept = kept(bench.one(10.0, &first));
    let mut memory = valid(&kept.resource);
    let target = memory.reference();
    assert!(bench.rules.has_memory(&target));
    let record = omir_core::reference::Ref { id: "other".parse().unwrap(), ..target.clone() };
    assert!(!bench.rules.has_memory(&record));
    let entity = omir_core::reference::Ref {
        kind: omir_core::reference::ResourceType::Entity,
        ..target.clone()
    };
    assert!(!bench.rules.has_memory(&entity));
    // As a rebase leaves it.
    let place = memory.extensions().iter().position(|e| SpatialPose::from_extension(e).is_ok());
    let pose = SpatialPose::from_extension(&memory.extensions()[place.unwrap()]).unwrap();
    let moved = SpatialPose { position: [1.0, 100.0, 0.0].into(), ..pose };
    memory.extensions_mut()[place.unwrap()] = moved.to_extension();
    bench.rules.map_moved(&memory);
    let mut again = cup(&bench, 11.0, 1.0);
    again.set("detections[0].bbox.center.position.y", 100.0).unwrap();
    assert_eq!(bench.one(11.0, &again), Decision::Merged { count: 2 });
    let third = cup(&bench, 12.0, 1.0);
    assert!(matches!(bench.one(12.0, &third), Decision::Keep(kept) if kept.is_first));
}

/// A box at x on the map, at that second.
fn a_box(bench: &Bench, t: f64, x: f64) -> Message {
    let mut seen = detections(bench, t, vec![detection(bench, "box", 0.9, [x, 0.0, 0.0])]);
    seen.set("header.frame_id", "map").unwrap();
    seen
}

const MOVING: &str = "[ros2]\nkeyframes = ['kf_*']\n[[ros2.topic]]\ntopic = '/detections'\n\
    text = 'a box at {bbox.center.position.x:.1}'\nmerge = { within_m = 1.0, update_every_s = 4 }";

/// The record and what is told of it late: a box that went from 0 to 1.8 m in a second.
fn moved_and_left(bench: &mut Bench) -> (Json, Vec<UnreportedSightings>) {
    let first = a_box(bench, 10.0, 0.0);
    let stored = kept(bench.one(10.0, &first)).resource;
    for tick in 1..=10 {
        let t = 10.0 + f64::from(tick) / 10.0;
        let seen = a_box(bench, t, 0.18 * f64::from(tick));
        assert!(matches!(bench.one(t, &seen), Decision::Merged { .. }));
    }
    (stored, bench.rules.untold(at(14.0), false))
}

#[test]
fn what_is_told_late_is_where_it_was_seen_last() {
    let mut bench = Bench::new("/detections", MOVING);
    for (name, x) in [("kf_0", 0.0), ("kf_1", 2.0)] {
        let keyframe = Isometry3::translation(x, 0.0, 0.0);
        bench.tf.insert("map", name, at(0.0), keyframe, false).unwrap();
    }
    let (stored, untold) = moved_and_left(&mut bench);
    assert_eq!(untold.len(), 1);
    let value = with_unreported(&stored, &untold[0]).unwrap();
    let Resource::MemoryRecord(record) = valid(&value) else { panic!("{value}") };
    assert_eq!(record.content, "a box at 1.8");
    let last = Some(Instant::from(at(11.0)));
    assert_eq!(record.event_time, last);
    let poses = poses(&record);
    near(&poses[0], "map", [1.8, 0.0, 0.0]);
    assert_eq!(poses[0].stamp, last);
    near(&poses[1], "kf_1", [-0.2, 0.0, 0.0]);
    let seen = record.extension.unwrap().pop().unwrap();
    assert_eq!(seen.value_json.unwrap().get("count").and_then(Json::as_u64), Some(11));
}

#[test]
fn a_sight_that_came_late_or_nowhere_does_not_take_the_place_of_the_last() {
    let mut bench = Bench::new("/detections", MOVING);
    let first = a_box(&bench, 10.0, 0.0);
    let stored = kept(bench.one(10.0, &first)).resource;
    let last = a_box(&bench, 11.0, 0.9);
    assert!(matches!(bench.one(11.0, &last), Decision::Merged { count: 2 }));
    // Out of order: it happened before what is known already.
    let late = a_box(&bench, 10.5, 0.5);
    assert!(matches!(bench.one(11.1, &late), Decision::Merged { count: 3 }));
    let untold = bench.rules.untold(at(14.0), false);
    let value = with_unreported(&stored, &untold[0]).unwrap();
    let Resource::MemoryRecord(record) = valid(&value) else { panic!("{value}") };
    near(&poses(&record)[0], "map", [0.9, 0.0, 0.0]);
    assert_eq!(record.event_time, Some(Instant::from(at(11.0))));
}

#[test]
fn what_is_to_be_told_late_moves_with_the_map() {
    let mut bench = Bench::new("/detections", MOVING);
    let first = a_box(&bench, 10.0, 0.0);
    let stored = kept(bench.one(10.0, &first)).resource;
    let last = a_box(&bench, 11.0, 0.9);
    assert!(matches!(bench.one(11.0, &last), Decision::Merged { count: 2 }));
    // As a rebase leaves it: 100 m further.
    let mut memory = valid(&stored);
    let pose = SpatialPose::from_extension(&memory.extensions()[0]).unwrap();
    let moved = SpatialPose { position: [100.0, 0.0, 0.0].into(), ..pose };
    memory.extensions_mut()[0] = moved.to_extension();
    bench.rules.map_moved(&memory);
    let untold = bench.rules.untold(at(14.0), false);
    let value = with_unreported(&memory.to_value(), &untold[0]).unwrap();
    let Resource::MemoryRecord(record) = valid(&value) else { panic!("{value}") };
    near(&poses(&record)[0], "map", [100.9, 0.0, 0.0]);
}

#[test]
fn a_thing_that_may_be_anywhere_is_told_late_where_it_was_seen_last() {
    let config = "[[ros2.topic]]\ntopic = '/chat'\ntext = '{data}'\nkeep = {}\n\
                  merge = { update_every_s = 4 }";
    let mut bench = Bench::new("/chat", config).with_robot();
    let mut message = bench.message("std_msgs/msg/String");
    message.set("data", "one").unwrap();
    let stored = kept(bench.one(10.0, &message)).resource;
    message.set("data", "two").unwrap();
    assert!(matches!(bench.one(11.0, &message), Decision::Merged { count: 2 }));
    let untold = bench.rules.untold(at(15.0), false);
    let value = with_unreported(&stored, &untold[0]).unwrap();
    let Resource::MemoryRecord(record) = valid(&value) else { panic!("{value}") };
    assert_eq!(record.content, "two");
    near(&poses(&record)[0], "map", [10.0, 11.0, 0.0]);
}
