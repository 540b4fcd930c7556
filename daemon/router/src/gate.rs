//! The gate of a port: what a caller may do whom no network has let in. It reads, and writes where that is open to
//! everybody or to callers who know a token.

use std::time::Duration;

use subtle::ConstantTimeEq as _;

use super::{Bounds, Caller, Refusal, Remedy, Scope, Scopes, Unauthenticated};

/// Microseconds in which no token is heard after the second wrong one (the first is a slip); twice as long after each
/// more ...
const FIRST_DELAY: u64 = 1_000_000;
/// ... but no longer than this: one who guesses must not lock the owner out.
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
    opened: Opened,
    /// Wrong tokens since the right one.
    wrong: u32,
    locked_until: u64,
}

/// The key that this caller gave.
#[derive(Debug)]
enum Opened {
    None,
    /// The token of the port.
    Port,
    /// A token of the daemon.
    Token(Box<str>),
}

/// Finds out whose token of the daemon a text is.
pub type Identify<'a> = &'a dyn Fn(&str) -> Result<Caller, Refusal>;

impl Gate {
    /// Returns a gate that no caller has come in by.
    pub fn new(access: AccessPolicy) -> Self {
        Self { access, opened: Opened::None, wrong: 0, locked_until: 0 }
    }

    /// Returns the caller who is on the port now: `unknown`, with the scopes that the gate gives, or whose token of the
    /// daemon it gave. That is looked up each time: one that is revoked closes the gate. Where `is_required`, nothing is open
    /// to a caller without a token.
    pub fn caller(&self, unknown: Caller, is_required: bool, identify: Identify<'_>) -> Caller {
        let open = match (is_required, self.access.write) {
            (true, _) => Scopes::only(&[]),
            (false, false) => Scopes::only(&[Scope::READ]),
            (false, true) => Scopes::only(&[Scope::READ, Scope::WRITE]),
        };
        match &self.opened {
            Opened::Port => {
                let scopes = open.and(&Scopes::only(&[Scope::READ, Scope::WRITE]));
                return Caller { scopes, remedy: Some(Remedy::Unlock), ..unknown };
            }
            Opened::Token(token) => {
                if let Ok(known) = identify(token) {
                    let bounds = Bounds { rates: known.bounds.rates, ..unknown.bounds };
                    let (scopes, retries) = (known.scopes.and(&open), unknown.retries);
                    return Caller { scopes, bounds, retries, ..known };
                }
            }
            Opened::None => {}
        }
        let remedy = Some(if is_required { Remedy::Token } else { Remedy::Unlock });
        Caller { scopes: open, remedy, ..unknown }
    }

    /// Another caller: it is as before the token. Wrong ones still count.
    pub fn lock(&mut self) {
        self.opened = Opened::None;
    }

    /// Opens it for this caller, by the token of the port or by one of the daemon. `now` in microseconds, of a clock that is
    /// never set.
    ///
    /// # Errors
    /// `WrongToken`, `NoToken`, or `Unauthenticated` for a token of the daemon that is over. `Locked`: one that comes too soon
    /// after a wrong one is not looked at, and costs no further delay.
    pub fn unlock(
        &mut self,
        token: &str,
        now: u64,
        is_required: bool,
        identify: Identify<'_>,
    ) -> Result<(), Refusal> {
        if now < self.locked_until {
            let retry_after = Duration::from_micros(self.locked_until - now);
            return Err(Refusal::Locked { retry_after });
        }
        let of_port = self.access.token.as_ref();
        // As long for a wrong token as for the right one of that length.
        let is_it = |known: &String| bool::from(known.as_bytes().ct_eq(token.as_bytes()));
        self.opened = if of_port.is_some_and(is_it) {
            Opened::Port
        } else {
            match identify(token) {
                Ok(_) => Opened::Token(token.into()),
                Err(Refusal::Unauthenticated(Unauthenticated::Unknown)) => {
                    return self.wrong_token(now, is_required);
                }
                Err(refusal) => return Err(refusal),
            }
        };
        self.wrong = 0;
        Ok(())
    }

    fn wrong_token(&mut self, now: u64, is_required: bool) -> Result<(), Refusal> {
        if self.access.token.is_none() {
            // A token of the daemon has too many digits to be guessed: it needs no delay. Where nothing is locked, a client
            // that always gives a token need not know that.
            let is_open = self.access.write && !is_required;
            return if is_open { Ok(()) } else { Err(Refusal::NoToken) };
        }
        let delay = if self.wrong == 0 { 0 } else { FIRST_DELAY << (self.wrong - 1).min(16) };
        self.wrong = self.wrong.saturating_add(1);
        self.locked_until = now.saturating_add(delay.min(LONGEST_DELAY));
        Err(Refusal::WrongToken)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::Rate;

    fn gate(write: bool, token: Option<&str>) -> Gate {
        Gate::new(AccessPolicy { write, token: token.map(str::to_owned) })
    }

    const UNKNOWN: Refusal = Refusal::Unauthenticated(Unauthenticated::Unknown);

    fn no_token(_: &str) -> Result<Caller, Refusal> {
        Err(UNKNOWN)
    }

    fn scopes(gate: &Gate, is_required: bool) -> Scopes {
        let unknown = Caller::trusted("serial", "port");
        gate.caller(unknown, is_required, &no_token).scopes
    }

    fn may_write(gate: &Gate) -> bool {
        scopes(gate, false).hold(Scope::WRITE)
    }

    #[test]
    fn a_token_opens_what_is_open() {
        assert_eq!(gate(true, None).unlock("whatever", 0, false, &no_token), Ok(()));
        assert_eq!(
            gate(false, None).unlock("whatever", 0, false, &no_token),
            Err(Refusal::NoToken)
        );
        // A token opens nothing if every way in needs one.
        assert_eq!(gate(true, None).unlock("whatever", 0, true, &no_token), Err(Refusal::NoToken));
    }

    #[test]
    fn a_token_opens_for_one_caller() {
        let mut gate = gate(false, Some("sesame42"));
        assert!(!may_write(&gate));
        gate.unlock("sesame42", 0, false, &no_token).unwrap();
        assert!(may_write(&gate));
        gate.lock();
        assert!(!may_write(&gate));
    }

    #[test]
    fn where_a_token_is_required_a_port_is_closed_without() {
        for write in [false, true] {
            let mut gate = gate(write, Some("sesame42"));
            let nobody = gate.caller(Caller::trusted("serial", "port"), true, &no_token);
            assert_eq!((nobody.scopes, nobody.remedy), (Scopes::only(&[]), Some(Remedy::Token)));
            gate.unlock("sesame42", 0, false, &no_token).unwrap();
            assert_eq!(scopes(&gate, true), Scopes::only(&[Scope::READ, Scope::WRITE]));
        }
    }

    #[test]
    fn a_token_of_the_daemon_opens_what_it_grants_until_it_is_revoked() {
        let is_revoked = Cell::new(false);
        let rates = [Some(Rate { requests: 5, per: Duration::from_secs(1) }), None];
        let identify = |token: &str| match token {
            "admin" if !is_revoked.get() => {
                let bounds = Bounds { rates, ..Bounds::default() };
                let scopes = Scopes::only(&[Scope::ADMIN]);
                Ok(Caller { scopes, bounds, ..Caller::trusted("serial", "anna") })
            }
            "old" => Err(Refusal::Unauthenticated(Unauthenticated::Expired)),
            _ => Err(UNKNOWN),
        };
        let bounds = Bounds { reply_bytes: Some(7), ..Bounds::default() };
        let unknown = Caller { bounds, ..Caller::trusted("serial", "port") };
        let mut gate = gate(false, Some("sesame42"));
        let expired = Refusal::Unauthenticated(Unauthenticated::Expired);
        for _ in 0..9 {
            assert_eq!(
                gate.unlock("old", 0, false, &identify),
                Err(expired),
                "which costs no delay"
            );
        }
        gate.unlock("admin", 0, false, &identify).unwrap();
        let anna = gate.caller(unknown.clone(), true, &identify);
        assert_eq!((&*anna.name, anna.scopes), ("anna", Scopes::only(&[Scope::ADMIN])));
        assert_eq!(anna.bounds, Bounds { rates, reply_bytes: Some(7), ..Bounds::default() });
        // Scopes that are open to all stay so.
        let anna = gate.caller(unknown.clone(), false, &identify);
        assert_eq!(anna.scopes, Scopes::only(&[Scope::ADMIN, Scope::READ]));
        is_revoked.set(true);
        let nobody = gate.caller(unknown, true, &identify);
        assert_eq!((&*nobody.name, nobody.scopes), ("port", Scopes::only(&[])));
    }

    #[test]
    fn who_guesses_waits_longer_each_time_but_never_locks_the_owner_out() {
        let mut gate = gate(false, Some("sesame42"));
        let mut now = 0;
        assert_eq!(gate.unlock("sesame43", now, false, &no_token), Err(Refusal::WrongToken));
        for delay in [1, 2, 4, 8, 16, 30, 30, 30] {
            gate.unlock("sesame43", now, false, &no_token).unwrap_err();
            // Another caller does not wait less, and asking meanwhile makes it no longer.
            gate.lock();
            now += delay * 1_000_000;
            let retry_after = Duration::from_micros(1);
            let locked = gate.unlock("sesame42", now - 1, false, &no_token);
            assert_eq!(locked, Err(Refusal::Locked { retry_after }));
        }
        gate.unlock("sesame42", now, false, &no_token).unwrap();
        assert!(may_write(&gate));
        // The right one ends it.
        gate.unlock("sesame43", now, false, &no_token).unwrap_err();
        gate.unlock("sesame42", now, false, &no_token).unwrap();
    }
}
