//! Corrections of the map: what is tied to a keyframe moves with it, all of it or nothing, and back.
//!
//! Invariant 23 of ARCHITECTURE.md.

use std::sync::Arc;

use nalgebra::{Isometry3, UnitQuaternion, Vector3};
use omir_core::decode::Limits;
use omir_core::json;
use omir_core::model::{Extension, Resource};
use omir_core::space::Center;
use omir_core::spatial::{SpatialPose, pose_of};
use omird::engine::testing::MAX_REBASE_STEPS;
use omird::engine::{Code, Effect, Encoding, Error, Frames, Query, Receipt, Settings};
use omird::protocols::omir::{Parameters, parse_query, parse_rebase};
use omird_tests::check::decode;
use omird_tests::cut_disk::CutDisk;
use omird_tests::journal::change;
use omird_tests::life::{record, reference};
use omird_tests::model::Request;
use omird_tests::session::{Session, TestClock, settings};

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
    session.execute(parse_rebase(session, named(parameters), payload.as_ref())?)
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
    assert_eq!(dry.effect, Effect::Rebased { record: None, moved: 3, unreadable: 0, untied: 0 });
    assert_eq!(places(&session), BEFORE);

    let receipt = rebase(&session, &[], Some(LOOP)).unwrap();
    let Effect::Rebased { record: Some(step), moved: 3, unreadable: 0, untied: 0 } = receipt.effect
    else {
        panic!("{receipt:?}")
    };
    assert_eq!(places(&session), AFTER);
    assert_eq!(near(&session, "map", [0.0, 6.0, 0.0]), ["cup", "pot"]);
    assert_eq!(near(&session, "map", [1.0, 0.0, 0.0]), ["door"]);
    assert_eq!(near(&session, "kf_1", [1.0, 0.0, 0.0]), ["cup", "pot"]);
    // Sent again, everything lies there already.
    let again = rebase(&session, &[], Some(LOOP)).unwrap();
    assert_eq!(again.effect, Effect::Rebased { record: None, moved: 0, unreadable: 0, untied: 0 });

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

#[test]
fn keyframes_that_no_memory_is_tied_to_are_counted() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = furnished(&disk, &clock);
    let told = |payload: &str| rebase(&session, &[], Some(payload)).unwrap();
    let at = r#"{"position":[0,5,0]}"#;
    let receipt = told(&format!(r#"{{"keyframes":{{"kf_1":{at},"kf_01":{at},"door":{at}}}}}"#));
    assert!(matches!(receipt.effect, Effect::Rebased { moved: 2, untied: 2, .. }), "{receipt:?}");
    let nowhere = told(&format!(r#"{{"frame":"mop","keyframes":{{"kf_1":{at}}}}}"#));
    assert_eq!(nowhere.to_value().get("untied").and_then(|untied| untied.as_u64()), Some(1));
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

/// Both keyframes lie so far along y by now, the second also half as far along x.
fn along(y: f64) -> String {
    let x = y / 2.0;
    format!(
        r#"{{"keyframes":{{"kf_1":{{"position":[0,{y},0]}},"kf_2":{{"position":[{x},{y},0]}}}}}}"#
    )
}

/// A step forward, and the reference of its record.
fn go(session: &Session, payload: &str) -> String {
    let receipt = rebase(session, &[], Some(payload)).expect("they move");
    let Effect::Rebased { record: Some(step), .. } = receipt.effect else { panic!("{receipt:?}") };
    step.target.to_string()
}

fn stored(session: &Session, target: &str) -> Resource {
    decode(&session.get(&reference(target)).expect("it is read").expect("it is there"))
}

/// All that the memories say of where they lie and lay.
fn extensions(session: &Session) -> Vec<Vec<Extension>> {
    let names = ["cup", "pot", "pan", "door"];
    let of = |name| stored(session, &format!("MemoryRecord/{name}")).extensions().to_vec();
    names.map(of).to_vec()
}

fn is_anchored(session: &Session, target: &str) -> bool {
    let Resource::MemoryRecord(record) = stored(session, target) else { panic!("{target}") };
    record.decay.is_some_and(|decay| decay.anchored == Some(true))
}

#[test]
fn steps_are_taken_back_in_the_reverse_of_their_order() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = furnished(&disk, &clock);
    let mut states = vec![extensions(&session)];
    let mut steps = Vec::new();
    for y in [5.0, 7.0, 11.0] {
        steps.push(go(&session, &along(y)));
        states.push(extensions(&session));
    }
    assert!(steps.iter().all(|step| is_anchored(&session, step)));
    // Not out of turn: what a later step moved would stay behind.
    let error = rebase(&session, &[("undo", &steps[0])], None).unwrap_err();
    assert_eq!(error.code, Code::Conflict, "{error}");
    assert!(error.message.contains(&steps[2]), "{error}");
    assert_eq!(extensions(&session), states[3]);

    drop(session);
    let session = Session::open(&disk, &clock).expect("it opens again");
    for (step, before) in steps.iter().zip(&states).rev() {
        rebase(&session, &[("undo", step)], None).unwrap();
        assert_eq!(extensions(&session), *before);
        assert!(!is_anchored(&session, step));
    }
}

#[test]
fn a_step_that_was_forgotten_is_not_in_the_way() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = furnished(&disk, &clock);
    let first = go(&session, &along(5.0));
    let second = go(&session, r#"{"keyframes":{"kf_2":{"position":[9,9,0]}}}"#);
    let forget = change(&session, &Request::Forget(reference(&second))).expect("it is valid");
    session.execute(forget).expect("it is forgotten");
    rebase(&session, &[("undo", &first)], None).unwrap();
    let [cup, pot, pan, _] = places(&session);
    assert_eq!([cup, pot, pan], [BEFORE[0], BEFORE[1], [10.0, 9.0, 0.0]]);
}

#[test]
fn no_more_steps_are_anchored_than_can_be_taken_back() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = furnished(&disk, &clock);
    let steps: Vec<String> =
        (1..=MAX_REBASE_STEPS + 2).map(|n| go(&session, &along(n as f64))).collect();
    let anchored: Vec<bool> = steps.iter().map(|step| is_anchored(&session, step)).collect();
    let expected: Vec<bool> = (0..steps.len()).map(|n| n >= 2).collect();
    assert_eq!(anchored, expected);
    for step in steps[2..].iter().rev() {
        rebase(&session, &[("undo", step)], None).unwrap();
    }
    assert_eq!(place(&session, "cup"), [1.0, 2.0, 0.0]);
    let error = rebase(&session, &[("undo", &steps[1])], None).unwrap_err();
    assert_eq!(error.code, Code::Conflict, "{error}");
}

#[test]
fn a_cut_anywhere_in_several_steps_leaves_whole_ones() {
    for cut in 0.. {
        let (disk, clock) = (CutDisk::new(), TestClock::new());
        let session = furnished(&disk, &clock);
        let mut states = vec![extensions(&session)];
        let mut steps = Vec::new();
        for y in [5.0, 7.0, 11.0] {
            steps.push(go(&session, &along(y)));
            states.push(extensions(&session));
        }
        disk.cut_at(disk.operations() + cut);
        let undo = |session: &Session, step| rebase(session, &[("undo", step)], None);
        let done = steps.iter().rev().take_while(|step| undo(&session, step).is_ok()).count();
        let was_cut = disk.is_off();
        drop(session);
        for seed in 0..2 {
            let disk = disk.survivors(seed);
            let session = Session::open(&disk, &clock).expect("it opens again");
            let found = extensions(&session);
            let left = states.iter().position(|state| *state == found);
            let left = left.unwrap_or_else(|| panic!("cut {cut}, seed {seed}: {found:?}"));
            assert!(left + done <= 3, "cut {cut}, seed {seed}: {done} undone, {left} left");
            for step in steps[..left].iter().rev() {
                undo(&session, step).unwrap();
            }
            assert_eq!(extensions(&session), states[0], "cut {cut}, seed {seed}");
        }
        if done == 3 && !was_cut {
            assert!(cut > 0, "nothing was cut");
            return;
        }
    }
}

/// The robot stands at (0, 5) in the map and looks along y.
struct Robot;

impl Frames for Robot {
    fn fixed(
        &self,
        frame: &str,
    ) -> Result<Option<(String, Isometry3<f64>)>, Box<dyn std::error::Error + Send + Sync>> {
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

/// On a robot without a map memories lie in `odom`, and there is where they are looked for.
#[test]
fn who_names_no_frame_means_the_fixed_frame_of_the_daemon() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let settings = Settings { fixed_frame: "odom".to_owned(), ..settings() };
    let session = Session::open_with(Arc::new(disk.clone()), &clock, settings, None);
    let session = session.expect("it opens");
    // A client that states a place can learn in which frame.
    let status = session.status("r1");
    assert_eq!(status.get("fixedFrame"), Some(&"odom".into()));
    let json = r#"{"resourceType":"MemoryRecord","id":"cup","content":"a cup","extension":[
        {"url":"https://omir.io/spec/R1/extension/spatial-pose",
         "valueJson":{"frame":"odom","position":[1,0,0]}},
        {"url":"https://omir.io/spec/R1/extension/spatial-pose",
         "valueJson":{"frame":"kf_1","position":[1,0,0]}}]}"#;
    let change = session.prepare(json.as_bytes(), Encoding::Json, None).expect("it is valid");
    session.execute(change).expect("it is stored");
    let total = |parameters: &[(&str, &str)]| {
        let now = session.now().0;
        let query = parse_query(Query::default(), &named(parameters), now).expect("it is valid");
        let recall =
            session.recall(&query).expect("it is answered").to_value().expect("it is read");
        recall.get("total").and_then(omir_core::value::Value::as_u64)
    };
    let near = ("near", "1,0");
    assert_eq!(total(&[near, ("radius", "0.5")]), Some(1));
    assert_eq!(total(&[near, ("radius", "0.5"), ("frame", "map")]), Some(0));
    assert_eq!(total(&[("box", "0,-1,-1,2,1,1")]), Some(1));
    // The tie of a moving frame is another question.
    session.follow_frames(Arc::new(Robot));
    assert_eq!(total(&[near, ("radius", "0.5")]), Some(1));

    let keyframes = r#"{"keyframes":{"kf_1":{"position":[0,5,0]}}}"#;
    let receipt = rebase(&session, &[], Some(keyframes)).expect("it is done");
    assert!(matches!(receipt.effect, Effect::Rebased { moved: 1, untied: 0, .. }), "{receipt:?}");
    assert_eq!(total(&[("near", "1,5"), ("radius", "0.5")]), Some(1));
}
