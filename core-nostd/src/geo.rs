//! Positions on the Earth and the distance between them.
//!
//! Coordinates are WGS 84 geodetic degrees and metres (`geo` of docs/extensions.md). Distance is taken along
//! a great circle of the sphere of WGS 84's mean radius, with geodetic latitude used as spherical
//! latitude: symmetric, the same on every machine, and within about 0.6 % of the ellipsoidal
//! geodesic. The trigonometry is `libm`'s own, in software and never fused, so x86 and a
//! microcontroller compute the same bits.
//!
//! For an index, [`GeoPoint::unit_vector`] places a point on the unit sphere, where there are no
//! poles and no date line, and [`chord_for_distance`] turns a radius into a straight distance there.

use core::fmt;

/// Mean radius of the Earth in metres: R₁ = (2a + b)/3 of the WGS 84 ellipsoid, a = 6 378 137 m,
/// b = 6 356 752.3142 m.
///
/// Source: IUGG's definition of R₁ (Moritz, "Geodetic Reference System 1980", *Journal of Geodesy*
/// 74, 2000); axes from NGA.STND.0036 (WGS 84). 19 113 026.3142 / 3 = 6 371 008.7714.
pub const EARTH_RADIUS_M: f64 = 6_371_008.771_4;

/// Half the circumference in metres, the greatest distance there is: πR.
const HALF_TURN_M: f64 = core::f64::consts::PI * EARTH_RADIUS_M;

/// Largest rounding error of a chord, on the unit sphere; about 6 µm on the ground.
///
/// Two points no further apart than `d` by [`GeoPoint::great_circle_m`] have unit vectors no
/// further apart than `chord_for_distance(d) + CHORD_MARGIN`, and the same holds for
/// [`GeoPoint::distance_m`]. An index that searches that chord misses nothing; the exact test
/// follows on what it finds.
pub const CHORD_MARGIN: f64 = 1e-12;

/// A position on or above the Earth, WGS 84. Every coordinate is finite and in range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GeoPoint {
    lat: f64,
    lon: f64,
    alt: Option<f64>,
}

/// Coordinates that are not a [`GeoPoint`]. Names the field at fault and its value.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum GeoError {
    /// `lat` is not in [−90, 90].
    Latitude(f64),
    /// `lon` is not in [−180, 180].
    Longitude(f64),
    /// `alt` is not finite.
    Altitude(f64),
}

impl fmt::Display for GeoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GeoError::Latitude(lat) => write!(f, "latitude {lat} is not in [-90, 90] degrees"),
            GeoError::Longitude(lon) => write!(f, "longitude {lon} is not in [-180, 180] degrees"),
            GeoError::Altitude(alt) => write!(f, "altitude {alt} is not a finite number of metres"),
        }
    }
}

impl core::error::Error for GeoError {}

impl GeoPoint {
    /// A point from degrees north, degrees east and, if known, metres above the ellipsoid.
    ///
    /// # Errors
    ///
    /// The first of latitude outside [−90, 90], longitude outside [−180, 180], altitude not finite.
    /// NaN is outside.
    pub fn new(lat: f64, lon: f64, alt: Option<f64>) -> Result<GeoPoint, GeoError> {
        if !(-90.0..=90.0).contains(&lat) {
            return Err(GeoError::Latitude(lat));
        }
        if !(-180.0..=180.0).contains(&lon) {
            return Err(GeoError::Longitude(lon));
        }
        match alt {
            Some(alt) if !alt.is_finite() => Err(GeoError::Altitude(alt)),
            _ => Ok(GeoPoint { lat, lon, alt }),
        }
    }

    /// The point with these coordinates: latitude, longitude and perhaps altitude, as [`GeoPoint::new`] takes them. `None` if
    /// there are fewer or more, or if they are no point on the earth.
    pub fn from_coordinates(coordinates: &[f64]) -> Option<GeoPoint> {
        match *coordinates {
            [lat, lon] => GeoPoint::new(lat, lon, None).ok(),
            [lat, lon, alt] => GeoPoint::new(lat, lon, Some(alt)).ok(),
            _ => None,
        }
    }

    /// Latitude in degrees, north positive, in [−90, 90].
    pub const fn lat(&self) -> f64 {
        self.lat
    }

    /// Longitude in degrees, east positive, in [−180, 180].
    pub const fn lon(&self) -> f64 {
        self.lon
    }

    /// Altitude in metres above the WGS 84 ellipsoid, if known. Finite.
    pub const fn alt(&self) -> Option<f64> {
        self.alt
    }

    /// Great-circle distance in metres on the sphere of [`EARTH_RADIUS_M`], altitude ignored. In
    /// [0, πR], symmetric, and zero between equal positions.
    ///
    /// The haversine formula (Sinnott, "Virtues of the Haversine", *Sky & Telescope* 68, 1984), with
    /// φ latitude and λ longitude:
    ///
    /// ```text
    /// h = sin²((φ₁ − φ₂)/2) + cos φ₁ cos φ₂ sin²((λ₁ − λ₂)/2)     haversine of the angle
    /// k = sin²((φ₁ + φ₂)/2) + cos φ₁ cos φ₂ cos²((λ₁ − λ₂)/2)     = 1 − h, for the antipode
    /// d = 2R atan2(√h, √k)
    /// ```
    ///
    /// `h` alone is precise for neighbours but loses decimetres near the antipode, as `1 − h` cancels
    /// there; computing `k` from its own sum, all of whose terms are positive, keeps both ends.
    /// Angles are subtracted in degrees, before π enters, so the date line and the poles are exact.
    pub fn great_circle_m(&self, other: &GeoPoint) -> f64 {
        let apart = (self.lon - other.lon).abs();
        let dlon = if apart > 180.0 { 360.0 - apart } else { apart };
        let (north, south) = (self.lat - other.lat, self.lat + other.lat);
        let cos_cos = cos_lat(self.lat) * cos_lat(other.lat);
        let (sin_dlat, sin_sum) = (sin_deg(north / 2.0), sin_deg(south / 2.0));
        // cos(dlon/2) as the sine of its complement: exactly zero half a turn away.
        let (sin_dlon, cos_dlon) = (sin_deg(dlon / 2.0), sin_deg((180.0 - dlon) / 2.0));
        let h = sin_dlat * sin_dlat + cos_cos * (sin_dlon * sin_dlon);
        let k = sin_sum * sin_sum + cos_cos * (cos_dlon * cos_dlon);
        let d = 2.0 * EARTH_RADIUS_M * libm::atan2(libm::sqrt(h), libm::sqrt(k));
        if d > HALF_TURN_M { HALF_TURN_M } else { d }
    }

    /// Distance in metres, altitude included where both points have one: `sqrt(g*g + a*a)` with `g`
    /// the [great-circle distance](GeoPoint::great_circle_m) and `a` the difference in altitude.
    /// With an altitude missing, the great-circle distance.
    pub fn distance_m(&self, other: &GeoPoint) -> f64 {
        let ground = self.great_circle_m(other);
        match (self.alt, other.alt) {
            (Some(a), Some(b)) => libm::sqrt(ground * ground + (a - b) * (a - b)),
            _ => ground,
        }
    }

    /// The point on the unit sphere: `[cos φ cos λ, cos φ sin λ, sin φ]`, dimensionless.
    ///
    /// Earth-centred: x through 0° N 0° E, y through 0° N 90° E, z through the north pole. Altitude
    /// is ignored. The two names of a meridian, ±180°, give one vector, and so do all longitudes of
    /// a pole.
    pub fn unit_vector(&self) -> [f64; 3] {
        let lon = if self.lon == -180.0 { 180.0 } else { self.lon }.to_radians();
        let across = cos_lat(self.lat);
        [across * libm::cos(lon), across * libm::sin(lon), sin_deg(self.lat)]
    }
}

/// The straight distance through the unit sphere between two points `metres` apart on the ground:
/// `2 sin(d/2R)`, dimensionless, in [0, 2].
///
/// 2, the diameter, from half a turn (πR) on; 0 for negative distances and NaN. When searching an
/// index by chord, add [`CHORD_MARGIN`].
pub fn chord_for_distance(metres: f64) -> f64 {
    if metres >= HALF_TURN_M {
        2.0
    } else if metres > 0.0 {
        2.0 * libm::sin(metres / (2.0 * EARTH_RADIUS_M))
    } else {
        0.0
    }
}

/// Sine of an angle in degrees.
fn sin_deg(degrees: f64) -> f64 {
    libm::sin(degrees.to_radians())
}

/// Cosine of a latitude in degrees, as the sine of its complement: exactly zero at the poles.
fn cos_lat(degrees: f64) -> f64 {
    sin_deg(90.0 - degrees.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::f64::consts::PI;
    use proptest::prelude::*;

    fn at(lat: f64, lon: f64) -> GeoPoint {
        GeoPoint::new(lat, lon, None).unwrap()
    }

    fn up(lat: f64, lon: f64, alt: f64) -> GeoPoint {
        GeoPoint::new(lat, lon, Some(alt)).unwrap()
    }

    #[track_caller]
    fn assert_near(got: f64, expected: f64, tolerance: f64) {
        assert!((got - expected).abs() <= tolerance, "{got} is not {expected} ± {tolerance}");
    }

    #[test]
    fn a_place_on_the_earth_is_read_from_two_or_three_numbers() {
        let of = GeoPoint::from_coordinates;
        assert_eq!(of(&[47.4, 8.5]), GeoPoint::new(47.4, 8.5, None).ok());
        assert_eq!(of(&[47.4, 8.5, 400.0]), GeoPoint::new(47.4, 8.5, Some(400.0)).ok());
        assert_eq!((of(&[47.4]), of(&[1.0; 4]), of(&[90.1, 0.0])), (None, None, None));
    }

    #[test]
    fn radius_by_hand() {
        // (2 · 6 378 137 + 6 356 752.3142)/3 = 19 113 026.3142/3
        assert_near(EARTH_RADIUS_M, (2.0 * 6_378_137.0 + 6_356_752.314_2) / 3.0, 5e-5);
    }

    #[test]
    fn great_circles_by_hand() {
        let r = EARTH_RADIUS_M;
        // Pole to equator, a quarter turn: πR/2 = 10 007 557.2 m.
        assert_near(at(90.0, 0.0).great_circle_m(&at(0.0, 77.0)), PI * r / 2.0, 1e-8);
        assert_near(PI * r / 2.0, 10_007_557.2, 0.1);
        // One degree on the equator: πR/180 = 111 195.08 m.
        assert_near(at(0.0, 10.0).great_circle_m(&at(0.0, 11.0)), PI * r / 180.0, 1e-8);
        assert_near(PI * r / 180.0, 111_195.08, 0.01);
        // One degree along a meridian is the same on a sphere.
        assert_near(at(51.0, 7.0).great_circle_m(&at(52.0, 7.0)), PI * r / 180.0, 1e-8);
        // Along 60° N a quarter turn of longitude: cos d = sin²60° + cos²60°·0 = 3/4.
        assert_near(at(60.0, 0.0).great_circle_m(&at(60.0, 90.0)), r * libm::acos(0.75), 1e-8);
    }

    #[test]
    fn the_date_line_is_no_border() {
        // 0.0002° on the equator: 2e-4 · 111 195.08 = 22.239 m.
        let d = at(0.0, 179.9999).great_circle_m(&at(0.0, -179.9999));
        assert_near(d, 2e-4 * PI * EARTH_RADIUS_M / 180.0, 1e-8);
        assert_near(d, 22.239, 1e-3);
        assert_eq!(at(12.0, 180.0).great_circle_m(&at(12.0, -180.0)), 0.0);
        assert_eq!(at(12.0, 180.0).unit_vector(), at(12.0, -180.0).unit_vector());
    }

    #[test]
    fn a_pole_has_every_longitude() {
        for (lat, sign) in [(90.0, 1.0), (-90.0, -1.0)] {
            for lon in [-180.0, -77.3, 0.0, 0.1, 90.0, 180.0] {
                let (a, b) = (at(lat, 0.0), at(lat, lon));
                assert_eq!(a.great_circle_m(&b), 0.0);
                assert_eq!(b.unit_vector(), [0.0, 0.0, sign]);
                let somewhere = at(48.0, 11.0);
                assert_eq!(a.great_circle_m(&somewhere), b.great_circle_m(&somewhere));
            }
        }
        assert_eq!(at(90.0, 3.0).great_circle_m(&at(-90.0, 9.0)), HALF_TURN_M);
    }

    #[test]
    fn a_centimetre_is_seen_nearby_and_across_the_world() {
        let step = 0.01 / (PI * EARTH_RADIUS_M / 180.0); // 1 cm in degrees of latitude
        for (lat, lon) in [(0.0, 0.0), (48.1, 11.6), (-33.9, 151.2), (89.0, -120.0)] {
            let here = at(lat, lon);
            assert_near(here.great_circle_m(&at(lat + step, lon)), 0.01, 1e-7);
            // The antipode, and 1 cm beside it: the plain haversine is wrong by decimetres here.
            let far_lon = if lon > 0.0 { lon - 180.0 } else { lon + 180.0 };
            assert_near(here.great_circle_m(&at(-lat, far_lon)), HALF_TURN_M, 1e-8);
            let beside = here.great_circle_m(&at(-lat - step, far_lon));
            assert_near(beside, HALF_TURN_M - 0.01, 1e-7);
        }
    }

    #[test]
    fn altitude_counts_when_both_have_it() {
        // Straight above one another: the difference itself.
        assert_eq!(up(48.0, 11.0, 500.0).distance_m(&up(48.0, 11.0, 530.0)), 30.0);
        assert_eq!(up(48.0, 11.0, 500.0).distance_m(&at(48.0, 11.0)), 0.0);
        let (a, b) = (up(0.0, 0.0, 0.0), up(0.0, 0.001, 100.0));
        let ground = a.great_circle_m(&b); // 111.195 m
        assert_near(a.distance_m(&b), libm::sqrt(ground * ground + 1e4), 0.0);
        assert_near(a.distance_m(&b), 149.547, 1e-3); // sqrt(12364.35 + 10000)
    }

    #[test]
    fn chords_by_hand() {
        let r = EARTH_RADIUS_M;
        assert_near(chord_for_distance(PI * r / 2.0), libm::sqrt(2.0), 1e-15); // 2 sin 45°
        assert_near(chord_for_distance(PI * r / 3.0), 1.0, 1e-15); // 2 sin 30°
        assert_eq!(chord_for_distance(PI * r), 2.0);
        assert_eq!(chord_for_distance(1e9), 2.0);
        assert_eq!(chord_for_distance(f64::INFINITY), 2.0);
        for none in [0.0, -1.0, f64::NAN] {
            assert_eq!(chord_for_distance(none), 0.0);
        }
    }

    #[test]
    fn refuses_what_is_not_on_earth() {
        assert_eq!(GeoPoint::new(90.1, 0.0, None), Err(GeoError::Latitude(90.1)));
        assert_eq!(GeoPoint::new(0.0, -180.1, None), Err(GeoError::Longitude(-180.1)));
        assert_eq!(
            GeoPoint::new(0.0, 0.0, Some(f64::INFINITY)),
            Err(GeoError::Altitude(f64::INFINITY))
        );
        assert!(matches!(GeoPoint::new(f64::NAN, 0.0, None), Err(GeoError::Latitude(_))));
        assert!(matches!(GeoPoint::new(0.0, f64::NAN, None), Err(GeoError::Longitude(_))));
        let corner = up(-90.0, 180.0, -11_000.0);
        assert_eq!((corner.lat(), corner.lon(), corner.alt()), (-90.0, 180.0, Some(-11_000.0)));
    }

    fn any_point() -> impl Strategy<Value = GeoPoint> {
        (-90.0..=90.0f64, -180.0..=180.0f64, prop::option::of(-1e4..1e5f64))
            .prop_map(|(lat, lon, alt)| GeoPoint::new(lat, lon, alt).unwrap())
    }

    /// Pairs at every scale, from micrometres to antipodes.
    fn any_pair() -> impl Strategy<Value = (GeoPoint, GeoPoint)> {
        let near = (any_point(), -1.0..1.0f64, -1.0..1.0f64, 0..12i32, any::<bool>()).prop_map(
            |(a, dlat, dlon, scale, far)| {
                let shrink = (0..scale).fold(1.0, |s, _| s / 10.0);
                let lat = if far { -a.lat() } else { a.lat() } + dlat * shrink;
                let lon = if far { a.lon() + 180.0 } else { a.lon() } + dlon * shrink;
                let lon = if lon > 180.0 { lon - 360.0 } else { lon };
                let b = GeoPoint::new(lat.clamp(-90.0, 90.0), lon.clamp(-180.0, 180.0), a.alt());
                (a, b.unwrap())
            },
        );
        prop_oneof![(any_point(), any_point()), near]
    }

    fn chord(a: &GeoPoint, b: &GeoPoint) -> f64 {
        let (a, b) = (a.unit_vector(), b.unit_vector());
        let square = |i: usize| (a[i] - b[i]) * (a[i] - b[i]);
        libm::sqrt(square(0) + square(1) + square(2))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn distances_are_symmetric_and_bounded((a, b) in any_pair()) {
            let d = a.great_circle_m(&b);
            prop_assert_eq!(d.to_bits(), b.great_circle_m(&a).to_bits());
            prop_assert!((0.0..=HALF_TURN_M).contains(&d));
            prop_assert_eq!(a.great_circle_m(&a), 0.0);
            prop_assert!(a.distance_m(&b) >= d * (1.0 - f64::EPSILON));
        }

        #[test]
        fn an_index_by_chord_misses_nothing((a, b) in any_pair()) {
            let chord = chord(&a, &b);
            for d in [a.great_circle_m(&b), a.distance_m(&b)] {
                prop_assert!(chord <= chord_for_distance(d) + CHORD_MARGIN);
            }
            // And the two agree, which checks one against the other.
            prop_assert!((chord - chord_for_distance(a.great_circle_m(&b))).abs() <= CHORD_MARGIN);
        }

        #[test]
        fn triangle_inequality(a in any_point(), b in any_point(), c in any_point()) {
            let (ab, bc, ac) = (a.great_circle_m(&b), b.great_circle_m(&c), a.great_circle_m(&c));
            prop_assert!(ac <= ab + bc + 1e-6);
        }
    }
}
