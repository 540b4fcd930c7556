//! Resources of MCP: the status, and each memory under its reference.

use omir_core::reference::Ref;
use omir_core::value::Value;
use omir_core::{cbor, decode::Limits, json};
use rmcp::RoleServer;
use rmcp::model::{
    ErrorCode, ErrorData, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
};
use rmcp::service::RequestContext;

use super::Mcp;
use crate::engine::{Code, Error};
use crate::protocols::omir::{GET, STATUS};
use crate::router::{Caller, error_value, worded};

const STATUS_URI: &str = "omir://status";
const MEMORY: &str = "omir://memory/";
const JSON: &str = "application/json";

/// A resource that can be read.
enum Target {
    Status,
    Memory(Ref),
}

impl Mcp {
    /// The resources that the caller may read and that have one name.
    pub(super) fn resources(&self, caller: &Caller) -> Vec<Resource> {
        let status = Resource::new(STATUS_URI, "status")
            .with_title("The state of the memory")
            .with_description(
                "Counts, disk, clock, durability and version, as docs/replies.md has them.",
            )
            .with_mime_type(JSON);
        if self.may(caller, &STATUS) { vec![status] } else { Vec::new() }
    }

    /// The forms of the names of all others.
    pub(super) fn templates(&self, caller: &Caller) -> Vec<ResourceTemplate> {
        let memory = ResourceTemplate::new(format!("{MEMORY}{{type}}/{{id}}"), "memory")
            .with_title("A memory")
            .with_description(
                "The resource of OMIR R1 under a reference, such as omir://memory/MemoryRecord/door-3.",
            )
            .with_mime_type(JSON);
        if self.may(caller, &GET) { vec![memory] } else { Vec::new() }
    }

    /// Reads one.
    pub(super) async fn read(
        &self,
        caller: &Caller,
        uri: String,
        context: &RequestContext<RoleServer>,
    ) -> Result<ReadResourceResult, ErrorData> {
        let target = target(&uri).map_err(|error| refused(&error))?;
        let row = match target {
            Target::Status => &STATUS,
            Target::Memory(_) => &GET,
        };
        let router = &self.0.protocols.router;
        let slot = self.0.capacity.slot().map_err(|error| {
            router.refuse(caller, row, 0, error.code);
            refused(&error)
        })?;
        let admitted = self.admit(context, caller, row, 0);
        let admitted = admitted.map_err(|refusal| refused(&worded(refusal)))?;
        let omir = self.0.protocols.omir.clone();
        let reading = slot.work(move || {
            let read = match target {
                Target::Status => Ok(omir.status(&admitted)),
                Target::Memory(name) => omir.get(&admitted, &name).and_then(|found| {
                    let none =
                        || Error::new(Code::NotFound, format!("{name} is not in the memory"));
                    decoded(&found.ok_or_else(none)?)
                }),
            };
            admitted.finish(&read);
            read
        });
        match reading.await {
            Ok(Ok(value)) => {
                let text = json::to_string(&value);
                let contents = ResourceContents::text(text, uri).with_mime_type(JSON);
                Ok(ReadResourceResult::new(vec![contents]))
            }
            Ok(Err(error)) | Err(error) => Err(refused(&error)),
        }
    }
}

fn decoded(bytes: &[u8]) -> Result<Value, Error> {
    cbor::from_slice(bytes, &Limits::default()).map_err(|error| {
        Error::new(Code::Internal, format!("a stored resource cannot be read: {error}"))
    })
}

/// Reads the name of a resource.
fn target(uri: &str) -> Result<Target, Error> {
    if uri == STATUS_URI {
        return Ok(Target::Status);
    }
    let reference = uri.strip_prefix(MEMORY).and_then(|reference| reference.parse().ok());
    reference.map(Target::Memory).ok_or_else(|| {
        let message = format!(
            "{uri:?} is none of {STATUS_URI} and {MEMORY}<Type>/<id>, which are the resources"
        );
        Error::new(Code::NotFound, message)
    })
}

fn refused(error: &Error) -> ErrorData {
    let code = match error.code {
        Code::NotFound => ErrorCode::RESOURCE_NOT_FOUND,
        Code::Internal => ErrorCode::INTERNAL_ERROR,
        _ => ErrorCode::INVALID_REQUEST,
    };
    let data = serde_json::from_str(&json::to_string(&error_value(error))).ok();
    ErrorData::new(code, error.message.clone(), data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_the_status_or_a_memory() {
        assert!(matches!(target("omir://status"), Ok(Target::Status)));
        match target("omir://memory/Entity/a:b") {
            Ok(Target::Memory(name)) => assert_eq!(name.to_string(), "Entity/a:b"),
            _ => panic!("a memory"),
        }
        for uri in
            ["omir://memory/Thing/a", "omir://memory/Entity/", "omir://memory", "file:///etc", ""]
        {
            assert!(matches!(target(uri), Err(error) if error.code == Code::NotFound), "{uri}");
        }
    }
}
