use super::kitti::KittiFault;
use super::*;

const TUM: &str = "# ground truth trajectory
# timestamp tx ty tz qx qy qz qw
1311868163.8697 -0.1357 -1.4217 1.4764 0.6453 -0.5498 0.3363 -0.4101

1311868163.8731 -0.1357 -1.4218 1.4764 0 0 0 2
";

const EUROC: &str = "#timestamp [ns], p_RS_R_x [m], p_RS_R_y [m], p_RS_R_z [m], q_RS_w [], q_RS_x [], q_RS_y [], q_RS_z [], v_x
1403636580838555648,4.688319,-1.786938,0.783338,0.534108,-0.153029,-0.827383,-0.082152,0.1
1403636580843555648, 4.688177, -1.786770, 0.787350, 1, 0, 0, 0, 0.1
";

const IDENTITY: &str = "1 0 0 0 0 1 0 0 0 0 1 0";

fn close(a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() < 1e-9, "{a:?} is not {b:?}");
    }
}

fn kitti(text: &str) -> Result<Vec<Pose>, Fault> {
    kitti::parse(text, None).map_err(|fault| match fault {
        KittiFault::Poses(fault) | KittiFault::Times(fault) => fault,
    })
}

#[test]
fn tum_lines_become_poses() {
    let poses = tum::parse(TUM).unwrap();
    assert_eq!(poses.len(), 2);
    assert_eq!(poses[0].time, 1_311_868_163_869_700_000);
    assert_eq!(poses[0].position, [-0.1357, -1.4217, 1.4764]);
    assert_eq!(poses[1].orientation, [0.0, 0.0, 0.0, 1.0]);
    assert_eq!((poses[0].line, poses[1].line), (3, 5));
    let norm: f64 = poses[0].orientation.iter().map(|c| c * c).sum();
    assert!((norm - 1.0).abs() < 1e-12);
}

#[test]
fn euroc_has_w_first_and_needs_no_header() {
    for text in [EUROC, EUROC.split_once('\n').unwrap().1, EUROC.trim_start_matches('#')] {
        let poses = euroc::parse(text).unwrap();
        assert_eq!(poses.len(), 2);
        assert_eq!(poses[0].time, 1_403_636_580_838_555_648);
        close(&poses[1].orientation, &[0.0, 0.0, 0.0, 1.0]);
        assert!((poses[0].orientation[3] - 0.534_108).abs() < 1e-5);
    }
}

#[test]
fn kitti_has_matrices_and_times() {
    let left = "0 0 1 1.5 0 1 0 -2 -1 0 0 3";
    let text = format!("{IDENTITY}\n{left}\n");
    let poses = kitti::parse(&text, Some("0.000000e+00\n1.037359e-01\n")).unwrap();
    assert_eq!((poses[0].time, poses[1].time), (0, 103_735_900));
    close(&poses[0].orientation, &[0.0, 0.0, 0.0, 1.0]);
    // 90 degrees about y.
    let half = std::f64::consts::FRAC_1_SQRT_2;
    close(&poses[1].orientation, &[0.0, half, 0.0, half]);
    assert_eq!(poses[1].position, [1.5, -2.0, 3.0]);
    let poses = kitti(&text).unwrap();
    assert_eq!(poses[1].time, 100_000_000);
}

#[test]
fn every_rotation_has_its_quaternion() {
    // Half turns about each axis, where the trace is smallest.
    let half_turns = [
        ("1 0 0 0 0 -1 0 0 0 0 -1 0", [1.0, 0.0, 0.0, 0.0]),
        ("-1 0 0 0 0 1 0 0 0 0 -1 0", [0.0, 1.0, 0.0, 0.0]),
        ("-1 0 0 0 0 -1 0 0 0 0 1 0", [0.0, 0.0, 1.0, 0.0]),
    ];
    for (text, expected) in half_turns {
        close(&kitti(text).unwrap()[0].orientation, &expected);
    }
}

#[test]
fn rounded_matrices_are_repaired_and_others_refused() {
    let poses = kitti("1.001 0 0 0 0 0.999 0.001 0 0 0 1 0").unwrap();
    let norm: f64 = poses[0].orientation.iter().map(|c| c * c).sum();
    assert!((norm - 1.0).abs() < 1e-12);
    assert!(poses[0].orientation[3] > 0.999_999);
    for (text, words) in [
        ("2 0 0 0 0 1 0 0 0 0 1 0", "no rotation"),
        ("0 0 0 0 0 0 0 0 0 0 0 0", "no rotation"),
        ("1e200 0 0 0 0 1 0 0 0 0 1 0", "no rotation"),
        ("-1 0 0 0 0 1 0 0 0 0 1 0", "mirror"),
    ] {
        let fault = kitti(&format!("{IDENTITY}\n{text}")).unwrap_err();
        assert_eq!(fault.line, 2);
        assert!(fault.problem.contains(words), "{fault}");
    }
}

#[test]
fn faults_name_their_line_and_what_is_expected() {
    let tum = |line: &str| tum::parse(&format!("# head\n1.0 0 0 0 0 0 0 1\n{line}\n")).unwrap_err();
    for (line, words) in [
        ("2.0 0 0 0 0 0 1", "7 values found; expected 8: timestamp"),
        ("2.0 0 0 0 0 0 0 1 9", "9 values found"),
        ("2.0 x 0 0 0 0 0 1", "`x` is not a number"),
        ("2.0 NaN 0 0 0 0 0 1", "not finite"),
        ("2.0 0 inf 0 0 0 0 1", "not finite"),
        ("2.0 0 0 0 0 0 0 0", "zero quaternion"),
        ("0.5 0 0 0 0 0 0 1", "backwards"),
        ("1e60 0 0 0 0 0 0 1", "not a time"),
    ] {
        let fault = tum(line);
        assert_eq!(fault.line, 3, "{line}");
        assert!(fault.problem.contains(words), "{fault}");
    }
    for (line, words) in [
        ("1.5,0,0,0,1,0,0,0", "whole number of nanoseconds"),
        ("1,0,0,0,1,0,0", "7 values found; expected 8"),
        ("99999999999999999999,0,0,0,1,0,0,0", "beyond"),
        ("1,0,0,0,0,0,0,0", "zero quaternion"),
    ] {
        let fault = euroc::parse(&format!("#h\n{line}")).unwrap_err();
        assert_eq!(fault.line, 2, "{line}");
        assert!(fault.problem.contains(words), "{fault}");
    }
    assert!(kitti("1 0 0 0 0 1 0 0 0 0 1").unwrap_err().problem.contains("11 values"));
    assert!(tum::parse("# nothing\n").unwrap_err().problem.contains("no pose"));
}

#[test]
fn kitti_times_must_fit_the_poses() {
    let two = format!("{IDENTITY}\n{IDENTITY}\n");
    let fault = |times: &str| match kitti::parse(&two, Some(times)).unwrap_err() {
        KittiFault::Times(fault) => fault,
        KittiFault::Poses(fault) => panic!("{fault} is not about the times"),
    };
    assert!(fault("0\n").problem.contains("the times end here"));
    assert_eq!(fault("0\n1\n2\n").line, 3);
    assert!(fault("1\n0\n").problem.contains("backwards"));
    assert!(fault("0\nx\n").problem.contains("not a time"));
}

#[test]
fn seconds_are_exact() {
    for (text, nanos) in [
        ("1311868163.8697", 1_311_868_163_869_700_000),
        ("1305031102.175304123", 1_305_031_102_175_304_123),
        ("0.1234567896", 123_456_790),
        ("1.037359e-01", 103_735_900),
        ("4.706e+02", 470_600_000_000),
        ("-1.5", -1_500_000_000),
        (".5", 500_000_000),
        ("5.", 5_000_000_000),
        ("1e-300", 0),
        ("0.000000000000000000000000000000000000000000001", 0),
    ] {
        assert_eq!(exact_nanos(text), Some(nanos), "{text}");
    }
    for text in ["", ".", "e5", "-", "1e", "1.2.3", "0x10", "nan", "1e99", "1 2"] {
        assert_eq!(exact_nanos(text), None, "{text}");
    }
    // Exponents at the ends of what is counted in.
    for text in ["1e2147483640", "1e2147483647", "11e2147483647", "0.01e-2147483648"] {
        assert_eq!(exact_nanos(text), None, "{text}");
    }
    assert_eq!(exact_nanos("1e-2147483648"), Some(0));
}

#[test]
fn optical_axes_become_rep_103() {
    let at = |position, orientation| {
        let pose = Pose { time: 0, position, orientation, line: 1 };
        let turned = to_ros(Axes::Optical, vec![pose])[0];
        (turned.position, turned.orientation)
    };
    let identity = [0.0, 0.0, 0.0, 1.0];
    // Forward, right and down of a camera.
    assert_eq!(at([0.0, 0.0, 1.0], identity).0, [1.0, 0.0, 0.0]);
    assert_eq!(at([1.0, 0.0, 0.0], identity).0, [0.0, -1.0, 0.0]);
    assert_eq!(at([0.0, 1.0, 0.0], identity).0, [0.0, 0.0, -1.0]);
    assert_eq!(at([0.0; 3], identity), ([0.0; 3], identity));
    // A turn to the left: about the camera's −y, about the robot's z.
    let (s, c) = (0.3_f64.sin(), 0.3_f64.cos());
    assert_eq!(at([0.0; 3], [0.0, -s, 0.0, c]).1, [0.0, 0.0, s, c]);
    // Tilting the camera up is a turn about its x; the robot's nose goes up, about −y.
    assert_eq!(at([0.0; 3], [s, 0.0, 0.0, c]).1, [0.0, -s, 0.0, c]);
    // Nothing becomes a negative zero.
    assert!(at([0.0; 3], identity).0.iter().all(|c| c.is_sign_positive()));
}

/// A point the robot sees ahead lies at the same place whether it is turned before or after.
#[test]
fn the_turn_of_axes_commutes_with_the_pose() {
    let rotate = |[x, y, z, w]: [f64; 4], v: [f64; 3]| {
        let q = [x, y, z];
        let cross = |a: [f64; 3], b: [f64; 3]| {
            [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
        };
        let t = cross(q, v).map(|c| 2.0 * c);
        let u = cross(q, t);
        [0, 1, 2].map(|i| v[i] + w * t[i] + u[i])
    };
    let q = unit_quaternion([0.1, -0.4, 0.2, 0.8]).unwrap();
    let point = [0.3, -0.7, 2.0];
    let pose = Pose { time: 0, position: [0.0; 3], orientation: q, line: 1 };
    let turned = to_ros(Axes::Optical, vec![pose])[0];
    close(&rotate(turned.orientation, optical_to_ros(point)), &optical_to_ros(rotate(q, point)));
}

#[test]
fn relative_times_need_a_start_and_absolute_ones_none() {
    let start: Instant = "2026-01-01T00:00:00Z".parse().unwrap();
    let pose = |time| Pose { time, position: [0.0; 3], orientation: [0.0, 0.0, 0.0, 1.0], line: 7 };
    let relative = [pose(0), pose(1_500_000_000)];
    let absolute = [pose(1_311_868_163_869_700_000)];
    assert_eq!(
        moments(&relative, Some(start), None).unwrap()[1].to_string(),
        "2026-01-01T00:00:01.500Z"
    );
    assert_eq!(moments(&relative, None, Some(start)).unwrap()[0], start);
    assert_eq!(
        moments(&absolute, None, Some(start)).unwrap()[0].to_string(),
        "2011-07-28T15:49:23.869700Z"
    );
    let fault = moments(&relative, None, None).unwrap_err();
    assert!(fault.problem.contains("--start"), "{fault}");
    assert_eq!(fault.line, 7);
    assert!(moments(&absolute, Some(start), None).is_err());
    assert!(moments(&[pose(i128::from(i64::MAX) * 100)], None, None).is_err());
    // A sum that nothing holds.
    assert!(moments(&[pose(0), pose(i128::MAX)], Some(start), None).is_err());
    let early: Instant = "1900-01-01T00:00:00Z".parse().unwrap();
    assert!(moments(&[pose(i128::MIN)], Some(early), None).is_err());
}

#[test]
fn poses_are_kept_by_distance_and_time() {
    let poses: Vec<Pose> = (0..11)
        .map(|n| Pose {
            time: i128::from(n) * NANOS,
            position: [0.4 * f64::from(n.min(5)), 0.0, 0.0],
            orientation: [0.0, 0.0, 0.0, 1.0],
            line: 1,
        })
        .collect();
    assert_eq!(select(&poses, 0.0, None).len(), 11);
    assert_eq!(select(&poses, 1.0, None), [0, 3, 10]);
    assert_eq!(select(&poses, 1.0, Some(4.0)), [0, 3, 7, 10]);
    assert_eq!(select(&poses, f64::INFINITY, Some(5.0)), [0, 5, 10]);
    assert_eq!(select(&poses[..1], 1.0, None), [0]);
}
