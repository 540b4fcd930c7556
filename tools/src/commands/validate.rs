//! `omir validate`: conformance reports over the validator of `omir-core`, for documents of any size.
//!
//! The report has the shape of the reference validator's, so that what reads one reads the other.

mod check;
mod files;
mod human;
mod json;
mod profiles;
mod tally;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use omir_core::validate::{self, FaultCode, Finding, Options};

use crate::cli::{Globals, Level, ReportFormat, ValidateArgs};
use crate::document;
use crate::error::{Error, Result, told};
use crate::progress;
use check::Verdict;
use profiles::Selection;

/// Report on the findings of one file, which come one by one.
trait Report {
    /// Takes the next finding.
    fn finding(&mut self, finding: Finding);

    /// Forgets all findings.
    fn clear(&mut self);

    /// Writes what there is to say, ending with a newline.
    fn write(&mut self, verdict: &Verdict<'_>, out: &mut dyn Write) -> io::Result<()>;
}

pub(super) fn run(globals: &Globals, args: &ValidateArgs) -> Result<()> {
    let selection = Selection::new(&args.profile, &args.require_profile)?;
    let files = files::named(&args.files)?;
    match args.output.as_deref().filter(|file| !document::is_standard(file)) {
        None => {
            let (printed, verdict) =
                run_to(globals, args, &files, &selection, &mut io::stdout().lock());
            told(printed, verdict)
        }
        Some(file) => {
            if files.iter().any(|input| document::is_same(input, file)) {
                return Err(Error::Usage(format!(
                    "-o {}: that is a file to check, which the report would replace",
                    file.display()
                )));
            }
            let mut outcome = Ok(());
            document::replace(file, |out| {
                // A bad document is worth a report, half a report is not.
                let (written, judged) = run_to(globals, args, &files, &selection, out);
                outcome = judged;
                written
            })?;
            outcome
        }
    }
}

/// Reports on the files, and returns whether that could be written, and what is to be said of all of them. They are
/// judged even if the output cannot be printed.
fn run_to(
    globals: &Globals,
    args: &ValidateArgs,
    files: &[PathBuf],
    selection: &Selection,
    out: &mut dyn Write,
) -> (io::Result<()>, Result<()>) {
    let as_json = globals.json || args.format == ReportFormat::Json;
    let options = Options {
        level: match args.level {
            Level::Core => validate::Level::Core,
            Level::Strict => validate::Level::Strict,
        },
        plain_r1: args.plain_r1,
        profiles: &selection.profiles,
        required: &selection.required,
    };
    let mut checked = 0;
    let mut failed = 0;
    let mut unreadable: Option<Error> = None;
    let mut written = Ok(());
    for file in files {
        let mut report: Box<dyn Report> =
            if as_json { Box::new(json::Lines::new()) } else { Box::new(human::Digest::of(file)) };
        let verdict = match one(globals, file, options, &mut *report) {
            Ok(verdict) => verdict,
            Err(error) => {
                // The others are still worth looking at; the last complaint ends the command.
                if let Some(earlier) = unreadable.replace(error) {
                    earlier.report(globals.json);
                }
                continue;
            }
        };
        if written.is_ok() {
            written = match !as_json && globals.quiet {
                true => writeln!(out, "{}", human::result_line(&verdict)),
                false => report.write(&verdict, out),
            };
            written = written.and_then(|()| out.flush());
        }
        checked += 1;
        failed += usize::from(!verdict.passes());
    }
    let verdict = match unreadable {
        Some(error) => Err(error),
        None if failed == 0 => Ok(()),
        None => Err(Error::Negative {
            code: "INVALID",
            message: format!("{failed} of {checked} documents do not conform"),
        }),
    };
    (written, verdict)
}

fn one<'a>(
    globals: &Globals,
    file: &Path,
    options: Options<'a>,
    report: &mut dyn Report,
) -> Result<Verdict<'a>> {
    let unreadable = |error| match error {
        Error::Input { message, path } => {
            Error::Input { message: format!("{message} ({})", FaultCode::Unreadable), path }
        }
        other => other,
    };
    let mut parts = document::Parts::open(file).map_err(unreadable)?;
    let bar = progress::bytes(globals, parts.size(), "checking");
    let verdict = check::document(file, &mut parts, options, report, |at| bar.set_position(at));
    verdict.map_err(unreadable)
}
