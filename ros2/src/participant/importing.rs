//! The action `~/import`: a file of the robot into the memory.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use omir_core::code::Code;
use omir_core::value::{Map, Value};

use super::OpenError;
use crate::graph::{ActionConfig, ActionServer, Ending, Goal, GoalHandler, Node};
use crate::memory::{Memory, Refusal};
use crate::message::{Message, Value as MessageValue};
use crate::records::{Progress, Records};

/// Between one feedback and the next, but for the first one and the last ones: a person sees it move, and a
/// fast disk does not fill the network.
const PACE: Duration = Duration::from_millis(200);

pub(super) fn serve(
    node: &Node,
    memory: Arc<dyn Memory>,
    records: Arc<Records>,
) -> Result<ActionServer, OpenError> {
    let ty = records.import().clone();
    let importer = Importer { memory, records };
    Ok(node.action_server("~/import", &ty, ActionConfig::default(), importer)?)
}

struct Importer {
    memory: Arc<dyn Memory>,
    records: Arc<Records>,
}

/// Request of a goal.
struct ImportGoal {
    path: PathBuf,
    overwrite: bool,
}

fn wrong(path: &str, message: impl Into<String>) -> Refusal {
    Refusal { code: Code::InvalidQuery, message: message.into(), path: path.to_owned() }
}

/// Names the command that imports a file of another format. A recording has compressors with it that the daemon
/// does without, and takes minutes.
fn elsewhere(format: &str, file: &Path) -> String {
    let file = file.display();
    match format {
        "mcap" | "db3" => format!(
            "a recording is imported on the robot, by the same rules: omir import --rules omird.toml {file}"
        ),
        "bag" => format!(
            "a .bag of ROS 1 must be converted first: rosbags-convert --src {file} --dst FOLDER; then: omir import \
             --rules omird.toml FOLDER"
        ),
        _ => format!(
            "{format:?} is none of omir, omirb; `omir import` on the robot reads all formats: omir \
             import {file}"
        ),
    }
}

impl Importer {
    fn wanted(&self, goal: &Message) -> Result<ImportGoal, Refusal> {
        let parameters: Map =
            self.records.import_goal(goal).map_err(|refused| wrong(&refused.path, refused.why))?;
        let text = |name: &str| parameters.get(name).and_then(Value::as_str);
        let path = PathBuf::from(text("path").unwrap_or_default());
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let format = text("format").unwrap_or(ending);
        if !["omir", "omirb"].contains(&format) {
            return Err(wrong("/format", elsewhere(format, &path)));
        }
        let overwrite = match text("merge") {
            None | Some("true") => false,
            Some("overwrite") => true,
            Some(other) => {
                let message = format!("{other:?} is neither `true` nor `overwrite`");
                return Err(wrong("/merge", message));
            }
        };
        Ok(ImportGoal { path, overwrite })
    }
}

impl Importer {
    fn tell(&self, goal: &Goal, progress: Progress) {
        let told = goal.feedback().map_err(|why| why.to_string()).and_then(|mut feedback| {
            let progress = MessageValue::Message(self.records.import_feedback(progress));
            feedback.set("feedback", progress).map_err(|why| why.to_string())?;
            goal.send_feedback(&feedback).map_err(|why| why.to_string())
        });
        if let Err(why) = told {
            tracing::warn!("how far an import is was not told: {why}");
        }
    }
}

/// Accepts every goal: a refused one would have no result, and so no place for the reason.
impl GoalHandler for Importer {
    fn execute(&self, goal: &Goal) -> Ending {
        let mut told: Option<(Instant, Progress)> = None;
        let outcome = self.wanted(goal.message()).and_then(|wanted| {
            let mut progress = |bytes_done: u64, bytes_total: u64| {
                let is_due = told.is_none_or(|(at, _)| at.elapsed() >= PACE);
                if is_due || bytes_done == bytes_total {
                    let progress = Progress { bytes_done, bytes_total, read: 0, stored: 0 };
                    self.tell(goal, progress);
                    told = Some((Instant::now(), progress));
                }
                !goal.is_canceling()
            };
            let import = || self.memory.import(&wanted.path, wanted.overwrite, &mut progress);
            // Or the goal would run for ever, and no other be taken.
            catch_unwind(AssertUnwindSafe(import)).unwrap_or_else(|_| {
                let message = "it panicked, which is a bug in omird; the log says where".to_owned();
                Err(Refusal { code: Code::Internal, message, path: String::new() })
            })
        });
        match outcome {
            Ok(answer) => {
                let result = self.records.import_result(Ok(&answer));
                // Once more before the end, with what became of it.
                if let Some((_, progress)) = told {
                    let stored = result.u64("stored").unwrap_or_default();
                    let unchanged = result.u64("unchanged").unwrap_or_default();
                    self.tell(goal, Progress { read: stored + unchanged, stored, ..progress });
                }
                Ending::Succeeded(result)
            }
            Err(refusal) => {
                let result = self.records.import_result(Err(&refusal.to_value()));
                if goal.is_canceling() { Ending::Canceled(result) } else { Ending::Aborted(result) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_imported_elsewhere_is_refused_with_the_command() {
        let said = |format, file| elsewhere(format, Path::new(file));
        assert!(said("mcap", "a.mcap").ends_with("omir import --rules omird.toml a.mcap"));
        assert!(said("db3", "a.db3").ends_with("omir import --rules omird.toml a.db3"));
        assert!(said("bag", "a.bag").contains("rosbags-convert --src a.bag"));
        assert!(said("", "a").contains("\"\" is none of omir, omirb"));
    }
}
