//! The closed word lists of the schemas.

#[cfg(feature = "alloc")]
mod serde;

use core::fmt;
use core::str::FromStr;

/// A word that is not on its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownWord {
    /// Every word of the list.
    pub allowed: &'static [&'static str],
}

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected one of ")?;
        for (index, word) in self.allowed.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{word}")?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownWord {}

macro_rules! words {
    ($($(#[$about:meta])* $list:ident { $($(#[$note:meta])* $variant:ident = $word:literal,)+ })+) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $list {
            $($(#[$note])* $variant,)+
        }

        impl $list {
            /// Every value, in the order of the schema.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Every word, in the order of the schema.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word as documents spell it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl FromStr for $list {
            type Err = UnknownWord;

            fn from_str(word: &str) -> Result<Self, UnknownWord> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(UnknownWord { allowed: Self::WORDS }),
                }
            }
        }

        impl fmt::Display for $list {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    )+};
}

words! {
    /// The only release this crate reads and writes.
    OmirVersion {
        /// Release 1.
        R1 = "R1",
    }

    /// Lifecycle class of a record; `memory` where it is absent.
    Kind {
        /// A remembered experience.
        Memory = "memory",
        /// Something intended in several steps.
        Plan = "plan",
        /// An instruction.
        Prompt = "prompt",
        /// A lesson drawn.
        Learning = "learning",
    }

    /// Finer nature of an experience.
    ExperienceType {
        /// Something said.
        Conversation = "conversation",
        /// A choice made.
        Decision = "decision",
        /// Something that went wrong.
        Error = "error",
        /// Something learnt.
        Learning = "learning",
        /// Something found.
        Discovery = "discovery",
        /// A regularity.
        Pattern = "pattern",
        /// Circumstances.
        Context = "context",
        /// Work to do or done.
        Task = "task",
        /// A change to code.
        CodeEdit = "code_edit",
        /// A file read or written.
        FileAccess = "file_access",
        /// A search.
        Search = "search",
        /// A command given.
        Command = "command",
        /// Something perceived.
        Observation = "observation",
        /// Prospective memory: something to do in future.
        Intention = "intention",
    }

    /// Type of an entity; open at the edges through `other` and extensions.
    Label {
        /// A human being.
        Person = "person",
        /// A group with a purpose.
        Organization = "organization",
        /// A place.
        Location = "location",
        /// A technique or machine.
        Technology = "technology",
        /// An idea.
        Concept = "concept",
        /// Something that happens.
        Event = "event",
        /// A day or time.
        Date = "date",
        /// Something made.
        Product = "product",
        /// An ability.
        Skill = "skill",
        /// A discriminative word.
        Keyword = "keyword",
        /// An undertaking.
        Project = "project",
        /// Anything else.
        Other = "other",
    }

    /// The kind of input that an episode came from.
    EpisodeSource {
        /// Something said to the system.
        Message = "message",
        /// Something written.
        Document = "document",
        /// Something that happened.
        Event = "event",
        /// Something perceived.
        Observation = "observation",
    }

    /// The normalization behind `normalizedStrength` (draft).
    NormalizationScheme {
        /// Activation divided among associates.
        Fan = "fan",
        /// Normalized exponentials.
        Softmax = "softmax",
        /// Raw, not portable.
        None = "none",
    }

    /// The edges `normalizedStrength` sums over (draft).
    NormalizedOver {
        /// A node's outgoing edges.
        Source = "source",
        /// A node's incoming edges.
        Target = "target",
    }

    /// Family of a familiarity sketch (draft).
    SketchKind {
        /// A Bloom filter.
        Bloom = "bloom",
        /// A count-min sketch.
        CountMin = "count_min",
    }

    /// Domain of a familiarity sketch (draft).
    SketchDomain {
        /// Entities.
        Entity = "entity",
        /// Retrieval cues.
        Cue = "cue",
        /// Contents.
        Content = "content",
    }
}
