//! When the map moves: what is tied to a keyframe moves with it, all of it or nothing, and back.

use std::sync::Arc;

use nalgebra::{Isometry3, UnitQuaternion, Vector3};
use omir_core::decode::Limits;
use omir_core::json;
use omir_core::model::Resource;
use omir_core::space::Center;
use omir_core::spatial::{SpatialPose, pose_of};
use omird::engine::asked::Parameters;
use omird::engine::command::{Effect, Receipt};
use omird::error::{Code, Error};
use omird::recall::Query;
use omird::recall::frames::Frames;
use omird_tests::check::decode;
use omird_tests::cut_disk::CutDisk;
use omird_tests::journal::change;
use omird_tests::life::{record, reference};
use omird_tests::model::Request;
use omird_tests::session::{Session, TestClock};

/// Tied to keyframe `kf`, one metre ahead of it.
fn tied(name: &str, kf: &str, at: [f64; 3]) -> Resource {
    let mut resource = record(name, "a cup on a shelf", &[], Some(at));
    let own = SpatialPose {
        orientation: Some(UnitQuaternion::identity()),
        ..SpatialPose::new(kf, [1.0, 0.0, 0.0].into())
    };
    resource.extensions_mut().push(own.to_extension());
    resource
}

const HOUSE: [(&str, &str); 3] = [("cup", "kf_1"), ("pot", "kf_1"), ("pan", "kf_2")];

fn furnished(disk: &CutDisk, clock: &Arc<TestClock>) -> Session {
    let session = Session::open(disk, clock).expect("it opens");
    let mut all: Vec<Resource> =
        HOUSE.iter().map(|(name, kf)| tied(name, kf, [1.0, 0.0, 0.0])).collect();
    all.push(record("door", "a door tied to nothing", &[], Some([1.0, 0.0, 0.0])));
    let remember = change(&session, &Request::Remember(all)).expect("they are valid");
    session.execute(remember).expect("they are stored");
    session
}

fn named(list: &[(&str, &str)]) -> Parameters {
    list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Both keyframes lie five metres along y by now, and the first has turned to the left.
const LOOP: &str = r#"{"frame":"map","reason":"loop closure","keyframes":{
    "kf_1":{"position":[0,5,0],"orientation":[0,0,0.7071067811865476,0.7071067811865476]},
    "kf_2":{"position":[0,5,0]}}}"#;

fn rebase(
    session: &Session,
    parameters: &[(&str, &str)],
    payload: Option<&str>,
) -> Result<Receipt, Error> {
    let payload = payload
        .map(|text| json::from_slice(text.as_bytes(), &Limits::default()).expect("it is JSON"));
    session.execute(session.rebase(named(parameters), payload.as_ref())?)
}

fn place(session: &Session, name: &str) -> [f64; 3] {
    let bytes = session.get(&reference(&format!("MemoryRecord/{name}"))).expect("it is read");
    let pose = pose_of(&decode(&bytes.expect("it is there"))).expect("it has a pose");
    let place = pose.expect("it is valid").position;
    [place.x, place.y, place.z].map(|c| (c * 1e9).round() / 1e9)
}

fn places(session: &Session) -> [[f64; 3]; 4] {
    ["cup", "pot", "pan", "door"].map(|name| place(session, name))
}

const BEFORE: [[f64; 3]; 4] = [[1.0, 0.0, 0.0]; 4];
const AFTER: [[f64; 3]; 4] = [[0.0, 6.0, 0.0], [0.0, 6.0, 0.0], [1.0, 5.0, 0.0], [1.0, 0.0, 0.0]];

fn near(session: &Session, frame: &str, at: [f64; 3]) -> Vec<String> {
    let [x, y, z] = at;
    let query = Query {
        frame: Some(frame.to_owned()),
        near: Some(Center::Space { x, y, z }),
        radius: Some(0.5),
        ..Query::default()
    };
    let recall = session.recall(&query).expect("it is answered").to_value().expect("it is read");
    let hits = recall.get("hits").and_then(|hits| hits.as_array().map(<[_]>::to_vec));
    let name = |hit: &omir_core::value::Value| {
        Some(hit.pointer("/resource/id")?.as_str().expect("a text").to_owned())
    };
    let mut names: Vec<String> = hits.expect("hits").iter().filter_map(name).collect();
    names.sort();
    names
}

#[test]
fn memories_move_with_their_keyframe_and_are_found_there_and_move_back() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = furnished(&disk, &clock);
    let dry = rebase(&session, &[("dryRun", "true")], Some(LOOP)).unwrap();
    assert_eq!(dry.effect, Effect::Rebased { record: None, moved: 3, unreadable: 0 });
    assert_eq!(places(&session), BEFORE);

    let receipt = rebase(&session, &[], Some(LOOP)).unwrap();
    let Effect::Rebased { record: Some(step), moved: 3, unreadable: 0 } = receipt.effect else {
        panic!("{receipt:?}")
    };
    assert_eq!(places(&session), AFTER);
    assert_eq!(near(&session, "map", [0.0, 6.0, 0.0]), ["cup", "pot"]);
    assert_eq!(near(&session, "map", [1.0, 0.0, 0.0]), ["door"]);
    assert_eq!(near(&session, "kf_1", [1.0, 0.0, 0.0]), ["cup", "pot"]);
    // Sent again, everything lies there already.
    let again = rebase(&session, &[], Some(LOOP)).unwrap();
    assert_eq!(again.effect, Effect::Rebased { record: None, moved: 0, unreadable: 0 });

    drop(session);
    let session = Session::open(&disk, &clock).expect("it opens again");
    let undo = step.target.to_string();
    rebase(&session, &[("undo", &undo)], None).unwrap();
    assert_eq!(places(&session), BEFORE);
    let error = rebase(&session, &[("undo", &undo)], None).unwrap_err();
    assert_eq!(error.code, Code::Conflict, "{error}");
    for (wrong, code) in
        [("MemoryRecord/nobody", Code::NotFound), ("MemoryRecord/cup", Code::InvalidQuery)]
    {
        assert_eq!(rebase(&session, &[("undo", wrong)], None).unwrap_err().code, code, "{wrong}");
    }
}

/// The first keyframe lies ten metres along y by now, the second is where it was.
const AGAIN: &str = r#"{"frame":"map","keyframes":{"kf_1":{"position":[0,10,0]}}}"#;

#[test]
fn steps_are_undone_one_after_the_other_and_in_any_order_in_the_end() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let step = |session: &Session, payload: &str| match rebase(session, &[], Some(payload)) {
        Ok(Receipt { effect: Effect::Rebased { record: Some(step), .. }, .. }) => {
            step.target.to_string()
        }
        other => panic!("{other:?}"),
    };
    let undo = |session: &Session, step: &str| match rebase(session, &[("undo", step)], None) {
        Ok(Receipt { effect: Effect::Rebased { moved, .. }, .. }) => Ok(moved),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err((error.code, error.message)),
    };
    for is_last_first in [true, false] {
        let session = furnished(&CutDisk::new(), &clock);
        let (first, second) = (step(&session, LOOP), step(&session, AGAIN));
        assert_eq!(places(&session)[..2], [[1.0, 10.0, 0.0]; 2]);
        if is_last_first {
            assert_eq!(undo(&session, &second), Ok(2));
            assert_eq!(places(&session), AFTER);
            assert_eq!(undo(&session, &first), Ok(3));
        } else {
            // The pan alone lies where the first step left it; then the cup and the pot do again.
            assert_eq!(undo(&session, &first), Ok(1));
            let (code, why) = undo(&session, &first).unwrap_err();
            assert!(code == Code::Conflict && why.contains("undone already"), "{why}");
            assert_eq!(undo(&session, &second), Ok(2));
            assert_eq!(undo(&session, &first), Ok(2));
        }
        assert_eq!(places(&session), BEFORE);
    }
    let session = furnished(&disk, &clock);
    let (first, _) = (step(&session, AGAIN), step(&session, LOOP));
    let (code, why) = undo(&session, &first).unwrap_err();
    assert!(code == Code::Conflict && why.contains("undo later steps first"), "{why}");
}

#[test]
fn a_cut_anywhere_leaves_all_of_it_or_nothing() {
    for cut in 0.. {
        let (disk, clock) = (CutDisk::new(), TestClock::new());
        let session = furnished(&disk, &clock);
        disk.cut_at(disk.operations() + cut);
        let done = rebase(&session, &[], Some(LOOP)).is_ok();
        let was_cut = disk.is_off();
        drop(session);
        for seed in 0..4 {
            let disk = disk.survivors(seed);
            let session = Session::open(&disk, &clock).expect("it opens again");
            let found = places(&session);
            assert!(
                found == AFTER || (!done && found == BEFORE),
                "cut {cut}, seed {seed}: {found:?}"
            );
        }
        if done && !was_cut {
            assert!(cut > 0, "nothing was cut");
            return;
        }
    }
}

/// The robot stands at (0, 5) in the map and looks along y.
struct Robot;

impl Frames for Robot {
    fn fixed(&self, frame: &str) -> Result<Option<(String, Isometry3<f64>)>, String> {
        let turned = Vector3::z() * std::f64::consts::FRAC_PI_2;
        let pose = Isometry3::new(Vector3::new(0.0, 5.0, 0.0), turned);
        Ok((frame == "base_link").then(|| ("map".to_owned(), pose)))
    }
}

#[test]
fn near_the_robot_means_where_the_robot_is() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = furnished(&disk, &clock);
    session.follow_frames(Arc::new(Robot));
    rebase(&session, &[], Some(LOOP)).unwrap();
    assert_eq!(near(&session, "base_link", [1.0, 0.0, 0.0]), ["cup", "pot"]);
    assert_eq!(near(&session, "base_link", [0.0, -1.0, 0.0]), ["pan"]);
    // A frame that nobody knows matches by name.
    assert_eq!(near(&session, "kf_2", [1.0, 0.0, 0.0]), ["pan"]);
    assert_eq!(near(&session, "camera", [1.0, 0.0, 0.0]), [""; 0]);
}
