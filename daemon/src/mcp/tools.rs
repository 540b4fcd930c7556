//! Tools as MCP lists them, and one call from its arguments to its result.

use std::sync::Arc;

use omir_core::decode::Limits;
use omir_core::json;
use omir_core::value::{Map, Value};
use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, CallToolResult, ErrorData, JsonObject, ToolAnnotations};
use rmcp::service::RequestContext;

use super::Mcp;
use super::waiting::{Progress, Waiting};
use crate::engine::{Code, Error};
use crate::router::field::{check, object_schema};
use crate::router::tool::{Tool, Toolbox};
use crate::router::{Caller, error_value};

/// A tool as MCP describes it.
pub(super) fn described(tool: &'static Tool) -> rmcp::model::Tool {
    let hints = ToolAnnotations::with_title(tool.title)
        .read_only(tool.only_reads())
        .destructive(tool.is_destructive)
        .idempotent(tool.is_idempotent)
        .open_world(false);
    rmcp::model::Tool::new(tool.name, tool.about, object(object_schema(tool.inputs, true, "")))
        .with_title(tool.title)
        .with_raw_output_schema(Arc::new(object(object_schema(tool.outputs, false, ""))))
        .with_annotations(hints)
}

/// A map of ours as one of the SDK.
fn object(map: Map) -> JsonObject {
    serde_json::from_str(&json::to_string(&Value::Object(map))).unwrap_or_default()
}

impl Mcp {
    /// The tools that the caller may use.
    pub(super) fn listed(&self, caller: &Caller) -> Vec<rmcp::model::Tool> {
        let tools = self.0.toolboxes.iter().flat_map(|toolbox| toolbox.tools());
        tools.filter(|tool| self.may(caller, tool.method)).map(described).collect()
    }

    /// The tool of that name, and whose it is.
    pub(super) fn find(&self, name: &str) -> Option<(Arc<dyn Toolbox>, &'static Tool)> {
        self.0.toolboxes.iter().find_map(|toolbox| {
            let tool = toolbox.tools().into_iter().find(|tool| tool.name == name)?;
            Some((toolbox.clone(), tool))
        })
    }

    /// Calls a tool. Whatever the tool or the router refuses is a result that the model reads; an error is what no tool was
    /// asked for.
    pub(super) async fn call(
        &self,
        caller: &Caller,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let Some((toolbox, tool)) = self.find(&request.name) else {
            let known: Vec<&str> = self
                .0
                .toolboxes
                .iter()
                .flat_map(|toolbox| toolbox.tools())
                .map(|tool| tool.name)
                .collect();
            let message =
                format!("unknown tool {:?}: known are {}", request.name, known.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        };
        let arguments =
            serde_json::Value::Object(request.arguments.unwrap_or_default()).to_string();
        let admitted = match self.admit(context, caller, tool.method, arguments.len()) {
            Ok(admitted) => admitted,
            Err(refusal) => return Ok(failed(&toolbox.worded(refusal))),
        };
        let arguments = match read(&arguments, tool) {
            Ok(arguments) => arguments,
            Err(error) => {
                admitted.failed(error.code);
                return Ok(failed(&error));
            }
        };
        let progress = Progress::of(context, self.0.beat);
        let slot = match toolbox.waits_for_the_disk(tool) {
            true => self.0.capacity.slot_at_the_disk(),
            false => self.0.capacity.slot(),
        };
        let slot = match slot {
            Ok(slot) => slot,
            Err(error) => {
                admitted.failed(error.code);
                return Ok(failed(&error));
            }
        };
        let waiting = Waiting::new();
        let observer = waiting.observer();
        let work = slot.work(move || toolbox.call(tool, admitted, &arguments, &observer));
        match progress.until_done(work, &waiting).await {
            None => Err(cancelled()),
            Some(Ok(Ok(result))) => Ok(CallToolResult::structured(value(result))),
            Some(Ok(Err(error))) => Ok(failed(&error)),
            Some(Err(error)) => Ok(failed(&error)),
        }
    }
}

/// Reads the arguments of a tool.
fn read(arguments: &str, tool: &Tool) -> Result<Map, Error> {
    let invalid = |message: String| Error::new(Code::InvalidQuery, message);
    match json::from_slice(arguments.as_bytes(), &Limits::default()) {
        Ok(Value::Object(map)) => check(tool.inputs, &map).map(|()| map),
        Ok(_) => Err(invalid("the arguments are no object".to_owned())),
        Err(error) => Err(invalid(format!("the arguments cannot be read: {error}"))),
    }
}

fn value(map: Map) -> serde_json::Value {
    serde_json::Value::Object(object(map))
}

/// An error as a result that a model reads: the code, what was wrong and where. It has no structured content, which would
/// have to fit the schema of the result.
fn failed(error: &Error) -> CallToolResult {
    CallToolResult::error(vec![rmcp::model::ContentBlock::text(json::to_string(&error_value(
        error,
    )))])
}

fn cancelled() -> ErrorData {
    ErrorData::internal_error("the call was cancelled", None)
}
