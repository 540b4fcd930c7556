//! Quality of service, and the short text that tokens carry of it.
//!
//! The text is `qos_to_keyexpr` of rmw_zenoh_cpp (`detail/liveliness_utils.cpp`):
//! `reliability:durability:history,depth:deadline s,ns:lifespan s,ns:liveliness,lease s,ns`, each
//! field left empty where it is rmw_zenoh's default (`detail/qos.cpp`).

use std::fmt;
use std::str::FromStr;

/// The depth that an empty field means, and that a depth of 0 becomes.
const DEFAULT_DEPTH: u64 = 42;

/// The text in a token for the quality of service of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Qos {
    /// The rule for data that is lost under way.
    pub reliability: Reliability,
    /// The rule for subscriptions that come late.
    pub durability: Durability,
    /// The rule for messages that are kept.
    pub history: History,
    /// Messages that are kept under [`History::KeepLast`]; never 0.
    pub depth: u64,
    /// The longest time between two messages.
    pub deadline: Period,
    /// The age at which a message is no longer valid.
    pub lifespan: Period,
    /// The party that says that the endpoint is alive.
    pub liveliness: Liveliness,
    /// The longest time between two such signs of life.
    pub lease: Period,
}

/// The rule for data that is lost under way. Numbers of `rmw/types.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reliability {
    /// 1.
    Reliable,
    /// 2.
    BestEffort,
}

/// The rule for subscriptions that come late. Numbers of `rmw/types.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// 1: the publisher keeps its last messages for subscribers that come late ("latched").
    TransientLocal,
    /// 2.
    Volatile,
}

/// The rule for messages that are kept. Numbers of `rmw/types.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// 1.
    KeepLast,
    /// 2.
    KeepAll,
}

/// The party that says that an endpoint is alive. Numbers of `rmw/types.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveliness {
    /// 1: the token does.
    Automatic,
    /// 3.
    ManualByTopic,
}

/// A span of time as rmw has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    /// Whole seconds.
    pub seconds: u64,
    /// Nanoseconds on top of them.
    pub nanoseconds: u64,
}

impl Period {
    /// `RMW_DURATION_INFINITE`: 2⁶³−1 ns.
    pub const INFINITE: Self = Self { seconds: 9_223_372_036, nanoseconds: 854_775_807 };
}

impl Qos {
    /// Default of rcl for topics: reliable, volatile, the last 10.
    pub const DEFAULT: Self = Self {
        reliability: Reliability::Reliable,
        durability: Durability::Volatile,
        history: History::KeepLast,
        depth: 10,
        deadline: Period::INFINITE,
        lifespan: Period::INFINITE,
        liveliness: Liveliness::Automatic,
        lease: Period::INFINITE,
    };
    /// `rmw_qos_profile_services_default`.
    pub const SERVICES: Self = Self::DEFAULT;
    /// `rmw_qos_profile_sensor_data`: best effort, the last 5.
    pub const SENSOR_DATA: Self =
        Self { reliability: Reliability::BestEffort, depth: 5, ..Self::DEFAULT };
    /// A latched topic: reliable, transient local, the last one.
    pub const LATCHED: Self =
        Self { durability: Durability::TransientLocal, depth: 1, ..Self::DEFAULT };
    /// Meaning of empty fields of a token.
    const IN_TOKENS: Self = Self { depth: DEFAULT_DEPTH, ..Self::DEFAULT };

    /// The same, keeping the last `depth` messages; 0 means rmw_zenoh's default of 42.
    #[must_use]
    pub const fn keep_last(mut self, depth: u64) -> Self {
        self.history = History::KeepLast;
        self.depth = if depth == 0 { DEFAULT_DEPTH } else { depth };
        self
    }

    /// Returns true if a subscriber that comes late gets what was published before.
    #[must_use]
    pub fn is_latched(&self) -> bool {
        self.durability == Durability::TransientLocal
    }
}

impl Default for Qos {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Writes `$value` unless it is the default.
struct Unless<T>(T, T);

impl<T: PartialEq + fmt::Display> fmt::Display for Unless<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == self.1 { Ok(()) } else { write!(f, "{}", self.0) }
    }
}

impl fmt::Display for Qos {
    /// The text of a token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let d = Self::IN_TOKENS;
        let period = |p: Period, d: Period| {
            (Unless(p.seconds, d.seconds), Unless(p.nanoseconds, d.nanoseconds))
        };
        let (deadline, lifespan, lease) = (
            period(self.deadline, d.deadline),
            period(self.lifespan, d.lifespan),
            period(self.lease, d.lease),
        );
        write!(
            f,
            "{}:{}:{},{}:{},{}:{},{}:{},{},{}",
            Unless(self.reliability as u8 + 1, 1),
            Unless(self.durability as u8 + 1, 2),
            Unless(self.history as u8 + 1, 1),
            Unless(self.depth, d.depth),
            deadline.0,
            deadline.1,
            lifespan.0,
            lifespan.1,
            Unless(if self.liveliness == Liveliness::Automatic { 1 } else { 3 }, 1),
            lease.0,
            lease.1,
        )
    }
}

/// A text that is no quality of service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QosError {
    /// It has not six fields.
    Fields {
        /// The text.
        qos: String,
    },
    /// A part is no number.
    Number {
        /// The part.
        digits: String,
        /// The text.
        qos: String,
    },
}

impl fmt::Display for QosError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fields { qos } => write!(f, "{qos:?} is not the six fields of a QoS"),
            Self::Number { digits, qos } => {
                write!(f, "{digits:?} in the QoS {qos:?} is not a number")
            }
        }
    }
}

impl std::error::Error for QosError {}

impl FromStr for Qos {
    type Err = QosError;

    /// Reads the text of a token. "System default" (0), "best available" and the numbers that rmw
    /// calls unknown are read as rmw_zenoh's default, as `QoS::best_available_qos` does.
    fn from_str(text: &str) -> Result<Self, QosError> {
        let fields: Vec<Vec<&str>> = text.split(':').map(|f| f.split(',').collect()).collect();
        let lengths: Vec<usize> = fields.iter().map(Vec::len).collect();
        if lengths != [1, 1, 2, 2, 2, 3] {
            return Err(QosError::Fields { qos: text.to_owned() });
        }
        let at = |field: usize, part: usize| fields[field][part];
        let number = |field: usize, part: usize, or: u64| match at(field, part) {
            "" => Ok(or),
            digits => digits
                .parse::<u64>()
                .map_err(|_| QosError::Number { digits: digits.to_owned(), qos: text.to_owned() }),
        };
        let period = |field: usize, part: usize| -> Result<Period, QosError> {
            let d = Period::INFINITE;
            Ok(Period {
                seconds: number(field, part, d.seconds)?,
                nanoseconds: number(field, part + 1, d.nanoseconds)?,
            })
        };
        let d = Self::IN_TOKENS;
        Ok(Self {
            reliability: match number(0, 0, 1)? {
                2 => Reliability::BestEffort,
                _ => d.reliability,
            },
            durability: match number(1, 0, 2)? {
                1 => Durability::TransientLocal,
                _ => d.durability,
            },
            history: match number(2, 0, 1)? {
                2 => History::KeepAll,
                _ => d.history,
            },
            depth: number(2, 1, d.depth)?,
            deadline: period(3, 0)?,
            lifespan: period(4, 0)?,
            liveliness: match number(5, 0, 1)? {
                3 => Liveliness::ManualByTopic,
                _ => d.liveliness,
            },
            lease: period(5, 1)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_texts() {
        // docs/design.md of rmw_zenoh: a subscription, the talker, a service.
        assert_eq!(Qos::DEFAULT.to_string(), "::,10:,:,:,,");
        assert_eq!(Qos::DEFAULT.keep_last(7).to_string(), "::,7:,:,:,,");
        assert_eq!(Qos::SERVICES.to_string(), "::,10:,:,:,,");
        assert_eq!(Qos::DEFAULT.keep_last(0).to_string(), "::,:,:,:,,");
        assert_eq!(Qos::LATCHED.to_string(), ":1:,1:,:,:,,");
        assert_eq!(Qos::SENSOR_DATA.to_string(), "2::,5:,:,:,,");
        let all = Qos {
            history: History::KeepAll,
            deadline: Period { seconds: 1, nanoseconds: 0 },
            liveliness: Liveliness::ManualByTopic,
            lease: Period { seconds: 2, ..Period::INFINITE },
            ..Qos::DEFAULT
        };
        assert_eq!(all.to_string(), "::2,10:1,0:,:3,2,");
    }

    #[test]
    fn what_is_written_is_read_back() {
        let odd = Qos {
            reliability: Reliability::BestEffort,
            lifespan: Period { seconds: 0, nanoseconds: 5 },
            ..Qos::LATCHED
        };
        for qos in [Qos::DEFAULT, Qos::LATCHED, Qos::SENSOR_DATA, odd, Qos::DEFAULT.keep_last(42)] {
            assert_eq!(qos.to_string().parse(), Ok(qos));
        }
    }

    #[test]
    fn defaults_may_be_written_out_and_what_rmw_calls_default_is_the_default() {
        // Other implementations write every number.
        assert_eq!("1:2:1,10:,:,:,,".parse(), Ok(Qos::DEFAULT));
        assert_eq!("0:0:0,10:,:,:0,,".parse(), Ok(Qos::DEFAULT));
        assert_eq!("4:4:,10:,:,:5,,".parse(), Ok(Qos::DEFAULT));
    }

    #[test]
    fn what_is_no_qos_is_refused() {
        for text in ["", "::,10", "::10:,:,:,,", "x::,10:,:,:,,", "::,-1:,:,:,,", "::,10:,:,:,,:"] {
            assert!(text.parse::<Qos>().is_err(), "{text}");
        }
    }
}
