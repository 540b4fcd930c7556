//! One memory: `get` and `explain`.

use omir_core::json;
use omir_core::reference::Ref;
use omir_core::value::Map;
use omir_core::words::words;
use omird_engine::{Code, Error};
use omird_router::field::{ANY_NUMBER, ANY_TEXT};
use omird_router::{Field, Shape};

use super::Call;
use super::ask::decoded;
use super::memory::shown;

/// Bytes of JSON up to which a resource is given whole.
const WHOLE: usize = 16 << 10;
/// Most characters of the text of one memory.
const LONG: usize = 8_000;

/// The result of `explain`.
pub(super) const EXPLANATION: &[Field] = &[
    Field::new("reference", ANY_TEXT, "The memory.").required(),
    Field::new("version", ANY_NUMBER, "Its version; each change adds one."),
    Field::new("recorded", ANY_TEXT, "When this version was recorded, RFC 3339."),
    Field::new("tier", ANY_TEXT, "working, session, longterm or archive."),
    Field::new("reason", ANY_TEXT, "Why it is in that tier, or was forgotten."),
    Field::new("retrievability", ANY_NUMBER, "How far it has not faded yet, 0 to 1."),
    Field::new(
        "half_life_hours",
        ANY_NUMBER,
        "Hours after the last access at which retrievability is 0.5.",
    ),
    Field::new("last_access", ANY_TEXT, "When it was last used, RFC 3339."),
    Field::new("access_count", ANY_NUMBER, "How often it was used."),
    Field::new("anchored", Shape::Flag, "True if it resists forgetting."),
    Field::new("strength", ANY_NUMBER, "What decides its next tier, 0 to 1."),
    Field::new("next_tier", ANY_TEXT, "The tier it moves to if nobody uses it."),
    Field::new("next_tier_at", ANY_TEXT, "When, RFC 3339."),
    Field::new("fades_at", ANY_TEXT, "When it falls to the archive if nobody uses it, RFC 3339."),
    Field::new("valid_until", ANY_TEXT, "The end of its validity, RFC 3339."),
    Field::new("is_valid", Shape::Flag, "True until then."),
    Field::new("evictable", Shape::Flag, "True if it may be forgotten to make room."),
    Field::new("observations", ANY_NUMBER, "Number of observations merged into it."),
    Field::new("forgotten", Shape::Flag, "True if it was forgotten."),
    Field::new("forgotten_at", ANY_TEXT, "When it was forgotten, RFC 3339."),
    Field::new("unreadable", Shape::Flag, "True if the card has lost its newest version."),
];

/// The members of the answer of `explain` in `docs/replies.md`, and the names they have here.
const RENAMED: [(&str, &str); 21] = [
    ("/ref", "reference"),
    ("/version", "version"),
    ("/recorded", "recorded"),
    ("/tier", "tier"),
    ("/reason", "reason"),
    ("/retrievability", "retrievability"),
    ("/halfLifeHours", "half_life_hours"),
    ("/lastAccess", "last_access"),
    ("/accessCount", "access_count"),
    ("/anchored", "anchored"),
    ("/strength", "strength"),
    ("/nextMove/tier", "next_tier"),
    ("/nextMove/at", "next_tier_at"),
    ("/fades", "fades_at"),
    ("/validUntil", "valid_until"),
    ("/isValid", "is_valid"),
    ("/evictable", "evictable"),
    ("/observations", "observations"),
    ("/forgotten", "forgotten"),
    ("/forgottenAt", "forgotten_at"),
    ("/unreadable", "unreadable"),
];

impl Call<'_> {
    pub(super) fn get(&self) -> Result<Map, Error> {
        let target = self.reference()?;
        let bytes = self.omir.engine.get(&target)?.ok_or_else(|| not_found(&target))?;
        let resource = decoded(&bytes)?;
        let mut map = shown(&resource, &self.frame(), self.now);
        if map.get("text_is_cut").is_some() {
            let text: String = words(&resource).chars().take(LONG).collect();
            if text.len() == words(&resource).len() {
                map.remove("text_is_cut");
            }
            map.insert("text", text);
        }
        if json::to_string(&resource).len() <= WHOLE {
            map.insert("resource", resource);
        } else {
            map.insert("resource_is_left_out", true);
        }
        Ok(map)
    }

    pub(super) fn explain(&self) -> Result<Map, Error> {
        let target = self.reference()?;
        let answer = self.omir.engine.explain(&target).map_err(in_reference)?;
        let mut map = Map::new();
        for (from, to) in RENAMED {
            if let Some(value) = answer.pointer(from).filter(|value| !value.is_null()) {
                map.insert(to, value.clone());
            }
        }
        Ok(map)
    }

    /// The reference that a tool about one memory is given.
    pub(super) fn reference(&self) -> Result<Ref, Error> {
        read_reference("reference", self.text("reference").unwrap_or_default())
    }
}

/// Reads a reference.
///
/// # Errors
/// `INVALID_QUERY`: what is expected.
pub(super) fn read_reference(name: &str, text: &str) -> Result<Ref, Error> {
    text.parse().map_err(|error| {
        let message = format!(
            "{text:?} is no reference such as MemoryRecord/dock-1, as `reference` of a result has it: {error}"
        );
        Error::query(name, message)
    })
}

/// Nothing is stored under a name.
pub(super) fn not_found(target: &Ref) -> Error {
    let message = format!("{target} is not in the memory; recall finds what is");
    Error::at(Code::NotFound, "/reference", message)
}

/// The error of a method, with the name that its `ref` has in a tool.
pub(super) fn in_reference(error: Error) -> Error {
    if error.path == "/ref" { Error { path: "/reference".to_owned(), ..error } } else { error }
}

/// The fields of [`Call::get`] beside those of a memory.
pub(super) const RESOURCE: [Field; 2] = [
    Field::new(
        "resource",
        Shape::Anything,
        "The whole resource, as OMIR R1 has it (spec: https://omir.io).",
    ),
    Field::new(
        "resource_is_left_out",
        Shape::Flag,
        "True if the resource is too large for a result; omir://memory/{reference} has it.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_explained_has_its_schema() {
        let fields: Vec<&str> = EXPLANATION.iter().map(|field| field.name).collect();
        let named = RENAMED.map(|(_, to)| to);
        assert_eq!(fields, named);
    }
}
