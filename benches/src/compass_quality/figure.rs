//! Figures with their error bars: counts of each agent, what is made of their sums, and the bootstrap over agents.
//!
//! Turns of one session are alike, so whole agents are drawn again, and not turns. The draws are those of a fixed
//! generator: the same counts give the same interval.

/// Times that the agents are drawn.
const DRAWS: usize = 2000;
/// The share of draws left out on each side.
const TAIL: f64 = 0.025;

/// An aim of the specification.
#[derive(Debug, Clone, Copy)]
pub enum Aim {
    /// At least so much.
    AtLeast(f64),
    /// At most so much.
    AtMost(f64),
    /// Told beside a figure.
    None,
}

impl Aim {
    /// Tells if a value meets it.
    pub fn is_met(self, value: f64) -> Option<bool> {
        match self {
            Self::AtLeast(least) => Some(value >= least),
            Self::AtMost(most) => Some(value <= most),
            Self::None => None,
        }
    }

    /// As it stands in a table.
    pub fn words(self) -> String {
        match self {
            Self::AtLeast(least) => format!("≥ {:.0} %", least * 100.0),
            Self::AtMost(most) => format!("≤ {:.0} %", most * 100.0),
            Self::None => String::new(),
        }
    }
}

/// Makes a value of summed counts.
pub type Of = fn(&[f64]) -> f64;

/// One figure over the agents of a split.
#[derive(Debug, Clone)]
pub struct Figure {
    /// Its row.
    pub name: &'static str,
    /// Its aim.
    pub aim: Aim,
    /// The counts of each agent.
    pub counts: Vec<Vec<f64>>,
    of: Of,
    is_percent: bool,
}

impl Figure {
    /// A share: the first count by the second.
    pub fn share(name: &'static str, aim: Aim, counts: Vec<Vec<f64>>) -> Self {
        Self::new(name, aim, counts, |sum| sum[0] / sum[1])
    }

    /// A value made of the sums of the counts.
    pub fn new(name: &'static str, aim: Aim, counts: Vec<Vec<f64>>, of: Of) -> Self {
        Self { name, aim, counts, of, is_percent: true }
    }

    /// The same, shown as a number and not in percent.
    pub fn plain(mut self) -> Self {
        self.is_percent = false;
        self
    }

    /// The value over all agents.
    pub fn value(&self) -> f64 {
        (self.of)(&sum(self.counts.iter()))
    }

    /// The interval that 95 of 100 draws lie in.
    pub fn interval(&self) -> (f64, f64) {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            // xorshift64: good enough to draw one of eight.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        let count = self.counts.len() as u64;
        let mut values: Vec<f64> = (0..DRAWS)
            .map(|_| {
                let drawn: Vec<usize> =
                    (0..count).map(|_| ((next() >> 33) % count.max(1)) as usize).collect();
                (self.of)(&sum(drawn.into_iter().filter_map(|at| self.counts.get(at))))
            })
            .filter(|value| value.is_finite())
            .collect();
        values.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = (share * (values.len().saturating_sub(1)) as f64).round() as usize;
            values.get(place).copied().unwrap_or(f64::NAN)
        };
        (at(TAIL), at(1.0 - TAIL))
    }

    /// Value and interval, as they stand in a table.
    pub fn words(&self) -> String {
        let (low, high) = self.interval();
        if self.is_percent {
            let [value, low, high] = [self.value(), low, high].map(|share| share * 100.0);
            format!("{value:.1} % ({low:.1} to {high:.1})")
        } else {
            format!("{:.2} ({low:.2} to {high:.2})", self.value())
        }
    }
}

fn sum<'c>(counts: impl Iterator<Item = &'c Vec<f64>>) -> Vec<f64> {
    let mut total: Vec<f64> = Vec::new();
    for one in counts {
        total.resize(total.len().max(one.len()), 0.0);
        total.iter_mut().zip(one).for_each(|(sum, count)| *sum += count);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_has_an_interval_over_agents() {
        let alike = Figure::share("x", Aim::AtLeast(0.5), vec![vec![3.0, 4.0]; 8]);
        assert_eq!((alike.value(), alike.interval()), (0.75, (0.75, 0.75)));
        let mut counts = vec![vec![4.0, 4.0]; 4];
        counts.extend(vec![vec![0.0, 4.0]; 4]);
        let unlike = Figure::share("x", Aim::None, counts);
        let (low, high) = unlike.interval();
        assert!(low <= 0.25 && high >= 0.75, "{low} {high}");
        assert_eq!(unlike.interval(), (low, high), "the same again");
    }
}
