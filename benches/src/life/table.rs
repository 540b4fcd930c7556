//! A life in numbers: one line for each day, and a summary.

use std::fmt::Write;
use std::time::Duration;

use comfy_table::Table;
use omir_core::tier::Tier;
use omird_tests::years::Evening;
use omird_tests::years::card::Cause;
use omird_tests::years::probe::{Probes, Quality};

/// Answers of one kind, with their name.
fn qualities(probes: &Probes) -> [(&'static str, Quality); 5] {
    [
        ("places", probes.places),
        ("happenings", probes.happenings),
        ("anchored", probes.anchored),
        ("used", probes.used),
        ("told once", probes.told_once),
    ]
}

/// Comma-separated values. Counts are since the beginning; answers stand in the lines of the days on
/// which they were asked for.
pub fn csv(evenings: &[Evening]) -> String {
    let mut out = String::from("day");
    for tier in Tier::ALL {
        let _ = write!(out, ",{tier}");
    }
    out += ",entities_episodes_relationships,versions,segments,disk_bytes,index_bytes";
    for cause in Cause::ALL {
        let _ = write!(out, ",written_{}", cause.as_str());
    }
    out += ",written_index,payload_bytes,amplification,amplification_in_status,told,recalls,faded,forgotten,boots,cuts";
    out += ",boots_without_clock,slowest_start_ms";
    out += ",moved,merged,expired,evicted,compactions,dropped_superseded,dropped_forgotten";
    for (name, _) in qualities(&Probes::default()) {
        let name = name.replace(' ', "_");
        let _ = write!(out, ",{name}_asked,{name}_first,{name}_in_5,{name}_mrr");
    }
    out += ",hits,stale_hits,sightings_over_90_days,kept_of_them\n";
    for evening in evenings {
        line(&mut out, evening);
        out.push('\n');
    }
    out
}

fn line(out: &mut String, evening: &Evening) {
    let counts = &evening.counts;
    let _ = write!(out, "{}", evening.day);
    let mut numbers = evening.tiers.to_vec();
    numbers.extend([evening.others, evening.versions, evening.segments]);
    numbers.extend([evening.disk, evening.index]);
    numbers.extend(evening.written);
    numbers.extend([evening.index_written, evening.payload]);
    for number in numbers {
        let _ = write!(out, ",{number}");
    }
    let _ = write!(out, ",{:.3},{:.3}", evening.amplification(), evening.odometer);
    for number in [counts.told, counts.recalls, counts.faded, counts.forgotten, counts.boots] {
        let _ = write!(out, ",{number}");
    }
    let _ = write!(out, ",{},{},{:.1}", counts.cuts, counts.clockless, counts.slowest_start);
    let done = &counts.upkeep;
    for number in [done.moved, done.merged, done.expired, done.evicted] {
        let _ = write!(out, ",{number}");
    }
    let _ = write!(out, ",{},{},{}", done.compactions, done.superseded, done.purged);
    let Some(probes) = &evening.probes else {
        out.push_str(&",".repeat(4 * qualities(&Probes::default()).len() + 4));
        return;
    };
    for (_, quality) in qualities(probes) {
        let rank = quality.mean_reciprocal_rank();
        let rank = rank.map_or(String::new(), |rank| format!("{rank:.3}"));
        let _ = write!(out, ",{},{},{},{rank}", quality.asked, quality.first, quality.found);
    }
    let _ = write!(out, ",{},{},{},{}", probes.hits, probes.stale, probes.old_all, probes.old_kept);
}

/// The facts that a person wants first.
pub fn summary(evenings: &[Evening], took: Duration) -> String {
    let Some(last) = evenings.last() else { return "nothing was lived".to_owned() };
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    let mut row = |name: &str, value: String| {
        table.add_row([name.to_owned(), value]);
    };
    row("days", format!("{} in {:.0} s", last.day, took.as_secs_f64()));
    let counts = &last.counts;
    row(
        "starts",
        format!("{}: {} after a cut, {} in 1970", counts.boots, counts.cuts, counts.clockless),
    );
    row("told", format!("{} resources, {:.1} MB", counts.told, last.payload as f64 / 1e6));
    row("forgotten", format!("{} by rules, {} on request", counts.faded, counts.forgotten));
    let done = &counts.upkeep;
    row(
        "sweeps",
        format!(
            "{} moved, {} merged, {} expired, {} evicted",
            done.moved, done.merged, done.expired, done.evicted
        ),
    );
    row(
        "compaction",
        format!(
            "{} times; dropped {} versions superseded, {} forgotten",
            done.compactions, done.superseded, done.purged
        ),
    );
    for (tier, count) in Tier::ALL.iter().zip(last.tiers) {
        row(tier.as_str(), count.to_string());
    }
    row("on disk", format!("{:.1} MB, {} segments", last.disk as f64 / 1e6, last.segments));
    let share = |bytes: u64| format!("{:.3}", bytes as f64 / last.payload.max(1) as f64);
    row(
        "written per payload byte",
        format!("{:.3} ({:.3} as status says), of which", last.amplification(), last.odometer),
    );
    for (cause, bytes) in Cause::ALL.iter().zip(last.written) {
        row(&format!("  {}", cause.as_str()), share(bytes));
    }
    row("  index", share(last.index_written));
    let mut sums = qualities(&Probes::default()).map(|(name, _)| (name, Quality::default()));
    for probes in evenings.iter().filter_map(|evening| evening.probes) {
        for ((_, sum), (_, quality)) in sums.iter_mut().zip(qualities(&probes)) {
            sum.add_all(&quality);
        }
    }
    for (name, sum) in sums {
        let percent = |n: u64| 100.0 * n as f64 / sum.asked.max(1) as f64;
        let rank = sum.mean_reciprocal_rank().unwrap_or(0.0);
        row(
            name,
            format!(
                "{:.1} % first, {:.1} % in five, MRR {rank:.3}, of {}",
                percent(sum.first),
                percent(sum.found),
                sum.asked
            ),
        );
    }
    if let Some(probes) = evenings.iter().rev().find_map(|evening| evening.probes) {
        row("stale hits", format!("{} of {} at the end", probes.stale, probes.hits));
        row("old sightings", format!("{} of {} kept", probes.old_kept, probes.old_all));
    }
    table.to_string()
}
