//! Counts of the findings that go by: all that a verdict needs of them.

use omir_core::validate::{Fault, Level, Severity};

/// A group of rules, as reports name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    Structural,
    ReferenceIntegrity,
    VersionPresence,
    Profile,
}

impl Check {
    pub(super) const ALL: [Self; 4] =
        [Self::Structural, Self::ReferenceIntegrity, Self::VersionPresence, Self::Profile];

    /// The group of a fault, which the first digit of its code tells.
    pub(super) fn of(fault: &Fault) -> Self {
        match fault.code.as_str().as_bytes().get(1) {
            Some(b'2') => Self::ReferenceIntegrity,
            Some(b'3') => Self::VersionPresence,
            Some(b'4') => Self::Profile,
            _ => Self::Structural,
        }
    }

    /// The key in a JSON report.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Structural => "structural",
            Self::ReferenceIntegrity => "referenceIntegrity",
            Self::VersionPresence => "versionPresence",
            Self::Profile => "profile",
        }
    }

    /// The name for reading.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Structural => "structural",
            Self::ReferenceIntegrity => "reference integrity",
            Self::VersionPresence => "version presence",
            Self::Profile => "profile",
        }
    }
}

/// Counts of findings.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) errors: usize,
    pub(super) warnings: usize,
    pub(super) remarks: usize,
    /// True if a rule of the core is broken, whatever else was asked for.
    pub(super) breaks_core: bool,
    /// True if something counts against each of [`Check::ALL`].
    failed: [bool; Check::ALL.len()],
}

impl Tally {
    /// Counts one fault of a document judged at `level`.
    pub(super) fn add(&mut self, fault: &Fault, level: Level) {
        let severity = fault.severity();
        match severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
            Severity::Info => self.remarks += 1,
        }
        self.breaks_core |= fault.code.breaks_core();
        let counts = match level {
            Level::Core => severity == Severity::Error,
            Level::Strict => severity >= Severity::Warning,
        };
        self.failed[Check::of(fault) as usize] |= counts;
    }

    /// Returns true if something counts against that group.
    pub(super) fn has_failed(&self, check: Check) -> bool {
        self.failed[check as usize]
    }

    /// Returns true if nothing counts against the document.
    pub(super) fn passes(&self) -> bool {
        !self.failed.contains(&true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use omir_core::validate::FaultCode;

    fn tally(codes: &[FaultCode], level: Level) -> Tally {
        let mut tally = Tally::default();
        codes.iter().for_each(|&code| tally.add(&Fault::new("/", code, "m"), level));
        tally
    }

    #[test]
    fn strictness_fails_what_stays_core_conformant() {
        for code in [FaultCode::DuplicateId, FaultCode::ProfileNotClaimed, FaultCode::ProfileAdvice]
        {
            assert!(tally(&[code], Level::Core).passes());
            assert!(!tally(&[code], Level::Strict).passes());
            assert!(!tally(&[code], Level::Strict).breaks_core);
        }
        for code in [FaultCode::MetaRequired, FaultCode::Profile, FaultCode::UnknownProfile] {
            let tally = tally(&[code], Level::Core);
            assert!(!tally.passes() && !tally.breaks_core);
        }
        let tally = tally(&[FaultCode::Dangling, FaultCode::MetaAbsent], Level::Strict);
        assert!(tally.breaks_core && tally.has_failed(Check::ReferenceIntegrity));
        assert!(!tally.has_failed(Check::VersionPresence));
        assert_eq!((tally.errors, tally.warnings, tally.remarks), (1, 0, 1));
    }
}
