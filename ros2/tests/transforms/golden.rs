//! Results of SciPy for the same transforms: see `tests/data/transforms.py`.

use omir_core::space::rotate_covariance;
use omir_ros2::stamp::Stamp;
use omir_ros2::tf::Buffer;
use omir_ros2::tf::transform::transform;

use super::matrix;

/// The rows of a table without quotes, its head left out.
fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().skip(1).map(|line| line.split(',').collect())
}

fn numbers<const N: usize>(fields: &[&str]) -> [f64; N] {
    std::array::from_fn(|i| fields[i].parse().unwrap())
}

fn nanos(field: &str) -> Stamp {
    Stamp::from_nanos(field.parse().unwrap())
}

#[test]
fn lookups_agree_with_scipy() {
    let mut tf = Buffer::default();
    for row in rows(include_str!("../data/transforms.csv")) {
        let transform = transform(numbers(&row[4..7]), numbers(&row[7..11])).unwrap();
        tf.insert(row[0], row[1], nanos(row[3]), transform, row[2] == "1").unwrap();
    }
    let mut count = 0;
    for row in rows(include_str!("../data/lookups.csv")) {
        let found = tf.lookup(row[0], row[1], nanos(row[2])).unwrap();
        let expected = matrix::rigid(numbers(&row[6..10]), numbers(&row[3..6]));
        let (metres, degrees) = matrix::apart(&matrix::of(&found), &expected);
        assert!(metres < 1e-9 && degrees < 1e-9, "{row:?}: {metres} m, {degrees}°");
        count += 1;
    }
    assert_eq!(count, 150);
}

#[test]
fn covariances_agree_with_numpy() {
    for row in rows(include_str!("../data/covariances.csv")) {
        let turn = transform([1.0, 2.0, 3.0], numbers(&row[..4])).unwrap();
        let rotated = rotate_covariance(&numbers(&row[4..40]), &turn.rotation);
        for (found, expected) in rotated.iter().zip(numbers::<36>(&row[40..76])) {
            assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
        }
    }
}
