//! Filters as selector parameters: `recall` and `export` share them.

use omir_core::value::Map;

use crate::cli::{FilterArgs, Moment};
use crate::client::Client;
use crate::error::{Error, Result};
use crate::id_prefix;
use crate::instant::{Instant, NANOS, TimeBound};
use crate::selector::Parameters;

/// The filters as one robot understands them: the entity by its whole id.
pub(super) fn of_robot(client: &Client, robot: &str, filters: &FilterArgs) -> Result<FilterArgs> {
    let entity = filters.entity.as_ref();
    let entity = entity.map(|entity| id_prefix::by(client, robot, entity)).transpose()?;
    Ok(FilterArgs { entity, ..filters.clone() })
}

/// Adds the filters that were given.
pub(super) fn push(parameters: &mut Parameters, filters: &FilterArgs) -> Result<()> {
    if filters.radius.is_some() && filters.near.is_none() && filters.geo.is_none() {
        return Err(Error::Usage(
            "--radius needs a place to be around: --near or --geo".to_owned(),
        ));
    }
    parameters.push_some("near", filters.near.as_ref());
    parameters.push_some("geo", filters.geo.as_ref());
    parameters.push_some("radius", filters.radius);
    parameters.push_some("box", filters.bounds.as_ref());
    parameters.push_some("frame", filters.frame.as_ref());
    if filters.since.is_some() || filters.until.is_some() {
        let end =
            |when: Option<TimeBound>| when.map(TimeBound::time_expression).unwrap_or_default();
        let range = format!("[{}..{}]", end(filters.since), end(filters.until));
        parameters.push("_time", &range);
    }
    for (name, given) in [("before", &filters.before), ("after", &filters.after)] {
        match given {
            Some(Moment::Of(memory)) => parameters.push(name, &memory.to_string()),
            Some(Moment::At(when)) => parameters.push(name, &moment(*when)?.to_string()),
            None => {}
        }
    }
    parameters.push_some("type", filters.resource_type.as_ref());
    parameters.push_some("kind", filters.kind.as_ref());
    parameters.push_some("tier", filters.tier.as_ref());
    parameters.push_some("experienceType", filters.experience_type.as_ref());
    parameters.push_some("entity", filters.entity.as_ref());
    parameters.push_some("label", filters.label.as_ref());
    parameters.push_some("minImportance", filters.min_importance);
    parameters.push_some("minConfidence", filters.min_confidence);
    parameters.push_some("minRetrievability", filters.min_retrievability);
    for (given, name) in [
        (filters.include_expired, "includeExpired"),
        (filters.include_intentions, "includeIntentions"),
        (filters.include_forgotten, "includeForgotten"),
    ] {
        parameters.push_some(name, given.then_some("true"));
    }
    if let Some(when) = filters.as_of {
        parameters.push("asOf", &moment(when)?.to_string());
    }
    Ok(())
}

/// The spans among the moments, each under the name of its parameter: that is an instant of this computer's clock, and
/// another one each time.
pub(super) fn spans(filters: &FilterArgs) -> Map {
    let both = [("before", &filters.before), ("after", &filters.after)].into_iter();
    both.filter_map(|(name, given)| match given {
        Some(Moment::At(when @ TimeBound::Ago(_))) => Some((name, when.time_expression())),
        _ => None,
    })
    .collect()
}

/// `asOf` and its like take a moment, so a span is counted from this computer's clock.
pub(super) fn moment(when: TimeBound) -> Result<Instant> {
    match when {
        TimeBound::At(instant) => Ok(instant),
        TimeBound::Ago(seconds) => Instant::now()
            .plus(-((seconds * NANOS as f64) as i128))
            .ok_or_else(|| Error::Usage("a time lies before the year 0000".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser as _;

    fn selector(line: &[&str]) -> Result<String> {
        let words = ["omir", "recall"].iter().chain(line);
        let Command::Recall(args) = Cli::try_parse_from(words).unwrap().command else {
            panic!("recall expected")
        };
        let mut parameters = Parameters::new();
        push(&mut parameters, &args.filters)?;
        Ok(parameters.as_str().to_owned())
    }

    #[test]
    fn filters_become_the_names_of_the_page() {
        assert_eq!(selector(&[]).unwrap(), "");
        assert_eq!(
            selector(&["--near", "-1,2.5", "--radius", "3", "--frame", "карта"]).unwrap(),
            "near=-1,2.5;radius=3;frame=%D0%BA%D0%B0%D1%80%D1%82%D0%B0"
        );
        assert_eq!(
            selector(&["--since", "7d", "--until", "2026-01-01"]).unwrap(),
            "_time=[now(-604800s)..2026-01-01T00:00:00Z]"
        );
        assert_eq!(selector(&["--until", "1h"]).unwrap(), "_time=[..now(-3600s)]");
        assert_eq!(
            selector(&["--entity", "dock", "--include-expired", "--min-importance", ".5"]).unwrap(),
            "entity=Entity/dock;minImportance=0.5;includeExpired=true"
        );
        assert_eq!(
            selector(&["--as-of", "2026-01-01T01:00:00+01:00"]).unwrap(),
            "asOf=2026-01-01T00:00:00Z"
        );
    }

    #[test]
    fn a_span_is_told_from_the_instant_that_it_becomes() {
        let line = "omir recall --after 1h --before 2026-01-01 --until 1h";
        let Command::Recall(args) = Cli::try_parse_from(line.split(' ')).unwrap().command else {
            panic!("recall expected")
        };
        let spans = spans(&args.filters);
        let spans: Vec<_> = spans.iter().map(|(name, span)| (name, span.as_str())).collect();
        assert_eq!(spans, [("after", Some("now(-3600s)"))]);
    }

    #[test]
    fn a_radius_needs_a_centre() {
        assert!(selector(&["--radius", "1"]).is_err());
    }
}
