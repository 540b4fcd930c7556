//! Units of measurement, as people and programs write them, and their size in a unit to compare by.

use crate::work::steps;

/// A unit: what it measures, and how large it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Unit {
    /// The unit to compare by, such as `m` for all lengths.
    pub(crate) base: &'static str,
    /// The size in that unit.
    pub(crate) size: f64,
}

/// The spelling, the unit to compare by, the size in it. A spelling of three letters or more fits in any case, except those
/// that differ by their case alone. `in` is a word before it is an inch, and left out; so is a temperature's zero, so that
/// °C and °F do not compare.
#[rustfmt::skip]
const UNITS: &[(&str, &str, f64)] = &[
    ("%", "%", 1.0), ("percent", "%", 1.0),
    ("mm", "m", 1e-3), ("cm", "m", 1e-2), ("dm", "m", 1e-1), ("m", "m", 1.0), ("km", "m", 1e3),
    ("meter", "m", 1.0), ("meters", "m", 1.0), ("metre", "m", 1.0), ("metres", "m", 1.0), ("millimetres", "m", 1e-3),
    ("millimeters", "m", 1e-3), ("centimetres", "m", 1e-2), ("centimeters", "m", 1e-2), ("kilometres", "m", 1e3),
    ("kilometers", "m", 1e3), ("ft", "m", 0.3048), ("feet", "m", 0.3048), ("inch", "m", 0.0254), ("inches", "m", 0.0254),
    ("µs", "s", 1e-6), ("us", "s", 1e-6), ("ms", "s", 1e-3), ("s", "s", 1.0), ("sec", "s", 1.0), ("secs", "s", 1.0),
    ("second", "s", 1.0), ("seconds", "s", 1.0), ("milliseconds", "s", 1e-3), ("min", "s", 60.0), ("mins", "s", 60.0),
    ("minute", "s", 60.0), ("minutes", "s", 60.0), ("h", "s", 3600.0), ("hr", "s", 3600.0), ("hrs", "s", 3600.0),
    ("hour", "s", 3600.0), ("hours", "s", 3600.0), ("day", "s", 86400.0), ("days", "s", 86400.0),
    ("week", "s", 604_800.0), ("weeks", "s", 604_800.0), ("months", "months", 1.0), ("month", "months", 1.0),
    ("years", "months", 12.0), ("year", "months", 12.0),
    ("mg", "g", 1e-3), ("g", "g", 1.0), ("kg", "g", 1e3), ("kilograms", "g", 1e3), ("grams", "g", 1.0), ("t", "g", 1e6),
    ("tons", "g", 1e6), ("lb", "g", 453.592_37), ("lbs", "g", 453.592_37),
    ("°C", "°C", 1.0), ("C", "°C", 1.0), ("celsius", "°C", 1.0), ("°F", "°F", 1.0), ("fahrenheit", "°F", 1.0), ("K", "K", 1.0),
    ("°", "°", 1.0), ("deg", "°", 1.0), ("degree", "°", 1.0), ("degrees", "°", 1.0), ("rad", "rad", 1.0), ("radians", "rad", 1.0),
    ("mV", "V", 1e-3), ("V", "V", 1.0), ("volt", "V", 1.0), ("volts", "V", 1.0), ("kV", "V", 1e3),
    ("mA", "A", 1e-3), ("A", "A", 1.0), ("amps", "A", 1.0), ("mAh", "Ah", 1e-3), ("Ah", "Ah", 1.0),
    ("mW", "W", 1e-3), ("W", "W", 1.0), ("watt", "W", 1.0), ("watts", "W", 1.0), ("kW", "W", 1e3), ("Wh", "Wh", 1.0),
    ("kWh", "Wh", 1e3), ("J", "J", 1.0), ("Hz", "Hz", 1.0), ("kHz", "Hz", 1e3), ("MHz", "Hz", 1e6), ("GHz", "Hz", 1e9),
    ("fps", "Hz", 1.0), ("rpm", "rpm", 1.0), ("N", "N", 1.0), ("Nm", "Nm", 1.0), ("Pa", "Pa", 1.0), ("hPa", "Pa", 100.0),
    ("kPa", "Pa", 1e3), ("MPa", "Pa", 1e6), ("bar", "Pa", 1e5), ("psi", "Pa", 6894.757),
    ("m/s", "m/s", 1.0), ("cm/s", "m/s", 1e-2), ("km/h", "m/s", 1.0 / 3.6), ("mph", "m/s", 0.447_04), ("rad/s", "rad/s", 1.0),
    ("°/s", "°/s", 1.0), ("m/s²", "m/s²", 1.0), ("m/s^2", "m/s²", 1.0),
    ("ml", "l", 1e-3), ("l", "l", 1.0), ("L", "l", 1.0), ("litre", "l", 1.0), ("litres", "l", 1.0), ("liters", "l", 1.0),
    ("m²", "m²", 1.0), ("m³", "m³", 1.0), ("lux", "lux", 1.0), ("dB", "dB", 1.0), ("dBm", "dBm", 1.0), ("ppm", "ppm", 1.0),
    ("B", "B", 1.0), ("bytes", "B", 1.0), ("KB", "B", 1e3), ("kB", "B", 1e3), ("MB", "B", 1e6), ("GB", "B", 1e9), ("TB", "B", 1e12),
    ("KiB", "B", 1024.0), ("MiB", "B", 1_048_576.0), ("GiB", "B", 1_073_741_824.0),
    ("USD", "USD", 1.0), ("EUR", "EUR", 1.0), ("euros", "EUR", 1.0), ("dollars", "USD", 1.0), ("€", "EUR", 1.0), ("$", "USD", 1.0),
];

impl Unit {
    /// Returns the unit that `text` begins with, and its length in bytes. A unit ends where no letter follows it.
    pub(crate) fn first_of(text: &str) -> Option<(Self, usize)> {
        if text.starts_with(|c: char| c.is_ascii_digit() || c.is_whitespace()) {
            return None;
        }
        steps(UNITS.len());
        let mut best: Option<(Self, usize)> = None;
        for &(spelling, base, size) in UNITS {
            let length = spelling.len();
            let Some(head) = text.get(..length) else { continue };
            let fits =
                head == spelling || is_any_case(spelling) && head.eq_ignore_ascii_case(spelling);
            let ends = !text[length..]
                .starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '\''));
            if fits && ends && best.is_none_or(|(_, longest)| length > longest) {
                best = Some((Self { base, size }, length));
            }
        }
        best
    }
}

/// Returns true if the spelling means the same in any case.
fn is_any_case(spelling: &str) -> bool {
    spelling.len() >= 3 && spelling.bytes().all(|byte| byte.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unit_that_ends_counts() {
        let first =
            |text| Unit::first_of(text).map(|(unit, length)| (unit.base, unit.size, length));
        assert_eq!(first("m/s and"), Some(("m/s", 1.0, 3)));
        assert_eq!(first("m."), Some(("m", 1.0, 1)));
        assert_eq!(first("mm"), Some(("m", 1e-3, 2)));
        assert_eq!(first("Minutes"), Some(("s", 60.0, 7)));
        assert_eq!(first("°C"), Some(("°C", 1.0, 3)));
        assert_eq!(first("mAh"), Some(("Ah", 1e-3, 3)));
        assert_eq!(first("mugs"), None);
        assert_eq!(first("m-long"), None);
        assert_eq!(first("MA"), None, "neither mA nor a word");
        assert_eq!(first(""), None);
    }

    #[test]
    fn spellings_are_unlike_and_short() {
        let mut spellings: Vec<&str> = UNITS.iter().map(|unit| unit.0).collect();
        assert!(spellings.iter().all(|spelling| (1..=12).contains(&spelling.len())));
        spellings.sort_unstable();
        spellings.dedup();
        assert_eq!(spellings.len(), UNITS.len());
    }
}
