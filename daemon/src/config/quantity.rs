//! Sizes and times of the configuration: a plain number in the unit of the key, or a text with its own unit.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use omir_core::quantity::{QuantityError, parse_duration, parse_size};
use serde::de::{Deserializer, Error, Visitor};

/// Reads a size: a number of bytes, or `"8MiB"`.
pub fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    read::<Bytes, D>(from)
}

/// The same where it bounds memory.
pub fn usize_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
    let fits = |bytes| {
        usize::try_from(bytes).map_err(|_| D::Error::custom("more than this machine can address"))
    };
    bytes(from)?.map(fits).transpose()
}

/// Reads a time: a number of seconds, or `"3d"`.
pub fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    read::<Seconds, D>(from)
}

/// Reads a time: a number of milliseconds, or `"2s"`.
pub fn millis<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    read::<Millis, D>(from)
}

/// Reads a time: a number of days, or `"4w"`.
pub fn days<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    read::<Days, D>(from)
}

/// Reads a time: a number of hours, or `"90min"`.
pub fn hours<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    read::<Hours, D>(from)
}

/// A text that is no quantity of its key.
#[derive(Debug)]
enum NotAQuantity {
    /// It is no size or time at all.
    Unread(QuantityError),
    /// It is no multiple of the key's unit.
    NotWhole { given: String, unit: &'static str },
}

impl From<QuantityError> for NotAQuantity {
    fn from(error: QuantityError) -> Self {
        Self::Unread(error)
    }
}

impl fmt::Display for NotAQuantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unread(error) => error.fmt(f),
            Self::NotWhole { given, unit } => write!(f, "{given:?} is not in {unit}"),
        }
    }
}

/// A unit that a key counts in.
trait Unit {
    type Number;
    const EXPECTED: &'static str;
    fn of_text(text: &str) -> Result<Self::Number, NotAQuantity>;
    fn of_whole(number: u64) -> Self::Number;
    fn of_float(number: f64) -> Option<Self::Number>;
}

struct Bytes;
struct Seconds;
struct Millis;
struct Days;
struct Hours;

impl Unit for Bytes {
    type Number = u64;
    const EXPECTED: &'static str = "a size such as \"8MiB\", or a whole number of bytes";
    fn of_text(text: &str) -> Result<u64, NotAQuantity> {
        Ok(parse_size(text)?)
    }
    fn of_whole(number: u64) -> u64 {
        number
    }
    fn of_float(_: f64) -> Option<u64> {
        None
    }
}

/// A unit of time that a key counts in whole numbers.
trait WholeTime {
    const LENGTH: Duration;
    /// Its name in complaints.
    const NAME: &'static str;
    /// The forms of a value.
    const FORMS: &'static str;
}

impl WholeTime for Seconds {
    const LENGTH: Duration = Duration::from_secs(1);
    const NAME: &'static str = "whole seconds";
    const FORMS: &'static str = "a time such as \"90min\" or \"3d\", or a whole number of seconds";
}

impl WholeTime for Millis {
    const LENGTH: Duration = Duration::from_millis(1);
    const NAME: &'static str = "whole milliseconds";
    const FORMS: &'static str =
        "a time such as \"500ms\" or \"2s\", or a whole number of milliseconds";
}

impl WholeTime for Days {
    const LENGTH: Duration = Duration::from_secs(86_400);
    const NAME: &'static str = "whole days";
    const FORMS: &'static str = "a time such as \"30d\", or a whole number of days";
}

impl<T: WholeTime> Unit for T {
    type Number = u64;
    const EXPECTED: &'static str = T::FORMS;
    fn of_text(text: &str) -> Result<u64, NotAQuantity> {
        whole(text, T::LENGTH, T::NAME)
    }
    fn of_whole(number: u64) -> u64 {
        number
    }
    fn of_float(_: f64) -> Option<u64> {
        None
    }
}

impl Unit for Hours {
    type Number = f64;
    const EXPECTED: &'static str = "a time such as \"90min\" or \"3d\", or a number of hours";
    fn of_text(text: &str) -> Result<f64, NotAQuantity> {
        Ok(parse_duration(text)?.as_secs_f64() / 3600.0)
    }
    fn of_whole(number: u64) -> f64 {
        number as f64
    }
    fn of_float(number: f64) -> Option<f64> {
        Some(number)
    }
}

/// A time counted in `unit`, which it must be a multiple of.
fn whole(text: &str, unit: Duration, name: &'static str) -> Result<u64, NotAQuantity> {
    let nanos = parse_duration(text)?.as_nanos();
    let count =
        u64::try_from(nanos / unit.as_nanos()).ok().filter(|_| nanos % unit.as_nanos() == 0);
    count.ok_or_else(|| NotAQuantity::NotWhole { given: text.to_owned(), unit: name })
}

fn read<'de, U: Unit, D: Deserializer<'de>>(from: D) -> Result<Option<U::Number>, D::Error> {
    struct Quantity<U>(PhantomData<U>);

    impl<U: Unit> Visitor<'_> for Quantity<U> {
        type Value = U::Number;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(U::EXPECTED)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<U::Number, E> {
            U::of_text(text).map_err(E::custom)
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<U::Number, E> {
            let whole = u64::try_from(number).map(U::of_whole);
            whole.map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(number), &self))
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<U::Number, E> {
            Ok(U::of_whole(number))
        }

        fn visit_f64<E: Error>(self, number: f64) -> Result<U::Number, E> {
            let found = serde::de::Unexpected::Float(number);
            U::of_float(number).ok_or_else(|| E::invalid_type(found, &self))
        }
    }

    from.deserialize_any(Quantity::<U>(PhantomData)).map(Some)
}

#[cfg(test)]
mod tests {
    use super::super::file::File;

    #[test]
    fn words_mean_what_the_plain_number_means() {
        let file = |text: &str| toml::from_str::<File>(text).unwrap();
        for (words, number) in [
            ("[store]\nsegment_bytes = '8MiB'", "[store]\nsegment_bytes = 8388608"),
            ("[store]\nkeep_history_s = '3d'", "[store]\nkeep_history_s = 259200"),
            ("[store]\nsync_interval_ms = '2s'", "[store]\nsync_interval_ms = 2000"),
            ("[forgetting]\nmerge_after_h = '1h30m'", "[forgetting]\nmerge_after_h = 1.5"),
            ("[forgetting]\nmerge_after_h = '2h'", "[forgetting]\nmerge_after_h = 2"),
            ("[flash]\ncard_bytes = '32GB'", "[flash]\ncard_bytes = 32000000000"),
            ("[limits]\nqueue_bytes = '1M'", "[limits]\nqueue_bytes = 1048576"),
        ] {
            assert_eq!(file(words), file(number), "{words}");
        }
    }
}
