//! Recordings that another library wrote, whole, cut off and damaged. See `data/recordings/make.py`.
//!
//! Invariants 24 and 26 of ARCHITECTURE.md.

#![cfg(feature = "recordings")]

mod damage;

use std::io::Cursor;
use std::path::Path;

use omir_core::decode::Limits;
use omir_core::json;
use omir_core::model::{MemoryRecord, Resource};
use omir_core::spatial::SpatialPose;
use omir_core::value::Value;
use omir_ros2::recording::{Advance, At, Import, Input, Report, by_type, configured};
use omir_ros2::rules::{Pattern, Ros2};

use damage::damaged;

fn bytes(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recordings");
    std::fs::read(folder.join(name)).unwrap()
}

fn rules() -> Ros2 {
    let dock = "[[ros2.topic]]\ntopic = '/docking/result'\ntype = 'my_robot_msgs/msg/DockResult'\n\
                text = 'docked at {dock_name}, {offset[1]} m'\nkeep = {}\nmerge = false";
    let mut ros2 = by_type();
    ros2.topics.extend(configured(dock).unwrap().topics);
    ros2
}

fn import(files: &[Vec<u8>], ros2: &Ros2, topics: &[&str]) -> (Vec<Value>, Report) {
    let source = |(index, bytes): (usize, &Vec<u8>)| {
        Input::new(format!("{index}.mcap"), Box::new(Cursor::new(bytes.clone())))
    };
    let files = files.iter().enumerate().map(source).collect();
    let topics = topics.iter().map(|topic| Pattern::new(*topic)).collect();
    let mut import = Import::new(files, ros2, topics).unwrap();
    let mut all = Vec::new();
    loop {
        match import.advance(10) {
            Advance::Reading => {}
            Advance::Batch(batch) => all.extend(batch),
            Advance::Done => break,
        }
    }
    assert_eq!(import.position(), import.size());
    (all, import.report())
}

fn records(resources: &[Value]) -> Vec<MemoryRecord> {
    let resources = resources.iter().map(|one| Resource::from_value(one.clone()).unwrap());
    resources
        .filter_map(|one| match one {
            Resource::MemoryRecord(record) => Some(*record),
            _ => None,
        })
        .collect()
}

fn poses(record: &MemoryRecord) -> Vec<SpatialPose> {
    let extensions = record.extension.iter().flatten();
    extensions.filter_map(|one| SpatialPose::from_extension(one).ok()).collect()
}

#[test]
fn a_recording_becomes_what_a_daemon_would_remember() {
    let (resources, report) = import(&[bytes("drive.mcap")], &rules(), &[]);
    let records = records(&resources);
    let contents: Vec<&str> = records.iter().map(|record| record.content.as_str()).collect();
    let expected = json::from_slice(&bytes("expected.json"), &Limits::default()).unwrap();
    for thing in expected.as_array().unwrap() {
        let content = thing.get("content").and_then(Value::as_str).unwrap();
        let found: Vec<_> = records.iter().filter(|one| one.content == content).collect();
        assert_eq!(found.len(), 1, "one thing is one memory: {contents:?}");
        let places = poses(found[0]);
        let in_map = places.iter().find(|pose| pose.frame == "map").unwrap();
        assert!(places.iter().any(|pose| pose.frame == "camera"));
        for (axis, metres) in
            thing.get("position").and_then(Value::as_array).unwrap().iter().enumerate()
        {
            let Value::Number(metres) = metres else { panic!("{metres:?}") };
            let off = (in_map.position[axis] - metres.as_f64()).abs();
            assert!(off < 0.001, "{content}: axis {axis} is {off} m off");
        }
    }
    // Wheel 3 slipped, then wheel 4: one thing, which says what was seen last.
    for content in
        ["hello", "on my way", "there", "planner: wheel 4 slips", "planner: no path to the dock"]
    {
        assert_eq!(
            contents.iter().filter(|one| **one == content).count(),
            1,
            "{content}: {contents:?}"
        );
    }
    assert!(contents.contains(&"docked at north, 2 m"), "a type from its own IDL: {contents:?}");
    assert!(!contents.iter().any(|one| one.contains("started")), "{contents:?}");
    let entities = resources.iter().filter(|one| one.get("name").is_some()).count();
    assert_eq!(entities, 2, "the cup and the chair");

    let topic = |name: &str| report.topics.iter().find(|topic| topic.topic == name).unwrap();
    let detections = topic("/camera/detections");
    assert_eq!((detections.messages, detections.counters.malformed), (21, 1));
    assert!(detections.malformed[0].why.contains("Detection3DArray"), "{detections:?}");
    assert_eq!(detections.counters.kept, 2);
    assert_eq!(detections.counters.unplaced, 0);
    let odometry = topic("/odom");
    assert_eq!((odometry.messages, odometry.counters.malformed), (25, 1));
    assert!(odometry.counters.kept > 5 && odometry.counters.unplaced == 0, "{odometry:?}");
    assert_eq!((topic("/tf").messages, topic("/tf").is_used), (121, true));
    assert_eq!((report.losses.len(), report.disordered, report.untold), (0, 0, 0));
    assert!(report.transforms_refused.is_empty(), "{:?}", report.transforms_refused);
    // Seen twenty times, it says so, and when last.
    let cup = records.iter().find(|one| one.content == "saw cup").unwrap();
    let told = json::to_string(&Resource::from(cup.clone()).to_value());
    assert!(told.contains(r#""count":20"#), "{told}");
}

#[test]
fn the_same_recording_gives_the_same_memories() {
    let drive = bytes("drive.mcap");
    let once = import(std::slice::from_ref(&drive), &rules(), &[]).0;
    assert_eq!(once, import(std::slice::from_ref(&drive), &rules(), &[]).0);
    // Given twice it is every message twice, and each thing is the same thing.
    let twice = import(&[drive.clone(), drive], &rules(), &["/chatter"]).0;
    let names = |all: &[Value]| -> Vec<String> {
        records(all).iter().map(|one| format!("{} {}", one.id, one.content)).collect()
    };
    assert_eq!(names(&twice), names(&import(&[bytes("drive.mcap")], &rules(), &["/chatter"]).0));
}

#[test]
fn other_compressions_and_files_without_an_index_are_read() {
    let (lz4, report) = import(&[bytes("lz4.mcap")], &rules(), &[]);
    assert!(report.losses.is_empty(), "{:?}", report.losses);
    assert_eq!(records(&lz4).iter().filter(|one| one.content.starts_with("saw")).count(), 2);
    let (plain, report) = import(&[bytes("unchunked.mcap")], &rules(), &[]);
    assert!(report.losses.is_empty(), "{:?}", report.losses);
    assert_eq!(plain.len(), 6, "{plain:?}");
    // Two files are one recording: what is detected in one has its place from the other.
    let both = [bytes("unchunked.mcap"), bytes("lz4.mcap")];
    assert_eq!(
        import(&both, &rules(), &["/camera/*"]).0,
        import(&both[1..], &rules(), &["/camera/*"]).0
    );
}

#[test]
fn topics_narrow_the_rules() {
    let (resources, report) = import(&[bytes("drive.mcap")], &rules(), &["/chat*"]);
    assert_eq!(resources.len(), 3);
    let used: Vec<&str> =
        report.topics.iter().filter(|one| one.is_used).map(|one| one.topic.as_str()).collect();
    assert_eq!(used, ["/chatter", "/tf", "/tf_static"]);
}

/// Returns the offset of the first record of a file.
fn boundaries(bytes: &[u8]) -> Vec<usize> {
    let mut at = 8;
    let mut found = vec![at];
    while let Some(length) = bytes.get(at + 1..at + 9) {
        at += 9 + u64::from_le_bytes(length.try_into().unwrap()) as usize;
        if at + 9 > bytes.len() {
            break;
        }
        found.push(at);
    }
    found
}

#[test]
fn of_a_file_that_is_cut_off_what_is_there_is_used() {
    for name in ["drive.mcap", "lz4.mcap", "unchunked.mcap"] {
        let whole = bytes(name);
        let messages = |bytes: &[u8]| {
            let (_, report) = import(&[bytes.to_vec()], &by_type(), &["/chatter"]);
            (report.topics.iter().map(|topic| topic.messages).sum::<u64>(), report.losses)
        };
        let (all, losses) = messages(&whole);
        assert!(losses.is_empty());
        let mut before = 0;
        let mut seen_between = false;
        for at in boundaries(&whole) {
            // Without the last magic nothing is missing.
            let end = whole.len() - 8;
            for cut in [at, at + 5, at + 300].into_iter().filter(|cut| *cut < end) {
                let (found, losses) = messages(&whole[..cut]);
                assert!(losses.len() == 1, "{name} cut at {cut}: {losses:?}");
                assert!(matches!(losses[0].at, At::Byte(at) if at <= cut as u64), "{losses:?}");
                assert!(found >= before, "{name} cut at {cut}: {found} after {before}");
                seen_between |= found > 0 && found < all;
                if cut == at {
                    before = found;
                }
            }
        }
        assert!(seen_between && before == all, "{name}: {before} of {all}");
    }
}

#[test]
fn static_transforms_hold_from_the_beginning_without_an_index_too() {
    let whole = bytes("drive.mcap");
    let end = boundaries(&whole).into_iter().find(|at| whole[*at] == 0x0f).unwrap();
    let (resources, report) = import(&[whole[..end].to_vec()], &rules(), &["/camera/*"]);
    assert_eq!(report.losses.len(), 1);
    let topic = report.topics.iter().find(|topic| topic.topic == "/camera/detections").unwrap();
    assert_eq!((topic.counters.kept, topic.counters.unplaced), (2, 0));
    assert_eq!(resources, import(&[whole], &rules(), &["/camera/*"]).0);
}

#[test]
fn of_a_damaged_file_the_rest_is_used() {
    let whole = bytes("drive.mcap");
    let chunks: Vec<usize> =
        boundaries(&whole).into_iter().filter(|at| whole[*at] == 0x06).collect();
    let messages = |report: &Report| report.topics.iter().map(|one| one.messages).sum::<u64>();
    let all = messages(&import(std::slice::from_ref(&whole), &rules(), &[]).1);
    let middle = chunks[chunks.len() / 2];
    // A bit in the data, the name of the compression, the length, the opcode, which becomes none and that of a footer.
    for (offset, xor, what) in [
        (200, 0x10, "a chunk cannot be read"),
        (9 + 32, 0x20, "a chunk cannot be read"),
        (7, 0x01, "found by the index"),
        (0, 0x06, "found by the index"),
        (0, 0x04, "found by the index"),
    ] {
        let mut damaged = whole.clone();
        damaged[middle + offset] ^= xor;
        let (resources, report) = import(&[damaged], &rules(), &[]);
        let found = messages(&report);
        assert!(found > all / 2 && found < all + 1, "{offset}: {found} of {all}");
        assert_eq!(report.losses.len(), 1, "{offset}: {:?}", report.losses);
        let loss = &report.losses[0];
        assert!(loss.at == At::Byte(middle as u64) && loss.what.contains(what), "{loss:?}");
        assert!(records(&resources).iter().any(|one| one.content == "there"));
    }
}

#[test]
fn a_footer_that_does_not_end_the_file_is_told() {
    let whole = bytes("unchunked.mcap");
    // Opcode, length and footer, and the magic.
    let footer = whole.len() - (9 + 20 + 8);
    let (alone, _) = import(std::slice::from_ref(&whole), &rules(), &[]);
    for behind in [&whole[..], b"more", &[0; 8]] {
        let joined = [&whole[..], behind].concat();
        let (found, report) = import(&[joined], &rules(), &[]);
        assert_eq!(found, alone);
        assert_eq!(report.losses.len(), 1, "{:?}", report.losses);
        let loss = &report.losses[0];
        let more = format!("({} bytes follow)", 20 + 8 + behind.len());
        assert!(loss.at == At::Byte(footer as u64) && loss.what.contains(&more), "{loss:?}");
    }
    // Another magic is none, and of one that is cut off nothing is missing.
    let mut other = whole.clone();
    *other.last_mut().unwrap() ^= 1;
    assert_eq!(import(&[other], &rules(), &[]).1.losses.len(), 1);
    for cut in 1..=8 {
        let (found, report) = import(&[whole[..whole.len() - cut].to_vec()], &rules(), &[]);
        assert!(found == alone && report.losses.is_empty(), "{cut}: {:?}", report.losses);
    }
}

#[test]
fn what_is_no_recording_is_refused_with_the_way_out() {
    for (bytes, why) in [
        (&b""[..], "is no recording"),
        (b"#ROSBAG V2.0\n", "rosbags-convert --src x.mcap --dst"),
        (b"SQLite format 3\0", "from a file"),
        (b"\x28\xb5\x2f\xfd....", "cannot be unpacked"),
        (b"\x1f\x8b\x08....", "cannot be unpacked"),
        (b"\x89MCAP1\r\n", "is no recording"),
    ] {
        let file = Input::new("x.mcap", Box::new(Cursor::new(bytes.to_vec())));
        let error = Import::new(vec![file], &by_type(), Vec::new()).err().unwrap().to_string();
        assert!(error.starts_with("x.mcap: ") && error.contains(why), "{error}");
    }
}

#[test]
fn garbage_is_no_reason_to_panic() {
    let whole = bytes("drive.mcap");
    for damaged in damaged(&whole, 8) {
        import(&[damaged], &rules(), &[]);
    }
}
