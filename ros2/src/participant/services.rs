//! The services of the memory: a request in, an operation of `docs/keys.md`, a response out.

use std::sync::Arc;

use omir_core::code::Code;
use omir_core::operation::Operation;
use omir_core::value::{Map, Value};

use super::{Context, OpenError};
use crate::graph::{Node, Request, Server};
use crate::memory::{Memory, Refusal};
use crate::records::{Call, Records};
use crate::rules::Pattern;
use crate::tf::Transform;

/// All services. Dropping it takes them out of the graph.
pub(super) struct Services {
    _servers: Vec<Server>,
}

impl Services {
    /// Offers `~/remember`, `~/recall` and so on.
    pub(super) fn start(
        node: &Node,
        context: &Arc<Context>,
        memory: &Arc<dyn Memory>,
        records: &Arc<Records>,
        keyframes: &[Pattern],
    ) -> Result<Self, OpenError> {
        let mut servers = Vec::new();
        for (operation, service) in records.services() {
            let handler = Handler {
                context: context.clone(),
                memory: memory.clone(),
                records: records.clone(),
                keyframes: keyframes.to_vec(),
            };
            let name = format!("~/{}", operation.as_str());
            let each = move |request: Request| {
                let answer = handler.answer(operation, &request).map_err(shortened);
                let Some(response) = handler.records.response(
                    operation,
                    answer.as_ref().map_err(Refusal::to_value).as_ref().map(|value| *value),
                ) else {
                    return;
                };
                if let Err(error) = request.answer(&response) {
                    tracing::warn!(%error, operation = operation.as_str(), "an answer was not sent");
                }
            };
            servers.push(node.serve(&name, service, each)?);
        }
        Ok(Self { _servers: servers })
    }
}

/// Longest words of a refusal, in characters: they repeat what was asked, and that may be megabytes.
const LONGEST: usize = 1000;

fn shortened(mut refusal: Refusal) -> Refusal {
    for text in [&mut refusal.message, &mut refusal.path] {
        if let Some((at, _)) = text.char_indices().nth(LONGEST) {
            text.truncate(at);
            text.push('…');
        }
    }
    refusal
}

struct Handler {
    context: Arc<Context>,
    memory: Arc<dyn Memory>,
    records: Arc<Records>,
    keyframes: Vec<Pattern>,
}

impl Handler {
    fn answer(&self, operation: Operation, request: &Request) -> Result<Value, Refusal> {
        let call = self.records.request(operation, request.message()).map_err(|wrong| Refusal {
            code: if operation == Operation::Remember {
                Code::InvalidResource
            } else {
                Code::InvalidQuery
            },
            message: wrong.why,
            path: wrong.path,
        })?;
        let Call { resources, mut parameters, .. } = call;
        // The memory knows places in resources and parameters, the caller those in its message.
        let placed = |refusal: Refusal| Refusal {
            path: self.records.place(operation, request.message(), &refusal.path),
            ..refusal
        };
        match operation {
            Operation::Remember => {
                let merge = parameters.get("merge").and_then(Value::as_str);
                self.memory.remember(resources, merge).map_err(placed)
            }
            Operation::Rebase => {
                if !parameters.contains_key("keyframes") && !parameters.contains_key("undo") {
                    let fixed = self.context.frames.fixed_frame();
                    let frame = parameters.get("frame").and_then(Value::as_str).unwrap_or(fixed);
                    if frame != fixed {
                        let message = format!(
                            "where keyframes are by /tf is known in {fixed:?}, the fixed frame; for \
                             {frame:?} name them with their poses"
                        );
                        let (code, path) = (Code::InvalidQuery, "/frame".to_owned());
                        return Err(Refusal { code, message, path });
                    }
                    parameters.insert("frame", fixed);
                    parameters.insert("keyframes", self.keyframes_now()?);
                }
                self.memory.ask(operation, &parameters).map_err(placed)
            }
            _ => self.memory.ask(operation, &parameters).map_err(placed),
        }
    }

    /// Returns the keyframes' positions by the latest transforms: what a request means that names none.
    fn keyframes_now(&self) -> Result<Map, Refusal> {
        let is_keyframe = |name: &str| self.keyframes.iter().any(|pattern| pattern.matches(name));
        let all = self.context.frames.all_resting(is_keyframe);
        if all.is_empty() {
            return Err(Refusal {
                code: Code::InvalidQuery,
                message: "no keyframe is named, and /tf tells of none that ros2.keyframes names"
                    .to_owned(),
                path: "/keyframes".to_owned(),
            });
        }
        let mut keyframes = Map::new();
        for (name, pose) in all {
            keyframes.insert(name, pose_value(&pose));
        }
        Ok(keyframes)
    }
}

fn pose_value(pose: &Transform) -> Map {
    let mut map = Map::new();
    map.insert("position", pose.translation.vector.iter().copied().collect::<Value>());
    map.insert("orientation", pose.rotation.coords.iter().copied().collect::<Value>());
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_does_not_send_back_all_that_was_asked() {
        let long = |text: &str| text.repeat(1_000_000);
        let refusal = Refusal { code: Code::Busy, message: long("ü"), path: long("/a") };
        let Refusal { message, path, .. } = shortened(refusal);
        assert_eq!((message.chars().count(), path.chars().count()), (LONGEST + 1, LONGEST + 1));
        let short = Refusal { code: Code::Busy, message: "no".into(), path: String::new() };
        assert_eq!(shortened(short.clone()), short);
    }
}
