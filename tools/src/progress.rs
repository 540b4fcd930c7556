//! Progress on standard error, for people only.

use std::fmt;
use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressState, ProgressStyle};

use crate::cli::Globals;

/// Returns true if progress is wanted: a person watches and did not ask for silence or JSON.
#[must_use]
pub fn is_wanted(globals: &Globals) -> bool {
    !globals.quiet && !globals.json && std::io::stderr().is_terminal()
}

/// A bar with rate and remaining time over `total` steps.
#[must_use]
pub fn bar(globals: &Globals, total: u64, what: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), target(globals));
    bar.set_style(style("{msg} {wide_bar} {human_pos}/{human_len}  {rate}  ETA {eta}"));
    bar.set_message(what.to_owned());
    bar
}

/// A bar over `size` bytes, or a count of them where the size is not known. It is gone when it is
/// dropped.
#[must_use]
pub fn bytes(globals: &Globals, size: Option<u64>, what: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(size, target(globals));
    bar.set_style(style(match size {
        Some(_) => "{msg} {wide_bar} {binary_bytes}/{binary_total_bytes}  ETA {eta}",
        None => "{spinner} {msg} {binary_bytes} {elapsed}",
    }));
    bar.set_message(what.to_owned());
    bar.with_finish(ProgressFinish::AndClear)
}

/// A spinner for work whose end is not known.
#[must_use]
pub fn spinner(globals: &Globals, what: &str) -> ProgressBar {
    let spinner = ProgressBar::with_draw_target(None, target(globals));
    spinner.set_style(style("{spinner} {msg} {elapsed}"));
    spinner.set_message(what.to_owned());
    if is_wanted(globals) {
        spinner.enable_steady_tick(Duration::from_millis(120));
    }
    spinner
}

fn target(globals: &Globals) -> ProgressDrawTarget {
    if is_wanted(globals) { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("rate", |state: &ProgressState, out: &mut dyn fmt::Write| {
            let _ = write!(out, "{:.0}/s", state.per_sec());
        })
}
