//! WGS 84 to earth-centred coordinates, the frame `earth` of REP-105.

/// Semi-major axis in metres and flattening of WGS 84.
const SEMI_MAJOR: f64 = 6_378_137.0;
const FLATTENING: f64 = 1.0 / 298.257_223_563;

/// Earth-centred, earth-fixed metres of a place in degrees and metres above the ellipsoid.
#[must_use]
pub fn earth_centred(lat: f64, lon: f64, alt: f64) -> [f64; 3] {
    let (sin_lat, cos_lat) = lat.to_radians().sin_cos();
    let (sin_lon, cos_lon) = lon.to_radians().sin_cos();
    let eccentricity_squared = FLATTENING * (2.0 - FLATTENING);
    let normal = SEMI_MAJOR / (1.0 - eccentricity_squared * sin_lat * sin_lat).sqrt();
    [
        (normal + alt) * cos_lat * cos_lon,
        (normal + alt) * cos_lat * sin_lon,
        (normal * (1.0 - eccentricity_squared) + alt) * sin_lat,
    ]
}

#[cfg(test)]
mod tests {
    use super::earth_centred;

    fn assert_close(actual: [f64; 3], expected: [f64; 3]) {
        for (a, e) in actual.iter().zip(expected) {
            assert!((a - e).abs() < 0.01, "{actual:?} is not {expected:?}");
        }
    }

    #[test]
    fn axes_are_where_wgs_84_has_them() {
        assert_close(earth_centred(0.0, 0.0, 0.0), [6_378_137.0, 0.0, 0.0]);
        assert_close(earth_centred(0.0, 90.0, 10.0), [0.0, 6_378_147.0, 0.0]);
        assert_close(earth_centred(-90.0, 0.0, 0.0), [0.0, 0.0, -6_356_752.314]);
    }

    #[test]
    fn a_place_between_them_lies_on_the_ellipsoid() {
        let [x, y, z] = earth_centred(48.8584, 2.2945, 0.0);
        let minor = 6_356_752.314_245;
        let on = (x * x + y * y) / (6_378_137.0 * 6_378_137.0) + z * z / (minor * minor);
        assert!((on - 1.0).abs() < 1e-9);
        assert!(((y / x).atan().to_degrees() - 2.2945).abs() < 1e-9);
    }
}
