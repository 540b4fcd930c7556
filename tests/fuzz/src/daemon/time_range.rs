//! Zenoh's time ranges, and the times the tool writes into them.

use std::ops::Bound;

use omir_core::instant::{Instant, Timestamp};
use omir_tools::instant::TimeBound;
use omird::protocols::omir::parse_time_range;

const NOW: Timestamp = Timestamp::from_unix(1_780_000_000, 123_456_789);

/// Reads a range; written with its instants it is the same. What the tool understands as a time the
/// daemon understands as well.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match parse_time_range(text, NOW) {
        Ok(span) => {
            let end = |bound: Bound<Timestamp>| match bound {
                Bound::Unbounded => Some((true, String::new())),
                Bound::Included(at) => written(at).map(|text| (true, text)),
                Bound::Excluded(at) => written(at).map(|text| (false, text)),
            };
            if let (Some((from_in, from)), Some((to_in, to))) = (end(span.from), end(span.to)) {
                let open = if from_in { '[' } else { ']' };
                let close = if to_in { ']' } else { '[' };
                assert_eq!(
                    parse_time_range(&format!("{open}{from}..{to}{close}"), NOW),
                    Ok(span),
                    "{text:?}"
                );
            }
        }
        Err(error) => assert_eq!(error.text, text),
    }
    if let Ok(when) = text.parse::<TimeBound>() {
        let range = format!("[{}..]", when.time_expression());
        let read = parse_time_range(&range, NOW);
        match when {
            TimeBound::At(instant) => {
                let Ok(Bound::Included(from)) = read.map(|span| span.from) else {
                    panic!("{range}");
                };
                let nanos = i128::from(from.secs()) * 1_000_000_000 + i128::from(from.nanos());
                assert_eq!(nanos, instant.unix_nanos(), "{text:?}");
            }
            // Before the clock's own beginning there is nothing to ask for.
            TimeBound::Ago(seconds) => assert!(read.is_ok() || seconds > 1e9, "{text:?} {range}"),
        }
    }
}

/// The instant as text, within the years that can be written.
fn written(at: Timestamp) -> Option<String> {
    let instant = Instant::from(at);
    (instant.at() == at).then(|| instant.to_string())
}
