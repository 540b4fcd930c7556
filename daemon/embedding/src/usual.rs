//! Cosines between words: those that are usual, so that one that stands out can be told.
//!
//! The cosine of two words says little by itself: a word of everyday life is somewhat near to most others, a name to none.
//! A sample of the table tells what is usual for a word, whatever a store holds.

use crate::vector::{Probe, Vector};

/// Most rows of a sample: the deviation is then right within some percent.
const SAMPLE: usize = 1024;

/// Cosines with one vector: mean and standard deviation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usual {
    /// The mean.
    pub mean: f32,
    /// The standard deviation, above 0.
    pub deviation: f32,
}

/// Some rows of a table, evenly spaced.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    scales: Vec<f32>,
    values: Vec<i8>,
}

impl Sample {
    /// A sample of `count` rows of `dims` numbers. `read` adds a row to zeros, and returns false if it is not there.
    pub(crate) fn of(
        count: usize,
        dims: usize,
        mut read: impl FnMut(usize, &mut [f32]) -> bool,
    ) -> Self {
        let mut sample = Self::default();
        let mut numbers = vec![0.0; dims];
        for row in (0..count).step_by(count.div_ceil(SAMPLE).max(1)) {
            numbers.fill(0.0);
            if read(row, &mut numbers)
                && let Some(vector) = Vector::of(&numbers)
            {
                sample.scales.push(vector.scale);
                sample.values.extend_from_slice(&vector.values);
            }
        }
        sample
    }

    /// The cosines of the rows with a vector; `None` if they do not differ.
    pub(crate) fn usual(&self, vector: &Vector) -> Option<Usual> {
        let mut cosines = Vec::with_capacity(self.scales.len());
        Probe::of(vector).cosines(&self.values, &self.scales, &mut cosines);
        let count = cosines.len() as f64;
        let mean = cosines.iter().map(|one| f64::from(*one)).sum::<f64>() / count;
        let squares = cosines.iter().map(|one| (f64::from(*one) - mean).powi(2)).sum::<f64>();
        let deviation = (squares / count).sqrt();
        (deviation > 0.0).then_some(Usual { mean: mean as f32, deviation: deviation as f32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_cosines_by_hand() {
        let rows = [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [-1.0, 0.0]];
        let sample = Sample::of(5, 2, |row, out| {
            let Some(numbers) = rows.get(row) else { return false };
            out.copy_from_slice(numbers);
            true
        });
        // Of 1, 0 and -1: a row without a direction does not count, nor one that is not there.
        let usual = sample.usual(&Vector::of(&[1.0, 0.0]).unwrap()).unwrap();
        assert!(usual.mean.abs() < 1e-6, "{usual:?}");
        assert!((usual.deviation - (2.0_f32 / 3.0).sqrt()).abs() < 1e-6, "{usual:?}");
    }

    #[test]
    fn rows_that_do_not_differ_tell_nothing() {
        let vector = Vector::of(&[1.0, 0.0]).unwrap();
        assert_eq!(Sample::default().usual(&vector), None);
        let sample = Sample::of(3, 2, |_, out| {
            out.fill(1.0);
            true
        });
        assert_eq!(sample.usual(&vector), None);
    }

    #[test]
    fn a_large_table_is_sampled() {
        let sample = Sample::of(30_000, 2, |row, out| {
            out.copy_from_slice(&[row as f32 + 1.0, 1.0]);
            true
        });
        assert!((900..=SAMPLE).contains(&sample.scales.len()), "{}", sample.scales.len());
    }
}
