//! A thermometer, a bumper and an odometer that are not there: what they would say, from a small
//! generator. Only sums, products and divisions of floats, so every machine senses the same.

use nalgebra::{Translation3, UnitQuaternion};
use omir_core::space::{Isometry3, unit_quaternion};

/// Readings of one moment.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// Microseconds since the node started.
    pub micros: u64,
    /// Of the air.
    pub degrees_celsius: f64,
    /// True if it ran into something.
    pub bumped: bool,
    /// Its pose in `odom`.
    pub pose: Isometry3,
}

/// The sensors, and the drive they are on.
#[derive(Clone, Debug)]
pub struct Sensors {
    random: Random,
    reading: Reading,
}

impl Sensors {
    /// A drive that begins at the origin. The same seed is the same drive.
    pub fn new(seed: u32) -> Self {
        let reading = Reading {
            micros: 0,
            degrees_celsius: 21.0,
            bumped: false,
            pose: Isometry3::identity(),
        };
        Self { random: Random::new(seed), reading }
    }

    /// Returns the readings of a while later.
    pub fn read(&mut self) -> Reading {
        let forward = 0.1 + f64::from(self.random(64)) / 128.0;
        let turn = f64::from(self.random(33)) / 64.0 - 0.25;
        let step = Isometry3::from_parts(Translation3::new(forward, 0.0, 0.0), yaw(turn));
        self.reading = Reading {
            micros: self.reading.micros + 600_000_000 + u64::from(self.random(600_000_000)),
            degrees_celsius: self.reading.degrees_celsius + f64::from(self.random(17)) / 16.0 - 0.5,
            bumped: self.random(6) == 0,
            pose: self.reading.pose * step,
        };
        self.reading
    }

    /// A number below `end`.
    pub fn random(&mut self, end: u32) -> u32 {
        self.random.draw() % end
    }
}

/// Numbers that look random: xorshift32 (Marsaglia, "Xorshift RNGs", 2003).
#[derive(Clone, Debug)]
pub struct Random(u32);

impl Random {
    /// The same seed gives the same numbers.
    pub fn new(seed: u32) -> Self {
        Self(seed.wrapping_mul(2_654_435_769) | 1)
    }

    /// The next one; never 0.
    pub fn draw(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }
}

/// A rotation to the left by the angle whose half has the tangent `half`.
fn yaw(half: f64) -> UnitQuaternion<f64> {
    // (0, 0, tan, 1), scaled: no sine, so no library of sines to agree with.
    unit_quaternion([0.0, 0.0, half, 1.0]).unwrap_or_else(UnitQuaternion::identity)
}
