//! Seeded randomness: a failing test prints its seed and fails again with it.

/// A small generator (SplitMix64, Steele, Lea and Flood 2014). The same seed gives the same
/// numbers on every machine, for good.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A generator that begins at `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `end`, which is above zero.
    pub fn below(&mut self, end: usize) -> usize {
        (self.bits() % end as u64) as usize
    }

    /// True in `percent` of a hundred cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number in [`from`, `to`).
    pub fn between(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.unit()
    }

    /// A position below `len`, which is above zero. Not the number that [`Random::below`] gives: records
    /// that were made with this one stay the same.
    pub fn position(&mut self, len: usize) -> usize {
        (self.unit() * len as f64) as usize
    }

    /// About normal, mean 0, deviation 1 (a sum of twelve).
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    /// One of `items`, which is not empty.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// The seeds to run: `default`, or the one in the environment variable `name`, to repeat a failure.
///
/// # Panics
/// If the variable holds no seed: whoever sets it wants that one, and no others.
pub fn seeds(name: &str, default: std::ops::Range<u64>) -> Vec<u64> {
    let Some(text) = std::env::var_os(name) else { return default.collect() };
    let seed: Option<u64> = text.to_str().and_then(|text| text.parse().ok());
    vec![seed.unwrap_or_else(|| panic!("{name}={}: expected a whole number", text.display()))]
}
