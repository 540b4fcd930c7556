use nalgebra::{Point3, Vector3};
use proptest::prelude::*;

use super::*;

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
        let after = moved(&before, &forward("kf_1", new), &step("s")).unwrap().resource;
        let pose = in_map(&after);
        prop_assert!((pose.position - new * Point3::from(own.translation.vector)).norm() < 1e-9);
        prop_assert!(pose.orientation.unwrap().angle_to(&(new.rotation * own.rotation)) < 1e-6);
        prop_assert_eq!(pose.child_frame.as_deref(), Some("cup"));
        let back = moved_back(&after, "map", &step("s")).unwrap();
        prop_assert_eq!(back.to_value(), before.to_value());
    }

    #[test]
    fn steps_are_taken_back_one_after_the_other_to_the_very_same_places(
        own in any_pose(),
        old in any_pose(),
        new in proptest::collection::vec(any_pose(), 1..=MAX_STEPS + 2),
    ) {
        let mut before = vec![seen("kf_1", own, old)];
        for (n, pose) in new.iter().enumerate() {
            let last = before.last().unwrap();
            let Moved { resource, over } =
                moved(last, &forward("kf_1", *pose), &step(&format!("s{n}"))).unwrap();
            let oldest = n.checked_sub(MAX_STEPS).map(|n| step(&format!("s{n}")));
            prop_assert_eq!(over, oldest);
            before.push(resource);
        }
        let mut now = before.pop().unwrap();
        let moves = new.len();
        for n in (moves.saturating_sub(MAX_STEPS)..moves).rev() {
            let by = step(&format!("s{n}"));
            if n > moves.saturating_sub(MAX_STEPS) {
                let earlier = step(&format!("s{}", n - 1));
                prop_assert_eq!(moved_back(&now, "map", &earlier), None);
                prop_assert_eq!(moved_since(&now, &earlier), Some(by.clone()));
            }
            prop_assert_eq!(moved_since(&now, &by), None);
            now = moved_back(&now, "map", &by).unwrap();
            prop_assert_eq!(in_map(&now), in_map(&before[n]));
            if moves <= MAX_STEPS {
                prop_assert_eq!(now.to_value(), before[n].to_value());
            }
        }
        prop_assert_eq!(extension(&now), None);
    }
}

#[test]
fn a_pose_that_was_redated_meanwhile_stays_dated_so() {
    let mut before = seen("kf_1", Isometry3::identity(), Isometry3::identity());
    let stamped = |seconds| Some(Instant::from(Timestamp::from_unix(seconds, 0)));
    before.extensions_mut()[0] =
        SpatialPose { stamp: stamped(7), ..in_map(&before) }.to_extension();
    let there = forward("kf_1", Isometry3::translation(1.0, 2.0, 3.0));
    let mut after = moved(&before, &there, &step("s")).unwrap().resource;
    after.extensions_mut()[0] = SpatialPose { stamp: stamped(9), ..in_map(&after) }.to_extension();
    let back = in_map(&moved_back(&after, "map", &step("s")).unwrap());
    assert_eq!(back, SpatialPose { stamp: stamped(9), ..in_map(&before) });
}

#[test]
fn only_what_is_tied_to_it_moves_and_only_once() {
    let (own, at) = (Isometry3::identity(), Isometry3::translation(1.0, 2.0, 3.0));
    let before = seen("kf_1", own, Isometry3::identity());
    assert_eq!(moved(&before, &forward("kf_2", at), &step("s")), None);
    let after = moved(&before, &forward("kf_1", at), &step("s")).unwrap().resource;
    assert_eq!(moved(&after, &forward("kf_1", at), &step("t")), None);
    // Moved again by another step, it is not that of the first to take back.
    let there = forward("kf_1", Isometry3::translation(5.0, 0.0, 0.0));
    let again = moved(&after, &there, &step("t")).unwrap().resource;
    assert_eq!(moved_back(&again, "map", &step("s")), None);
    assert_eq!(in_map(&moved_back(&again, "map", &step("t")).unwrap()), in_map(&after));
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
    let after = in_map(&moved(&before, &forward("kf_1", quarter), &step("s")).unwrap().resource);
    let covariance = after.covariance.unwrap();
    assert!((covariance[0] - 1.0).abs() < 1e-9 && (covariance[7] - 4.0).abs() < 1e-9);
    assert!(covariance[1].abs() < 1e-9);
}

#[test]
fn the_record_of_a_step_tells_what_moved_until_it_is_undone() {
    let rebase = forward("kf_1", Isometry3::translation(1.0, 0.0, 0.0));
    let record = rebase.record("s".parse().unwrap(), 3, Timestamp::EPOCH);
    assert_eq!(Resource::from_value(record.to_value()), Ok(record.clone()));
    let keyframes = vec!["kf_1".to_owned()];
    assert_eq!(step_of(&record), Ok(RebaseStep { frame: "map".to_owned(), keyframes }));
    let is_anchored = |record: &Resource| match record {
        Resource::MemoryRecord(record) => record.decay.as_ref().and_then(|decay| decay.anchored),
        _ => None,
    };
    assert_eq!(is_anchored(&record), Some(true));
    let free = released(&record).unwrap();
    assert_eq!(is_anchored(&free), Some(false));
    assert_eq!(released(&free), None);
    let undone = undone(&record, Timestamp::EPOCH);
    assert_eq!(is_anchored(&undone), Some(false));
    assert_eq!(step_of(&undone).unwrap_err().code, Code::Conflict);
    let other = seen("kf_1", Isometry3::identity(), Isometry3::identity());
    assert_eq!(step_of(&other).unwrap_err().code, Code::InvalidQuery);
}
