//! The gate of a port: what a caller may do whom no network has let in. It reads, and writes where that is open to
//! everybody or to whoever knows a token.

use std::time::Duration;

use super::{Refusal, Scope, Scopes};

/// Microseconds in which no token is heard after the second wrong one (the first is a slip); twice as long after each
/// more ...
const FIRST_DELAY: u64 = 1_000_000;
/// ... but no longer than this: whoever guesses must not lock the owner out.
const LONGEST_DELAY: u64 = 30_000_000;

/// The scopes that callers of a port hold, and the secret that opens more.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccessPolicy {
    /// Each may write.
    pub write: bool,
    /// One that knows this may.
    pub token: Option<String>,
}

/// The entrance for one caller after the other.
#[derive(Debug)]
pub struct Gate {
    access: AccessPolicy,
    /// This caller gave the token.
    is_unlocked: bool,
    /// Wrong tokens since the right one.
    wrong: u32,
    locked_until: u64,
}

impl Gate {
    /// Returns a gate that nobody has come in by.
    pub fn new(access: AccessPolicy) -> Self {
        Self { access, is_unlocked: false, wrong: 0, locked_until: 0 }
    }

    /// Returns what this caller may do.
    pub fn scopes(&self) -> Scopes {
        if self.access.write || self.is_unlocked {
            Scopes::only(&[Scope::READ, Scope::WRITE])
        } else {
            Scopes::only(&[Scope::READ])
        }
    }

    fn may_write(&self) -> bool {
        self.scopes().hold(Scope::WRITE)
    }

    /// Another caller: it is as before the token. Wrong ones still count.
    pub fn lock(&mut self) {
        self.is_unlocked = false;
    }

    /// Opens it for this caller. `now` in microseconds, of a clock that is never set.
    ///
    /// # Errors
    /// `WrongToken`, `NoToken`, or `Locked`: one that comes too soon after a wrong one is not looked at, and costs no
    /// further delay.
    pub fn unlock(&mut self, token: &str, now: u64) -> Result<(), Refusal> {
        if now < self.locked_until {
            let retry_after = Duration::from_micros(self.locked_until - now);
            return Err(Refusal::Locked { retry_after });
        }
        let Some(known) = &self.access.token else {
            if self.may_write() {
                // Nothing is locked. Who always gives a token need not know that.
                return Ok(());
            }
            return Err(Refusal::NoToken);
        };
        if !same(known.as_bytes(), token.as_bytes()) {
            let delay = if self.wrong == 0 { 0 } else { FIRST_DELAY << (self.wrong - 1).min(16) };
            self.wrong = self.wrong.saturating_add(1);
            self.locked_until = now.saturating_add(delay.min(LONGEST_DELAY));
            return Err(Refusal::WrongToken);
        }
        self.wrong = 0;
        self.is_unlocked = true;
        Ok(())
    }
}

/// Takes as long for a wrong token as for the right one of that length.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(write: bool, token: Option<&str>) -> Gate {
        Gate::new(AccessPolicy { write, token: token.map(str::to_owned) })
    }

    #[test]
    fn tokens_are_the_same_or_not() {
        assert!(same(b"abc", b"abc"));
        assert!(!same(b"abc", b"abd"));
        assert!(!same(b"abc", b"abcd"));
    }

    #[test]
    fn a_token_opens_what_is_open() {
        assert_eq!(gate(true, None).unlock("whatever", 0), Ok(()));
        assert_eq!(gate(false, None).unlock("whatever", 0), Err(Refusal::NoToken));
    }

    #[test]
    fn a_token_opens_for_one_caller() {
        let mut gate = gate(false, Some("sesame42"));
        assert!(!gate.may_write());
        gate.unlock("sesame42", 0).unwrap();
        assert!(gate.may_write());
        gate.lock();
        assert!(!gate.may_write());
    }

    #[test]
    fn who_guesses_waits_longer_each_time_but_never_locks_the_owner_out() {
        let mut gate = gate(false, Some("sesame42"));
        let mut now = 0;
        assert_eq!(gate.unlock("sesame43", now), Err(Refusal::WrongToken));
        for delay in [1, 2, 4, 8, 16, 30, 30, 30] {
            gate.unlock("sesame43", now).unwrap_err();
            // Another caller does not wait less, and asking meanwhile makes it no longer.
            gate.lock();
            now += delay * 1_000_000;
            let retry_after = Duration::from_micros(1);
            assert_eq!(gate.unlock("sesame42", now - 1), Err(Refusal::Locked { retry_after }));
        }
        gate.unlock("sesame42", now).unwrap();
        assert!(gate.may_write());
        // The right one ends it.
        gate.unlock("sesame43", now).unwrap_err();
        gate.unlock("sesame42", now).unwrap();
    }
}
