//! The self-description of a daemon's sealed segment: an Episode that is history and no memory. `omird-store` writes it
//! (`manifest.rs` there), of which this crate knows no more.

use omir_core::value::Value;

/// Beginning of its id.
const ID_PREFIX: &str = "omird.segment.";
/// Its extension, the first one.
const URL: &str = "urn:omird:ext:segment";
/// The format of the payload.
const FORMAT: u64 = 1;

/// Returns true if a resource is the manifest of a segment. Anything else with that URL is a resource like any other.
pub(super) fn is_manifest(resource: &Value) -> bool {
    let text = |name: &str| resource.get(name).and_then(Value::as_str);
    let format = payload(resource).and_then(|payload| payload.get("format")?.as_u64());
    text("resourceType") == Some("Episode")
        && text("id").is_some_and(|id| id.starts_with(ID_PREFIX))
        && format == Some(FORMAT)
}

fn payload(episode: &Value) -> Option<&Value> {
    let extension = episode.get("extension")?.as_array()?.first()?;
    (extension.get("url")?.as_str()? == URL).then(|| extension.get("valueJson"))?
}
