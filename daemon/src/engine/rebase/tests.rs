use nalgebra::{Point3, Vector3};
use omir_core::decode::Limits;
use omir_core::json;
use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Result<Rebase, Error> {
    Rebase::read(&json::from_slice(text.as_bytes(), &Limits::default()).unwrap())
}

fn step(id: &str) -> Ref {
    record_of(&id.parse().unwrap())
}

/// Seen from keyframe `kf`, which lay at `pose` in the map.
fn seen(kf: &str, own: Isometry3<f64>, pose: Isometry3<f64>) -> Resource {
    let mut record: Resource =
        MemoryRecord::new("cup".parse().unwrap(), "a cup", Instant::from(Timestamp::EPOCH)).into();
    let place = |frame: &str, at: Isometry3<f64>| {
        let position = at.translation.vector.into();
        let orientation = Some(at.rotation);
        let child_frame = Some("cup".to_owned());
        SpatialPose { orientation, child_frame, ..SpatialPose::new(frame, position) }.to_extension()
    };
    record.extensions_mut().push(place("map", pose * own));
    record.extensions_mut().push(place(kf, own));
    record
}

fn in_map(resource: &Resource) -> SpatialPose {
    poses(resource).into_iter().find(|(_, pose)| pose.frame == "map").unwrap().1
}

fn forward(kf: &str, pose: Isometry3<f64>) -> Rebase {
    Rebase { frame: "map".to_owned(), keyframes: vec![(kf.to_owned(), pose)], reason: None }
}

prop_compose! {
    fn any_pose()(
        at in proptest::array::uniform3(-100.0..100.0f64),
        turn in proptest::array::uniform3(-3.0..3.0f64),
    ) -> Isometry3<f64> {
        Isometry3::new(Vector3::from(at), Vector3::from(turn))
    }
}

proptest! {
    #[test]
    fn what_is_tied_moves_with_its_keyframe_and_back_to_the_very_same_place(
        own in any_pose(), old in any_pose(), new in any_pose(),
    ) {
        let before = seen("kf_1", own, old);
        let after = moved(&before, &forward("kf_1", new), &step("s")).unwrap();
        let pose = in_map(&after);
        prop_assert!((pose.position - new * Point3::from(own.translation.vector)).norm() < 1e-9);
        prop_assert!(pose.orientation.unwrap().angle_to(&(new.rotation * own.rotation)) < 1e-6);
        prop_assert_eq!(pose.child_frame.as_deref(), Some("cup"));
        let back = moved_back(&after, "map", &step("s")).unwrap();
        prop_assert_eq!(back.to_value(), before.to_value());
    }
}

#[test]
fn only_what_is_tied_to_it_moves_and_only_once() {
    let (own, at) = (Isometry3::identity(), Isometry3::translation(1.0, 2.0, 3.0));
    let before = seen("kf_1", own, Isometry3::identity());
    assert_eq!(moved(&before, &forward("kf_2", at), &step("s")), None);
    let after = moved(&before, &forward("kf_1", at), &step("s")).unwrap();
    assert_eq!(moved(&after, &forward("kf_1", at), &step("t")), None);
    // Moved again by another step, it is not that of the first to take back.
    let again =
        moved(&after, &forward("kf_1", Isometry3::translation(5.0, 0.0, 0.0)), &step("t")).unwrap();
    assert_eq!(moved_back(&again, "map", &step("s")), None);
    assert_eq!(in_map(&moved_back(&again, "map", &step("t")).unwrap()), in_map(&after));
}

#[test]
fn several_steps_are_undone_one_after_the_other_as_far_as_a_memory_knows() {
    let mut all = vec![seen("kf_1", Isometry3::identity(), Isometry3::identity())];
    for n in 0..2 * MAX_BACK {
        let at = Isometry3::translation(n as f64 + 1.0, 0.0, 0.0);
        let by = step(&format!("s{n}"));
        all.push(moved(&all[n], &forward("kf_1", at), &by).unwrap());
    }
    let mut now = all.last().unwrap().clone();
    for n in (MAX_BACK..2 * MAX_BACK).rev() {
        // Only the last step can be undone.
        assert_eq!(moved_back(&now, "map", &step(&format!("s{}", n - 1))), None);
        now = moved_back(&now, "map", &step(&format!("s{n}"))).unwrap();
        assert_eq!(in_map(&now), in_map(&all[n]));
    }
    assert_eq!(extension(&now), None);
    // The first ones leave no trace at all.
    let twice = moved_back(&all[2], "map", &step("s1")).unwrap();
    assert_eq!(twice.to_value(), all[1].to_value());
    let back = moved_back(&twice, "map", &step("s0")).unwrap();
    assert_eq!(back.to_value(), all[0].to_value());
}

#[test]
fn uncertainty_turns_with_the_thing() {
    let quarter = Isometry3::rotation(Vector3::z() * std::f64::consts::FRAC_PI_2);
    let mut before = seen("kf_1", Isometry3::identity(), Isometry3::identity());
    let mut pose = in_map(&before);
    let mut covariance = Box::new([0.0; 36]);
    // Sure across, unsure along x.
    (covariance[0], covariance[7]) = (4.0, 1.0);
    pose.covariance = Some(covariance);
    before.extensions_mut()[0] = pose.to_extension();
    let after = in_map(&moved(&before, &forward("kf_1", quarter), &step("s")).unwrap());
    let covariance = after.covariance.unwrap();
    assert!((covariance[0] - 1.0).abs() < 1e-9 && (covariance[7] - 4.0).abs() < 1e-9);
    assert!(covariance[1].abs() < 1e-9);
}

#[test]
fn a_request_is_read_and_complaints_point_at_the_member() {
    let whole = read(
        r#"{"frame":"map","reason":"loop","keyframes":{
            "kf_1":{"position":[1,2,3],"orientation":[0,0,0,2]},"kf_2":{"position":[0,0,0]}}}"#,
    )
    .unwrap();
    assert_eq!(whole.keyframe("kf_1"), Some(&Isometry3::translation(1.0, 2.0, 3.0)));
    assert_eq!(whole.keyframe("kf_2"), Some(&Isometry3::identity()));
    for (text, path) in [
        ("[]", ""),
        ("{}", "/keyframes"),
        (r#"{"keyframes":{}}"#, "/keyframes"),
        (r#"{"keyframes":{"map":{"position":[0,0,0]}}}"#, "/keyframes"),
        (r#"{"keyframes":{"a/b":{"position":[0,0]}}}"#, "/keyframes/a~1b/position"),
        (r#"{"keyframes":{"k":7}}"#, "/keyframes/k"),
        (
            r#"{"keyframes":{"k":{"position":[0,0,0],"orientation":[0,0,0,0]}}}"#,
            "/keyframes/k/orientation",
        ),
        (r#"{"frame":7,"keyframes":{"k":{"position":[0,0,0]}}}"#, "/frame"),
        (r#"{"keyframe":{}}"#, "/keyframe"),
    ] {
        let error = read(text).unwrap_err();
        assert_eq!((error.code, error.path.as_str()), (Code::InvalidQuery, path), "{text}");
    }
}

#[test]
fn the_record_of_a_step_tells_what_moved_until_it_is_undone() {
    let rebase = forward("kf_1", Isometry3::translation(1.0, 0.0, 0.0));
    let record = rebase.record("s".parse().unwrap(), 3, Timestamp::EPOCH);
    assert_eq!(Resource::from_value(record.to_value()), Ok(record.clone()));
    let keyframes = vec!["kf_1".to_owned()];
    let expected = Told { frame: "map".to_owned(), keyframes, undone: None };
    assert_eq!(told(&record), Ok(expected.clone()));
    let back = undone(&record, Timestamp::EPOCH);
    let undone = Some("1970-01-01T00:00:00Z".to_owned());
    assert_eq!(told(&back), Ok(Told { undone, ..expected }));
    let other = seen("kf_1", Isometry3::identity(), Isometry3::identity());
    assert_eq!(told(&other).unwrap_err().code, Code::InvalidQuery);
}
