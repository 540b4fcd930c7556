//! Findings of a look at a store.

use std::fmt;

/// The meaning of a finding for acknowledged memories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Normal after a power cut, or of no consequence.
    Info,
    /// Something is wrong, and every acknowledged memory is still there.
    Fault,
    /// Something acknowledged is gone, changed, or not served as things stand.
    Loss,
}

impl Severity {
    /// In a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Fault => "fault",
            Self::Loss => "loss",
        }
    }
}

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// Nothing is wrong.
    Sound,
    /// There are faults, and nothing acknowledged is lost.
    Faulty,
    /// Something acknowledged is lost or unreadable.
    Lossy,
}

impl Verdict {
    /// The verdict on findings.
    pub fn of(findings: &[Finding]) -> Self {
        match findings.iter().map(|finding| finding.severity).max() {
            None | Some(Severity::Info) => Self::Sound,
            Some(Severity::Fault) => Self::Faulty,
            Some(Severity::Loss) => Self::Lossy,
        }
    }

    /// In a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::Faulty => "faulty",
            Self::Lossy => "lossy",
        }
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $word:literal, $severity:ident;)*) => {
        /// The kinds of findings.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Kind {
            $($(#[$doc])* $name,)*
        }

        impl Kind {
            /// The name a script can branch on.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// Its severity unless circumstances say better.
            pub(super) fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)* }
            }
        }
    };
}

kinds! {
    /// The disk gives errors for part of a file, or for all of it.
    DiskError = "disk-error", Loss;
    /// Part of the file is damaged, and the next start restores it.
    Repairable = "repairable", Fault;
    /// The daemon could not read the segment and would set it aside.
    SegmentUnreadable = "segment-unreadable", Loss;
    /// There is no segment with this number.
    SegmentMissing = "segment-missing", Fault;
    /// Memories in these bytes of a segment cannot be read.
    BytesLost = "bytes-lost", Loss;
    /// Of memories in this segment it is not known when and as which version they were recorded,
    /// nor what else was superseded or forgotten with them.
    HistoryLost = "history-lost", Loss;
    /// The segment is no conformant Bundle.
    BundleInvalid = "bundle-invalid", Fault;
    /// The segment's bytes are not the ones that were signed. What of its memories does not pass its
    /// checksum is named beside.
    DigestDiffers = "digest-differs", Fault;
    /// The segment has no sidecar to restore it from.
    SidecarMissing = "sidecar-missing", Info;
    /// The sidecar of the segment is damaged.
    SidecarDamaged = "sidecar-damaged", Fault;
    /// The segment has no signature.
    SignatureMissing = "signature-missing", Fault;
    /// The signature file is none.
    SignatureUnreadable = "signature-unreadable", Fault;
    /// The signature does not verify, or is of another segment.
    SignatureBad = "signature-bad", Fault;
    /// The segment was signed by another key than this device's.
    ForeignKey = "foreign-key", Fault;
    /// The segment was signed by a key that this device, or one whose memories it goes on with, had
    /// before.
    FormerKey = "former-key", Info;
    /// Another key signs from this segment on.
    KeyChanged = "key-changed", Info;
    /// The folder is a backup.
    Backup = "backup", Info;
    /// The folder was restored from a backup, and no daemon has had it since.
    Restored = "restored", Info;
    /// The segment was not signed as the successor of the one before it.
    ChainBroken = "chain-broken", Fault;
    /// The device key is missing.
    KeyMissing = "key-missing", Fault;
    /// The device key cannot be read; a start repairs it or makes a new one.
    KeyUnreadable = "key-unreadable", Fault;
    /// The two halves of the device key do not belong together.
    KeyMismatch = "key-mismatch", Fault;
    /// There is no log, though a daemon always leaves one; it may have held something.
    LogMissing = "log-missing", Fault;
    /// The header of a log is damaged, or of another log.
    LogHeader = "log-header", Fault;
    /// Neither header nor frames of a log can be read.
    LogUnreadable = "log-unreadable", Loss;
    /// Bytes of a log that were acknowledged and cannot be read any more.
    FramesLost = "frames-lost", Loss;
    /// The newest version of something is lost, and known by its second copy alone.
    VersionLost = "version-lost", Loss;
    /// A transaction passed its checksum and cannot be understood.
    TransactionUnreadable = "transaction-unreadable", Loss;
    /// Transactions are missing between those that are there.
    SequenceGap = "sequence-gap", Loss;
    /// The end of a log is torn by a power cut, or rotted: nothing tells which.
    TornEnd = "torn-end", Info;
    /// Transactions of a log that was given up after a failed sync; never acknowledged.
    Abandoned = "abandoned", Info;
    /// All of the file is held elsewhere.
    HeldElsewhere = "held-elsewhere", Info;
    /// Sealing was cut short; the log still holds everything.
    UnfinishedSeal = "unfinished-seal", Info;
    /// Compaction was cut short; either the new segment or the old ones hold everything.
    UnfinishedCompaction = "unfinished-compaction", Info;
    /// A start of the daemon set the file aside as damaged.
    SetAside = "set-aside", Fault;
    /// A temporary file is left over.
    Temporary = "temporary", Info;
    /// A signature without a segment is left over.
    LeftoverSignature = "leftover-signature", Info;
    /// A witness without its log.
    LeftoverWitness = "leftover-witness", Info;
    /// A file that does not belong here.
    Stranger = "stranger", Info;
    /// There is no index; the next start rebuilds it.
    IndexMissing = "index-missing", Info;
}

impl Kind {
    /// Returns true if it names something that a repair cannot bring back.
    pub(crate) fn is_unrecoverable(self) -> bool {
        matches!(
            self,
            Self::DiskError
                | Self::BytesLost
                | Self::HistoryLost
                | Self::LogUnreadable
                | Self::FramesLost
                | Self::VersionLost
                | Self::TransactionUnreadable
                | Self::SequenceGap
        )
    }
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its severity.
    pub severity: Severity,
    /// Its kind.
    pub kind: Kind,
    /// The file, as a path within the data folder.
    pub file: String,
    /// First byte it concerns.
    pub offset: Option<u64>,
    /// How many bytes it concerns.
    pub len: Option<u64>,
    /// JSON Pointer into the segment's Bundle.
    pub pointer: Option<String>,
    /// The transactions it concerns, first and last.
    pub transactions: Option<(u64, u64)>,
    /// Names read in damaged bytes: `Type/id`, or the id where the type is lost.
    pub names: Vec<String>,
    /// For a person.
    pub message: String,
}

impl Finding {
    pub(super) fn new(kind: Kind, file: &str, message: impl Into<String>) -> Self {
        Self {
            severity: kind.severity(),
            kind,
            file: file.to_owned(),
            offset: None,
            len: None,
            pointer: None,
            transactions: None,
            names: Vec::new(),
            message: message.into(),
        }
    }

    pub(super) fn with_severity(self, severity: Severity) -> Self {
        Self { severity, ..self }
    }

    pub(super) fn at(self, offset: usize) -> Self {
        Self { offset: Some(offset as u64), ..self }
    }

    pub(super) fn of_len(self, len: usize) -> Self {
        Self { len: Some(len as u64), ..self }
    }

    /// Returns true if it is a loss that a repair cannot make good.
    pub(crate) fn is_unrecoverable(&self) -> bool {
        self.severity == Severity::Loss && self.kind.is_unrecoverable()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        match (self.offset, self.len) {
            (Some(offset), Some(len)) => write!(f, ", {len} bytes from byte {offset}")?,
            (Some(offset), None) => write!(f, ", byte {offset}")?,
            _ => {}
        }
        if let Some(pointer) = &self.pointer {
            write!(f, " ({pointer})")?;
        }
        write!(f, ": {}", self.message)?;
        if !self.names.is_empty() {
            write!(f, "; read there: {}", self.names.join(", "))?;
        }
        Ok(())
    }
}
