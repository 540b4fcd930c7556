//! Refusals that only this protocol has.

use omir_core::reference::ResourceType;
use omird_engine::{Code, Error};

/// Refuses a change under a key that names no resource.
pub fn no_resource(key: &str) -> Error {
    let types: Vec<&str> = ResourceType::ALL.iter().map(|of| of.as_str()).collect();
    Error::new(
        Code::InvalidResource,
        format!(
            "{key} names no resource: expected memory/<Type>/<id> with a type of {} and an id of \
             [A-Za-z0-9._:-]{{1,128}}",
            types.join(", ")
        ),
    )
}
