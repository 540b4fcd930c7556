//! The mark of the records that were handed over.

use heapless::Vec;

use super::ring::Number;

/// Refused records that are kept in mind.
const MOST: usize = 8;

/// Up to which record another machine has them all, in the order they were remembered, but for those that it
/// refused. Of these the newest eight are known, and offered again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    until: Option<Number>,
    /// In the order they were, none above `until`.
    refused: Vec<Number, MOST>,
}

impl Mark {
    /// Bytes of it, as it is kept: `until` u32, then each that was refused, u32; little endian.
    pub(super) const BYTES: usize = 4 + 4 * MOST;

    /// Nothing was handed over.
    pub const fn new() -> Self {
        Self { until: None, refused: Vec::new() }
    }

    /// All up to here were handed over or refused.
    pub fn until(&self) -> Option<Number> {
        self.until
    }

    /// Returns the refused ones among these, as far as they are known.
    pub fn refused(&self) -> &[Number] {
        &self.refused
    }

    /// Returns true if this record was handed over, or refused longer ago than is known.
    pub fn covers(&self, number: Number) -> bool {
        Some(number) <= self.until && !self.refused.contains(&number)
    }

    /// All up to this one are handed over.
    pub fn pass(&mut self, number: Number) {
        self.until = self.until.max(Some(number));
    }

    /// This one behind the mark was refused; gives back the one that is not known any more for it.
    pub fn refuse(&mut self, number: Number) -> Option<Number> {
        self.pass(number);
        let oldest = self.refused.is_full().then(|| self.refused.remove(0));
        // There is room now.
        let _ = self.refused.push(number);
        oldest
    }

    /// Takes a record off the list of refused ones: it was taken in the end, or is gone.
    pub fn accept(&mut self, number: Number) {
        self.refused.retain(|refused| *refused != number);
    }

    /// As it is kept.
    pub(super) fn to_bytes(&self) -> Vec<u8, { Mark::BYTES }> {
        let mut bytes = Vec::new();
        let until = self.until.map_or(0, Number::get);
        for number in [until].into_iter().chain(self.refused.iter().map(|number| number.get())) {
            // As many as there are have room.
            let _ = bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// Reads a kept mark. Other forms are ignored: what is handed over once more does no harm.
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        let (words, []) = bytes.as_chunks::<4>() else { return Self::new() };
        let mut numbers = words.iter().map(|word| Number::new(u32::from_le_bytes(*word)));
        let mut mark = Self { until: numbers.next().flatten(), refused: Vec::new() };
        for number in numbers.flatten().filter(|number| Some(*number) <= mark.until) {
            // More than there is room for were never written.
            let _ = mark.refused.push(number);
        }
        mark
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(number: u32) -> Number {
        Number::new(number).unwrap()
    }

    #[test]
    fn what_was_refused_is_known_until_there_are_too_many() {
        let mut mark = Mark::new();
        mark.pass(number(3));
        assert!((4..12).all(|refused| mark.refuse(number(refused)).is_none()));
        mark.pass(number(20));
        assert!(mark.covers(number(3)) && mark.covers(number(20)));
        assert!(!mark.covers(number(4)) && !mark.covers(number(11)) && !mark.covers(number(21)));
        assert_eq!(mark.refuse(number(21)), Some(number(4)));
        assert!(mark.covers(number(4)) && !mark.covers(number(21)));
        mark.accept(number(9));
        assert!(mark.covers(number(9)) && mark.refuse(number(22)).is_none());
        assert_eq!(mark.to_bytes().len(), Mark::BYTES);
        assert_eq!(Mark::from_bytes(&mark.to_bytes()), mark);
    }

    #[test]
    fn other_bytes_are_nothing() {
        for bytes in [&b""[..], b"12345", &[0; 36], &[0; 4]] {
            assert_eq!(Mark::from_bytes(bytes), Mark::new());
        }
        let strange = [1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(Mark::from_bytes(&strange).refused(), [], "beyond the mark, and no number");
        let _ = Mark::from_bytes(&[0x01; 40 * 4]);
    }
}
