//! The ROS distributions that `rmw_zenoh_cpp` exists for, and what differs between them on the wire.

use std::fmt;
use std::str::FromStr;

use crate::rules::DISTRIBUTIONS;

/// A ROS 2 distribution as far as its wire format is concerned.
///
/// | | type hash in keys and tokens | service `get_type_description` |
/// |---|---|---|
/// | Humble (`rmw_zenoh_cpp` 0.1) | the text `TypeHashNotSupported` | no |
/// | Jazzy (0.2.4 and newer), Kilted (0.6), Lyrical and Rolling (0.10) | `RIHS01_…` (REP-2016) | yes |
///
/// Iron reached its end of life before `rmw_zenoh_cpp` was released for it. Attachments and QoS are
/// the same everywhere since 0.2.4 (Humble: 0.1.2); older releases named each field of the attachment
/// (`CHANGELOG.rst` of rmw_zenoh_cpp: 0.2.2 the advanced publisher, 0.2.4 the attachment) and are
/// refused with that reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Distribution {
    /// Humble Hawksbill: no type hashes.
    Humble,
    /// Jazzy Jalisco.
    #[default]
    Jazzy,
    /// Kilted Kaiju: on the wire as Jazzy.
    Kilted,
    /// Lyrical Luth: on the wire as Jazzy.
    Lyrical,
    /// Rolling Ridley: on the wire as the newest release.
    Rolling,
}

/// Text of Humble in the place of a type hash.
pub const NO_HASH: &str = "TypeHashNotSupported";

impl Distribution {
    /// Text of the type hash in keys and tokens.
    #[must_use]
    pub fn hash(self, rihs: &str) -> &str {
        match self {
            Self::Humble => NO_HASH,
            Self::Jazzy | Self::Kilted | Self::Lyrical | Self::Rolling => rihs,
        }
    }

    /// Returns true if nodes can be asked for the description of a type.
    #[must_use]
    pub fn describes_types(self) -> bool {
        self != Self::Humble
    }

    /// The name in the configuration, in small letters.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Humble => "humble",
            Self::Jazzy => "jazzy",
            Self::Kilted => "kilted",
            Self::Lyrical => "lyrical",
            Self::Rolling => "rolling",
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no [`Distribution`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownDistribution(String);

impl fmt::Display for UnknownDistribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = DISTRIBUTIONS.join(", ");
        write!(f, "{:?} is no distribution that speaks rmw_zenoh: use {known}", self.0)
    }
}

impl std::error::Error for UnknownDistribution {}

impl FromStr for Distribution {
    type Err = UnknownDistribution;

    fn from_str(text: &str) -> Result<Self, UnknownDistribution> {
        match text {
            "humble" => Ok(Self::Humble),
            "jazzy" => Ok(Self::Jazzy),
            "kilted" => Ok(Self::Kilted),
            "lyrical" => Ok(Self::Lyrical),
            "rolling" => Ok(Self::Rolling),
            other => Err(UnknownDistribution(other.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_humble_goes_without_a_hash() {
        assert_eq!(Distribution::Humble.hash("RIHS01_ab"), "TypeHashNotSupported");
        assert_eq!(Distribution::Jazzy.hash("RIHS01_ab"), "RIHS01_ab");
        assert!(!Distribution::Humble.describes_types());
    }

    #[test]
    fn a_name_is_read_back_and_another_is_refused_with_the_choice() {
        for name in DISTRIBUTIONS {
            let distribution: Distribution = name.parse().unwrap();
            assert_eq!(distribution.name(), *name);
            assert_eq!(distribution.describes_types(), *name != "humble");
        }
        let refused = "iron".parse::<Distribution>().unwrap_err().to_string();
        assert!(refused.contains("humble, jazzy, kilted, lyrical, rolling"), "{refused}");
    }
}
