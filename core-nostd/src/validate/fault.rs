//! Faults: where, which rule, and a sentence for a person.

use alloc::string::String;
use core::fmt;

/// The level of conformance that is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Level {
    /// The document rules.
    #[default]
    Core,
    /// The document rules, `meta` on every resource, and unique ids as a hard rule.
    Strict,
}

/// The consequence of a fault for the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Conformant, but probably not meant.
    Warning,
    /// Not conformant.
    Error,
}

impl Severity {
    /// The word as reports spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The rule a fault breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FaultCode {
    /// E000: a document that cannot be decoded.
    Unreadable,
    /// E100: an entry that is not an object.
    NotAnObject,
    /// E101: an entry without one of the four types.
    UnknownType,
    /// E110: a fault in the envelope of the bundle.
    Envelope,
    /// E111: the document is not a bundle.
    NotABundle,
    /// E120: an entry against its schema.
    Schema,
    /// E200: a reference to what is not there.
    Dangling,
    /// E201: a reference to a resource of the wrong type.
    WrongTarget,
    /// W202: an id given twice within a type.
    DuplicateId,
    /// E250: the normalised strengths of a fan of edges sum to more than one (draft).
    EdgeSum,
    /// E251: a normalised strength without its regime (draft).
    EdgeRegime,
    /// E300: a bundle of another release.
    BundleVersion,
    /// E301: metadata without `omirVersion: "R1"`.
    MetaVersion,
    /// E302: no metadata, where the strict level asks for it.
    MetaRequired,
    /// I302: no metadata.
    MetaAbsent,
    /// E400: a spatial pose that is none.
    Pose,
    /// E400: against a rule of a profile that the resource claims.
    Profile,
    /// E401: a claimed profile that is unknown here, where profiles are required.
    UnknownProfile,
    /// W402: a required profile that is not claimed.
    ProfileNotClaimed,
    /// W403: against an advice of a profile that the resource claims.
    ProfileAdvice,
}

impl FaultCode {
    /// Every code, in the order of declaration; two of them share E400.
    pub const ALL: [Self; 20] = [
        Self::Unreadable,
        Self::NotAnObject,
        Self::UnknownType,
        Self::Envelope,
        Self::NotABundle,
        Self::Schema,
        Self::Dangling,
        Self::WrongTarget,
        Self::DuplicateId,
        Self::EdgeSum,
        Self::EdgeRegime,
        Self::BundleVersion,
        Self::MetaVersion,
        Self::MetaRequired,
        Self::MetaAbsent,
        Self::Pose,
        Self::Profile,
        Self::UnknownProfile,
        Self::ProfileNotClaimed,
        Self::ProfileAdvice,
    ];

    /// The code as reports spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unreadable => "E000",
            Self::NotAnObject => "E100",
            Self::UnknownType => "E101",
            Self::Envelope => "E110",
            Self::NotABundle => "E111",
            Self::Schema => "E120",
            Self::Dangling => "E200",
            Self::WrongTarget => "E201",
            Self::DuplicateId => "W202",
            Self::BundleVersion => "E300",
            Self::MetaVersion => "E301",
            Self::MetaRequired => "E302",
            Self::MetaAbsent => "I302",
            Self::EdgeSum => "E250",
            Self::EdgeRegime => "E251",
            Self::Pose | Self::Profile => "E400",
            Self::UnknownProfile => "E401",
            Self::ProfileNotClaimed => "W402",
            Self::ProfileAdvice => "W403",
        }
    }

    /// Returns true if a fault of this kind keeps a document from being Core-conformant: the errors of the core
    /// level, which what strictness or a profile adds is not.
    pub const fn breaks_core(self) -> bool {
        let of_profiles = matches!(self, Self::Pose | Self::Profile | Self::UnknownProfile);
        matches!(self.severity(), Severity::Error)
            && !of_profiles
            && !matches!(self, Self::MetaRequired)
    }

    /// Meaning of the code's first letter.
    const fn severity(self) -> Severity {
        match self {
            Self::DuplicateId | Self::ProfileNotClaimed | Self::ProfileAdvice => Severity::Warning,
            Self::MetaAbsent => Severity::Info,
            _ => Severity::Error,
        }
    }
}

impl fmt::Display for FaultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One thing that is wrong with a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// JSON Pointer to it; the document itself is `/`.
    pub pointer: String,
    /// The rule.
    pub code: FaultCode,
    /// The finding, and what is allowed.
    pub message: String,
    severity: Severity,
}

impl Fault {
    /// A fault of the severity its code has at the core level.
    pub fn new(pointer: impl Into<String>, code: FaultCode, message: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), code, message: message.into(), severity: code.severity() }
    }

    /// The same fault as the strict level judges it: a repeated id is an error.
    pub(super) fn at_level(mut self, level: Level) -> Self {
        if level == Level::Strict && self.code == FaultCode::DuplicateId {
            self.severity = Severity::Error;
        }
        self
    }

    /// Its consequence for the document.
    pub fn severity(&self) -> Severity {
        self.severity
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.code, self.pointer, self.message)
    }
}

impl core::error::Error for Fault {}
