use super::*;
use crate::rules::config::UnlocalisedPolicy;
use crate::tf::Transform;

fn at(seconds: f64) -> Stamp {
    Stamp::from_nanos((seconds * 1e9) as i64)
}

/// Standard deviations along two diagonal directions, and of the yaw in degrees.
fn covariance(along: f64, across: f64, yaw: f64) -> [f64; 36] {
    let mut covariance = [0.0; 36];
    let (a, b) = (along * along, across * across);
    (covariance[0], covariance[7]) = ((a + b) / 2.0, (a + b) / 2.0);
    (covariance[1], covariance[6]) = ((a - b) / 2.0, (a - b) / 2.0);
    covariance[35] = yaw.to_radians().powi(2);
    covariance
}

fn certain(within_m: f64, age: Option<f64>) -> CovarianceBound {
    CovarianceBound {
        key: String::new(),
        topic: "/amcl_pose".into(),
        type_name: "geometry_msgs/msg/PoseWithCovarianceStamped".parse().unwrap(),
        within_m: Some(within_m),
        within_rad: Some(10_f64.to_radians()),
        age: age.map(Duration::from_secs_f64),
    }
}

fn judge(
    said: &[(f64, [f64; 36])],
    asked: CovarianceBound,
    moment: f64,
) -> Result<(), NotLocalised> {
    let mut localisation = Localisation::new([&asked].into_iter());
    for (stamp, covariance) in said {
        let one = localisation.said.get_mut("/amcl_pose").unwrap();
        one.note(at(*stamp), Spread::of(covariance));
    }
    let asked = Localised { certain: Some(asked), fresh: None, otherwise: UnlocalisedPolicy::Drop };
    localisation.judge(&asked, at(moment), &Buffer::default())
}

#[test]
fn the_largest_deviation_counts_in_whichever_direction_it_lies() {
    // By axes it would be 0.72 m.
    let said = [(1.0, covariance(1.0, 0.2, 3.0))];
    let why = judge(&said, certain(0.9, None), 2.0).unwrap_err().to_string();
    assert_eq!(why, "the position of /amcl_pose was uncertain by 1.00 m, and 0.9 m are allowed");
    assert_eq!(judge(&said, certain(1.1, None), 2.0), Ok(()));
    let why = judge(&[(1.0, covariance(0.1, 0.1, 20.0))], certain(0.9, None), 2.0)
        .unwrap_err()
        .to_string();
    assert_eq!(why, "the heading of /amcl_pose was uncertain by 20.0°, and 10.0° are allowed");
}

#[test]
fn what_was_said_by_then_counts_and_neither_before_nor_after() {
    let said = [(3.0, covariance(5.0, 5.0, 1.0)), (1.0, covariance(0.1, 0.1, 1.0))];
    let is_known = |moment| judge(&said, certain(0.5, None), moment).is_ok();
    assert_eq!([0.9, 1.0, 2.9, 3.0, 99.0].map(is_known), [false, true, true, false, false]);
    let why = judge(&said, certain(0.5, None), 0.5).unwrap_err().to_string();
    assert_eq!(why, "/amcl_pose had not said yet how well the robot knows where it is");
}

#[test]
fn a_covariance_that_is_old_or_not_known_says_nothing() {
    let said = [(1.0, covariance(0.1, 0.1, 1.0))];
    assert!(judge(&said, certain(0.5, Some(2.0)), 3.0).is_ok());
    let why = judge(&said, certain(0.5, Some(2.0)), 3.5).unwrap_err().to_string();
    assert_eq!(why, "/amcl_pose had said nothing for 2.5 s");
    let mut negative = covariance(0.1, 0.1, 1.0);
    negative[35] = -1.0;
    for unknown in [[0.0; 36], [f64::NAN; 36], negative] {
        let why = judge(&[(1.0, unknown)], certain(0.5, None), 2.0).unwrap_err().to_string();
        assert_eq!(why, "/amcl_pose said that its covariance is not known");
    }
}

#[test]
fn so_much_is_kept_and_time_may_begin_again() {
    let mut said = Localisation::new([&certain(1.0, None)].into_iter());
    let said = said.said.get_mut("/amcl_pose").unwrap();
    (0..2 * MOST).for_each(|n| said.note(at(n as f64), None));
    assert_eq!(said.spreads.len(), MOST);
    assert_eq!(said.at(at(MOST as f64 - 1.0)), None);
    said.note(at(2.0), None);
    assert_eq!(said.spreads, [(at(2.0), None)]);
}

#[test]
fn a_transform_is_as_old_as_its_last_word_by_then() {
    let mut tf = Buffer::default();
    for seconds in [1.0, 2.0, 6.0] {
        tf.insert("map", "odom", at(seconds), Transform::identity(), false).unwrap();
    }
    tf.insert("map", "dock", at(1.0), Transform::identity(), true).unwrap();
    let judge = |frame: &str, moment| {
        let fresh = FreshnessBound { frame: frame.into(), age: Duration::from_secs(1) };
        let asked =
            Localised { certain: None, fresh: Some(fresh), otherwise: UnlocalisedPolicy::Drop };
        Localisation::default().judge(&asked, at(moment), &tf)
    };
    let moments = [0.5, 1.5, 2.9, 3.5, 5.9, 6.0, 7.0, 7.1];
    let fresh = [false, true, true, false, false, true, true, false];
    assert_eq!(moments.map(|moment| judge("odom", moment).is_ok()), fresh);
    assert_eq!(
        judge("odom", 4.0).unwrap_err().to_string(),
        "the last transform of \"odom\" was 2.0 s old"
    );
    assert_eq!(
        judge("none", 4.0).unwrap_err().to_string(),
        "no transform said where \"none\" was by then"
    );
    assert_eq!(judge("dock", 99.0), Ok(()), "what never moves is never old");
}
