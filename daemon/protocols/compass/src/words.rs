//! The closed word lists of COMPASS.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A closed list of words, one for each variant.
pub(crate) trait Word: Copy + PartialEq + 'static {
    /// All of them.
    const ALL: &'static [Self];

    /// Returns the word.
    fn as_str(self) -> &'static str;

    /// Returns the variant of this word.
    fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.as_str() == name)
    }
}

macro_rules! words {
    ($($(#[$about:meta])* $list:ident { $($(#[$note:meta])* $variant:ident = $word:literal,)+ })+) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub(crate) enum $list {
            $($(#[$note])* #[serde(rename = $word)] $variant,)+
        }

        impl Word for $list {
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl fmt::Display for $list {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    )+};
}

words! {
    /// The kind of a memory, and so how long it is meant to last.
    MemoryType {
        /// For an hour.
        Working = "working",
        /// Something that happened.
        Episodic = "episodic",
        /// Something that holds.
        Semantic = "semantic",
        /// A way to do something.
        Procedural = "procedural",
    }

    /// The kind of a stretch of reasoning.
    StageType {
        /// A plan is made.
        Planning = "planning",
        /// It is done.
        Execution = "execution",
        /// The causes of a failure are looked for.
        Reflection = "reflection",
        /// Is it as it should be.
        Verification = "verification",
    }

    /// The state of a task.
    TaskStatus {
        /// It is worked on.
        Active = "active",
        /// It ended well.
        Completed = "completed",
        /// It ended otherwise.
        Failed = "failed",
    }

    /// The kind of an error.
    ErrorType {
        /// Something was made up.
        Hallucination = "hallucination",
        /// Something was not known.
        MissingInfo = "missing_info",
        /// The wrong thing was done.
        IncorrectAction = "incorrect_action",
        /// The context lost what mattered.
        ContextDegradation = "context_degradation",
    }

    /// The kind of a pattern among errors.
    PatternType {
        /// One type, often.
        Frequency = "frequency",
        /// One type after another.
        Sequence = "sequence",
        /// Alike circumstances.
        Context = "context",
        /// Found by a model.
        Extracted = "extracted",
    }

    /// The fate of memories that are pruned.
    PruneMode {
        /// They are put aside, and found when asked for.
        Archive = "archive",
        /// They are forgotten.
        Forget = "forget",
    }

    /// The choice of memories to prune.
    PruneStrategy {
        /// Those above the capacity, of least worth.
        Capacity = "capacity",
        /// Those whose time is over.
        Expired = "expired",
        /// Those of little relevance.
        Relevance = "relevance",
    }

    /// The level that a context is made of.
    Level {
        /// As it fits.
        Auto = "auto",
        /// Memories as they were stored.
        Raw = "raw",
        /// Summaries of stages.
        Stage = "stage",
        /// The summary of the task.
        Task = "task",
    }

    /// The form of a context.
    Format {
        /// A text with headings.
        Markdown = "markdown",
        /// An object with a member for each section.
        Json = "json",
    }
}

impl ErrorType {
    /// Returns the severity of an error that states none.
    pub(crate) fn severity(self) -> f64 {
        match self {
            Self::Hallucination => 0.8,
            Self::MissingInfo => 0.5,
            Self::IncorrectAction => 0.7,
            Self::ContextDegradation => 0.6,
        }
    }
}
