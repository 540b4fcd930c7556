//! A bound on work, and a count of it for tests.
//!
//! The time that a function takes must grow no faster than its text. Loops call [`steps`], which counts in tests alone;
//! [`Allowance`] bounds the one loop that compares sentences with each other.

/// Work that is still allowed, in steps of about a nanosecond each.
#[derive(Debug)]
pub(crate) struct Allowance {
    left: usize,
}

impl Allowance {
    /// Steps for each byte of input: a text of 256 KiB has 16 million.
    pub(crate) const PER_BYTE: usize = 64;
    /// Steps for any input: short texts are compared exactly.
    pub(crate) const LEAST: usize = 1 << 20;

    /// Returns what an input of so many bytes may cost.
    pub(crate) fn for_bytes(bytes: usize) -> Self {
        Self { left: bytes.saturating_mul(Self::PER_BYTE).saturating_add(Self::LEAST) }
    }

    /// Takes `steps` if so many are left.
    pub(crate) fn take(&mut self, count: usize) -> bool {
        let Some(left) = self.left.checked_sub(count) else { return false };
        self.left = left;
        steps(count);
        true
    }
}

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts steps in tests.
#[inline]
pub(crate) fn steps(count: usize) {
    #[cfg(test)]
    STEPS.with(|steps| steps.set(steps.get() + count));
    #[cfg(not(test))]
    let _ = count;
}

/// Returns the steps that `work` takes.
#[cfg(test)]
pub(crate) fn counted(work: impl FnOnce()) -> usize {
    STEPS.with(|steps| steps.set(0));
    work();
    STEPS.with(std::cell::Cell::get)
}
