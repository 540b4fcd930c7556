//! Our reader of time ranges against Zenoh's: a range means the same to both.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use omir_core::instant::Timestamp;
use omird_protocol_omir::parse_time_range;
use proptest::prelude::*;
use zenoh_util::time_range::{TimeBound, TimeExpr, TimeRange};

const NOW: u64 = 1_780_000_000;

/// An end of a range by Zenoh's reader; `None` if it refuses it. Its reader of durations panics on a unit without its
/// number, so such a text is not for it.
fn by_zenoh(text: &str) -> Option<SystemTime> {
    let expression: TimeExpr = text.parse().ok()?;
    expression.checked_resolve_at(UNIX_EPOCH + Duration::from_secs(NOW))
}

/// An end of a range by ours.
fn by_ours(text: &str) -> Option<SystemTime> {
    let span =
        parse_time_range(&format!("[{text}..]"), Timestamp::from_unix(NOW as i64, 0)).ok()?;
    let std::ops::Bound::Included(at) = span.from else { return None };
    let second = Duration::from_secs(at.secs().unsigned_abs());
    let second = if at.secs() < 0 { UNIX_EPOCH - second } else { UNIX_EPOCH + second };
    Some(second + Duration::from_nanos(at.nanos().into()))
}

/// Instants, offsets and what is nearly one of them.
fn end() -> impl Strategy<Value = String> {
    prop_oneof![
        "now\\(-?[0-9]{1,4}(u|ms|s|m|h|d|w)?\\)",
        "now\\([+-]?[0-9]{0,3}\\.?[0-9]{1,9}(e[0-9])?(u|ms|s|m|h|d|w)?\\)",
        "now\\((inf|nan|-inf|1e300|--3s|5 s|m5|x|1sm|ss|3us)?\\)",
        "20[0-9]{2}-[01][0-9]-[0-3][0-9][T ][012][0-9]:[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?Z?",
        "[a-z0-9():.TZ+-]{1,12}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn an_end_means_the_same_to_both(text in end()) {
        let is_unit_alone = text == "now(s)" || text == "now(-s)";
        prop_assume!(!is_unit_alone && !text.contains(".."));
        prop_assert_eq!(by_ours(&text), by_zenoh(&text), "{}", text);
    }

    #[test]
    fn a_range_may_say_how_long_to_both(from in 0u32..9000, length in "[0-9]{1,4}(u|ms|s|m|h|d|w)?") {
        let text = format!("[now(-{from}s);{length}[");
        let range: TimeRange = text.parse().unwrap();
        let range = range.resolve_at(UNIX_EPOCH + Duration::from_secs(NOW));
        let ours = parse_time_range(&text, Timestamp::from_unix(NOW as i64, 0)).unwrap();
        let TimeBound::Exclusive(to) = range.end else { unreachable!() };
        let std::ops::Bound::Excluded(at) = ours.to else { unreachable!() };
        let to = to.duration_since(UNIX_EPOCH).unwrap();
        // Zenoh adds the two as floating point.
        let ours = Duration::new(at.secs() as u64, at.nanos());
        prop_assert!(to.abs_diff(ours) < Duration::from_micros(1), "{text}: {to:?} {ours:?}");
    }
}
