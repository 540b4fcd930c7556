//! Rotations and transforms written out as arrays, without the library that is tested.

use omir_ros2::tf::Transform;

/// x, y, z, w.
pub type Quat = [f64; 4];
/// Rows of a homogeneous transform.
pub type Mat = [[f64; 4]; 4];

pub const IDENTITY: Mat =
    [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]];

pub fn mul(a: &Mat, b: &Mat) -> Mat {
    let mut product = [[0.0; 4]; 4];
    for (row, line) in product.iter_mut().enumerate() {
        for (column, cell) in line.iter_mut().enumerate() {
            *cell = (0..4).map(|k| a[row][k] * b[k][column]).sum();
        }
    }
    product
}

/// Of a rigid transform: the rotation transposed.
pub fn inverse(m: &Mat) -> Mat {
    let mut inverse = IDENTITY;
    for row in 0..3 {
        for column in 0..3 {
            inverse[row][column] = m[column][row];
        }
        inverse[row][3] = -(0..3).map(|k| m[k][row] * m[k][3]).sum::<f64>();
    }
    inverse
}

pub fn rigid([x, y, z, w]: Quat, t: [f64; 3]) -> Mat {
    [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w), t[0]],
        [2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w), t[1]],
        [2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y), t[2]],
        [0.0, 0.0, 0.0, 1.0],
    ]
}

pub fn normalised(q: Quat) -> Quat {
    let norm = q.iter().map(|c| c * c).sum::<f64>().sqrt();
    q.map(|c| c / norm)
}

fn quat_mul([ax, ay, az, aw]: Quat, [bx, by, bz, bw]: Quat) -> Quat {
    [
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    ]
}

/// By turning from `a` about the one axis that leads to `b`, the shorter way round.
pub fn slerp(a: Quat, b: Quat, ratio: f64) -> Quat {
    let [x, y, z, w] = quat_mul([-a[0], -a[1], -a[2], a[3]], b);
    let [x, y, z, w] = if w < 0.0 { [-x, -y, -z, -w] } else { [x, y, z, w] };
    let sine = (x * x + y * y + z * z).sqrt();
    if sine == 0.0 {
        return a;
    }
    let half = sine.atan2(w) * ratio;
    let k = half.sin() / sine;
    quat_mul(a, [x * k, y * k, z * k, half.cos()])
}

pub fn of(transform: &Transform) -> Mat {
    let (q, t) = (&transform.rotation, &transform.translation);
    rigid([q.i, q.j, q.k, q.w], [t.x, t.y, t.z])
}

/// Metres and degrees between two transforms.
pub fn apart(a: &Mat, b: &Mat) -> (f64, f64) {
    let metres = (0..3).map(|row| (a[row][3] - b[row][3]).powi(2)).sum::<f64>().sqrt();
    let turn = mul(&inverse(a), b);
    let cosine = (turn[0][0] + turn[1][1] + turn[2][2] - 1.0) / 2.0;
    let (x, y, z) = (turn[2][1] - turn[1][2], turn[0][2] - turn[2][0], turn[1][0] - turn[0][1]);
    let sine = (x * x + y * y + z * z).sqrt() / 2.0;
    (metres, sine.atan2(cosine).to_degrees())
}
